"""Servers created in a lease's places through Placement's API by an unmodified Nova.

The flavor of a reservation requests one unit of its resource class. No stored inventory has that
class: the candidates of a query for it are the hosts of unclaimed places, each searched with the
room of one such place given back. Writing such a candidate replaces the place's hold by the
server's allocation, in one changeset.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Changeset,
    PutClaim,
    PutEnsemble,
    Stay,
    TakeHold,
)
from moorage.domain.decisions import Claim, ClaimState
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    HoldExpired,
    NotFound,
    WrongState,
)
from moorage.domain.period import Period
from moorage.domain.providers import Inventory
from moorage.domain.resources import total
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.state.bounded_view import with_period
from moorage.usecases.claims.presented import ATTEMPTS, without_consumer
from moorage.usecases.claims.stay_terms import with_virtual_classes
from moorage.usecases.decide.writes import with_server
from moorage.usecases.leases.placement_reservation import leases_of_classes, reserved_places
from moorage.usecases.relocation.lease_health import without_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.domain.changes import Change, ReplaceAllocations
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.resources import ResourceClass
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import ProviderState, Snapshot
    from moorage.usecases.leases.placement_reservation import ReservedPlaces
    from moorage.usecases.ports import Ids, Store

ONE_PLACE: Final = "a server takes one place of one reservation"


# --- candidates -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReservationCandidates:
    """The candidates of a query for a reservation's resource class."""

    snapshot: Snapshot
    """The snapshot with an inventory of the class on each host: one unit per place."""
    candidates: Iterable[Candidate]


def reservation_candidates(
    store: Store, snapshot: Snapshot, query: CandidateQuery
) -> ReservationCandidates | None:
    """The candidates of a query for a reservation's class; None if the query has no such class.

    Candidates are on hosts of unclaimed places only, use every provider of such a place, and may
    use the room of one such place besides what is free until the lease's end. There are none unless
    the lease is active.
    """
    declared = query.virtual_terms
    if declared is None or not declared.reservations:
        return None
    classes = declared.reservations
    leases = leases_of_classes(store, classes)
    if not leases:
        return None
    (name, lease), *others = leases.items()
    if others or classes[name] != 1:
        return ReservationCandidates(snapshot, ())
    try:
        found = reserved_places(store, snapshot, name, lease)
        found.check_open(snapshot.taken_at)
    except (NotFound, WrongState):
        return ReservationCandidates(snapshot, ())
    shown = snapshot.with_states(_stocked(snapshot, found))
    return ReservationCandidates(shown, _candidates(shown, query, found))


def _stocked(snapshot: Snapshot, found: ReservedPlaces) -> Iterator[ProviderState]:
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
        own = [one for one in state.provider.inventories if one.resource_class != found.name]
        stock = Inventory(found.name, free[host] + len(there))
        taken = (
            Booking(server, host, {found.name: 1}, Period(0), BookingState.ALLOCATED)
            for server in there
        )
        yield replace(
            state,
            provider=replace(state.provider, inventories=(*own, stock)),
            bookings=(*state.bookings, *taken),
        )


def _candidates(
    snapshot: Snapshot, query: CandidateQuery, found: ReservedPlaces
) -> Iterator[Candidate]:
    classes = query.classes - {found.name}
    until = found.lease.terms.occupied.end
    shown: set[tuple[object, ...]] = set()
    for places in _rounds(found.unclaimed):
        free = snapshot.with_states(
            without_consumer(snapshot.state(snapshot.row_of[uuid]), member.uuid)
            for member, place in places
            for uuid in place.allocations
        )
        free = with_virtual_classes(
            with_period(free, classes, Period(snapshot.taken_at, until)), query
        )
        needed = {
            snapshot.row_of[place.host]: {snapshot.row_of[uuid] for uuid in place.allocations}
            for _, place in places
        }
        for one in candidates(free, replace(query, anchors=frozenset(needed))):
            rows = {row for row, _ in one.allocations}
            host = next(row for row, taken in one.allocations if found.name in taken)
            key = (one.mappings, tuple((row, tuple(of.items())) for row, of in one.allocations))
            if needed[host] <= rows and key not in shown:
                shown.add(key)
                yield one


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


