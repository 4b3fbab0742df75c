"""The progress of a search for a placement: the best one so far, and the bound.

Solvers report while they search; whoever started the search may listen. Like the deadline it is
ambient, because it is no input of the search: it never changes an answer. Without a listener a
report costs next to nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search has come. `value` and `bound` are costs, as those of `Solve`."""

    solver: str
    """Which solver reported last."""
    value: int | None
    """The cost of the best placement so far; None: there is none yet."""
    bound: int
    """No placement costs less; proved."""

    @property
    def gap(self) -> float | None:
        """The share of `value` by which a better placement could be cheaper at most."""
        if self.value is None:
            return None
        return 1 - self.bound / self.value if self.value > 0 else 0.0

    def better_of(self, before: SearchProgress | None) -> SearchProgress:
        """The progress of one search after this report, which comes after `before`."""
        if before is None:
            return self
        values = [one.value for one in (self, before) if one.value is not None]
        value = min(values, default=None)
        bound = max(self.bound, before.bound)
        return SearchProgress(self.solver, value, bound if value is None else min(bound, value))


Listener: TypeAlias = "Callable[[SearchProgress], None]"
"""Takes note of progress. It is called in the middle of a search: it neither waits nor raises."""

_listener: ContextVar[Listener | None] = ContextVar("search progress", default=None)


def listener() -> Listener | None:
    """The listener of the current context, for callbacks that come from other threads."""
    return _listener.get()


def report(solver: str, value: int | None, bound: int) -> None:
    """Report the best cost so far, and the bound, to the listener if there is one."""
    hears = _listener.get()
    if hears is not None:
        hears(SearchProgress(solver, value, bound))


@contextmanager
def listening(hears: Listener | None) -> Iterator[None]:
    """Run searches whose progress is reported to a listener; None: to no one."""
    token = _listener.set(hears)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def one_search() -> Iterator[None]:
    """Run several solvers on one problem: each report has the best of all that came before it."""
    hears = _listener.get()
    if hears is None:
        yield
        return
    best: SearchProgress | None = None

    def merged(progress: SearchProgress) -> None:
        nonlocal best
        best = progress.better_of(best)
        hears(best)

    with listening(merged):
        yield
