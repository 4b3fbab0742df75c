"""A stream of groups into one fleet, until it is full: how many are admitted, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks.joint.checker import closed_to_exclusive, faults
from benchmarks.joint.draft import NotPlantable
from benchmarks.joint.engine import first_answer
from benchmarks.joint.families import SETS, make
from benchmarks.joint.fleet import make_fleet, snapshot_of
from benchmarks.joint.one_at_a_time import SCHEDULERS, Scheduler

from moorage.domain.ensembles import edges
from moorage.engine.joint.problem import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.joint.fleet import Fleet

    from moorage.domain.member_names import MemberName
    from moorage.domain.requests import EnsembleRequest

HOSTS: Final = 200
GROUPS: Final = 60
SIZES: Final = (6, 20)
_KINDS: Final = ("high-availability", "nested", "mixed", "scarce", "exclusive")


@dataclass
class Joint:
    """Groups placed jointly; what could not be decided is counted."""

    name: str = "joint"
    seconds: list[float] = field(default_factory=list)
    undecided: int = 0
    proved: int = 0

    def place(self, fleet: Fleet, request: EnsembleRequest) -> dict[MemberName, int] | None:
        """Member -> host row, or None."""
        closed = {"exclusive": fleet.closed_names}
        decided = first_answer(snapshot_of(fleet), request, closed=closed)
        self.seconds.append(decided.cpu_seconds)
        self.undecided += decided.verdict is Verdict.UNKNOWN
        self.proved += decided.verdict is Verdict.INFEASIBLE
        if decided.hosts is None:
            return None
        return {member: fleet.row_of[host] for member, host in decided.hosts.items()}


def groups(load: float, seed: int) -> list[EnsembleRequest]:
    """What is asked for, one after the other: made for an empty enough fleet of the same kind."""
    dice = np.random.default_rng(seed)
    fleet = make_fleet(HOSTS, load=load, seed=seed)
    found: list[EnsembleRequest] = []
    while len(found) < GROUPS:
        kind = _KINDS[int(dice.integers(len(_KINDS)))]
        members = int(dice.integers(*SIZES, endpoint=True))
        try:
            found.append(make(kind, fleet, members, int(dice.integers(10**6))).request)
        except NotPlantable:
            continue
    return found


def with_group(fleet: Fleet, request: EnsembleRequest, hosts: Mapping[MemberName, int]) -> Fleet:
    """The fleet with a group on it. Its members are strangers to the next, as are its hosts."""
    used, strangers, closed = fleet.used.copy(), fleet.strangers.copy(), fleet.closed.copy()
    for member, row in hosts.items():
        resources = request.role_of(member).resources
        used[row] += [resources.get(name, 0) for name in fleet.classes]
    strangers[list(hosts.values())] = True
    for statement in request.policies:
        if statement.required and statement.type == "exclusive":
            mine = np.zeros_like(closed)
            for edge in edges(statement, request.roles, request.members):
                mine[[hosts[member] for member in edge]] = True
            # The domains of its members: exactly those that are closed if a stranger is on them.
            closed |= closed_to_exclusive(
                replace(fleet, strangers=mine, relatives=mine), statement.parameters
            )
    relatives = fleet.relatives & ~strangers
    return replace(fleet, used=used, strangers=strangers, relatives=relatives, closed=closed)


def admitted(
    place: Callable[[Fleet, EnsembleRequest], dict[MemberName, int] | None],
    fleet: Fleet,
    asked: list[EnsembleRequest],
) -> tuple[int, int]:
    """How many groups a scheduler admits in a row, and how many it places wrongly.

    A group that is placed wrongly is removed again: it is not what was asked for.
    """
    count = wrong = 0
    for request in asked:
        hosts = place(fleet, request)
        if hosts is None:
            continue
        if faults(fleet, request, hosts):
            wrong += 1
            continue
        count += 1
        fleet = with_group(fleet, request, hosts)
    return count, wrong


def measure(load: float, which: str, streams: int) -> dict[str, Any]:
    """Several streams at one base load: the sums of what each scheduler admits."""
    sums: dict[str, list[int]] = {}
    joint = Joint()
    for number in range(streams):
        seed = SETS[which] + number
        fleet, asked = make_fleet(HOSTS, load=load, seed=seed), groups(load, seed)
        schedulers: list[Joint | Scheduler] = [joint, *SCHEDULERS]
        for scheduler in schedulers:
            found = admitted(scheduler.place, fleet, asked)
            known = sums.setdefault(scheduler.name, [0, 0])
            known[0] += found[0]
            known[1] += found[1]
    best = max(count for name, (count, _) in sums.items() if name != joint.name)
    return {
        "load": load,
        "hosts": HOSTS,
        "groups": GROUPS * streams,
        "admitted": {name: count for name, (count, _) in sums.items()},
        "wrong": {name: wrong for name, (_, wrong) in sums.items()},
        "ratio": sums[joint.name][0] / max(best, 1),
        "undecided": joint.undecided,
        "refusals proved": joint.proved,
        "cpu_ms": 1000 * float(np.median(joint.seconds)),
    }
