"""Builds a joint problem from a request and a terrain, with a reason for every host left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import deadline
from moorage.domain.errors import InvalidDescription
from moorage.engine.joint.cost import preference_scale
from moorage.engine.joint.device_constraints import emptied, filters, outfit
from moorage.engine.joint.policy_rules import fences, rules
from moorage.engine.joint.policy_view import FleetGround
from moorage.engine.joint.problem import Problem
from moorage.engine.joint.standing_violations import eased
from moorage.engine.joint.terrain import survey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import MemberName, Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.topology import Level
    from moorage.engine.joint.device_constraints import Outfit
    from moorage.engine.joint.policy_rules import Rule
    from moorage.engine.joint.standing_violations import Broken
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

Closed: TypeAlias = "Mapping[str, frozenset[str]]"
OPEN: Final[Closed] = MappingProxyType({})
"""Every host may be used."""
_TO: Final = "/"


def closed_to(role: str, reason: str) -> str:
    """The key in `Built.closed` of hosts closed to the members of one role alone."""
    return f"{reason}{_TO}{role}"


def reason_of(key: str) -> str:
    """The reason id in a key of `Built.closed`."""
    return key.partition(_TO)[0]


@dataclass(frozen=True, eq=False)
class Built:
    """A problem with what it was made of, for verifying, explaining and saving it."""

    request: EnsembleRequest
    terrain: Terrain
    closed: Closed
    """Reason id -> UUIDs of hosts that may not be used at all, such as those that another
    ensemble keeps to itself; under the key `closed_to(role, reason)` those that the members of
    one role may not use."""
    ground: FleetGround
    rules: tuple[Rule, ...]
    problem: Problem
    broken: Mapping[str, Broken]
    """Required policy -> what of it members that stand already break; see `engine.standing`."""
    considered: int
    """How many hosts there are."""
    rejected: Mapping[str, int]
    """Reason id -> hosts it rejects for some role with members to place."""


def build(request: EnsembleRequest, snapshot: Snapshot, *, closed: Closed = OPEN) -> Built:
    """State a joint request as a problem on the fleet of a snapshot.

    Args:
        request: who is to be placed; must name each member's role.
        snapshot: the fleet, at the instant the request is decided.
        closed: see `Built.closed`.

    Raises:
        UnknownName: a policy names a level or tree that is not there.
        InvalidDescription: a fixed member stands on no host.
        UnknownPolicy, InvalidDescription: a policy cannot be understood.
    """
    return state(request, survey(snapshot, request), closed=closed)


def state(
    request: EnsembleRequest,
    terrain: Terrain,
    *,
    closed: Closed = OPEN,
    ground: FleetGround | None = None,
) -> Built:
    """The same over a terrain that was surveyed for this request or a wider one.

    `ground`, if given, judges eligibility instead of the request's own roles: explanations
    set parts of a request aside without changing what its policies mean.
    """
    roles = _present(request)
    fitted = _outfit(request, terrain, roles)
    passes = _passes(terrain, roles, fitted, closed)
    resolved = rules(request, terrain.topology)
    ground = ground or _ground(request, terrain, roles, fitted, resolved)
    problem, broken = eased(
        _problem(
            request,
            terrain,
            roles,
            allowed=[passes[role.name].all for role in roles],
            primitives=tuple(_posted(resolved, ground)),
            fitted=fitted,
        ),
        request.restated,
    )
    moving = {member.role for member in request.members if member not in request.fixed}
    return Built(
        request=request,
        terrain=terrain,
        closed=closed,
        ground=ground,
        rules=resolved,
        problem=_outranking(problem),
        broken=broken,
        considered=terrain.host_count,
        rejected=_rejected({passes[role.name] for role in roles if role.name in moving}),
    )


def ground_for(request: EnsembleRequest, terrain: Terrain) -> FleetGround:
    """The fleet as the policies of a request see it."""
    roles = _present(request)
    resolved = rules(request, terrain.topology)
    return _ground(request, terrain, roles, _outfit(request, terrain, roles), resolved)


def _ground(
    request: EnsembleRequest,
    terrain: Terrain,
    roles: list[Role],
    fitted: Outfit | None,
    resolved: tuple[Rule, ...],
) -> FleetGround:
    return FleetGround(
        terrain=terrain,
        project_id=request.project_id,
        own=request.own_consumers | request.released,
        eligible_rows=_eligible_rows(terrain, roles, fitted),
        fences=fences(resolved),
    )


def _outfit(request: EnsembleRequest, terrain: Terrain, roles: list[Role]) -> Outfit | None:
    if terrain.devices is None or not roles:
        return None
    moving = Counter(one.role for one in request.members if one not in request.fixed)
    return outfit(terrain, terrain.devices, roles, moving)


def _present(request: EnsembleRequest) -> list[Role]:
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
    fitted: Outfit | None,
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
            [[_wanted(role, name) for name in terrain.classes] for role in roles],
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
    if fitted is None:
        return problem
    return replace(
        problem,
        demand=np.hstack([problem.demand, fitted.demand]),
        classes=(*problem.classes, *fitted.names),
        free=np.hstack([problem.free, fitted.free]),
        # What only counts places fills nothing.
        capacity=np.hstack([problem.capacity, np.zeros_like(fitted.free)]),
        cuts=fitted.cuts,
        proof=fitted.proof,
    )


def _wanted(role: Role, name: str) -> int:
    """What one member takes of a class in all."""
    groups = sum(group.resources.get(name, 0) for group in role.groups)
    return role.resources.get(name, 0) + groups


def _outranking(problem: Problem) -> Problem:
    """Scale what is preferred, so that every stated preference goes before the objective."""
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
    """The row of the host on which a fixed member stands.

    Raises:
        InvalidDescription: it is not a host, or not one of these.
    """
    row = terrain.row_of.get(request.fixed[member])
    if row is None:
        # Whose provider that is, or was, is not for everybody who sees the member.
        raise InvalidDescription(f"{member} stands on no host", path=f"fixed.{member}")
    return row


@dataclass(frozen=True, eq=False, slots=True)
class _Passes:
    """Every rule that hosts must pass for roles of one kind: reason id and mask [H]."""

    filters: tuple[tuple[str, Bools], ...]
    all: Bools
    """[H] hosts that pass each."""


def _passes(
    terrain: Terrain, roles: list[Role], fitted: Outfit | None, closed: Closed
) -> dict[str, _Passes]:
    """By role. Roles that ask for the same share what they get: there may be thousands."""
    masks = {key: _open(terrain, uuids) for key, uuids in closed.items() if uuids}
    known: dict[object, _Passes] = {}
    found = {}
    for number, role in enumerate(roles):
        deadline.check()
        shut = tuple(_shut(role, masks))
        key = (_kind(role, number, fitted), tuple(reason for reason, _ in shut))
        if key not in known:
            filters = (*_filters(role, number, terrain, fitted), *(mask for _, mask in shut))
            known[key] = _Passes(filters, _all(terrain, (mask for _, mask in filters)))
        found[role.name] = known[key]
    return found


def _eligible_rows(terrain: Terrain, roles: list[Role], fitted: Outfit | None) -> dict[str, Bools]:
    known: dict[object, Bools] = {}
    found = {}
    for number, role in enumerate(roles):
        deadline.check()
        key = _kind(role, number, fitted)
        if key not in known:
            known[key] = _eligible(role, number, terrain, fitted)
        found[role.name] = known[key]
    return found


def _kind(role: Role, number: int, fitted: Outfit | None) -> object:
    """What roles have in common that the same hosts may hold; with devices each is its own."""
    if fitted is not None:
        return number
    return frozenset(role.resources.items()), role.required, role.forbidden, role.member_of


def _posted(resolved: tuple[Rule, ...], ground: FleetGround) -> Iterator[Primitive]:
    """What the policies ask of the places."""
    for rule in resolved:
        deadline.check()
        yield from rule.post(ground)


def _filters(
    role: Role, number: int, terrain: Terrain, fitted: Outfit | None
) -> Iterator[tuple[str, Bools]]:
    """Every rule a host must pass for the role alone: reason id and mask [H]."""
    if fitted is not None:
        yield from filters(role, number, fitted)
        return
    for name, amount in role.resources.items():
        k = terrain.classes.index(name)
        yield f"unit:{name}", _obeys_units(terrain, k, amount)
        yield f"capacity:{name}", terrain.free[:, k] >= amount
    yield from _traits_and_aggregates(role, terrain)


def _shut(role: Role, masks: Mapping[str, Bools]) -> Iterator[tuple[str, tuple[str, Bools]]]:
    """Hosts that the role's members may not use, whatever they ask for: by key, and as a filter."""
    for key, mask in masks.items():
        reason, _, only = key.partition(_TO)
        if only in {"", role.name}:
            yield key, (reason, mask)


