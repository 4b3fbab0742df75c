"""Applications of instances with and without GPUs, in the format of Alibaba's trace gpu-v2025.

One CSV file, a row for each instance; these columns are read: `role` (CN without GPUs, HN with),
`app_name`, `cpu_request`, `gpu_request`, `memory_request` in GiB, `max_instance_per_node` (-1: no
limit), `scheduled_time` and `deletion_time` in seconds from the start of the trace, empty if before
it or after its end. Bandwidth and disks are left out. The limit of instances per host holds among
instances of one application that have the same role and the same limit.
"""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from benchmarks.joint.fleet import MEMORY, VCPU, Fleet

from moorage.domain.ensembles import Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.requests import EnsembleRequest
from moorage.testing.problems import PROJECT, statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Bools: TypeAlias = NDArray[np.bool_]

GPU: Final = "PGPU"
CLASSES: Final = (VCPU, MEMORY, GPU)
GPU_HOST: Final = "CUSTOM_GPU_HOST"
"""Trait of the hosts with GPUs."""
CPU_HOSTS: Final = (192, 1536 * 1024, 0)
GPU_HOSTS: Final = (128, 1024 * 1024, 8)
"""VCPU, MiB and GPUs of the two kinds of hosts; the memory of those with GPUs is not published."""
_COLUMNS: Final = frozenset(
    {"role", "app_name", "cpu_request", "gpu_request", "memory_request"}
    | {"max_instance_per_node", "scheduled_time", "deletion_time"}
)
_ROLES: Final = ("CN", "HN")
_START, _END = -math.inf, math.inf
_GIB: Final = 1024


class Shape(NamedTuple):
    """What one instance asks for."""

    gpu_host: bool
    """Whether it needs a host with GPUs."""
    vcpu: int
    memory: int
    """MiB."""
    gpus: int
    most: int
    """Instances of the application on one host; 0: no limit."""


class Instance(NamedTuple):
    """One instance of an application, from when to when, in seconds."""

    application: str
    shape: Shape
    since: float
    until: float


@dataclass(frozen=True)
class Application:
    """How many instances of each shape an application has."""

    name: str
    shapes: tuple[tuple[Shape, int], ...]

    @property
    def size(self) -> int:
        """How many instances it has."""
        return sum(count for _, count in self.shapes)


def read(file: Path) -> list[Instance]:
    """The instances of a trace.

    Raises:
        ValueError: a column is missing, or a row is not of the format.
    """
    with file.open(newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream)
        if missing := _COLUMNS - set(rows.fieldnames or ()):
            raise ValueError(f"{file.name} lacks the columns {', '.join(sorted(missing))}")
        return [_instance(file, rows.line_num, row) for row in rows]


def _instance(file: Path, line: int, row: Mapping[str, str]) -> Instance:
    try:
        shape = Shape(
            gpu_host=bool(_ROLES.index(row["role"])),
            vcpu=int(row["cpu_request"]),
            memory=math.ceil(float(row["memory_request"]) * _GIB),
            gpus=int(row["gpu_request"]),
            most=max(int(row["max_instance_per_node"]), 0),
        )
        since, until = row["scheduled_time"], row["deletion_time"]
        return Instance(
            row["app_name"],
            shape,
            float(since) if since else _START,
            float(until) if until else _END,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file.name}, line {line}: {error}") from None


def peak(instances: Sequence[Instance]) -> list[Application]:
    """The applications at the first instant at which most instances are there, by name."""
    changes = sorted([(one.since, 1) for one in instances] + [(one.until, -1) for one in instances])
    there = np.cumsum([change for _, change in changes])
    instant = changes[int(there.argmax())][0]
    return applications(one for one in instances if one.since <= instant < one.until)


def applications(instances: Iterable[Instance]) -> list[Application]:
    """The applications of these instances, by name."""
    counts: dict[str, Counter[Shape]] = {}
    for one in instances:
        counts.setdefault(one.application, Counter())[one.shape] += 1
    return [
        Application(name, tuple(sorted(shapes.items()))) for name, shapes in sorted(counts.items())
    ]


def fleet_for(asked: Iterable[Application], load: float) -> Fleet:
    """Empty hosts of both kinds, as many as the demand of each kind divided by the load needs."""
    demand = np.zeros((2, len(CLASSES)), dtype=np.int64)
    for application in asked:
        for shape, count in application.shapes:
            demand[int(shape.gpu_host)] += count * np.array([shape.vcpu, shape.memory, shape.gpus])
    kinds = np.array([CPU_HOSTS, GPU_HOSTS], dtype=np.int64)
    needed = np.ceil((demand / np.maximum(kinds, 1)).max(axis=1) / load).astype(np.int64)
    capacity = np.repeat(kinds, needed, axis=0)
    count = len(capacity)
    nobody = np.zeros(count, dtype=np.bool_)
    return Fleet(
        names=tuple(f"host-{row:05}" for row in range(count)),
        classes=CLASSES,
        capacity=capacity,
        used=np.zeros_like(capacity),
        domains={},
        called={},
        trees={},
        traits={GPU_HOST: capacity[:, CLASSES.index(GPU)] > 0},
        strangers=nobody,
        relatives=nobody,
        closed=nobody,
    )


