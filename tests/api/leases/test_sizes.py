"""A host reservation between `min` and `max`: the most there are, in few searches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from falcon.testing import TestClient
from tests.api.leases.conftest import ONE, Door, whole

from moorage.api.leases import create_app
from moorage.domain.period import Duration
from moorage.engine.joint.problem import Outcome, Problem
from moorage.usecases.ports import Solver

HOSTS = 40
FLEET = ONE.replace('"n{n}", count: 1', f'"n{{n}}", count: {HOSTS}')


@dataclass
class Counting:
    """The solver, with the problems that it was given counted by how many members they place."""

    inner: Solver
    asked: list[int]

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.asked.append(len(problem.members))
        return self.inner.solve(problem, time_limit=time_limit, seed=seed)


@pytest.fixture
def many() -> Iterator[Door]:
    door = Door(FLEET)
    yield door
    door.service.close()


@pytest.fixture
def asked(many: Door) -> list[int]:
    """How many members each problem had that the solver was given."""
    sizes: list[int] = []
    parts = many.service.env
    many.service.env = replace(parts, solver=Counting(parts.solver, sizes))
    many._client = TestClient(create_app(many.service.env))
    return sizes


def offer(door: Door, count: int) -> None:
    door.offer(*(f"n{number}" for number in range(1, count + 1)))


def size(door: Door, lease: dict[str, Any]) -> int:
    kept = door.service.store.lease(lease["id"])
    return len(door.service.store.ensemble(kept.ensemble_id).members)


@pytest.mark.parametrize("there", [1, 7, 29, HOSTS])
def test_the_most_there_are_is_found_in_few_searches(
    many: Door, asked: list[int], there: int
) -> None:
    offer(many, there)
    if there < HOSTS:
        many.offer(*(f"n{number}" for number in range(there + 1, HOSTS + 1)))
        taken = many.lease("10:00", "12:00", whole(HOSTS - there, HOSTS - there))
        assert taken.status_code == 201, taken.text
    asked.clear()
    answer = many.lease("10:00", "12:00", whole(1, HOSTS))
    assert answer.status_code == 201, answer.text
    assert size(many, answer.json["lease"]) == there
    assert len(asked) <= 12, "largest, smallest, halvings, and the one that is kept"


def test_none_at_all_is_refused_once_and_explained_once(many: Door, asked: list[int]) -> None:
    offer(many, HOSTS)
    assert many.lease("10:00", "12:00", whole(HOSTS, HOSTS)).status_code == 201
    asked.clear()
    answer = many.lease("10:00", "12:00", whole(1, HOSTS))
    assert answer.status_code == 500
    assert len(many.service.store.refusals(project_id=None)) == 1
    assert answer.json["error_message"] == "Not enough hosts available"
    assert len(asked) <= 24  # most of them are settled by counting
