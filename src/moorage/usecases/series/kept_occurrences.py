"""Hold the occurrences of a series one after another, then grant all of them at once.

A held occurrence is an offer in the ledger (ADR-0011), which lapses by itself: if the process
stops, nothing of the series remains. No occurrence is a lease before all are.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.changes import (
    Changeset,
    DropEffects,
    PutBookings,
    PutDecision,
    PutEffect,
    PutLease,
    PutSeries,
)
from moorage.domain.errors import (
    CapacityExceeded,
    CheckRefused,
    ConcurrentUpdate,
    ConstraintViolated,
    HoldExpired,
    Infeasible,
    MoorageError,
    ProviderConflict,
    QuotaExceeded,
)
from moorage.domain.explain import Explanation
from moorage.domain.leases import Lease, LeaseState, LeaseStep, Occurrence, Reservation, lease_after
from moorage.domain.offers import Offer
from moorage.domain.period import MINUTE, SECOND, format_instant
from moorage.domain.quotas import QuotaName
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, run_decision, unplaced
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import (
    KnownHosts,
    Proposal,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.decide.writes import member_consumer
from moorage.usecases.effects.lease_timers import first_timers, timers_after_change
from moorage.usecases.leases.external_check import CheckRequest
from moorage.usecases.leases.shaping import checked_lead
from moorage.usecases.offers.expiry import give_up_offer
from moorage.usecases.preemption.eviction import warnings_of_accepted
from moorage.usecases.relocation.lease_promise import placed_lease, promise
from moorage.usecases.series.requests import OccurrenceRefusal
from moorage.usecases.shared.lease_check import CREATE
from moorage.usecases.shared.quotas import Allowance, bound_stored
from moorage.usecases.shared.retry import retry
from moorage.usecases.waitlist_turn import turn_of_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.domain.quotas import QuotaDefaults
    from moorage.domain.series import Series, Slot
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.loop import DecisionResult
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.series.requests import OccurrencesRequest


KEPT: Final[Duration] = 5 * MINUTE
"""How long an occurrence is held while the others are searched for."""
_LEAST: Final[Duration] = SECOND // 20
"""The least time for an explanation, once the series' budget for explanations is used up."""


