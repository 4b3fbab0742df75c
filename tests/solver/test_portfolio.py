"""The portfolio: which strategy answers, determinism, honesty about proofs."""

import random
import time
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from moorage.domain.decisions import SolveEnd
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND, Duration
from moorage.domain.requests import Objective
from moorage.domain.topology import EMPTY, HOST, Attachment, Domain, Level, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.cost import cost, satisfies
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.engine.joint.problem_index import ProblemIndex
from moorage.engine.joint.verify import verify
from moorage.http.process_queue import NoAnswer
from moorage.policies.primitives import Apart
from moorage.solver import cpsat
from moorage.solver.cpsat import CpSat
from moorage.solver.cpsat_model import Model, model
from moorage.solver.exhaustive import Exhaustive, TooLarge
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, random_built, request, statement, story_a, terrain

LIMIT = 20 * SECOND


@dataclass
class Recorder:
    """A real solver that remembers what it was asked."""

    inner: CpSat = field(default_factory=CpSat)
    asked: list[Problem] = field(default_factory=list)
    limits: list[Duration] = field(default_factory=list)

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.asked.append(problem)
        self.limits.append(time_limit)
        return self.inner.solve(problem, time_limit=time_limit, seed=seed)


class Full:
    """A pool whose queue is full."""

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        raise Busy("the queue is full")


def packed(objective: Objective = Objective.PACK) -> BuiltProblem:
    """Sizes that greedy packing gets wrong: 6, 5, 5, 4 into hosts of 10."""
    sizes = {"a": (1, {"VCPU": 6}), "b": (2, {"VCPU": 5}), "c": (1, {"VCPU": 4})}
    hosts = [Host(f"h{i}", {"VCPU": 10}) for i in range(4)]
    return build_on_terrain(request(sizes, objective=objective), terrain(hosts, EMPTY))


def misshapen() -> BuiltProblem:
    """5, 5 and 3 into two hosts of 7: enough room in sum, and for each role alone."""
    hosts = [Host(f"h{i}", {"VCPU": 7}) for i in range(2)]
    asked = request({"a": (2, {"VCPU": 5}), "b": (1, {"VCPU": 3})})
    return build_on_terrain(asked, terrain(hosts, EMPTY))


def test_story_a_needs_no_exact_solver() -> None:
    recorder = Recorder()
    built = story_a()
    found = Portfolio(recorder).solve(built.problem, time_limit=LIMIT, seed=0)
    assert (found.solver, found.value, found.proven) == ("greedy", 0, True)
    assert not recorder.asked


def test_counting_refutes_before_the_exact_solver_is_asked() -> None:
    recorder = Recorder()
    found = Portfolio(recorder).solve(story_a(db=4, keep=3).problem, time_limit=LIMIT, seed=0)
    assert (found.verdict, found.solver) == (Verdict.INFEASIBLE, "counting")
    assert found.proven
    assert not recorder.asked


def test_the_exact_solver_proves_what_counting_cannot() -> None:
    built = misshapen()
    recorder = Recorder()
    assert Greedy().solve(built.problem, time_limit=LIMIT, seed=0).verdict is Verdict.UNKNOWN
    found = Portfolio(recorder).solve(built.problem, time_limit=LIMIT, seed=0)
    assert found.verdict is Verdict.INFEASIBLE


def test_a_packing_is_proved_best() -> None:
    found = Portfolio(CpSat()).solve(packed().problem, time_limit=LIMIT, seed=0)
    assert (found.value, found.bound) == (2, 2)


def improvable() -> Problem:
    """A valid answer is found at once, but counting has no bound that proves it best."""
    soft = [statement("soft", "affinity", "*", weight=3)]
    sizes = {"a": (4, {"VCPU": 5})}
    hosts = [Host(f"h{i}", {"VCPU": 10}) for i in range(4)]
    return build_on_terrain(request(sizes, soft), terrain(hosts, EMPTY)).problem


def test_a_full_pool_leaves_the_greedy_answer_with_its_honest_bound() -> None:
    problem = improvable()
    found = Portfolio(Full()).solve(problem, time_limit=LIMIT, seed=0)
    assert found.verdict is Verdict.FEASIBLE
    assert not found.proven
    assert found.ended is SolveEnd.BUSY
    best = Portfolio(CpSat()).solve(problem, time_limit=LIMIT, seed=0)
    assert best.proven
    assert best.ended is SolveEnd.PROVED
    assert found.bound <= best.value <= found.value


