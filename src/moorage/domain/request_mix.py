"""The mix of requests that a fleet serves: what others may still want to place.

A decision prefers, among hosts that cost it the same, those that leave most room for the mix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from moorage.domain.ensembles import Role
from moorage.domain.flavors import Flavor
from moorage.domain.period import Instant
from moorage.domain.resources import Amounts, Trait

MOST_SHAPES: Final = 16
"""So many shapes are weighed at most; see `RequestMix.of`."""


MOST_RECORDED: Final = 5
"""So many shapes are kept with a decision."""


class Shape(NamedTuple):
    """What one server takes, and what its host must have and not have."""

    resources: tuple[tuple[str, int], ...] = ()
    """(class, amount above 0), sorted; without those of groups. Each class is one provider's."""
    required: tuple[tuple[Trait, ...], ...] = ()
    """All of these, each satisfied by any of its traits; sorted."""
    forbidden: tuple[Trait, ...] = ()
    """No provider that gives any of the resources has one of these; sorted."""
    groups: tuple[Shape, ...] = ()
    """What single providers of the host's tree give besides, each one group; sorted."""

    @property
    def kind(self) -> tuple[object, ...]:
        """All but the amounts."""
        names = tuple(name for name, _ in self.resources)
        return names, self.required, self.forbidden, tuple(one.kind for one in self.groups)

    @property
    def parts(self) -> tuple[Shape, ...]:
        """The shape without its groups, and each of them."""
        return self._replace(groups=()), *self.groups

    @property
    def whole(self) -> Mapping[str, int]:
        """What it takes of each class, its groups included."""
        taken: Counter[str] = Counter()
        for part in self.parts:
            taken.update(dict(part.resources))
        return taken


def shape(
    resources: Amounts,
    required: Iterable[Iterable[Trait]] = (),
    forbidden: Iterable[Trait] = (),
    groups: Iterable[Shape] = (),
) -> Shape:
    """The shape of these amounts and traits; groups that take nothing are left out."""
    return Shape(
        tuple(sorted((name, amount) for name, amount in resources.items() if amount)),
        tuple(sorted({tuple(sorted(set(any_of))) for any_of in required})),
        tuple(sorted(set(forbidden))),
        tuple(sorted(one for one in groups if one.resources)),
    )


def shape_of(asked: Role | Flavor) -> Shape:
    """What a member of a role, or a server of a flavor, takes and requires."""
    return shape(
        asked.resources,
        (*asked.required, *((trait,) for trait in asked.root_required)),
        asked.forbidden,
        (shape(one.resources, one.required, one.forbidden) for one in asked.groups),
    )


@dataclass(frozen=True, slots=True)
class RequestMix:
    """Shapes with how often each is asked for."""

    shapes: tuple[tuple[Shape, int], ...] = ()
    """(shape, count above 0), the most frequent first; at most `MOST_SHAPES`, no shape twice."""
    merged: int = 0
    """Number of shapes that were merged with others of their kind, or left out."""
    stated: bool = False
    """Whether an operator stated it."""

    @classmethod
    def of(cls, counts: Mapping[Shape, int]) -> RequestMix:
        """The mix with these counts; shapes that take nothing are left out.

        Of more than `MOST_SHAPES` shapes the most frequent half of that number is kept as it is.
        The others of one kind become one shape with the mean of their amounts; of these the most
        frequent ones are kept.
        """
        every = _ordered((shape, n) for shape, n in counts.items() if n > 0 and shape.whole)
        if len(every) <= MOST_SHAPES:
            return cls(every)
        kept = Counter(dict(every[: MOST_SHAPES // 2]))
        rest: dict[object, list[tuple[Shape, int]]] = {}
        for shape, count in every[MOST_SHAPES // 2 :]:
            rest.setdefault(shape.kind, []).append((shape, count))
        means = _ordered((_mean(some), _total(some)) for some in rest.values())
        for shape, count in means[: MOST_SHAPES - len(kept)]:
            kept[shape] += count
        return cls(_ordered(kept.items()), len(every) - len(kept))

    def joined(self, counts: Mapping[Shape, int]) -> RequestMix:
        """The mix with these counts added."""
        return RequestMix.of(Counter(dict(self.shapes)) + Counter(counts))


@dataclass(frozen=True, slots=True)
class StatedShape:
    """One shape of a mix that an operator states."""

    shape: Shape
    weight: int
    """How often it is asked for, in relation to the others; above 0."""
    flavors: tuple[str, ...] = ()
    """Names of the flavors whose shape it was when it was stated; sorted."""


@dataclass(frozen=True, slots=True)
class StatedMix:
    """The mix as an operator states it: it replaces what the ledger tells."""

    shapes: tuple[StatedShape, ...]
    """At most `MOST_SHAPES`, the heaviest first, no shape twice."""
    merged: int = 0
    """See `RequestMix.merged`."""
    updated_at: Instant = 0

    @classmethod
    def of(cls, stated: Iterable[StatedShape], *, now: Instant) -> StatedMix:
        """The mix of these shapes: the weights of equal ones are added, and there is a bound."""
        weights, flavors = Counter[Shape](), dict[Shape, set[str]]()
        for one in stated:
            weights[one.shape] += one.weight
            flavors.setdefault(one.shape, set()).update(one.flavors)
        mix = RequestMix.of(weights)
        kept = (
            StatedShape(shape, weight, tuple(sorted(flavors.get(shape, ()))))
            for shape, weight in mix.shapes
        )
        return cls(tuple(kept), mix.merged, now)

    @property
    def weighed(self) -> RequestMix:
        """The shapes with their weights."""
        shapes = tuple((one.shape, one.weight) for one in self.shapes)
        return RequestMix(shapes, self.merged, stated=True)


@dataclass(frozen=True, slots=True)
class ShapeTaken:
    """The room that a placement took from one shape of the mix."""

    shape: Shape
    weight: int
    """How often it is asked for, in relation to the others."""
    fits: int
    """How many of it the fleet could take before."""
    taken: int
    """How many fewer afterwards."""


@dataclass(frozen=True, slots=True)
class RoomTaken:
    """What a placement cost others: the record of the last criterion."""

    share: float
    """The share of the fleet's room that it took, from 0 to 1: the mean over the mix, by weight."""
    stated: bool
    """Whether an operator stated the mix."""
    weighed: int
    """How many shapes were weighed."""
    most: tuple[ShapeTaken, ...]
    """Those from which it took most by weight and share, at most `MOST_RECORDED`."""


def _ordered(shapes: Iterable[tuple[Shape, int]]) -> tuple[tuple[Shape, int], ...]:
    return tuple(sorted(shapes, key=lambda one: (-one[1], one[0])))


def _total(some: Iterable[tuple[Shape, int]]) -> int:
    return sum(count for _, count in some)


def _mean(some: Sequence[tuple[Shape, int]]) -> Shape:
    """The shape of their kind with the mean of their amounts, rounded up."""
    total = _total(some)
    model = some[0][0]
    sums: Counter[str] = Counter()
    for shape, count in some:
        for name, amount in shape.resources:
            sums[name] += amount * count
    groups = zip(*(shape.groups for shape, _ in some), strict=True)
    counts = [count for _, count in some]
    return model._replace(
        resources=tuple((name, -(-amount // total)) for name, amount in sorted(sums.items())),
        groups=tuple(sorted(_mean([*zip(each, counts, strict=True)]) for each in groups)),
    )
