"""One tree as a query sees it, unpacked from its key, and what can be said before searching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.engine.candidates.query_shape import Shape


@dataclass(frozen=True, slots=True)
class Terms:
    """m providers in reach, by position."""

    size: int
    givers: tuple[tuple[int, ...], ...]
    """Per slot: positions that can give it."""
    carries: tuple[int, ...]
    """[m] bits: required trait sets that a provider helps to meet."""
    shares: tuple[bool, ...]
    """[m] whether it is a sharing provider."""
    most: tuple[tuple[int, ...], ...]
    """[m][summed class] the most that can be taken: room, but at most the largest unit."""
    room: tuple[tuple[int, ...], ...]
    """[m][summed class] what is left, as far as the query could use it."""
    above: tuple[int, ...]
    """[m] bits: itself and its ancestors in reach."""
    home: tuple[int, ...]
    """[m] a number per tree, where at most one provider of each tree may give."""
    twins: tuple[tuple[int, ...], ...]
    """Positions by kind: those of one kind may change places in any candidate."""


def terms(shape: Shape, key: bytes) -> Terms:
    """Unpack a key of `engine.reach`."""
    bits_wide, numbers_wide = shape.bits, shape.numbers
    width = bits_wide + 8 * numbers_wide
    table = np.frombuffer(key, dtype=np.uint8).reshape(-1, width)
    bits = table[:, :bits_wide].astype(np.bool_)
    numbers = np.ascontiguousarray(table[:, bits_wide:]).view(np.int64).reshape(len(table), -1)
    slots, summed = len(shape.slots), len(shape.summed)
    values: list[list[int]] = numbers.tolist()
    parents = [one[2 * summed] for one in values] if shape.same_subtrees else []
    size = len(table)
    required = bits[:, slots:-1].tolist()
    return Terms(
        size=size,
        givers=tuple(tuple(np.flatnonzero(bits[:, n]).tolist()) for n in range(slots)),
        carries=tuple(sum(1 << n for n, on in enumerate(one) if on) for one in required),
        shares=tuple(bits[:, -1].tolist()),
        most=tuple(
            tuple(map(min, one[0 : 2 * summed : 2], one[1 : 2 * summed : 2])) for one in values
        ),
        room=tuple(tuple(one[0 : 2 * summed : 2]) for one in values),
        above=_above(parents) if shape.same_subtrees else (0,) * size,
        home=tuple(one[-1] for one in values) if shape.one_provider_per_tree else (0,) * size,
        twins=_twins(table, parents, bits[:, :slots]),
    )


def _above(parents: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    for position in range(len(parents)):
        mask, at = 0, position
        while at >= 0:
            mask |= 1 << at
            at = parents[at]
        found.append(mask)
    return tuple(found)


def _twins(
    table: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    parents: Sequence[int],
    serves: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
) -> tuple[tuple[int, ...], ...]:
    """Equal features make twins, unless others stand under one of them."""
    inner = set(parents)
    kinds: dict[object, list[int]] = {}
    for position in np.flatnonzero(serves.any(axis=1)).tolist():
        kind = position if position in inner else table[position].tobytes()
        kinds.setdefault(kind, []).append(position)
    return tuple(tuple(positions) for positions in kinds.values())
