"""The room of the fleet's hosts for the mix of requests, found for a problem on a snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.request_mix import Shape
from moorage.engine.joint.room import MOST_ROOM, Room, times

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
        found = np.full((len(shapes), len(self._rows)), MOST_ROOM, dtype=np.float32)
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
            return nothing + MOST_ROOM
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
