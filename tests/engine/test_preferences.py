"""A stated preference goes before the objective, whatever its weight."""

import numpy as np
import pytest

from moorage.domain.period import SECOND
from moorage.domain.requests import Objective
from moorage.domain.topology import EMPTY
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.cost import MOST_FILL, objective_cost, preference_scale
from moorage.engine.joint.verify import verify
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, random_built, request, statement, terrain

SOLVERS = (Exhaustive(), Greedy(), CpSat(), Portfolio(CpSat()))


def built(policy: str, objective: Objective) -> BuiltProblem:
    """Three members with room anywhere, and one preference of the least weight."""
    hosts = [Host(f"h{i}", {"VCPU": 8}) for i in range(4)]
    soft = statement("soft", policy, "a", weight=1)
    return build_on_terrain(
        request({"a": (3, {"VCPU": 1})}, [soft], objective=objective), terrain(hosts, EMPTY)
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("policy", "objective", "distinct"),
    [
        ("affinity", Objective.SPREAD, 1),
        ("affinity", Objective.BALANCE, 1),
        ("anti-affinity", Objective.PACK, 3),
    ],
)
def test_a_preference_of_weight_one_beats_the_objective_it_contradicts(
    solver: Exhaustive | Greedy | CpSat | Portfolio,
    policy: str,
    objective: Objective,
    distinct: int,
) -> None:
    asked = built(policy, objective)
    found = solver.solve(asked.problem, time_limit=10 * SECOND, seed=0)
    assert found.hosts is not None
    (status,) = verify(asked, found.hosts)
    assert (status.satisfied, status.penalty) == (True, 0)
    assert len(set(found.hosts.tolist())) == distinct


def test_penalties_are_told_by_the_weights_as_written() -> None:
    asked = built("affinity", Objective.SPREAD)
    rows = np.array([0, 1, 2])
    (status,) = verify(asked, rows)
    assert status.penalty == 2
    assert [one.weight for one in asked.problem.primitives] == [4]


@pytest.mark.parametrize("seed", range(40))
def test_no_answer_that_fits_makes_the_objective_cost_as_much_as_one_unit(seed: int) -> None:
    asked = random_built(seed)
    found = Greedy().solve(asked.problem, time_limit=SECOND, seed=seed)
    if found.hosts is not None:
        cost = objective_cost(asked.problem, found.hosts[None, :])[0]
        assert 0 <= cost < preference_scale(asked.problem)


def test_an_over_full_host_raises_the_scale_and_a_limit_keeps_it_small() -> None:
    def scale(used: int) -> int:
        hosts = [Host("h1", {"VCPU": 4}, {"VCPU": used}), Host("h2", {"VCPU": 4})]
        asked = request({"a": (1, {"VCPU": 1})}, objective=Objective.BALANCE)
        return preference_scale(build_on_terrain(asked, terrain(hosts, EMPTY)).problem)

    assert (scale(0), scale(6), scale(4_000_000)) == (101, 151, MOST_FILL + 1)
