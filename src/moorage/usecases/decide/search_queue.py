"""The order in which decisions search in one process: one at a time, and projects in turn.

Searches hold the interpreter's lock, so several at once take as long as one after the other. Worse,
they read the same snapshot and prefer the same hosts, so that all but the first are overtaken and
search again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event, Lock
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Outcome, Problem
    from moorage.usecases.ports import Solver

LONGEST_TURN: Final = 0.25
"""Seconds after which the next search begins beside one that is not finished, so that a large
request delays others by so much and no more."""
_RETURNING: Final = ""
"""In place of a project: searches that have had their turn and go on, before all others."""


class SearchQueue:
    """Lets searches begin one after the other. Thread-safe."""

    def __init__(self, stopwatch: Callable[[], float], longest: float = LONGEST_TURN) -> None:
        """`stopwatch` is a monotonic clock in seconds, `longest` as `LONGEST_TURN`."""
        self._stopwatch = stopwatch
        self._longest = longest
        self._lock = Lock()
        self._waiting: OrderedDict[str, deque[Event]] = OrderedDict()
        """Project -> its waiting searches; the projects in the order of their turns."""
        self._searching: Event | None = None
        self._since = 0.0

    @contextmanager
    def turn(self, project_id: str) -> Iterator[None]:
        """Wait for the turn of a search of a project, and keep it during the context.

        A search within a search, such as that for an entry of the waitlist, is part of its turn.

        Raises:
            TimeExpired: the deadline of the current work passed before.
        """
        if _turn.get() is not None:
            yield
            return
        own = Event()
        self._wait(project_id, own)
        mark = _turn.set((self, own))
        try:
            yield
        finally:
            _turn.reset(mark)
            self._end(own)

    @contextmanager
    def between(self, own: Event) -> Iterator[None]:
        """Let others search during the context; afterwards go on before any that waits."""
        self._end(own)
        own.clear()
        try:
            yield
        finally:
            # An answer that was found is used even if no turn comes in time.
            self._wait(_RETURNING, own, must_search=False)

    def _wait(self, project_id: str, own: Event, *, must_search: bool = True) -> None:
        with self._lock:
            self._waiting.setdefault(project_id, deque()).append(own)
            if project_id == _RETURNING:
                self._waiting.move_to_end(project_id, last=False)
            if self._searching is None:
                self._next()
        while not own.wait(max(min(self._left(), deadline.left(self._longest)), 0.0)):
            late = deadline.passed()
            with self._lock:
                if own.is_set():
                    return
                if late:
                    self._forget(project_id, own)
                elif self._left() <= 0:
                    self._next()
            if late and must_search:
                deadline.check()
            if late:
                return

    def _left(self) -> float:
        """Seconds until the search under way has had its turn."""
        return self._since + self._longest - self._stopwatch()

    def _end(self, own: Event) -> None:
        with self._lock:
            if self._searching is own:
                self._next()

    def _next(self) -> None:
        """Let the first search of the next project begin. The lock is held."""
        self._searching, self._since = None, self._stopwatch()
        if self._waiting:
            project_id, mine = self._waiting.popitem(last=False)
            self._searching = mine.popleft()
            if mine:
                self._waiting[project_id] = mine  # its next turn comes after those of the others
                if project_id == _RETURNING:
                    self._waiting.move_to_end(project_id, last=False)
            self._searching.set()

    def _forget(self, project_id: str, own: Event) -> None:
        mine = self._waiting[project_id]
        mine.remove(own)
        if not mine:
            del self._waiting[project_id]


_turn: ContextVar[tuple[SearchQueue, Event] | None] = ContextVar("search turn", default=None)


@dataclass(frozen=True, slots=True)
class SolverBetweenTurns:
    """A solver that works outside the interpreter's lock: meanwhile another search begins."""

    solver: Solver

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """See `Solver`."""
        now = _turn.get()
        if now is None:
            return self.solver.solve(problem, time_limit=time_limit, seed=seed)
        queue, own = now
        with queue.between(own):
            return self.solver.solve(problem, time_limit=time_limit, seed=seed)
