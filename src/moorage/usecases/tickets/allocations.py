"""Ticket classes in Placement: candidates, and a place's exchange for a server's allocation.

The server's flavor requests one unit of a ticket's or reservation's class. No stored inventory has
that class: the candidates of a query for it are the hosts of unclaimed places, each searched with
the room of one such place given back. Writing such a candidate replaces the place's booking by the
server's allocation, in one changeset. For whole hosts of a lease see `lease_hosts`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Changeset,
    PutClaim,
    PutDecision,
    PutEnsemble,
    Stay,
    TakeHold,
)
from moorage.domain.decisions import Claim, ClaimState
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    HoldExpired,
    InvalidDescription,
    NotFound,
    WrongState,
)
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.domain.refusal_commands import to_see_own
from moorage.domain.requests import RequestGroup
from moorage.domain.resources import total
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.state.bounded_view import with_period
from moorage.usecases.claims.outcome import eviction_warning
from moorage.usecases.claims.presented import ATTEMPTS, staying, without_consumer
from moorage.usecases.claims.stay_terms import with_virtual_classes
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.writes import with_server
from moorage.usecases.relocation.lease_health import without_place
from moorage.usecases.tickets.lease_hosts import (
    admitted_candidates,
    admitted_write,
    is_of_whole_hosts,
    with_admitted,
)
from moorage.usecases.tickets.places import (
    is_ticket,
    place_holder,
    place_holders,
    presented_reservation,
    ticket_places,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from moorage.domain.changes import Change, ReplaceAllocations
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.resources import ResourceClass
    from moorage.domain.virtual_classes import DeclaredTerms
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import ProviderState, Snapshot
    from moorage.usecases.ports import Ids, Store
    from moorage.usecases.tickets.places import PlaceHolder, TicketPlaces

ONE_PLACE: Final = "a server takes one place of one reservation or ticket"


# --- candidates -----------------------------------------------------------------------------


def without_spent_tickets(
    store: Store, query: CandidateQuery, *, presents: bool = False
) -> CandidateQuery:
    """The query without the classes of tickets whose decisions are not held any more.

    Nova asks for them when it moves a server that was created with a ticket: it gets the answer of
    the same flavor without its ticket. A group of nothing else is left out. If the request presents
    a claim, that claim's place is the only one, and it has no use for any ticket.
    """
    declared = query.virtual_terms
    if declared is None or not any(map(is_ticket, declared.tickets)):
        return query
    held = () if presents else place_holders(store, declared.tickets)
    spent = {name for name in declared.tickets if is_ticket(name) and name not in held}
    if not spent:
        return query
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
    return replace(query, groups=kept) if kept else query


def with_presented_reservation(
    store: Store, query: CandidateQuery, request_id: str | None
) -> CandidateQuery:
    """The query with the class of the reservation that its request presents, if it has no other.

    Candidates then have the class, as if the flavor had, and Nova writes it with the allocations.
    """
    if query.virtual_terms is not None and query.virtual_terms.tickets:
        return query
    name = presented_reservation(store, request_id)
    if name is None:
        return query
    bare = next((one for one in query.groups if not one.suffix), RequestGroup(suffix=""))
    named = replace(bare, resources={**bare.resources, name: 1})
    return replace(query, groups=(named, *(one for one in query.groups if one.suffix)))


@dataclass(frozen=True, slots=True)
class TicketCandidates:
    """The candidates of a query for a ticket's or reservation's class."""

    snapshot: Snapshot
    """The snapshot with an inventory of the class on each host: one unit per place."""
    candidates: Iterable[Candidate]


def ticket_candidates(
    store: Store, snapshot: Snapshot, query: CandidateQuery
) -> TicketCandidates | None:
    """The candidates of a query for a class that stands for places; None if it has no such class.

    Candidates are on hosts of unclaimed places only, use every provider of such a place, and may
    use the room of one such place besides what is free until the place's end. There are none of a
    lease that is not active.
    """
    declared = query.virtual_terms
    if declared is None or not declared.tickets:
        return None
    held = place_holders(store, declared.tickets)
    if not held:
        return None
    (name, holder), *others = held.items()
    if others or declared.tickets[name] != 1:
        return TicketCandidates(snapshot, ())
    try:
        holder.check_open(snapshot.taken_at)
        found = ticket_places(store, snapshot, holder)
    except (NotFound, WrongState):
        return TicketCandidates(snapshot, ())
    if is_of_whole_hosts(holder, found):
        admitted = with_admitted(snapshot, holder, found)
        return TicketCandidates(admitted, admitted_candidates(admitted, query, holder, found))
    shown = snapshot.with_states(_stocked(snapshot, name, found))
    return TicketCandidates(shown, _candidates(shown, query, holder, found))


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


# --- writes ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _TakenPlaces:
    """The places taken so far by the writes of one request."""

    snapshot: Snapshot
    ensembles: dict[str, tuple[Ensemble, Ensemble]]
    """By id: the ensemble as stored, and as it will be written."""
    taken: set[str]
    """UUIDs of the members whose places are taken."""
    changes: list[Change]
    decisions: dict[str, tuple[Decision, Decision]] = field(default_factory=dict)
    """Held decisions by id: as stored, and as they will be written."""


def redeemed(
    store: Store,
    writes: Sequence[ReplaceAllocations],
    declarations: Sequence[DeclaredTerms | None],
    *,
    presents: bool = False,
) -> tuple[tuple[ReplaceAllocations, ...], list[Mapping[ResourceClass, int]]]:
    """The writes, and for each the classes by which it takes a place, with their units.

    Tickets that mean nothing are taken out of the writes: those of decisions that are not held any
    more, and those of servers that have their place already and are moved or resized, and all of
    them if the request `presents` a claim.

    Raises:
        InvalidDescription: such a write has nothing else.
    """
    found: list[ReplaceAllocations] = []
    taking: list[Mapping[ResourceClass, int]] = []
    for write, declared in zip(writes, declarations, strict=True):
        units = {} if declared is None else declared.tickets
        held = {
            name: holder
            for name, holder in place_holders(store, units).items()
            if holder.lease is not None or not (presents or _has_place(store, write))
        }
        found.append(_ordinary(write, {n for n in units if is_ticket(n) and n not in held}))
        taking.append({name: units[name] for name in held})
    return tuple(found), taking


def _has_place(store: Store, write: ReplaceAllocations) -> bool:
    """Whether the write's consumer has the place of a decision, of any ensemble."""
    there = store.bookings(consumer=write.consumer.uuid)
    return any(one.decision is not None for _, one in there)


