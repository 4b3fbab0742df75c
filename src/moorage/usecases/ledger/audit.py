"""The audit: the ledger compared with itself, and with Nova's servers and hypervisors.

The audit changes nothing; `clear_orphan` removes the allocations of one orphan, if it has not
changed since it was found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.content import AllocationSet
from moorage.domain.decisions import Claim
from moorage.domain.errors import NotFound
from moorage.domain.period import MINUTE, format_instant
from moorage.domain.servers import SERVER_TYPES
from moorage.domain.words import counted
from moorage.engine.state.sharing import SHARING_TRAIT
from moorage.usecases.claims.place_returns import commit_with_returns
from moorage.usecases.ledger.content import booked_sets
from moorage.usecases.relocation.lease_health import open_leases, unplaced
from moorage.usecases.shared.access import require_operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.domain.consumers import Consumer
    from moorage.domain.period import Instant
    from moorage.domain.servers import Server
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ledger.content import ConsumerBookings
    from moorage.usecases.ports import Caller, Store

GRACE: Final = 10 * MINUTE
"""A consumer younger than this when servers were listed may be a server that is not listed yet."""
LATE: Final = MINUTE
"""Services mark lapsed holds each second: one that is not marked after this long was missed."""
_DUE: Final = 1_000
COMPUTE: Final = "COMPUTE_NODE"
"""The trait that Nova has given its hosts since Train."""
_OF_HOSTS: Final = frozenset({"VCPU", "PCPU", "MEMORY_MB"})


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


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit."""

    revision: int
    consumers: int
    servers: int | None
    findings: tuple[Finding, ...] = field(default=())


def audit(
    store: Store,
    caller: Caller,
    nova: NovaView | None,
    hypervisors: frozenset[str] | None = None,
) -> Audit:
    """Audit the ledger; without Nova's view only against itself.

    `hypervisors` are the names of Nova's; None: not compared.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    snapshot = store.snapshot()
    booked = list(booked_sets(store))
    findings = [*_overages(snapshot), *_dangling(store, snapshot, booked), *_lapsed(store)]
    findings += _unplaced(store, snapshot)
    findings += [Finding(FindingKind.IDLE, uuid, "no bookings") for uuid in store.idle_consumers()]
    if nova is not None:
        findings += [*_orphans(nova, booked), *_servers(nova, snapshot, booked)]
    if hypervisors is not None:
        findings += _hosts(snapshot, hypervisors)
    return Audit(
        revision=snapshot.revision,
        consumers=len(booked),
        servers=None if nova is None else len(nova.servers),
        findings=tuple(findings),
    )


def clear_orphan(store: Store, caller: Caller, found: AllocationSet) -> None:
    """Delete an orphan's allocations, if its generation has not changed.

    Raises:
        Forbidden: the caller is no operator.
        ConsumerConflict: the consumer has changed, so it may be no orphan any more.
        ProviderConflict, Busy: from the commit.
    """
    require_operator(caller)
    generation = found.consumer.generation
    commit_with_returns(store, Changeset((ReplaceAllocations(found.consumer, {}, generation),)))


# --- the ledger by itself ---------------------------------------------------------------------


def _overages(snapshot: Snapshot) -> Iterator[Finding]:
    for name, columns in sorted(snapshot.classes.items()):
        over = (columns.peak > columns.capacity) & snapshot.alive[columns.rows]
        for at in over.nonzero()[0].tolist():
            row = int(columns.rows[at])
            yield Finding(
                FindingKind.OVERAGE,
                snapshot.uuids[row],
                f"{snapshot.names[row]}: {name} {int(columns.peak[at])} booked"
                f" of {max(int(columns.capacity[at]), 0)}",
            )


def _dangling(
    store: Store, snapshot: Snapshot, booked: Iterable[ConsumerBookings]
) -> Iterator[Finding]:
    for one in booked:
        for booking in one.bookings:
            row = snapshot.row_of.get(booking.provider)
            if row is None:
                detail = f"booked on provider {booking.provider}, which is not there"
                yield Finding(FindingKind.DANGLING, one.consumer.uuid, detail)
                continue
            stock = {item.resource_class for item in snapshot.state(row).provider.inventories}
            for name in sorted(booking.amounts.keys() - stock):
                detail = f"booked {name} of {snapshot.names[row]}, which has no such inventory"
                yield Finding(FindingKind.DANGLING, one.consumer.uuid, detail)
    roots = {snapshot.names[row] for row in snapshot.roots.tolist()}
    for tree, host in sorted(snapshot.topology.attachments):
        if host not in roots:
            yield Finding(FindingKind.DANGLING, host, f"a place in tree {tree}, but no such host")
    yield from _without_ensemble(store, booked)


def _without_ensemble(store: Store, booked: Iterable[ConsumerBookings]) -> Iterator[Finding]:
    """Holds whose decision, or its ensemble, does not exist."""
    held: dict[str, str] = {}
    for one in booked:
        for booking in one.bookings:
            if booking.decision is not None and booking.state is not BookingState.ALLOCATED:
                held.setdefault(booking.decision, one.consumer.uuid)
    for decision_id, consumer in sorted(held.items()):
        try:
            store.ensemble(store.decision(decision_id).ensemble_id)
        except NotFound as error:
            detail = f"held for decision {decision_id}: {error.message}"
            yield Finding(FindingKind.DANGLING, consumer, detail)


def _lapsed(store: Store) -> Iterator[Finding]:
    now = store.now()
    for due in store.due(_DUE):
        kind, at = (
            ("claim", due.lapses_at) if isinstance(due, Claim) else ("decision", due.expires_at)
        )
        if at <= now - LATE:
            yield Finding(
                FindingKind.LAPSED,
                due.id,
                f"{kind} of ensemble {due.ensemble_id}: {format_instant(at)}",
            )


def _unplaced(store: Store, snapshot: Snapshot) -> Iterator[Finding]:
    for lease in open_leases(store):
        missing = 0 if lease.degraded else len(unplaced(store, snapshot, lease))
        if missing:
            detail = f"{counted(missing, 'promised place')} booked nowhere"
            yield Finding(FindingKind.UNPLACED, lease.id, f"{lease.name}: {detail}")


# --- the ledger and Nova's hypervisors ----------------------------------------------------------


def _hosts(snapshot: Snapshot, hypervisors: frozenset[str]) -> Iterator[Finding]:
    """Hosts that only the ledger or only Nova has, by name; Ironic's nodes have UUIDs as names."""
    names: set[str] = set()
    for row in snapshot.roots.tolist():
        name, uuid = snapshot.names[row], snapshot.uuids[row]
        if not _is_host(snapshot, row):
            continue
        names.add(name)
        if name in hypervisors or uuid in hypervisors:
            continue
        booked = {
            one.consumer
            for below in snapshot.tree(row).tolist()
            for one in snapshot.bookings_of(below)
        }
        detail = (
            f"{name} is no hypervisor of Nova's; {counted(len(booked), 'consumer')} booked there"
        )
        yield Finding(FindingKind.DEPARTED, uuid, detail)
    known = names | {snapshot.uuids[row] for row in snapshot.roots.tolist()}
    for name in sorted(hypervisors - known):
        yield Finding(
            FindingKind.UNREGISTERED, name, "a hypervisor of Nova's without a resource provider"
        )


