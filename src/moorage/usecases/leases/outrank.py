"""Leases that have not begun and give up their places for one of a higher priority.

Only where a lease cannot be granted otherwise: with nobody displaced, with preemptible users ending
before it, and with planned leases moved. Then those are looked at which have less priority, lie
ahead, and begin no sooner than the notice. Who goes is the lightest set that is enough: as few as
possible of the highest priority among them, then of the next, then as few places as possible, then
the newest; `engine.least` proves it by asking the same search as every lease's.

They are closed in the changeset that grants the lease. Their ensembles stay, without places, and
stand on the waitlist for the same window where the leases stood; their owners are told that, and
when the same lease would fit next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import DropBookings, PutDecision, PutEvent, PutLease
from moorage.domain.decisions import DecisionState, DecisionStep, decision_after
from moorage.domain.effects import EffectKind
from moorage.domain.ensembles import EnsembleChange
from moorage.domain.errors import Busy, NotFound
from moorage.domain.events import Happened
from moorage.domain.explain import Relaxation, Window
from moorage.domain.leases import LeaseOutcome, LeaseState, LeaseStep, lease_after
from moorage.domain.period import SECOND, format_instant
from moorage.domain.quotas import MOST_PRIORITY
from moorage.domain.requests import Objective
from moorage.engine.least import least
from moorage.engine.overlay import exchanged
from moorage.engine.starts import Starts
from moorage.usecases.ahead import Ahead, soonest
from moorage.usecases.joint import request_for
from moorage.usecases.leases import facts
from moorage.usecases.leases.checked import ended
from moorage.usecases.leases.edges import edges
from moorage.usecases.looking import Looking
from moorage.usecases.standing import standing
from moorage.usecases.waitlist.again import in_line_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask
    from moorage.usecases.looking import Look, Sight
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Store
    from moorage.usecases.proposal import Proposal
    from moorage.usecases.standing import Standing

MOST: Final = 50
"""Leases that are looked at for one request: of the lowest priorities, those that begin last."""
_WHY: Final = "it gave up its places for a lease of a higher priority"
_SHARE: Final = 4
"""The part of the time for an explanation that may go into what is told: one in so many."""


@dataclass(frozen=True, eq=False)
class Outranked:
    """A lease that may give up its places."""

    lease: Lease
    decision: Decision
    ensemble: Ensemble
    stand: Standing

    @property
    def consumers(self) -> frozenset[str]:
        """Whose bookings its places are."""
        return frozenset(one[0].consumer for one in self.stand.bookings.values())

    @property
    def relied(self) -> Mapping[str, frozenset[str]]:
        """Its consumers, and the providers that they must still be on."""
        return {
            some[0].consumer: frozenset(one.provider for one in some)
            for some in self.stand.bookings.values()
        }


@dataclass(frozen=True, eq=False)
class Preempted:
    """A lease that gives up its places, and when it would fit next."""

    of: Outranked
    earliest: Window | None = None

    def changes(self, parts: Parts, now: Instant) -> Iterator[Change]:
        """What is written of it."""
        lease, decision = self.of.lease, self.of.decision
        closed = replace(
            lease,
            state=lease_after(lease.state, LeaseStep.CLOSE),
            outcome=LeaseOutcome.PREEMPTED,
            degraded=False,
            missing=0,
            proposal=MappingProxyType({}),
            updated_at=now,
        )
        yield PutLease(closed, lease.generation)
        if decision.state is DecisionState.HELD:
            state = decision_after(decision.state, DecisionStep.RELEASE)
            yield PutDecision(replace(decision, state=state, updated_at=now), decision.generation)
        members = frozenset(one.uuid for one in self.of.ensemble.members)
        yield DropBookings(members, decision=decision.id)
        yield from ended(closed, now)
        yield from edges(closed, parts.ids, now)
        again = in_line_again(lease, self.of.ensemble, parts.ids.uuid(), now=now, why=_WHY)
        yield again
        yield from self._told(closed, again.entry.id, now)

    def _told(self, closed: Lease, entry: str, now: Instant) -> Iterator[Change]:
        """To its owner: that it is over, how it waits, and when it would fit; not for whom."""
        window = self.earliest
        body = {
            **facts.of_lease(closed),
            "status": closed.state.value,
            "outcome": LeaseOutcome.PREEMPTED.value,
            "priority": closed.terms.priority,
            "ensemble": closed.ensemble_id,
            "waitlist_entry": entry,
            "earliest_start": None if window is None else format_instant(window.start),
            "earliest_end": (
                None if window is None or window.end is None else format_instant(window.end)
            ),
            "proved": window is not None and window.proved,
        }
        yield facts.fact(
            EffectKind.NOTIFY,
            closed.id,
            closed.project_id,
            due=now,
            now=now,
            details={**body, "state": closed.state.value},
            same=(closed.id, "preempted"),
        )
        generation = closed.generation + 1
        yield PutEvent(Happened("lease.preempted", closed.project_id, closed.id, generation, body))


def may_yield_until(lease: Lease, notice: Duration | None, now: Instant) -> Instant | None:
    """Until when a lease may have to give up its places; None: it need not, or not any more.

    Args:
        lease: any.
        notice: see `Limits.preemption_notice`.
        now: the present instant.
    """
    if notice is None or lease.state is not LeaseState.PENDING:
        return None
    until = lease.terms.occupied.start - notice
    return until if now < until and lease.terms.priority < MOST_PRIORITY else None


def outranking(
    parts: Parts, proposal: Proposal, ask: Ask, look: Look, sight: Sight, time_limit: Duration
) -> Look | None:
    """An answer for which leases of less priority give up their places; None: there is none.

    Args:
        parts: the ports, and the notice.
        proposal: what has no answer otherwise.
        ask: how it is asked for.
        look: what was asked in vain.
        sight: what was seen then.
        time_limit: for the whole search; past it the set that was found is not proved the least.
    """
    trial = _trial(parts, proposal, ask, look, sight, proposal.outranks, time_limit)
    if trial is None:
        return None
    found = least(trial.weights(), trial.enough)
    if found.chosen is None:
        return None
    answer = trial.look(found.chosen)
    if answer is None or answer.found is None:
        return None
    chosen = [trial.there[one] for one in sorted(found.chosen)]
    told = _alternatives(parts, chosen, proposal, sight, answer)
    return replace(answer, preempted=told)


def sufficient(
    parts: Parts, proposal: Proposal, ask: Ask, look: Look, sight: Sight
) -> Relaxation | None:
    """The lowest priority with which a refused lease would be granted, as searches have shown."""
    promise = proposal.promise
    if promise is None or promise.offered or proposal.unasked:
        return None
    budget = parts.limits.explanation_budget // _SHARE
    trial = _trial(parts, proposal, ask, look, sight, MOST_PRIORITY, budget)
    if trial is None:
        return None
    found = least(trial.weights(), trial.enough)
    if found.chosen is None:
        return None
    chosen = [trial.there[one].lease for one in sorted(found.chosen)]
    highest = max(one.terms.priority for one in chosen)
    if highest < promise.priority:
        return None  # time has run out before, not now
    change = EnsembleChange("lease", "terms", "priority", promise.priority, highest + 1)
    return Relaxation(change, 4, result=_displacing(chosen, operator=proposal.operator))


def _displacing(leases: Sequence[Lease], *, operator: bool) -> str:
    """`displaces lease 1f2e… until …`; to a tenant how many."""
    if operator:
        return "displaces " + ", ".join(
            f"lease {one.id} until {format_instant(one.terms.period.end)}" for one in leases
        )
    return f"displaces {len(leases)} lease{'' if len(leases) == 1 else 's'}"


def _trial(  # noqa: PLR0913, PLR0917 - what has no answer, in what, and who may go for how long
    parts: Parts,
    proposal: Proposal,
    ask: Ask,
    look: Look,
    sight: Sight,
    below: int,
    time_limit: Duration,
) -> _Trial | None:
    notice = parts.limits.preemption_notice
    if not below or notice is None:
        return None
    since = sight.snapshot.taken_at + notice
    there = outranked(parts.store, sight.snapshot, look, below=below, since=since)
    until = parts.stopwatch() + time_limit / SECOND
    return _Trial(parts, proposal, ask, sight, there, until) if there else None


def outranked(
    store: Store, snapshot: Snapshot, look: Look, *, below: int, since: Instant
) -> list[Outranked]:
    """Leases with less priority that have places in a problem's time, where it could use them.

    Args:
        store: where leases are.
        snapshot: the fleet.
        look: what was asked in vain.
        below: only of a lower priority than this.
        since: only what begins then or later, with its lead.
    """
    request, found = look.built.request, dict[str, tuple[int, int]]()
    for host in _hosts(snapshot, look):
        for row in snapshot.tree(host).tolist():
            for one in snapshot.bookings_of(row):
                if (
                    one.state is BookingState.RESERVED
                    and one.decision is not None
                    and one.priority < below
                    and one.period.start >= since
                    and one.period.overlaps(request.period)
                    and one.consumer not in request.own_consumers
                ):
                    found[one.decision] = (one.priority, -one.period.start)
    ordered = sorted(found, key=lambda id_: (found[id_], id_))[:MOST]
    every = (_one(store, snapshot, id_) for id_ in ordered)
    return [one for one in every if one is not None and one.lease.terms.priority < below]


def _hosts(snapshot: Snapshot, look: Look) -> list[int]:
    """Rows of the hosts that could hold some of what was asked, or do."""
    masks = list(look.built.ground.eligible_rows.values())
    rows = np.flatnonzero(np.logical_or.reduce(masks)).tolist() if masks else []
    hosts = {snapshot.row_of[look.built.terrain.uuids[row]] for row in rows}
    for some in look.staying.values():
        hosts |= {int(snapshot.root[snapshot.row_of[one.provider]]) for one in some}
    return sorted(hosts)


def _one(store: Store, snapshot: Snapshot, decision_id: str) -> Outranked | None:
    """The lease of a decision, if it lies ahead; an offer is none."""
    try:
        decision = store.decision(decision_id)
        lease = None if decision.lease_id is None else store.lease(decision.lease_id)
        ensemble = store.ensemble(decision.ensemble_id)
    except NotFound:
        return None
    if lease is None or lease.decision_id != decision.id or lease.state is not LeaseState.PENDING:
        return None
    return Outranked(lease, decision, ensemble, standing(snapshot, ensemble))


@dataclass(frozen=True, eq=False)
class _Trial:
    """Looks for answers while some leases are away."""

    parts: Parts
    proposal: Proposal
    ask: Ask
    sight: Sight
    there: Sequence[Outranked]
    until: float
    """On the stopwatch."""

    def weights(self) -> list[int]:
        """Sums of these order sets: by priority from the highest, then by places, then by age."""
        leases = [one.lease for one in self.there]
        size = len(leases)
        by_age = sorted(range(size), key=lambda i: (-leases[i].created_at, leases[i].id))
        units = size + sum(one.units for one in leases).bit_length()
        levels = sorted({one.terms.priority for one in leases})
        digit = size.bit_length()
        return [
            (1 << (units + digit * levels.index(one.terms.priority)))
            + (one.units << size)
            + (1 << by_age.index(i))
            for i, one in enumerate(leases)
        ]

    def enough(self, some: frozenset[int]) -> bool | None:
        """Whether there is an answer without these; None: time has run out before."""
        look = self.look(some)
        return None if look is None else look.found is not None

    def look(self, some: frozenset[int]) -> Look | None:
        """What a search comes to without these; None: to nothing in time."""
        left = int((self.until - self.parts.stopwatch()) * SECOND)
        if left <= 0:
            return None
        away = [self.there[one] for one in some]
        gone = {one.ensemble.id for one in away}
        sight = replace(
            self.sight,
            snapshot=without(self.sight.snapshot, away),
            keepers=tuple(one for one in self.sight.keepers if one.id not in gone),
        )
        try:
            return Looking(self.parts, self.proposal, self.ask, left).look(sight)
        except Busy:
            return None


def without(snapshot: Snapshot, leases: Iterable[Outranked]) -> Snapshot:
    """The fleet without the places of some leases."""
    return exchanged(snapshot, {name: () for one in leases for name in one.consumers})


def _alternatives(
    parts: Parts, chosen: Sequence[Outranked], proposal: Proposal, sight: Sight, answer: Look
) -> tuple[Preempted, ...]:
    """Those who give up their places, each with the next window in which it fits alone."""
    view = _afterwards(without(sight.snapshot, chosen), proposal, answer)
    gone = {one.ensemble.id for one in chosen}
    keepers = tuple(one for one in sight.keepers if one.id not in gone)
    budget = parts.limits.explanation_budget // _SHARE // len(chosen)
    return tuple(Preempted(one, _next(parts, one, view, keepers, budget)) for one in chosen)


def _afterwards(view: Snapshot, proposal: Proposal, answer: Look) -> Snapshot:
    """The fleet with the places that the new lease has, and those that others move to."""
    found = answer.found
    assert found is not None, "only an answer has places"
    uuid_of = {one.name: one.uuid for one in proposal.ensemble.members}
    request = found.built.request
    instead = {some[0].consumer: some for some in answer.staying.values()}
    for name in request.members:
        if name not in request.fixed:
            instead[uuid_of[name]] = tuple(
                Booking(uuid_of[name], provider, amounts, answer.period, BookingState.RESERVED)
                for provider, amounts in found.place(name).allocations.items()
            )
    for moved in answer.moved:
        instead |= moved.planned.bookings(moved.places)
    return exchanged(view, instead)


def _next(
    parts: Parts, one: Outranked, view: Snapshot, keepers: tuple[Ensemble, ...], budget: Duration
) -> Window | None:
    """The earliest window from its own on in which a lease fits, as things are then."""
    terms = one.lease.terms
    members = frozenset(member.name for member in one.ensemble.members)
    stand = replace(one.stand, places={}, bookings={}, status={})
    request = request_for(one.ensemble, stand, members, terms.occupied, Objective.SPREAD)
    length = terms.occupied.end - terms.occupied.start
    first = terms.occupied.start
    last = max(first, view.taken_at + parts.limits.horizon - length)
    ahead = Ahead(one.ensemble, request, view, keepers, seed=one.decision.solve.seed)
    try:
        sought = soonest(parts, ahead, Starts(first, last, length), time_limit=budget)
    except Busy:
        return None
    if sought.start is None:
        return None
    start = sought.start + terms.lead
    return Window(start, start + terms.period.end - terms.period.start, sought.proved)
