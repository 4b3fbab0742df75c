"""What a joint decision writes: the ensemble, the decision, its holds, and what it replaces."""

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
from moorage.usecases.joint import Ask
from moorage.usecases.leases.evict import early, warnings
from moorage.usecases.ports import Page
from moorage.usecases.standing import MemberStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Member, MemberName
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.domain.resources import Amounts
    from moorage.usecases.deciding import Answer
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.ports import Store
    from moorage.usecases.proposal import Ending, Proposal
    from moorage.usecases.standing import Standing

MEMBER_TYPE: Final = "MOORAGE_MEMBER"
"""Consumer type of a member whose place is held; Placement's wire never shows it."""

_LIVE: Final = {DecisionState.HELD, DecisionState.CONFIRMED}
_NOBODY: Final[frozenset[Any]] = frozenset()


def changes_for(
    store: Store, proposal: Proposal, decision: Decision, answer: Answer
) -> tuple[Change, ...]:
    """Everything that a decision changes, in the order it must be written.

    Raises:
        ConcurrentUpdate: a place was claimed, or given up, after the answer looked.
    """
    return (
        PutEnsemble(_placed(proposal.ensemble, decision, answer.stand), proposal.generation),
        *_supersede(store, decision, proposal, answer),
        PutDecision(decision, None),
        DropBookings(proposal.freed),
        *_displaced(store, proposal, decision, answer.look.displaced),
        *_holds(store, proposal, decision, answer),
        *proposal.also(decision),
    )


def _placed(ensemble: Ensemble, decision: Decision, stand: Standing) -> Ensemble:
    """The ensemble as decided: a member that gets a place anew is rid of the server it had.

    That server's allocations are gone; while it is named the member would be looked for there.
    """
    members = tuple(
        replace(one, server_id=None)
        if one.name in decision.places and stand.of(one.name) is MemberStatus.UNPLACED
        else one
        for one in ensemble.members
    )
    return replace(ensemble, members=members, updated_at=decision.updated_at)


def current_decision(store: Store, ensemble: Ensemble) -> Decision | None:
    """The newest decision about the ensemble, in whatever state."""
    found = store.decisions(
        project_id=ensemble.project_id, ensemble_id=ensemble.id, page=Page(limit=1)
    )
    return found[0] if found else None


def ask_as(decision: Decision) -> Ask:
    """Ask for a decision on the terms of the present one: held until the same instant, found alike.

    Its members' stay ends with that of the others, and yields as theirs does.

    One that is not held any more says nothing about how long: then the default is asked for.
    """
    return Ask(
        as_before=True,
        objective=decision.objective,
        seed=decision.solve.seed,
        until=None if decision.period.open_ended else decision.period.end,
        preemptible=decision.preemptible,
        priority=decision.priority,
    )


def member_consumer(ensemble: Ensemble, member: Member) -> Consumer:
    """The consumer of a member's hold."""
    return Consumer(
        uuid=member.uuid,
        project_id=ensemble.project_id,
        user_id=ensemble.user_id,
        type=MEMBER_TYPE,
    )


def hold_booking(
    member: Member,
    place: Place,
    decision: Decision,
    *,
    ending: Ending | None = None,
    binding: Binding = Binding.BOUND,
) -> tuple[Booking, ...]:
    """The bookings that keep a member's place for its decision, until `ending` if that is given."""
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


def ended(claim: Claim, now: Instant) -> PutClaim:
    """The end of a claim that is stored as building: it lapsed, or else it fails now."""
    lapsed = claim.state_at(now) is ClaimState.EXPIRED
    state = claim_after(claim.state, ClaimStep.LAPSE if lapsed else ClaimStep.FAIL)
    return PutClaim(replace(claim, state=state, updated_at=now), ClaimState.BUILDING.value)


