"""Violations that are kept: a broken policy of an ensemble, or a member out of service.

A record begins when a judgement first finds the violation and ends when a later one does not. While
it lasts there is one record for each policy of an ensemble and each member; see `Violation.key`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Instant


class MemberCondition(StrEnum):
    """How a member is out of service."""

    AT_RISK = "at_risk"
    """Its host takes no new servers, such as a disabled one; what is there may still run."""
    LOST = "lost"
    """Its host is down, away or has no inventory: what is there does not run."""


class CauseKind(StrEnum):
    """What began or ended a violation, as far as the judgement can tell."""

    HOST = "host"
    """The state of a member's host."""
    MOVED = "member_moved"
    """Members are placed elsewhere, or for the first time."""
    REMOVED = "member_removed"
    """Members have left it: they were removed, or their places given back."""
    NEIGHBOUR = "neighbour"
    """Others have arrived beside the members, or left."""
    ENSEMBLE = "ensemble"
    """Its description: policies, roles or members."""
    TOPOLOGY = "topology"
    REFERENCE = "reference"
    """The members of another ensemble, to which the policy refers."""
    FOUND = "found"
    """Not known: found when a service started, or by the sweep."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What began or ended a violation, and who did it."""

    kind: CauseKind = CauseKind.FOUND
    hosts: tuple[str, ...] = ()
    """Names of the hosts concerned, for operators; a bounded number."""
    reason: str = ""
    """Why a host is out of service, for operators."""
    actor: Actor = UNKNOWN
    """Who did it, as far as it is known."""


FOUND: Final = Cause()


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of an ensemble, from when it was found until it was not any more."""

    id: str
    ensemble_id: str
    ensemble: str
    """The ensemble's name when it began."""
    project_id: str
    """The ensemble's; of a member out of service the project of its role."""
    policy: str | None
    """The policy's name; None: a member is out of service."""
    type: str
    """The policy's type; of a member its `MemberCondition`."""
    required: bool
    members: tuple[MemberName, ...]
    """The members that are known to break it; empty: no single one does."""
    amount: int
    """How much is broken, in the policy's own measure; 1 for a member."""
    text: str
    since: Instant
    until: Instant = FOREVER
    cause: Cause = FOUND
    ended_by: Cause | None = None
    servers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Member -> its server, of those that have one, when it began."""
    generation: int = 0
    named: bool = True
    """Whether the text may name hosts or domains: then it is for operators."""

    @property
    def key(self) -> str:
        """What it is about: of an ensemble at most one record of a key is open."""
        return f"policy {self.policy}" if self.policy is not None else f"member {self.members[0]}"

    @property
    def open(self) -> bool:
        """Whether it lasts."""
        return self.until == FOREVER
