"""Refutes blocks: of members that share a domain, more than fit into all domains.

A block is what must be in one domain of a level together, such as a cell in a rack. Blocks of equal
members are counted by domain: so many that each class, and each host, has room for as many. Like
every test by counting it is a necessary condition: passing it proves nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.policies.primitives import AtMost, AtMostTogether, SameDomain
from moorage.policies.shared_domains import JoinedMembers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from moorage.domain.topology import Level
    from moorage.engine.joint.problem_index import ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Block: TypeAlias = tuple[int, ...]


def blocks_refute(numbers: ProblemIndex) -> bool:
    """Whether more blocks of equal members must be placed than all domains hold."""
    if numbers.problem.choices:
        return False
    levels = {
        one.primitive.level
        for one in numbers.constraints
        if one.required and isinstance(one.primitive, SameDomain)
    }
    return any(
        _refuted(numbers, level, blocks)
        for level in levels
        for blocks in _equal_blocks(numbers, level)
    )


def _equal_blocks(numbers: ProblemIndex, level: Level) -> Iterator[list[Block]]:
    """Blocks of a level, without fixed members and in some domain for sure, by their shape."""
    position = numbers.problem.position_of
    joined = JoinedMembers.by(
        one.primitive
        for one in numbers.constraints
        if one.required and isinstance(one.primitive, SameDomain) and one.primitive.level == level
    )
    blocks: dict[object, list[int]] = {}
    for member, head in joined.head.items():
        blocks.setdefault(head, []).append(position[member])
    outside = numbers.problem.domains[level] < 0
    shapes: dict[object, list[Block]] = {}
    for block in blocks.values():
        if any(numbers.fixed_rows[m] >= 0 for m in block):
            continue
        groups = {numbers.group_of[m] for m in block}
        if any((numbers.allowed[group] & outside).any() for group in groups):
            continue
        shape = frozenset(_shape(numbers, tuple(block)).items())
        shapes.setdefault(shape, []).append(tuple(block))
    yield from shapes.values()


def _shape(numbers: ProblemIndex, block: Block) -> Counter[tuple[int, int | None]]:
    """How many members there are alike, with the limit per host on all of a group's."""
    groups: dict[int, list[int]] = {}
    for m in block:
        groups.setdefault(numbers.group_of[m], []).append(m)
    found = Counter[tuple[int, int | None]]()
    for group, mine in groups.items():
        found[numbers.alike[group], numbers.host_limit(tuple(mine))] += len(mine)
    return found


def _refuted(numbers: ProblemIndex, level: Level, blocks: list[Block]) -> bool:
    """Whether more blocks of one shape are to be placed than the domains hold."""
    hosts = numbers.hosts_by(level)
    problem, block = numbers.problem, blocks[0]
    roles = problem.role_of[list(block)]
    demand = problem.demand[roles].sum(axis=0)
    least = numbers.fitting(problem.demand[roles].min(axis=0))
    allowed = np.logical_or.reduce([numbers.allowed[numbers.group_of[m]] for m in block])
    free = {
        k: hosts.sums(np.maximum(problem.free[:, k], 0) * allowed)
        for k in np.flatnonzero(demand).tolist()
    }
    shape = _shape(numbers, block)
    slots = {
        group: numbers.slots(numbers.role_of_group[group]) * numbers.allowed[group]
        for group, _ in shape
    }
    most = _most_in_a_domain(numbers, level, blocks)
    placed = 0
    for n in range(1, len(blocks) + 1):
        fits = hosts.sums(least * allowed) >= n * len(block)
        for k, have in free.items():
            fits &= have >= n * demand[k]
        for (group, limit), count in shape.items():
            there = slots[group] if limit is None else np.minimum(slots[group], n * limit)
            fits &= hosts.sums(there) >= n * count
        more = int(fits.sum()) if n <= most else 0
        placed += more
        if placed >= len(blocks):
            return False
        if not more:
            return True
    return True


def _most_in_a_domain(numbers: ProblemIndex, level: Level, blocks: list[Block]) -> int:
    """How many of the blocks one domain may hold, by the limits on members of all of them."""
    most = len(blocks)
    for one in numbers.constraints:
        primitive = one.primitive
        if not one.required or primitive.level != level:
            continue
        if isinstance(primitive, AtMost | AtMostTogether):
            members = set(one.members)
            fewest = min(len(members.intersection(block)) for block in blocks)
            if fewest:
                most = min(most, max(primitive.limit, 0) // fewest)
    return most