def without_claims(
    store: Store,
    decision: Decision,
    over: AbstractSet[str],
    now: Instant,
    *,
    gone: AbstractSet[MemberName] = _NOBODY,
) -> Iterator[Change]:
    """What the end of some of its claims means to a decision that is not over.

    Confirmed, it is closed with its last building claim. It is written in any case: two claims
    that end at once, or one and a confirmation, so meet in the decision's generation, and the
    slower one looks again.

    Args:
        store: where its claims are.
        decision: as it was read before anything that is judged here.
        over: ids of the claims that end in the same changeset.
        now: the instant that all is judged at.
        gone: members that leave the ensemble, and so the decision.
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


def parting(
    store: Store, ensemble: Ensemble, gone: AbstractSet[MemberName], now: Instant
) -> Iterator[Change]:
    """Members leave: their building claims end, and the present decision forgets them."""
    decision = current_decision(store, ensemble)
    if decision is None:
        return
    over: set[str] = set()
    for claim in store.claims(decision_id=decision.id):
        if claim.member in gone and claim.state is ClaimState.BUILDING:
            over.add(claim.id)
            yield ended(claim, now)
    yield from without_claims(store, decision, over, now, gone=gone)


def _supersede(
    store: Store, decision: Decision, proposal: Proposal, answer: Answer
) -> Iterator[Change]:
    """End the decision before this one; its open claims go on under the new one.

    A claim that has lapsed ends here: its member may get a place anew, which the end of an old
    claim must never take away. A hold that goes on until the old one's end must not come too late.
    """
    old, stand = answer.before, answer.stand
    now = stand.at
    if old is None:
        return
    if (old.state, DecisionStep.SUPERSEDE) in DECISION_TABLE:
        state = decision_after(old.state, DecisionStep.SUPERSEDE)
        superseded = replace(old, state=state, updated_at=now)
        held = old.state_at(now) is DecisionState.HELD
        goes_on = held and decision.expires_at == old.expires_at
        yield PutDecision(superseded, old.generation, old.expires_at if goes_on else None)
    for claim in store.claims(decision_id=old.id):
        if claim.id in proposal.dropped_claims:
            continue
        if claim.state_at(now) is ClaimState.BUILDING:
            if stand.of(claim.member) is not MemberStatus.BUILDING:
                raise ConcurrentUpdate(
                    f"the place of {claim.member} was claimed meanwhile", subject=old.id
                )
            yield _moved(claim, decision)
        elif claim.state is ClaimState.BUILDING:
            yield ended(claim, now)
        elif claim.state is ClaimState.ACTIVE:
            yield _moved(claim, decision)


def _moved(claim: Claim, decision: Decision) -> PutClaim:
    """The claim under another decision of the same ensemble."""
    return PutClaim(
        replace(claim, decision_id=decision.id, updated_at=decision.updated_at), claim.state.value
    )


def _displaced(
    store: Store, proposal: Proposal, decision: Decision, displaced: tuple[Displaced, ...]
) -> Iterator[Change]:
    """Those who are in a lease's way end before it; for an offer they are not told yet."""
    for end in sorted({one.end for one in displaced}):
        who = frozenset(one.consumer for one in displaced if one.end == end)
        yield EndBookings(who, end, decision.lease_id)
    if proposal.promise is None or not proposal.promise.offered:
        yield from warnings(store, displaced, decision)


def _lapsed(store: Store, answer: Answer) -> frozenset[MemberName]:
    """Members whose claims have lapsed, and are not written down as lapsed yet."""
    if answer.before is None:
        return frozenset()
    return frozenset(
        claim.member
        for claim in store.claims(decision_id=answer.before.id)
        if claim.state is ClaimState.BUILDING
        and claim.state_at(answer.stand.at) is not ClaimState.BUILDING
    )


def _holds(
    store: Store, proposal: Proposal, decision: Decision, answer: Answer
) -> Iterator[Change]:
    """Hold what is placed now, and what was held before and stays."""
    ensemble, look = proposal.ensemble, answer.look
    lapsed = _lapsed(store, answer)
    fixed = answer.found.built.request.fixed
    binding = Binding.BOUND if proposal.promise is None else proposal.promise.binding
    for member in ensemble.members:
        name = member.name
        if name in look.staying:
            stays = look.staying[name]
            if name in lapsed:
                # Only a lease's place is there still: nobody is building there any more.
                stays = tuple(replace(one, state=BookingState.RESERVED) for one in stays)
            yield from _stays(ensemble, member, stays, answer.stand.bookings[name], decision)
        elif name in decision.places and name not in fixed:
            ending = look.endings.get(name)
            place = decision.places[name]
            bookings = hold_booking(member, place, decision, ending=ending, binding=binding)
            if name in proposal.taken:
                lapses_at = decision.created_at + proposal.taken[name]
                bookings = claimed_bookings(bookings, lapses_at)
            yield PutBookings(member_consumer(ensemble, member), bookings)
            yield from early(store, ensemble, name, bookings, decision.created_at)


def _stays(
    ensemble: Ensemble,
    member: Member,
    bookings: tuple[Booking, ...],
    before: tuple[Booking, ...],
    decision: Decision,
) -> Iterator[Change]:
    """What a member that stays put gets: the new decision's name, hold and end."""
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
    """When what stays put vanishes under another decision."""
    if booking.state is not BookingState.CLAIMED:
        return decision.expires_at
    # A claim has an expiry of its own; a lease keeps the place beyond it.
    own = booking.lapses_at
    return own if decision.lease_id is None else max(own, decision.expires_at)


def claimed_bookings(
    held: Iterable[Booking], lapses_at: Instant, amounts: Mapping[str, Amounts] | None = None
) -> tuple[Booking, ...]:
    """The bookings that keep a claimed place: for as long as it was held, on the same terms.

    A lease's place does not vanish with its claim: the lease has it again (see
    `leases.unclaimed`), and in between nobody else may get it.

    `amounts` (per provider) are what is claimed of it; None: all.
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
