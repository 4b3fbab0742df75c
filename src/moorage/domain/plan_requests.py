"""Requests for plans: what a plan is to attain, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from moorage.domain.describe import EnsembleDescription
from moorage.domain.ensembles import MAX_MEMBERS
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import Instant
from moorage.domain.plans import PlanKind, PlanLimits

_OF_HOSTS: Final = frozenset({PlanKind.DRAIN, PlanKind.EVACUATE})
_FIELDS: Final = MappingProxyType(
    {
        PlanKind.DRAIN: frozenset({"hosts", "domains"}),
        PlanKind.EVACUATE: frozenset({"hosts", "domains"}),
        PlanKind.REPAIR: frozenset({"ensemble"}),
        PlanKind.ADMIT: frozenset({"ensemble", "description", "role", "count"}),
        PlanKind.REBALANCE: frozenset({"gain"}),
    }
)
"""What a request of each kind may give, beside what all of them may."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan is requested for.

    Raises:
        InvalidDescription: what it gives does not belong to its kind, or is missing.
    """

    kind: PlanKind
    hosts: tuple[str, ...] = ()
    """Names or UUIDs of hosts that become empty; for drain and evacuate."""
    domains: tuple[str, ...] = ()
    """Failure domains whose hosts become empty, such as `rack/r2` or `power:feed/a`."""
    ensemble: str | None = None
    """Id of the ensemble that is repaired, placed or extended."""
    description: EnsembleDescription | None = None
    """A new ensemble for which room is made."""
    role: str | None = None
    """With `ensemble` and `count`: room is made for further members of this role."""
    count: int = 0
    by: Instant | None = None
    """When it is to be done; None: no matter."""
    limits: PlanLimits = field(default_factory=PlanLimits)
    cold: bool = False
    """Whether servers are moved cold, that is stopped meanwhile."""
    gain: float = 0.0
    """For rebalance: by how much a move improves the room for others at least."""

    def __post_init__(self) -> None:
        """Refuse what does not belong to the kind, and what is missing."""
        for path in ("hosts", "domains", "ensemble", "description", "role", "count", "gain"):
            if getattr(self, path) and path not in _FIELDS[self.kind]:
                raise InvalidDescription(f"a plan to {self.kind} has no {path}", path=path)
        if self.kind in _OF_HOSTS and not (self.hosts or self.domains):
            raise InvalidDescription(f"a plan to {self.kind} needs hosts or domains", path="hosts")
        if self.kind is PlanKind.REPAIR and self.ensemble is None:
            raise InvalidDescription("a plan to repair needs an ensemble", path="ensemble")
        if self.kind is PlanKind.ADMIT:
            self._check_admitted()
        if self.gain < 0:
            raise InvalidDescription("gain is not negative", path="gain")

    def _check_admitted(self) -> None:
        if (self.ensemble is None) == (self.description is None):
            raise InvalidDescription(
                "a plan to admit needs an ensemble or a description, and not both", path="ensemble"
            )
        if not 0 <= self.count <= MAX_MEMBERS:
            raise InvalidDescription(f"count is from 1 to {MAX_MEMBERS}", path="count")
        if (self.role is None) != (self.count == 0):
            raise InvalidDescription("give role and count, or neither", path="role")
        if self.role is not None and self.ensemble is None:
            raise InvalidDescription("only members of an ensemble are of a role", path="role")