def test_a_valid_answer_is_improved_for_a_part_of_the_time() -> None:
    recorder = Recorder()
    Portfolio(recorder).solve(improvable(), time_limit=LIMIT, seed=0)
    Portfolio(recorder).solve(misshapen().problem, time_limit=LIMIT, seed=0)
    improving, deciding = recorder.limits
    assert improving == LIMIT // 5
    assert LIMIT // 2 < deciding <= LIMIT


def test_a_full_pool_without_any_answer_is_busy() -> None:
    problem = misshapen().problem
    with pytest.raises(Busy):
        Portfolio(Full()).solve(problem, time_limit=LIMIT, seed=0)


class Lost:
    """A pool whose process ended over the problem."""

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        raise NoAnswer("the solver process ended before its answer")


def test_what_a_process_gives_no_answer_to_is_unknown() -> None:
    found = Portfolio(Lost()).solve(misshapen().problem, time_limit=LIMIT, seed=0)
    assert (found.verdict, found.hosts, found.ended) == (Verdict.UNKNOWN, None, SolveEnd.BUSY)


@pytest.mark.parametrize("solver", [Greedy(), CpSat(), Portfolio(CpSat())])
def test_the_same_seed_gives_the_same_answer(
    solver: Greedy | CpSat | Portfolio,
) -> None:
    for number in range(40):
        problem = random_built(number, hosts=8, members=9).problem
        first, second = (solver.solve(problem, time_limit=LIMIT, seed=7) for _ in range(2))
        assert (first.verdict, first.value, first.bound) == (
            second.verdict, second.value, second.bound,
        )  # fmt: skip
        if first.hosts is not None:
            assert second.hosts is not None
            assert first.hosts.tolist() == second.hosts.tolist()


