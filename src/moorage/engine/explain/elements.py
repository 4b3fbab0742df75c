"""Elements: the removable parts of a request, and the request without some of them.

Elements are each required policy, and for each role with members to place its resources, its
devices (its groups), its traits and its aggregates. Closed hosts, such as those exclusive to
another ensemble, are elements as well. A part of a request is built like a request that asks for
no more.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.explain import Element, closed_hosts_named
from moorage.engine.joint.build import build_on_terrain, policy_view_of
from moorage.engine.joint.host_filters import reason_of
from moorage.engine.joint.problem import mask_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.policy_view import TerrainView
    from moorage.engine.joint.terrain import Terrain

    Bools: TypeAlias = NDArray[np.bool_]

POLICY = "policy"
RESOURCES = "resources"
TRAITS = "traits"
AGGREGATES = "aggregates"
DEVICES = "devices"
CLOSED = "closed"

Elements = frozenset[Element]


def elements(built: BuiltProblem) -> tuple[Element, ...]:
    """The removable elements of a request, in the order in which deletion tries to drop them.

    Policies come last, so among several minimal conflicts one of policies is preferred, unless
    counting shows another one.
    """
    request = built.request
    moving = {member.role for member in request.members if member not in request.fixed}
    roles = [role for role in request.roles if role.name in moving]
    return (
        *dict.fromkeys(_closed_elements(built).values()),
        *(Element(RESOURCES, one) for one in _with_choice(roles, lambda role: role.resources)),
        *(Element(DEVICES, one) for one in _with_choice(roles, lambda role: role.groups)),
        *(Element(AGGREGATES, one) for one in _with_choice(roles, lambda role: role.member_of)),
        *(Element(TRAITS, one) for one in _with_choice(roles, _names_traits)),
        *(
            Element(POLICY, rule.statement.name)
            for rule in built.rules
            if rule.statement.required and rule.edges
        ),
    )


def _with_choice(roles: Iterable[Role], asks: Callable[[Role], object]) -> Iterator[str]:
    """The names of the roles of which some choice asks for something."""
    return (role.name for role in roles if any(asks(one) for one in role.choices))


def without_elements(built: BuiltProblem, aside: Elements) -> BuiltProblem:
    """The problem of the request without these elements, built as if no more were asked."""
    return part_of(built, aside, view_without(built, aside))


def view_without(built: BuiltProblem, aside: Elements) -> TerrainView:
    """The view that the policies of the request without these elements have."""
    return policy_view_of(request_without(built, aside), built.terrain, larger=built.policy_view)


def part_of(built: BuiltProblem, aside: Elements, view: TerrainView) -> BuiltProblem:
    """The problem of the request without these elements, with this view of the policies."""
    changed, closed = request_without(built, aside), remaining_closed_hosts(built, aside)
    return build_on_terrain(changed, built.terrain, closed=closed, policy_view=view)


def request_without(built: BuiltProblem, aside: Elements) -> EnsembleRequest:
    """The request without these elements, and without preferred policies."""
    request = built.request
    return replace(
        request,
        roles=tuple(_role_without(role, aside) for role in request.roles),
        policies=tuple(
            one
            for one in request.policies
            if one.required
            and not request.phases.isdisjoint(one.phases)
            and Element(POLICY, one.name) not in aside
        ),
    )


def remaining_closed_hosts(built: BuiltProblem, aside: Elements) -> dict[str, frozenset[str]]:
    """The closed hosts that remain without these elements."""
    known = _closed_elements(built)
    return {key: uuids for key, uuids in built.closed.items() if known.get(key) not in aside}


def closed_hosts(built: BuiltProblem, one: Element) -> Bools:
    """[H] the closed hosts for which an element stands."""
    rows = built.terrain.row_of
    uuids = _closed_for(built, one)
    return mask_of([rows[uuid] for uuid in uuids if uuid in rows], built.terrain.host_count)


def closed_pools(built: BuiltProblem, one: Element) -> int:
    """How many pools an element closes that lend to hosts, and are no hosts of the problem."""
    return len((_closed_for(built, one) & _lenders(built)) - built.terrain.row_of.keys())


def _closed_for(built: BuiltProblem, one: Element) -> frozenset[str]:
    keys = (key for key, each in _closed_elements(built).items() if each == one)
    return frozenset[str]().union(*(built.closed[key] for key in keys))


def _lenders(built: BuiltProblem) -> frozenset[str]:
    """UUIDs of what lends to hosts of other trees, if the request looks at devices."""
    devices = built.terrain.devices
    if devices is None:
        return frozenset()
    return frozenset(devices.uuids[at] for at in np.flatnonzero(devices.trees.lends).tolist())


def _closed_elements(built: BuiltProblem) -> dict[str, Element]:
    """The element of each key of `BuiltProblem.closed` that has any hosts."""
    terrain = built.terrain
    pools = _lenders(built) | _named(terrain, terrain.pools)
    servers = _named(terrain, terrain.offering)
    hosts = terrain.row_of.keys() - pools - servers
    what: dict[str, set[str]] = {}
    for key, uuids in built.closed.items():
        nouns = what.setdefault(reason_of(key), set())
        kinds = {"hosts": hosts, "pools": pools, "servers": servers}
        nouns |= {noun for noun, some in kinds.items() if not uuids.isdisjoint(some)}
    return {
        key: Element(CLOSED, closed_hosts_named(reason, _listed(what[reason]) or "hosts"))
        for key, uuids in built.closed.items()
        if uuids and (reason := reason_of(key))
    }


def _named(terrain: Terrain, marked: Bools) -> frozenset[str]:
    return frozenset(terrain.uuids[row] for row in np.flatnonzero(marked).tolist())


def _listed(nouns: set[str]) -> str:
    """`hosts`, `hosts and pools`, `hosts, pools and servers`."""
    *first, last = [*sorted(nouns)] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _names_traits(role: Role) -> bool:
    return bool(role.required or role.forbidden or role.root_required)


def _role_without(role: Role, aside: Elements) -> Role:
    """The role, and each of its alternatives, without these elements."""
    if role.alternatives:
        others = tuple(_role_without(one, aside) for one in role.alternatives)
        return replace(_role_without(replace(role, alternatives=()), aside), alternatives=others)
    if Element(RESOURCES, role.name) in aside:
        role = replace(role, resources=MappingProxyType({}))
    if Element(TRAITS, role.name) in aside:
        role = replace(role, required=(), forbidden=frozenset(), root_required=frozenset())
    if Element(DEVICES, role.name) in aside:
        role = replace(role, groups=(), same_subtree=(), isolate=False)
    if Element(AGGREGATES, role.name) in aside:
        role = replace(role, member_of=())
    return role


def without_group(role: Role, name: str) -> Role:
    """The role without one group."""
    return replace(
        role,
        groups=tuple(one for one in role.groups if one.name != name),
        same_subtree=tuple(names - {name} for names in role.same_subtree),
    )


def on_empty_hosts(request: EnsembleRequest, built: BuiltProblem) -> BuiltProblem:
    """The request built on the same hosts without any bookings."""
    return build_on_terrain(request, built.terrain.without_bookings())
