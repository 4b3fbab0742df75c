"""Schedulers that place one task at a time on hosts whose GPUs are shared.

A *choice* is where a task's GPUs come from: one of a host's GPUs for a part of one, the first GPUs
that are wholly free for whole ones, and choice 0 for a task without. The choice with the least cost
is taken, of equals the first. Costs are kept for each size of task and renewed where it was placed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

WHOLE: Final = 1000
"""Shares of a GPU."""
_TIE: Final = 1e-3
"""Weight of how full a host is, where it decides among equals only; costs are in shares."""


class Size(NamedTuple):
    """What a task asks for."""

    cpu: int
    """Thousandths of a CPU."""
    memory: int
    """MiB."""
    gpus: int
    share: int
    """Shares of each GPU; fewer than `WHOLE` only of a single one."""
    models: frozenset[str] = frozenset()
    """Models of GPU that will do; empty: any."""

    @property
    def shares(self) -> int:
        """Shares in all."""
        return self.gpus * self.share


@dataclass(eq=False)
class GpuHosts:
    """What is free on H hosts with at most G GPUs; changed as tasks are placed."""

    cpu: Ints
    """[H]"""
    memory: Ints
    """[H]"""
    gpus: Ints
    """[H, G] shares; 0 as well where a host has fewer GPUs."""
    models: tuple[str, ...]
    """The model of each host's GPUs."""
    most: Ints
    """[3] CPU, memory and shares that the largest host has when it is empty."""

    def place(self, size: Size, row: int, choice: int) -> tuple[int, ...]:
        """Take what a task of this size asks for; the GPUs that it gets."""
        self.cpu[row] -= size.cpu
        self.memory[row] -= size.memory
        if not size.gpus:
            return ()
        taken = [choice]
        if size.share == WHOLE:
            taken = np.flatnonzero(self.gpus[row] == WHOLE)[: size.gpus].tolist()
        self.gpus[row, taken] -= size.share
        return tuple(taken)


class ShareWeigher(ABC):
    """Chooses a host and its GPUs for one task after the other."""

    name: ClassVar[str]

    def __init__(self, hosts: GpuHosts) -> None:
        self.hosts = hosts
        self._has: dict[frozenset[str], Bools] = {}
        self._costs: dict[Size, tuple[int, Floats]] = {}
        """Size -> how many placements were seen, and [H, C] the cost of each choice."""
        self._placed: list[int] = []

    def place(self, size: Size) -> tuple[int, tuple[int, ...]] | None:
        """Host and GPUs of a task, which are taken; None if it fits nowhere."""
        costs = self._of(size)
        best = int(costs.argmin())
        row, choice = divmod(best, costs.shape[1])
        if not np.isfinite(costs[row, choice]):
            return None
        self._placed.append(row)
        return row, self.hosts.place(size, row, choice)

    def _of(self, size: Size) -> Floats:
        seen, costs = self._costs.get(size, (-1, np.empty((0, 0))))
        if seen < 0:
            costs = self._computed(size, np.arange(len(self.hosts.cpu)))
        elif seen < len(self._placed):
            rows = np.unique(self._placed[seen:])
            costs[rows] = self._computed(size, rows)
        self._costs[size] = len(self._placed), costs
        return costs

    def _computed(self, size: Size, rows: Ints) -> Floats:
        """[n, C] the costs on these hosts; infinite where the task does not fit."""
        hosts = self.hosts
        cpu, memory, gpus = hosts.cpu[rows], hosts.memory[rows], hosts.gpus[rows]
        fits = (cpu >= size.cpu) & (memory >= size.memory) & self._allowed(size, rows)
        if size.gpus and size.share < WHOLE:
            possible = fits[:, None] & (gpus >= size.share)
            after = gpus[:, None, :] - size.share * np.eye(gpus.shape[1], dtype=np.int64)
        else:
            whole = gpus == WHOLE
            possible = (fits & (whole.sum(axis=1) >= size.gpus))[:, None]
            taken = whole & (whole.cumsum(axis=1) <= size.gpus)
            after = (gpus - size.share * taken)[:, None, :]
        row, choice = np.nonzero(possible)
        costs = np.full(possible.shape, np.inf)
        costs[row, choice] = self._weigh(
            rows[row], (cpu[row] - size.cpu, memory[row] - size.memory, after[row, choice])
        )
        return costs

    def _allowed(self, size: Size, rows: Ints) -> Bools:
        """[n] whether the GPUs of these hosts are of a model that will do."""
        if not size.models:
            return np.ones(len(rows), dtype=np.bool_)
        if size.models not in self._has:
            self._has[size.models] = np.array([one in size.models for one in self.hosts.models])
        return self._has[size.models][rows]

    @abstractmethod
    def _weigh(self, rows: Ints, left: tuple[Ints, Ints, Ints]) -> Floats:
        """[n] what it costs if CPU, memory and GPUs [n, G] of these hosts are left so."""

    def _room(self, left: tuple[Ints, Ints, Ints]) -> Floats:
        """[n] how much is left, as shares of the largest host."""
        cpu, memory, gpus = left
        parts = np.stack([cpu, memory, gpus.sum(axis=1)], axis=1) / self.hosts.most
        found: Floats = parts.sum(axis=1)
        return found

    def _evenness(self, left: tuple[Ints, Ints, Ints]) -> Floats:
        """[n] less the more of what is left is on few GPUs: a shared GPU is filled first."""
        gpus = left[2] / WHOLE
        found: Floats = -_TIE * (gpus**2).sum(axis=1)
        return found


