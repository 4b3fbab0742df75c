"""Moves of members by Nova: to which hosts a member's server may move, and which moves are refused.

Nova moves a server (migration, evacuation, resize, unshelve) by writing its allocations on another
host; the old ones it gives to the migration first, which the member then names. Such a write must
not break required policies of the server's ensemble more than on the best host of the fleet, full
or not: policies that are broken wherever the server is forbid nothing.

A policy of the phase `steady` must hold by the end of the move, with the others where they go. One
of the phase `transition` must hold at every moment of it: while others move, wherever they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.changes import PutEnsemble, PutEvent
from moorage.domain.derived_events import misplaced_member
from moorage.domain.ensembles import SETTLING, STANDING, Phase
from moorage.domain.errors import NotFound, WrongState
from moorage.domain.period import FOREVER, Period
from moorage.domain.refusal_commands import to_see_places
from moorage.domain.requests import Objective
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.host_filters import considered_rows
from moorage.engine.joint.host_violations import violations_by_host
from moorage.engine.joint.terrain import cut_terrain
from moorage.usecases.decide.member_places import bookings_of, host_row, locate_members
from moorage.usecases.decide.solution import request_for
from moorage.usecases.decide.transition import combinations, in_transition, moving_members
from moorage.usecases.ledger import plan_targets
from moorage.usecases.ledger.server_moves import hosts_before
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.lookup import host_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.changes import Change, Changeset, ReplaceAllocations
    from moorage.domain.ensembles import Ensemble, OnViolation, Role
    from moorage.domain.member_names import MemberName
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store
    from moorage.usecases.shared.allocation_write import AllocationWrite
    from moorage.usecases.shared.candidate_search import CandidateSearch

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

_IN_MOTION: Final = frozenset({Phase.TRANSITION})
_NAMED: Final = 5
"""Most moving members named in an error."""
_ANY: Final = np.iinfo(np.int64).max
"""The least excess of no host."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A member whose server enters another host."""

    ensemble: Ensemble
    """With its required policies that judge moves only."""
    stored: Ensemble
    """As it is, for writing."""
    member: MemberName


@dataclass(frozen=True, slots=True)
class _Excess:
    """By how much a member violates policies on each of the hosts."""

    terrain: Terrain
    of_kind: Bools
    """[H] hosts of the kind on which the member is placed: to no others may it go."""
    by_policy: Mapping[str, Ints]
    """Policy -> [H] excess."""
    moving: tuple[MemberName, ...] = ()
    """Other members whose servers move, too."""

    @property
    def total(self) -> Ints:
        """[H] of all policies together; `_ANY` on hosts of another kind."""
        found = np.zeros(self.terrain.host_count, dtype=np.int64)
        for each in self.by_policy.values():
            found += each
        return np.where(self.of_kind, found, _ANY)

    def needless(self, row: int) -> list[str]:
        """The policies violated on a host, and less on the host where all together are least."""
        best = int(np.argmin(self.total))
        if self.total[row] == self.total[best]:
            return []
        return sorted(name for name, each in self.by_policy.items() if each[row] > each[best])


def with_hosts_for_move(search: CandidateSearch) -> CandidateSearch:
    """The search on only the hosts to which a server may move, as far as policies refuse others."""
    asked, snapshot, anchors = search.asked, search.snapshot, search.query.anchors
    if asked.named is None:
        return search
    default, phases = asked.settings.misplaced_members, _phases(asked.store, snapshot, asked.named)
    for move in _moves(asked.store, asked.named, phases, only_refusing=default):
        excess = _excess(snapshot, move)
        least = excess.total.min(initial=_ANY)
        rows = np.flatnonzero(excess.of_kind & (excess.total == least))
        hosts = frozenset(snapshot.row_of[excess.terrain.uuids[row]] for row in rows.tolist())
        anchors = hosts if anchors is None else anchors & hosts
    return replace(search, query=replace(search.query, anchors=anchors))


