"""Candidates of queries for tickets and reservations: the hosts of places that nobody has claimed.

The server's flavor requests one unit of a ticket's or reservation's class. No stored inventory has
that class: the candidates of a query for it are the hosts of unclaimed places, each searched with
the room of one such place given back. For whole hosts of a lease see `lease_hosts`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.errors import NotFound, WrongState
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.state.bounded_view import with_period
from moorage.usecases.claims.presented import without_consumer
from moorage.usecases.claims.stay_terms import with_virtual_classes
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.tickets.lease_hosts import (
    admitted_candidates,
    is_of_whole_hosts,
    with_admitted,
)
from moorage.usecases.tickets.places import (
    is_ticket,
    place_holders,
    presented_reservation,
    ticket_places,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.ensembles import Member
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.resources import ResourceClass
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import ProviderState, Snapshot
    from moorage.usecases.shared.candidate_search import CandidateRequest, CandidateSearch
    from moorage.usecases.tickets.places import PlaceHolder, TicketPlaces


def without_spent_tickets(asked: CandidateRequest) -> CandidateRequest:
    """The request without the classes of tickets whose decisions are not held any more.

    Nova asks for them when it moves a server that was created with a ticket: it gets the answer of
    the same flavor without its ticket. A group of nothing else is left out. If the request presents
    a claim, that claim's place is the only one, and it has no use for any ticket.
    """
    query = asked.query
    declared = query.virtual_terms
    if declared is None or not any(map(is_ticket, declared.tickets)):
        return asked
    held = () if asked.presented is not None else place_holders(asked.store, declared.tickets)
    spent = {name for name in declared.tickets if is_ticket(name) and name not in held}
    if not spent:
        return asked
    groups = (
        replace(one, resources={n: x for n, x in one.resources.items() if n not in spent})
        if spent & one.resources.keys()
        else one
        for one in query.groups
    )
    kept = tuple(
        after
        for before, after in zip(query.groups, groups, strict=True)
        if after.resources or not before.resources
    )
    return replace(asked, query=replace(query, groups=kept)) if kept else asked


def with_presented_reservation(asked: CandidateRequest) -> CandidateRequest:
    """The request with the class of the reservation that it presents.

    Candidates then have the class, as if the flavor had, and Nova writes it with the allocations.
    """
    query = asked.query
    name = presented_reservation(asked.store, asked.named)
    if name is None:
        return asked
    bare = next((one for one in query.groups if not one.suffix), RequestGroup(suffix=""))
    named = replace(bare, resources={**bare.resources, name: 1})
    groups = (named, *(one for one in query.groups if one.suffix))
    return replace(asked, query=replace(query, groups=groups))


def on_ticket_places(search: CandidateSearch) -> CandidateSearch:
    """The search for a class that stands for places; the same if no class of the query does.

    Its snapshot has an inventory of the class on each host: one unit per place. Candidates are on
    hosts of unclaimed places only, use every provider of such a place, and may use the room of one
    such place besides what is free until the place's end. There are none of a lease that is not
    active.
    """
    store, snapshot, query = search.asked.store, search.snapshot, search.query
    tickets = {} if query.virtual_terms is None else query.virtual_terms.tickets
    held = place_holders(store, tickets)
    if not held:
        return search
    (name, holder), *others = held.items()
    if others or tickets[name] != 1:
        return replace(search, kept=())
    try:
        holder.check_open(snapshot.taken_at)
        found = ticket_places(store, snapshot, holder)
    except (NotFound, WrongState):
        return replace(search, kept=())
    if is_of_whole_hosts(holder, found):
        admitted = with_admitted(snapshot, holder, found)
        on_hosts = admitted_candidates(admitted, query, holder, found)
        return replace(search, snapshot=admitted, kept=on_hosts)
    shown = snapshot.with_states(_stocked(snapshot, name, found))
    return replace(search, snapshot=shown, kept=_candidates(shown, query, holder, found))


def _stocked(
    snapshot: Snapshot, name: ResourceClass, found: TicketPlaces
) -> Iterator[ProviderState]:
    """Provider states of the hosts with an inventory of the class: one unit per place.

    Claimed places count, as used units.
    """
    free = Counter(place.host for place in found.unclaimed.values())
    used: dict[str, list[str]] = {}
    for server in found.servers:
        for row in snapshot.rows_of_consumer(server):
            host = snapshot.uuids[int(snapshot.root[row])]
            if server not in used.setdefault(host, []):
                used[host].append(server)
    for host in sorted(free):
        state = snapshot.state(snapshot.row_of[host])
        there = used.get(host, [])
        own = [one for one in state.provider.inventories if one.resource_class != name]
        stock = Inventory(name, free[host] + len(there))
        taken = (
            Booking(server, host, {name: 1}, Period(0), BookingState.ALLOCATED) for server in there
        )
        yield replace(
            state,
            provider=replace(state.provider, inventories=(*own, stock)),
            bookings=(*state.bookings, *taken),
        )


def _candidates(
    snapshot: Snapshot, query: CandidateQuery, holder: PlaceHolder, found: TicketPlaces
) -> Iterator[Candidate]:
    classes = query.classes - {holder.name}
    shown: set[tuple[object, ...]] = set()
    for places in _rounds(found.unclaimed):
        free = snapshot.with_states(
            without_consumer(snapshot.state(snapshot.row_of[uuid]), member.uuid)
            for member, place in places
            for uuid in place.allocations
        )
        until = max(_end(snapshot, holder, member) for member, _ in places)
        if until < FOREVER:
            free = with_period(free, classes, Period(snapshot.taken_at, until))
        free = with_virtual_classes(free, query)
        used = frozenset(
            (snapshot.row_of[place.host], snapshot.row_of[uuid])
            for _, place in places
            for uuid in place.allocations
        )
        anchors = frozenset(snapshot.row_of[place.host] for _, place in places)
        for one in candidates(free, replace(query, anchors=anchors, used=used)):
            key = (one.mappings, tuple((row, tuple(of.items())) for row, of in one.allocations))
            if key not in shown:
                shown.add(key)
                yield one


def _end(snapshot: Snapshot, holder: PlaceHolder, member: Member) -> Instant:
    """The end of a server in the member's place."""
    if holder.until is not None:
        return holder.until
    return bookings_of(snapshot, member.uuid)[0].period.end


def _rounds(unclaimed: Mapping[Member, Place]) -> Iterator[list[tuple[Member, Place]]]:
    """Groups of unclaimed places; no two places of a group have a provider in common.

    The room of all places of a group is given back in one search. Of places with equal amounts on
    the same providers only the first is used.
    """
    rounds: list[list[tuple[Member, Place]]] = []
    given: list[set[str]] = []
    alike: set[tuple[tuple[str, tuple[tuple[str, int], ...]], ...]] = set()
    for member, place in unclaimed.items():
        key = tuple(
            sorted((uuid, tuple(sorted(of.items()))) for uuid, of in place.allocations.items())
        )
        if key in alike:
            continue
        alike.add(key)
        providers = {place.host, *place.allocations}
        number = next((n for n, some in enumerate(given) if not some & providers), len(given))
        if number == len(given):
            given.append(set())
            rounds.append([])
        given[number] |= providers
        rounds[number].append((member, place))
    yield from rounds
