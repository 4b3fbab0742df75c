"""The ledger compared with Nova's servers, hypervisors and compute services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.audit import Finding, FindingKind
from moorage.domain.bookings import BookingState
from moorage.domain.content import AllocationSet
from moorage.domain.decisions import ClaimState
from moorage.domain.ensembles import OF_NOVA
from moorage.domain.host_states import DISABLED_TRAIT, HostState
from moorage.domain.period import MINUTE, Period, format_instant
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.servers import SERVER_TYPES
from moorage.domain.words import counted
from moorage.engine.state.host_states import closings, host_states
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.ledger.hypervisor_rows import hypervisor_rows
from moorage.usecases.paging import Page
from moorage.usecases.shared.access import every_ensemble

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.audit import NovaView
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Decision
    from moorage.domain.servers import Server
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ledger.content import ConsumerBookings
    from moorage.usecases.ports import Store

GRACE: Final = 10 * MINUTE
"""A consumer younger than this when servers were listed may be a server that is not listed yet."""
COMPUTE: Final = "COMPUTE_NODE"
"""The trait that Nova has given its hosts since Train."""
_OF_HOSTS: Final = frozenset({"VCPU", "PCPU", "MEMORY_MB"})


def compare_hosts(
    snapshot: Snapshot, hypervisors: frozenset[str], found: Mapping[str, int]
) -> Iterator[Finding]:
    """Hosts that only the ledger or only Nova has, by name; Ironic's nodes have UUIDs as names.

    `found` are hypervisors whose rows are known, whatever their names in the ledger.
    """
    rows = set(found.values())
    hypervisors -= found.keys()
    names: set[str] = set()
    for row in snapshot.hosts.tolist():
        name, uuid = snapshot.names[row], snapshot.uuids[row]
        if row in rows or not _is_host(snapshot, row):
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
    registered = names | {snapshot.uuids[row] for row in snapshot.hosts.tolist()}
    for name in sorted(hypervisors - registered):
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


def find_orphans(nova: NovaView, booked: Sequence[ConsumerBookings]) -> Iterator[Finding]:
    """Allocations of servers that Nova does not have."""
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


def compare_servers(
    nova: NovaView, snapshot: Snapshot, booked: Sequence[ConsumerBookings]
) -> Iterator[Finding]:
    """Nova's servers that have no allocations, or have them elsewhere."""
    taken = {one.consumer.uuid: one.allocated for one in booked}
    known = hypervisor_rows(snapshot, nova.hosts)
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
        roots = {int(snapshot.root[row]) for row in rows}
        hosts = sorted(snapshot.names[row] for row in roots)
        at = known.get(str(server.host))
        there = server.host in hosts if at is None else at in roots
        if not there and not server.moving:
            yield Finding(
                FindingKind.MISPLACED,
                server.uuid,
                f"{server.name} ({server.status}) is on {server.host},"
                f" allocations are on {', '.join(hosts)}",
            )


def find_claims(store: Store, nova: NovaView) -> Iterator[Finding]:
    """Claims that are active for servers that Nova does not have."""
    for decision in _decisions(store):
        for claim in store.claims(decision_id=decision.id):
            server = claim.server_id
            if claim.kind not in OF_NOVA:
                continue
            if claim.state is not ClaimState.ACTIVE or server is None or server in nova.servers:
                continue
            if claim.updated_at <= nova.taken_at - GRACE:
                told = f"{claim.member} of ensemble {claim.ensemble_id}: no server {server}"
                yield Finding(FindingKind.CLAIMED, claim.id, told)


def find_members(store: Store, nova: NovaView, snapshot: Snapshot) -> Iterator[Finding]:
    """Members whose servers Nova does not have, and which have no place."""
    for ensemble in every_ensemble(store):
        if ensemble.updated_at > nova.taken_at - GRACE:
            continue
        for member in ensemble.members:
            server = member.server_id
            if server is None or server in nova.servers or bookings_of(snapshot, server):
                continue
            told = f"{member.name} of ensemble {ensemble.name}: no server {server}, and no place"
            yield Finding(FindingKind.VACANT, ensemble.id, told)


def compare_services(nova: NovaView, snapshot: Snapshot) -> Iterator[Finding]:
    """Hosts whose compute services are disabled or down, and that are used nevertheless."""
    rows = hypervisor_rows(snapshot, nova.hosts)
    for host in nova.hosts:
        row = rows.get(host.name)
        if row is None:
            continue
        uuid = snapshot.uuids[row]
        if not host.enabled and DISABLED_TRAIT not in snapshot.traits_of(row):
            told = f"{host.name}: its compute service is disabled, but it lacks {DISABLED_TRAIT}"
            yield Finding(FindingKind.UNMARKED, uuid, told)
        known = host_states(snapshot).state(row) is HostState.DOWN
        waiting = set() if host.up or known else waiting_on(snapshot, row)
        if waiting:
            told = f"{host.name}: its compute service is down, and {counted(len(waiting), 'place')}"
            yield Finding(FindingKind.DOWN, uuid, f"{told} is held, claimed or leased there")


def waiting_on(snapshot: Snapshot, root: int) -> set[str]:
    """Consumers with a place on a host and no server in it yet."""
    return {
        one.consumer
        for below in snapshot.tree(root).tolist()
        for one in snapshot.bookings_of(below)
        if one.state is not BookingState.ALLOCATED
    }


def find_closed(snapshot: Snapshot) -> Iterator[Finding]:
    """Hosts that are not in service, where servers are to have places.

    One that is away may have places from its return on.
    """
    states = host_states(snapshot)
    for row in snapshot.hosts[~states.in_service[snapshot.hosts]].tolist():
        waiting = waiting_on(snapshot, row)
        if not states.lasting[row]:
            now = Period(snapshot.taken_at, snapshot.taken_at + 1)
            waiting &= {
                consumer
                for below in snapshot.tree(row).tolist()
                for consumer in snapshot.consumers_in(below, now)
            }
        if waiting:
            why = ", ".join(one.why.value for one in closings(snapshot, row))
            told = f"{snapshot.names[row]} is {states.state(row)} ({why}), and"
            places = counted(len(waiting), "place")
            yield Finding(
                FindingKind.CLOSED,
                snapshot.uuids[row],
                f"{told} {places} is held, claimed or leased there",
            )


def find_unfiltered(nova: NovaView) -> Iterator[Finding]:
    """Paths of nova-api without the filter for hints."""
    for url in nova.unfiltered:
        told = "the hint `moorage` is not read here: servers that name a held place boot anywhere"
        yield Finding(FindingKind.UNFILTERED, url, told)


def _decisions(store: Store) -> Iterator[Decision]:
    page = Page()
    while some := store.decisions(project_id=None, page=page):
        yield from some
        page = Page(marker=some[-1].id)
