"""Decision records: what a decision was made from, kept beside it as long as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moorage.domain.member_names import MemberName
from moorage.domain.period import Duration, Instant


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """What a decision does not say itself: what was asked for, and what was considered."""

    taken_at: Instant
    """The instant of the snapshot; its revision is the decision's."""
    time_limit: Duration
    hold: Duration | None = None
    """The hold that was asked for; None: the configured default, or the former decision's."""
    until: Instant | None = None
    """The end that was asked for; None: none, or a lease's."""
    additional: tuple[str, ...] = ()
    """Roles and sets of roles whose `max_additional` was asked for."""
    strategy: str = ""
    """How room was made, by the name of the strategy."""
    attempts: int = 1
    """Attempts until one was committed; those before were overtaken by other commits."""
    displaced: int = 0
    """Servers of others that end early for it."""
    considered: int = 0
    """Hosts of a kind on which members to place go."""
    rejected: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Reason id -> hosts that it rejects for some role."""
    placed: int = 0
    """Members that were placed; others stayed where they were."""
    scatter: int | None = None
    """The number of the planner that searched, by which hosts of equal cost differ for it."""
    places: str = ""
    """The `places_digest` of all members."""
    instance: str = ""
    """The problem, or what it was made from, to be solved again; see `usecases.shared.instances`.
    Empty: it is too large."""


def places_digest(hosts: Mapping[MemberName, str]) -> str:
    """Equal for placements of the same members on the same hosts, given by their UUIDs."""
    lines = sorted(f"{name} {host}" for name, host in hosts.items())
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
