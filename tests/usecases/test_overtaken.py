"""A commit in between: the answer is judged again, and solved again only if it broke."""

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pytest

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible
from moorage.domain.period import Duration
from moorage.engine.problem import Outcome, Problem
from moorage.testing.service import TENANT, Service
from moorage.usecases.create_ensemble import create_ensemble
from moorage.usecases.joint import Ask
from moorage.usecases.settle import Naming


@dataclass
class Overtaken:
    """The real solver; after its first answer somebody else books on the hosts it chose."""

    service: Service
    vcpus: int
    everywhere: tuple[str, ...] = ()
    solves: list[str] = field(default_factory=list)

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        found = self.service.parts.solver.solve(problem, time_limit=time_limit, seed=seed)
        self.solves.append(found.verdict.value)
        if len(self.solves) == 1:
            assert found.hosts is not None
            chosen = {problem.hosts[row] for row in found.hosts.tolist()}
            for number, host in enumerate(sorted({*chosen, *self.everywhere})):
                self._book(f"dddddddd-0000-4000-8000-{number:012x}", host)
        return found

    def _book(self, uuid: str, host: str) -> None:
        amounts = MappingProxyType({host: MappingProxyType({"VCPU": self.vcpus})})
        consumer = Consumer(uuid, "neighbour", "n", "INSTANCE")
        self.service.store.commit(Changeset((ReplaceAllocations(consumer, amounts, None),)))


def place(service: Service, solver: Overtaken, size: int) -> Any:
    description = {
        "name": "one",
        "members": [{"name": "vm", "count": 1, "resources": {"VCPU": size}}],
    }
    parts = replace(service.parts, solver=solver)
    return create_ensemble(
        parts, TENANT, read_ensemble(description), Ask(), Naming(parts.ids.uuid())
    )


def test_an_answer_that_still_holds_is_not_solved_again(service: Service) -> None:
    solver = Overtaken(service, vcpus=1)
    made = place(service, solver, size=4)
    assert solver.solves == ["feasible"]
    assert made.decision.revision == service.store.snapshot().revision - 1


def test_an_answer_that_broke_is_solved_again(service: Service) -> None:
    solver = Overtaken(service, vcpus=16)
    made = place(service, solver, size=4)
    assert solver.solves == ["feasible", "feasible"]
    assert len(service.store.bookings(decision=made.decision.id)) == 1


def test_when_nothing_is_left_it_is_refused(service: Service) -> None:
    snapshot = service.store.snapshot()
    empty = tuple(snapshot.uuids[snapshot.names.index(f"h{i}")] for i in range(1, 7))
    solver = Overtaken(service, vcpus=16, everywhere=empty)
    with pytest.raises(Infeasible):
        place(service, solver, size=16)
    assert service.store.ensembles(project_id=None) == []
