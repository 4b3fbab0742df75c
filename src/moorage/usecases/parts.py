"""What every use case is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moorage.usecases.limits import Limits

if TYPE_CHECKING:
    from moorage.usecases.ports import Ids, Solver, Store


@dataclass(frozen=True, slots=True)
class Parts:
    """The ports and bounds, handed in by whoever serves a request."""

    store: Store
    solver: Solver
    ids: Ids
    limits: Limits = field(default_factory=Limits)
