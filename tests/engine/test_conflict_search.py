"""How a minimal conflict is searched for: counting first, and no more searches than it takes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from moorage.domain.period import Duration
from moorage.domain.topology import EMPTY
from moorage.engine.explain.conflict_classes import binding_classes
from moorage.engine.explain.conflicts import Core, DeletionFilter, Oracle
from moorage.engine.explain.elements import elements
from moorage.engine.joint import instance
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.problem import Outcome, Problem, SupportsSolve, Verdict
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


@dataclass
class Undecided:
    """A solver that never finds an answer or a proof, and keeps the problems that it is asked."""

    asked: list[bytes] = field(default_factory=list)

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.asked.append(instance.dumps(problem))
        return Outcome(Verdict.UNKNOWN, "undecided")


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


def test_what_no_search_has_decided_is_not_searched_for_again() -> None:
    """The skew of a role counts the hosts that its fence leaves, so parts are asked in two ways."""
    asked = request(
        {name: (2, {"VCPU": 3}) for name in ("a", "b", "c")},
        [
            statement("even", "spread", "a", max_skew=1, level="host"),
            statement("here", "fence", "a", domains=["h0", "h1"]),
        ],
    )
    fleet = terrain([Host(f"h{n}", {"VCPU": 9}) for n in range(3)], EMPTY)
    solver = Undecided()
    search = DeletionFilter(build_on_terrain(asked, fleet), Oracle(solver, lambda: 30.0))
    search.assume_infeasible()
    assert not next(search.conflicts()).minimal
    assert len(solver.asked) == len(set(solver.asked)) > 1


def test_classes_of_a_conflict_are_not_searched_for_beyond_the_first_that_is_undecided() -> None:
    asked = request({name: (1, {"VCPU": 3, "MEMORY_MB": 3}) for name in ("a", "b", "c")})
    fleet = terrain([Host(f"h{n}", {"VCPU": 5, "MEMORY_MB": 9}) for n in range(2)], EMPTY)
    built, solver = build_on_terrain(asked, fleet), Undecided()
    oracle = Oracle(solver, lambda: 30.0)
    found = binding_classes(built, Core(elements(built), minimal=False), oracle)
    assert found == dict.fromkeys("abc", frozenset({"VCPU", "MEMORY_MB"}))
    assert (len(solver.asked), oracle.complete) == (1, False)
    assert len(binding_classes(built, Core(elements(built), minimal=False), oracle)) == 3
    assert len(solver.asked) == 2, "an earlier question that was undecided is no reason"
