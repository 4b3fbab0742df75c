"""Leases that may give up their places for one of a higher priority, and what is written of those.

They are closed in the changeset that grants the other lease. Their ensembles stay, without places,
and stand on the waitlist for the same window where the leases stood; their owners are told that,
and when the same lease would fit next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.changes import DropBookings, PutDecision, PutEvent, PutLease
from moorage.domain.decisions import DecisionState, DecisionStep, decision_after
from moorage.domain.effects import EffectKind
from moorage.domain.errors import NotFound
from moorage.domain.events import Happened
from moorage.domain.leases import LeaseOutcome, LeaseState, LeaseStep, lease_after
from moorage.domain.period import format_instant
from moorage.domain.quotas import MOST_PRIORITY
from moorage.engine.overlay import exchanged
from moorage.usecases.leases import facts
from moorage.usecases.leases.checked import ended
from moorage.usecases.leases.edges import edges
from moorage.usecases.standing import standing
from moorage.usecases.waitlist.again import in_line_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Window
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.looking import Look
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Store
    from moorage.usecases.standing import Standing

MOST: Final = 50
"""Leases that are looked at for one request: of the lowest priorities, those that begin last."""
_WHY: Final = "it gave up its places for a lease of a higher priority"


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
        again = in_line_again(lease, self.of.ensemble, parts.ids.uuid(), now=now, why=_WHY)
        closed = replace(
            lease,
            state=lease_after(lease.state, LeaseStep.CLOSE),
            outcome=LeaseOutcome.PREEMPTED,
            waitlist_entry=again.entry.id,
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
        yield again
        yield from self._told(closed, now)

    def _told(self, closed: Lease, now: Instant) -> Iterator[Change]:
        """To its owner: that it is over, how it waits, and when it would fit; not for whom."""
        window = self.earliest
        body = {
            **facts.of_lease(closed),
            "status": closed.state.value,
            "outcome": LeaseOutcome.PREEMPTED.value,
            "priority": closed.terms.priority,
            "ensemble": closed.ensemble_id,
            "waitlist_entry": closed.waitlist_entry,
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
            same=facts.preemption(closed.id),
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


def without(snapshot: Snapshot, leases: Iterable[Outranked]) -> Snapshot:
    """The fleet without the places of some leases."""
    return exchanged(snapshot, {name: () for one in leases for name in one.consumers})
