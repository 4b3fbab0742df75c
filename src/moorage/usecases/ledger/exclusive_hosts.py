"""Hosts that exclusive ensembles and leases keep from the servers of others, in Placement.

Placement's API has no exclusive hosts: candidates on them are left out, and allocations there are
refused. Servers in places of the ensemble itself are not judged, nor are those that are on the host
already. A query names no project, so a host that is exclusive to one is left out for all of its
servers but those that take a held place or name their reservation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.errors import WrongState
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.usecases.claims.stay_terms import query_period
from moorage.usecases.decide.closed_hosts import providers_closed_to
from moorage.usecases.decide.member_places import bookings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.changes import ReplaceAllocations
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.claims.stay_terms import Lifetimes
    from moorage.usecases.ports import Store


def without_exclusive_hosts(
    store: Store, snapshot: Snapshot, query: CandidateQuery, lifetimes: Lifetimes
) -> CandidateQuery:
    """The query without the hosts that are exclusive at any time of the server's stay."""
    exclusive = store.exclusive_ensembles().ensembles
    if not exclusive:
        return query
    stay = query_period(snapshot, query, lifetimes)
    stranger = Occupant(consumer="", project_id="")
    closed = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for owner in exclusive:
        closed |= providers_closed_to(stranger, owner, snapshot, stay)
    roots = snapshot.roots
    if not closed[roots].any():
        return query
    return replace(query, anchors=frozenset(roots[~closed[roots]].tolist()))


def check_exclusive_hosts(
    store: Store, writes: Sequence[ReplaceAllocations], notice: Duration
) -> int | None:
    """Check that no write gives a consumer a host that is exclusive to others during its stay.

    A preemptible server, which ends in time for a lease, is judged over its `notice` only. A host
    that any consumer of the request has already is not new: Nova exchanges allocations between a
    server and its migration.

    Returns:
        The revision of the exclusive ensembles, on which the commit relies; None if there are none.

    Raises:
        WrongState: one does.
    """
    exclusive = store.exclusive_ensembles()
    if not exclusive.ensembles:
        return None
    snapshot = store.snapshot()
    had = {
        int(snapshot.root[snapshot.row_of[booking.provider]])
        for write in writes
        for booking in bookings_of(snapshot, write.consumer.uuid)
    }
    for write in writes:
        rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
        entered = sorted(set(snapshot.root[rows].tolist()) - had)
        if entered:
            _check(snapshot, exclusive.ensembles, write, entered, notice)
    return exclusive.revision


def _check(
    snapshot: Snapshot,
    exclusive: Sequence[Ensemble],
    write: ReplaceAllocations,
    entered: Sequence[int],
    notice: Duration,
) -> None:
    server = write.consumer
    stranger = Occupant(server.uuid, server.project_id)
    stay = Period(snapshot.taken_at, _end(snapshot, write, notice))
    for owner in exclusive:
        if any(server.uuid in {one.uuid, one.server_id} for one in owner.members):
            continue
        closed = providers_closed_to(stranger, owner, snapshot, stay)
        for row in entered:
            if closed[row]:
                name = snapshot.state(row).provider.name
                raise WrongState(f"{name} is exclusive to others during this server's stay")


def _end(snapshot: Snapshot, write: ReplaceAllocations, notice: Duration) -> Instant:
    """The end of the write's stay, or the earliest at which it can be evicted."""
    if write.until is not None:
        return write.until
    standing = bookings_of(snapshot, write.consumer.uuid)
    if standing:
        return max(one.period.end for one in standing)
    if write.stay.until is not None:
        return write.stay.until
    if write.stay.preemptible:
        return snapshot.taken_at + notice
    return FOREVER if write.stay.life is None else snapshot.taken_at + write.stay.life
