"""Groups of a public data set, placed one after the other: jointly, and by other schedulers.

Each way of placing has a fleet of its own, which fills up. A group is placed whole or not at all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from benchmarks.joint.cells import quantiles
from benchmarks.joint.engine import first_answer
from benchmarks.joint.fleet import booked, snapshot_of
from benchmarks.joint.one_at_a_time import Scheduler
from benchmarks.joint.stream import with_group
from benchmarks.joint.weighers import FirstFit

from moorage.domain.period import SECOND
from moorage.domain.requests import Objective
from moorage.engine.joint.problem import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from benchmarks.joint.fleet import Fleet
    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.state.snapshot import Snapshot

    Bools: TypeAlias = NDArray[np.bool_]
    Hosts: TypeAlias = dict[MemberName, int]

LONGEST: Final = 2 * SECOND
"""The time limit of a joint decision."""
FIRST_FIT: Final = Scheduler(ideal=True, weigher=FirstFit, name="first fit")


class Placed(Protocol):
    """What is placed so far, as the rules of a data set see it."""

    def request(self, group: str) -> tuple[EnsembleRequest, Bools]:
        """What is asked for a group, and [H] the hosts that the groups placed before forbid it."""

    def put(self, group: str, hosts: Hosts) -> None:
        """Note where a group is."""

    def broken(self) -> int:
        """How many rules of the data set are broken now, by its own definition."""


class Way(Protocol):
    """A way of placing groups on one fleet that fills up."""

    def place(self, fleet: Fleet, request: EnsembleRequest) -> Hosts | None:
        """Member -> row, or None."""


class Joint:
    """Places jointly, on snapshots that follow one another."""

    def __init__(
        self, fleet: Fleet, objective: Objective | None = None, longest: Duration = LONGEST
    ) -> None:
        """`objective` replaces that of the requests; `longest` is a decision's time limit."""
        self._snapshot: Snapshot = snapshot_of(fleet)
        self._objective, self._longest = objective, longest
        self.undecided = 0
        """Requests for which neither places nor a proof were found in time."""

    def place(self, fleet: Fleet, request: EnsembleRequest) -> Hosts | None:
        """Member -> row, or None."""
        if self._objective is not None:
            request = replace(request, objective=self._objective)
        closed = {"rules": fleet.closed_names}
        decided = first_answer(self._snapshot, request, closed=closed, longest=self._longest)
        self.undecided += decided.verdict is Verdict.UNKNOWN
        if decided.hosts is None:
            return None
        found = {member: fleet.row_of[host] for member, host in decided.hosts.items()}
        servers: dict[int, list[Any]] = {}
        for member, row in found.items():
            servers.setdefault(row, []).append(request.role_of(member).resources)
        consumer = f"group-{self._snapshot.revision}"
        self._snapshot = booked(self._snapshot, fleet, servers, consumer)
        return found


def every_fleet(scheduler: Scheduler) -> Callable[[Fleet], Way]:
    """The scheduler for any fleet: it keeps nothing of one."""
    return lambda _: scheduler


WAYS: Final[Mapping[str, Callable[[Fleet], Way]]] = MappingProxyType(
    {
        "spread": Joint,
        "room": lambda fleet: Joint(fleet, Objective.ROOM),
        FIRST_FIT.name: every_fleet(FIRST_FIT),
    }
)


@dataclass
class Admitted:
    """What one way of placing places of some groups."""

    groups: list[str] = field(default_factory=list)
    members: int = 0
    broken: int = 0
    """Rules of the data set that are broken, and hosts that are overfull."""
    seconds: list[float] = field(default_factory=list)
    """Of the processor, for each group."""


def place_all(
    fleet: Fleet,
    groups: Sequence[str],
    start: Callable[[], Placed],
    ways: Mapping[str, Callable[[Fleet], Way]] = WAYS,
) -> dict[str, Admitted]:
    """What each way of placing places of the groups, in their order."""
    found = {}
    for name, make in ways.items():
        way, placed, now = make(fleet), start(), fleet
        mine = found[name] = Admitted()
        for group in groups:
            request, barred = placed.request(group)
            begun = time.process_time()
            hosts = way.place(replace(now, closed=barred), request)
            mine.seconds.append(time.process_time() - begun)
            if hosts is None:
                continue
            mine.groups.append(group)
            mine.members += len(hosts)
            placed.put(group, hosts)
            now = with_group(now, request, hosts)
        mine.broken = placed.broken() + int((now.used > now.capacity).any(axis=1).sum())
    return found


def as_row(
    kind: str, name: str, groups: int, found: Mapping[str, Admitted], left_out: str
) -> dict[str, Any]:
    """For the results file."""
    return {
        "format": kind,
        "name": name,
        "groups": groups,
        "admitted": {way: [len(one.groups), one.members] for way, one in found.items()},
        "broken": sum(one.broken for one in found.values()),
        "seconds": {way: quantiles(one.seconds or [0.0]) for way, one in found.items()},
        "left out": left_out,
    }
