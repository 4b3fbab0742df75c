"""Hosts that are leased whole are kept from the servers of others, in Placement.

Placement's API has no exclusive hosts: candidates on them are left out, and allocations there are
refused. Servers that are on the host already are not judged. Only hosts that an operator offers are
leased whole; the policy `exclusive` of other ensembles, which any tenant may state, closes no host
to Nova.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.errors import WrongState
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.reservables import WHOLE_HOST
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
    from moorage.usecases.ports import ExclusiveEnsembles, Store


def without_leased_hosts(
    store: Store, snapshot: Snapshot, query: CandidateQuery, lifetimes: Lifetimes
) -> CandidateQuery:
    """The query without the hosts that are leased whole at any time of the server's stay."""
    exclusive = _of_whole_hosts(store.exclusive_ensembles())
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


def check_leased_hosts(
    store: Store, writes: Sequence[ReplaceAllocations], notice: Duration
) -> int | None:
    """Check that no write gives a consumer a host that is leased whole to others in its stay.

    A preemptible server, which ends in time for a lease, is judged over its `notice` only. A host
    that any consumer of the request has already is not new: Nova exchanges allocations between a
    server and its migration.

    Returns:
        The revision of the exclusive ensembles, on which the commit relies; None if no host is
        leased whole.

    Raises:
        WrongState: one does.
    """
    known = store.exclusive_ensembles()
    exclusive = _of_whole_hosts(known)
    if not exclusive:
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
            _check(snapshot, exclusive, write, entered, notice)
    return known.revision


def _of_whole_hosts(known: ExclusiveEnsembles) -> list[Ensemble]:
    return [
        one
        for one in known.ensembles
        if any(WHOLE_HOST in group.resources for role in one.roles for group in role.groups)
    ]


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
                raise WrongState(f"{name} is leased to others during this server's stay")


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
