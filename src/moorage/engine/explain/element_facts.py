"""Texts and numbers of an explanation: what each element demands, and what the fleet has."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.devices.slot_requirements import describe_group
from moorage.engine.explain.conflict_classes import groups_key
from moorage.engine.explain.elements import AGGREGATES, CLOSED, DEVICES, POLICY, RESOURCES
from moorage.engine.joint.domain_counters import closed_domains
from moorage.engine.joint.problem import permitted_hosts
from moorage.engine.joint.problem_index import index_problem
from moorage.policies.primitives import Apart, AtMost, NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import MemberName, Role
    from moorage.domain.explain import Element
    from moorage.domain.topology import Level
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex
    from moorage.policies.rules import PolicyRule

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]


_MAX_EDGES = 3
_MAX_MEMBERS = 4


Binding: TypeAlias = "Mapping[str, frozenset[str]]"
"""Role -> the resource classes of it that a conflict needs; see `conflicts.binding_classes`."""


def demand_text(built: BuiltProblem, element: Element, binding: Binding) -> str:
    """The demand of one element as text; of resources only the binding classes."""
    if element.kind == CLOSED:
        return ""
    if element.kind == POLICY:
        return _policy_demand(built, _rule(built, element.name))
    role = _role(built, element.name)
    request = built.request
    count = sum(m.role == role.name and m not in request.fixed for m in request.members)
    who = f"{count} x {role.name}"
    if element.kind == RESOURCES:
        requested = sorted(role.resources.items())
        amounts = ", ".join(f"{n} {name}" for name, n in requested if name in binding[role.name])
        return f"{amounts} for each of {who}"
    if element.kind == DEVICES:
        return f"{_device_demand(role, binding[groups_key(role.name)])} for each of {who}"
    where = f"{_giver(role)}s"
    if element.kind == AGGREGATES:
        groups = " and ".join("|".join(sorted(one)) for one in role.member_of)
        return f"{where} of aggregate {groups} for {who}"
    traits = ["|".join(sorted(one)) for one in role.required]
    traits += sorted(role.root_required)
    traits += [f"not {name}" for name in sorted(role.forbidden)]
    return f"{where} with {', '.join(traits)} for {who}"


def _giver(role: Role) -> str:
    """What gives a member its resources."""
    return "provider" if role.of_one_provider else "host"


def _policy_demand(built: BuiltProblem, rule: PolicyRule) -> str:
    apart = _excludes_violated_domains(built, rule.statement.name)
    edges = [_compliant_members(built, rule, edge) if apart else edge for edge in rule.edges]
    texts = list(
        dict.fromkeys(rule.policy.requirement(edge, built.policy_view) for edge in edges if edge)
    )
    more = len(texts) - _MAX_EDGES
    text = "; ".join(texts[:_MAX_EDGES]) + (f"; and {more} more" if more > 0 else "")
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


def fleet_facts(
    built: BuiltProblem, elements: tuple[Element, ...], binding: Binding
) -> tuple[tuple[str, int], ...]:
    """Facts: the number of hosts and domains, and the free amounts, for these elements."""
    found: dict[str, int] = {}
    for element in elements:
        if element.kind == CLOSED:
            continue
        if element.kind == POLICY:
            rule = _rule(built, element.name)
            roles = dict.fromkeys(m.role for edge in rule.edges for m in edge)
            excluded = _excluded_hosts(built, element.name)
            for level in dict.fromkeys(_levels(built, element.name)) or (None,):
                found |= {
                    _label(built, level, role): _usable(built, level, role, excluded)
                    for role in roles
                }
            found |= {} if excluded else _named_hosts(built, rule)
        else:
            label = _label(built, None, element.name)
            found[label] = _usable(built, None, element.name)
            if element.kind == RESOURCES:
                found |= _free(built, element.name, binding[element.name])
            if element.kind == DEVICES:
                groups = binding[groups_key(element.name)]
                found |= _device_facts(built, _role(built, element.name), groups)
    return tuple(found.items())


def _named_hosts(built: BuiltProblem, rule: PolicyRule) -> dict[str, int]:
    """How many hosts a policy on named hosts leaves, ignoring everything else.

    For the member to be placed with the fewest hosts, by all its primitives together.
    """
    problem = built.problem
    left: dict[MemberName, Bools] = {}
    for one in problem.primitives:
        if one.policy == rule.statement.name and isinstance(one, OnlyOn | NeverOn):
            mask = permitted_hosts(one, len(problem.hosts))[: problem.host_count]
            for member in one.members:
                left[member] = left.get(member, mask) & mask
    moving = [mask for member, mask in left.items() if member not in built.request.fixed]
    counts = [int(mask.sum()) for mask in moving or left.values()]
    return {f"hosts that {rule.statement.name} leaves": min(counts)} if counts else {}


def _levels(built: BuiltProblem, policy: str) -> Iterator[Level]:
    for one in built.problem.primitives:
        if one.policy == policy and not isinstance(one, OnlyOn | NeverOn):
            yield one.level


def _label(built: BuiltProblem, level: Level | None, role_name: str) -> str:
    role = _role(built, role_name)
    return f"{level or _giver(role)}s usable for {role.flavor or role.name}"


def _excluded_hosts(built: BuiltProblem, policy: str) -> frozenset[int]:
    """Rows of the hosts on which a policy is violated, if the other members must avoid them."""
    if not _excludes_violated_domains(built, policy):
        return frozenset()
    named = (one for one in built.problem.primitives if one.policy == policy)
    return frozenset().union(*(one.hosts for one in named if isinstance(one, NeverOn)))


def _usable(
    built: BuiltProblem, level: Level | None, role_name: str, excluded: frozenset[int] = frozenset()
) -> int:
    """Number of hosts, or domains of a level, that have room for the role or hold it already.

    Hosts in `excluded` do not count.
    """
    problem = built.problem
    mask = _allowed(built, role_name)
    mine = (problem.fixed >= 0) & np.isin(problem.role_of, _role_numbers(built, role_name))
    mask[problem.fixed[mine]] = True
    mask[list(excluded)] = False
    if level is None:
        return int(mask.sum())
    domains = np.unique(problem.domains[level][: len(mask)][mask])
    return int((domains >= 0).sum())


def _role_numbers(built: BuiltProblem, name: str) -> list[int]:
    """The roles of the problem that stand for a role of the request: one for each alternative."""
    names = (name,) if built.alternatives is None else built.alternatives.roles[name]
    roles = built.problem.roles
    return [roles.index(one) for one in names if one in roles]


def _allowed(built: BuiltProblem, name: str) -> Bools:
    """[H] hosts that are allowed for a member of the role, as whichever alternative."""
    every = built.problem.allowed[:, : built.problem.host_count]
    return np.asarray(every[_role_numbers(built, name)].any(axis=0))


def _free(built: BuiltProblem, role_name: str, classes: frozenset[str]) -> dict[str, int]:
    """The total free amounts of the classes on the hosts usable for the role."""
    problem = built.problem
    usable = _allowed(built, role_name)
    free = "there on the empty fleet" if built.terrain.emptied else "free there"
    return {
        f"{name} {free} for {_role(built, role_name).flavor or role_name}": _amount(
            built, role_name, usable, name, k
        )
        for k, name in enumerate(problem.classes)
        if name in classes
    }


def _amount(built: BuiltProblem, role_name: str, usable: Bools, name: str, k: int) -> int:
    """What is free of a class for a role on some hosts; what several share counts once."""
    proof = built.problem.proof
    if proof is None or name not in proof.devices.classes:
        return int(np.maximum(built.problem.free[: len(usable), k][usable], 0).sum())
    devices = proof.devices
    row, position, borrowed = devices.accessible
    number, gives = devices.classes.index(name), np.zeros(len(row), dtype=np.bool_)
    for role in _role_numbers(built, role_name):
        for slot in proof.requirements[role].slots:
            if any(one == number for one, _ in slot.amounts):
                gives |= np.where(borrowed, slot.lends[position], slot.own[position])
    free = devices.free[np.unique(position[usable[row] & gives]), number]
    return int(np.maximum(free, 0).sum())


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


def _device_facts(built: BuiltProblem, role: Role, groups: frozenset[str]) -> dict[str, int]:
    """Facts: how often each group fits in total, and how many hosts can serve one member."""
    proof = built.problem.proof
    if proof is None or role.name not in built.problem.roles:
        return {}
    number = built.problem.roles.index(role.name)
    found = dict(_amounts(built, number, groups))
    served = proof.single_role(number, 1).feasible
    found[f"hosts that serve all of one {role.name}"] = int(served.sum())
    return found


def _amounts(built: BuiltProblem, number: int, groups: frozenset[str]) -> Iterator[tuple[str, int]]:
    proof = built.problem.proof
    assert proof is not None
    devices = proof.devices
    for slot in proof.requirements[number].slots:
        if slot.group in groups:
            able = slot.own | slot.lends
            for k, amount in slot.amounts:
                whole = np.maximum(devices.free[able, k], 0) // amount
                yield f"places for {slot.label}", int(whole.sum())
