"""Create offers: windows in a range of starts, each with its places held until it expires."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import PutLease
from moorage.domain.effects import fact_id
from moorage.domain.errors import (
    Busy,
    DuplicateName,
    Infeasible,
    InvalidDescription,
    LimitExceeded,
    QuotaExceeded,
)
from moorage.domain.leases import Lease, LeaseState, Reservation, Terms
from moorage.domain.offers import Offer
from moorage.domain.period import Period
from moorage.domain.waitlist import needed
from moorage.engine.capacity.starts import Starts
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, run_decision, unplaced
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import (
    LeasePromise,
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.search_result import Observation
from moorage.usecases.decide.solution import DecisionOptions, request_for
from moorage.usecases.effects.lease_timers import first_timers
from moorage.usecases.ensembles.create import described_ensemble
from moorage.usecases.leases.create import check_leasable, check_placeless
from moorage.usecases.leases.shaping import check_members
from moorage.usecases.offers.no_window import no_window_refusal
from moorage.usecases.offers.requests import (
    OfferRequest,
    OfferResult,
    QuotaBarredWindow,
    check_offer_quota,
    offer_conditions,
    search_range,
)
from moorage.usecases.refusals.earliest_window import disclosed_earliest_start, earliest_start
from moorage.usecases.refusals.explanation import answer_once
from moorage.usecases.refusals.trial import Trial, WindowRequest
from moorage.usecases.relocation.lease_promise import placed_lease
from moorage.usecases.shared.access import own_ensemble, same_request
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.quotas import check_quota
from moorage.usecases.waitlist_turn import WaitlistTurn, turn_of_window

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.engine.capacity.earliest_start import EarliestStart
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store

__all__ = ["OfferRequest", "OfferResult", "create_offers"]

_TRIES: Final = 20
"""Windows that one request tries at most, if they turn out not to be available."""


def create_offers(
    env: UseCaseEnvironment,
    caller: Caller,
    request: OfferRequest,
    identity: RequestIdentity,
) -> OfferResult:
    """Look for windows in a range of starts, and hold the places of each until it expires.

    The first is the earliest that fits and that the project's quota allows; each further one starts
    after the one before it, and all are held at the same time. The same request with the same id
    gets the same offers.

    Raises:
        NotFound: no such ensemble for this caller.
        InvalidDescription: neither or both of ensemble and description, a range that is empty or
            in the past, no members, or as for an ensemble.
        LimitExceeded: too long, too far ahead, or too many members.
        QuotaExceeded: the project has too many offers or held places, or could not have the lease.
        WrongState: the ensemble is placed, or has a lease.
        Infeasible: no window in the range; the explanation has the first window after it, if any.
        DuplicateName: the id was used by another request.
        Busy: time ran out before a window was found, or too many conflicting commits.
    """
    return answer_once(
        env,
        caller,
        identity,
        partial(_made_before, env.store, identity),
        lambda: _OfferSearch(env, caller, request, identity).offers(),
        (DuplicateName,),
    )


class _OfferSearch:
    """Creates the offers of one request, one after the other."""

    def __init__(
        self,
        env: UseCaseEnvironment,
        caller: Caller,
        request: OfferRequest,
        identity: RequestIdentity,
    ) -> None:
        self._env = env
        self._caller = caller
        self._request = request
        self._identity = identity
        self._ensemble = _ensemble(env, caller, request)
        self._bounds = search_range(env, request, self._ensemble.project_id)
        self._holding = True
        """Whether the places of offers are held once they are found."""
        self._barred: list[QuotaBarredWindow] = []
        check_members(env.limits, self._ensemble)

    def offers(self) -> OfferResult:
        """Create the offers; at least one."""
        made: list[Lease] = []
        self._give_way()
        while len(made) < self._request.most:
            try:
                check_offer_quota(self._env, self._ensemble)
                found = self._next(made)
            except (Busy, LimitExceeded):
                if not made:
                    raise
                break
            if found is None:
                break
            made.append(found)
            if not self._holding:
                break  # nothing is held, so a second search could return the same places
        snapshot = self._env.store.snapshot()
        return OfferResult(
            tuple(made),
            snapshot.taken_at,
            snapshot.revision,
            barred=tuple(self._barred),
        )

    def _give_way(self) -> None:
        """Try the waitlist entries that compete with the offers."""
        whole = self._starts(self._bounds.first).whole
        WaitlistTurn(self._env, 0, whole, needed(self._ensemble)).give_way()

    def _next(self, made: list[Lease]) -> Lease | None:
        """The next offer, in the earliest window after the last one; None if there is none.

        Windows that the project's quota does not allow are skipped.
        """
        first = self._bounds.first if not made else made[-1].terms.period.start
        later, proved, known = bool(made), True, True
        for _ in range(_TRIES):
            sought = self._sought(first, later=later)
            proved, known = proved and sought.proved, known and sought.proved_without_relocation
            if sought.start is None:
                break
            start = sought.start + self._request.lead
            try:
                return run_decision(
                    self._env,
                    partial(self._held, start, made, proved=proved),
                )
            except Infeasible:
                # A concurrent commit took the places, or displacement cannot make enough room.
                first, later, proved, known = start, True, False, False
            except QuotaExceeded as refused:
                self._barred.append(
                    QuotaBarredWindow(Period(start, start + self._request.duration), refused)
                )
                passes = self._passes(refused, start)
                if passes is None:
                    break
                # The quota allows no earlier start either.
                first, later = passes, False
        if made:
            return None
        if self._barred:
            raise self._barred[0].why
        if not known:
            raise Busy("time ran out before a window was found, or a proof that there is none")
        raise no_window_refusal(
            self._env,
            self._window_request(),
            self._starts(first),
            self._identity,
            lead=self._request.lead,
            cleaning=self._request.cleaning,
            proved=proved,
            operator=self._caller.operator,
        )

    def _passes(self, refused: QuotaExceeded, start: Instant) -> Instant | None:
        """The first start after `start` in the range that the quota allows; None: none is known."""
        later = refused.start_at_once
        if later is None or not start < later <= self._bounds.last:
            return None
        return later

    def _sought(self, first: Instant, *, later: bool) -> EarliestStart:
        # Only the first offer may start at the very end of the range.
        find = earliest_start if later else disclosed_earliest_start
        starts, limit = self._starts(first), self._bounds.time_limit
        return find(self._env, self._window_request(), starts, time_limit=limit, later=later)

    @property
    def _told(self) -> Disclosure:
        """The disclosure of starts: a tenant's offers begin on the grid after others' ends."""
        env = self._env.with_disclosure_for(operator=self._caller.operator)
        return env.limits.disclosure

    def _starts(self, first: Instant) -> Starts:
        """The range of starts of the booked periods, which include lead and cleaning."""
        request = self._request
        lead = request.lead
        length = lead + request.duration + request.cleaning
        return Starts(first - lead, self._bounds.last - lead, length, self._told)

    def _window_request(self) -> WindowRequest:
        env = self._env
        snapshot = env.store.snapshot()
        exclusive = env.store.exclusive_ensembles(snapshot)
        members = frozenset(one.name for one in self._ensemble.members)
        member_places = locate_members(snapshot, self._ensemble)
        whole = self._starts(self._bounds.first).whole
        expires_at = snapshot.taken_at + self._bounds.hold
        promise = LeasePromise("", whole, expires_at, lead=self._request.lead, offered=True)
        proposal = Proposal(self._ensemble, None, (unplaced(self._ensemble),), promise=promise)
        options = DecisionOptions(objective=self._request.objective, seed=self._request.seed)
        observation = Observation(snapshot, member_places, exclusive.ensembles)
        request = request_for(
            self._ensemble, member_places, members, whole, self._request.objective
        )
        trial = Trial(env, proposal, options, observation)
        return trial.window_request(request, expires_at + 2 * env.limits.notice)

    def _held(self, start: Instant, made: list[Lease], *, proved: bool) -> DecisionFlow[Lease]:
        """Decide and write the offer that starts at `start`."""
        env, request = self._env, self._request
        ensemble = _copied(env, self._ensemble)
        expires_at = env.store.now() + self._bounds.hold
        terms = Terms(Period(start, start + request.duration), request.lead, request.cleaning)
        offer = Offer(
            request=self._identity.id,
            expires_at=expires_at,
            proved=proved,
            score=_score(start, made, self._bounds.last),
            places=len(ensemble.members),
            of=request.ensemble_id,
        )
        lease = Lease(
            id=_named(self._identity.id, len(made)),
            project_id=ensemble.project_id,
            user_id=self._caller.user_id,
            name=request.name,
            ensemble_id=ensemble.id,
            decision_id="",
            terms=terms,
            state=LeaseState.OFFERED,
            reservations=tuple(
                Reservation(env.ids.uuid(), role.name, role.kind) for role in ensemble.roles
            ),
            digest=self._identity.digest,
            offer=offer,
        )

        check_quota(env, replace(lease, units=offer.places), None)

        def further_changes(decision: Decision) -> tuple[Change, ...]:
            placed = placed_lease(lease, decision)
            return (
                PutLease(placed, None),
                offer_conditions(env, ensemble),
                *first_timers(placed, env.ids, decision.created_at),
            )

        proposal = Proposal(
            ensemble,
            None,
            (unplaced(ensemble),),
            promise=LeasePromise(
                lease.id, terms.occupied, expires_at, lead=request.lead, offered=True
            ),
            waitlist_gate=turn_of_window(env, ensemble, terms),
            further_changes=further_changes,
            reader=RefusalReader(operator=self._caller.operator, detail=RefusalDetail.UNSTORED),
        )
        options = DecisionOptions(
            time_limit=self._bounds.time_limit, objective=request.objective, seed=request.seed
        )
        settled = yield DecisionRequest(proposal, options, RequestIdentity(env.ids.uuid()))
        self._holding = settled.written
        return env.store.lease(lease.id)


def _named(request: str, number: int) -> str:
    """The id of the n-th offer of a request, derived from the request's id."""
    return fact_id("offer", request, number)


