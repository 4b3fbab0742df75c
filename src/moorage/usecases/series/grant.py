"""Turn all held occurrences of a series into leases, in one transaction.

There is no search: the holds keep the places that were decided. Granting extends the holds, of all
occurrences or of none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

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
    ConcurrentUpdate,
    ConstraintViolated,
    HoldExpired,
    ProviderConflict,
)
from moorage.domain.leases import LeaseState, LeaseStep, lease_after
from moorage.domain.quotas import QuotaName
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.writes import member_consumer
from moorage.usecases.effects.lease_timers import timers_after_change
from moorage.usecases.preemption.eviction import warnings
from moorage.usecases.preemption.victims import displaced_for, last_end
from moorage.usecases.relocation.lease_promise import promise
from moorage.usecases.shared.quotas import bound_stored
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.quotas import QuotaDefaults
    from moorage.domain.series import Series
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.series.requests import OccurrencesRequest


def grant_occurrences(
    env: UseCaseEnvironment, kept: Sequence[Lease], series: Series, occurrences: OccurrencesRequest
) -> None:
    """Write a series and turn its held occurrences into leases.

    Args:
        env: ports and limits.
        kept: the held leases, marked if the operator's check has allowed them.
        series: as it will be stored.
        occurrences: the request for the occurrences.

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
            for change in _OccurrenceGrant(env, snapshot, one, occurrences.within, now).changes():
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


@dataclass(frozen=True, eq=False)
class _OccurrenceGrant:
    """One held occurrence that becomes a lease."""

    env: UseCaseEnvironment
    snapshot: Snapshot
    kept: Lease
    within: QuotaDefaults
    now: Instant

    def changes(self) -> Iterator[Change]:
        """The changes that turn the offer into a lease.

        Raises:
            HoldExpired: its hold has lapsed or was withdrawn.
        """
        store, now = self.env.store, self.now
        stored = store.lease(self.kept.id)
        if stored.offer is None or stored.state is not LeaseState.OFFERED:
            raise HoldExpired("the hold of an occurrence was withdrawn meanwhile")
        ensemble = store.ensemble(stored.ensemble_id)
        lease = replace(
            stored,
            state=lease_after(stored.state, LeaseStep.ACCEPT),
            offer=None,
            units=len(ensemble.members),
            checked=self.kept.checked,
            updated_at=now,
        )
        ends = promise(lease).expires_at
        decision = store.decision(stored.decision_id)
        lasting = replace(decision, expires_at=ends, hold=ends - now, updated_at=now)
        yield PutDecision(lasting, decision.generation, not_after=decision.expires_at)
        member_places = locate_members(self.snapshot, ensemble)
        for member in ensemble.members:
            if member.name not in member_places.bookings:
                raise HoldExpired("the hold of an occurrence has lapsed")
            lasting_there = tuple(
                replace(one, lapses_at=ends) for one in member_places.bookings[member.name]
            )
            yield PutBookings(member_consumer(ensemble, member), lasting_there)
        yield PutLease(lease, stored.generation, self.within)
        yield from timers_after_change(lease, self.env.ids, now)
        yield from self._told(decision)

    def _told(self, decision: Decision) -> Iterator[Change]:
        """Warnings for consumers displaced for the lease."""
        end = last_end(decision.created_at, decision.period.start, self.env.limits.notice)
        if end is not None:
            store = self.env.store
            silent = [one for one in displaced_for(store, self.kept.id) if one.end <= end]
            yield from warnings(store, silent, decision)