def _is_host(snapshot: Snapshot, row: int) -> bool:
    """Whether a root provider is a compute host, not a sharing provider or a pool of addresses."""
    traits = snapshot.traits_of(row)
    if COMPUTE in traits:
        return True
    stock = {one.resource_class for one in snapshot.state(row).provider.inventories}
    return SHARING_TRAIT not in traits and not stock.isdisjoint(_OF_HOSTS)


# --- the ledger and Nova ------------------------------------------------------------------------


def _orphans(nova: NovaView, booked: Sequence[ConsumerBookings]) -> Iterator[Finding]:
    moving = [one for one in nova.servers.values() if one.moving]
    for one in booked:
        allocated = one.allocated
        if not allocated or one.consumer.uuid in nova.servers:
            continue
        if one.consumer.type not in SERVER_TYPES:
            continue
        found = AllocationSet(one.consumer, {each.provider: each.amounts for each in allocated})
        since = min(each.period.start for each in allocated)
        told = _told(one.consumer, found)
        if since > nova.taken_at - GRACE:
            detail = f"{told}; since {format_instant(since)}: perhaps newer than the list"
            yield Finding(FindingKind.UNLISTED, one.consumer.uuid, detail)
        elif one.consumer.type != "INSTANCE" and any(_may_be_of(one.consumer, m) for m in moving):
            detail = f"{told}; perhaps the migration of a server that moves"
            yield Finding(FindingKind.UNLISTED, one.consumer.uuid, detail)
        else:
            yield Finding(FindingKind.ORPHAN, one.consumer.uuid, told, found)


def _may_be_of(consumer: Consumer, server: Server) -> bool:
    return server.project_id is None or server.project_id == consumer.project_id


def _told(consumer: Consumer, found: AllocationSet) -> str:
    total: dict[str, int] = {}
    for amounts in found.allocations.values():
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    sums = " ".join(f"{name}={amount}" for name, amount in sorted(total.items()))
    return f"no such server; project {consumer.project_id} takes {sums}"


def _servers(
    nova: NovaView, snapshot: Snapshot, booked: Sequence[ConsumerBookings]
) -> Iterator[Finding]:
    taken = {one.consumer.uuid: one.allocated for one in booked}
    for server in nova.servers.values():
        if not server.placed:
            continue
        allocated = taken.get(server.uuid, ())
        if not allocated:
            yield Finding(
                FindingKind.UNACCOUNTED,
                server.uuid,
                f"{server.name} ({server.status}) is on {server.host} without allocations",
            )
            continue
        rows = [
            snapshot.row_of[one.provider] for one in allocated if one.provider in snapshot.row_of
        ]
        hosts = sorted({snapshot.names[int(snapshot.root[row])] for row in rows})
        if server.host not in hosts and not server.moving:
            yield Finding(
                FindingKind.MISPLACED,
                server.uuid,
                f"{server.name} ({server.status}) is on {server.host},"
                f" allocations are on {', '.join(hosts)}",
            )
