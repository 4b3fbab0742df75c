"""Nova's own retries of a failed build: a member's server is built on another host (ADR-0050).

With the setting `build_retries` a request that presents a claim has candidates on other hosts
beside the claim's, on which the member keeps its required policies. When Nova could not build the
server on the claim's host, it deletes the allocations, which returns the place to its held
decision, and writes those of its next candidate under the same request id: the member is then
placed there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.changes import PutClaim, PutDecision, PutEnsemble, TakeHold
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    DuplicateName,
    HoldExpired,
    NotFound,
    WrongState,
)
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Place
from moorage.domain.refusal_commands import to_see_places
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.state.bounded_view import with_period
from moorage.usecases.claims.outcome import claim_and_ensemble
from moorage.usecases.claims.presented import candidates_for, staying
from moorage.usecases.claims.stay_terms import with_virtual_classes
from moorage.usecases.decide.member_places import bookings_of, host_row
from moorage.usecases.decide.writes import current_decision, with_server
from moorage.usecases.ledger.exclusive_hosts import without_exclusive_hosts
from moorage.usecases.ledger.member_moves import keeping_hosts
from moorage.usecases.shared.allocation_write import named_by_request
from moorage.usecases.shared.candidate_search import without_server_providers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change, Committed, ReplaceAllocations
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Ids, Store
    from moorage.usecases.shared.allocation_write import AllocationWrite, Rest
    from moorage.usecases.shared.candidate_search import CandidateSearch, PresentedClaim

ATTEMPTS: Final = 5
"""How often a write is tried while the ensemble keeps changing."""
LOOKED_AT: Final = 1_000
"""Candidates that are looked at, where a host may have many."""
_KEPT = {ClaimState.BUILDING: BookingState.CLAIMED, ClaimState.ENDED: BookingState.HELD}
"""States of a claim whose server may be built elsewhere -> that of the member's bookings."""


@dataclass(frozen=True, slots=True)
class _Retry:
    """A claim whose server may be built on another host than the member's place."""

    claim: Claim
    ensemble: Ensemble
    member: Member
    decision: Decision
    kept: tuple[Booking, ...]
    """The bookings of the member's place."""


def on_place_or_elsewhere(search: CandidateSearch) -> CandidateSearch:
    """The search on the place of the presented claim, then on hosts for retries of the build."""
    presented = search.asked.presented
    if presented is None:
        return search
    on_place = candidates_for(search.snapshot, search.query, presented)
    return replace(search, kept=chain(on_place, _elsewhere_candidates(search, presented)))


def _elsewhere_candidates(
    search: CandidateSearch, presented: PresentedClaim
) -> Iterator[Candidate]:
    """Candidates on other hosts, one of each, on which the member of a presented claim may be.

    All bookings count there, as for anybody.
    """
    store, snapshot = search.asked.store, search.snapshot
    query = without_exclusive_hosts(without_server_providers(search)).query
    if _movable(store, presented.ensemble, snapshot) is None:
        return
    keeping = keeping_hosts(snapshot, presented.ensemble, presented.claim.member)
    places = (snapshot.row_of[uuid] for uuid in presented.providers if uuid in snapshot.row_of)
    hosts = keeping.rows - {int(snapshot.root[row]) for row in places}
    anchors = hosts if query.anchors is None else hosts & query.anchors
    free = snapshot
    if not presented.stay.period.open_ended:
        free = with_period(
            free, query.classes, Period(snapshot.taken_at, presented.stay.period.end)
        )
    free = with_virtual_classes(free, query)
    shown: set[int] = set()
    for one in islice(candidates(free, replace(query, anchors=anchors)), LOOKED_AT):
        roots = (int(snapshot.root[row]) for row, _ in one.allocations)
        host = next((row for row in roots if row in hosts), None)  # not storage that hosts share
        if len(shown) == search.asked.settings.build_retries:
            return
        if host is not None and host not in shown:
            shown.add(host)
            yield one


