"""Measures the instances of one cell: a family, a number of members and hosts, a load."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks.joint import engine
from benchmarks.joint.bounds import least_hops
from benchmarks.joint.checker import faults, hops
from benchmarks.joint.draft import NotPlantable
from benchmarks.joint.families import SETS, make
from benchmarks.joint.fleet import after_a_commit, make_fleet, snapshot_of
from benchmarks.joint.one_at_a_time import SCHEDULERS

from moorage.domain.period import SECOND
from moorage.engine.joint.problem import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.joint.draft import Instance
    from benchmarks.joint.fleet import Fleet

    from moorage.domain.member_names import MemberName
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.state.snapshot import Snapshot

COLD: Final = 3
"""Instances that are also decided with a snapshot that nothing was asked of before."""
_BESIDE: Final = 2_000_000
"""Members times hosts up to which one-at-a-time schedulers are measured as well."""


@dataclass
class Cell:
    """What was found for one family, at one size and load."""

    family: str
    members: int
    hosts: int
    load: int
    """In percent."""
    which: str
    """Name of the set of instances."""
    instances: int = 0
    not_planted: int = 0
    """Seeds for which the fleet has no answer of this kind."""
    undecided: int = 0
    """Neither an answer nor a proof within ten seconds."""
    wrong: list[str] = field(default_factory=list)
    """Answers that do not hold, and refusals and conflicts that are not true."""
    times: dict[str, list[float]] = field(default_factory=dict)
    """What was measured -> a value of each instance, seconds or a share."""
    solvers: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)
    """Scheduler -> how many instances it places, and breaks nothing."""
    other_conflicts: int = 0
    """Refusals whose first conflict is not known to be minimal, or is missing."""

    def note(self, what: str, value: float) -> None:
        """Keep a value of one instance."""
        self.times.setdefault(what, []).append(value)

    def as_row(self) -> dict[str, Any]:
        """For the results file: quantiles instead of values."""
        return {
            "family": self.family,
            "members": self.members,
            "hosts": self.hosts,
            "load": self.load,
            "set": self.which,
            "instances": self.instances,
            "not planted": self.not_planted,
            "undecided": self.undecided,
            "wrong": self.wrong,
            "solvers": self.solvers,
            "beside": self.beside,
            "other conflicts": self.other_conflicts,
            "found": {what: quantiles(values) for what, values in sorted(self.times.items())},
        }


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and greatest of some values."""
    return {
        "p50": round(statistics.median(values), 5),
        "p95": round(float(np.quantile(values, 0.95)), 5),
        "max": round(max(values), 5),
    }


class Bench:
    """One fleet, which somebody's commit changes before each decision."""

    def __init__(self, hosts: int, load: int, which: str) -> None:
        self.hosts, self.load, self.which = hosts, load, which
        self.fleet: Fleet = make_fleet(hosts, load=load / 100, seed=SETS[which] + hosts)
        self.snapshot: Snapshot = snapshot_of(self.fleet)
        self._commits = 0

    def cell(self, family: str, members: int, instances: int) -> Cell:
        """Measure so many instances of a family."""
        found = Cell(family, members, self.hosts, self.load, self.which)
        for number in range(instances):
            try:
                instance = make(family, self.fleet, members, SETS[self.which] + number)
            except NotPlantable:
                found.not_planted += 1
                continue
            if not found.instances:
                engine.first_answer(self.snapshot, instance.request)  # load what is loaded once
            found.instances += 1
            self._commit(instance)
            self._decide(found, instance)
        return found

    def _commit(self, instance: Instance) -> None:
        self._commits += 1
        planted = set((instance.planted or {}).values())
        self.fleet, self.snapshot = after_a_commit(
            self.fleet, self.snapshot, self._commits, planted
        )

    def _decide(self, found: Cell, instance: Instance) -> None:
        decided = engine.first_answer(self.snapshot, instance.request)
        found.note("first", decided.seconds)
        found.note("first cpu", decided.cpu_seconds)
        for part, seconds in decided.taken.cpu.items():
            found.note(f"cpu of {part}", seconds)
        found.solvers[decided.outcome.solver] = found.solvers.get(decided.outcome.solver, 0) + 1
        found.undecided += decided.verdict is Verdict.UNKNOWN
        found.wrong += self._wrong(instance, decided)
        if found.instances <= COLD:
            cold = self.snapshot.with_states(topology=self.snapshot.topology)
            found.note("cold", engine.first_answer(cold, instance.request).seconds)
        if instance.teams:
            self._hops(found, instance)
        if instance.feasible and found.members * found.hosts <= _BESIDE:
            for scheduler in SCHEDULERS:
                placed = scheduler.place(self.fleet, instance.request)
                valid = placed is not None and not faults(self.fleet, instance.request, placed)
                found.beside[scheduler.name] = found.beside.get(scheduler.name, 0) + valid
        if not instance.feasible and decided.verdict is not Verdict.FEASIBLE:
            self._refuse(found, instance, decided)

    def _wrong(self, instance: Instance, decided: engine.Decided) -> Iterator[str]:
        if decided.hosts is not None:
            hosts = self._rows(decided.hosts)
            for fault in faults(self.fleet, instance.request, hosts)[:3]:
                yield f"{instance.seed}: {fault}"
        if decided.verdict is Verdict.INFEASIBLE and instance.feasible:
            yield f"{instance.seed}: refused, and there is an answer"

    def _rows(self, hosts: Mapping[MemberName, str]) -> dict[MemberName, int]:
        return {member: self.fleet.row_of[host] for member, host in hosts.items()}

    def _hops(self, found: Cell, instance: Instance) -> None:
        """How far the hops of an answer after a second are from what is possible at best."""
        least = least_hops(self.fleet, instance)
        best = engine.improved_answer(self.snapshot, instance.request, SECOND)
        found.note("improved", best.seconds)
        if best.hosts is None:
            found.note("hop gap", 1.0)
            return
        found.wrong += [f"improved {text}" for text in self._wrong(instance, best)]
        gap = hops(self.fleet, instance.teams, self._rows(best.hosts)) / max(least, 1) - 1
        found.note("hop gap", gap)
        assert instance.planted is not None
        planted = hops(self.fleet, instance.teams, instance.planted) / max(least, 1) - 1
        found.note("hop gap of the planted answer", planted)

    def _refuse(self, found: Cell, instance: Instance, decided: engine.Decided) -> None:
        refused = engine.refusal(decided)
        found.note("conflict", refused.conflict_seconds)
        found.note("conflict cpu", refused.cpu[0])
        found.note("relaxations", refused.relaxed_seconds)
        found.note("relaxations cpu", refused.cpu[1])
        found.note("relaxations shown", len(refused.relaxations))
        if refused.conflicts[:1] != (instance.conflict,):
            if refused.minimal and refused.conflicts:
                found.wrong.append(f"{instance.seed}: conflict {sorted(refused.conflicts[0])}")
            else:
                found.other_conflicts += 1
        for one in refused.relaxations:
            request = engine.relaxed(instance.request, one)
            if not self._holds(request):
                found.wrong.append(f"{instance.seed}: {one.change} does not help")

    def _holds(self, request: EnsembleRequest) -> bool:
        """Whether a relaxed request can be placed, by an answer that the checker accepts."""
        decided = engine.first_answer(self.snapshot, request)
        return decided.hosts is not None and not faults(
            self.fleet, request, self._rows(decided.hosts)
        )
