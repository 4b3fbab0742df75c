"""Exclusive leases: the hosts they close to others, and the ends of stays before they start.

An exclusive lease, whose policy keeps others off its hosts, does so during its period. Before it,
consumers that end in time may be on these hosts: those with an end of their own, and preemptible
ones with an end for the lease, as on all promised capacity. Preemptible consumers that cannot be
warned in time are kept off, and all of them if the lease's terms allow no preemptible use before
its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from moorage.domain.leases import LeaseState, Yielding
from moorage.usecases.decide.closed_hosts import closed_hosts, exclusive_hosts, providers_closed_to
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.request import ForcedEnd
from moorage.usecases.preemption.victims import NotALease, by_end, last_end, lease_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.placement import Occupant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store

    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ExclusivePeriod:
    """The hosts that an exclusive ensemble closes to others, and since when."""

    closed: Bools
    """[P] Providers that are closed to a stranger at some time of its stay."""
    start: Instant
    """The start of the ensemble's bookings; it may be past."""
    lease: str | None
    """The ensemble's lease; None if its bookings have none."""
    on: frozenset[str]
    """Providers that the ensemble is booked on."""


def exclusive_periods(
    lease_of: Callable[[str], str | None],
    view: Snapshot,
    stranger: Occupant,
    exclusive: Iterable[Ensemble],
    stay: Period,
) -> Iterator[ExclusivePeriod]:
    """The ensembles that close hosts to a stranger during a stay, other than its own ensemble.

    `lease_of` returns the id of a decision's lease, or None.
    """
    now = view.taken_at
    for owner in exclusive:
        consumers = {name for m in owner.members for name in (m.uuid, m.server_id) if name}
        if stranger.consumer in consumers:
            continue
        closed = providers_closed_to(stranger, owner, view, stay)
        if not closed.any():
            continue
        there = [
            booking
            for consumer in consumers
            for booking in bookings_of(view, consumer)
            if booking.period.start < stay.end and booking.occupies_until(now) > stay.start
        ]
        start = min(booking.period.start for booking in there)
        on = frozenset(booking.provider for booking in there)
        yield ExclusivePeriod(closed, start, lease_from(lease_of, there), on)


def end_before_exclusive(
    exclusive: Iterable[ExclusivePeriod], hosts: Sequence[int], now: Instant, notice: Duration
) -> ForcedEnd | None:
    """The latest end of a stay on these hosts before an exclusive lease closes one of them.

    For `exclusive` see `exclusive_periods`, for `notice` `last_end`; `hosts` are rows of the
    snapshot.

    Returns:
        None if no host is closed during the stay.

    Raises:
        NotALease: a host is closed by an ensemble without a lease, is closed already, or too soon
            to give notice.
    """
    found: list[ForcedEnd] = []
    for one in exclusive:
        if not one.closed[hosts].any():
            continue
        end = last_end(now, one.start, notice)
        if one.lease is None or end is None:
            raise NotALease
        found.append(ForcedEnd(end, one.lease, one.on))
    return min(found, key=by_end, default=None)


def closed_before_run(
    store: Store,
    exclusive: Iterable[Ensemble],
    snapshot: Snapshot,
    newcomer: Ensemble,
    stay: Period,
    run: Period,
) -> Mapping[str, frozenset[str]]:
    """`closed_hosts` for a preemptible ensemble, which may have to end after `run`.

    `run` is the first part of the stay, which is required.
    """
    closed = closed_hosts(exclusive, snapshot, newcomer, run)
    if run == stay:
        return closed
    strict = [one for one in exclusive if one.id != newcomer.id and not _lets_in(store, one)]
    if not strict:
        return closed
    never = exclusive_hosts(strict, snapshot, newcomer, stay)
    both = {key: closed.get(key, frozenset()) | hosts for key, hosts in never.items()}
    return {**closed, **both}


def _lets_in(store: Store, owner: Ensemble) -> bool:
    """Whether all open leases of the ensemble allow preemptible servers before their start."""
    return all(
        Yielding.PREEMPTIBLE in one.terms.before_start
        for one in store.leases_of(owner.id)
        if one.state is not LeaseState.CLOSED
    )
