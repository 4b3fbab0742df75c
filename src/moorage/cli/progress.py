"""A line on a terminal's stderr while something takes long; nothing anywhere else."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, TextIO

from moorage.client.errors import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY: Final = 1.0
"""Seconds after which the line comes, and changes."""


@contextmanager
def waiting(doing: str, out: TextIO | None = None) -> Iterator[None]:
    """Say what is being done, and for how long already, until it is.

    What is quick says nothing, and what is no terminal gets nothing: pipes and logs stay clean.
    """
    stream = sys.stderr if out is None else out
    if not stream.isatty():
        yield
        return
    over = Event()
    told = Thread(target=_tell, args=(doing, stream, over), daemon=True)
    told.start()
    try:
        yield
    finally:
        over.set()
        told.join()


@contextmanager
def asking(doing: str, goes_on: str) -> Iterator[None]:
    """`waiting` for what the service does to its end, though whoever asked has gone.

    Whoever stops waiting, or is given no answer in time, is told so by `goes_on`, on stderr.
    """
    try:
        with waiting(doing):
            yield
    except (KeyboardInterrupt, NoAnswer):
        fresh = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{fresh}{goes_on}\n")
        sys.stderr.flush()
        raise


def _tell(doing: str, stream: TextIO, over: Event) -> None:
    seconds = 0
    while not over.wait(_EVERY):
        seconds += 1
        stream.write(f"\r{doing}  {seconds}s")
        stream.flush()
    if seconds:
        stream.write("\r\x1b[K")
        stream.flush()
