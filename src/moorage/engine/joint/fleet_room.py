"""The room of the fleet's hosts for the mix of requests, found for a problem on a snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.request_mix import shape_of
from moorage.engine.joint.room import MOST_ROOM, Room, times
from moorage.engine.state.ledger_mix import ledger_mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.request_mix import RequestMix, Shape
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.resources import Trait
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float32]


def weighed_mix(snapshot: Snapshot, request: EnsembleRequest) -> RequestMix:
    """The mix that a decision weighs: as an operator stated it, or else as the ledger tells it.

    The request's own members count in the latter, too.
    """
    if snapshot.stated_mix is not None:
        return snapshot.stated_mix.weighed
    own = Counter(shape_of(request.role_of(one)) for one in request.members)
    return ledger_mix(snapshot).joined(own)


def with_fleet_room(built: BuiltProblem, snapshot: Snapshot) -> BuiltProblem:
    """The problem with the fleet's room for the mix that it weighs; see `with_room`."""
    return with_room(built, snapshot, weighed_mix(snapshot, built.request))


def with_room(built: BuiltProblem, snapshot: Snapshot, mix: RequestMix) -> BuiltProblem:
    """The problem with the fleet's room for a mix.

    The snapshot is the one that the problem's terrain was cut from.
    """
    problem, request = built.problem, built.request
    rows = built.terrain.fleet_rows
    if rows is None:
        return built
    ceiling = _HostRoom(snapshot, request, rows).of([shape for shape, _ in mix.shapes])
    total = ceiling.sum(axis=1, dtype=np.float64)
    counts = np.array([count for _, count in mix.shapes], dtype=np.float64)
    worth = np.where(total > 0, counts / np.maximum(total, 1), 0.0)
    scale = len(rows) / max(float((worth * total).sum()), 1.0)
    amounts = [shape.whole for shape, _ in mix.shapes]
    demand = np.array(
        [[mine.get(name, 0) for name in problem.classes] for mine in amounts], dtype=np.int64
    ).reshape(len(amounts), len(problem.classes))
    if problem.choices:
        ceiling = np.hstack([ceiling, np.zeros((len(ceiling), 1), dtype=np.float32)])
    room = Room(demand, ceiling, (worth * scale).astype(np.float32))
    return replace(built, problem=replace(problem, room=room))