def _score(start: Instant, made: list[Lease], last: Instant) -> float:
    best = made[0].terms.period.start if made else start
    return 1.0 if start == best else round(1 - (start - best) / (last - best), 4)


def _ensemble(env: UseCaseEnvironment, caller: Caller, request: OfferRequest) -> Ensemble:
    """The ensemble to place: from the description, not stored; or the stored one, unchanged."""
    if (request.ensemble_id is None) is (request.description is None):
        raise InvalidDescription(
            "an offer is for an ensemble, or for one that is described", path="offer.ensemble_id"
        )
    if request.description is not None:
        ensemble = described_ensemble(env, caller, request.description)
        check_leasable(ensemble)
        return ensemble
    assert request.ensemble_id is not None
    ensemble = own_ensemble(env.store, caller, request.ensemble_id)
    check_leasable(ensemble)
    check_placeless(env.store, env.store.snapshot(), ensemble)
    return ensemble


def _copied(env: UseCaseEnvironment, ensemble: Ensemble) -> Ensemble:
    """A copy of the ensemble with new members; each offer holds its places by its own copy."""
    now = env.store.now()
    return replace(
        ensemble,
        id=env.ids.uuid(),
        members=tuple(
            replace(one, uuid=env.ids.uuid(), server_id=None) for one in ensemble.members
        ),
        digest="",
        generation=0,
        created_at=now,
        updated_at=now,
    )


def _made_before(store: Store, identity: RequestIdentity) -> OfferResult | None:
    """The offers that the same request, with the id its client gave, has created before."""
    if not identity.digest:
        return None
    found: list[Lease] = []
    while known := if_stored(store.lease, _named(identity.id, len(found))):
        same_request("offer request", identity, stored=known.digest)
        found.append(known)
    if not found:
        return None
    snapshot = store.snapshot()
    return OfferResult(tuple(found), snapshot.taken_at, snapshot.revision)