def request_of(application: Application, *, barred: bool) -> EnsembleRequest:
    """The joint request for an application; `barred`: without GPUs not on hosts with GPUs."""
    roles, members = [], list[MemberName]()
    limited: dict[tuple[bool, int], list[str]] = {}
    for number, (shape, count) in enumerate(application.shapes):
        name = f"shape{number}"
        taken = zip(CLASSES, (shape.vcpu, shape.memory, shape.gpus), strict=True)
        kept_off = barred and not shape.gpu_host
        roles.append(
            Role(
                name,
                MappingProxyType({key: amount for key, amount in taken if amount}),
                required=(frozenset({GPU_HOST}),) if shape.gpu_host else (),
                forbidden=frozenset({GPU_HOST}) if kept_off else frozenset(),
            )
        )
        members += [MemberName(name, index) for index in range(count)]
        if shape.most:
            limited.setdefault((shape.gpu_host, shape.most), []).append(name)
    policies = tuple(
        statement(f"most-{names[0]}", "anti-affinity", *names, max_per_domain=most)
        for (_, most), names in limited.items()
    )
    return EnsembleRequest(
        project_id=PROJECT,
        roles=tuple(roles),
        members=tuple(members),
        policies=policies,
        period=Period(0),
    )


class Catalog:
    """The applications of a trace by name; none forbids another a host."""

    def __init__(self, asked: Iterable[Application], hosts: int, *, barred: bool) -> None:
        self._requests = {one.name: request_of(one, barred=barred) for one in asked}
        self._nobody = np.zeros(hosts, dtype=np.bool_)

    def request(self, group: str) -> tuple[EnsembleRequest, Bools]:
        """An application's instances; every host is open to it."""
        return self._requests[group], self._nobody

    def put(self, group: str, hosts: Mapping[MemberName, int]) -> None:
        """Nothing has to be known of it later."""

    def broken(self) -> int:
        """Limits are part of the requests, which are verified; hosts are counted by the caller."""
        return 0


_CPU_SHAPES: Final = ((64, 320), (96, 480), (48, 240), (192, 960), (64, 480), (48, 200))
"""VCPU and GiB of instances without GPUs, and how often an application has each."""
_CPU_WEIGHTS: Final = (45, 25, 14, 6, 5, 5)
_CPU_LIMITS: Final = ((0, 2, 4), (75, 20, 5))
_GPU_SHAPES: Final = ((8, 40), (8, 16), (12, 120), (16, 80))
_GPU_WEIGHTS: Final = (70, 15, 10, 5)
_GPU_LIMITS: Final = ((2, 4, 10, 8), (45, 35, 10, 10))
_SPAN: Final = 2_678_400
"""Seconds of a made trace: 31 days."""
_OLD, _ENDLESS = 0.45, 0.35
"""Shares of instances that were there before, and that stay to the end."""


def made(seed: int, count: int = 40) -> list[Instance]:
    """Instances of so many applications that resemble the trace, the same for a seed.

    Sizes are lognormal; of an application's instances three fifths have no GPU; some applications
    have two shapes without. Instances come and go within 31 days; some were there before.
    """
    dice = random.Random(seed)
    found = []
    for number in range(count):
        size = max(2, min(120, round(dice.lognormvariate(2.6, 0.9))))
        plain = [_made_shape(dice, gpu_host=False) for _ in range(1 + (dice.random() < 0.15))]  # noqa: PLR2004
        gpu = _made_shape(dice, gpu_host=True)
        for index in range(size):
            shape = gpu if index % 5 > 2 else plain[index % len(plain)]  # noqa: PLR2004
            since = _START if dice.random() < _OLD else dice.uniform(0, _SPAN)
            until = _END if dice.random() < _ENDLESS else since + dice.expovariate(1 / 400_000)
            if until == _START:
                until = dice.uniform(0, _SPAN)
            found.append(Instance(f"app_{number:03}", shape, since, until))
    return found


def _made_shape(dice: random.Random, *, gpu_host: bool) -> Shape:
    shapes, weights, limits = (
        (_GPU_SHAPES, _GPU_WEIGHTS, _GPU_LIMITS)
        if gpu_host
        else (_CPU_SHAPES, _CPU_WEIGHTS, _CPU_LIMITS)
    )
    vcpu, memory = dice.choices(shapes, weights)[0]
    (most,) = dice.choices(limits[0], limits[1])
    return Shape(gpu_host, vcpu, memory * _GIB, int(gpu_host), most)