def test_a_reduced_fleet_claims_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for a few candidate hosts only, answers stay valid and bounds stay true."""
    monkeypatch.setattr(cpsat, "CELLS", 12)
    monkeypatch.setattr(cpsat, "MOST_CELLS", 12)
    for seed in range(200):
        built = random_built(seed, hosts=6)
        truth = Exhaustive().solve(built.problem, time_limit=LIMIT, seed=0)
        found = CpSat().solve(built.problem, time_limit=LIMIT, seed=0)
        if found.verdict is Verdict.FEASIBLE:
            assert found.hosts is not None
            verify(built, found.hosts)
            assert found.bound <= truth.value <= found.value, seed
        elif found.verdict is Verdict.INFEASIBLE:
            assert truth.verdict is Verdict.INFEASIBLE, seed


def test_a_short_time_limit_makes_a_small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def measured(
        numbers: ProblemIndex, rows: NDArray[np.int64], of_class: NDArray[np.int64]
    ) -> Model:
        sizes.append(len(rows) * len(numbers.interchangeable))
        return model(numbers, rows, of_class)

    monkeypatch.setattr(cpsat, "model", measured)
    monkeypatch.setattr(cpsat, "CELLS_PER_SECOND", 4)
    hosts = [Host(f"h{i}", {"VCPU": 7 + i}) for i in range(60)]
    asked = request({"a": (2, {"VCPU": 50}), "b": (30, {"VCPU": 60})})
    problem = build_on_terrain(asked, terrain(hosts, EMPTY)).problem
    for seconds in (1, 10):
        CpSat(Greedy(attempts=0)).solve(problem, time_limit=seconds * SECOND, seed=0)
    assert sizes[0] <= 4 < sizes[1] <= 40


def test_nothing_is_solved_when_stating_the_model_took_all_the_time() -> None:
    started = time.monotonic()
    found = CpSat().solve(misshapen().problem, time_limit=1, seed=0)
    assert found.verdict is Verdict.UNKNOWN
    assert time.monotonic() - started < 10


def test_primitives_no_policy_posts_are_solved_as_well() -> None:
    """`Apart` is in the closed set for plug-ins."""
    for seed in range(150):
        built = random_built(seed, policies=2)
        dice = random.Random(seed)
        members = list(built.problem.members)
        dice.shuffle(members)
        cut = dice.randint(0, len(members))
        level = dice.choice((Level("location", HOST), Level("location", "rack")))
        apart = Apart(
            policy="x",
            members=tuple(members[:cut]),
            others=tuple(members[cut:]),
            weight=dice.choice((None, 2)),
            level=level,
        )
        problem = replace(
            built.problem,
            primitives=(*built.problem.primitives, apart),
            domains={**built.problem.domains, level: built.terrain.domains(level)},
        )
        truth = Exhaustive().solve(problem, time_limit=LIMIT, seed=0)
        found = Portfolio(CpSat()).solve(problem, time_limit=LIMIT, seed=0)
        assert found.verdict is truth.verdict, seed
        if found.hosts is not None:
            assert satisfies(problem, found.hosts[None, :])[0], seed
            assert cost(problem, found.hosts[None, :])[0] == found.value == truth.value, seed


def test_nobody_to_place_is_an_answer() -> None:
    problem = build_on_terrain(request({}), terrain([Host("h1", {"VCPU": 1})], EMPTY)).problem
    for solver in (Greedy(), CpSat(), Portfolio(CpSat()), Exhaustive()):
        found = solver.solve(problem, time_limit=LIMIT, seed=0)
        assert (found.verdict, found.value) == (Verdict.FEASIBLE, 0)


def test_a_fleet_without_hosts_is_refuted() -> None:
    nowhere = terrain([], EMPTY, classes=("VCPU",))
    problem = build_on_terrain(request({"a": (1, {"VCPU": 1})}), nowhere).problem
    for solver in (CpSat(), Portfolio(CpSat()), Exhaustive()):
        assert solver.solve(problem, time_limit=LIMIT, seed=0).verdict is Verdict.INFEASIBLE


def test_an_overage_elsewhere_does_not_keep_members_away() -> None:
    """A host over capacity in a class nobody asks for takes members all the same."""
    host = Host("h1", {"MEMORY_MB": 4, "VCPU": 8}, {"MEMORY_MB": 9})
    built = build_on_terrain(
        request({"a": (2, {"VCPU": 1}), "b": (1, {"MEMORY_MB": 1})}), terrain([host], EMPTY)
    )
    without = build_on_terrain(request({"a": (2, {"VCPU": 1})}), built.terrain)
    assert Portfolio(CpSat()).solve(built.problem, time_limit=LIMIT, seed=0).hosts is None
    found = Portfolio(CpSat()).solve(without.problem, time_limit=LIMIT, seed=0)
    assert found.hosts is not None
    assert verify(without, found.hosts) == ()


def test_the_oracle_refuses_what_would_take_long() -> None:
    hosts = [Host(f"h{i}", {"VCPU": 10}) for i in range(40)]
    built = build_on_terrain(request({"a": (6, {"VCPU": 1})}), terrain(hosts, EMPTY))
    with pytest.raises(TooLarge):
        Exhaustive().solve(built.problem, time_limit=LIMIT, seed=0)


def test_a_short_limit_still_ends() -> None:
    problem = replace(packed(Objective.BALANCE).problem)
    found = Portfolio(CpSat()).solve(problem, time_limit=1, seed=0)
    assert found.verdict is Verdict.FEASIBLE
    assert np.all(np.asarray(found.hosts) >= 0)


def sides(count: int, each: int) -> BuiltProblem:
    """So many roles, each in one rack and no two in the same, and twice as many racks."""
    racks = 2 * count
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(f"r{i}", "rack") for i in range(racks)],
        [Attachment(f"h{i}", f"r{i}") for i in range(racks)],
    )
    roles = {f"s{i}": (each, {"VCPU": 1}) for i in range(count)}
    apart = statement("apart", "separation", *roles, level="rack", between="roles")
    near = [statement(f"near-{role}", "affinity", role, level="rack") for role in roles]
    hosts = [Host(f"h{i}", {"VCPU": each + i % 3}) for i in range(racks)]
    stated = request(roles, [apart, *near], objective=Objective.SPREAD)
    return build_on_terrain(stated, terrain(hosts, topology))


def test_a_placement_between_very_many_sides_is_not_stated_again_to_be_improved() -> None:
    built, recorder = sides(70, 9), Recorder()
    found = Portfolio(recorder).solve(built.problem, time_limit=2 * SECOND, seed=0)
    assert found.hosts is not None
    verify(built, found.hosts)
    assert recorder.asked == []
    assert not found.proven


def test_the_exact_solver_states_no_more_than_its_time_is_for() -> None:
    built = sides(40, 2)
    found = CpSat().solve(built.problem, time_limit=LIMIT // 200, seed=0)
    assert found.solver == "greedy"
    assert found.hosts is not None