class _HostRoom:
    """The room of hosts for shapes, over a request's period."""

    def __init__(self, snapshot: Snapshot, request: EnsembleRequest, rows: Ints) -> None:
        """`rows` [H] are the hosts' rows in the snapshot."""
        self._snapshot, self._request, self._rows = snapshot, request, rows
        self._free: dict[str, Ints] = {}
        """Class -> [n] what is free of it on each provider that has it."""

    def of(self, shapes: Sequence[Shape]) -> Floats:
        """[J, H] how many of each shape each host can take.

        Each class and each group is counted for itself: what they take of one provider together is
        not known before they are placed.
        """
        found = np.full((len(shapes), len(self._rows)), MOST_ROOM, dtype=np.float32)
        alike: dict[tuple[str, tuple[Trait, ...]], dict[int, list[int]]] = {}
        groups: dict[tuple[Shape, int], list[int]] = {}
        for j, shape in enumerate(shapes):
            for name, amount in shape.resources:
                alike.setdefault((name, shape.forbidden), {}).setdefault(amount, []).append(j)
            for any_of in shape.required:
                found[j][~self._has(any_of)] = 0
            for one in Counter(shape.groups).items():
                groups.setdefault(one, []).append(j)
        for (name, forbidden), amounts in alike.items():
            room = self._of_class(name, [*amounts], forbidden)
            for some, each in zip(amounts.values(), room, strict=True):
                for j in some:
                    np.minimum(found[j], each, out=found[j])
        for (group, number), some in groups.items():
            each = np.floor(self._of_group(group) / np.float32(number))
            for j in some:
                np.minimum(found[j], each, out=found[j])
        return found

    def _has(self, any_of: Sequence[Trait]) -> Bools:
        """[H] whether a provider of the host's tree has one of the traits."""
        snapshot = self._snapshot
        roots = np.zeros(len(snapshot.uuids), dtype=np.bool_)
        roots[snapshot.root[self._with_trait(any_of) & snapshot.alive]] = True
        return roots[self._rows]

    def _with_trait(self, any_of: Sequence[Trait]) -> Bools:
        """[P] providers that have one of the traits."""
        found = np.zeros(len(self._snapshot.uuids), dtype=np.bool_)
        for trait in any_of:
            mask = self._snapshot.traits.get(trait)
            if mask is not None:
                found |= mask
        return found

    def _of_class(self, name: str, amounts: Sequence[int], forbidden: Sequence[Trait]) -> Floats:
        """[A, H] how often each amount is free, on one provider each time.

        What providers share with other trees is not the hosts', and is taken as enough.
        """
        snapshot = self._snapshot
        columns = snapshot.classes.get(name)
        nothing = np.zeros((len(amounts), len(self._rows)), dtype=np.float32)
        if columns is None:
            return nothing
        if self._is_shared(name):
            return nothing + MOST_ROOM
        room = self._on_providers(name, amounts)
        if forbidden:
            room[:, self._with_trait(forbidden)[columns.rows]] = 0
        if (snapshot.parent[columns.rows] < 0).all():  # one provider of the class in each tree
            at = columns.position[self._rows]
            return np.where(at >= 0, np.take(room, at, axis=1, mode="clip"), np.float32(0))
        return np.array([self._summed(columns.rows, one) for one in room])

    def _of_group(self, group: Shape) -> Floats:
        """[H] how many of a group the host's providers can give, each one all of it."""
        snapshot = self._snapshot
        (first, amount), *others = group.resources
        columns = snapshot.classes.get(first)
        if columns is None:
            return np.zeros(len(self._rows), dtype=np.float32)
        if any(self._is_shared(name) for name, _ in group.resources):
            return np.full(len(self._rows), MOST_ROOM, dtype=np.float32)
        rows = columns.rows
        room = self._on_providers(first, [amount])[0]
        for name, more in others:
            beside = snapshot.classes.get(name)
            if beside is None:
                return np.zeros(len(self._rows), dtype=np.float32)
            at = beside.position[rows]
            there = np.take(self._on_providers(name, [more])[0], at, mode="clip")
            np.minimum(room, np.where(at >= 0, there, np.float32(0)), out=room)
        for any_of in group.required:
            room[~self._with_trait(any_of)[rows]] = 0
        if group.forbidden:
            room[self._with_trait(group.forbidden)[rows]] = 0
        return self._summed(rows, room)

    def _on_providers(self, name: str, amounts: Sequence[int]) -> Floats:
        """[A, n] how often each amount of a class is free on each provider that has it."""
        columns = self._snapshot.classes[name]
        if name not in self._free:
            taken = self._snapshot.peak_over(
                name, self._request.period, without=self._request.released
            )
            self._free[name] = columns.capacity - taken
        asked = np.array(amounts, dtype=np.int64)
        room = times(self._free[name], asked)
        room[asked[:, None] > columns.max_unit] = 0
        return room

    def _is_shared(self, name: str) -> bool:
        """Whether a provider of the class shares it with other trees."""
        columns, lends = self._snapshot.classes.get(name), self._snapshot.traits.get(SHARING_TRAIT)
        return columns is not None and lends is not None and bool(lends[columns.rows].any())

    def _summed(self, rows: Rows, room: Floats) -> Floats:
        """[H] the sum over the providers `rows` [n] of each host's tree."""
        roots = self._snapshot.root[rows]
        sums = np.bincount(roots, room, len(self._snapshot.uuids))
        return sums[self._rows].astype(np.float32)