class SharePacking(ShareWeigher):
    """The fullest host, and its fullest GPU that will do."""

    name = "packing"

    def _weigh(self, rows: Ints, left: tuple[Ints, Ints, Ints]) -> Floats:  # noqa: ARG002
        return self._room(left) + self._evenness(left)


class ShareSpreading(ShareWeigher):
    """The emptiest host, and its fullest GPU that will do."""

    name = "spreading"

    def _weigh(self, rows: Ints, left: tuple[Ints, Ints, Ints]) -> Floats:  # noqa: ARG002
        return self._evenness(left) - self._room(left)


class ShareFragmentation(ShareWeigher):
    """Fragmentation gradient descent; see `benchmarks.public.fragmentation`.

    Of GPUs that are shared, those are fragments for a size of which less is free than it takes,
    and all GPUs of a host that cannot take one task of that size.
    """

    name = "FGD"

    def __init__(self, hosts: GpuHosts, sizes: Mapping[Size, int]) -> None:
        """`sizes` say how often each size is asked for, over the whole trace."""
        super().__init__(hosts)
        some = [size for size in sizes if size.gpus]
        self._shares = np.array([sizes[size] for size in some]) / sum(sizes.values())
        self._cpu = np.array([size.cpu for size in some])
        self._memory = np.array([size.memory for size in some])
        self._each = np.array([size.share for size in some])
        self._count = np.array([size.gpus for size in some])
        self._suits = self._suiting(some)

    def _suiting(self, some: Sequence[Size]) -> Bools:
        """[H, S] whether a host's GPUs are of a model that will do for each size."""
        every = np.arange(len(self.hosts.cpu))
        return np.stack([self._allowed(size, every) for size in some], axis=1)

    def _weigh(self, rows: Ints, left: tuple[Ints, Ints, Ints]) -> Floats:
        hosts = self.hosts
        some, at = np.unique(rows, return_inverse=True)
        now = self._fragments(some, (hosts.cpu[some], hosts.memory[some], hosts.gpus[some]))
        more: Floats = self._fragments(rows, left) - now[at]
        return more + _TIE * (self._room(left) + self._evenness(left))

    def _fragments(self, rows: Ints, left: tuple[Ints, Ints, Ints]) -> Floats:
        """[n] shares that are fragments, the mean over the sizes."""
        cpu, memory, gpus = left
        enough = gpus[:, None, :] >= self._each[:, None]  # [n, S, G]
        fits = (
            (cpu[:, None] >= self._cpu)
            & (memory[:, None] >= self._memory)
            & (enough.sum(axis=2) >= self._count)
            & self._suits[rows]
        )
        usable = np.where(fits, np.einsum("nsg,ng->ns", enough, gpus), 0)
        found: Floats = gpus.sum(axis=1) - usable @ self._shares
        return found