def take_places(
    store: Store,
    ids: Ids,
    writes: Sequence[ReplaceAllocations],
    reservation_classes: Sequence[Mapping[ResourceClass, int]],
) -> Iterator[Changeset]:
    """Changesets in which each write for a reservation's class takes one of its places.

    Each changeset is computed from a new snapshot; the caller asks for the next one if a commit
    conflicts. In it the hold is dropped, the allocations are written until the lease's end, the
    member gets the server, and an active claim is created. Writes without a reservation's class are
    included unchanged.

    Args:
        store: the ledger.
        ids: makes the ids of claims.
        writes: requested allocations, with the units of reservation classes still in them.
        reservation_classes: for each write, its reservation classes with their units.

    Raises:
        WrongState: a write cannot get a place; the message has the reason.
    """
    for _ in range(ATTEMPTS):
        taking = _TakenPlaces(store.snapshot(), {}, set(), [])
        for write, classes in zip(writes, reservation_classes, strict=True):
            if classes:
                _take(store, ids, taking, write, classes)
            else:
                taking.changes.append(write)
        ensembles = (PutEnsemble(new, old.generation) for old, new in taking.ensembles.values())
        yield Changeset((*taking.changes, *ensembles))


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
    lease = leases_of_classes(store, classes).get(name)
    if lease is None:
        raise WrongState(f"no lease has {name} any more")
    snapshot, now = taking.snapshot, taking.snapshot.taken_at
    found = reserved_places(store, snapshot, name, lease)
    if write.consumer.project_id != lease.project_id:
        raise WrongState(f"reservation {found.reservation.id} is another project's")
    found.check_open(now)
    rest = _stripped(write, name)
    missing = without_place(snapshot, lease.decision_id)
    member, place = _chosen(found, rest, missing | taking.taken)
    allocations = rest.allocations or place.allocations
    taking.taken.add(member.uuid)
    old, new = taking.ensembles.get(lease.ensemble_id, (found.ensemble, found.ensemble))
    taking.ensembles[lease.ensemble_id] = (old, _with_server(new, member, write, now))
    taking.changes += [
        TakeHold(member.uuid),
        replace(
            rest,
            allocations=allocations,
            until=lease.terms.occupied.end,
            stay=Stay(decision=lease.decision_id, priority=lease.terms.priority),
        ),
        PutClaim(_claim(ids.uuid(), found, member, rest, now), None),
    ]


def _stripped(write: ReplaceAllocations, name: ResourceClass) -> ReplaceAllocations:
    rest = {
        provider: {one: amount for one, amount in amounts.items() if one != name}
        for provider, amounts in write.allocations.items()
    }
    return replace(write, allocations={uuid: amounts for uuid, amounts in rest.items() if amounts})


def _chosen(
    found: ReservedPlaces, write: ReplaceAllocations, taken: frozenset[str]
) -> tuple[Member, Place]:
    """An unclaimed place on the write's providers, preferably with exactly the write's amounts.

    A write that has no amounts besides the reservation's unit gets any unclaimed place, wherever
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
        raise WrongState(f"reservation {found.reservation.id} has no place left on {where}")
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
    claim_id: str, found: ReservedPlaces, member: Member, write: ReplaceAllocations, now: Instant
) -> Claim:
    lease: Lease = found.lease
    held = total(found.unclaimed[member].allocations.values())
    requested = total(write.allocations.values()) or held
    return Claim(
        id=claim_id,
        decision_id=lease.decision_id,
        ensemble_id=found.ensemble.id,
        project_id=lease.project_id,
        member=member.name,
        state=ClaimState.ACTIVE,
        lapses_at=lease.terms.occupied.end,
        server_id=write.consumer.uuid,
        description={
            "server": {"resources": dict(requested)},
            "verdict": "matches" if requested == held else "differs",
            "diff": [],
        },
        created_at=now,
        updated_at=now,
        lease_id=lease.id,
    )
