"""Pending work: what is left to do of a request once its answer is sent.

The process that answers has to allow it (a planner does); elsewhere all is done before the answer.
It is bounded, as it takes the processor from requests that are waited for.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST: Final = 2
"""Requests of which a process has work left at once, at most one of each project."""


class PendingWork:
    """Bounds the pending work of this process. Thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = Lock()
        self._projects: set[str] = set()

    def begin(self, project_id: str) -> bool:
        """Count one more request; False if there may be none of this project now."""
        with self._lock:
            free = len(self._projects) < self._most and project_id not in self._projects
            if free:
                self._projects.add(project_id)
            return free

    def end(self, project_id: str) -> None:
        """Count one less."""
        with self._lock:
            self._projects.discard(project_id)


class AfterAnswer:
    """What is left to do of one request after its answer, one thing at most."""

    def __init__(self, bounds: PendingWork) -> None:
        self._bounds = bounds
        self._project_id: str | None = None
        self._work: Callable[[], None] | None = None

    @property
    def pending(self) -> bool:
        """Whether something is left to do."""
        return self._work is not None

    def allow(self, project_id: str) -> bool:
        """Whether one thing may be left for later; if so, it counts until `close`."""
        if self._project_id is not None or not self._bounds.begin(project_id):
            return False
        self._project_id = project_id
        return True

    def leave(self, work: Callable[[], None]) -> None:
        """Leave the one thing that is allowed for later."""
        self._work = work

    def run(self) -> None:
        """Do what is left."""
        work, self._work = self._work, None
        if work is not None:
            work()

    def close(self) -> None:
        """Count it no longer, whether or not it was done; closing it again changes nothing."""
        self._work = None
        if self._project_id is not None:
            self._bounds.end(self._project_id)
            self._project_id = None


_after: ContextVar[AfterAnswer | None] = ContextVar("after the answer", default=None)


def after_answer() -> AfterAnswer | None:
    """Where the current request may leave work; None: nowhere."""
    return _after.get()


@contextmanager
def leaving_work(after: AfterAnswer | None) -> Iterator[None]:
    """Answer a request that may leave work there; None: nowhere."""
    token = _after.set(after)
    try:
        yield
    finally:
        _after.reset(token)
