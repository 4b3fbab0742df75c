"""Progress on a terminal's stderr: a line while a call takes long, or a bar."""

from __future__ import annotations

import sys
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


@contextmanager
def waiting(doing: str, out: TextIO | None = None) -> Iterator[None]:
    """Show an activity and its duration until it ends.

    Nothing is printed in the first second, nor where the stream is no terminal.
    """
    stream = sys.stderr if out is None else out
    if not stream.isatty():
        yield
        return
    over = Event()
    line = Thread(target=_write_line, args=(doing, stream, over), daemon=True)
    line.start()
    try:
        yield
    finally:
        over.set()
        line.join()


@contextmanager
def interruptible(doing: str, goes_on: str) -> Iterator[None]:
    """`waiting` for a request that the service finishes even if the client is interrupted.

    If it is interrupted, or not answered in time, `goes_on` is printed to stderr.
    """
    try:
        with waiting(doing):
            yield
    except (KeyboardInterrupt, NoAnswer):
        fresh = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{fresh}{as_typed(goes_on)}\n")
        sys.stderr.flush()
        raise


def _write_line(doing: str, stream: TextIO, over: Event) -> None:
    seconds = 0
    while not over.wait(_EVERY):
        seconds += 1
        stream.write(f"\r{doing}  {seconds}s")
        stream.flush()
    if seconds:
        stream.write("\r\x1b[K")
        stream.flush()


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
