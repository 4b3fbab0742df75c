"""Repeats one piece of background work in a thread, in any number of processes.

Processes do not coordinate here: what a round finds is written as a changeset under an id or a
generation that only one of them can commit.

An unreachable database or a full disk is one line when the first loop meets it, and one when every
loop works again. Any other error is logged with its traceback, then with a line for each item it
affects, and not again while it lasts.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from moorage.domain.errors import Busy, MoorageError
from moorage.logs import Lasting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_log = logging.getLogger(__name__)


class FailureLog:
    """Failures of the loops of one process. Safe for threads."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._lock = Lock()
        self._lasting = Lasting()

    def failed(self, loop: str, error: Exception, what: str = "") -> None:
        """Record that a round of a loop failed, or the step of it that `what` describes."""
        if isinstance(error, Busy):
            with self._lock:
                begins = not self._waiting
                self._waiting.add(loop)
            if begins:
                _log.warning("background work waits (%s): %s", loop, error)
            return
        failed = what or f"a round of {loop} failed"
        cause = _cause(error)
        is_new, hits_anew = map(self._lasting.is_news, ((loop, *cause), (loop, what, *cause)))
        if is_new and not isinstance(error, MoorageError):
            _log.error(failed, exc_info=error)
        elif hits_anew:
            _log.error("%s: %s: %s", failed, type(error).__name__, error)

    def recovered(self, loop: str) -> None:
        """Record that a round of a loop succeeded."""
        if loop not in self._waiting:
            return
        with self._lock:
            self._waiting.discard(loop)
            if self._waiting:
                return
        _log.warning("background work goes on")


def _cause(error: Exception) -> tuple[str, str, int]:
    """The type of an error and the line it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return type(error).__qualname__, *place


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round."""

    more: bool
    """Whether there is more to do at once."""
    failed: int = 0
    """How many items failed; each has been recorded."""


def run(
    work: Callable[[], Round],
    *,
    stop: Event,
    interval: float,
    name: str,
    failures: FailureLog,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Call `work` every `interval` seconds until `stop` is set; at once again while there is more.

    An exception of `work`, such as an unreachable database, is recorded and does not end the loop.
    `done` is called after each round without a failure.
    """
    while not stop.is_set():
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - the loop's last resort; the next round tries again
            failures.failed(name, error)
            found = Round(more=False, failed=1)
        if not found.failed:
            failures.recovered(name)
            done()
        if not found.more:
            stop.wait(interval)


@dataclass(frozen=True, slots=True)
class Worker:
    """Running loops that share one stop event."""

    stop: Event
    threads: Sequence[Thread]

    def close(self, timeout: float = 5.0) -> None:
        """Ask the loops to end and wait for them, at most `timeout` seconds each."""
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout)


def in_threads(stop: Event, loops: dict[str, Callable[[], None]]) -> Worker:
    """Run loops, by name, in threads that do not keep the process alive."""
    threads = [
        Thread(target=loop, name=f"moorage-{name}", daemon=True) for name, loop in loops.items()
    ]
    for thread in threads:
        thread.start()
    return Worker(stop, threads)


def start_scan(
    scan: Callable[[], bool],
    *,
    interval: float = 1.0,
    name: str = "scan",
    failures: FailureLog | None = None,
) -> Worker:
    """Run a scan in a loop; it returns whether there is more to do at once."""
    stop, log = Event(), failures or FailureLog()

    def loop() -> None:
        run(lambda: Round(scan()), stop=stop, interval=interval, name=name, failures=log)

    return in_threads(stop, {name: loop})
