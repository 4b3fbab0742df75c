"""The changes of a decision: the ensemble, the decision, its holds, and what it replaces."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import (
    DropBookings,
    EndBookings,
    PutBookings,
    PutClaim,
    PutDecision,
    PutEnsemble,
)
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import (
    DECISION_TABLE,
    Claim,
    ClaimState,
    ClaimStep,
    DecisionState,
    DecisionStep,
    claim_after,
    decision_after,
)
from moorage.domain.errors import ConcurrentUpdate
from moorage.domain.period import Period
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.solution import DecisionOptions, HoldEnd
from moorage.usecases.paging import Page
from moorage.usecases.shared.ticket_flavors import flavor_creation, flavor_deletion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from moorage.domain.changes import Change
    from moorage.domain.decision_records import DecisionRecord
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.resources import Amounts
    from moorage.usecases.decide.decision import DecisionBasis
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import ForcedEnd, Proposal
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment

MEMBER_TYPE: Final = "MOORAGE_MEMBER"
"""Consumer type of a member whose place is held; Placement's wire never shows it."""

_LIVE: Final = {DecisionState.HELD, DecisionState.CONFIRMED}
_NOBODY: Final[frozenset[Any]] = frozenset()


def decision_changes(
    env: Environment,
    proposal: Proposal,
    decision: Decision,
    answer: DecisionBasis,
    record: DecisionRecord,
) -> tuple[Change, ...]:
    """All changes of a decision, in the order in which they must be written.

    Raises:
        ConcurrentUpdate: a place was claimed after the snapshot.
    """
    store, concessions = env.store, answer.result.concessions
    more = proposal.further_changes(decision)
    claims = tuple(one.claim for one in more if isinstance(one, PutClaim))
    return (
        *(change for one in concessions for change in one.frees(env, decision.updated_at)),
        PutEnsemble(
            _placed(proposal.ensemble, decision, answer.member_places),
            proposal.generation,
            proposal.before,
        ),
        *_supersede(store, decision, answer, frozenset(one.id for one in claims)),
        PutDecision(decision, None, record=record),
        DropBookings(proposal.freed),
        *(change for one in concessions for change in one.ends(env, proposal, decision)),
        *_holds(store, proposal, decision, answer, claims),
        *_flavor_changes(env, proposal, decision, answer),
        *more,
    )


def _flavor_changes(
    env: Environment, proposal: Proposal, decision: Decision, answer: DecisionBasis
) -> Iterator[Change]:
    """The flavors of what is held now, and of the former decision's ticket if it is over."""
    old, now = answer.before, answer.member_places.at
    yield from flavor_creation(env, decision, proposal.ensemble)
    if old is not None and old.state_at(now) is DecisionState.HELD:
        goes_on = decision.state is DecisionState.HELD and decision.ticket == old.ticket
        if not goes_on:
            yield from flavor_deletion(env, old, proposal.ensemble, now)


def _placed(ensemble: Ensemble, decision: Decision, member_places: MemberPlaces) -> Ensemble:
    """The ensemble with the choices as which members were placed.

    Members that were unplaced and get a place now lose their server: it has no allocations any
    more, and while the member names it, its place is read there.
    """
    members: list[Member] = []
    for one in ensemble.members:
        place = decision.places.get(one.name)
        if place is not None:
            unplaced = member_places.of(one.name) is MemberStatus.UNPLACED
            server = None if unplaced else one.server_id
            if (server, place.choice) != (one.server_id, one.choice):
                members.append(replace(one, server_id=server, choice=place.choice))
                continue
        members.append(one)
    return replace(ensemble, members=tuple(members), updated_at=decision.updated_at)


def with_server(ensemble: Ensemble, member: MemberName, server_id: str | None) -> Ensemble:
    """The ensemble with this server, or none, as the member's."""
    members = tuple(
        replace(one, server_id=server_id) if one.name == member else one for one in ensemble.members
    )
    return replace(ensemble, members=members)


def current_decision(store: Store, ensemble: Ensemble) -> Decision | None:
    """The newest decision about the ensemble, in any state."""
    found = store.decisions(
        project_id=ensemble.project_id, ensemble_id=ensemble.id, page=Page(limit=1)
    )
    return found[0] if found else None


def options_like(decision: Decision) -> DecisionOptions:
    """Options for a decision that continues the present one.

    The end of the hold, the objective, the seed, and the stay's end, preemptibility and priority
    are the same. If the present decision is no longer held, the default hold applies.
    """
    return DecisionOptions(
        as_before=True,
        objective=decision.objective,
        first_choices=decision.first_choices,
        seed=decision.solve.seed,
        until=None if decision.period.open_ended else decision.period.end,
        preemptible=decision.preemptible,
        priority=decision.priority,
    )


