"""A tree pattern: the providers in reach of one tree as a query sees them, unpacked from a key."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.engine.candidates.query_shape import QueryShape


@dataclass(frozen=True, slots=True)
class TreePattern:
    """m providers in reach of a tree, by position."""

    size: int
    providers: tuple[tuple[int, ...], ...]
    """Per slot: positions of the providers that can serve it."""
    traits_met: tuple[int, ...]
    """[m] bits: required trait sets that a provider helps to meet."""
    shares: tuple[bool, ...]
    """[m] whether it is a sharing provider."""
    used: tuple[int, ...]
    """Positions of the providers that a selection must use."""
    max_amount: tuple[tuple[int, ...], ...]
    """[m][shared class] the most that can be allocated: what is free, but at most `max_unit`."""
    free: tuple[tuple[int, ...], ...]
    """[m][shared class] what is free, capped at what the query could use."""
    ancestors: tuple[int, ...]
    """[m] bits: itself and its ancestors in reach."""
    tree: tuple[int, ...]
    """[m] tree number, if at most one provider of each tree may be used; else 0."""
    interchangeable: tuple[tuple[int, ...], ...]
    """Groups of positions: providers of one group may be exchanged in any candidate."""
    needs_unshared: bool = False
    """Whether a selection must use some provider that is not a sharing one."""


def unpack(shape: QueryShape, key: bytes) -> TreePattern:
    """Unpack a key of `tree_groups`."""
    flags, summed = shape.flag_count, len(shape.shared_classes)
    slots = len(shape.slots)
    sharing = slots + shape.required_sets
    numbers = struct.Struct(f"={shape.number_count}q")
    width = flags + numbers.size
    entries = [key[start : start + width] for start in range(0, len(key), width)]
    values = [numbers.unpack_from(one, flags) for one in entries]
    parents = [one[2 * summed] for one in values] if shape.same_subtrees else []
    size = len(entries)
    return TreePattern(
        size=size,
        providers=tuple(
            tuple([position for position, one in enumerate(entries) if one[number]])
            for number in range(slots)
        ),
        traits_met=tuple(
            [sum(1 << n for n, on in enumerate(one[slots:sharing]) if on) for one in entries]
        ),
        shares=tuple([bool(one[sharing]) for one in entries]),
        used=tuple([n for n, one in enumerate(entries) if shape.uses and one[sharing + 1]]),
        max_amount=tuple(
            tuple(map(min, one[0 : 2 * summed : 2], one[1 : 2 * summed : 2])) for one in values
        ),
        free=tuple(one[0 : 2 * summed : 2] for one in values),
        ancestors=_ancestors(parents) if shape.same_subtrees else (0,) * size,
        tree=tuple(one[-1] for one in values) if shape.one_provider_per_tree else (0,) * size,
        interchangeable=_interchangeable(entries, parents, slots),
    )


def _ancestors(parents: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    for position in range(len(parents)):
        mask, at = 0, position
        while at >= 0:
            mask |= 1 << at
            at = parents[at]
        found.append(mask)
    return tuple(found)


def _interchangeable(
    entries: Sequence[bytes], parents: Sequence[int], slots: int
) -> tuple[tuple[int, ...], ...]:
    """Groups of providers with equal features; one with descendants is alone in its group."""
    inner = set(parents)
    kinds: dict[object, list[int]] = {}
    for position, entry in enumerate(entries):
        if any(entry[:slots]):
            kinds.setdefault(position if position in inner else entry, []).append(position)
    return tuple(tuple(positions) for positions in kinds.values())
