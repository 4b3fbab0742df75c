"""Fragmentation gradient descent: GPUs are kept usable for what is usually asked for.

An implementation of its own of what Weng et al. describe ("Beware of Fragmentation", USENIX ATC
2023). For a shape that is asked for, the GPUs that are free on a host are fragments if the host
cannot take one instance of the shape, or if the shape takes no GPU. A host's fragmentation is the
mean over the shapes, weighed by how often they are asked for; the host is taken on which it grows
least, and of equals the one that `Packing` takes. The shapes are those of the whole trace, which
no scheduler knows beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from benchmarks.joint.weighers import Packing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.joint.fleet import Fleet
    from benchmarks.joint.weighers import Rows
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

_TIE: Final = 1e-6
"""Weight of how full a host is, which decides among equals only."""


class Fragmentation(Packing):
    """Costs by how many more GPUs become fragments."""

    name = "FGD"

    def __init__(self, fleet: Fleet, gpu: str, shapes: Mapping[tuple[int, ...], int]) -> None:
        """`gpu` is the class of GPUs; `shapes` say how often each demand [K] is asked for."""
        super().__init__(fleet)
        self._gpu = fleet.classes.index(gpu)
        with_gpus = [shape for shape in shapes if shape[self._gpu]]
        self._shapes = np.array(with_gpus, dtype=np.int64).reshape(-1, len(fleet.classes))
        self._shares = np.array([shapes[one] for one in with_gpus]) / sum(shapes.values())

    def _weigh(self, demand: Ints, rows: Rows) -> Floats:
        free = self.free[rows]
        more = self._fragments(free - demand) - self._fragments(free)
        found: Floats = more + _TIE * super()._weigh(demand, rows)
        return found

    def _fragments(self, free: Ints) -> Floats:
        """[n] the mean number of free GPUs that a shape cannot use."""
        found = np.zeros(len(free))
        some = np.flatnonzero(free[:, self._gpu] > 0)
        usable = np.zeros(len(some))
        for shape, share in zip(self._shapes, self._shares, strict=True):
            usable += share * (free[some] >= shape).all(axis=1)
        found[some] = free[some, self._gpu] * (1.0 - usable)
        return found
