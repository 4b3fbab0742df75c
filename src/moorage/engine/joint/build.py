"""Builds a joint problem from a request and a terrain, with a reason for every host left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.domain.errors import InvalidDescription
from moorage.engine.joint.alternatives import alternatives_of, role_described
from moorage.engine.joint.cost import preference_scale
from moorage.engine.joint.device_constraints import device_constraints, device_filters, empty_proof
from moorage.engine.joint.policy_rules import fence_rules, resolve_policies
from moorage.engine.joint.policy_view import TerrainView
from moorage.engine.joint.problem import Problem, mask_of
from moorage.engine.joint.standing_violations import relax_for_standing
from moorage.engine.joint.terrain import cut_terrain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import MemberName, Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.topology import Level
    from moorage.engine.joint.alternatives import Alternatives
    from moorage.engine.joint.device_constraints import DeviceConstraints
    from moorage.engine.joint.policy_rules import PolicyRule
    from moorage.engine.joint.standing_violations import StandingViolation
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

Closed: TypeAlias = "Mapping[str, frozenset[str]]"
NO_CLOSED_HOSTS: Final[Closed] = MappingProxyType({})
"""All hosts may be used."""
_ROLE_SEPARATOR: Final = "/"


def closed_to_role(role: str, reason: str) -> str:
    """The key in `BuiltProblem.closed` of hosts that are closed to one role only."""
    return f"{reason}{_ROLE_SEPARATOR}{role}"


def reason_of(key: str) -> str:
    """The reason id in a key of `BuiltProblem.closed`."""
    return key.partition(_ROLE_SEPARATOR)[0]


@dataclass(frozen=True, eq=False)
class BuiltProblem:
    """A joint problem with the request, terrain and policies it was built from.

    This is what verifying, explaining and saving a problem needs; solvers get `problem` only.
    """

    request: EnsembleRequest
    terrain: Terrain
    closed: Closed
    """Reason id -> UUIDs of hosts that may not be used, such as those exclusive to another
    ensemble. Under the key `closed_to_role(role, reason)`: hosts closed to one role only."""
    policy_view: TerrainView
    rules: tuple[PolicyRule, ...]
    problem: Problem
    alternatives: Alternatives | None
    """How the members of `problem` stand for those of `request`; None: they are the same."""
    standing: Mapping[str, StandingViolation]
    """Required policy -> its violation by fixed members; see `joint.standing_violations`."""
    considered: int
    """How many hosts there are."""
    rejected: Mapping[str, int]
    """Reason id -> number of hosts it rejects for some role with members to place."""


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

    If `policy_view` is given, it decides eligibility instead of the request's own roles:
    explanations leave out parts of a request without changing the meaning of its policies.
    """
    alternatives = alternatives_of(request)
    plain = request if alternatives is None else alternatives.plain
    roles = _used_roles(plain)
    devices = _device_constraints(plain, terrain, roles)
    passes = _filters_by_role(terrain, roles, devices, closed)
    resolved = resolve_policies(request, terrain.topology)
    policy_view = policy_view or _policy_view(
        request, terrain, _eligible_rows(terrain, roles, devices), alternatives, resolved
    )
    posted = tuple(_primitives(resolved, policy_view))
    standing: Mapping[str, StandingViolation] = {}
    if alternatives is not None:
        posted, standing = _posted_for_alternatives(request, terrain, alternatives, posted)
    problem = _problem(
        plain,
        terrain,
        roles,
        allowed=[passes[role.name].mask for role in roles],
        primitives=posted,
        devices=devices,
    )
    if alternatives is None:
        problem, standing = relax_for_standing(problem, request.restated)
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
        standing=standing,
        considered=terrain.host_count,
        rejected=_rejected({passes[role.name] for role in roles if role.name in moving}),
    )


def policy_view_of(request: EnsembleRequest, terrain: Terrain) -> TerrainView:
    """The policies' view of the fleet for a request."""
    alternatives = alternatives_of(request)
    plain = request if alternatives is None else alternatives.plain
    roles = _used_roles(plain)
    eligible = _eligible_rows(terrain, roles, _device_constraints(plain, terrain, roles))
    resolved = resolve_policies(request, terrain.topology)
    return _policy_view(request, terrain, eligible, alternatives, resolved)


