"""Sequential placement: places members one at a time, as a scheduler without joint decisions does.

For comparison with the joint decision only, and deterministic: each member is placed on the host
with the most free of a resource class, the first by name among equals, among those on which it
violates no required policy with the members placed before. It is never moved again.

Policies are evaluated over the members placed so far. `AtLeastDomains` is violated once the
remaining members cannot reach the limit, and `Near` once all of the others are placed. Skew counts
all eligible domains, used or not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.joint.cost import excess, members_of
from moorage.policies.primitives import AtLeastDomains, Near, Sided

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SequentialPlacement:
    """The result of a sequential placement."""

    hosts: Mapping[MemberName, int]
    """Member -> host row, in the order of placement."""
    failed: MemberName | None = None
    """The first member without a possible host."""
    conflict: tuple[str, ...] = ()
    """A minimal set of policies that together leave no host for `failed`. Empty if no host has
    capacity for it."""


def place_sequentially(
    problem: Problem, order: Sequence[MemberName], *, names: Sequence[str], by: str = "VCPU"
) -> SequentialPlacement:
    """Place members in this order; stop at the first that finds no host.

    Hosts are compared by the resource class `by`, or the problem's first class if it does not have
    it; their `names` decide between equals. Fixed members are placed from the beginning.
    """
    column = problem.classes.index(by) if by in problem.classes else 0
    position = {member: index for index, member in enumerate(problem.members)}
    rows = np.maximum(problem.fixed, 0)
    placed = {m for m, index in position.items() if problem.fixed[index] >= 0}
    free = problem.free.copy()
    required = [one for one in problem.primitives if one.weight is None]
    by_name = np.argsort(np.array(names, dtype=object), kind="stable")
    found: dict[MemberName, int] = {}
    for member in order:
        index = position[member]
        role = int(problem.role_of[index])
        room = problem.allowed[role] & (free >= problem.demand[role]).all(axis=1)
        posted = [one for one in required if member in members_of(one)]
        left = _satisfying_hosts(problem, posted, rows, placed | {member}, index, room)
        if not left.any():
            blamed = _minimal_conflict(problem, posted, rows, placed | {member}, index, room)
            return SequentialPlacement(found, member, blamed)
        candidates = by_name[left[by_name]]
        chosen = int(candidates[np.argmax(free[candidates, column])])
        rows[index], found[member] = chosen, chosen
        placed.add(member)
        free[chosen] -= problem.demand[role]
    return SequentialPlacement(found)


def _satisfying_hosts(
    problem: Problem,
    primitives: Iterable[Primitive],
    rows: Ints,
    placed: AbstractSet[MemberName],
    index: int,
    room: Bools,
) -> Bools:
    """[H] hosts among `room` where placing the member violates none of the primitives."""
    candidates = np.flatnonzero(room)
    tried = np.tile(rows, (len(candidates), 1))
    tried[:, index] = candidates
    unbroken = np.ones(len(candidates), dtype=np.bool_)
    for primitive in primitives:
        unbroken &= excess(problem, _over_placed(primitive, placed), tried) == 0
    left = np.zeros_like(room)
    left[candidates[unbroken]] = True
    return left


def _over_placed(primitive: Primitive, placed: AbstractSet[MemberName]) -> Primitive:
    """The primitive restricted to the placed members; a relaxation for those still to come."""
    members = tuple(member for member in primitive.members if member in placed)
    if isinstance(primitive, Near) and not placed >= set(primitive.others):
        return replace(primitive, members=())
    if isinstance(primitive, Sided):
        others = tuple(member for member in primitive.others if member in placed)
        return replace(primitive, members=members, others=others)
    if isinstance(primitive, AtLeastDomains):
        to_come = len(primitive.members) - len(members)
        return replace(primitive, members=members, limit=primitive.limit - to_come)
    return replace(primitive, members=members)


def _minimal_conflict(
    problem: Problem,
    primitives: Sequence[Primitive],
    rows: Ints,
    placed: AbstractSet[MemberName],
    index: int,
    room: Bools,
) -> tuple[str, ...]:
    """A minimal set (by deletion) of policies that leave no host; empty: no host has capacity."""
    if not room.any():
        return ()
    names = tuple(dict.fromkeys(one.policy for one in primitives))
    kept = names
    for name in names:
        without = [one for one in primitives if one.policy in kept and one.policy != name]
        if not _satisfying_hosts(problem, without, rows, placed, index, room).any():
            kept = tuple(one for one in kept if one != name)
    return kept
