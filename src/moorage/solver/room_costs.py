"""What each host's use costs others, kept up to date while members are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.solver.domain_costs import COST_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
        self._harm: dict[int, tuple[int, Floats]] = {}
        """Per size (see `ProblemIndex.sizes`): the changes that were seen, and [H] the harm."""

    def of(self, role: int, rows: Ints) -> Floats:
        """[n] the harm of one more member of a role on each of these hosts."""
        size, now = int(self._size_of[role]), len(self._changed)
        if self._valued < now:
            stale = self._changed_since(self._valued)
            self._value[stale] = self._room.value(self._free[:, stale], stale)
            self._valued = now
        seen, harm = self._harm.get(size, (-1, self._value))
        if seen < 0:
            harm = self._on(size, slice(None))
        elif seen < now:
            stale = self._changed_since(seen)
            harm[stale] = self._on(size, stale)
        self._harm[size] = now, harm
        found: Floats = harm[rows]
        return found

    def _changed_since(self, seen: int) -> Ints:
        return np.array(list(set(self._changed[seen:])), dtype=np.int64)

    def _on(self, size: int, rows: Ints | slice) -> Floats:
        """[n] the harm of one more member of a size on each of these hosts."""
        left = self._room.value(self._free[:, rows] - self._sizes[size][:, None], rows)
        found: Floats = np.minimum(self._whole * (self._value[rows] - left), _MOST)
        return found