def place_elsewhere(asked: AllocationWrite, rest: Rest) -> Committed:
    """Let a claim's server be built on another host, where its member is placed in one commit.

    Both the claim and the ensemble conflict with whatever happens to them at the same time. Other
    writes are left to the rules that follow.

    Raises:
        WrongState: the member would break required policies on that host.
        MoorageError: as the commit.
    """
    for attempt in range(1, ATTEMPTS + 1):
        elsewhere = _elsewhere(asked)
        if elsewhere is None:
            break
        try:
            return rest(elsewhere)
        except ConsumerConflict:
            raise
        except DuplicateName:  # the server is a member of another ensemble
            break
        except (ConcurrentUpdate, HoldExpired, NotFound):
            if attempt == ATTEMPTS:
                raise
    return rest(asked)


def _elsewhere(asked: AllocationWrite) -> AllocationWrite | None:
    """The write with all that it changes; None if it does not build a claim's server elsewhere.

    Raises:
        WrongState: the member would break required policies on that host.
    """
    if asked.request_id is None or len(asked.writes) != 1 or not asked.writes[0].allocations:
        return None
    (write,) = asked.writes
    snapshot = asked.store.snapshot()
    found = _retry(asked.store, snapshot, named_by_request(asked.request_id), write)
    rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
    if found is None or not rows:
        return None
    row = host_row(snapshot, rows)
    keeping = keeping_hosts(snapshot, found.ensemble, found.claim.member)
    if row not in keeping.rows:
        broken = " and ".join(keeping.refusals.get(row, ())) or "the kind of its host"
        raise WrongState(
            f"{found.claim.member} of ensemble {found.ensemble.name} would break {broken} on"
            f" {snapshot.names[row]}{to_see_places(found.ensemble.name)}"
        )
    place = Place(snapshot.uuids[row], MappingProxyType(dict(write.allocations)))
    changes = _changes(asked.ids, found, write, place, snapshot.taken_at)
    return replace(
        asked,
        writes=(staying(write, found.kept[0]),),
        further=(*asked.further, *changes),
        request_id=None,
    )


def _movable(store: Store, ensemble: Ensemble, snapshot: Snapshot) -> Decision | None:
    """The ensemble's decision, if its members may be placed anew one by one.

    Those of leases, and those that make way for leases, keep to what was planned.
    """
    decision = current_decision(store, ensemble)
    if decision is None or decision.lease_id is not None or decision.preemptible:
        return None
    return decision if decision.state_at(snapshot.taken_at) is DecisionState.HELD else None


def _retry(
    store: Store, snapshot: Snapshot, claim_id: str, write: ReplaceAllocations
) -> _Retry | None:
    server = write.consumer
    try:
        claim, ensemble = claim_and_ensemble(store, claim_id)
        member = ensemble.member(claim.member)
    except NotFound:
        return None
    state = claim.state_at(snapshot.taken_at)
    decision = _movable(store, ensemble, snapshot)
    kept = tuple(bookings_of(snapshot, member.uuid))
    if (
        decision is None
        or not kept
        or kept[0].state is not _KEPT.get(state)
        or (state is ClaimState.BUILDING and _covers(write, kept))
        or claim.server_id not in {None, server.uuid}
        or server.project_id != claim.project_id
        or store.consumer(server.uuid) is not None
        or any(one.server_id == server.uuid for one in ensemble.members)
    ):
        return None
    return _Retry(claim, ensemble, member, decision, kept)


def _covers(write: ReplaceAllocations, kept: Sequence[Booking]) -> bool:
    """Whether a write is on the claim's own place."""
    return {one.provider for one in kept} <= write.allocations.keys()


def _changes(
    ids: Ids, found: _Retry, write: ReplaceAllocations, place: Place, now: int
) -> tuple[Change, ...]:
    server = write.consumer.uuid
    active = replace(
        found.claim,
        decision_id=found.decision.id,
        state=ClaimState.ACTIVE,
        server_id=server,
        lapses_at=FOREVER,
        updated_at=now,
    )
    if found.claim.state is ClaimState.BUILDING:
        put = PutClaim(active, ClaimState.BUILDING.value, not_after=found.claim.lapses_at)
    else:  # what has ended stays as it is
        put = PutClaim(replace(active, id=ids.uuid(), digest="", created_at=now), None)
    grown = replace(with_server(found.ensemble, active.member, server), updated_at=now)
    places = MappingProxyType({**found.decision.places, active.member: place})
    moved = replace(found.decision, places=places, updated_at=now)
    return (
        put,
        TakeHold(found.member.uuid),
        PutEnsemble(grown, found.ensemble.generation),
        PutDecision(moved, found.decision.generation, not_after=found.decision.expires_at),
    )
