"""Accept an offer: its places are a lease's from then on, and its siblings are given up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import DeleteEnsemble, PutDecision, PutLease
from moorage.domain.decisions import DecisionState, DecisionStep, decision_after
from moorage.domain.errors import NotFound, WrongState
from moorage.domain.lease_actions import read_actions
from moorage.domain.leases import LeaseStep, Terms, lease_after
from moorage.domain.offers import OfferState
from moorage.usecases.joint import Ask
from moorage.usecases.leases.asking import Granted
from moorage.usecases.leases.carried import promise
from moorage.usecases.leases.checked import CREATE, Question
from moorage.usecases.leases.create import check_placeless
from moorage.usecases.leases.edges import edges
from moorage.usecases.leases.evict import warnings
from moorage.usecases.leases.shaping import check_margins, checked_end, checked_lead, checked_start
from moorage.usecases.leases.yielding import last_end, yielders
from moorage.usecases.offers.asking import Acceptance
from moorage.usecases.offers.over import due_at_once, ended
from moorage.usecases.offers.view import open_offer, overtaken
from moorage.usecases.patience import again
from moorage.usecases.proposal import Naming, Proposal
from moorage.usecases.quotas import check_quota, judged_by
from moorage.usecases.settle import settle, unplaced_or_held
from moorage.usecases.waitlist.turn import turn_of_window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.offers import Offer
    from moorage.domain.period import Instant
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller
    from moorage.usecases.proposal import HasTurn

__all__ = ["Acceptance", "accept_offer"]


def accept_offer(
    parts: Parts, caller: Caller, offer_id: str, accepted: Acceptance, *, dry_run: bool = False
) -> Granted:
    """Make an offer a lease under the same id, in one transaction.

    Its members stay on the hosts that were held for them. Only where a lead or cleaning time that
    was not offered finds no room there, they are placed anew; where that gives nothing either, it
    is refused and the offer stays. Other offers of the same request are given up with it. An
    ensemble that was offered places has them, and the lease, from then on.

    Raises:
        NotFound: no such offer for this caller, or its ensemble is gone.
        WrongState: it was accepted, or its ensemble has changed, is placed or has a lease.
        OfferOver: it has expired, or was withdrawn.
        InvalidDescription, LimitExceeded, QuotaExceeded: the terms, as for a lease.
        Infeasible: longer than offered, there is no room.
        CheckRefused, Busy: as for a lease.
    """

    def attempt() -> Granted:
        now = parts.store.now()
        lease, offer = open_offer(parts.store, caller, offer_id, now)
        taking = _Taking(parts, caller, lease, offer, _terms(parts, lease, accepted, now))
        try:
            return taking.granted(accepted, dry_run=dry_run)
        except NotFound as gone:
            overtaken(parts.store, caller, offer_id, gone)

    return again(parts, attempt)


def _terms(parts: Parts, lease: Lease, accepted: Acceptance, now: Instant) -> Terms:
    offered = lease.terms
    terms = Terms(
        period=offered.period,
        lead=offered.lead if accepted.lead is None else accepted.lead,
        cleaning=offered.cleaning if accepted.cleaning is None else accepted.cleaning,
        expiry=accepted.expiry,
        priority=accepted.priority,
        before_start=accepted.before_start,
    )
    # An offer whose start has come while it was held begins now.
    if terms.period.start < now < terms.period.end:
        terms = terms.moved(replace(terms.period, start=now))
    check_margins(parts.limits, lead=terms.lead, cleaning=terms.cleaning)
    terms = checked_start(terms, now)
    if terms.lead > offered.lead:  # what is offered is kept free already
        terms = checked_lead(terms, now)
    return checked_end(parts.limits, terms, now)


@dataclass(frozen=True, eq=False)
class _Taking:
    """One offer on its way to be a lease."""

    parts: Parts
    caller: Caller
    lease: Lease
    offer: Offer
    terms: Terms

    def granted(self, accepted: Acceptance, *, dry_run: bool) -> Granted:
        """The lease, decided and written."""
        parts, store = self.parts, self.parts.store
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
        within = judged_by(parts.limits, any_priority=accepted.any_priority)
        check_quota(parts, taken, None, within)
        promised = promise(taken)
        question = Question(parts, self.caller, CREATE)

        def also(made: Decision) -> tuple[Change, ...]:
            at = made.updated_at
            placed = replace(taken, decision_id=made.id, updated_at=at)
            placed = question.put(placed, ensemble)
            return (
                PutLease(placed, self.lease.generation, within),
                *edges(placed, parts.ids, at),
                *self._told(made),
                *self._without_copy(kept, ensemble, held, at),
                *self._siblings(at),
            )

        copied = kept.id != ensemble.id
        proposal = Proposal(
            ensemble,
            ensemble.generation,
            unplaced_or_held(ensemble),
            promise=promised,
            also=also,
            freed=frozenset(one.uuid for one in kept.members) if copied else frozenset(),
            instead_of=frozenset({kept.id}) if copied else frozenset(),
            known=MappingProxyType({name: one.host for name, one in held.places.items()}),
            outranks=self.terms.priority,
            operator=self.caller.operator,
            turn=self._turn(ensemble),
        )
        ask = Ask(objective=held.objective, seed=held.solve.seed)
        settled = settle(parts, proposal, ask, Naming(parts.ids.uuid()), dry_run=dry_run)
        return Granted(
            lease=replace(taken, decision_id=settled.decision.id)
            if dry_run
            else store.lease(self.lease.id),
            decision=settled.decision,
            ensemble=settled.ensemble,
            snapshot=settled.snapshot,
            displaced=settled.displaced if dry_run else yielders(store, self.lease.id),
            preempted=settled.preempted,
            dry_run=dry_run,
        )

    def _turn(self, ensemble: Ensemble) -> HasTurn:
        """Whose turn is before: nobody's for what is kept; for a longer time, all who wait."""
        kept, wanted = self.lease.terms.occupied, self.terms.occupied
        if kept.start <= wanted.start and wanted.end <= kept.end:
            return lambda *_, **__: True
        return turn_of_window(self.parts, ensemble, self.terms)

    def _ensemble(self, kept: Ensemble) -> Ensemble:
        """Whose places they are from now on: of the ensemble that was asked for, or of its own."""
        if self.offer.of is None:
            return kept
        store = self.parts.store
        try:
            ensemble = store.ensemble(self.offer.of)
        except NotFound:
            raise NotFound("ensemble", self.offer.of) from None
        check_placeless(store, store.snapshot(), ensemble)
        if _description(ensemble) != _description(kept):
            raise WrongState("the ensemble has changed since it was offered these places")
        return ensemble

    def _told(self, made: Decision) -> Iterator[Change]:
        """Warnings for those who have an end since it was offered; others are told as usual."""
        end = last_end(made.created_at, made.period.start, self.parts.limits.notice)
        if end is not None:
            silent = yielders(self.parts.store, self.lease.id)
            yield from warnings(self.parts.store, [one for one in silent if one.end <= end], made)

    def _without_copy(
        self, kept: Ensemble, ensemble: Ensemble, held: Decision, now: Instant
    ) -> Iterator[Change]:
        """The end of the copy that has kept the places; its bookings are dropped with the rest."""
        if kept.id == ensemble.id:
            return
        if held.state is DecisionState.HELD:
            state = decision_after(held.state, DecisionStep.SUPERSEDE)
            yield PutDecision(replace(held, state=state, updated_at=now), held.generation)
        yield DeleteEnsemble(kept.id, kept.generation)

    def _siblings(self, now: Instant) -> Iterator[Change]:
        """The other offers of the same request, given up."""
        for one in self.parts.store.offers(project_id=self.lease.project_id):
            offer = one.offer
            if offer is None or offer.request != self.offer.request or one.id == self.lease.id:
                continue
            yield from ended(self.parts, one, OfferState.WITHDRAWN, now)
            yield from due_at_once(self.parts, one, now)


def _description(ensemble: Ensemble) -> tuple[object, ...]:
    """What must not change while an ensemble has offers."""
    return ensemble.roles, {one.name for one in ensemble.members}, ensemble.policies
