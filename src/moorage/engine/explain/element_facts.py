"""What each element of a conflict demands, as text, and how many hosts policies reject."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.words import first_of
from moorage.engine.devices.slot_requirements import describe_group
from moorage.engine.explain.conflict_classes import groups_key
from moorage.engine.explain.elements import AGGREGATES, CLOSED, DEVICES, POLICY, RESOURCES, TRAITS
from moorage.engine.explain.member_hosts import giver_of
from moorage.engine.joint.domain_counters import closed_domains
from moorage.engine.joint.problem import permitted_hosts
from moorage.engine.joint.problem_index import index_problem
from moorage.policies.primitives import Apart, AtMost, NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.explain import Element
    from moorage.domain.member_names import MemberName
    from moorage.engine.explain.conflict_facts import Binding
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex
    from moorage.policies.rules import PolicyRule

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]


_MAX_EDGES = 3
_MAX_MEMBERS = 4


def demand_text(built: BuiltProblem, element: Element, binding: Binding) -> str:
    """The demand of one element as text; of resources only the binding classes."""
    if element.kind == CLOSED:
        return ""
    if element.kind == POLICY:
        return _policy_demand(built, _rule(built, element.name))
    role = next(role for role in built.request.roles if role.name == element.name)
    request = built.request
    count = sum(m.role == role.name and m not in request.fixed for m in request.members)
    who = f"{count} x {role.name}"
    demand = _DEMANDS[element.kind]
    texts = [demand(one, binding) for one in role.choices]
    said = [f"{text} (alternative {n})" for n, text in enumerate(texts)]
    if len(set(texts)) == 1:
        said = texts[:1]
    link = "for each of" if element.kind in {RESOURCES, DEVICES} else "for"
    return f"{' or '.join(said)} {link} {who}"


def _resources(role: Role, binding: Binding) -> str:
    # Of an alternative that something else keeps out no class binds: then it is told whole.
    bound = role.resources.keys() & binding[role.name] or role.resources.keys()
    return ", ".join(f"{role.resources[name]} {name}" for name in sorted(bound)) or "nothing"


def _devices(role: Role, binding: Binding) -> str:
    return _device_demand(role, binding[groups_key(role.name)]) or "no devices"


def _aggregates(role: Role, _: Binding) -> str:
    groups = " and ".join("|".join(sorted(one)) for one in role.member_of)
    return f"{giver_of(role)}s of aggregate {groups}" if groups else f"any {giver_of(role)}s"


def _traits(role: Role, _: Binding) -> str:
    has = ["|".join(sorted(one)) for one in role.required] + sorted(role.root_required)
    parts = [f"with {', '.join(has)}"] if has else []
    parts += [f"without {', '.join(sorted(role.forbidden))}"] if role.forbidden else []
    return f"{giver_of(role)}s {' and '.join(parts)}" if parts else f"any {giver_of(role)}s"


_DEMANDS: Final = MappingProxyType(
    {RESOURCES: _resources, DEVICES: _devices, AGGREGATES: _aggregates, TRAITS: _traits}
)
"""Kind of element -> what one choice of a role demands."""


def _policy_demand(built: BuiltProblem, rule: PolicyRule) -> str:
    apart = _excludes_violated_domains(built, rule.statement.name)
    edges = [_compliant_members(built, rule, edge) if apart else edge for edge in rule.edges]
    texts = list(
        dict.fromkeys(rule.policy.requirement(edge, built.policy_view) for edge in edges if edge)
    )
    text = "; ".join(first_of(texts, _MAX_EDGES))
    broken = built.standing.get(rule.statement.name)
    if broken is None:
        return text
    names = [str(member) for member in broken.members[:_MAX_MEMBERS]]
    others = len(broken.members) - len(names)
    names += [f"{others} more"] if others else []
    verb = "break" if len(broken.members) > 1 else "breaks"
    where = "they stand" if len(broken.members) > 1 else "it stands"
    beside = " elsewhere" if apart else ""
    who = " and ".join(names)
    return f"{text}{beside}; {who} {verb} it where {where}, and nothing may make that worse"


def _excludes_violated_domains(built: BuiltProblem, policy: str) -> bool:
    """Whether the other members must avoid the domains in which standing members violate it.

    This is so for policies that separate members. Then their demand counts neither the violating
    members nor the domains in which they are.
    """
    kinds = {type(one) for one in built.problem.primitives if one.policy == policy}
    return policy in built.standing and NeverOn in kinds and bool(kinds & {AtMost, Apart})


def _compliant_members(
    built: BuiltProblem, rule: PolicyRule, edge: tuple[MemberName, ...]
) -> tuple[MemberName, ...]:
    """The members of an edge that do not violate the policy already."""
    breaking = built.standing[rule.statement.name].members
    return tuple(member for member in edge if member not in breaking)


def _rule(built: BuiltProblem, name: str) -> PolicyRule:
    return next(rule for rule in built.rules if rule.statement.name == name)


def _role(built: BuiltProblem, name: str) -> Role:
    return next(role for role in built.request.roles if role.name == name)


# --- hosts that policies reject ------------------------------------------------------------


def policy_rejections(built: BuiltProblem) -> dict[str, int]:
    """`policy:<name>` -> number of hosts that the policy rejects for some member to be placed.

    By its named hosts and by the fixed members; constraints among the members to be placed do not
    concern single hosts. Hosts are those that are considered.
    """
    numbers = index_problem(built.problem)
    found: dict[str, Bools] = {}
    for name, mask in (*_rejected_by_hosts(numbers), *_rejected_by_counts(numbers)):
        on_hosts = mask[: built.problem.host_count] & built.of_kind
        found[name] = found.get(name, np.zeros_like(on_hosts)) | on_hosts
    return {f"policy:{name}": int(mask.sum()) for name, mask in found.items() if mask.any()}


def _rejected_by_hosts(numbers: ProblemIndex) -> Iterator[tuple[str, Bools]]:
    moving = {numbers.problem.members[m] for m in numbers.to_place}
    for one in numbers.problem.primitives:
        if one.weight is None and isinstance(one, OnlyOn | NeverOn) and moving & set(one.members):
            yield one.policy, ~permitted_hosts(one, len(numbers.problem.hosts))


def _rejected_by_counts(numbers: ProblemIndex) -> Iterator[tuple[str, Bools]]:
    fixed = numbers.problem.fixed
    for constraint in numbers.constraints:
        if not constraint.required or all(fixed[m] >= 0 for m in constraint.members):
            continue
        left = sum(int(fixed[m] < 0) for m in constraint.awaited)
        counts, others = (
            _fixed_per_domain(constraint, fixed, side)
            for side in (constraint.members, constraint.others)
        )
        excluded = closed_domains(constraint, counts, others, left)
        if excluded is not None:
            yield constraint.primitive.policy, np.append(excluded, [False])[constraint.domain_of]


def _fixed_per_domain(constraint: LevelConstraint, fixed: Ints, members: tuple[int, ...]) -> Ints:
    counts = np.zeros(constraint.domain_count, dtype=np.int64)
    for m in members:
        if fixed[m] >= 0 and constraint.domain_of[fixed[m]] >= 0:
            counts[constraint.domain_of[fixed[m]]] += 1
    return counts


def _device_demand(role: Role, groups: frozenset[str]) -> str:
    """The groups as text: `2 SRIOV_NET_VF with CUSTOM_PHYSNET_A beside its own resources`."""
    parts = [
        describe_group(one.resources, one.required)
        + (" beside its own resources" if one.beside else "")
        for one in role.groups
        if one.name in groups
    ]
    parts += [
        f"{' and '.join(sorted(names))} in one subtree"
        for names in (names & groups for names in role.same_subtree)
        if len(names) > 1
    ]
    if role.isolate and len(groups) > 1:
        parts.append("each group of a provider of its own")
    return ", ".join(parts)
