"""Leases that keep others off their hosts, and the ends of stays before they start.

A lease whose policy keeps others off its hosts does so in its period. Before it, whoever ends in
time may be there: who is bounded by its own end, who is preemptible with an end for the lease, as
on capacity that is promised. Who may not be warned in time stays away, as does every preemptible
one where the lease lets none in before it starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from moorage.domain.leases import LeaseState, Yielding
from moorage.usecases.decide.closed_hosts import closed_hosts, exclusive_hosts, providers_closed_to
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.decide.request import StayEnd
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
    """Hosts that an exclusive ensemble has to itself for a time."""

    closed: Bools
    """[P] providers that it keeps from a stranger at some time of a stay."""
    start: Instant
    """When it comes, or came."""
    lease: str | None
    """For which lease; None: it is no lease that keeps them."""
    on: frozenset[str]
    """Providers on which the keeper is then."""


def exclusive_periods(
    lease_of: Callable[[str], str | None],
    view: Snapshot,
    stranger: Occupant,
    keepers: Iterable[Ensemble],
    stay: Period,
) -> Iterator[ExclusivePeriod]:
    """What keeps a stranger off some hosts during a stay; its own ensemble does not.

    Args:
        lease_of: the lease of a decision, by their ids.
        view: the fleet.
        stranger: who would stay.
        keepers: ensembles that keep others out.
        stay: as it is wished for.
    """
    now = view.taken_at
    for keeper in keepers:
        consumers = {name for m in keeper.members for name in (m.uuid, m.server_id) if name}
        if stranger.consumer in consumers:
            continue
        closed = providers_closed_to(stranger, keeper, view, stay)
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
    ahead: Iterable[ExclusivePeriod], hosts: Sequence[int], now: Instant, notice: Duration
) -> StayEnd | None:
    """Where a stay on these hosts has to end because a lease keeps others off one of them.

    Args:
        ahead: see `exclusive_periods`.
        hosts: rows.
        now: the instant of the fleet.
        notice: see `last_end`.

    Returns:
        None where nobody keeps others off them.

    Raises:
        NoLease: what does is no lease, is there already, or comes too soon to warn anybody.
    """
    found: list[StayEnd] = []
    for one in ahead:
        if not one.closed[hosts].any():
            continue
        end = last_end(now, one.start, notice)
        if one.lease is None or end is None:
            raise NotALease
        found.append(StayEnd(end, one.lease, one.on))
    return min(found, key=by_end, default=None)


def closed_before_run(
    store: Store,
    keepers: Iterable[Ensemble],
    snapshot: Snapshot,
    newcomer: Ensemble,
    stay: Period,
    run: Period,
) -> Mapping[str, frozenset[str]]:
    """`closed_hosts` for a preemptible newcomer, which may have to go after `run`.

    Args:
        store: where leases are.
        keepers: ensembles that keep others out.
        snapshot: the fleet.
        newcomer: whose members are placed.
        stay: how long they would like to be there.
        run: the beginning of that, which they must have.
    """
    closed = closed_hosts(keepers, snapshot, newcomer, run)
    if run == stay:
        return closed
    strict = [one for one in keepers if one.id != newcomer.id and not _lets_in(store, one)]
    if not strict:
        return closed
    never = exclusive_hosts(strict, snapshot, newcomer, stay)
    both = {key: closed.get(key, frozenset()) | hosts for key, hosts in never.items()}
    return {**closed, **both}


def _lets_in(store: Store, keeper: Ensemble) -> bool:
    """Whether preemptible users may be where the ensemble's leases keep others out, before."""
    return all(
        Yielding.PREEMPTIBLE in one.terms.before_start
        for one in store.leases_of(keeper.id)
        if one.state is not LeaseState.CLOSED
    )
