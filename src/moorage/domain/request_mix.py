"""The mix of requests that a fleet serves: what others may still want to place.

A decision prefers, among hosts that cost it the same, those that leave most room for the mix.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.resources import Trait

MOST_SHAPES: Final = 16
"""So many shapes are weighed at most; see `RequestMix.of`."""


class Shape(NamedTuple):
    """What one server takes in all, and what its host must have."""

    resources: tuple[tuple[str, int], ...]
    """(class, amount above 0), sorted."""
    required: tuple[Trait, ...] = ()
    """Traits of its host, all of them; sorted."""

    @property
    def kind(self) -> tuple[tuple[str, ...], tuple[Trait, ...]]:
        """Its classes and traits: shapes of one kind differ only in amounts."""
        return tuple(name for name, _ in self.resources), self.required


@dataclass(frozen=True, slots=True)
class RequestMix:
    """Shapes with how often each is asked for."""

    shapes: tuple[tuple[Shape, int], ...] = ()
    """(shape, count above 0), the most frequent first; at most `MOST_SHAPES`, no shape twice."""
    merged: int = 0
    """Number of shapes that were merged with others of their kind, or left out."""

    @classmethod
    def of(cls, counts: Mapping[Shape, int]) -> RequestMix:
        """The mix with these counts; shapes that take nothing are left out.

        Of more than `MOST_SHAPES` shapes the most frequent half of that number is kept as it is.
        The others of one kind become one shape with the mean of their amounts; of these the most
        frequent ones are kept.
        """
        every = _ordered((shape, n) for shape, n in counts.items() if n > 0 and shape.resources)
        if len(every) <= MOST_SHAPES:
            return cls(every)
        kept = Counter(dict(every[: MOST_SHAPES // 2]))
        rest: dict[object, list[tuple[Shape, int]]] = {}
        for shape, count in every[MOST_SHAPES // 2 :]:
            rest.setdefault(shape.kind, []).append((shape, count))
        for shape, count in _ordered(map(_mean, rest.values()))[: MOST_SHAPES - len(kept)]:
            kept[shape] += count
        return cls(_ordered(kept.items()), len(every) - len(kept))

    def joined(self, counts: Mapping[Shape, int]) -> RequestMix:
        """The mix with these counts added."""
        return RequestMix.of(Counter(dict(self.shapes)) + Counter(counts))


def _ordered(shapes: Iterable[tuple[Shape, int]]) -> tuple[tuple[Shape, int], ...]:
    return tuple(sorted(shapes, key=lambda one: (-one[1], one[0])))


def _mean(some: list[tuple[Shape, int]]) -> tuple[Shape, int]:
    """The shape of their kind with the mean of their amounts, rounded up; their number."""
    total = sum(count for _, count in some)
    sums: Counter[str] = Counter()
    for shape, count in some:
        for name, amount in shape.resources:
            sums[name] += amount * count
    means = tuple((name, -(-amount // total)) for name, amount in sorted(sums.items()))
    return Shape(means, some[0][0].required), total
