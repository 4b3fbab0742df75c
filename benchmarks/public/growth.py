"""Applications that come, grow, shrink and end in time: how much of the growth is granted.

The instances that are there at the beginning are placed first, the largest applications first.
Then, hour by hour, those that end give back what they had, and what begins is asked for: all that
an application grows by in one hour is granted together or not at all, beside its members that are
there and stay where they are. What is refused is not asked for again.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from benchmarks.joint.cells import quantiles
from benchmarks.joint.engine import first_answer
from benchmarks.joint.fleet import snapshot_of
from benchmarks.joint.one_at_a_time import Scheduler
from benchmarks.public.admission import peers
from benchmarks.public.applications import GPU, applications, fleet_for, peak, request_of
from benchmarks.public.bookings import with_consumers, without_consumers
from benchmarks.public.groups import LONGEST

from moorage.domain.member_names import MemberName
from moorage.domain.requests import Objective

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.joint.fleet import Fleet
    from benchmarks.joint.weighers import Weigher
    from benchmarks.public.applications import Instance

    from moorage.domain.requests import EnsembleRequest

HOUR: Final = 3600
LOADS: Final = (97,)
OBJECTIVES: Final = (Objective.ROOM, Objective.SPREAD)
BEFORE: Final = -1
"""The hour of what was there at the beginning."""


class Change(NamedTuple):
    """What changes of one application at once."""

    hour: int
    joins: bool
    """Whether the members begin, not end."""
    application: str
    members: tuple[MemberName, ...]


@dataclass(frozen=True)
class History:
    """What happens in time."""

    requests: Mapping[str, EnsembleRequest]
    """Application -> its roles and policies; its members are all that it ever has."""
    changes: tuple[Change, ...]
    """At the beginning the largest first; then of each hour all that end, then all that begin."""


def history(instances: Sequence[Instance], *, barred: bool) -> History:
    """The history of these instances; `barred`: see `request_of`."""
    asked = applications(instances)
    roles = {
        (one.name, shape): f"shape{number}"
        for one in asked
        for number, (shape, _) in enumerate(one.shapes)
    }
    numbers: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[int, bool, str], list[MemberName]] = {}
    for one in instances:
        role = roles[one.application, one.shape]
        member = MemberName(role, numbers[one.application, role])
        numbers[one.application, role] += 1
        since = BEFORE if one.since < 0 else int(one.since) // HOUR
        found.setdefault((since, True, one.application), []).append(member)
        if one.until < np.inf:
            # Who ends within an hour of its beginning ends in the next.
            until = max(int(one.until) // HOUR, since + 1)
            found.setdefault((until, False, one.application), []).append(member)
    changes = [Change(*key, tuple(sorted(some))) for key, some in found.items()]
    first = sorted(
        (one for one in changes if one.hour == BEFORE),
        key=lambda one: (-len(one.members), one.application),
    )
    later = sorted(one for one in changes if one.hour != BEFORE)
    requests = {one.name: request_of(one, barred=barred) for one in asked}
    return History(MappingProxyType(requests), (*first, *later))


class Way(Protocol):
    """A way of placing, on a fleet whose use changes."""

    def place(self, fleet: Fleet, request: EnsembleRequest) -> Mapping[MemberName, int] | None:
        """Member -> host row, the fixed ones included; None if there is no place."""

    def put(self, request: EnsembleRequest, hosts: Mapping[str, tuple[MemberName, int]]) -> None:
        """Note what begins: consumer -> member, and the row of its host."""

    def release(self, hosts: Mapping[str, int]) -> None:
        """Note what ends: consumer -> the row of its host."""


class Joint:
    """Places jointly, on snapshots that follow one another."""

    def __init__(self, fleet: Fleet, objective: Objective) -> None:
        self._snapshot, self._names, self._objective = snapshot_of(fleet), fleet.names, objective

    def place(self, fleet: Fleet, request: EnsembleRequest) -> Mapping[MemberName, int] | None:
        """By a decision in which the fixed members count for the policies."""
        request = replace(request, objective=self._objective)
        hosts = first_answer(self._snapshot, request, longest=LONGEST).hosts
        if hosts is None:
            return None
        return {member: fleet.row_of[host] for member, host in hosts.items()}

    def put(self, request: EnsembleRequest, hosts: Mapping[str, tuple[MemberName, int]]) -> None:
        """Book each member."""
        taken = {
            consumer: {self._names[row]: request.role_of(member).resources}
            for consumer, (member, row) in hosts.items()
        }
        self._snapshot = with_consumers(self._snapshot, taken)

    def release(self, hosts: Mapping[str, int]) -> None:
        """Remove their bookings."""
        left: dict[str, list[str]] = {}
        for consumer, row in hosts.items():
            left.setdefault(self._names[row], []).append(consumer)
        self._snapshot = without_consumers(self._snapshot, left)


class Alone:
    """A scheduler of one member at a time; it keeps nothing."""

    def __init__(self, _: Fleet, weigher: Callable[[Fleet], Weigher], name: str) -> None:
        self.place = Scheduler(ideal=True, weigher=weigher, name=name).place

    def put(self, request: EnsembleRequest, hosts: Mapping[str, tuple[MemberName, int]]) -> None:
        """The fleet says what is used."""

    def release(self, hosts: Mapping[str, int]) -> None:
        """The fleet says what is used."""


@dataclass
class Granted:
    """What one way grants."""

    first: int = 0
    """Applications of the beginning."""
    members: int = 0
    """Members by which applications grew."""
    requests: int = 0
    """Requests to grow that were granted."""
    overfull: int = 0
    """Hosts that are overfull in the end."""
    seconds: list[float] = field(default_factory=list)
    """Of the processor, for each request to grow."""


def replay(told: History, fleet: Fleet, way: Way) -> Granted:
    """Let a way of placing decide what happens in time."""
    found, used = Granted(), fleet.used.copy()
    standing: dict[str, dict[MemberName, int]] = {name: {} for name in told.requests}
    for change in told.changes:
        mine, known = standing[change.application], told.requests[change.application]
        if not change.joins:
            gone = {member: mine.pop(member) for member in change.members if member in mine}
            if gone:
                _count(used, fleet, known, gone, -1)
                consumers = {f"{change.application}/{one}": row for one, row in gone.items()}
                way.release(consumers)
            continue
        request = _growing(known, mine, change.members, fleet)
        begun = time.process_time()
        hosts = way.place(replace(fleet, used=used), request)
        if change.hour != BEFORE:
            found.seconds.append(time.process_time() - begun)
        if hosts is None:
            continue
        new = {member: hosts[member] for member in change.members}
        _count(used, fleet, known, new, 1)
        mine.update(new)
        way.put(known, {f"{change.application}/{one}": (one, row) for one, row in new.items()})
        if change.hour == BEFORE:
            found.first += 1
        else:
            found.requests += 1
            found.members += len(new)
    found.overfull = int((used > fleet.capacity).any(axis=1).sum())
    return found


def _growing(
    known: EnsembleRequest,
    standing: Mapping[MemberName, int],
    joined: Sequence[MemberName],
    fleet: Fleet,
) -> EnsembleRequest:
    """The request for more members beside those that stand."""
    fixed = {member: fleet.names[row] for member, row in standing.items()}
    return replace(known, members=(*standing, *joined), fixed=MappingProxyType(fixed))


def _count(
    used: np.typing.NDArray[np.int64],
    fleet: Fleet,
    known: EnsembleRequest,
    hosts: Mapping[MemberName, int],
    sign: int,
) -> None:
    for member, row in hosts.items():
        resources = known.role_of(member).resources
        used[row] += [sign * resources.get(name, 0) for name in fleet.classes]


def ways(instances: Sequence[Instance]) -> Mapping[str, Callable[[Fleet], Way]]:
    """Moorage under each objective, and the peers."""
    found: dict[str, Callable[[Fleet], Way]] = {
        str(one): partial(Joint, objective=one) for one in OBJECTIVES
    }
    shapes: Counter[tuple[int, ...]] = Counter()
    shapes.update((one.shape.vcpu, one.shape.memory, one.shape.gpus) for one in instances)
    for name, weigher in peers(GPU, shapes).items():
        found[name] = partial(Alone, weigher=weigher, name=name)
    return MappingProxyType(found)


def measure(
    instances: Sequence[Instance], load: int, *, barred: bool, objectives: Sequence[str] = ()
) -> dict[str, Any]:
    """Replay a trace in every way, those joint ones that are named; the row for the results."""
    told = history(instances, barred=barred)
    fleet = fleet_for(peak(instances), load / 100)
    later = [one for one in told.changes if one.joins and one.hour != BEFORE]
    found = {
        name: replay(told, fleet, make(fleet))
        for name, make in ways(instances).items()
        if name not in OBJECTIVES or name in objectives or not objectives
    }
    return {
        "load": load,
        "barred": barred,
        "hosts": len(fleet.names),
        "applications": sum(one.hour == BEFORE for one in told.changes),
        "requests": len(later),
        "members": sum(len(one.members) for one in later),
        "first": {name: one.first for name, one in found.items()},
        "granted": {name: [one.requests, one.members] for name, one in found.items()},
        "overfull": sum(one.overfull for one in found.values()),
        "seconds": {name: quantiles(one.seconds or [0.0]) for name, one in found.items()},
    }
