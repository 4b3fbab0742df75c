"""A commit in between: the answer is judged again, and solved again only if it broke."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pytest

from moorage.domain.changes import (
    Changeset,
    PutEnsemble,
    PutTraits,
    ReplaceAllocations,
    SwapHold,
)
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible, NotFound, StaleGeneration
from moorage.domain.period import Duration
from moorage.engine.joint.problem import Outcome, Problem
from moorage.testing.service import TENANT, Service
from moorage.usecases.claims.hold import release
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.change import ChangeRequest, change_ensemble
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.ledger.allocations import allocate


@dataclass
class Overtaken:
    """The real solver; after its first answer somebody else books on the hosts it chose."""

    service: Service
    vcpus: int
    everywhere: tuple[str, ...] = ()
    solves: list[str] = field(default_factory=list)
    chosen: set[str] = field(default_factory=set)

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        found = self.service.env.solver.solve(problem, time_limit=time_limit, seed=seed)
        self.solves.append(found.verdict.value)
        if len(self.solves) == 1:
            assert found.hosts is not None
            self.chosen = {problem.hosts[row] for row in found.hosts.tolist()}
            for number, host in enumerate(sorted({*self.chosen, *self.everywhere})):
                self._book(f"dddddddd-0000-4000-8000-{number:012x}", host)
        return found

    def _book(self, uuid: str, host: str) -> None:
        if not self.vcpus:
            return
        amounts = MappingProxyType({host: MappingProxyType({"VCPU": self.vcpus})})
        consumer = Consumer(uuid, "neighbour", "n", "INSTANCE")
        self.service.store.commit(Changeset((ReplaceAllocations(consumer, amounts, None),)))


def place(
    service: Service, solver: Overtaken, size: int, *, env: UseCaseEnvironment | None = None
) -> Any:
    description = {
        "name": "one",
        "members": [{"name": "vm", "count": 1, "resources": {"VCPU": size}}],
    }
    env = replace(env or service.env, solver=solver)
    return create_ensemble(
        env,
        TENANT,
        read_ensemble(description),
        DecisionOptions(),
        RequestIdentity(env.ids.uuid()),
    )


def test_what_others_book_beside_it_does_not_matter(service: Service) -> None:
    before = service.store.snapshot().revision
    solver = Overtaken(service, vcpus=1)
    made = place(service, solver, size=4)
    assert solver.solves == ["feasible"]
    assert made.decision.revision == before, "the neighbour's booking was not looked at"
    assert service.store.snapshot().revision == before + 2


def test_an_answer_that_still_holds_is_not_solved_again(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    """Its hosts are no longer what they were; in what matters to it they are."""
    solver = Overtaken(service, vcpus=0)

    def mark() -> None:
        changes = (PutTraits(host, frozenset({"HW_CPU_X86_AVX"}), None) for host in solver.chosen)
        service.store.commit(Changeset(tuple(changes)))

    made = place(service, solver, size=4, env=overtaken(mark))
    assert solver.solves == ["feasible"]
    assert made.decision.revision == service.store.snapshot().revision - 1


@pytest.mark.parametrize("back", [False, True], ids=["away", "away and back"])
def test_a_member_that_moves_away_meanwhile_is_seen(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment], *, back: bool
) -> None:
    """A server stands on h1, and another member must not be with it: wherever it is in the end."""
    made = place(service, Overtaken(service, vcpus=0), size=4)
    snapshot = service.store.snapshot()
    uuid = dict(zip(snapshot.names, snapshot.uuids, strict=True))
    server = Consumer("eeeeeeee-0000-4000-8000-000000000001", TENANT.project_id, "u", "INSTANCE")
    (member,) = made.ensemble.members
    service.store.commit(Changeset((SwapHold(member.uuid, server),)))
    stored = service.store.ensemble(made.ensemble.id)
    named = replace(stored, members=(replace(member, server_id=server.uuid),))
    service.store.commit(Changeset((PutEnsemble(named, stored.generation),)))

    def stand(host: str, generation: int) -> None:
        amounts = MappingProxyType({uuid[host]: MappingProxyType({"VCPU": 4})})
        write = ReplaceAllocations(server, amounts, generation)
        allocate(service.store, [write], ids=service.env.ids)

    stand("h1", 1)

    def move() -> None:
        stand("h2", 2)
        if back:
            stand("h1", 3)

    apart = {"name": "apart", "type": "anti-affinity", "members": ["vm"]}
    env = overtaken(move)
    change = ChangeRequest(members=({"name": "vm", "count": 2},), policies=(apart,))
    grown = change_ensemble(env, TENANT, made.ensemble.id, change, None)
    assert grown.decision is not None
    places = {str(name): place.host for name, place in grown.decision.places.items()}
    assert places["vm[0]"] == uuid["h1" if back else "h2"]
    assert places["vm[1]"] != places["vm[0]"]


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


def test_a_generation_that_is_named_is_of_that_thing_alone(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    """A worker expires the decision meanwhile; the ensemble that shall go is as it was."""
    made = place(service, Overtaken(service, vcpus=0), size=4)
    assert made.decision is not None
    env = overtaken(lambda: release(service.env, TENANT, made.decision.id, None))
    delete_ensemble(env, TENANT, made.ensemble.id, made.ensemble.generation)
    with pytest.raises(NotFound):
        service.store.ensemble(made.ensemble.id)


def test_a_generation_that_moves_meanwhile_is_told(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    made = place(service, Overtaken(service, vcpus=0), size=4)
    stored = service.store.ensemble(made.ensemble.id)
    rewrite = Changeset((PutEnsemble(replace(stored, name="two"), stored.generation),))
    env = overtaken(lambda: service.store.commit(rewrite))
    with pytest.raises(StaleGeneration, match=f"generation {stored.generation + 1}, not"):
        delete_ensemble(env, TENANT, stored.id, stored.generation)
    assert service.store.ensemble(stored.id).name == "two"
