"""Later ends for displaced consumers, when the lease they ended for is cancelled or moves."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.changes import Changeset, EndBookings
from moorage.domain.errors import CapacityExceeded, ConcurrentUpdate, ProviderConflict
from moorage.domain.period import FOREVER, Period
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.writes import hold_bookings
from moorage.usecases.preemption.eviction import later_end_notice
from moorage.usecases.preemption.exclusive_leases import end_before_exclusive, exclusive_periods
from moorage.usecases.preemption.victims import NotALease, by_end, displaced_for, required_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.domain.placement import Occupant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.decision import DecisionBasis
    from moorage.usecases.decide.request import ForcedEnd, Proposal
    from moorage.usecases.decide.search_result import DisplacedConsumer
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.environment import Environment


def restored_ends(  # noqa: PLR0913, PLR0917 - who gives back, in what, and what changes besides
    store: Store,
    snapshot: Snapshot,
    lease_ids: Iterable[str],
    instead: Mapping[str, tuple[Booking, ...]],
    notice: Duration,
    unstored: Mapping[str, str | None] = MappingProxyType({}),
    changed: Ensemble | None = None,
) -> Iterator[Change]:
    """Later ends for consumers displaced for leases that change or end.

    Those displaced for one lease are served by age, the oldest first. Each gets its declared end,
    or the latest end before a lease needs the capacity, before an exclusive lease closes one of its
    hosts, or before one of its hosts is planned to be away. It is notified if it was warned. An
    overrun consumer gets nothing. A due eviction reads the end again.

    The caller's changeset must rely on the revision of exclusive ensembles, or one granted
    meanwhile would be missed.

    The snapshot is from before the change; `instead` are members' bookings after it, by consumer.
    `unstored` has the leases' ids of decisions that are not stored yet. `changed` is the ensemble
    of a changed lease, as it will be stored.
    """

    def lease_of(of: str) -> str | None:
        return unstored[of] if of in unstored else store.decision(of).lease_id

    now = snapshot.taken_at
    view = with_bookings(snapshot, instead)
    yielding = [(of, one) for of in lease_ids for one in reversed(displaced_for(store, of))]
    exclusive = _exclusive(store, view, changed) if yielding else ()
    for lease_id, one in yielding:
        if one.end <= now or one.declared_end <= one.end:
            continue
        mine = [
            booking
            for row in view.rows_of_consumer(one.consumer)
            for booking in view.bookings_of(row)
            if booking.consumer == one.consumer
        ]
        bare = with_bookings(view, {one.consumer: ()})
        taken = {booking.provider: booking.amounts for booking in mine}
        last = min(one.declared_end, _there_until(view, mine))
        if last <= one.end:
            continue
        try:
            crowded = required_end(lease_of, bare, taken, Period(now, last), notice)
            shut = _shut_out(lease_of, view, one, mine, exclusive, notice)
        except NotALease:
            continue
        bounds = (each for each in (crowded, shut) if each is not None and each.end <= last)
        found = min(bounds, key=by_end, default=None)
        end = last if found is None else found.end
        if end <= one.end:
            continue
        kept = tuple(replace(b, period=Period(b.period.start, end)) for b in mine)
        view = with_bookings(bare, {one.consumer: kept})
        # A planned absence alone bounds the end: keep the declared end.
        yields_to = lease_id if end < one.declared_end else None
        if found is not None:
            yields_to = found.yields_to
        yield EndBookings(frozenset({one.consumer}), end, yields_to)
        yield from later_end_notice(store, replace(one, end=end), yields_to, now)


def ends_restored_by(
    env: Environment, proposal: Proposal, decision: Decision, answer: DecisionBasis
) -> Iterator[Change]:
    """Later ends for consumers displaced for leases that a decision changes, moves or ends.

    Consumers displaced by the decision itself, or for a lease that it moves, get nothing. All
    leases are handled together, so that capacity freed by one and taken by another is not given
    back.
    """
    concessions = answer.result.concessions
    leases = [lease for one in concessions for lease in one.leases()]
    gives_back = proposal.promise is not None and proposal.promise.gives_back
    if gives_back and decision.lease_id is not None:
        leases.insert(0, decision.lease_id)
    if not leases:
        return
    ensemble, fixed = proposal.ensemble, answer.placement.built.request.fixed
    instead = {
        one.uuid: hold_bookings(one, decision.places[one.name], decision)
        for one in ensemble.members
        if one.name in decision.places and one.name not in fixed
    }
    instead |= {some[0].consumer: some for some in answer.result.staying.values()}
    instead |= dict.fromkeys(proposal.freed, ())
    without_place = (one for one in ensemble.members if one.name not in decision.places)
    instead |= {one.server_id or one.uuid: () for one in without_place}
    for one in concessions:
        instead |= one.bookings(answer.snapshot)
    later = restored_ends(
        env.store,
        answer.snapshot,
        leases,
        instead,
        env.limits.notice,
        {decision.id: decision.lease_id},
        ensemble if gives_back else None,
    )
    ending = {one.consumer for one in answer.result.displaced}
    for change in later:
        if not (isinstance(change, EndBookings) and change.consumers & ending):
            yield change


def commit_with_restored_ends(
    env: Environment,
    lease: Lease,
    changes: tuple[Change, ...],
    freed: Callable[[Snapshot], Iterable[str]],
) -> None:
    """Commit changes that end a lease, with later ends for the consumers displaced for it.

    `freed` returns the consumers whose bookings the changes drop; the lease is as before them.

    Raises:
        ConcurrentUpdate: a booking has taken capacity that a later end needs: read again.
        MoorageError: other errors of the commit.
    """
    store = env.store
    snapshot = store.snapshot()
    instead = dict.fromkeys(freed(snapshot), ())
    back = tuple(restored_ends(store, snapshot, [lease.id], instead, env.limits.notice))
    relied = snapshot.exclusive_revision if back else None
    try:
        store.commit(Changeset((*changes, *back), exclusive_revision=relied))
    except (CapacityExceeded, ProviderConflict) as overtaken:
        raise ConcurrentUpdate(overtaken.message, subject=lease.id) from overtaken


def _there_until(view: Snapshot, mine: Sequence[Booking]) -> Instant:
    """The first planned absence of the bookings' hosts, which bounds a later end."""
    down = (one for b in mine for one in view.state(view.row_of[b.provider]).down)
    return min((one.start for one in down if one.end > view.taken_at), default=FOREVER)


