"""Verifies a solver's answer by the policies' meanings and by sums, without a solver.

Every answer is verified before it is committed, in production too.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.decisions import PolicyStatus
from moorage.domain.errors import MoorageError
from moorage.domain.placement import Place, Placement
from moorage.domain.resources import amounts
from moorage.engine.joint.host_filters import closed_to
from moorage.engine.joint.standing_violations import NO_VIOLATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.engine.devices.proof import Proof
    from moorage.engine.devices.slot_requirements import RoleRequirements
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.host_filters import Closed
    from moorage.engine.joint.problem import Problem

    Ints: TypeAlias = NDArray[np.int64]


class WrongAnswer(MoorageError):
    """A solver's answer violates its problem: a defect of Moorage, not of the request.

    `faults` lists all violations.
    """

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__(f"the solver's answer is wrong: {'; '.join(faults)}")
        self.faults = faults


def verify(built: BuiltProblem, hosts: Sequence[int] | Ints) -> tuple[PolicyStatus, ...]:
    """Check an assignment (host row per member), and return its status under every policy.

    A violation by standing members is no fault of the answer; a greater one is.

    Raises:
        WrongAnswer: a member without a host, on a host it may not use or away from where it
            is fixed; a host overfilled; a required policy violated; devices that cannot serve
            the members.
    """
    problem = built.problem
    rows = np.asarray(hosts, dtype=np.int64)
    if faults := tuple(_assignment_faults(problem, rows)):
        raise WrongAnswer(faults)
    if faults := tuple(_choice_faults(problem, rows)):
        raise WrongAnswer(faults)
    placed = {name: row for name, _, row in placed_members(built, rows)}
    placement = Placement(built.policy_view, placed)
    statuses, broken = policy_statuses(built, placement)
    if faults := (*_capacity_faults(problem, rows), *broken, *_proof_faults(built, rows)):
        raise WrongAnswer(faults)
    return statuses


def policy_statuses(
    built: BuiltProblem, placement: Placement
) -> tuple[tuple[PolicyStatus, ...], tuple[str, ...]]:
    """A placement's status under every policy, and the texts of violated required policies.

    Violations by standing members are accepted, on edges that were there before the decision.
    """
    statuses, broken = [], []
    for rule in built.rules:
        by_edge = [(edge, rule.policy.violations(edge, placement)) for edge in rule.edges]
        found = [violation for _, some in by_edge for violation in some]
        slacks = [rule.policy.slack(edge, placement) for edge in rule.edges]
        measured = [slack for slack in slacks if slack is not None]
        amount = sum(violation.amount for violation in found)
        name, weight = rule.statement.name, rule.statement.weight
        former = built.former.get(name)
        new = any(some and not (former and former.stood(edge)) for edge, some in by_edge)
        accepted = built.standing.get(name, NO_VIOLATION).amount
        worse = weight is None and (new or amount > accepted)
        statuses.append(
            PolicyStatus(
                name=name,
                satisfied=not found,
                slack=min(measured) if measured else None,
                penalty=amount * weight if weight is not None else 0,
                standing=amount if weight is None and not worse else 0,
            )
        )
        if worse:
            broken += [f"{name}: {violation.text}" for violation in found]
    return tuple(statuses), tuple(broken)


def placed_members(built: BuiltProblem, rows: Ints) -> Iterator[tuple[MemberName, int, int]]:
    """Each member of the request, its number in the problem (that of its choice), and its row."""
    problem = built.problem
    if built.alternatives is None:
        for m, (name, row) in enumerate(zip(problem.members, rows.tolist(), strict=True)):
            yield name, m, row
        return
    for name, parts in built.alternatives.parts.items():
        for part in parts:
            m = problem.position_of[part]
            if rows[m] < problem.host_count:
                yield name, m, int(rows[m])


def _choice_faults(problem: Problem, rows: Ints) -> Iterator[str]:
    """Members that are placed as none of their choices, or as several."""
    for some in problem.choices:
        placed = int((rows[list(some)] < problem.host_count).sum())
        if placed != 1:
            yield f"{problem.members[some[0]]} is placed as {placed} of its choices"


def _assignment_faults(problem: Problem, rows: Ints) -> Iterator[str]:
    if rows.shape != (len(problem.members),):
        yield f"{len(problem.members)} members, {rows.size} hosts"
        return
    numbers = zip(rows.tolist(), problem.fixed.tolist(), problem.role_of.tolist(), strict=True)
    for member, (row, fixed, role) in zip(problem.members, numbers, strict=True):
        if not 0 <= row < len(problem.hosts):
            yield f"{member} has no host"
        elif fixed >= 0:
            if row != fixed:
                yield f"{member} stands on {problem.hosts[fixed]} and may not move"
        elif not problem.allowed[role, row]:
            yield f"{member} may not stand on {problem.hosts[row]}"


def places(built: BuiltProblem, hosts: Sequence[int] | Ints) -> Mapping[MemberName, Place]:
    """The place of every member that is placed now, for an assignment that passed `verify`."""
    problem, alternatives = built.problem, built.alternatives
    request = built.request if alternatives is None else alternatives.plain
    rows = np.asarray(hosts, dtype=np.int64)
    moving = [one for one in placed_members(built, rows) if problem.fixed[one[1]] < 0]
    providers: Mapping[int, tuple[int, ...]] = {}
    if problem.proof is not None:
        standing = problem.to_place[rows[problem.to_place] < problem.host_count]
        providers = problem.proof.assign(problem.role_of, standing, rows).providers
    found = {}
    for name, m, row in moving:
        uuid, part = problem.hosts[row], problem.members[m]
        if problem.proof is None:
            taken = MappingProxyType({uuid: request.role_of(part).resources})
            place = Place(uuid, taken)
        else:
            place = _place(problem, problem.proof, m, row, providers[m])
        choice = 0 if alternatives is None else alternatives.choice_of[part]
        found[name] = replace(place, choice=choice) if choice else place
    return found


def _place(problem: Problem, proof: Proof, m: int, row: int, given: tuple[int, ...]) -> Place:
    """A member's place: amounts per provider, and the provider of each of its groups."""
    devices = proof.devices
    slots = proof.requirements[int(problem.role_of[m])].slots
    taken: dict[str, dict[str, int]] = {}
    for slot, at in zip(slots, given, strict=True):
        for k, amount in slot.amounts:
            mine = taken.setdefault(devices.uuids[at], {})
            mine[devices.classes[k]] = mine.get(devices.classes[k], 0) + amount
    return Place(
        host=problem.hosts[row],
        allocations=MappingProxyType({uuid: amounts(taken[uuid]) for uuid in sorted(taken)}),
        groups=MappingProxyType(
            {
                slot.group: devices.uuids[at]
                for slot, at in zip(slots, given, strict=True)
                if slot.group
            }
        ),
    )


