"""What each host still has room for of a mix of requests: the last criterion of a placement.

The harm of a placement is the share of the fleet's room that it takes from each shape of the mix,
weighed by how often the shape is asked for: with counts n_j and room S_j (how many of shape j the
fleet can take), the sum over j of n_j / S_j x (how many fewer of j the host can take afterwards).
That is the gradient of the weighted sum of log S_j. So what is scarce is spared most, a host that
can no longer take any of the mix costs nothing, and shapes that the request does not touch do not
count. It follows the idea of a gradient of fragmentation (Weng et al., "Beware of Fragmentation",
USENIX ATC 2023), with room in place of what is left over, for all resource classes alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.request_mix import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.request_mix import RequestMix
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.resources import Trait
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float32]

_MOST: Final = np.float32(1e6)
"""Room is counted up to here."""
_ROUNDING: Final = np.float32(1e-4)
"""Added before rounding down, so that what fits exactly is counted."""


@dataclass(frozen=True, eq=False)
class Room:
    """The room of H hosts for J shapes, and what each shape is worth."""

    demand: Ints
    """[J, K] what one takes of each class of the problem; 0 of classes that only shapes name."""
    ceiling: Floats
    """[J, H] how many each host can take before anything is placed."""
    worth: Floats
    """[J] n_j / S_j, scaled such that a host with the fleet's average room is worth 1 in all."""

    def value(self, free: Ints, rows: Ints | slice) -> NDArray[np.float64]:
        """[n] what the room of these hosts is worth with so much [K, n] free."""
        there = np.maximum(free[self._taken], 0).astype(np.float32)
        room = self._shares * there
        room += self._offsets
        left = np.floor(room, out=room).min(axis=1, initial=_MOST)
        np.minimum(left, self.ceiling[:, rows], out=left)
        return (self.worth @ left).astype(np.float64)

    @cached_property
    def _taken(self) -> Ints:
        """The classes of the problem that any shape takes."""
        return np.flatnonzero(self.demand.any(axis=0)).astype(np.int64)

    @cached_property
    def _shares(self) -> Floats:
        """[J, classes taken, 1] what of each shape one unit is; 0 where it takes none."""
        amounts = self.demand[:, self._taken, None]
        return np.where(amounts > 0, 1.0 / np.maximum(amounts, 1), 0.0).astype(np.float32)

    @cached_property
    def _offsets(self) -> Floats:
        """[J, classes taken, 1] added before rounding down; `_MOST` where none is taken."""
        return np.where(self._shares > 0, _ROUNDING, _MOST).astype(np.float32)


def times(free: Ints, amounts: Ints) -> Floats:
    """[J, n] how often each amount [J] fits into what is free [n]; none into less than nothing."""
    there = np.maximum(free, 0).astype(np.float32)
    found = np.multiply.outer((1.0 / amounts).astype(np.float32), there)
    found += _ROUNDING
    return np.floor(found, out=found)


def shape_of(role: Role) -> Shape:
    """What a member of a role takes and requires."""
    taken = Counter(role.resources)
    for group in role.groups:
        taken.update(group.resources)
    required = {name for any_of in role.required if len(any_of) == 1 for name in any_of}
    return Shape(
        tuple(sorted((name, amount) for name, amount in taken.items() if amount)),
        tuple(sorted(required)),
    )


def with_room(built: BuiltProblem, snapshot: Snapshot, mix: RequestMix) -> BuiltProblem:
    """The problem with the fleet's room for a mix and for the request's own members.

    The snapshot is the one that the problem's terrain was cut from.
    """
    problem, request = built.problem, built.request
    rows = built.terrain.fleet_rows
    if rows is None:
        return built
    mix = mix.joined(Counter(shape_of(request.role_of(one)) for one in request.members))
    ceiling = _ClassRoom(snapshot, request, rows).of([shape for shape, _ in mix.shapes])
    total = ceiling.sum(axis=1, dtype=np.float64)
    counts = np.array([count for _, count in mix.shapes], dtype=np.float64)
    worth = np.where(total > 0, counts / np.maximum(total, 1), 0.0)
    scale = len(rows) / max(float((worth * total).sum()), 1.0)
    amounts = [dict(shape.resources) for shape, _ in mix.shapes]
    demand = np.array(
        [[mine.get(name, 0) for name in problem.classes] for mine in amounts], dtype=np.int64
    ).reshape(len(amounts), len(problem.classes))
    if problem.choices:
        ceiling = np.hstack([ceiling, np.zeros((len(ceiling), 1), dtype=np.float32)])
    room = Room(demand, ceiling, (worth * scale).astype(np.float32))
    return replace(built, problem=replace(problem, room=room))


class _ClassRoom:
    """The room of hosts for shapes, over a request's period."""

    def __init__(self, snapshot: Snapshot, request: EnsembleRequest, rows: Ints) -> None:
        """`rows` [H] are the hosts' rows in the snapshot."""
        self._snapshot, self._request, self._rows = snapshot, request, rows

    def of(self, shapes: Sequence[Shape]) -> Floats:
        """[J, H] how many of each shape each host can take."""
        found = np.full((len(shapes), len(self._rows)), _MOST, dtype=np.float32)
        by_class: dict[str, dict[int, list[int]]] = {}
        for j, shape in enumerate(shapes):
            for name, amount in shape.resources:
                by_class.setdefault(name, {}).setdefault(amount, []).append(j)
            for trait in shape.required:
                found[j][~self._has(trait)] = 0
        for name, amounts in by_class.items():
            for some, room in zip(amounts.values(), self._of_class(name, [*amounts]), strict=True):
                for j in some:
                    np.minimum(found[j], room, out=found[j])
        return found

    def _has(self, trait: Trait) -> Bools:
        """[H] whether a provider of the host's tree has the trait."""
        snapshot = self._snapshot
        mask = snapshot.traits.get(trait)
        roots = np.zeros(len(snapshot.uuids), dtype=np.bool_)
        if mask is not None:
            roots[snapshot.root[mask & snapshot.alive]] = True
        return roots[self._rows]

    def _of_class(self, name: str, amounts: Sequence[int]) -> Floats:
        """[A, H] how often each amount is free, on one provider each time.

        What providers share with other trees is not the hosts', and is taken as enough.
        """
        snapshot, request = self._snapshot, self._request
        columns = snapshot.classes.get(name)
        nothing = np.zeros((len(amounts), len(self._rows)), dtype=np.float32)
        if columns is None:
            return nothing
        lends = snapshot.traits.get(SHARING_TRAIT)
        if lends is not None and lends[columns.rows].any():
            return nothing + _MOST
        free = columns.capacity - snapshot.peak_over(name, request.period, without=request.released)
        asked = np.array(amounts, dtype=np.int64)
        room = times(free, asked)
        room[asked[:, None] > columns.max_unit] = 0
        if (snapshot.parent[columns.rows] < 0).all():  # one provider of the class in each tree
            at = columns.position[self._rows]
            return np.where(at >= 0, np.take(room, at, axis=1, mode="clip"), np.float32(0))
        roots = snapshot.root[columns.rows]
        size = len(snapshot.uuids)
        return np.array([np.bincount(roots, some, size)[self._rows] for some in room], np.float32)