def refused_move(
    env: UseCaseEnvironment, caller: Caller, host: str, server: str, *, planned: bool = False
) -> str | None:
    """Why a server's move to a host (by name or UUID) would be refused; None if it would not be.

    Of one that is `planned`, see `_phases`.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host, or no such server: nothing is booked for it, and it is no member's.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    uuid = snapshot.uuids[host_named(snapshot, host)]
    there = bookings_of(snapshot, server)
    if not there and not env.store.ensembles_of_server(server):
        raise NotFound("server", server)
    if any(
        int(snapshot.root[snapshot.row_of[one.provider]]) == snapshot.row_of[uuid] for one in there
    ):
        return None
    default, phases = env.limits.misplaced_members, _IN_MOTION if planned else SETTLING
    for move in _moves(env.store, server, phases, only_refusing=default):
        excess = _excess(snapshot, move)
        row = excess.terrain.row_of.get(uuid)
        if row is not None and excess.of_kind[row] and (broken := excess.needless(row)):
            return _refusal(excess, move, row, broken, default)
    return None


@dataclass(frozen=True, slots=True)
class KeepingHosts:
    """The hosts on which a member keeps its required policies, the others being where they are."""

    rows: frozenset[int]
    """Of the snapshot."""
    refusals: Mapping[int, tuple[str, ...]]
    """Row of each other host -> the policies that the member breaks there."""


def keeping_hosts(snapshot: Snapshot, ensemble: Ensemble, member: MemberName) -> KeepingHosts:
    """The hosts on which a member without a server keeps the policies as well as on any host."""
    judging = tuple(
        one for one in ensemble.policies if one.required and not SETTLING.isdisjoint(one.phases)
    )
    move = _Move(replace(ensemble, policies=judging), ensemble, member)
    excess = _excess(snapshot, move)
    least = excess.total.min(initial=_ANY)
    rows = [snapshot.row_of[uuid] for uuid in excess.terrain.uuids]
    keeping = frozenset(
        rows[one] for one in np.flatnonzero(excess.of_kind & (excess.total == least)).tolist()
    )
    others = {
        row: tuple(excess.needless(one)) for one, row in enumerate(rows) if row not in keeping
    }
    return KeepingHosts(keeping, others)


def judge(asked: AllocationWrite, changeset: Changeset) -> Changeset:
    """Refuse writes that move a member to a host on which it breaks required policies.

    A host that the server has already, or takes over from its migration, is not new.

    Returns:
        The changeset, with the ensembles, so that two moves of members of one are not judged at the
        same time, and with events of policies that are broken.

    Raises:
        WrongState: one does, and a policy that it breaks refuses that, by itself or by the setting.
    """
    store, default = asked.store, asked.settings.misplaced_members
    touched = _given_to_migrations(store, asked.writes)
    snapshot = store.snapshot()
    moves = [
        (move, write)
        for write in asked.writes
        if write.allocations
        for move in _moves(
            store,
            write.consumer.uuid,
            _phases(store, snapshot, write.consumer.uuid, write.allocations),
        )
    ]
    told: list[Change] = []
    hosts: dict[str, dict[MemberName, str]] = {}
    for move, write in moves:
        rows = [snapshot.row_of[uuid] for uuid in write.allocations if uuid in snapshot.row_of]
        had = hosts_before(snapshot, write)
        entered = [row for row in rows if int(snapshot.root[row]) not in had]
        if not entered:
            continue
        stored, host = move.stored, snapshot.uuids[host_row(snapshot, entered)]
        moved = hosts.setdefault(stored.id, {})
        excess = _excess(snapshot, move, moved)
        told += _judged(excess, move, write.consumer.uuid, host, default)
        moved[move.member] = host
        touched.setdefault(
            stored.id,
            PutEnsemble(replace(stored, updated_at=snapshot.taken_at), stored.generation),
        )
    changes = (*changeset.changes, *touched.values(), *told)
    return replace(changeset, changes=changes, expects_no_members=False)


def _phases(
    store: Store, snapshot: Snapshot, server: str, entered: Iterable[str] = ()
) -> frozenset[Phase]:
    """The phases of the policies that judge a move of the server.

    A plan was judged as a whole: the policies of the phase `steady` hold when all its moves are
    done, such as those of a group that goes one by one. `entered` are the providers on which the
    server gets allocations; none: they are not known yet.
    """
    planned = plan_targets.is_moved_by_plan(store, snapshot, server, entered)
    return _IN_MOTION if planned else SETTLING


def _moves(
    store: Store,
    server: str,
    phases: frozenset[Phase],
    *,
    only_refusing: OnViolation | None = None,
) -> Iterator[_Move]:
    """The member, for each of its ensembles with policies that judge moves, or that refuse them."""
    for ensemble in store.ensembles_of_server(server):
        judging = tuple(
            replace(one, phases=one.phases & phases)
            for one in ensemble.policies
            if one.required
            and not phases.isdisjoint(one.phases)
            and (only_refusing is None or one.refuses(only_refusing))
        )
        for member in ensemble.members:
            if judging and member.server_id == server:
                yield _Move(replace(ensemble, policies=judging), ensemble, member.name)


def _given_to_migrations(
    store: Store, writes: Sequence[ReplaceAllocations]
) -> dict[str, PutEnsemble]:
    """By id, the ensembles of members whose servers begin to move; they name their migrations."""
    found: dict[str, PutEnsemble] = {}
    for consumer in (one.consumer for one in writes if one.consumer.migration_of is not None):
        for ensemble in store.ensembles_of_server(str(consumer.migration_of)):
            if in_transition(ensemble):
                members = tuple(
                    replace(one, migration=consumer.uuid)
                    if one.server_id == consumer.migration_of
                    else one
                    for one in ensemble.members
                )
                found[ensemble.id] = PutEnsemble(
                    replace(ensemble, members=members, updated_at=store.now()), ensemble.generation
                )
    return found


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
    of_kind = considered_rows(terrain, (_chosen(move),))

    def judged(hosts: Mapping[MemberName, str], phases: frozenset[Phase]) -> Mapping[str, Ints]:
        standing = {name: host for name, host in hosts.items() if host in terrain.row_of}
        named = (one.name for one in move.ensemble.members)
        members = tuple(one for one in named if one in standing or one == move.member)
        asked = replace(request, members=members, fixed=MappingProxyType(standing), phases=phases)
        return violations_by_host(build_on_terrain(asked, terrain), move.member)

    by_the_end = {**request.fixed, **moved}
    moving: dict[MemberName, tuple[str, ...]] = {}
    if in_transition(move.ensemble):
        moving = {**moving_members(snapshot, move.stored, moved)}
        moving.pop(move.member, None)
    if not moving:
        return _Excess(terrain, of_kind, judged(by_the_end, SETTLING))
    worst = dict(judged(by_the_end, STANDING))
    for hosts in combinations(moving):
        for name, excess in judged({**by_the_end, **hosts}, _IN_MOTION).items():
            worst[name] = np.maximum(worst[name], excess) if name in worst else excess
    return _Excess(terrain, of_kind, worst, tuple(moving))


def _chosen(move: _Move) -> Role:
    """What the member is, of its role's choices."""
    role = move.ensemble.role(move.member.role)
    return replace(role.choices[move.ensemble.member(move.member).choice], share=role.share)