def take_places(
    store: Store,
    ids: Ids,
    writes: Sequence[ReplaceAllocations],
    tickets: Sequence[Mapping[ResourceClass, int]],
) -> Iterator[Changeset]:
    """Changesets in which each write for a class that stands for places takes one of them.

    Each changeset is computed from a new snapshot; the caller asks for the next one if a commit
    conflicts. In it the hold is dropped, the allocations are written until the place's end, the
    member gets the server, and an active claim is created. Writes without such a class are included
    unchanged.

    Args:
        store: the ledger.
        ids: makes the ids of claims.
        writes: requested allocations, with the units of these classes still in them.
        tickets: for each write, its classes that stand for places, with their units.

    Raises:
        WrongState: a write cannot get a place; the message has the reason.
    """
    for _ in range(ATTEMPTS):
        taking = _TakenPlaces(store.snapshot(), {}, set(), [])
        for write, classes in zip(writes, tickets, strict=True):
            if classes:
                _take(store, ids, taking, write, classes)
            else:
                taking.changes.append(write)
        yield Changeset((*taking.changes, *_rest(taking)))


def is_retryable(error: Exception) -> bool:
    """Whether a changeset of `take_places` failed by a conflict that the next one may avoid."""
    if isinstance(error, ConsumerConflict):
        return False
    return isinstance(error, (ConcurrentUpdate, HoldExpired, NotFound))


def _take(
    store: Store,
    ids: Ids,
    taking: _TakenPlaces,
    write: ReplaceAllocations,
    classes: Mapping[ResourceClass, int],
) -> None:
    if list(classes.values()) != [1]:
        raise WrongState(f"{ONE_PLACE}, not {sum(classes.values())}")
    (name,) = classes
    holder = place_holder(store, name)
    if holder is None and is_ticket(name):  # the decision is over by now
        taking.changes.append(_ordinary(write, {name}))
        return
    if holder is None:
        raise WrongState(f"no lease has {name} any more; to see leases: moorage lease list")
    snapshot, now = taking.snapshot, taking.snapshot.taken_at
    if write.consumer.project_id != holder.project_id:
        remedy = to_see_own("ensemble" if holder.lease is None else "lease")
        raise WrongState(f"{holder.words} is another project's{remedy}")
    holder.check_open(now)
    found = ticket_places(store, snapshot, holder)
    if not found.unclaimed:
        raise holder.no_place_left(now)
    if is_of_whole_hosts(holder, found):
        taking.changes.append(admitted_write(snapshot, write, holder, found))
        return
    rest = _stripped(write, {name})
    missing = without_place(snapshot, holder.decision_id)
    member, place = _chosen(holder, found, rest, missing | taking.taken)
    rest = replace(rest, allocations=rest.allocations or place.allocations)
    held = bookings_of(snapshot, member.uuid)[0]
    taking.taken.add(member.uuid)
    old, new = taking.ensembles.get(holder.ensemble_id, (found.ensemble, found.ensemble))
    taking.ensembles[holder.ensemble_id] = (old, _with_server(new, member, write, now))
    claim = _claim(ids.uuid(), holder, found, member, rest, now)
    taking.changes += [TakeHold(member.uuid), _bounded(rest, holder, held), PutClaim(claim, None)]
    if holder.decision is not None:
        decision, written = taking.decisions.get(
            holder.decision_id, (holder.decision, holder.decision)
        )
        places = {**written.places, member.name: replace(place, allocations=rest.allocations)}
        taking.decisions[decision.id] = (decision, replace(written, places=places, updated_at=now))
        if decision.preemptible:
            taking.changes += eviction_warning(store, new, claim)


