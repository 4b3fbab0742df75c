"""What every use case is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moorage.usecases.series.alone import UnderWay
from moorage.usecases.waitlist.line import Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.usecases.leases.checked import Check
    from moorage.usecases.limits import Limits
    from moorage.usecases.ports import Ids, Solver, Store


@dataclass(frozen=True, slots=True)
class Parts:
    """The ports and bounds, handed in by whoever serves a request."""

    store: Store
    solver: Solver
    ids: Ids
    limits: Limits
    stopwatch: Callable[[], float]
    """Seconds that only ever grow, for time budgets."""
    pause: Callable[[float], object]
    """Does nothing for so many seconds."""
    check: Check | None = None
    """The operator's own check of leases."""
    line: Line = field(default_factory=Line, compare=False)
    """What this process remembers of the waitlist."""
    under_way: UnderWay = field(default_factory=UnderWay, compare=False)
    """Which series this process makes."""
