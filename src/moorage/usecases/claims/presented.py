"""Presented claims: a Placement request that names a claim uses the claim's place.

Nova's requests to Placement contain neither the server's UUID nor scheduler hints, but they pass on
the id of the request that Nova itself serves. If a server is created with
`X-Openstack-Request-Id: req-<claim id>`, its candidates are limited to the claim's place, with the
claim's bookings counted as free, and its allocations replace these bookings in one changeset.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, Committed, PutEvent, Stay, TakeHold
from moorage.domain.decisions import ClaimState
from moorage.domain.derived_events import spent_claim
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    DuplicateName,
    HoldExpired,
    NotFound,
    WrongState,
)
from moorage.domain.period import Period
from moorage.domain.refusal_commands import to_boot
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.state.bounded_view import with_period
from moorage.usecases.claims.outcome import activation_changes, active_claim, claim_and_ensemble
from moorage.usecases.claims.place_returns import commit_with_returns
from moorage.usecases.claims.stay_terms import ending_in_time, with_virtual_classes
from moorage.usecases.shared.allocation_write import named_by_request
from moorage.usecases.shared.candidate_search import PresentedClaim
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change, ReplaceAllocations
    from moorage.domain.period import Duration
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import ProviderState, Snapshot
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.allocation_write import AllocationWrite, Rest
    from moorage.usecases.shared.candidate_search import CandidateRequest, CandidateSearch

_FIRST: Final = 1
"""Generation of a consumer whose allocations were written once."""
ATTEMPTS: Final = 100
"""Commits tried while the ensemble keeps changing; each conflict means that another one succeeded.
"""


def presented_claim(store: Store, request_id: str | None) -> PresentedClaim | None:
    """The claim that a request with this `X-Openstack-Request-Id` presents.

    Returns:
        None without an id, or if the id names no building claim with a booked place: such a request
        is treated as any other.
    """
    if request_id is None:
        return None
    try:
        claim = store.claim(named_by_request(request_id))
        if claim.state_at(store.now()) is not ClaimState.BUILDING:
            return None
        claim, ensemble = claim_and_ensemble(store, claim.id)
        member = ensemble.member(claim.member)
    except NotFound:
        return None
    place = [
        booking
        for _, booking in store.bookings(consumer=member.uuid)
        if booking.state is BookingState.CLAIMED
    ]
    if not place:
        return None
    providers = frozenset(booking.provider for booking in place)
    return PresentedClaim(claim, ensemble, member, providers, place[0])


def with_claim(asked: CandidateRequest) -> CandidateRequest:
    """The request for candidates with the claim that it presents."""
    return replace(asked, presented=presented_claim(asked.store, asked.named))


def on_place(search: CandidateSearch) -> CandidateSearch:
    """The search for candidates on the place of the presented claim alone."""
    presented = search.asked.presented
    if presented is None:
        return search
    return replace(search, kept=candidates_for(search.snapshot, search.query, presented))


def candidates_for(
    snapshot: Snapshot, query: CandidateQuery, presented: PresentedClaim
) -> Iterator[Candidate]:
    """Candidates on the claim's host that use every provider of the claim's place.

    All bookings count but the claim's own. Rows are the given snapshot's.
    """
    rows = {snapshot.row_of[uuid] for uuid in presented.providers if uuid in snapshot.row_of}
    free = snapshot.with_states(
        without_consumer(snapshot.state(row), presented.member.uuid) for row in rows
    )
    if not presented.stay.period.open_ended:
        free = with_period(
            free, query.classes, Period(snapshot.taken_at, presented.stay.period.end)
        )
    free = with_virtual_classes(free, query)
    anchors = frozenset(int(snapshot.root[row]) for row in rows)
    used = frozenset((anchor, row) for anchor in anchors for row in rows)
    yield from candidates(free, replace(query, anchors=anchors, used=used))


def without_consumer(state: ProviderState, consumer: str) -> ProviderState:
    """The provider's state without the bookings of a consumer."""
    return replace(
        state,
        bookings=tuple(one for one in state.bookings if one.consumer != consumer),
        occupants=tuple(one for one in state.occupants if one.consumer != consumer),
    )


def take_by_claim(asked: AllocationWrite, rest: Rest) -> Committed:
    """Let a write take the place of the claim that the request names, or write as it is asked.

    If the claim is over, its owner is told of a new server, or the server is refused. A repeated
    write whose place was taken before has the first result.

    Raises:
        WrongState: the claim is over, and the server is refused.
        MoorageError: as `take_place`, and the commit.
    """
    store, settings = asked.store, asked.settings
    try:
        taken = take_place(store, asked.request_id, asked.writes, settings.lifetimes.notice)
        if taken is not None:
            return taken
        told = spent_claim_notice(
            store, asked.request_id, asked.writes, refuse=settings.refuse_spent
        )
        return rest(replace(asked, further=(*asked.further, *told)))
    except ConsumerConflict:
        before = repeated_write(store, asked.request_id, asked.writes)
        if before is None:
            raise
        return before


