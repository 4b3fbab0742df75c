"""How a scheduler that places one member at a time chooses among the hosts that pass its filters.

The host with the least cost is taken, of equals the first. What is free, and what one more member
of a size costs on each host, is kept and renewed only where a member was placed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from benchmarks.joint.fleet import Fleet
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]
    Rows: TypeAlias = slice | list[int]


class Weigher(ABC):
    """What one more member costs on each host of a fleet, while members are placed on it."""

    name: ClassVar[str]

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.free: Ints = fleet.free.copy()
        """[H, K] what is free beside the members that were placed."""
        self.scale: Ints = np.maximum(fleet.capacity.max(axis=0), 1)
        """[K] the most that any host has of a class."""
        self._costs: dict[tuple[int, ...], Floats] = {}

    def costs(self, demand: Ints) -> Floats:
        """[H] what one more member that takes so much [K] costs on each host."""
        size = tuple(demand.tolist())
        if size not in self._costs:
            self._costs[size] = self._weigh(demand, slice(None))
        return self._costs[size]

    def place(self, row: int, demand: Ints) -> None:
        """Count a member that takes so much on a host."""
        self.free[row] -= demand
        for size, costs in self._costs.items():
            costs[row] = self._weigh(np.array(size, dtype=np.int64), [row])[0]

    @abstractmethod
    def _weigh(self, demand: Ints, rows: Rows) -> Floats:
        """[n] the costs on these hosts, newly computed."""


class FirstFit(Weigher):
    """The first host."""

    name = "first"

    def _weigh(self, demand: Ints, rows: Rows) -> Floats:  # noqa: ARG002 - all are the same
        return np.zeros(len(self.free[rows]))


class Packing(Weigher):
    """The fullest host, over all resource classes of the fleet."""

    name = "packing"

    def _weigh(self, demand: Ints, rows: Rows) -> Floats:  # noqa: ARG002 - by what is free alone
        found: Floats = (self.free[rows] / self.scale).sum(axis=1)
        return found


class Spreading(Packing):
    """The emptiest host, over all resource classes of the fleet."""

    name = "spreading"

    def _weigh(self, demand: Ints, rows: Rows) -> Floats:
        return -super()._weigh(demand, rows)


class BestFit(Weigher):
    """The host on which least is left, over its own resource classes as shares of the host."""

    name = "best fit"

    def _weigh(self, demand: Ints, rows: Rows) -> Floats:
        whole = np.maximum(self.fleet.capacity[rows], 1)
        left: Floats = ((self.free[rows] - demand) / whole).sum(axis=1)
        return left
