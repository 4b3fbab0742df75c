"""Tasks that ask for GPUs or for a part of one, in the format of Alibaba's trace openb of 2023.

`openb_node_list_gpu_node.csv` has the nodes: `sn`, `cpu_milli`, `memory_mib`, `gpu` (how many),
`model`. A file `openb_pod_list_*.csv` has the tasks in the order in which they come: `name`,
`cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli` (of each GPU; below 1000 only of a single one),
`gpu_spec` (models joined by `|`, empty: any). Tasks stay. A host's GPUs are child providers of
1,000 shares each, and a task asks for one request group for each GPU.
"""

from __future__ import annotations

import csv
import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from benchmarks.joint.cells import quantiles
from benchmarks.joint.engine import first_answer
from benchmarks.joint.fleet import MEMORY, VCPU
from benchmarks.public.bookings import with_consumers
from benchmarks.public.share_weighers import (
    WHOLE,
    GpuHosts,
    ShareFragmentation,
    SharePacking,
    ShareSpreading,
    Size,
)

from moorage.domain.ensembles import Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.request_groups import Group
from moorage.domain.request_mix import StatedMix, StatedShape, shape_of
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.joint.verify import places
from moorage.engine.state.columns import ProviderState
from moorage.engine.state.snapshot import Snapshot
from moorage.testing.problems import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

NODES: Final = "openb_node_list_gpu_node.csv"
TASKS: Final = ("openb_pod_list_default.csv", "openb_pod_list_gpuspec33.csv")
SHARE: Final = "VGPU"
"""A thousandth of a GPU."""
AS_THEY_COME: Final = "as published"
ORDERS: Final = (AS_THEY_COME, "random 1")
MEMBER: Final = MemberName("task", 0)
"""The only member of a task's request."""


class Node(NamedTuple):
    """A host."""

    name: str
    cpu: int
    """Thousandths of a CPU."""
    memory: int
    """MiB."""
    gpus: int
    model: str


class Task(NamedTuple):
    """What is asked for."""

    name: str
    size: Size


def read_nodes(folder: Path) -> list[Node]:
    """The nodes of a trace.

    Raises:
        ValueError: a column is missing, or a row is not of the format.
    """
    return [
        Node(name, int(cpu), int(memory), int(gpus), model)
        for name, cpu, memory, gpus, model in _rows(
            folder / NODES, ("sn", "cpu_milli", "memory_mib", "gpu", "model")
        )
    ]


def read_tasks(file: Path) -> list[Task]:
    """The tasks of a trace, as they come.

    Raises:
        ValueError: a column is missing, or a row is not of the format.
    """
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
    found = []
    for name, cpu, memory, gpus, share, models in _rows(file, columns):
        each = int(share) if int(gpus) else 0
        among = frozenset(models.split("|")) if models else frozenset[str]()
        found.append(Task(name, Size(int(cpu), int(memory), int(gpus), each, among)))
    return found


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """These columns of each row: a name, three numbers, others."""
    with file.open(newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream)
        if missing := set(columns) - set(rows.fieldnames or ()):
            raise ValueError(f"{file.name} lacks the columns {', '.join(sorted(missing))}")
        for row in rows:
            found = tuple(row[name] for name in columns)
            if None in found or not all(one.isdigit() for one in found[1:4]):
                raise ValueError(f"{file.name}, line {rows.line_num}: not of the format")
            yield found


def hosts_of(nodes: Sequence[Node]) -> GpuHosts:
    """The nodes, empty, as the peers know them."""
    slots = np.arange(max(one.gpus for one in nodes))
    return GpuHosts(
        cpu=np.array([one.cpu for one in nodes], dtype=np.int64),
        memory=np.array([one.memory for one in nodes], dtype=np.int64),
        gpus=np.array([WHOLE * (slots < one.gpus) for one in nodes], dtype=np.int64),
        models=tuple(one.model for one in nodes),
        most=np.array(
            [
                max(one.cpu for one in nodes),
                max(one.memory for one in nodes),
                WHOLE * max(one.gpus for one in nodes),
            ],
            dtype=np.int64,
        ),
    )


def _trait(model: str) -> str:
    return f"CUSTOM_GPU_{model}"


def snapshot_of(nodes: Sequence[Node]) -> Snapshot:
    """The nodes as the engine knows them, each GPU a child provider."""
    return Snapshot.empty().with_states(
        (state for node in nodes for state in _states(node)), revision=1
    )