def take_place(
    store: Store, request_id: str | None, writes: Sequence[ReplaceAllocations], notice: Duration
) -> Committed | None:
    """Commit writes of allocations of which one takes the place of the presented claim.

    That one is for a server of the claim's project which has no allocations yet, and covers every
    provider of the claim's place. One commit drops the claim's bookings, makes all writes,
    activates the claim and gives its member the server; capacity is checked on the result. For
    `notice`, of the other writes, see `ending_in_time`.

    Returns:
        None if the request presents no building claim, or no write can take its place: then nothing
        was written.

    Raises:
        ConsumerConflict, CapacityExceeded, ConstraintViolated, UnknownName: see
            `ReplaceAllocations`; the claim is still building.
        ConcurrentUpdate: the ensemble kept changing.
    """
    if request_id is None:
        return None
    for _ in range(ATTEMPTS - 1):
        try:
            return _take_place(store, request_id, writes, notice)
        except ConsumerConflict:
            raise
        except DuplicateName:  # the server is a member of another ensemble
            return None
        except (ConcurrentUpdate, HoldExpired, NotFound):
            # Another member got its server, or the claim ended meanwhile: read again.
            continue
    return _take_place(store, request_id, writes, notice)


def spent_claim_notice(
    store: Store,
    request_id: str | None,
    writes: Sequence[ReplaceAllocations],
    *,
    refuse: bool,
) -> tuple[PutEvent, ...]:
    """What tells the owner of a claim that a new server presents it when it is over.

    Nothing if no claim has the request's id, or the claim is still building. A server that moves is
    not new, nor is its migration.

    Raises:
        WrongState: the server is refused (`refuse`); the owner is told.
    """
    claim = None if request_id is None else if_stored(store.claim, named_by_request(request_id))
    if claim is None:
        return ()
    state = claim.state_at(store.now())
    new = (
        one.consumer
        for one in writes
        if one.allocations
        and one.takes_over is None
        and one.consumer.project_id == claim.project_id
        and not (state is ClaimState.ACTIVE and one.consumer.uuid == claim.server_id)
        and store.consumer(one.consumer.uuid) is None
    )
    server = None if state is ClaimState.BUILDING else next(new, None)
    if server is None:
        return ()
    told = PutEvent(spent_claim(claim, state, server.uuid, refused=refuse))
    if not refuse:
        return (told,)
    store.commit(Changeset((told,)))
    why = "has its server already" if state is ClaimState.ACTIVE else f"is {state}"
    ensemble = if_stored(store.ensemble, claim.ensemble_id)
    remedy = "" if ensemble is None else to_boot(ensemble.name)
    raise WrongState(
        f"claim {claim.id} of {claim.member} {why}:"
        f" its place is not kept for another server{remedy}"
    )


def repeated_write(
    store: Store, request_id: str | None, writes: Sequence[ReplaceAllocations]
) -> Committed | None:
    """The result of an earlier commit, if the write repeats the one that took the claim's place.

    Nova repeats a write whose answer it did not get, for example because the process was killed;
    the repeat must not conflict with the allocations of the first. This holds only for a request
    that presents the claim: any other write for an existing consumer is refused, as by
    openstack-placement.

    Returns:
        None if it is no repeat: another claim, server, owner or other allocations, or the server's
        allocations have been written again since.
    """
    if request_id is None or len(writes) != 1 or writes[0].generation is not None:
        return None
    (write,) = writes
    server = write.consumer
    claim = if_stored(store.claim, named_by_request(request_id))
    if claim is None:
        return None
    found = store.consumer(server.uuid)
    if claim.state is not ClaimState.ACTIVE or claim.server_id != server.uuid or found is None:
        return None
    stands, bookings = found
    owned = (server.project_id, server.user_id, server.type or stands.type)
    if stands.generation != _FIRST or owned != (stands.project_id, stands.user_id, stands.type):
        return None
    booked = {one.provider: dict(one.amounts) for one in bookings}
    if booked != {provider: dict(amounts) for provider, amounts in write.allocations.items()}:
        return None
    return Committed(
        revision=store.snapshot().revision,
        at=store.now(),
        consumer_generations={server.uuid: stands.generation},
    )


def _take_place(
    store: Store, request_id: str, writes: Sequence[ReplaceAllocations], notice: Duration
) -> Committed | None:
    presented = presented_claim(store, request_id)
    taking = next(
        (one for one in writes if presented is not None and _fits(store, presented, one)), None
    )
    if presented is None or taking is None:
        return None
    active = active_claim(presented.claim, presented.ensemble, taking.consumer.uuid, store.now())
    written = (staying(one, presented.stay) if one is taking else one for one in writes)
    exchange: tuple[Change, ...] = (TakeHold(presented.member.uuid), *written)
    changes = Changeset(activation_changes(store, presented.ensemble, active, exchange))
    return commit_with_returns(store, ending_in_time(store, changes, notice))


def staying(write: ReplaceAllocations, held: Booking) -> ReplaceAllocations:
    """The write with the end, priority and preemptibility of the claimed place."""
    return replace(
        write,
        stay=Stay(
            until=None if held.period.open_ended else held.period.end,
            preemptible=held.preemptible,
            yields_to=held.yields_to,
            declared_end=held.declared_end,
            decision=held.decision,
            priority=held.priority,
        ),
    )


def _fits(store: Store, presented: PresentedClaim, write: ReplaceAllocations) -> bool:
    """Whether the write may take the claim's place; see `take_place`."""
    server = write.consumer
    return (
        server.project_id == presented.claim.project_id
        and presented.providers <= write.allocations.keys()
        and all(one.server_id != server.uuid for one in presented.ensemble.members)
        and store.consumer(server.uuid) is None
    )
