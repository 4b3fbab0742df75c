"""When a hold begins, and limits that several requests reach at once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from moorage.domain.describe import read_ensemble
from moorage.domain.errors import LimitExceeded
from moorage.domain.period import SECOND, Duration
from moorage.domain.requests import Objective
from moorage.engine.problem import Outcome, Problem
from moorage.testing.service import NINE, OPERATOR, Service
from moorage.usecases.create_ensemble import Made, create_ensemble
from moorage.usecases.joint import Ask
from moorage.usecases.parts import Parts
from moorage.usecases.settle import Naming


@dataclass
class Slow:
    """The real solver, for which four seconds pass at every answer."""

    service: Service

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.service.clock.pass_by(4 * SECOND)
        return self.service.parts.solver.solve(problem, time_limit=time_limit, seed=seed)


def create(parts: Parts, ask: Ask, count: int = 2, *, on: str = "az1") -> Made:
    body: dict[str, Any] = {
        "name": "e",
        "members": [{"name": "a", "count": count, "resources": {"VCPU": 1}}],
        "policies": [{"name": "on", "type": "fence", "members": ["a"], "domains": [on]}],
    }
    return create_ensemble(parts, OPERATOR, read_ensemble(body), ask, Naming(parts.ids.uuid()))


@pytest.mark.parametrize("additional", [(), ("a",)])
def test_a_hold_counts_from_the_answer(service: Service, additional: tuple[str, ...]) -> None:
    parts = replace(service.parts, solver=Slow(service))
    made = create(parts, Ask(hold=3 * SECOND, additional=additional))
    decision, now = made.decision, service.clock.now()
    assert decision is not None
    assert now >= NINE + 4 * SECOND
    assert decision.expires_at == now + 3 * SECOND
    assert decision.state_at(now) == "held"
    bookings = service.store.bookings(decision=decision.id)
    assert {booking.lapses_at for _, booking in bookings} == {decision.expires_at}
    assert service.store.held(OPERATOR.project_id) == 2


def test_places_held_are_limited_whoever_comes_at_the_same_time(
    service: Service, overtaken: Callable[[Callable[[], object]], Parts]
) -> None:
    limits = replace(service.parts.limits, held_members=5)

    def create_another() -> None:
        create(replace(service.parts, limits=limits), Ask(), 4, on="r1")

    parts = replace(overtaken(create_another), limits=limits)
    with pytest.raises(LimitExceeded) as refused:
        create(parts, Ask(), 4, on="r2")
    assert (refused.value.used, refused.value.requested, refused.value.limit) == (4, 4, 5)
    assert service.store.held(OPERATOR.project_id) == 4
    assert len(service.store.ensembles(project_id=None)) == 1


def test_holding_anew_what_is_held_needs_no_more_room(service: Service) -> None:
    parts = replace(service.parts, limits=replace(service.parts.limits, held_members=4))
    made = create(parts, Ask(), 4)
    body = {"decision": {"ensemble_id": made.ensemble.id}}
    again = service.call("POST", "/decisions", body, caller=OPERATOR)
    assert again.status_code == 201, again.text
    assert service.store.held(OPERATOR.project_id) == 4


def test_what_was_proved_of_another_fleet_is_proved_no_more(
    service: Service, overtaken: Callable[[Callable[[], object]], Parts]
) -> None:
    """An answer that still holds after a commit in between may no longer be the best."""
    usual = create(service.parts, Ask(), 1, on="h1").decision
    assert usual is not None
    assert usual.solve.proven
    parts = overtaken(lambda: create(service.parts, Ask(), 1, on="h1"))
    solves: list[Problem] = []
    real = service.parts.solver

    class Counting:
        def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
            solves.append(problem)
            return real.solve(problem, time_limit=time_limit, seed=seed)

    packed = Ask(objective=Objective.PACK)
    late = create(replace(parts, solver=Counting()), packed, 1, on="h1").decision
    assert late is not None
    assert len(solves) == 1
    assert late.solve.value == 1
    assert not late.solve.proven
