"""Gangs on racks: the numbers of Kueue's performance test of topology-aware scheduling.

One block of 10 racks of 64 nodes with 96 CPUs each; 30 queues submit 500 gangs each, of three sizes
and three kinds. `required`: all pods in one rack. `preferred`: the same if possible. `balanced`:
each slice of the pods in one rack, all of them if possible. Here no gang ends, so the last ones
find nine tenths of the CPUs taken, and every one of them fits.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from benchmarks.joint.cells import quantiles
from benchmarks.joint.fleet import VCPU, Fleet
from benchmarks.joint.one_at_a_time import Scheduler
from benchmarks.joint.weighers import Packing, Spreading
from benchmarks.public.groups import Joint, every_fleet, place_all

from moorage.domain.ensembles import Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.testing.problems import PROJECT, statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.public.groups import Way
    from numpy.typing import NDArray

    from moorage.domain.ensembles import PolicyStatement

    Bools: TypeAlias = NDArray[np.bool_]

RACKS: Final = 10
NODES: Final = 64
"""Of a rack."""
CPUS: Final = 96_000
"""Thousandths of a CPU of a node."""
QUEUES: Final = 30
REQUIRED, PREFERRED, BALANCED = "required", "preferred", "balanced"
OBJECTIVES: Final = (Objective.ROOM, Objective.SPREAD)
LEVEL: Final = "rack"


class Kind(NamedTuple):
    """Gangs of one size and kind that each queue submits."""

    name: str
    submitted: int
    every: int
    """Milliseconds from one to the next."""
    pods: int
    cpu: int
    """Thousandths of a CPU of each pod."""
    constraint: str
    slice: int
    """Pods that must share a rack."""


KINDS: Final = (
    Kind("small", 120, 100, 2, 500, REQUIRED, 2),
    Kind("small", 120, 100, 2, 500, PREFERRED, 1),
    Kind("small", 110, 100, 2, 500, BALANCED, 1),
    Kind("medium", 34, 500, 4, 1250, REQUIRED, 4),
    Kind("medium", 33, 500, 4, 1250, PREFERRED, 1),
    Kind("medium", 33, 500, 4, 1250, BALANCED, 2),
    Kind("large", 17, 1200, 8, 2500, REQUIRED, 8),
    Kind("large", 17, 1200, 8, 2500, PREFERRED, 1),
    Kind("large", 16, 1200, 8, 2500, BALANCED, 4),
)


class Gang(NamedTuple):
    """One submission."""

    name: str
    kind: Kind


def gangs(queues: int = QUEUES) -> list[Gang]:
    """All gangs in the order in which they are submitted."""
    found = [
        (number * kind.every, queue, position, Gang(f"{queue}-{position}-{number}", kind))
        for queue in range(queues)
        for position, kind in enumerate(KINDS)
        for number in range(kind.submitted)
    ]
    return [gang for *_, gang in sorted(found, key=lambda one: one[:3])]


def fleet(racks: int = RACKS, nodes: int = NODES) -> Fleet:
    """The nodes, empty, in their racks."""
    count = racks * nodes
    nobody = np.zeros(count, dtype=np.bool_)
    capacity = np.full((count, 1), CPUS, dtype=np.int64)
    return Fleet(
        names=tuple(f"node-{row:03}" for row in range(count)),
        classes=(VCPU,),
        capacity=capacity,
        used=np.zeros_like(capacity),
        domains={LEVEL: np.arange(count) // nodes},
        called={LEVEL: tuple(f"rack-{number}" for number in range(racks))},
        trees={"location": (LEVEL,)},
        traits={},
        strangers=nobody,
        relatives=nobody,
        closed=nobody,
    )


def request_of(kind: Kind) -> EnsembleRequest:
    """The joint request for a gang: a role for each slice."""
    roles = [
        Role(f"slice{number}", MappingProxyType({VCPU: kind.cpu}))
        for number in range(kind.pods // kind.slice)
    ]
    members = [MemberName(role.name, index) for role in roles for index in range(kind.slice)]
    return EnsembleRequest(
        project_id=PROJECT,
        roles=tuple(roles),
        members=tuple(members),
        policies=tuple(_policies(kind, roles)),
        period=Period(0),
    )


def _policies(kind: Kind, roles: Sequence[Role]) -> Iterator[PolicyStatement]:
    if kind.slice > 1:
        for role in roles:
            yield statement(f"{role.name}-together", "proximity", role.name, level=LEVEL)
    if kind.constraint != REQUIRED:
        yield statement("all-together", "proximity", "*", level=LEVEL, weight=1)


class Queue:
    """Gangs as a data set; no gang forbids another a node."""

    def __init__(self, submitted: Sequence[Gang], hosts: Fleet) -> None:
        self._fleet, self._nobody = hosts, np.zeros(len(hosts.names), dtype=np.bool_)
        self._kinds = {gang.name: gang.kind for gang in submitted}
        self._requests = {kind: request_of(kind) for kind in KINDS}
        self.placed: dict[str, list[int]] = {}
        """Gang -> the host rows of its pods."""
        self._torn = 0

    def request(self, group: str) -> tuple[EnsembleRequest, Bools]:
        """A gang's pods; every node is open to it."""
        return self._requests[self._kinds[group]], self._nobody

    def put(self, group: str, hosts: Mapping[MemberName, int]) -> None:
        """Note where the pods are, and whether a slice is torn apart."""
        self.placed[group] = list(hosts.values())
        racks: dict[str, set[int]] = {}
        for member, row in hosts.items():
            racks.setdefault(member.role, set()).add(int(self._fleet.domains[LEVEL][row]))
        self._torn += any(len(some) > 1 for some in racks.values())

    def broken(self) -> int:
        """Gangs of which a slice is in several racks."""
        return self._torn

    def in_several_racks(self) -> int:
        """Gangs whose pods are not all in one rack."""
        racks = self._fleet.domains[LEVEL]
        return sum(len(np.unique(racks[rows])) > 1 for rows in self.placed.values())

    def refused_that_fit(self) -> int:
        """Gangs without a place for which there was one, by counting, when they were submitted."""
        free, racks = self._fleet.free[:, 0].copy(), self._fleet.domains[LEVEL]
        count = 0
        for name, kind in self._kinds.items():
            if name in self.placed:
                np.subtract.at(free, self.placed[name], kind.cpu)
                continue
            pods = np.bincount(racks, np.maximum(free, 0) // kind.cpu)
            count += int((pods // kind.slice).sum()) * kind.slice >= kind.pods
        return count


def ways() -> Mapping[str, Callable[[Fleet], Way]]:
    """Jointly under some objectives, and one pod at a time."""
    found: dict[str, Callable[[Fleet], Way]] = {
        str(one): partial(Joint, objective=one) for one in OBJECTIVES
    }
    for weigher in (Packing, Spreading):
        scheduler = Scheduler(ideal=True, weigher=weigher, name=weigher.name)
        found[weigher.name] = every_fleet(scheduler)
    return MappingProxyType(found)


def measure(name: str, submitted: Sequence[Gang], hosts: Fleet) -> dict[str, Any]:
    """Place the gangs in one way; the row for the results."""
    queue = Queue(submitted, hosts)
    names = [one.name for one in submitted]
    found = place_all(hosts, names, lambda: queue, {name: ways()[name]})[name]
    return {
        "name": name,
        "gangs": len(submitted),
        "hosts": len(hosts.names),
        "placed": len(found.groups),
        "refused that fit": queue.refused_that_fit(),
        "broken": found.broken,
        "in several racks": queue.in_several_racks(),
        "a second": len(submitted) / sum(found.seconds),
        "seconds": quantiles(found.seconds),
    }