def _exclusive(store: Store, snapshot: Snapshot, changed: Ensemble | None) -> tuple[Ensemble, ...]:
    """The exclusive ensembles, with the changed one as it will be."""
    stored = tuple(store.exclusive_ensembles(snapshot).ensembles)
    if changed is None or not changed.keeps_others_out:
        return stored
    return (*(one for one in stored if one.id != changed.id), changed)


def _shut_out(
    lease_of: Callable[[str], str | None],
    view: Snapshot,
    one: DisplacedConsumer,
    mine: Sequence[Booking],
    exclusive: Iterable[Ensemble],
    notice: Duration,
) -> ForcedEnd | None:
    """The latest end before an exclusive lease closes one of the consumer's hosts.

    Raises:
        NotALease: a host is closed by an ensemble without a lease, or is closed already.
    """
    rows = [view.row_of[booking.provider] for booking in mine]
    stranger = _stranger(view, one.consumer, rows)
    closed = exclusive_periods(
        lease_of, view, stranger, exclusive, Period(one.end, one.declared_end)
    )
    return end_before_exclusive(closed, np.unique(view.root[rows]).tolist(), view.taken_at, notice)


def _stranger(view: Snapshot, consumer: str, rows: Iterable[int]) -> Occupant:
    every = (one for row in rows for one in view.state(row).occupants)
    return next(one for one in every if one.consumer == consumer)
