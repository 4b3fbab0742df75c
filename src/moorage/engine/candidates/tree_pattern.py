"""A tree pattern: the providers in reach of one tree as a query sees them, unpacked from a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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
    """Unpack a key of `tree_keys`."""
    bits_wide, numbers_wide = shape.flag_count, shape.number_count
    width = bits_wide + 8 * numbers_wide
    table = np.frombuffer(key, dtype=np.uint8).reshape(-1, width)
    bits = table[:, :bits_wide].astype(np.bool_)
    numbers = np.ascontiguousarray(table[:, bits_wide:]).view(np.int64).reshape(len(table), -1)
    slots, summed = len(shape.slots), len(shape.shared_classes)
    values: list[list[int]] = numbers.tolist()
    parents = [one[2 * summed] for one in values] if shape.same_subtrees else []
    size = len(table)
    required = bits[:, slots:-1].tolist()
    return TreePattern(
        size=size,
        providers=tuple(tuple(np.flatnonzero(bits[:, n]).tolist()) for n in range(slots)),
        traits_met=tuple(sum(1 << n for n, on in enumerate(one) if on) for one in required),
        shares=tuple(bits[:, -1].tolist()),
        max_amount=tuple(
            tuple(map(min, one[0 : 2 * summed : 2], one[1 : 2 * summed : 2])) for one in values
        ),
        free=tuple(tuple(one[0 : 2 * summed : 2]) for one in values),
        ancestors=_ancestors(parents) if shape.same_subtrees else (0,) * size,
        tree=tuple(one[-1] for one in values) if shape.one_provider_per_tree else (0,) * size,
        interchangeable=_interchangeable(table, parents, bits[:, :slots]),
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
    table: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    parents: Sequence[int],
    serves: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
) -> tuple[tuple[int, ...], ...]:
    """Groups of providers with equal features; one with descendants is alone in its group."""
    inner = set(parents)
    kinds: dict[object, list[int]] = {}
    for position in np.flatnonzero(serves.any(axis=1)).tolist():
        kind = position if position in inner else table[position].tobytes()
        kinds.setdefault(kind, []).append(position)
    return tuple(tuple(positions) for positions in kinds.values())
