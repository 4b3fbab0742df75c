"""Admission: limits of concurrent expensive requests, and the series that this process creates.

Expensive requests are those that may search: decisions, leases, offers, series, templates,
explanations, and capacity queries. Reads, claims and Nova's writes are not expensive; the limit
leaves threads for them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy, TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Admission:
    """Limits the expensive requests that this process runs at once."""

    def __init__(self, *, of_one_project: int = 8, in_all: int = 12, waiting: int = 8) -> None:
        self._of_one_project = of_one_project
        self._in_all = in_all
        self._lock = Lock()
        self._projects: Counter[str] = Counter()
        self._all = 0
        self.waiting: Final = BoundedSemaphore(waiting)
        """Limits the requests that wait for events, each of which occupies a thread."""

    @contextmanager
    def turn(self, caller: Caller) -> Iterator[None]:
        """Count one expensive request during the context, or refuse it; there is no waiting.

        A waiting request would occupy a thread. Requests of operators count for no project.

        Raises:
            TooManyRequests: the caller's project has as many under way as it may.
            Busy: this process has as many under way as it may.
        """
        project = None if caller.operator else caller.project_id
        self._enter(project)
        try:
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
