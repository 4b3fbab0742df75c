"""Moves of members by Nova: to which hosts a member's server may move, and which moves are refused.

Nova moves a server (migration, evacuation, resize, unshelve) by writing its allocations on another
host; the old ones it gives to the migration first, so the old host is not known. Such a write must
not break required policies of the server's ensemble more than on the best host of the fleet, full
or not: policies that are broken wherever the server is forbid nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.changes import PutEnsemble, PutEvent
from moorage.domain.derived_events import misplaced_member
from moorage.domain.ensembles import ALL_PHASES, Phase
from moorage.domain.errors import WrongState
from moorage.domain.period import FOREVER, Period
from moorage.domain.refusal_commands import to_see_places
from moorage.domain.requests import Objective
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.host_violations import violations_by_host
from moorage.engine.joint.terrain import cut_terrain
from moorage.usecases.decide.member_places import bookings_of, host_row, locate_members
from moorage.usecases.decide.solution import request_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.changes import Change, ReplaceAllocations
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store

    Ints: TypeAlias = NDArray[np.int64]

PREFIX: Final = "req-"
"""Prefix of the server's UUID in the request id."""
_ANY: Final = np.iinfo(np.int64).max
"""The least excess of no host."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A member whose server enters another host."""

    ensemble: Ensemble
    """With its required policies of the steady phase only, for judging."""
    stored: Ensemble
    """As it is, for writing."""
    member: MemberName


@dataclass(frozen=True, slots=True)
class _Excess:
    """By how much a member violates policies on each of the hosts."""

    terrain: Terrain
    by_policy: Mapping[str, Ints]
    """Policy -> [H] excess."""

    @property
    def total(self) -> Ints:
        """[H] of all policies together."""
        found = np.zeros(self.terrain.host_count, dtype=np.int64)
        for each in self.by_policy.values():
            found += each
        return found

    def needless(self, row: int) -> list[str]:
        """The policies violated on a host, and less on the host where all together are least."""
        best = int(np.argmin(self.total))
        if self.total[row] == self.total[best]:
            return []
        return sorted(name for name, each in self.by_policy.items() if each[row] > each[best])


def with_hosts_for_move(
    store: Store, snapshot: Snapshot, query: CandidateQuery, request_id: str | None
) -> CandidateQuery:
    """The query with only the hosts to which the server that its request names may move.

    The request id of an action on a server is `req-` and the server's UUID: see
    `moorage.nova_filter`. A query with any other id stays as it is.
    """
    if request_id is None:
        return query
    anchors = query.anchors
    for move in _moves(store, request_id.lower().removeprefix(PREFIX)):
        excess = _excess(snapshot, move)
        rows = np.flatnonzero(excess.total == excess.total.min(initial=_ANY))
        least = frozenset(snapshot.row_of[excess.terrain.uuids[row]] for row in rows.tolist())
        anchors = least if anchors is None else anchors & least
    return replace(query, anchors=anchors)


def check_moves(
    store: Store, writes: Sequence[ReplaceAllocations], *, refuse: bool
) -> tuple[Change, ...]:
    """Check that no write moves a member to a host on which it breaks required policies.

    A host that any consumer of the request has already is not new: Nova exchanges allocations
    between a server and its migration.

    Returns:
        Changes to commit with the writes: the ensembles, so that two moves of members of one are
        not judged at the same time, and events of policies that are broken.

    Raises:
        WrongState: one does (`refuse`).
    """
    moves = [
        (move, write)
        for write in writes
        if write.allocations
        for move in _moves(store, write.consumer.uuid)
    ]
    if not moves:
        return ()
    snapshot = store.snapshot()
    had = {
        int(snapshot.root[snapshot.row_of[booking.provider]])
        for write in writes
        for booking in bookings_of(snapshot, write.consumer.uuid)
    }
    told: list[Change] = []
    touched: dict[str, PutEnsemble] = {}
    hosts: dict[str, dict[MemberName, str]] = {}
    for move, write in moves:
        rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
        entered = [row for row in rows if int(snapshot.root[row]) not in had]
        if not entered:
            continue
        stored, host = move.stored, snapshot.uuids[host_row(snapshot, entered)]
        moved = hosts.setdefault(stored.id, {})
        excess = _excess(snapshot, move, moved)
        told += _judged(excess, move, write.consumer.uuid, host, refuse=refuse)
        moved[move.member] = host
        touched[stored.id] = PutEnsemble(
            replace(stored, updated_at=snapshot.taken_at), stored.generation
        )
    return (*touched.values(), *told)


def _moves(store: Store, server: str) -> Iterator[_Move]:
    for ensemble in store.ensembles_of_server(server):
        steady = tuple(
            replace(one, phases=ALL_PHASES)
            for one in ensemble.policies
            if one.required and Phase.STEADY in one.phases
        )
        for member in ensemble.members:
            if steady and member.server_id == server:
                yield _Move(replace(ensemble, policies=steady), ensemble, member.name)


def _excess(
    snapshot: Snapshot, move: _Move, moved: Mapping[MemberName, str] = MappingProxyType({})
) -> _Excess:
    """By how much the member violates policies on each host, with the others where they are.

    Those in `moved`, which the same request moves, are on these hosts (UUIDs).
    """
    places = locate_members(snapshot, move.ensemble)
    forever = Period(snapshot.taken_at, FOREVER)
    anew = frozenset({move.member})
    request = request_for(move.ensemble, places, anew, forever, Objective.SPREAD)
    terrain = cut_terrain(snapshot, request)
    hosts = {**request.fixed, **moved}
    standing = {name: host for name, host in hosts.items() if host in terrain.row_of}
    named = (one.name for one in move.ensemble.members)
    members = tuple(one for one in named if one in standing or one == move.member)
    request = replace(request, members=members, fixed=MappingProxyType(standing))
    return _Excess(terrain, violations_by_host(build_on_terrain(request, terrain), move.member))


def _judged(
    excess: _Excess, move: _Move, server: str, host: str, *, refuse: bool
) -> Iterator[Change]:
    """The event of a member's move to a host, if it breaks policies.

    Raises:
        WrongState: it does (`refuse`).
    """
    row = excess.terrain.row_of.get(host)
    if row is None:
        return  # storage that hosts share
    broken = excess.needless(row)
    if not broken:
        return
    if refuse:
        raise WrongState(
            f"{move.member} of ensemble {move.ensemble.name} would break {' and '.join(broken)} on"
            f" {excess.terrain.names[row]}: choose another host, or remove the policy or"
            f" the member from the ensemble first{to_see_places(move.ensemble.name)}"
        )
    yield PutEvent(misplaced_member(move.ensemble, move.member, server, broken))
