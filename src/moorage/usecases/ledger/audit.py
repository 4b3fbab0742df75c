"""The audit: the ledger compared with itself, and with Nova's servers and hypervisors.

The audit changes nothing; `clear_orphan` removes the allocations of one orphan, if it has not
changed since it was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.audit import Audit, Finding, FindingKind
from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.decisions import Claim
from moorage.domain.errors import NotFound
from moorage.domain.period import MINUTE, Period, format_instant
from moorage.domain.words import counted
from moorage.usecases.claims.place_returns import commit_with_returns
from moorage.usecases.ledger.content import booked_sets
from moorage.usecases.ledger.hypervisor_rows import hypervisor_rows
from moorage.usecases.ledger.nova_audit import (
    compare_hosts,
    compare_servers,
    compare_services,
    find_claims,
    find_closed,
    find_members,
    find_orphans,
    find_unfiltered,
)
from moorage.usecases.relocation.lease_health import open_leases, unplaced
from moorage.usecases.shared.access import require_operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.audit import NovaView
    from moorage.domain.content import AllocationSet
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ledger.content import ConsumerBookings
    from moorage.usecases.ports import Caller, Store

LATE: Final = MINUTE
"""Services mark lapsed holds each second: one that is not marked after this long was missed."""
_DUE: Final = 1_000


def audit(
    store: Store,
    caller: Caller,
    nova: NovaView | None,
    hypervisors: frozenset[str] | None = None,
) -> Audit:
    """Audit the ledger; without Nova's view only against itself.

    `hypervisors` are the names of Nova's; None: not compared. Those in Nova's view are found by
    their UUIDs, if they have been renamed in Placement.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    snapshot = store.snapshot()
    booked = list(booked_sets(store))
    findings = [*_overages(snapshot), *_dangling(store, snapshot, booked), *_lapsed(store)]
    findings += [*_unplaced(store, snapshot), *find_closed(snapshot)]
    findings += [Finding(FindingKind.IDLE, uuid, "no bookings") for uuid in store.idle_consumers()]
    if nova is not None:
        findings += [*find_orphans(nova, booked), *compare_servers(nova, snapshot, booked)]
        findings += [*find_claims(store, nova), *find_members(store, nova, snapshot)]
        findings += [*compare_services(nova, snapshot), *find_unfiltered(nova)]
    if hypervisors is not None:
        known = {} if nova is None else hypervisor_rows(snapshot, nova.hosts)
        findings += compare_hosts(snapshot, hypervisors, known)
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
    """Inventories on which more is booked than their capacity.

    A period without capacity does not count: that a host is away while it has bookings is planned
    so, and `capacity window show` says whom it concerns.
    """
    for name, columns in sorted(snapshot.classes.items()):
        booked = columns.booked_over(Period(snapshot.taken_at))
        over = (booked > columns.capacity) & snapshot.alive[columns.rows]
        for at in over.nonzero()[0].tolist():
            row = int(columns.rows[at])
            yield Finding(
                FindingKind.OVERAGE,
                snapshot.uuids[row],
                f"{snapshot.names[row]}: {name} {int(booked[at])} booked"
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
    roots = {snapshot.names[row] for row in snapshot.hosts.tolist()}
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