def _proof_faults(built: BuiltProblem, rows: Ints) -> Iterator[str]:
    """Faults of the devices: none can be assigned, or the assignment is wrong."""
    problem = built.problem
    if problem.proof is None:
        return
    placed = problem.to_place[rows[problem.to_place] < problem.host_count]
    assigned = problem.proof.assign(problem.role_of, placed, rows)
    for refused in assigned.conflicts:
        hosts = ", ".join(problem.hosts[row] for row in refused.hosts)
        yield f"devices of {hosts} cannot serve the members there"
    if not assigned.conflicts:
        yield from device_faults(problem, problem.proof, rows, assigned.providers)
        yield from _closed_faults(problem, built.closed, problem.proof, assigned.providers)


def _closed_faults(
    problem: Problem, closed: Closed, proof: Proof, providers: Mapping[int, tuple[int, ...]]
) -> Iterator[str]:
    """Members that take from a provider which is closed to them."""
    shut = {role: closed_to(closed, role) for role in problem.roles}
    for m, given in providers.items():
        mine = shut[problem.roles[problem.role_of[m]]]
        for uuid in sorted({proof.devices.uuids[at] for at in given} & mine):
            yield f"{problem.members[m]} may not use {uuid}"


def _capacity_faults(problem: Problem, rows: Ints) -> Iterator[str]:
    """Hosts where the newly placed members take more of a class than is free."""
    moving = problem.fixed < 0
    taken = np.zeros_like(problem.free)
    np.add.at(taken, rows[moving], problem.demand[problem.role_of[moving]])
    for row, k in np.argwhere((taken > 0) & (taken > problem.free)).tolist():
        yield (
            f"{problem.classes[k]} on {problem.hosts[row]}: "
            f"taken {taken[row, k]}, free {problem.free[row, k]}"
        )


