"""Repeats one piece of background work in a thread, in any number of processes.

Processes do not coordinate here: what a round finds is written as a changeset under an id or a
generation that only one of them can commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from moorage.workers.failure_log import FailureLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
