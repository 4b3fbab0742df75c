"""The base environment of use cases: store, solver, ids, limits and clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.actors import Actor
    from moorage.usecases.ports import Ids, Solver, Store
    from moorage.usecases.shared.limits import Limits


@dataclass(frozen=True, slots=True)
class Environment:
    """The ports and bounds of one process."""

    store: Store
    solver: Solver
    ids: Ids
    limits: Limits
    stopwatch: Callable[[], float]
    """Monotonic clock in seconds, for time budgets."""
    pause: Callable[[float], object]
    """Sleeps for so many seconds."""

    def countdown(self, seconds: float) -> Callable[[], float]:
        """A function that returns how many of these seconds, from now on, are left."""
        until = self.stopwatch() + seconds
        return lambda: until - self.stopwatch()

    def in_dry_run(self, *, explained: bool = False) -> Self:
        """The environment in which nothing is written that use cases commit (ADR-0053).

        With `explained`, why requests are refused is: for what a use case tries before it writes.
        """
        return replace(self, store=self.store.dry_run(explained=explained))

    def by(self, actor: Actor) -> Self:
        """The environment in which what use cases commit is this actor's."""
        return replace(self, store=self.store.by(actor))

    def with_disclosure_for(self, *, operator: bool) -> Self:
        """The environment with exact disclosure for an operator."""
        if not operator:
            return self
        exact = replace(self.limits.disclosure, exact=True)
        return replace(self, limits=replace(self.limits, disclosure=exact))
