"""Which resource classes and groups of roles a conflict needs."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.explain import Element
from moorage.engine.explain.elements import (
    DEVICES,
    RESOURCES,
    elements,
    remaining_closed_hosts,
    request_without,
    view_without,
    without_group,
)
from moorage.engine.joint.build import build_on_terrain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.ensembles import Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.explain.conflicts import Core, Oracle
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Problem


def binding_classes(built: BuiltProblem, core: Core, oracle: Oracle) -> dict[str, frozenset[str]]:
    """Role -> the resource classes that a conflict needs, for roles with resources in it.

    Under `groups_key(role)`, for roles with devices in it: the names of the groups. Found by
    deletion: classes are dropped one by one while the problem stays infeasible. Once a question is
    not decided, what was not tried counts as needed: the others are mostly as hard.
    """
    own = replace(oracle, complete=True)
    try:
        return _binding_classes(built, core, own)
    finally:
        oracle.complete = oracle.complete and own.complete


def _binding_classes(built: BuiltProblem, core: Core, oracle: Oracle) -> dict[str, frozenset[str]]:
    """See `binding_classes`."""
    conflict = frozenset(core.elements)
    aside = frozenset(elements(built)) - conflict
    bare = request_without(built, aside)
    built = replace(
        built,
        closed=remaining_closed_hosts(built, aside),
        policy_view=view_without(built, aside),
    )
    needed = {
        role.name: frozenset(name for one in role.choices for name in one.resources)
        for role in bare.roles
        if Element(RESOURCES, role.name) in conflict
    }
    for name in tuple(needed):
        for one in sorted(needed[name], reverse=True):
            less = needed[name] - {one}
            if (
                less
                and oracle.complete
                and oracle.feasible_if_time(
                    _problem_with_classes(built, bare, needed | {name: less})
                )
                is False
            ):
                needed[name] = less
    return needed | _binding_groups(built, bare, core, oracle)


def _problem_with_classes(
    built: BuiltProblem, bare: EnsembleRequest, needed: Mapping[str, frozenset[str]]
) -> Callable[[], Problem]:
    """A function that builds the problem in which roles take only these classes.

    There may be thousands of roles: they are copied only if the problem is built.
    """

    def make() -> Problem:
        roles = tuple(_limited_to(role, needed.get(role.name)) for role in bare.roles)
        return _problem_of(built, replace(bare, roles=roles))()

    return make


def groups_key(role: str) -> str:
    """The key in the result of `binding_classes` for the groups of a role."""
    return f"{DEVICES}:{role}"


def _binding_groups(
    built: BuiltProblem, bare: EnsembleRequest, core: Core, oracle: Oracle
) -> dict[str, frozenset[str]]:
    """The groups that a conflict needs, found by deletion."""
    found: dict[str, frozenset[str]] = {}
    for element in core.elements:
        if element.kind != DEVICES:
            continue
        role = next(one for one in bare.roles if one.name == element.name)
        if role.alternatives:
            names = (group.name for one in role.choices for group in one.groups)
            found[groups_key(role.name)] = frozenset(names)
            continue
        for group in role.groups:
            less = without_group(role, group.name)
            roles = tuple(less if one.name == role.name else one for one in bare.roles)
            reduced = replace(bare, roles=roles)
            if (
                less.groups
                and oracle.complete
                and oracle.feasible_if_time(_problem_of(built, reduced)) is False
            ):
                role, bare = less, reduced
        found[groups_key(role.name)] = frozenset(one.name for one in role.groups)
    return found


def _limited_to(role: Role, classes: frozenset[str] | None) -> Role:
    if classes is None:
        return role
    others = tuple(_limited_to(one, classes) for one in role.alternatives)
    kept = {name: amount for name, amount in role.resources.items() if name in classes}
    return replace(role, resources=MappingProxyType(kept), alternatives=others)


def _problem_of(built: BuiltProblem, request: EnsembleRequest) -> Callable[[], Problem]:
    """A function that builds the problem of a request with fewer requirements."""
    return lambda: (
        build_on_terrain(
            request, built.terrain, closed=built.closed, policy_view=built.policy_view
        ).problem
    )
