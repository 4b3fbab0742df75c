"""The room of the fleet's hosts for the mix of requests, found for a problem on a snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.period import Period
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.request_mix import shape_of
from moorage.engine.joint.device_room import NO_DEVICE, DeviceRoom, Share, device_columns
from moorage.engine.joint.room import MOST_ROOM, Room, times
from moorage.engine.joint.windows import class_of_column
from moorage.engine.state.ledger_mix import ledger_mix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.flavors import Flavor
    from moorage.domain.request_mix import RequestMix, Shape
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.resources import Trait
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Problem
    from moorage.engine.joint.windows import TimedProblem
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float32]


_MOST_DEVICES: Final = 64
"""A class of which some host has more providers is counted by what is free of it in all."""


def weighed_mix(
    snapshot: Snapshot, request: EnsembleRequest, flavors: Callable[[], Iterable[Flavor]]
) -> RequestMix:
    """The mix that a decision weighs: as an operator stated it, or else as the ledger tells it.

    The request's own members count in the latter, too. For `flavors` see `ledger_mix`.
    """
    own = Counter(shape_of(request.role_of(one)) for one in request.members)
    return _mix_with(snapshot, own, flavors)


def _mix_with(
    snapshot: Snapshot, own: Mapping[Shape, int], flavors: Callable[[], Iterable[Flavor]]
) -> RequestMix:
    if snapshot.stated_mix is not None:
        return snapshot.stated_mix.weighed
    return ledger_mix(snapshot, flavors).joined(own)


def with_fleet_room(
    built: BuiltProblem, snapshot: Snapshot, flavors: Callable[[], Iterable[Flavor]]
) -> BuiltProblem:
    """The problem with the fleet's room for the mix that it weighs.

    See `with_room`; for `flavors` see `ledger_mix`.
    """
    return with_room(built, snapshot, weighed_mix(snapshot, built.request, flavors))


def with_room(built: BuiltProblem, snapshot: Snapshot, mix: RequestMix) -> BuiltProblem:
    """The problem with the fleet's room for a mix.

    The snapshot is the one that the problem's terrain was cut from.
    """
    problem, request = built.problem, built.request
    rows = built.terrain.fleet_rows
    if rows is None:
        return built
    shapes = [shape for shape, _ in mix.shapes]
    hosts = _HostRoom(snapshot, rows, request.period, request.released)
    room = _room(hosts, mix, problem.classes)
    devices = _device_rooms(built, hosts, shapes)
    for name in devices:
        room.demand[:, problem.classes.index(name)] = 0
    ceiling = room.ceiling
    if problem.choices:
        ceiling = np.hstack([ceiling, np.zeros((len(ceiling), 1), dtype=np.float32)])
    room = replace(room, ceiling=ceiling, devices=tuple(devices.values()))
    return replace(built, problem=replace(problem, room=room))


def with_room_of(built: BuiltProblem, other: BuiltProblem) -> BuiltProblem:
    """The problem with the room of another one of the same request on the same hosts."""
    if built.problem.hosts != other.problem.hosts or built.problem.classes != other.problem.classes:
        return built
    return replace(built, problem=replace(built.problem, room=other.problem.room))


def with_joint_room(
    problem: Problem,
    parties: Sequence[TimedProblem],
    snapshot: Snapshot,
    flavors: Callable[[], Iterable[Flavor]],
) -> Problem:
    """A joint problem with the fleet's room for the mix, over all parties' periods.

    What others ask for is to be had in every time slot. `snapshot` is the one that the parties were
    joined on; of mixes counted from the ledger, the first party's is weighed.
    """
    built = [one.built for one in parties]
    rows = built[0].terrain.fleet_rows
    if rows is None:
        return problem
    mix = weighed_mix(snapshot, built[0].request, flavors)
    periods = [one.request.period for one in built]
    whole = Period(min(one.start for one in periods), max(one.end for one in periods))
    hosts = _HostRoom(snapshot, rows, whole, frozenset())
    return replace(problem, room=_room(hosts, mix, [*map(class_of_column, problem.classes)]))


def harm_of_one(
    snapshot: Snapshot, asked: Shape, flavors: Callable[[], Iterable[Flavor]]
) -> NDArray[np.float64]:
    """[P] what one server of a shape, placed now for good, takes from others on each host.

    In the units of `Room.worth`; 0 for rows that are no hosts. For `flavors` see `ledger_mix`.
    """
    rows = snapshot.hosts.astype(np.int64)
    hosts = _HostRoom(snapshot, rows, Period(snapshot.taken_at), frozenset())
    mix = _mix_with(snapshot, {asked: 1}, flavors)
    taken = asked.whole
    classes = sorted(taken)
    room = _room(hosts, mix, classes)
    shapes = [shape for shape, _ in mix.shapes]
    devices = {name: hosts.devices(name, shapes, [asked], 0) for name in classes}
    by_device = {name: one for name, one in devices.items() if one is not None}
    for name in by_device:
        room.demand[:, classes.index(name)] = 0
    room = replace(room, devices=tuple(by_device.values()))
    every = slice(None)
    left = room.value(
        np.array([hosts.free_in_all(name) - taken[name] for name in classes]),
        every,
        [one.after(one.free, 0, every) for one in room.devices],
    )
    found = np.zeros(len(snapshot.uuids))
    found[rows] = (room.worth @ room.ceiling) - left
    return found


def room_without(
    snapshot: Snapshot,
    rows: Ints,
    classes: Sequence[str],
    released: frozenset[str],
    flavors: Callable[[], Iterable[Flavor]],
) -> Room:
    """The room of hosts [H] (rows) for what is usually requested, where some consumers may leave.

    Shapes are worth what they are now; the ceiling is that of the hosts without the `released`.
    `classes` are those of the columns of free room; for `flavors` see `ledger_mix`.
    """
    mix, period = _mix_with(snapshot, {}, flavors), Period(snapshot.taken_at)
    now = _room(_HostRoom(snapshot, rows, period, frozenset()), mix, classes)
    without = _HostRoom(snapshot, rows, period, released)
    return replace(now, ceiling=without.of([shape for shape, _ in mix.shapes]))


def _room(hosts: _HostRoom, mix: RequestMix, classes: Sequence[str]) -> Room:
    """The room of hosts for a mix; `classes` are those of the problem's columns."""
    ceiling = hosts.of([shape for shape, _ in mix.shapes])
    total = ceiling.sum(axis=1, dtype=np.float64)
    counts = np.array([count for _, count in mix.shapes], dtype=np.float64)
    worth = np.where(total > 0, counts / np.maximum(total, 1), 0.0)
    scale = ceiling.shape[1] / max(float((worth * total).sum()), 1.0)
    amounts = [shape.whole for shape, _ in mix.shapes]
    demand = np.array(
        [[mine.get(name, 0) for name in classes] for mine in amounts], dtype=np.int64
    ).reshape(len(amounts), len(classes))
    return Room(mix, demand, ceiling, (worth * scale).astype(np.float32))