def _bounded(write: ReplaceAllocations, holder: PlaceHolder, held: Booking) -> ReplaceAllocations:
    """The write with the end and the terms of the place that it takes."""
    if holder.lease is None:
        return staying(write, held)
    terms = holder.lease.terms
    stay = Stay(decision=holder.decision_id, priority=terms.priority)
    return replace(write, until=holder.until, stay=stay)


def _rest(taking: _TakenPlaces) -> Iterator[Change]:
    """The changes to ensembles, and to held decisions; concurrent ones conflict."""
    for old, new in taking.ensembles.values():
        yield PutEnsemble(new, old.generation)
    for stored, written in taking.decisions.values():
        yield PutDecision(written, stored.generation, not_after=stored.expires_at)


def _stripped(write: ReplaceAllocations, classes: AbstractSet[ResourceClass]) -> ReplaceAllocations:
    rest = {
        provider: {one: amount for one, amount in amounts.items() if one not in classes}
        for provider, amounts in write.allocations.items()
    }
    return replace(write, allocations={uuid: amounts for uuid, amounts in rest.items() if amounts})


def _ordinary(write: ReplaceAllocations, spent: AbstractSet[ResourceClass]) -> ReplaceAllocations:
    """The write without classes that mean nothing.

    Raises:
        InvalidDescription: it has nothing else.
    """
    rest = _stripped(write, spent)
    if write.allocations and not rest.allocations:
        raise InvalidDescription(
            "the allocations have virtual resource classes only: add real ones", path="allocations"
        )
    return rest


def _chosen(
    holder: PlaceHolder, found: TicketPlaces, write: ReplaceAllocations, taken: frozenset[str]
) -> tuple[Member, Place]:
    """An unclaimed place on the write's providers, preferably with exactly the write's amounts.

    A write that has no amounts besides the class's unit gets any unclaimed place, wherever
    that unit is.
    """
    open_ = [(m, place) for m, place in found.unclaimed.items() if m.uuid not in taken]
    there = [
        (member, place)
        for member, place in open_
        if not write.allocations or place.allocations.keys() <= write.allocations.keys()
    ]
    if not there:
        where = ", ".join(sorted(write.allocations))
        raise WrongState(f"{holder.words} has no place left on {where}{holder.remedy}")
    return min(there, key=lambda one: dict(one[1].allocations) != dict(write.allocations))


def _with_server(
    ensemble: Ensemble, member: Member, write: ReplaceAllocations, now: Instant
) -> Ensemble:
    """The ensemble with the server on this member, removed from the member it was on before."""
    server = write.consumer.uuid
    for one in ensemble.members:
        if one.server_id == server:
            ensemble = with_server(ensemble, one.name, None)
    return replace(with_server(ensemble, member.name, server), updated_at=now)


def _claim(
    claim_id: str,
    holder: PlaceHolder,
    found: TicketPlaces,
    member: Member,
    write: ReplaceAllocations,
    now: Instant,
) -> Claim:
    held = total(found.unclaimed[member].allocations.values())
    requested = total(write.allocations.values())
    return Claim(
        id=claim_id,
        decision_id=holder.decision_id,
        ensemble_id=holder.ensemble_id,
        project_id=holder.project_id,
        member=member.name,
        state=ClaimState.ACTIVE,
        lapses_at=FOREVER if holder.until is None else holder.until,
        server_id=write.consumer.uuid,
        description={
            "server": {"resources": dict(requested)},
            "verdict": "matches" if requested == held else "differs",
            "diff": [],
        },
        created_at=now,
        updated_at=now,
        lease_id=None if holder.lease is None else holder.lease.id,
    )
