"""Admission: limits of concurrent expensive requests, and the series that this process creates.

Expensive requests are those that may search: decisions, leases, offers, series, templates,
explanations, and capacity queries. Reads, claims and Nova's writes are not expensive; the limit
leaves threads for them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from threading import BoundedSemaphore, Condition, Lock
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.errors import Busy, TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moorage.usecases.ports import Caller


_WAITING: Final = 4
"""Most requests that wait for a series in one process, so that repeats do not use all threads."""


@dataclass
class SeriesInProgress:
    """The series that this process is creating. Thread-safe."""

    _made: set[str] = field(default_factory=set)
    _waiting: int = 0
    _lock: Lock = field(default_factory=Lock)

    def begin(self, series_id: str) -> bool:
        """Mark a series as in progress; False if it is already."""
        with self._lock:
            free = series_id not in self._made
            self._made.add(series_id)
            return free

    def end(self, series_id: str) -> None:
        """Mark a series as no longer in progress."""
        with self._lock:
            self._made.discard(series_id)

    def wait(self) -> bool:
        """Count one more waiting request; False if too many wait already."""
        with self._lock:
            free = self._waiting < _WAITING
            self._waiting += free
            return free

    def leave(self) -> None:
        """Count one waiting request less."""
        with self._lock:
            self._waiting -= 1


RETRY_AFTER: Final = 1
"""Seconds after which a refused client may retry; most expensive requests take less."""


_RECENT: Final = 10.0
"""Seconds for which a project that has asked counts as one that asks."""


class ProjectTurns:
    """Lets a project's requests work while others wait, if other projects ask, too. Thread-safe.

    One that asks alone may use all there is. Once another asks, each has so many turns at a time:
    processors are not shared between requests but between projects, and a long request of one does
    not slow another's.
    """

    def __init__(self, at_once: int, stopwatch: Callable[[], float], longest: float = inf) -> None:
        """`longest`: so many seconds after it came, a request waits no longer for its turn.

        Its own time limit is in its body, which is read in its turn.
        """
        self._at_once = at_once
        self._stopwatch = stopwatch
        self._longest = longest
        self._changed = Condition()
        self._running: Counter[str] = Counter()
        self._asked: dict[str, float] = {}
        """When each project that has asked lately did so last."""

    @contextmanager
    def turn(self, project: str) -> Iterator[None]:
        """Wait for a turn, and take it during the context.

        Raises:
            TimeExpired: the request's deadline, or the longest time to wait, passed before.
        """
        with self._changed, deadline.within(self._stopwatch, self._longest):
            self._asked[project] = self._stopwatch()
            while self._must_wait(project):
                deadline.check()
                self._changed.wait(max(deadline.left(1.0), 0.0))
            self._running[project] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[project] -= 1
                if not self._running[project]:
                    del self._running[project]
                self._changed.notify_all()

    def _must_wait(self, project: str) -> bool:
        if self._running[project] < self._at_once:
            return False
        recent = self._stopwatch() - _RECENT
        for other in [one for one, at in self._asked.items() if at < recent]:
            del self._asked[other]
        return any(other != project for other in (*self._asked, *self._running))


class Admission:
    """Limits the expensive requests that this process runs at once."""

    def __init__(
        self,
        *,
        of_one_project: int = 8,
        in_all: int = 12,
        waiting: int = 8,
        turns: ProjectTurns | None = None,
    ) -> None:
        """`turns` None: all that are admitted work at once."""
        self._turns = turns
        self._of_one_project = of_one_project
        self._in_all = in_all
        self._lock = Lock()
        self._projects: Counter[str] = Counter()
        self._all = 0
        self.waiting: Final = BoundedSemaphore(waiting)
        """Limits the requests that wait for events, each of which occupies a thread."""

    @contextmanager
    def turn(self, caller: Caller) -> Iterator[None]:
        """Count one expensive request during the context, or refuse it; then wait for its turn.

        A waiting request occupies a thread, so only those wait that are admitted. Requests of
        operators count for no project, and wait for none.

        Raises:
            TooManyRequests: the caller's project has as many under way as it may.
            Busy: this process has as many under way as it may, or the deadline passed before the
                project's turn.
        """
        project = None if caller.operator else caller.project_id
        self._enter(project)
        try:
            if project is None or self._turns is None:
                yield
            else:
                with self._turns.turn(project):
                    yield
        finally:
            self._leave(project)

    def _enter(self, project: str | None) -> None:
        with self._lock:
            if project is not None and self._projects[project] >= self._of_one_project:
                raise TooManyRequests(
                    f"the project has {self._of_one_project} expensive requests under way, as many"
                    " as it may (expensive_per_project); send this one again when one is answered",
                    retry_after=RETRY_AFTER,
                )
            if self._all >= self._in_all:
                raise Busy(
                    f"{self._in_all} expensive requests are under way, as many as this process"
                    " takes; send this one again later",
                    retry_after=RETRY_AFTER,
                )
            self._all += 1
            if project is not None:
                self._projects[project] += 1

    def _leave(self, project: str | None) -> None:
        with self._lock:
            self._all -= 1
            if project is not None:
                self._projects[project] -= 1
                if not self._projects[project]:
                    del self._projects[project]