def _device_rooms(
    built: BuiltProblem, hosts: _HostRoom, shapes: Sequence[Shape]
) -> Mapping[str, DeviceRoom]:
    """Class -> its room by device, of the classes that members take from devices."""
    if built.terrain.devices is None:
        return {}
    request = built.request if built.alternatives is None else built.alternatives.plain
    roles = {role.name: shape_of(role) for role in request.roles}
    taken = [roles[name] for name in built.problem.roles]
    wanted = {name for one in taken for name in one.whole}
    absent = len(built.problem.hosts) - built.problem.host_count
    found = ((name, hosts.devices(name, shapes, taken, absent)) for name in sorted(wanted))
    return {name: one for name, one in found if one is not None}


class _HostRoom:
    """The room of hosts for shapes, over a period."""

    def __init__(
        self, snapshot: Snapshot, rows: Ints, period: Period, released: frozenset[str]
    ) -> None:
        """`rows` [H] are the hosts' rows in the snapshot; `released` consumers take nothing."""
        self._snapshot, self._rows = snapshot, rows
        self._period, self._released = period, released
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
            if np.array_equal(columns.rows, self._rows):
                return room
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
        if group.required or group.forbidden:
            room[~self._may_give(rows, group.required, group.forbidden)] = 0
        return self._summed(rows, room)

    def devices(
        self, name: str, shapes: Sequence[Shape], roles: Sequence[Shape], absent: int
    ) -> DeviceRoom | None:
        """The room for a class by provider, with `absent` rows that are no hosts.

        None if each tree has one provider of it, they share it with other trees, some host has
        more than `_MOST_DEVICES`, or no shape takes it.
        """
        snapshot, columns = self._snapshot, self._snapshot.classes.get(name)
        if columns is None or self._is_shared(name):
            return None
        if (snapshot.parent[columns.rows] < 0).all() or all(name not in s.whole for s in shapes):
            return None
        host_of = np.full(len(snapshot.uuids), -1, dtype=np.int64)
        host_of[self._rows] = np.arange(len(self._rows))
        of_host = host_of[snapshot.root[columns.rows]]
        here = of_host >= 0
        size = len(self._rows) + absent
        at = device_columns(of_host[here], size, _MOST_DEVICES)
        if at is None:
            return None
        row, column, width = at
        providers = columns.rows[here]
        free = np.full((size, width), NO_DEVICE, dtype=np.int64)
        free[row, column] = np.maximum(self._free_on(name)[here], 0)

        def shares(shape: Shape) -> tuple[Share, ...]:
            found: list[Share] = []
            # What the member itself requires any provider of its tree may have.
            own = shape._replace(required=(), groups=())
            for part, number in ((own, 1), *Counter(shape.groups).items()):
                amount = dict(part.resources).get(name)
                if amount is None:
                    continue
                mask = self._may_give(providers, part.required, part.forbidden)
                mask &= columns.max_unit[here] >= amount
                gives = None if mask.all() else np.zeros((size, width), dtype=np.bool_)
                if gives is not None:
                    gives[row, column] = mask
                found.append(Share(amount, gives, number))
            return tuple(found)

        def by_number(some: Sequence[Shape]) -> Mapping[int, tuple[Share, ...]]:
            return {n: taken for n, one in enumerate(some) if (taken := shares(one))}

        return DeviceRoom(free, by_number(shapes), by_number(roles))

    def free_in_all(self, name: str) -> Ints:
        """[H] what is free of a class in each host's tree."""
        columns = self._snapshot.classes.get(name)
        if columns is None:
            return np.zeros(len(self._rows), dtype=np.int64)
        free = np.maximum(self._free_on(name), 0).astype(np.float64)
        sums = np.bincount(self._snapshot.root[columns.rows], free, len(self._snapshot.uuids))
        return sums[self._rows].astype(np.int64)

    def _may_give(
        self, rows: Rows, required: Sequence[Sequence[Trait]], forbidden: Sequence[Trait]
    ) -> Bools:
        """[n] whether these providers have the required traits and none of the forbidden ones."""
        found = ~self._with_trait(forbidden)[rows]
        for any_of in required:
            found &= self._with_trait(any_of)[rows]
        return found

    def _free_on(self, name: str) -> Ints:
        """[n] what is free of a class on each provider that has it."""
        if name not in self._free:
            taken = self._snapshot.peak_over(name, self._period, without=self._released)
            self._free[name] = self._snapshot.classes[name].capacity - taken
        return self._free[name]

    def _on_providers(self, name: str, amounts: Sequence[int]) -> Floats:
        """[A, n] how often each amount of a class is free on each provider that has it."""
        columns = self._snapshot.classes[name]
        asked = np.array(amounts, dtype=np.int64)
        room = times(self._free_on(name), asked)
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