class OccurrenceHolds:
    """Holds and grants the occurrences of one series."""

    def __init__(
        self, env: UseCaseEnvironment, caller: Caller, occurrences: OccurrencesRequest
    ) -> None:
        self.refused: list[OccurrenceRefusal] = []
        self.written = True
        """Whether what is held is written, so that it can be granted."""
        self._env = env
        self._caller = caller
        self._occurrences = occurrences
        self._series = occurrences.series
        self._partly = occurrences.as_many_as_fit
        self._kept: list[Lease] = []
        self._hosts: Mapping[MemberName, str] = {}
        self._left = self._allowance()
        self._explaining = env.limits.explanation_budget

    def kept(self) -> tuple[Lease, ...]:
        """Hold the occurrences and return their leases; empty if one that is required does not fit.

        Raises:
            QuotaExceeded, CheckRefused: all occurrences are required, and this refuses one of them.
            MoorageError: as `run_decision`, except Infeasible; all holds are withdrawn.
        """
        if not self._partly:
            self._check_quota()
        try:
            for slot in self._occurrences.slots:
                self._hold_slot(slot)
        except BaseException:
            self.withdraw()
            raise
        return tuple(self._kept)

    def grant(self, series: Series) -> None:
        """Turn all held occurrences into leases and write the series; withdraw them if that fails.

        Raises:
            HoldExpired: a hold has lapsed.
            MoorageError: see `grant_occurrences`.
        """
        try:
            grant_occurrences(self._env, self._kept, series, self._occurrences)
        except BaseException:
            self.withdraw()
            raise

    def withdraw(self) -> None:
        """Withdraw the held occurrences; any that cannot be withdrawn lapse."""
        for one in self._kept:
            if one.offer is not None:
                with suppress(MoorageError):
                    give_up_offer(self._env, one.id)
        self._kept = []

    def _check_quota(self) -> None:
        allowance = self._allowance()
        for slot in self._occurrences.slots:
            lease = self._lease(slot)
            if (refusal := allowance.refusal(lease)) is not None:
                raise _of_occurrence(slot, refusal)
            allowance.take(lease)

    def _allowance(self) -> Allowance:
        occurrences = self._occurrences
        first = occurrences.slots[0].period.start
        return Allowance(self._env, self._series.project_id, first, occurrences.within)

    def _hold_slot(self, slot: Slot) -> None:
        lease = self._lease(slot)
        if self._partly and (refusal := self._left.refusal(lease)) is not None:
            self.refused.append(OccurrenceRefusal(slot, refusal.message))
            return
        ensemble = self._copy()
        began = self._env.stopwatch()
        try:
            settled = self._settled(lease, ensemble)
        except Infeasible as infeasible:
            self._explaining -= int((self._env.stopwatch() - began) * SECOND)
            self._refuse(slot, infeasible)
            return
        self._left.take(lease)
        self._hosts = {name: place.host for name, place in settled.decision.places.items()}
        if not settled.written:
            self.written = False
            self._kept.append(placed_lease(lease, settled.decision))
            return
        stored = self._env.store.lease(lease.id)
        self._kept.append(stored)
        self._check(slot, stored, ensemble)

    def _refuse(self, slot: Slot, infeasible: Infeasible) -> None:
        why = infeasible.explanation
        assert isinstance(why, Explanation)
        self.refused.append(OccurrenceRefusal(slot, _shortly(why), why, infeasible.stored))
        if not self._partly:
            # The rest is searched for only to list all occurrences that do not fit.
            self.withdraw()

    def _check(self, slot: Slot, lease: Lease, ensemble: Ensemble) -> None:
        """Call the operator's check for an occurrence."""
        try:
            pending = replace(lease, state=LeaseState.PENDING, units=len(ensemble.members))
            allowed = CheckRequest(self._env, self._caller, CREATE).put(pending, ensemble)
        except CheckRefused as refused:
            if not self._partly:
                raise
            self._kept.pop()
            self.refused.append(OccurrenceRefusal(slot, refused.message))
            give_up_offer(self._env, lease.id)
        else:
            self._kept[-1] = replace(lease, checked=allowed.checked)

    def _settled(self, lease: Lease, ensemble: Ensemble) -> DecisionResult:
        """Decide an occurrence and hold it; after a refusal, decide it only."""
        budget = max(self._explaining, _LEAST)
        env = replace(self._env, limits=replace(self._env.limits, explanation_budget=budget))
        if self.refused and not self._partly:
            env = env.in_dry_run(explained=True)
        with deadline.anew():  # a series' time limit is that of each occurrence
            return run_decision(env, partial(self._reading, env, lease, ensemble))

    def _reading(
        self, env: UseCaseEnvironment, lease: Lease, ensemble: Ensemble
    ) -> DecisionFlow[DecisionResult]:
        """The decision request for one occurrence, read from the ledger anew at each attempt."""
        series = self._series
        expires_at = env.store.now() + KEPT
        places = len(ensemble.members)
        offer = Offer(series.id, expires_at, proved=False, score=1.0, places=places)
        kept = replace(
            lease, ensemble_id=ensemble.id, state=LeaseState.OFFERED, offer=offer, units=0
        )

        def further_changes(decision: Decision) -> tuple[Change, ...]:
            placed = placed_lease(kept, decision)
            return (PutLease(placed, None), *first_timers(placed, env.ids, decision.created_at))

        kept_for = replace(promise(lease), expires_at=expires_at, offered=True)
        proposal = Proposal(
            ensemble,
            None,
            (unplaced(ensemble),),
            promise=kept_for,
            # Keep the hosts of the previous occurrence, unless preferred policies may rate others
            # better.
            known_hosts=KnownHosts({} if _prefers(ensemble) else self._hosts),
            waitlist_gate=turn_of_window(env, ensemble, lease.terms),
            further_changes=further_changes,
            reader=RefusalReader(operator=self._caller.operator),
        )
        options = DecisionOptions(
            time_limit=series.time_limit, objective=series.objective, seed=series.seed
        )
        return (yield DecisionRequest(proposal, options, RequestIdentity(env.ids.uuid())))

    def _lease(self, slot: Slot) -> Lease:
        series, ids, now = self._series, self._env.ids, self._env.store.now()
        return Lease(
            id=ids.uuid(),
            project_id=series.project_id,
            user_id=self._caller.user_id,
            name=series.called(slot.index),
            ensemble_id="",
            decision_id="",
            terms=checked_lead(series.terms.moved(slot.period), now),
            state=LeaseState.PENDING,
            reservations=tuple(
                Reservation(ids.uuid(), role.name, role.kind) for role in series.model.roles
            ),
            units=len(series.model.members),
            actions=series.actions,
            occurrence=Occurrence(series.id, slot.index),
        )

    def _copy(self) -> Ensemble:
        """A copy of the series' ensemble with ids of its own."""
        model, ids, now = self._series.model, self._env.ids, self._env.store.now()
        members = tuple(replace(one, uuid=ids.uuid()) for one in model.members)
        return replace(
            model,
            id=ids.uuid(),
            user_id=self._caller.user_id,
            salt=ids.salt(),
            members=members,
            created_at=now,
            updated_at=now,
        )


