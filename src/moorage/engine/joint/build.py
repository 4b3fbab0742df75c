"""Builds a joint problem from a request and a terrain, with a reason for every host left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.domain.errors import InvalidDescription
from moorage.engine.joint.alternatives import alternatives_of
from moorage.engine.joint.cost import preference_scale
from moorage.engine.joint.device_constraints import device_constraints
from moorage.engine.joint.host_filters import (
    NO_CLOSED_HOSTS,
    closed_to,
    considered_rows,
    eligible_rows,
    filters_by_role,
    rejected_rows,
)
from moorage.engine.joint.policy_rules import fence_rules, resolve_policies
from moorage.engine.joint.policy_view import TerrainView
from moorage.engine.joint.problem import Problem
from moorage.engine.joint.standing_violations import former_edges, relax_for_standing
from moorage.engine.joint.terrain import cut_terrain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.topology import Level
    from moorage.engine.joint.alternatives import Alternatives
    from moorage.engine.joint.device_constraints import DeviceConstraints
    from moorage.engine.joint.host_filters import Closed
    from moorage.engine.joint.standing_violations import FormerEdges, StandingViolation
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.primitives import Primitive
    from moorage.policies.rules import PolicyRule

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BuiltProblem:
    """A joint problem with the request, terrain and policies it was built from.

    This is what verifying, explaining and saving a problem needs; solvers get `problem` only.
    """

    request: EnsembleRequest
    terrain: Terrain
    closed: Closed
    """Reason id -> UUIDs of providers that may not be used, such as those exclusive to another
    ensemble: no member is there, and they lend nothing. Under the key `closed_to_role(role,
    reason)`: those closed to one role only."""
    policy_view: TerrainView
    rules: tuple[PolicyRule, ...]
    problem: Problem
    alternatives: Alternatives | None
    """How the members of `problem` stand for those of `request`; None: they are the same."""
    former: Mapping[str, FormerEdges]
    """Required policy -> its edges before the decision, if members are fixed."""
    standing: Mapping[str, StandingViolation]
    """Required policy -> its violation by fixed members; see `joint.standing_violations`."""
    of_kind: Bools
    """[H] hosts of a kind on which members to place go; no others are rejected."""
    rejected: Mapping[str, int]
    """Reason id -> number of hosts it rejects for some role with members to place."""

    @property
    def considered(self) -> int:
        """How many hosts are of a kind on which members to place go."""
        return int(self.of_kind.sum())


def build(
    request: EnsembleRequest, snapshot: Snapshot, *, closed: Closed = NO_CLOSED_HOSTS
) -> BuiltProblem:
    """Build the joint problem of a request on the fleet of a snapshot.

    The request must name each member's role; for `closed` see `BuiltProblem.closed`.

    Raises:
        UnknownName: a policy names an unknown level or tree.
        InvalidDescription: the host of a fixed member is not among the hosts.
        UnknownPolicy, InvalidDescription: a policy is of an unknown type or invalid.
    """
    return build_on_terrain(request, cut_terrain(snapshot, request), closed=closed)


def build_on_terrain(
    request: EnsembleRequest,
    terrain: Terrain,
    *,
    closed: Closed = NO_CLOSED_HOSTS,
    policy_view: TerrainView | None = None,
) -> BuiltProblem:
    """Build the joint problem of a request on a terrain made for it or for a larger request.

    If `policy_view` is given, it decides eligibility instead of the request's own roles and fences.
    """
    alternatives = alternatives_of(request)
    plain = request if alternatives is None else alternatives.plain
    roles = _used_roles(plain)
    devices = _device_constraints(plain, terrain, roles, closed)
    passes = filters_by_role(terrain, roles, devices, closed)
    resolved = resolve_policies(request, terrain.topology)
    policy_view = policy_view or _policy_view(
        request, terrain, roles, lambda: devices, alternatives, resolved
    )
    posted = tuple(_primitives(resolved, policy_view))
    former = former_edges(resolved, request) if request.fixed else {}
    standing: Mapping[str, StandingViolation] = {}
    if alternatives is not None:
        posted, standing = _posted_for_alternatives(request, terrain, alternatives, posted, former)
    problem = _problem(
        plain,
        terrain,
        roles,
        allowed=[passes[role.name].mask for role in roles],
        primitives=posted,
        devices=devices,
    )
    if alternatives is None:
        problem, standing = relax_for_standing(problem, former)
    else:
        problem = alternatives.with_absent_row(problem)
    moving = {member.role for member in plain.members if member not in plain.fixed}
    return BuiltProblem(
        request=request,
        terrain=terrain,
        closed=closed,
        policy_view=policy_view,
        rules=resolved,
        problem=_with_scaled_weights(problem),
        alternatives=alternatives,
        former=former,
        standing=standing,
        of_kind=considered_rows(terrain, [role for role in roles if role.name in moving]),
        rejected=rejected_rows({passes[role.name] for role in roles if role.name in moving}),
    )


def policy_view_of(
    request: EnsembleRequest, terrain: Terrain, *, larger: TerrainView | None = None
) -> TerrainView:
    """The policies' view of the fleet for a request, or for a part of the request of `larger`."""
    alternatives = alternatives_of(request)
    plain = request if alternatives is None else alternatives.plain
    roles = _used_roles(plain)
    resolved = resolve_policies(request, terrain.topology)
    return _policy_view(
        request,
        terrain,
        roles,
        lambda: _device_constraints(plain, terrain, roles, NO_CLOSED_HOSTS),
        alternatives,
        resolved,
        larger,
    )


