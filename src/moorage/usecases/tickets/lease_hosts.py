"""Whole hosts of a lease: its project's servers are admitted to them, as many as fit.

A reservation of whole hosts has a class as other reservations have, but a server with it takes no
place: it goes to one of the lease's hosts, beside other servers of the lease, and stays until the
lease ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import ReplaceAllocations, Stay
from moorage.domain.errors import WrongState
from moorage.domain.period import Period
from moorage.domain.providers import Inventory
from moorage.domain.reservables import takes_whole_host
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.state.bounded_view import with_period
from moorage.usecases.claims.stay_terms import with_virtual_classes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.tickets.places import PlaceHolder, TicketPlaces

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of providers, such as storage, that are of no host."""
UNITS: Final = 1_000_000
"""Units of the class on each host in candidates: more than servers fit there."""


def is_of_whole_hosts(holder: PlaceHolder, found: TicketPlaces) -> bool:
    """Whether the places of a class are whole hosts."""
    return takes_whole_host(found.ensemble.role(holder.role))


def with_admitted(snapshot: Snapshot, holder: PlaceHolder, found: TicketPlaces) -> Snapshot:
    """The snapshot with an inventory of the class on each host of the lease."""
    hosts = sorted({place.host for place in found.unclaimed.values()})
    states = (snapshot.state(snapshot.row_of[uuid]) for uuid in hosts)
    return snapshot.with_states(
        replace(
            one,
            provider=replace(
                one.provider,
                inventories=(*one.provider.inventories, Inventory(holder.name, UNITS)),
            ),
        )
        for one in states
    )


def admitted_candidates(
    shown: Snapshot, query: CandidateQuery, holder: PlaceHolder, found: TicketPlaces
) -> Iterator[Candidate]:
    """Candidates on the lease's hosts, with what is free there until it ends.

    `shown` is the snapshot of `with_admitted`.
    """
    free = shown
    if holder.until is not None:
        period = Period(shown.taken_at, holder.until)
        free = with_period(free, query.classes - {holder.name}, period)
    free = with_virtual_classes(free, query)
    hosts = frozenset(shown.row_of[place.host] for place in found.unclaimed.values())
    yield from candidates(free, replace(query, anchors=hosts))


def admitted_write(
    snapshot: Snapshot, write: ReplaceAllocations, holder: PlaceHolder, found: TicketPlaces
) -> ReplaceAllocations:
    """The write without the class, ending with the lease.

    Raises:
        WrongState: it is not on a host of the lease.
    """
    hosts = {place.host for place in found.unclaimed.values()}
    rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
    where = {
        snapshot.uuids[int(snapshot.root[row])]
        for row in rows
        if SHARES not in snapshot.state(row).provider.traits
    }
    if not where or not hosts.issuperset(where):
        raise WrongState(f"{holder.words} does not have this host{holder.remedy}")
    rest = {
        uuid: {name: amount for name, amount in amounts.items() if name != holder.name}
        for uuid, amounts in write.allocations.items()
    }
    priority = 0 if holder.lease is None else holder.lease.terms.priority
    return replace(
        write,
        allocations={uuid: amounts for uuid, amounts in rest.items() if amounts},
        until=holder.until,
        stay=Stay(priority=priority),
    )