def _policy_view(
    request: EnsembleRequest,
    terrain: Terrain,
    eligible: Mapping[str, Bools],
    alternatives: Alternatives | None,
    resolved: tuple[PolicyRule, ...],
) -> TerrainView:
    if alternatives is not None:
        eligible = {
            role: np.logical_or.reduce([eligible[name] for name in names if name in eligible])
            for role, names in alternatives.roles.items()
            if any(name in eligible for name in names)
        }
    return TerrainView(
        terrain=terrain,
        project_id=request.project_id,
        own=request.own_consumers | request.released,
        eligible_rows=eligible,
        fences=fence_rules(resolved),
    )


def _posted_for_alternatives(
    request: EnsembleRequest,
    terrain: Terrain,
    alternatives: Alternatives,
    posted: tuple[Primitive, ...],
) -> tuple[tuple[Primitive, ...], Mapping[str, StandingViolation]]:
    """What the policies post, relaxed for standing members, for each choice of every member."""
    roles = _used_roles(request)
    nowhere = [np.zeros(terrain.host_count, dtype=np.bool_)] * len(roles)
    asked = _problem(request, terrain, roles, allowed=nowhere, primitives=posted, devices=None)
    relaxed, standing = relax_for_standing(asked, request.restated)
    return tuple(alternatives.posted(relaxed.primitives, terrain.host_count)), standing


def _device_constraints(
    request: EnsembleRequest, terrain: Terrain, roles: list[Role]
) -> DeviceConstraints | None:
    if terrain.devices is None or not roles:
        return None
    moving = Counter(one.role for one in request.members if one not in request.fixed)
    return device_constraints(terrain, terrain.devices, roles, moving)


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
            [[_demand(role, name) for name in terrain.classes] for role in roles],
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


def _demand(role: Role, name: str) -> int:
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


@dataclass(frozen=True, eq=False, slots=True)
class _RoleFilters:
    """The filters of hosts for roles with equal requirements: reason id and mask [H]."""

    filters: tuple[tuple[str, Bools], ...]
    mask: Bools
    """[H] hosts that pass all filters."""


def _filters_by_role(
    terrain: Terrain, roles: list[Role], devices: DeviceConstraints | None, closed: Closed
) -> dict[str, _RoleFilters]:
    """The filters by role. Equal roles share one object: there may be thousands of roles."""
    masks = {key: _open_hosts(terrain, uuids) for key, uuids in closed.items() if uuids}
    known: dict[object, _RoleFilters] = {}
    found = {}
    for number, role in enumerate(roles):
        deadline.check()
        closed_filters = tuple(_closed_filters(role, masks))
        key = (_equality_key(role, number, devices), tuple(reason for reason, _ in closed_filters))
        if key not in known:
            filters = (
                *_role_filters(role, number, terrain, devices),
                *(mask for _, mask in closed_filters),
            )
            known[key] = _RoleFilters(
                filters, _intersection(terrain, (mask for _, mask in filters))
            )
        found[role.name] = known[key]
    return found


def _eligible_rows(
    terrain: Terrain, roles: list[Role], devices: DeviceConstraints | None
) -> dict[str, Bools]:
    known: dict[object, Bools] = {}
    found = {}
    for number, role in enumerate(roles):
        deadline.check()
        key = _equality_key(role, number, devices)
        if key not in known:
            known[key] = _eligible(role, number, terrain, devices)
        found[role.name] = known[key]
    return found


def _equality_key(role: Role, number: int, devices: DeviceConstraints | None) -> object:
    """A key that is equal for roles with equal host filters; with devices unique per role."""
    if devices is not None:
        return number
    amounts = frozenset(role.resources.items())
    return amounts, role.required, role.forbidden, role.root_required, role.member_of


def _primitives(resolved: tuple[PolicyRule, ...], policy_view: TerrainView) -> Iterator[Primitive]:
    """The primitives that the policies post."""
    for rule in resolved:
        deadline.check()
        yield from rule.post(policy_view)