def _judged(
    excess: _Excess, move: _Move, server: str, host: str, default: OnViolation
) -> Iterator[Change]:
    """The event of a member's move to a host, if it breaks policies.

    Raises:
        WrongState: it does, and one of them refuses that.
    """
    row = excess.terrain.row_of.get(host)
    if row is None or not excess.of_kind[row]:
        return  # storage that hosts share: the server itself stays where it is
    broken = excess.needless(row)
    if not broken:
        return
    if (refusal := _refusal(excess, move, row, broken, default)) is not None:
        raise WrongState(refusal)
    yield PutEvent(misplaced_member(move.ensemble, move.member, server, broken))


def _refusal(
    excess: _Excess, move: _Move, row: int, broken: Sequence[str], default: OnViolation
) -> str | None:
    """Why a move that breaks policies is refused; None if none of these refuses it."""
    refusing = {one.name for one in move.stored.policies if one.refuses(default)}
    refused = [name for name in broken if name in refusing]
    if not refused:
        return None
    others = ", ".join(map(str, excess.moving[:_NAMED]))
    meanwhile = f" while {others} still moves" if others else ""
    return (
        f"{move.member} of ensemble {move.ensemble.name} would break {' and '.join(refused)} on"
        f" {excess.terrain.names[row]}{meanwhile}: choose another host, or remove the policy or"
        f" the member from the ensemble first{to_see_places(move.ensemble.name)}"
    )