def _states(node: Node) -> Iterator[ProviderState]:
    root = ResourceProvider(
        uuid=node.name,
        name=node.name,
        parent_uuid=None,
        root_uuid=node.name,
        inventories=(Inventory(VCPU, node.cpu), Inventory(MEMORY, node.memory)),
        traits=frozenset({_trait(node.model)}),
    )
    yield ProviderState(root)
    for number in range(node.gpus):
        uuid = f"{node.name}-gpu{number}"
        yield ProviderState(
            replace(
                root,
                uuid=uuid,
                name=uuid,
                parent_uuid=node.name,
                inventories=(Inventory(SHARE, WHOLE),),
                traits=frozenset(),
            )
        )


def request_of(size: Size) -> EnsembleRequest:
    """The request for one task: one member, and a group for each GPU."""
    amounts = {VCPU: size.cpu, MEMORY: size.memory}
    role = Role(
        MEMBER.role,
        MappingProxyType({name: amount for name, amount in amounts.items() if amount}),
        required=(frozenset(map(_trait, size.models)),) if size.models else (),
        groups=tuple(
            Group(f"gpu{number}", MappingProxyType({SHARE: size.share}))
            for number in range(size.gpus)
        ),
    )
    return EnsembleRequest(
        project_id=PROJECT,
        roles=(role,),
        members=(MEMBER,),
        policies=(),
        period=Period(0),
        objective=Objective.ROOM,
    )


class Places(Protocol):
    """A way of placing one task after the other."""

    def place(self, size: Size) -> object | None:
        """Where a task goes; None if it fits nowhere."""


class Engine:
    """Places each task by a joint decision of one member, on snapshots that follow one another."""

    name = "room"
    with_stated_mix = "room, stated mix"
    """Its name where the mix of requests is stated beforehand, as an operator may."""

    def __init__(self, nodes: Sequence[Node], stated: StatedMix | None = None) -> None:
        self._snapshot = snapshot_of(nodes).with_stated_mix(stated)

    def place(self, size: Size) -> Mapping[str, Mapping[str, int]] | None:
        """Provider -> what it gives; None if there is no place."""
        request = request_of(size)
        decided = first_answer(self._snapshot, request)
        if decided.outcome.hosts is None:
            return None
        taken = places(decided.built, decided.outcome.hosts)[MEMBER].allocations
        consumer = f"task-{self._snapshot.revision}"
        self._snapshot = with_consumers(self._snapshot, {consumer: taken})
        return taken


@dataclass
class Allocated:
    """What one way of placing has placed."""

    tasks: int = 0
    shares: int = 0
    seconds: list[float] = field(default_factory=list)
    """Of the processor, for each task."""


def place_all(places: Places, tasks: Sequence[Task]) -> Allocated:
    """Place the tasks in their order; what fits nowhere is left out."""
    found = Allocated()
    for task in tasks:
        begun = time.process_time()
        where = places.place(task.size)
        found.seconds.append(time.process_time() - begun)
        if where is not None:
            found.tasks += 1
            found.shares += task.size.shares
    return found


def stated_mix(sizes: Mapping[Size, int]) -> StatedMix:
    """The mix of requests of an operator who knows how often each size is asked for."""
    return StatedMix.of(
        (
            StatedShape(shape_of(request_of(size).roles[0]), count)
            for size, count in sorted(sizes.items(), key=lambda one: (-one[1], str(one[0])))
        ),
        now=0,
    )


def ways(tasks: Sequence[Task]) -> Mapping[str, Callable[[Sequence[Node]], Places]]:
    """Moorage and the peers; FGD knows how often each size is asked for in all.

    Moorage counts the mix of requests from the ledger, or has been told what FGD knows.
    """
    sizes = Counter(task.size for task in tasks)
    stated = stated_mix(sizes)
    return MappingProxyType(
        {
            Engine.name: Engine,
            Engine.with_stated_mix: lambda nodes: Engine(nodes, stated),
            SharePacking.name: lambda nodes: SharePacking(hosts_of(nodes)),
            ShareSpreading.name: lambda nodes: ShareSpreading(hosts_of(nodes)),
            ShareFragmentation.name: lambda nodes: ShareFragmentation(hosts_of(nodes), sizes),
        }
    )


def measure(nodes: Sequence[Node], tasks: Sequence[Task], name: str, order: str) -> dict[str, Any]:
    """Place all tasks in every way; the row for the results."""
    tasks = list(tasks)
    if order != AS_THEY_COME:
        random.Random(int(order.rsplit(maxsplit=1)[-1])).shuffle(tasks)
    whole = WHOLE * sum(one.gpus for one in nodes)
    found = {way: place_all(make(nodes), tasks) for way, make in ways(tasks).items()}
    return {
        "name": name,
        "order": order,
        "hosts": len(nodes),
        "tasks": len(tasks),
        "asked": sum(task.size.shares for task in tasks) / whole,
        "allocated": {way: one.shares / whole for way, one in found.items()},
        "placed": {way: one.tasks for way, one in found.items()},
        "seconds": {way: quantiles(one.seconds) for way, one in found.items()},
    }