def options_for_joining(
    options: DecisionOptions, decision: Decision, now: Instant
) -> DecisionOptions:
    """Options for placing members that are added to a decided ensemble.

    Unless `options` have them, the hold and the stay are those of the present decision.
    """
    options = replace(options, hold_end=HoldEnd.PRESENT)
    live = decision.state_at(now) in (*_LIVE, DecisionState.CLOSED) and decision.period.end > now
    if not live or options.until is not None or options.preemptible:
        return options
    return replace(
        options,
        until=None if decision.period.open_ended else decision.period.end,
        preemptible=decision.preemptible,
        priority=decision.priority,
        any_priority=True,
    )


def member_consumer(ensemble: Ensemble, member: Member) -> Consumer:
    """The consumer of a member's hold."""
    return Consumer(
        uuid=member.uuid,
        project_id=ensemble.project_of(member.name.role),
        user_id=ensemble.user_of(member.name.role),
        type=MEMBER_TYPE,
    )


def hold_bookings(
    member: Member,
    place: Place,
    decision: Decision,
    *,
    ending: ForcedEnd | None = None,
    binding: Binding = Binding.BOUND,
) -> tuple[Booking, ...]:
    """The bookings that hold a member's place for a decision; `ending` is its early end."""
    promised = decision.lease_id is not None
    stay = decision.period
    return tuple(
        Booking(
            consumer=member.uuid,
            provider=provider,
            amounts=amounts,
            period=stay if ending is None else Period(stay.start, ending.end),
            state=BookingState.RESERVED if promised else BookingState.HELD,
            lapses_at=decision.expires_at,
            binding=binding,
            decision=decision.id,
            preemptible=decision.preemptible,
            yields_to=None if ending is None else ending.yields_to,
            declared_end=None if ending is None else stay.end,
            priority=decision.priority,
        )
        for provider, amounts in place.allocations.items()
    )


def step_decision(decision: Decision, step: DecisionStep, now: Instant) -> PutDecision:
    """The change by which a decision takes a step.

    Raises:
        WrongState: its state does not allow the step.
    """
    state = decision_after(decision.state, step)
    return PutDecision(replace(decision, state=state, updated_at=now), decision.generation)


def end_claim(claim: Claim, now: Instant) -> PutClaim:
    """The change that ends a building claim: as expired if it lapsed, else as failed."""
    lapsed = claim.state_at(now) is ClaimState.EXPIRED
    state = claim_after(claim.state, ClaimStep.LAPSE if lapsed else ClaimStep.FAIL)
    return PutClaim(replace(claim, state=state, updated_at=now), ClaimState.BUILDING.value)


def decision_after_claims(
    store: Store,
    decision: Decision,
    over: AbstractSet[str],
    now: Instant,
    *,
    gone: AbstractSet[MemberName] = _NOBODY,
) -> Iterator[Change]:
    """The change to a decision some of whose claims end: a confirmed one closes with the last.

    The decision is written in any case, so that claims that end at the same time, or a claim and a
    confirmation, conflict on its generation, and one of them is retried.

    The decision was read before the claims. `over` are ids of the claims that end in the same
    changeset; `gone` are members that leave the ensemble, so their places leave the decision.
    """
    if decision.state_at(now) not in _LIVE:
        return
    building = any(
        one.state_at(now) is ClaimState.BUILDING and one.id not in over
        for one in store.claims(decision_id=decision.id)
    )
    state = decision.state
    if state is DecisionState.CONFIRMED and not building:
        state = decision_after(state, DecisionStep.CLOSE)
    places = {name: place for name, place in decision.places.items() if name not in gone}
    yield PutDecision(
        replace(decision, state=state, places=MappingProxyType(places), updated_at=now),
        decision.generation,
    )


def member_departure_changes(
    store: Store, ensemble: Ensemble, gone: AbstractSet[MemberName], now: Instant
) -> Iterator[Change]:
    """The changes when members leave: building claims end, the decision drops their places."""
    decision = current_decision(store, ensemble)
    if decision is None:
        return
    over: set[str] = set()
    for claim in store.claims(decision_id=decision.id):
        if claim.member in gone and claim.state is ClaimState.BUILDING:
            over.add(claim.id)
            yield end_claim(claim, now)
    yield from decision_after_claims(store, decision, over, now, gone=gone)