# --- devices --------------------------------------------------------------------------------


def device_faults(
    problem: Problem,
    proof: Proof,
    rows: Ints,
    providers: Mapping[int, tuple[int, ...]],
) -> Iterator[str]:
    """Every fault of an assignment of devices to the members that are placed now, as text.

    `rows` is [M] the host of each member; `providers` has, per placed member and slot of its role,
    the provider's position.
    """
    devices = proof.devices
    taken: dict[tuple[int, int], int] = {}
    for m in np.flatnonzero((problem.fixed < 0) & (rows < problem.host_count)).tolist():
        requirements = proof.requirements[int(problem.role_of[m])]
        given = providers.get(m, ())
        if len(given) != len(requirements.slots):
            yield f"{problem.members[m]} is not given all it asks for"
            continue
        mine: dict[tuple[int, int], int] = {}
        for slot, at in zip(requirements.slots, given, strict=True):
            gives = slot.own[at] if devices.trees.host[at] == rows[m] else slot.lends[at]
            if not gives or not _reaches(proof, int(rows[m]), at):
                yield f"{problem.members[m]}: {slot.label} from {devices.uuids[at]}"
            for k, amount in slot.amounts:
                mine[at, k] = mine.get((at, k), 0) + amount
        if any(amount > devices.max_amount(at, k) for (at, k), amount in mine.items()):
            yield f"{problem.members[m]} takes more of one provider than one consumer may"
        yield from (
            f"{problem.members[m]}: {fault}" for fault in _rule_faults(proof, requirements, given)
        )
        for key, amount in mine.items():
            taken[key] = taken.get(key, 0) + amount
    for (at, k), amount in sorted(taken.items()):
        if amount > devices.free[at, k]:
            yield (
                f"{devices.classes[k]} of {devices.uuids[at]}: "
                f"taken {amount}, free {devices.free[at, k]}"
            )


def _reaches(proof: Proof, host: int, at: int) -> bool:
    """Whether a host's members may use the provider."""
    trees = proof.devices.trees
    if trees.host[at] == host:
        return True
    first, last = np.searchsorted(trees.borrower, [host, host + 1])
    return bool((trees.lender[first:last] == at).any())


def _rule_faults(
    proof: Proof, requirements: RoleRequirements, given: tuple[int, ...]
) -> Iterator[str]:
    """Faults of one member's providers: `same_subtree`, `beside`, `isolate` and required traits."""
    lends = proof.devices.trees.lends
    for names in requirements.subtrees:
        if not _one_subtree(proof, {given[n] for n in names}):
            yield "groups that belong together are of several subtrees"
    if requirements.beside:
        own = {given[n] for n in requirements.own if not lends[given[n]]}
        low = {at for at in own if not any(_above(proof, at, one) for one in own - {at})}
        if not _one_subtree(proof, low | {given[n] for n in requirements.beside}):
            yield "a group is of another subtree than the member's own resources"
    named = [at for at, slot in zip(given, requirements.slots, strict=True) if slot.group]
    if requirements.isolate and len(set(named)) < len(named):
        yield "one provider serves two groups"
    for mask in requirements.required:
        if not any(mask[given[n]] for n in requirements.own):
            yield "nobody who gives own resources has a required trait"


def _one_subtree(proof: Proof, positions: set[int]) -> bool:
    return any(all(top == at or _above(proof, top, at) for at in positions) for top in positions)


def _above(proof: Proof, top: int, at: int) -> bool:
    """Whether one provider is an ancestor of another."""
    parent = proof.devices.trees.parent
    at = int(parent[at])
    while at >= 0:
        if at == top:
            return True
        at = int(parent[at])
    return False
