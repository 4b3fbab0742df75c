"""Writes that take places by the class of a ticket or reservation.

The candidates of a flavor with such a class are the hosts of unclaimed places (`candidates`).
Writing one replaces the place's booking by the server's allocation, in one changeset. For whole
hosts of a lease see `lease_hosts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

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
    DuplicateName,
    HoldExpired,
    InvalidDescription,
    NotFound,
    WrongState,
)
from moorage.domain.period import FOREVER
from moorage.domain.refusal_commands import to_see_own
from moorage.domain.resources import total
from moorage.domain.virtual_classes import declared_terms
from moorage.usecases.claims.outcome import eviction_warning
from moorage.usecases.claims.place_returns import commit_with_returns
from moorage.usecases.claims.presented import ATTEMPTS, presented_claim, staying
from moorage.usecases.claims.stay_terms import ending_in_time
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.writes import with_server
from moorage.usecases.relocation.lease_health import without_place
from moorage.usecases.tickets.lease_hosts import admitted_write, is_of_whole_hosts
from moorage.usecases.tickets.places import (
    is_ticket,
    place_holder,
    place_holders,
    ticket_places,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change, Committed, ReplaceAllocations
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.errors import MoorageError
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.resources import ResourceClass
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Ids, Store
    from moorage.usecases.shared.allocation_write import AllocationWrite, Rest
    from moorage.usecases.tickets.places import PlaceHolder, TicketPlaces

ONE_PLACE: Final = "a server takes one place of one reservation or ticket"


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


def take_by_ticket(asked: AllocationWrite, rest: Rest) -> Committed:
    """Let writes take places by their classes; those that take none go on without tickets.

    A server that is a member of another ensemble is written like any other, as with a presented
    claim.

    Raises:
        InvalidDescription: a write has nothing but tickets that mean nothing.
        WrongState: a write cannot get a place; the message has the reason.
        ConcurrentUpdate: other servers kept taking the places.
    """
    presents = presented_claim(asked.store, asked.request_id) is not None
    writes, tickets = _redeemed(asked, presents=presents)
    if any(tickets):
        try:
            return _committed(asked, writes, tickets)
        except DuplicateName:
            if not all(is_ticket(name) for units in tickets for name in units):
                raise
            writes, _ = _redeemed(asked, presents=True)
    return rest(replace(asked, writes=writes))


def _committed(
    asked: AllocationWrite,
    writes: Sequence[ReplaceAllocations],
    tickets: Sequence[Mapping[ResourceClass, int]],
) -> Committed:
    """Commit writes of which some take places by the class of a ticket or reservation."""
    store, notice = asked.store, asked.settings.lifetimes.notice
    conflict: MoorageError | None = None
    for changeset in _taking(store, asked.ids, writes, tickets):
        try:
            return commit_with_returns(store, ending_in_time(store, changeset, notice))
        except ConsumerConflict:
            raise
        except (ConcurrentUpdate, HoldExpired, NotFound) as error:
            conflict = error
    raise ConcurrentUpdate(
        "other servers kept taking these places; retry", subject="ensemble"
    ) from conflict


def _redeemed(
    asked: AllocationWrite, *, presents: bool
) -> tuple[tuple[ReplaceAllocations, ...], list[Mapping[ResourceClass, int]]]:
    """The writes, and for each the classes by which it takes a place, with their units.

    Tickets that mean nothing are taken out of the writes: those of decisions that are not held any
    more, and those of servers that have their place already and are moved or resized, and all of
    them if the request `presents` a claim.
    """
    store = asked.store
    found: list[ReplaceAllocations] = []
    taking: list[Mapping[ResourceClass, int]] = []
    for write in asked.writes:
        declared = declared_terms(write.allocations.values())
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


def _taking(
    store: Store,
    ids: Ids,
    writes: Sequence[ReplaceAllocations],
    tickets: Sequence[Mapping[ResourceClass, int]],
) -> Iterator[Changeset]:
    """Changesets in which each write for a class that stands for places takes one of them.

    Each is computed from a new snapshot; the next one is for when a commit conflicts. In it the
    hold is dropped, the allocations are written until the place's end, the member gets the server,
    and an active claim is created. Writes without such a class are included unchanged.

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
        raise holder.no_place_left(now, found)
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