def _policy_view(  # noqa: PLR0913, PLR0917 - the parts of a problem that policies see
    request: EnsembleRequest,
    terrain: Terrain,
    roles: list[Role],
    devices: Callable[[], DeviceConstraints | None],
    alternatives: Alternatives | None,
    resolved: tuple[PolicyRule, ...],
    larger: TerrainView | None = None,
) -> TerrainView:
    def eligible() -> Mapping[str, Bools]:
        found = eligible_rows(terrain, roles, devices())
        if alternatives is None:
            return found
        return {
            role: np.logical_or.reduce([found[name] for name in names if name in found])
            for role, names in alternatives.roles.items()
            if any(name in found for name in names)
        }

    return TerrainView(
        terrain=terrain,
        project_id=request.project_id,
        own=request.own_consumers | request.released,
        find_eligible=eligible,
        fences=fence_rules(resolved),
        references=request.references,
        larger=larger,
    )


def _posted_for_alternatives(
    request: EnsembleRequest,
    terrain: Terrain,
    alternatives: Alternatives,
    posted: tuple[Primitive, ...],
    former: Mapping[str, FormerEdges],
) -> tuple[tuple[Primitive, ...], Mapping[str, StandingViolation]]:
    """What the policies post, relaxed for standing members, for each choice of every member."""
    roles = _used_roles(request)
    nowhere = [np.zeros(terrain.host_count, dtype=np.bool_)] * len(roles)
    asked = _problem(request, terrain, roles, allowed=nowhere, primitives=posted, devices=None)
    relaxed, standing = relax_for_standing(asked, former)
    return tuple(alternatives.posted(relaxed.primitives, terrain.host_count)), standing


def _device_constraints(
    request: EnsembleRequest, terrain: Terrain, roles: list[Role], closed: Closed
) -> DeviceConstraints | None:
    if terrain.devices is None or not roles:
        return None
    moving = Counter(one.role for one in request.members if one not in request.fixed)
    shut = {role.name: closed_to(closed, role.name) for role in roles}
    return device_constraints(terrain, terrain.devices, roles, moving, shut)


def _used_roles(request: EnsembleRequest) -> list[Role]:
    """The roles that have members."""
    named = {member.role for member in request.members}
    return [role for role in request.roles if role.name in named]


def _problem(
    request: EnsembleRequest,
    terrain: Terrain,
    roles: list[Role],
    *,
    allowed: list[Bools],
    primitives: tuple[Primitive, ...],
    devices: DeviceConstraints | None,
) -> Problem:
    members = tuple(sorted(request.members))
    position = {role.name: index for index, role in enumerate(roles)}
    levels = {level for one in primitives if (level := _level(one)) is not None}
    shape = (len(roles), terrain.host_count)
    problem = Problem(
        members=members,
        roles=tuple(position),
        role_of=np.array([position[m.role] for m in members], dtype=np.int64),
        demand=np.array(
            [[demand_of(role, name) for name in terrain.classes] for role in roles],
            dtype=np.int64,
        ).reshape(len(roles), len(terrain.classes)),
        allowed=np.array(allowed, dtype=np.bool_).reshape(shape),
        fixed=np.array([_fixed_row(request, terrain, m) for m in members], dtype=np.int64),
        classes=terrain.classes,
        free=terrain.free,
        capacity=terrain.capacity,
        hosts=terrain.uuids,
        domains={level: terrain.domains(level) for level in levels},
        primitives=primitives,
        objective=request.objective,
    )
    if devices is None:
        return problem
    return replace(
        problem,
        demand=np.hstack([problem.demand, devices.demand]),
        classes=(*problem.classes, *devices.names),
        free=np.hstack([problem.free, devices.free]),
        # Columns that count members have no capacity: they do not count for `balance`.
        capacity=np.hstack([problem.capacity, np.zeros_like(devices.free)]),
        cuts=devices.cuts,
        proof=devices.proof,
    )


def demand_of(role: Role, name: str) -> int:
    """What one member takes of a class, its groups included."""
    groups = sum(group.resources.get(name, 0) for group in role.groups)
    return role.resources.get(name, 0) + groups


def _with_scaled_weights(problem: Problem) -> Problem:
    """Scale the weights of preferred primitives so that they outrank the objective."""
    scale = preference_scale(problem)
    return replace(
        problem,
        primitives=tuple(
            one if one.weight is None else replace(one, weight=scale * one.weight)
            for one in problem.primitives
        ),
    )


def _level(primitive: Primitive) -> Level | None:
    return getattr(primitive, "level", None)


def _fixed_row(request: EnsembleRequest, terrain: Terrain, member: MemberName) -> int:
    return row_of_host(request, terrain, member) if member in request.fixed else -1


def row_of_host(request: EnsembleRequest, terrain: Terrain, member: MemberName) -> int:
    """The row of the host of a fixed member.

    Raises:
        InvalidDescription: it is not among the terrain's hosts.
    """
    row = terrain.row_of.get(request.fixed[member])
    if row is None:
        # The provider is not named: not everyone who sees the member may see it.
        raise InvalidDescription(f"{member} stands on no host", path=f"fixed.{member}")
    return row


def _primitives(resolved: tuple[PolicyRule, ...], policy_view: TerrainView) -> Iterator[Primitive]:
    """The primitives that the policies post."""
    for rule in resolved:
        deadline.check()
        yield from policy_view.posted(rule)
