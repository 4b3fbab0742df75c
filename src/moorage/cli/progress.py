"""Progress on a terminal's stderr: a line while a call takes long, or a bar."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TextIO

from moorage.cli.command_names import as_typed
from moorage.client.errors import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EVERY: Final = 1.0
"""Seconds after which the line comes, and changes."""
_ENDING: Final = 1.0
"""Seconds that the line may take to end, as `more` may be waiting for a service."""


@contextmanager
def waiting(
    doing: str, out: TextIO | None = None, *, more: Callable[[], str] = lambda: ""
) -> Iterator[None]:
    """Show an activity and its duration until it ends.

    Nothing is printed in the first second, nor where the stream is no terminal. `more` is what else
    the line says; it is called from another thread, after half a second for the first time.
    """
    stream = sys.stderr if out is None else out
    if not stream.isatty():
        yield
        return
    shown, over = Event(), Event()
    line = Thread(target=_write_line, args=(doing, more, stream, shown, over), daemon=True)
    line.start()
    try:
        yield
    finally:
        over.set()
        line.join(_ENDING)
        if shown.is_set():
            stream.write("\r\x1b[K")
            stream.flush()


@contextmanager
def interruptible(
    doing: str, goes_on: str, *, more: Callable[[], str] = lambda: ""
) -> Iterator[None]:
    """`waiting` for a request that the service finishes even if the client is interrupted.

    If it is interrupted, or not answered in time, `goes_on` is printed to stderr.
    """
    try:
        with waiting(doing, more=more):
            yield
    except (KeyboardInterrupt, NoAnswer):
        fresh = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{fresh}{as_typed(goes_on)}\n")
        sys.stderr.flush()
        raise


def _write_line(
    doing: str, more: Callable[[], str], stream: TextIO, shown: Event, over: Event
) -> None:
    began = time.monotonic()
    if over.wait(_EVERY / 2):
        return
    more()
    while not over.wait(_EVERY - (time.monotonic() - began) % _EVERY):
        said = more()
        if not over.is_set():
            stream.write(f"\r{doing}  {time.monotonic() - began:.0f}s{said}\x1b[K")
            stream.flush()
            shown.set()


@contextmanager
def progress(stderr: TextIO) -> Iterator[Callable[[str, int, int], None]]:
    """A function that draws a progress bar with count and total; only on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from moorage.cli.output import console

    target = console(stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    tasks: dict[str, Any] = {}
    with Progress(
        *columns, console=target, transient=True, disable=not target.is_terminal
    ) as drawn:

        def update(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = drawn.add_task(what, total=of)
            drawn.update(tasks[what], completed=done, total=of)

        yield update


@dataclass
class Adder:
    """Adds up progress for a bar."""

    show: Callable[[str, int, int], None]
    what: str
    of: int
    done: int = 0

    def advance(self, more: int) -> None:
        """Add to the progress."""
        self.done += more
        self.show(self.what, self.done, self.of)
