"""What an audit finds, and what of Nova it compares the ledger with."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.content import AllocationSet
    from moorage.domain.nova_hosts import NovaHost
    from moorage.domain.period import Instant
    from moorage.domain.servers import Server


class FindingKind(StrEnum):
    """The kinds of findings of an audit."""

    ORPHAN = "orphan"
    """Allocations of a server that does not exist; the only kind that is repaired."""
    UNLISTED = "unlisted"
    """Allocations of a server that may be too new to be listed, or of a migration under way."""
    UNACCOUNTED = "unaccounted"
    """A server on a host that has no allocations."""
    MISPLACED = "misplaced"
    """A server whose allocations are on other hosts than itself."""
    OVERAGE = "overage"
    """More is booked on an inventory, now or later, than its capacity."""
    DANGLING = "dangling"
    """A reference to an object that does not exist."""
    LAPSED = "lapsed"
    """A hold or claim that has lapsed and was not marked: no service may be running."""
    DEPARTED = "departed"
    """A host that is no hypervisor of Nova's: nothing updates it, and decisions use it."""
    UNREGISTERED = "unregistered"
    """A hypervisor of Nova's that is no resource provider: nothing is placed on it."""
    CLAIMED = "claimed"
    """A claim that is active for a server that Nova does not have."""
    VACANT = "vacant"
    """A member of an ensemble whose server Nova does not have, and which has no place."""
    UNMARKED = "unmarked"
    """A host whose compute service is disabled, without the trait that keeps servers from it."""
    DOWN = "down"
    """A host with such places whose compute service is down, and the ledger does not know it."""
    CLOSED = "closed"
    """A host that is not in service, with places that servers are to have."""
    UNFILTERED = "unfiltered"
    """A path of nova-api where the hint `moorage` is not read: such servers boot anywhere."""
    UNPLACED = "unplaced"
    """A lease with places that are not booked, which is not marked as degraded."""
    IDLE = "idle"
    """A consumer without bookings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; `orphan` is set if it can be repaired."""

    kind: FindingKind
    subject: str
    detail: str
    orphan: AllocationSet | None = None


@dataclass(frozen=True, slots=True)
class NovaView:
    """Nova's servers, as listed at an instant."""

    servers: Mapping[str, Server]
    taken_at: Instant
    hosts: tuple[NovaHost, ...] = ()
    """Hypervisors with their compute services; empty: not compared."""
    unfiltered: tuple[str, ...] = ()
    """URLs of nova-api where the filter for hints does not run."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit."""

    revision: int
    consumers: int
    servers: int | None
    findings: tuple[Finding, ...] = field(default=())
