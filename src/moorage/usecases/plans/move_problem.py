"""States which servers may move where, as a problem for `engine.moves`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.period import FOREVER, Period
from moorage.domain.requests import EnsembleRequest
from moorage.domain.resources import amounts
from moorage.engine.joint.build import demand_of
from moorage.engine.joint.device_constraints import device_constraints
from moorage.engine.joint.host_filters import eligible_rows
from moorage.engine.joint.terrain import cut_terrain
from moorage.engine.moves.problem import MoveProblem
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.plans.ensemble_rules import rules_of_units
from moorage.usecases.plans.move_units import Newcomer
from moorage.usecases.plans.unit_hosts import UnitHosts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.resources import Amounts
    from moorage.engine.joint.device_constraints import DeviceConstraints
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.moves.problem import MovePlan
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.plans.move_units import MoveGoal, PlacedServer, Unit

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StatedMoves:
    """The problem, and what its rows and units stand for."""

    snapshot: Snapshot
    terrain: Terrain
    units: tuple[Unit, ...]
    roles: tuple[Role, ...]
    role_of: Ints
    """[U] index into `roles`."""
    devices: DeviceConstraints | None
    problem: MoveProblem

    @cached_property
    def rows(self) -> Ints:
        """[H] row of each host in the snapshot."""
        return np.array([self.snapshot.row_of[uuid] for uuid in self.terrain.uuids], dtype=np.int64)

    def allocations_of(self, plan: MovePlan) -> tuple[Mapping[str, Amounts] | None, ...]:
        """What each move's server takes of each provider of the target.

        None: devices there cannot serve it, beside what else arrives.
        """
        arrivals: dict[int, list[int]] = {}
        for unit, host in enumerate(plan.hosts.tolist()):
            if host >= 0 and host != self.problem.start[unit]:
                arrivals.setdefault(host, []).append(unit)
        assigned = {
            host: self._assigned(host, units)
            for host, units in arrivals.items()
            if self.devices is not None
        }
        found = []
        for step in plan.steps:
            beside = assigned.get(step.target, {})
            alone = {} if step.unit in beside else self._assigned(step.target, [step.unit])
            found.append({**alone, **beside}.get(step.unit))
        return tuple(found)

    def serves(self, host: int, units: Collection[int]) -> bool:
        """Whether the devices of a host can serve these units beside what is there now."""
        return len(self._assigned(host, units)) == len(units)

    def _assigned(self, host: int, units: Collection[int]) -> Mapping[int, Mapping[str, Amounts]]:
        """Unit -> what it takes of each provider of a host; empty if they cannot all be served."""
        if self.devices is None:
            uuid = self.terrain.uuids[host]
            return {
                one: MappingProxyType({uuid: self.roles[self.role_of[one]].resources})
                for one in units
            }
        proof = self.devices.proof
        rows = np.full(len(self.units), host, dtype=np.int64)
        answer = proof.assign(self.role_of, np.array(sorted(units), dtype=np.int64), rows)
        if answer.conflicts:
            return {}
        found = {}
        for unit in units:
            slots = proof.requirements[int(self.role_of[unit])].slots
            taken: dict[str, dict[str, int]] = {}
            for slot, at in zip(slots, answer.providers[unit], strict=True):
                for k, amount in slot.amounts:
                    mine = taken.setdefault(proof.devices.uuids[at], {})
                    name = proof.devices.classes[k]
                    mine[name] = mine.get(name, 0) + amount
            found[unit] = MappingProxyType({uuid: amounts(taken[uuid]) for uuid in sorted(taken)})
        return found


def state_moves(
    snapshot: Snapshot,
    exclusive: Sequence[Ensemble],
    servers: Sequence[PlacedServer],
    newcomers: Sequence[Newcomer],
    goal: MoveGoal,
    barred: Mapping[str, frozenset[int]] = MappingProxyType({}),
) -> StatedMoves:
    """State the problem of moving some servers, so that the goal is attained.

    Servers that are not among `servers` stay, and count as used capacity only. `exclusive` are the
    ensembles that keep others out, `barred` further hosts (rows in the snapshot) by consumer.
    """
    units: tuple[Unit, ...] = (*servers, *newcomers)
    ensembles = {one.ensemble.id: one.ensemble for one in units if one.ensemble is not None}
    roles, role_of = _distinct_roles(units)
    period = Period(snapshot.taken_at, FOREVER)
    terrain = cut_terrain(snapshot, _every_role(roles, ensembles.values(), snapshot, period))
    devices = _devices(terrain, roles, role_of)
    eligible = eligible_rows(terrain, list(roles), devices)
    rules, views = rules_of_units(snapshot, terrain, ensembles, units, goal)
    masks = UnitHosts(snapshot, terrain, exclusive, goal.closed | goal.leave, period)
    mask_of, every = masks.of(units, [eligible[roles[r].name] for r in role_of], views, barred)
    row_of = {uuid: row for row, uuid in enumerate(terrain.uuids)}
    start = [
        -1 if isinstance(one, Newcomer) else row_of.get(snapshot.uuids[one.host], -1)
        for one in units
    ]
    leave = np.zeros(terrain.host_count, dtype=np.bool_)
    leave[[row_of[snapshot.uuids[row]] for row in goal.leave if snapshot.uuids[row] in row_of]] = (
        True
    )
    problem = MoveProblem(
        free=terrain.free,
        amounts=np.array(
            [[demand_of(role, name) for name in terrain.classes] for role in roles], dtype=np.int64
        ).reshape(len(roles), len(terrain.classes))[role_of],
        start=np.array(start, dtype=np.int32),
        cost=np.array([_cost(one) for one in units], dtype=np.int64),
        movable=np.array(
            [isinstance(one, Newcomer) or not one.pinned for one in units], dtype=np.bool_
        ),
        mask_of=mask_of,
        masks=every,
        leave=leave,
        rules=tuple(rules),
    )
    stated = StatedMoves(snapshot, terrain, units, roles, role_of, devices, problem)
    if devices is None:
        return stated

    def fits(unit: int, host: int, there: Collection[int]) -> bool:
        """Whether devices serve a unit beside those that have arrived on a host.

        What leaves the host frees none: its devices count as used.
        """
        return stated.serves(host, {unit, *(one for one in there if start[one] != host)})

    return replace(stated, problem=replace(problem, fits=fits))


def _cost(unit: Unit) -> int:
    """The cost of moving a server: 1, and a little for each GiB that is copied."""
    if isinstance(unit, Newcomer):
        return 1
    return MOVE_COST + unit.memory_mb // 1024


MOVE_COST: Final = 1_000_000_000
"""The cost of a move beside its memory: one move less outweighs all memory."""


def _distinct_roles(
    units: Iterable[Unit],
) -> tuple[tuple[Role, ...], Ints]:
    """What units need, each once, under names of their own; and which of these each needs."""
    known: dict[object, int] = {}
    roles: list[Role] = []
    role_of = []
    for one in units:
        key = _form(one.role)
        if key not in known:
            known[key] = len(roles)
            roles.append(replace(one.role, name=f"r{len(roles)}", alternatives=(), share=None))
        role_of.append(known[key])
    return tuple(roles), np.array(role_of, dtype=np.int64)


def _form(role: Role) -> object:
    """A key that is equal for roles of which hosts need the same."""
    groups = tuple(
        (one.name, frozenset(one.resources.items()), one.required, one.forbidden, one.member_of)
        for one in role.groups
    )
    return (
        frozenset(role.resources.items()),
        role.kind,
        role.required,
        role.forbidden,
        role.root_required,
        role.member_of,
        groups,
        role.same_subtree,
        role.isolate and bool(groups),
        tuple(one.beside for one in role.groups),
    )


def _every_role(
    roles: tuple[Role, ...],
    ensembles: Iterable[Ensemble],
    snapshot: Snapshot,
    period: Period,
) -> EnsembleRequest:
    """The request for which a terrain is cut that has all that the roles and policies name."""
    every = tuple(ensembles)
    references = {
        other: hosts
        for one in every
        if one.references
        for other, hosts in locate_members(snapshot, one).references.items()
    }
    return EnsembleRequest(
        project_id="",
        roles=roles,
        members=(),
        policies=tuple(policy for one in every for policy in one.policies),
        period=period,
        references=MappingProxyType(references),
    )


def _devices(terrain: Terrain, roles: Sequence[Role], role_of: Ints) -> DeviceConstraints | None:
    if terrain.devices is None or not roles:
        return None
    moving = Counter({roles[r].name: int(n) for r, n in enumerate(np.bincount(role_of))})
    nothing: dict[str, frozenset[str]] = {role.name: frozenset() for role in roles}
    return device_constraints(terrain, terrain.devices, roles, moving, nothing)