def _of_occurrence(slot: Slot, refusal: QuotaExceeded) -> QuotaExceeded:
    """The refusal with the occurrence's number and start in its message."""
    start = format_instant(slot.period.start)
    return QuotaExceeded(
        refusal.what,
        f"{refusal.message}   (occurrence {slot.index}, {start})",
        limit=refusal.limit,
        requested=refusal.requested,
        used=refusal.used,
        passes_at=refusal.passes_at,
        when_asked=refusal.when_asked,
        asked_from=refusal.asked_from,
    )


def _shortly(why: Explanation) -> str:
    """The refusal in short, such as `time: lease L1 from ...`."""
    return why.shortly if why.conflicts else f"{why.verdict}: {why.shortly}"


def _prefers(ensemble: Ensemble) -> bool:
    return not all(one.required for one in ensemble.policies)


def grant_occurrences(
    env: UseCaseEnvironment, kept: Sequence[Lease], series: Series, occurrences: OccurrencesRequest
) -> None:
    """Write a series and turn its held occurrences into leases.

    `kept` are the held leases, marked if the operator's check has allowed them; the series is as it
    will be stored.

    Raises:
        HoldExpired: the hold of an occurrence has lapsed or was withdrawn.
        QuotaExceeded: other requests of the project have used the quota meanwhile.
        DuplicateName, ConcurrentUpdate: another request has written the series.
        Busy: too many conflicting commits.
    """

    def attempt() -> None:
        # Changes of one kind are grouped, because they are written with fewer statements.
        every: dict[type, list[Change]] = {kind: [] for kind in _ORDER}
        snapshot, now = env.store.snapshot(), env.store.now()
        for one in kept:
            for change in _lease_changes(env, snapshot, one, occurrences.within, now):
                every[type(change)].append(change)
        fresh = PutSeries(replace(series, updated_at=now), occurrences.generation)
        changes = [change for kind in _ORDER for change in every[kind]]
        first = occurrences.generation is None
        bound = (bound_stored(env, series.project_id, QuotaName.SERIES),) if first else ()
        try:
            env.store.commit(Changeset((*changes, fresh, *bound)))
        except (CapacityExceeded, ConstraintViolated, ProviderConflict) as overtaken:
            raise ConcurrentUpdate(overtaken.message, subject=kept[0].id) from overtaken

    retry(env, attempt, must_know=lambda error: error.subject == series.id)


_ORDER: Final = (PutDecision, PutBookings, PutLease, DropEffects, PutEffect)
"""The order in which kinds of changes are written; quotas are checked with all leases."""


def _lease_changes(
    env: UseCaseEnvironment, snapshot: Snapshot, kept: Lease, within: QuotaDefaults, now: Instant
) -> Iterator[Change]:
    """The changes that turn a held occurrence into a lease.

    Raises:
        HoldExpired: its hold has lapsed or was withdrawn.
    """
    store = env.store
    stored = store.lease(kept.id)
    if stored.offer is None or stored.state is not LeaseState.OFFERED:
        raise HoldExpired("the hold of an occurrence was withdrawn meanwhile")
    ensemble = store.ensemble(stored.ensemble_id)
    lease = replace(
        stored,
        state=lease_after(stored.state, LeaseStep.ACCEPT),
        offer=None,
        units=len(ensemble.members),
        checked=kept.checked,
        updated_at=now,
    )
    ends = promise(lease).expires_at
    decision = store.decision(stored.decision_id)
    lasting = replace(decision, expires_at=ends, hold=ends - now, updated_at=now)
    yield PutDecision(lasting, decision.generation, not_after=decision.expires_at)
    member_places = locate_members(snapshot, ensemble)
    for member in ensemble.members:
        if member.name not in member_places.bookings:
            raise HoldExpired("the hold of an occurrence has lapsed")
        lasting_there = tuple(
            replace(one, lapses_at=ends) for one in member_places.bookings[member.name]
        )
        yield PutBookings(member_consumer(ensemble, member), lasting_there)
    yield PutLease(lease, stored.generation, within)
    yield from timers_after_change(lease, env.ids, now)
    yield from warnings_of_accepted(env, kept.id, decision)
