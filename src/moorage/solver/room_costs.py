"""What each host's use costs others, kept up to date while members are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.solver.domain_costs import COST_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.device_room import DeviceRoom
    from moorage.engine.joint.problem_index import ProblemIndex
    from moorage.engine.joint.room import Room

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

_WHOLE: Final = 20.0
"""All the room of a host with the fleet's average room, where hosts cost the same but for that."""
_FINE: Final = 0.01
"""The same where what a host costs says how the members that follow will fit."""
_MOST: Final = COST_UNIT / 4
"""No harm costs more: it only breaks ties."""


class RoomCosts:
    """The harm that members do to what others can place; see `engine.joint.room`."""

    def __init__(self, index: ProblemIndex, room: Room, free: Ints, changed: Sequence[int]) -> None:
        """`free` [K, H] is kept up to date by the caller, and `changed` with rows that differ."""
        self._sizes, self._size_of = index.sizes
        self._room, self._free, self._changed = room, free, changed
        fine = index.problem.objective in {Objective.PACK, Objective.BALANCE}
        self._whole = _FINE if fine else _WHOLE
        self._value = (room.worth @ room.ceiling).astype(np.float64)
        """[H] what the room of each host is worth now."""
        self._valued = 0
        self._devices = [one.free.copy() for one in room.devices]
        """Per class of `Room.devices`: [H, D] what is free now."""
        self._placed: dict[int, list[int]] = {}
        """Row -> the roles of the members that have come to it; kept for devices only."""
        self._harm: dict[int, tuple[int, Floats]] = {}
        """Per size (see `ProblemIndex.sizes`): the changes that were seen, and [H] the harm."""

    def take(self, role: int, row: int, sign: int) -> None:
        """Let a member of a role take its devices on a host (+1), or give them back (-1)."""
        if not self._devices:
            return
        placed = self._placed.setdefault(row, [])
        if sign > 0:
            placed.append(role)
        else:
            placed.remove(role)
        for one, now in zip(self._room.devices, self._devices, strict=True):
            now[row] = one.left_on(row, placed)

    def of(self, role: int, rows: Ints) -> Floats:
        """[n] the harm of one more member of a role on each of these hosts."""
        size, now = int(self._size_of[role]), len(self._changed)
        if self._valued < now:
            stale = self._changed_since(self._valued)
            devices = [one[stale] for one in self._devices]
            self._value[stale] = self._room.value(self._free[:, stale], stale, devices)
            self._valued = now
        seen, harm = self._harm.get(size, (-1, self._value))
        if seen < 0:
            harm = self._on(role, slice(None))
        elif seen < now:
            stale = self._changed_since(seen)
            harm[stale] = self._on(role, stale)
        self._harm[size] = now, harm
        found: Floats = harm[rows]
        return found

    def _changed_since(self, seen: int) -> Ints:
        return np.array(list(set(self._changed[seen:])), dtype=np.int64)

    def _on(self, role: int, rows: Ints | slice) -> Floats:
        """[n] the harm of one more member of a role on each of these hosts."""
        devices = [
            self._devices_after(one, now, role, rows)
            for one, now in zip(self._room.devices, self._devices, strict=True)
        ]
        free = self._free[:, rows] - self._sizes[self._size_of[role]][:, None]
        left = self._room.value(free, rows, devices)
        found: Floats = np.minimum(self._whole * (self._value[rows] - left), _MOST)
        return found

    def _devices_after(self, one: DeviceRoom, now: Ints, role: int, rows: Ints | slice) -> Ints:
        """[n, D] what is free of a class on these hosts after one more member of a role."""
        found = one.after(now[rows], role, rows)
        places = self._placed if isinstance(rows, slice) else rows.tolist()
        for at, row in enumerate(places):
            if placed := self._placed.get(row):
                found[row if isinstance(rows, slice) else at] = one.left_on(row, [*placed, role])
        return found
