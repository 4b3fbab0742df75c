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

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.request_mix import RequestMix
    from moorage.engine.joint.device_room import DeviceRoom

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float32]

MOST_ROOM: Final = np.float32(1e6)
"""Room is counted up to here."""
_ROUNDING: Final = np.float32(1e-4)
"""Added before rounding down, so that what fits exactly is counted."""


@dataclass(frozen=True, eq=False)
class Room:
    """The room of H hosts for J shapes, and what each shape is worth."""

    mix: RequestMix
    """The shapes, and how often each is asked for."""
    demand: Ints
    """[J, K] what one takes of each class of the problem; 0 of classes that only shapes name."""
    ceiling: Floats
    """[J, H] how many each host can take before anything is placed."""
    worth: Floats
    """[J] n_j / S_j, scaled such that a host with the fleet's average room is worth 1 in all."""
    devices: tuple[DeviceRoom, ...] = ()
    """Of the classes that providers below hosts give to members; `demand` leaves these out."""

    def value(
        self, free: Ints, rows: Ints | slice, devices: Sequence[Ints] = ()
    ) -> NDArray[np.float64]:
        """[n] what the room of these hosts is worth; see `left`."""
        found: NDArray[np.float64] = (self.worth @ self.left(free, rows, devices)).astype(
            np.float64
        )
        return found

    def left(self, free: Ints, rows: Ints | slice, devices: Sequence[Ints] = ()) -> Floats:
        """[J, n] how many of each shape these hosts can take with so much [K, n] free.

        `devices` says what is free [n, D] for each of `self.devices`.
        """
        room = self._shares * np.maximum(free[self._taken], 0).astype(np.float32)
        room += self._offsets
        left: Floats = np.floor(room, out=room).min(axis=1, initial=MOST_ROOM)
        np.minimum(left, self.ceiling[:, rows], out=left)
        for one, there in zip(self.devices, devices, strict=True):
            one.limit(left, there, rows)
        return left

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
        """[J, classes taken, 1] added before rounding down; `MOST_ROOM` where none is taken."""
        return np.where(self._shares > 0, _ROUNDING, MOST_ROOM).astype(np.float32)


def times(free: Ints, amounts: Ints) -> Floats:
    """[J, n] how often each amount [J] fits into what is free [n]; none into less than nothing."""
    there = np.maximum(free, 0).astype(np.float32)
    found = np.multiply.outer((1.0 / amounts).astype(np.float32), there)
    found += _ROUNDING
    return np.floor(found, out=found)
