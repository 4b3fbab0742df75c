"""Machine reassignment, in the format of the ROADEF/EURO challenge of 2012.

`model_*.txt` has numbers one after the other: resources (transient, weight); machines
(neighbourhood, location, capacities, safety capacities, costs of moves to every machine); services
(least number of locations, the services it depends on); processes (service, what it takes, cost of
its move); costs of balance; three weights. `assignment_*.txt` has the machine of each process.

Each service is a group: every process on a machine of its own, in enough locations, and in the
neighbourhoods of the services that it depends on. Those come first; where services depend on each
other in a circle, one of them is not bound. The machines are empty at first, so what a process
takes while it moves does not count, and the costs are not part of the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from benchmarks.joint.fleet import Fleet
from benchmarks.public.groups import as_row, place_all

from moorage.domain.ensembles import PolicyStatement, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.requests import EnsembleRequest
from moorage.testing.problems import PROJECT, statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Model:
    """What a model and its assignment say; the costs are left out."""

    neighbourhoods: Ints
    """[machines]"""
    locations: Ints
    """[machines]"""
    capacity: Ints
    """[machines, resources]"""
    least_locations: tuple[int, ...]
    """By service."""
    depends_on: tuple[tuple[int, ...], ...]
    """Service -> other services."""
    service_of: Ints
    """[processes]"""
    demand: Ints
    """[processes, resources]"""
    assignment: Ints
    """[processes] the machine of each."""

    def order(self) -> list[int]:
        """The services: those that others depend on first, of these the largest."""
        size = np.bincount(self.service_of, minlength=len(self.depends_on))
        found: dict[int, None] = {}
        for first in np.argsort(-size, kind="stable").tolist():
            self._visit(first, found)
        return list(found)

    def _visit(self, first: int, found: dict[int, None]) -> None:
        """Add a service after what it depends on; a circle is cut where it closes."""
        under_way = dict.fromkeys([first])
        stack = [(first, iter(self.depends_on[first]))]
        while stack:
            service, rest = stack[-1]
            for other in rest:
                if other not in found and other not in under_way:
                    under_way[other] = None
                    stack.append((other, iter(self.depends_on[other])))
                    break
            else:
                stack.pop()
                found[service] = None


def read(folder: Path, name: str) -> Model:
    """Read `model_<name>.txt` and `assignment_<name>.txt`.

    Raises:
        FileNotFoundError: one is missing.
        ValueError: what is no number, or too few or too many of them.
    """
    numbers = iter(_numbers(folder / f"model_{name}.txt"))
    try:
        return _read(numbers, _numbers(folder / f"assignment_{name}.txt"))
    except StopIteration:
        raise ValueError(f"model_{name}.txt ends too early") from None


def _numbers(file: Path) -> list[int]:
    return [int(word) for word in file.read_text(encoding="utf-8").split()]


def _read(numbers: Iterator[int], assignment: list[int]) -> Model:
    def take(count: int) -> list[int]:
        return [next(numbers) for _ in range(count)]

    resources = next(numbers)
    take(2 * resources)
    count = next(numbers)
    machines = [take(2 + 2 * resources + count) for _ in range(count)]
    services = []
    for _ in range(next(numbers)):
        least = next(numbers)
        services.append((least, tuple(take(next(numbers)))))
    processes = [take(1 + resources + 1) for _ in range(next(numbers))]
    take(4 * next(numbers) + 3)
    if (rest := next(numbers, None)) is not None or len(assignment) != len(processes):
        raise ValueError(f"more numbers than the model says, or another count of them: {rest}")
    every, columns = np.array(processes, dtype=np.int64), np.array(machines, dtype=np.int64)
    return Model(
        neighbourhoods=columns[:, 0],
        locations=columns[:, 1],
        capacity=columns[:, 2 : 2 + resources],
        least_locations=tuple(least for least, _ in services),
        depends_on=tuple(others for _, others in services),
        service_of=every[:, 0],
        demand=every[:, 1:-1],
        assignment=np.array(assignment, dtype=np.int64),
    )


def fleet_of(model: Model) -> Fleet:
    """The machines, empty, in their locations and neighbourhoods."""
    count = len(model.capacity)
    nobody = np.zeros(count, dtype=np.bool_)
    domains, called = {}, {}
    for level, numbers in (
        ("site", model.locations),
        ("neighbourhood", model.neighbourhoods),
    ):
        names, domains[level] = np.unique(numbers, return_inverse=True)
        called[level] = tuple(f"{level}{name}" for name in names.tolist())
    return Fleet(
        names=tuple(f"machine-{number}" for number in range(count)),
        classes=tuple(f"CUSTOM_R{number}" for number in range(model.capacity.shape[1])),
        capacity=model.capacity,
        used=np.zeros_like(model.capacity),
        domains=domains,
        called=called,
        trees={"location": ("site",), "network": ("neighbourhood",)},
        traits={},
        strangers=nobody,
        relatives=nobody,
        closed=nobody,
    )


class Services:
    """Where processes are, by service."""

    def __init__(self, model: Model, fleet: Fleet) -> None:
        self._model, self._fleet = model, fleet
        self._rows: dict[int, list[int]] = {}
        self.unbound = 0
        """Dependencies that could not be said: on services that are not placed."""

    def request(self, group: str) -> tuple[EnsembleRequest, Bools]:
        """A service's processes; no host is forbidden beside its policies."""
        service = int(group)
        mine = np.flatnonzero(self._model.service_of == service)
        sizes, size_of = np.unique(self._model.demand[mine], axis=0, return_inverse=True)
        counts = np.bincount(size_of.reshape(-1), minlength=len(sizes)).tolist()
        roles, members = [], list[MemberName]()
        for number, (amounts, count) in enumerate(zip(sizes.tolist(), counts, strict=True)):
            taken = zip(self._fleet.classes, amounts, strict=True)
            name = f"size{number}"
            roles.append(
                Role(name, MappingProxyType({key: value for key, value in taken if value}))
            )
            members += [MemberName(name, index) for index in range(count)]
        request = EnsembleRequest(
            project_id=PROJECT,
            roles=tuple(roles),
            members=tuple(members),
            policies=tuple(self._policies(service)),
            period=Period(0),
        )
        return request, np.zeros(len(self._fleet.names), dtype=np.bool_)

    def _policies(self, service: int) -> Iterator[PolicyStatement]:
        yield statement("own-machines", "anti-affinity", "*")
        least = self._model.least_locations[service]
        if least > 1:
            yield statement("locations", "spread", "*", level="site", min_domains=least)
        for other in self._model.depends_on[service]:
            if other not in self._rows:
                self.unbound += 1
                continue
            near = self._names(self._rows[other])
            yield statement(f"near-{other}", "fence", "*", domains=near)

    def _names(self, rows: Sequence[int]) -> list[str]:
        numbers = np.unique(self._fleet.domains["neighbourhood"][list(rows)]).tolist()
        return [self._fleet.called["neighbourhood"][number] for number in numbers]

    def put(self, group: str, hosts: Mapping[MemberName, int]) -> None:
        """Note where a service's processes are."""
        self._rows[int(group)] = list(hosts.values())

    def broken(self) -> int:
        """Services that break a rule of the challenge, as far as it was said."""
        count = 0
        for service, rows in self._rows.items():
            near = self._fleet.domains["neighbourhood"]
            locations = len(np.unique(self._fleet.domains["site"][rows]))
            count += (
                len(set(rows)) < len(rows)
                or locations < self._model.least_locations[service]
                or not all(
                    set(near[rows].tolist()) <= set(near[self._rows[other]].tolist())
                    for other in self._model.depends_on[service]
                    if other in self._rows and self._before(other, service)
                )
            )
        return count

    def _before(self, other: int, service: int) -> bool:
        placed = list(self._rows)
        return placed.index(other) < placed.index(service)


def names_in(folder: Path) -> list[str]:
    """The names of the instances in a folder."""
    return [file.stem.removeprefix("model_") for file in sorted(folder.glob("model_*.txt"))]


def measure(folder: Path, name: str) -> dict[str, Any]:
    """Place the services of one instance, on its machines without processes."""
    model = read(folder, name)
    fleet = fleet_of(model)
    order = [str(service) for service in model.order()]
    used: list[Services] = []

    def start() -> Services:
        used.append(Services(model, fleet))
        return used[-1]

    found = place_all(fleet, order, start)
    said = f"{used[0].unbound} dependencies on services that are not placed"
    return as_row("machine reassignment", name, len(order), found, said)