def _role_filters(
    role: Role, number: int, terrain: Terrain, devices: DeviceConstraints | None
) -> Iterator[tuple[str, Bools]]:
    """Every rule a host must pass for the role alone: reason id and mask [H]."""
    yield from _root_traits(role, terrain)
    if devices is not None:
        yield from device_filters(role, number, devices)
        return
    for name, amount in role.resources.items():
        k = terrain.classes.index(name)
        yield f"unit:{name}", _obeys_units(terrain, k, amount)
        yield f"capacity:{name}", terrain.free[:, k] >= amount
    yield from _traits_and_aggregates(role, terrain)


def _closed_filters(
    role: Role, masks: Mapping[str, Bools]
) -> Iterator[tuple[str, tuple[str, Bools]]]:
    """The closed hosts that concern a role: the key of `closed`, and the filter."""
    for key, mask in masks.items():
        reason, _, only = key.partition(_ROLE_SEPARATOR)
        if only in {"", role_described(role.name)}:
            yield key, (reason, mask)


def _open_hosts(terrain: Terrain, closed: frozenset[str]) -> Bools:
    """[H] all hosts but these."""
    rows = [terrain.row_of[uuid] for uuid in closed if uuid in terrain.row_of]
    return ~mask_of(rows, terrain.host_count)


def _root_traits(role: Role, terrain: Terrain) -> Iterator[tuple[str, Bools]]:
    for trait in sorted(role.root_required):
        yield f"trait:{trait}", terrain.has_trait(trait)


def _traits_and_aggregates(role: Role, terrain: Terrain) -> Iterator[tuple[str, Bools]]:
    nowhere = np.zeros(terrain.host_count, dtype=np.bool_)
    for any_of in role.required:
        masks = [terrain.has_trait(trait) for trait in any_of]
        yield f"trait:{'|'.join(sorted(any_of))}", np.logical_or.reduce([nowhere, *masks])
    for trait in sorted(role.forbidden):
        yield f"forbidden:{trait}", ~terrain.has_trait(trait)
    for any_of in role.member_of:
        masks = [terrain.aggregates.get(uuid, nowhere) for uuid in any_of]
        yield "aggregate", np.logical_or.reduce([nowhere, *masks])


def _obeys_units(terrain: Terrain, k: int, amount: int) -> Bools:
    obeys: Bools = (terrain.min_unit[:, k] <= amount) & (terrain.max_unit[:, k] >= amount)
    steps = terrain.step_size[:, k]
    if (steps > 1).any():  # a remainder takes longer than all else here, and is seldom needed
        obeys &= amount % steps == 0
    return obeys


def _eligible(
    role: Role, number: int, terrain: Terrain, devices: DeviceConstraints | None
) -> Bools:
    """[H] hosts that could hold one member of the role if they were empty."""
    masks = [mask for _, mask in _root_traits(role, terrain)]
    if devices is not None:
        alone = empty_proof(devices).single_role(number, 1)
        return _intersection(terrain, [*masks, alone.feasible | alone.undecided])
    masks += [mask for _, mask in _traits_and_aggregates(role, terrain)]
    for name, amount in role.resources.items():
        k = terrain.classes.index(name)
        masks += [_obeys_units(terrain, k, amount), terrain.capacity[:, k] >= amount]
    return _intersection(terrain, masks)


def _intersection(terrain: Terrain, masks: Iterable[Bools]) -> Bools:
    found = np.ones(terrain.host_count, dtype=np.bool_)
    for mask in masks:
        found &= mask
    return found


def _rejected(passes: Collection[_RoleFilters]) -> dict[str, int]:
    """Number of hosts rejected per reason; a host counts once however many roles reject it."""
    failed: dict[str, Bools] = {}
    for one in passes:
        for reason, mask in one.filters:
            failed[reason] = failed.get(reason, np.zeros_like(mask)) | ~mask
    return {reason: int(mask.sum()) for reason, mask in sorted(failed.items()) if mask.any()}
