"""Admission: limits of concurrent expensive requests, and the series that this process creates.

Expensive are those that may search: decisions, leases, offers, series, templates, explanations, and
questions about capacity. Reads, claims and Nova's writes are not, and always find threads left.
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
"""Requests that wait in one process: those who ask ever again must not keep others out."""


@dataclass
class SeriesInProgress:
    """The series that one process is making. May be used from any thread."""

    _made: set[str] = field(default_factory=set)
    _waiting: int = 0
    _lock: Lock = field(default_factory=Lock)

    def begin(self, series_id: str) -> bool:
        """Start a series, unless it is in progress."""
        with self._lock:
            free = series_id not in self._made
            self._made.add(series_id)
            return free

    def end(self, series_id: str) -> None:
        """Mark a series as no longer in progress."""
        with self._lock:
            self._made.discard(series_id)

    def wait(self) -> bool:
        """Start to wait, unless too many already do."""
        with self._lock:
            free = self._waiting < _WAITING
            self._waiting += free
            return free

    def leave(self) -> None:
        """Stop waiting."""
        with self._lock:
            self._waiting -= 1


RETRY_AFTER: Final = 1
"""Seconds after which a refused client may ask again: most such requests take less."""


class Admission:
    """Counts the expensive requests that are under way in this process."""

    def __init__(self, *, of_one_project: int = 8, in_all: int = 12, waiting: int = 8) -> None:
        self._of_one_project = of_one_project
        self._in_all = in_all
        self._lock = Lock()
        self._projects: Counter[str] = Counter()
        self._all = 0
        self.waiting: Final = BoundedSemaphore(waiting)
        """Requests that may wait for events: each keeps a thread."""

    @contextmanager
    def turn(self, caller: Caller) -> Iterator[None]:
        """Work on one expensive request; nobody waits for a turn, which would take a thread.

        Operators are not counted by project: their requests are of all projects.

        Raises:
            TooManyRequests: the caller's project has as many under way as it may.
            Busy: this process has.
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
