"""What every use case is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moorage.usecases.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.usecases.ports import Ids, Solver, Store


def _standing() -> float:
    """A stopwatch that stands still: budgets never run out."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Parts:
    """The ports and bounds, handed in by whoever serves a request."""

    store: Store
    solver: Solver
    ids: Ids
    limits: Limits = field(default_factory=Limits)
    stopwatch: Callable[[], float] = _standing
    """Seconds that only ever grow, for time budgets."""
