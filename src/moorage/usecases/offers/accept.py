"""Accept an offer: it becomes a lease, and the other offers of its request are withdrawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import DeleteEnsemble, PutLease
from moorage.domain.decisions import DecisionState, DecisionStep
from moorage.domain.errors import NotFound, WrongState
from moorage.domain.lease_actions import read_actions
from moorage.domain.leases import LeaseStep, Terms, lease_after
from moorage.domain.offers import OfferState
from moorage.usecases.decide.loop import (
    DecisionFlow,
    DecisionRequest,
    run_decision,
    unplaced_or_held,
)
from moorage.usecases.decide.request import (
    KnownHosts,
    Proposal,
    RefusalReader,
    RequestIdentity,
    ignore_waitlist,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.decide.writes import step_decision
from moorage.usecases.effects.lease_timers import timers_after_change
from moorage.usecases.leases.create import check_placeless
from moorage.usecases.leases.external_check import CheckRequest
from moorage.usecases.leases.requests import LeaseResult
from moorage.usecases.leases.shaping import check_margins, checked_end, checked_lead, checked_start
from moorage.usecases.offers.expiry import due_at_once, offer_end_changes
from moorage.usecases.offers.queries import offer_lost, open_offer
from moorage.usecases.offers.requests import AcceptanceTerms
from moorage.usecases.preemption.eviction import warnings_of_accepted
from moorage.usecases.preemption.preempted_leases import preempted_leases
from moorage.usecases.preemption.victims import displaced_for
from moorage.usecases.relocation.lease_promise import promise
from moorage.usecases.shared.lease_check import CREATE
from moorage.usecases.shared.quotas import check_quota, quota_limits
from moorage.usecases.waitlist_turn import turn_of_window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.offers import Offer
    from moorage.domain.period import Instant
    from moorage.usecases.decide.request import WaitlistGate
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

__all__ = ["AcceptanceTerms", "accept_offer"]


def accept_offer(
    env: UseCaseEnvironment,
    caller: Caller,
    offer_id: str,
    accepted: AcceptanceTerms,
) -> LeaseResult:
    """Turn an offer into a lease with the same id, in one transaction.

    Its members keep the held hosts. Only if a lead or cleaning time beyond the offered one does not
    fit there, they are placed on other hosts; if there are none, the request is refused and the
    offer stays open. The other offers of the same request are withdrawn. If the offer was made to
    a stored ensemble, that ensemble gets the places and the lease.

    Raises:
        NotFound: no such offer for this caller, or its ensemble is deleted.
        WrongState: the offer was accepted, or its ensemble has changed, is placed or has a lease.
        OfferOver: the offer has expired, or was withdrawn.
        InvalidDescription, LimitExceeded, QuotaExceeded: the terms, as for a lease.
        Infeasible: the lead or cleaning time beyond the offer does not fit.
        CheckRefused, Busy: as for a lease.
    """

    def attempt() -> DecisionFlow[LeaseResult]:
        now = env.store.now()
        lease, offer = open_offer(env.store, caller, offer_id, now)
        acceptance = _Acceptance(env, caller, lease, offer, _terms(env, lease, accepted, now))
        try:
            return (yield from acceptance.granted(accepted))
        except NotFound as gone:
            offer_lost(env.store, caller, offer_id, gone)

    return run_decision(env, attempt)


def _terms(env: UseCaseEnvironment, lease: Lease, accepted: AcceptanceTerms, now: Instant) -> Terms:
    offered = lease.terms
    terms = Terms(
        period=offered.period,
        lead=offered.lead if accepted.lead is None else accepted.lead,
        cleaning=offered.cleaning if accepted.cleaning is None else accepted.cleaning,
        expiry=accepted.expiry,
        priority=accepted.priority,
        before_start=accepted.before_start,
    )
    # If the offered start has passed meanwhile, the lease starts now.
    if terms.period.start < now < terms.period.end:
        terms = terms.moved(replace(terms.period, start=now))
    check_margins(env.limits, lead=terms.lead, cleaning=terms.cleaning)
    terms = checked_start(terms, now)
    if terms.lead > offered.lead:  # the offered lead is held already
        terms = checked_lead(terms, now)
    return checked_end(env.limits, terms, now)


@dataclass(frozen=True, eq=False)
class _Acceptance:
    """The acceptance of one offer."""

    env: UseCaseEnvironment
    caller: Caller
    lease: Lease
    offer: Offer
    terms: Terms

    def granted(self, accepted: AcceptanceTerms) -> DecisionFlow[LeaseResult]:
        """Decide and write the lease."""
        env, store = self.env, self.env.store
        kept = store.ensemble(self.lease.ensemble_id)
        held = store.decision(self.lease.decision_id)
        ensemble = self._ensemble(kept)
        taken = replace(
            self.lease,
            name=accepted.name or self.lease.name,
            user_id=self.caller.user_id,
            ensemble_id=ensemble.id,
            terms=self.terms,
            state=lease_after(self.lease.state, LeaseStep.ACCEPT),
            actions=read_actions(accepted.actions),
            offer=replace(self.offer, state=OfferState.ACCEPTED),
            units=len(ensemble.members),
        )
        within = quota_limits(env.limits, any_priority=accepted.any_priority)
        check_quota(env, taken, None, within)
        promised = promise(taken)
        question = CheckRequest(env, self.caller, CREATE)

        def further_changes(made: Decision) -> tuple[Change, ...]:
            at = made.updated_at
            placed = replace(taken, decision_id=made.id, updated_at=at)
            placed = question.put(placed, ensemble)
            return (
                PutLease(placed, self.lease.generation, within),
                *timers_after_change(placed, env.ids, at),
                *warnings_of_accepted(env, self.lease.id, made),
                *self._without_copy(kept, ensemble, held, at),
                *self._siblings(at),
            )

        copied = kept.id != ensemble.id
        proposal = Proposal(
            ensemble,
            ensemble.generation,
            (unplaced_or_held(ensemble),),
            promise=replace(promised, outranks=self.terms.priority),
            freed=frozenset(one.uuid for one in kept.members) if copied else frozenset(),
            known_hosts=KnownHosts(
                MappingProxyType({name: one.host for name, one in held.places.items()})
            ),
            waitlist_gate=self._turn(ensemble),
            further_changes=further_changes,
            reader=RefusalReader(operator=self.caller.operator),
        )
        options = DecisionOptions(objective=held.objective, seed=held.solve.seed)
        settled = yield DecisionRequest(proposal, options, RequestIdentity(env.ids.uuid()))
        return LeaseResult(
            lease=store.lease(self.lease.id),
            decision=settled.decision,
            ensemble=settled.ensemble,
            snapshot=settled.snapshot,
            displaced=displaced_for(store, self.lease.id) if settled.written else settled.displaced,
            preempted=preempted_leases(settled.concessions),
        )

    def _turn(self, ensemble: Ensemble) -> WaitlistGate:
        """The waitlist gate: none if the lease stays within the held period, else the window's."""
        kept, requested = self.lease.terms.occupied, self.terms.occupied
        if kept.start <= requested.start and requested.end <= kept.end:
            return ignore_waitlist
        return turn_of_window(self.env, ensemble, self.terms)

    def _ensemble(self, kept: Ensemble) -> Ensemble:
        """The ensemble of the lease: the stored one that was offered places, or the offer's own."""
        if self.offer.of is None:
            return kept
        store = self.env.store
        try:
            ensemble = store.ensemble(self.offer.of)
        except NotFound:
            raise NotFound("ensemble", self.offer.of) from None
        check_placeless(store, store.snapshot(), ensemble)
        if _description(ensemble) != _description(kept):
            raise WrongState("the ensemble has changed since it was offered these places")
        return ensemble

    def _without_copy(
        self, kept: Ensemble, ensemble: Ensemble, held: Decision, now: Instant
    ) -> Iterator[Change]:
        """The changes that delete the offer's copy of the ensemble; `freed` drops its bookings."""
        if kept.id == ensemble.id:
            return
        if held.state is DecisionState.HELD:
            yield step_decision(held, DecisionStep.SUPERSEDE, now)
        yield DeleteEnsemble(kept.id, kept.generation)

    def _siblings(self, now: Instant) -> Iterator[Change]:
        """The changes that withdraw the other offers of the same request."""
        for one in self.env.store.offers(project_id=self.lease.project_id):
            offer = one.offer
            if offer is None or offer.request != self.offer.request or one.id == self.lease.id:
                continue
            yield from offer_end_changes(self.env, one, OfferState.WITHDRAWN, now)
            yield from due_at_once(self.env, one, now)


def _description(ensemble: Ensemble) -> tuple[object, ...]:
    """The parts of an ensemble that must not change between offer and acceptance."""
    return ensemble.roles, {one.name for one in ensemble.members}, ensemble.policies