def _supersede(
    store: Store, decision: Decision, answer: DecisionBasis, written: AbstractSet[str]
) -> Iterator[Change]:
    """End the former decision, and move its building and active claims to the new one.

    Claims in `written` are changed elsewhere in the changeset. A lapsed claim is ended here: its
    member may get a new place, which a later end of the old claim must not free. If the new hold
    has the same end as the old one, the commit requires that the old one has not lapsed.
    """
    old, member_places = answer.before, answer.member_places
    now = member_places.at
    if old is None:
        return
    if (old.state, DecisionStep.SUPERSEDE) in DECISION_TABLE:
        state = decision_after(old.state, DecisionStep.SUPERSEDE)
        superseded = replace(old, state=state, updated_at=now)
        held = old.state_at(now) is DecisionState.HELD
        goes_on = held and decision.expires_at == old.expires_at
        yield PutDecision(superseded, old.generation, old.expires_at if goes_on else None)
    for claim in store.claims(decision_id=old.id):
        if claim.id in written:
            continue
        if claim.state_at(now) is ClaimState.BUILDING:
            if member_places.of(claim.member) is not MemberStatus.BUILDING:
                raise ConcurrentUpdate(
                    f"the place of {claim.member} was claimed meanwhile", subject=old.id
                )
            yield _moved(claim, decision)
        elif claim.state is ClaimState.BUILDING:
            yield end_claim(claim, now)
        elif claim.state is ClaimState.ACTIVE:
            yield _moved(claim, decision)


def _moved(claim: Claim, decision: Decision) -> PutClaim:
    """The claim moved to another decision of the same ensemble."""
    return PutClaim(
        replace(claim, decision_id=decision.id, updated_at=decision.updated_at), claim.state.value
    )


def _lapsed(store: Store, answer: DecisionBasis) -> frozenset[MemberName]:
    """Members whose claims have lapsed, but are still stored as building."""
    if answer.before is None:
        return frozenset()
    return frozenset(
        claim.member
        for claim in store.claims(decision_id=answer.before.id)
        if claim.state is ClaimState.BUILDING
        and claim.state_at(answer.member_places.at) is not ClaimState.BUILDING
    )


def _holds(
    store: Store,
    proposal: Proposal,
    decision: Decision,
    answer: DecisionBasis,
    claims: Iterable[Claim],
) -> Iterator[Change]:
    """The changes that write the bookings of newly placed members and of fixed, held ones."""
    ensemble, result = proposal.ensemble, answer.result
    claimed = {one.member: one.lapses_at for one in claims if one.state is ClaimState.BUILDING}
    lapsed = _lapsed(store, answer)
    fixed = answer.placement.built.request.fixed
    binding = Binding.BOUND if proposal.promise is None else proposal.promise.binding
    for member in ensemble.members:
        name = member.name
        if name in result.staying:
            stays = result.staying[name]
            if name in lapsed:
                # Only a lease's place outlives its claim; no server is being built there any more.
                stays = tuple(replace(one, state=BookingState.RESERVED) for one in stays)
            yield from _stays(
                ensemble, member, stays, answer.member_places.bookings[name], decision
            )
        elif name in decision.places and name not in fixed:
            ending = result.endings.get(name)
            place = decision.places[name]
            bookings = hold_bookings(member, place, decision, ending=ending, binding=binding)
            if name in claimed:
                bookings = claimed_bookings(bookings, claimed[name])
            yield PutBookings(member_consumer(ensemble, member), bookings)


def _stays(
    ensemble: Ensemble,
    member: Member,
    bookings: tuple[Booking, ...],
    before: tuple[Booking, ...],
    decision: Decision,
) -> Iterator[Change]:
    """Rewrite the bookings of a staying member with the new decision's id, hold and end."""
    state = bookings[0].state
    if state is BookingState.ALLOCATED:
        if bookings != before:
            consumers = frozenset({bookings[0].consumer})
            yield EndBookings(consumers, bookings[0].period.end)
        return
    kept = tuple(
        replace(
            one,
            decision=decision.id,
            lapses_at=_lapses_at(one, decision),
            priority=decision.priority,
        )
        for one in bookings
    )
    yield PutBookings(member_consumer(ensemble, member), kept)


def _lapses_at(booking: Booking, decision: Decision) -> Instant:
    """When a staying booking lapses under the new decision."""
    if booking.state is not BookingState.CLAIMED:
        return decision.expires_at
    # A claim has an expiry of its own; a lease keeps the place beyond it.
    own = booking.lapses_at
    return own if decision.lease_id is None else max(own, decision.expires_at)


def claimed_bookings(
    held: Iterable[Booking], lapses_at: Instant, amounts: Mapping[str, Amounts] | None = None
) -> tuple[Booking, ...]:
    """The bookings of a claimed place: the held ones in state claimed, lapsing with the claim.

    A lease's place does not lapse before the lease's own hold: when the claim ends, the place goes
    back to the lease (see `return_unclaimed_place`).

    `amounts` (by provider) are the claimed part of the place; None: all of it.
    """
    return tuple(
        replace(
            one,
            amounts=one.amounts if amounts is None else amounts[one.provider],
            state=BookingState.CLAIMED,
            lapses_at=(
                max(lapses_at, one.lapses_at) if one.state is BookingState.RESERVED else lapses_at
            ),
            binding=Binding.BOUND,
        )
        for one in held
        if amounts is None or one.provider in amounts
    )
