"""Leases that a higher priority may preempt: their selection, closing and waitlist entry.

Preempted leases are closed in the changeset that grants the other lease. Their ensembles stay,
without places, and get a waitlist entry for the same window with the lease's place in the order.
Their owners are notified of that, and of the next window in which the lease would fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.changes import DropBookings, PutEntry, PutEvent, PutLease
from moorage.domain.decisions import DecisionState, DecisionStep
from moorage.domain.effects import EffectKind
from moorage.domain.events import DerivedEvent
from moorage.domain.leases import LeaseOutcome, LeaseState, LeaseStep, lease_after
from moorage.domain.period import format_instant
from moorage.domain.quotas import MOST_PRIORITY
from moorage.domain.waitlist import WaitlistEntry, needed
from moorage.usecases.decide.search_result import Concession
from moorage.usecases.decide.writes import step_decision
from moorage.usecases.effects import notifications
from moorage.usecases.effects.lease_timers import timers_after_change
from moorage.usecases.effects.notifications import checked_lease_end
from moorage.usecases.preemption.pending_leases import PendingLease, pending_lease

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.explain import Window
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.search_result import SearchResult
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment


def waitlist_reentry(
    lease: Lease, ensemble: Ensemble, entry_id: str, *, now: Instant, why: str
) -> PutEntry:
    """The waitlist entry of a lease that lost its places, for the same window.

    It must be written in the changeset that ends the lease, because its ensemble may have neither
    places nor another lease when the entry is tried. The entry keeps the lease's priority and its
    place in the order; no limit on a project's entries applies.

    `entry_id` is also the id of the lease that the entry may become; it differs from that of
    `lease`, which is given as before its end.
    """
    start = lease.terms.period.start
    return PutEntry(
        WaitlistEntry(
            id=entry_id,
            project_id=lease.project_id,
            user_id=lease.user_id,
            name=lease.name,
            terms=lease.terms,
            latest=start,
            until=start + 1,
            entered_at=lease.created_at,
            ensemble_id=ensemble.id,
            units=len(ensemble.members),
            classes=needed(ensemble),
            roles=frozenset({"member"}),
            any_priority=True,
            asked_from=lease.project_id,
            actions=lease.actions,
            annotations=lease.annotations,
            why=why,
            created_at=now,
            updated_at=now,
        ),
        None,
    )


MOST: Final = 50
"""How many leases are candidates for one request: the lowest priorities, then the latest starts."""
_WHY: Final = "it gave up its places for a lease of a higher priority"


@dataclass(frozen=True, eq=False)
class PreemptedLease(Concession):
    """A preempted lease, and the next window in which it would fit."""

    of: PendingLease
    earliest: Window | None = None

    def relied(self) -> Mapping[str, frozenset[str]]:
        """The lease's consumers, with the providers on which each must still be booked."""
        return self.of.booked_on(frozenset(self.of.member_places.bookings))

    def leases(self) -> tuple[str, ...]:
        """The id of the preempted lease."""
        return (self.of.lease.id,)

    def bookings(
        self,
        snapshot: Snapshot,  # noqa: ARG002 - whatever they were
    ) -> Mapping[str, tuple[Booking, ...]]:
        """No bookings for each of the lease's consumers."""
        return dict.fromkeys(self.of.consumers, ())

    def frees(self, env: Environment, now: Instant) -> Iterator[Change]:
        """Close the lease, drop its places and put it on the waitlist."""
        lease, decision = self.of.lease, self.of.decision
        again = waitlist_reentry(lease, self.of.ensemble, env.ids.uuid(), now=now, why=_WHY)
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
            yield step_decision(decision, DecisionStep.RELEASE, now)
        members = frozenset(one.uuid for one in self.of.ensemble.members)
        yield DropBookings(members, decision=decision.id)
        yield from checked_lease_end(closed, now)
        yield from timers_after_change(closed, env.ids, now)
        yield again
        yield from self._told(closed, now)

    def _told(self, closed: Lease, now: Instant) -> Iterator[Change]:
        """The notice and event to the owner of a preempted lease."""
        window = self.earliest
        body = {
            **notifications.lease_details(closed),
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
        yield notifications.idempotent_effect(
            EffectKind.NOTIFY,
            closed.id,
            closed.project_id,
            due=now,
            now=now,
            details={**body, "state": closed.state.value},
            same=notifications.preemption(closed.id),
        )
        generation = closed.generation + 1
        yield PutEvent(
            DerivedEvent("lease.preempted", closed.project_id, closed.id, generation, body)
        )


def may_yield_until(lease: Lease, notice: Duration | None, now: Instant) -> Instant | None:
    """The instant until which a lease may be preempted; None if it may not be, or no longer.

    For `notice` see `Limits.preemption_notice`.
    """
    if notice is None or lease.state is not LeaseState.PENDING:
        return None
    until = lease.terms.occupied.start - notice
    return until if now < until and lease.terms.priority < MOST_PRIORITY else None


def outrankable_leases(
    store: Store, snapshot: Snapshot, refused: SearchResult, *, below: int, since: Instant
) -> list[PendingLease]:
    """Leases of lower priority with places, in the problem's period, on hosts it could use.

    Only leases of a lower priority than `below`, whose bookings begin at `since` or later.
    """
    request, found = refused.built.request, dict[str, tuple[int, int]]()
    for host in _hosts(snapshot, refused):
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
    every = (pending_lease(store, snapshot, id_) for id_ in ordered)
    return [
        one
        for one in every
        if one is not None
        and one.lease.terms.priority < below
        # An offer has no priority before it is accepted, and soon expires.
        and one.lease.state is LeaseState.PENDING
    ]


def _hosts(snapshot: Snapshot, refused: SearchResult) -> list[int]:
    """Rows of hosts that could hold some of the refused members, or that staying members are on."""
    masks = list(refused.built.policy_view.eligible_rows.values())
    rows = np.flatnonzero(np.logical_or.reduce(masks)).tolist() if masks else []
    hosts = {snapshot.row_of[refused.built.terrain.uuids[row]] for row in rows}
    for some in refused.staying.values():
        hosts |= {int(snapshot.root[snapshot.row_of[one.provider]]) for one in some}
    return sorted(hosts)


def preempted_leases(concessions: Iterable[object]) -> tuple[PreemptedLease, ...]:
    """The preempted leases among all concessions of a decision."""
    return tuple(one for one in concessions if isinstance(one, PreemptedLease))