def _open(terrain: Terrain, closed: frozenset[str]) -> Bools:
    """[H] all hosts but these."""
    return np.array([uuid not in closed for uuid in terrain.uuids], dtype=np.bool_)


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
    obeys &= amount % terrain.step_size[:, k] == 0
    return obeys


def _eligible(role: Role, number: int, terrain: Terrain, fitted: Outfit | None) -> Bools:
    """Hosts that could hold one member of the role if they were empty."""
    if fitted is not None:
        alone = emptied(fitted).single_role(number, 1)
        return alone.feasible | alone.undecided
    masks = [mask for _, mask in _traits_and_aggregates(role, terrain)]
    for name, amount in role.resources.items():
        k = terrain.classes.index(name)
        masks += [_obeys_units(terrain, k, amount), terrain.capacity[:, k] >= amount]
    return _all(terrain, masks)


def _all(terrain: Terrain, masks: Iterable[Bools]) -> Bools:
    found = np.ones(terrain.host_count, dtype=np.bool_)
    for mask in masks:
        found &= mask
    return found


def _rejected(passes: Collection[_Passes]) -> dict[str, int]:
    """Hosts rejected per reason; a host that several roles reject for one reason counts once."""
    failed: dict[str, Bools] = {}
    for one in passes:
        for reason, mask in one.filters:
            failed[reason] = failed.get(reason, np.zeros_like(mask)) | ~mask
    return {reason: int(mask.sum()) for reason, mask in sorted(failed.items()) if mask.any()}
