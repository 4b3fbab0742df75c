"""How a minimal conflict is searched for: counting first, and no more searches than it takes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from moorage.domain.period import Duration
from moorage.domain.topology import EMPTY
from moorage.engine.explain.conflicts import DeletionFilter, Oracle
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.problem import Outcome, Problem, SupportsSolve
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, request, statement, terrain


@dataclass
class Searches:
    """A solver that counts what it is asked."""

    inner: SupportsSolve = field(default_factory=lambda: Portfolio(CpSat()))
    count: int = 0

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.count += 1
        return self.inner.solve(problem, time_limit=time_limit, seed=seed)


@dataclass(eq=False)
class Counts(Oracle):
    """An oracle that keeps what counting answered."""

    answers: list[bool] = field(default_factory=list)

    def refuted_if_time(self, make: Callable[[], Problem]) -> bool:
        self.answers.append(super().refuted_if_time(make))
        return self.answers[-1]


def test_what_counting_shows_needs_one_search_for_each_element() -> None:
    others = {f"other{n}": (1, {"VCPU": 1}) for n in range(6)}
    asked = request(
        {"big": (3, {"VCPU": 4}), **others},
        [statement("apart", "anti-affinity", "big", max_per_domain=3)],
    )
    fleet = terrain([Host(f"h{n}", {"VCPU": 11 - 8 * n}) for n in range(2)], EMPTY)
    solver = Searches()
    oracle = Oracle(solver, lambda: 30.0)
    found = next(DeletionFilter(build_on_terrain(asked, fleet), oracle).conflicts())
    assert [str(one.name) for one in found.elements] == ["big"]
    assert found.minimal
    assert solver.count == 1


def test_what_only_a_search_shows_is_not_counted_again_and_again() -> None:
    """Three servers of 3 do not fit two hosts of 5, though 10 VCPUs are free and 9 asked for."""
    asked = request({name: (1, {"VCPU": 3}) for name in ("a", "b", "c")})
    fleet = terrain([Host(f"h{n}", {"VCPU": 5}) for n in range(2)], EMPTY)
    oracle = Counts(Portfolio(CpSat()), lambda: 30.0)
    found = next(DeletionFilter(build_on_terrain(asked, fleet), oracle).conflicts())
    assert sorted(one.name for one in found.elements) == ["a", "b", "c"]
    assert found.minimal
    assert oracle.answers == [False]
