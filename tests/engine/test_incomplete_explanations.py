"""Explanations that are cut short: they say so, and claim nothing that was not shown."""

import os
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
from tests.contract.solver_agreement.test_conflicts import applied, feasible

from moorage.domain.errors import Busy
from moorage.domain.explain import Stage
from moorage.domain.member_names import MemberName
from moorage.domain.period import Duration
from moorage.domain.topology import EMPTY, Attachment, Domain, Topology
from moorage.engine.explain.refusal import NO_SMALL_CHANGE, RefusalExplanation, explain
from moorage.engine.explain.relaxation_candidates import ChangeTerms
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Outcome, Problem
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, random_built, request, statement, terrain


@dataclass
class Looks:
    """A budget of time that is over after so many looks at it."""

    left: int
    seen: int = field(default=0)

    def __call__(self) -> float:
        self.seen += 1
        return 30.0 if self.seen <= self.left else 0.0


def cut(built: BuiltProblem, looks: int) -> tuple[RefusalExplanation, Looks]:
    budget = Looks(looks)
    return explain(built, Portfolio(CpSat()), remaining=budget, proved=True), budget


@pytest.mark.parametrize("seed", [seed for seed in range(60) if seed % 3])
def test_wherever_it_is_cut_it_says_so_and_claims_no_more_than_was_shown(seed: int) -> None:
    built = random_built(seed)
    if feasible(built.problem):
        return
    whole, budget = cut(built, 10**6)
    assert whole.complete
    for looks in {*range(0, budget.seen, 7), *range(6), budget.seen}:
        found, _ = cut(built, looks)
        assert found.verdict == "infeasible"
        assert found.stage in {whole.stage, Stage.UNKNOWN}
        assert {one.elements for one in found.conflicts if one.minimal} <= {
            one.elements for one in whole.conflicts if one.minimal
        }
        for one in found.relaxations:
            changed = build_on_terrain(applied(built.request, one.change), built.terrain)
            assert feasible(changed.problem), (seed, looks, one)
        if not found.complete:
            assert found.note, (seed, looks)
        if NO_SMALL_CHANGE in found.note:
            assert whole.relaxations == (), (seed, looks)
        if found.complete:
            assert found == whole


class Full:
    """A solver whose queue is full."""

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        raise Busy("queue full")


def test_what_counting_proves_is_the_conflict_when_nothing_else_is_in_time() -> None:
    fleet = terrain([Host(f"h{n}", {"VCPU": 9}, {"VCPU": 5}) for n in range(3)], EMPTY)
    many = {f"other{n}": (1, {"VCPU": 1}) for n in range(3)}
    asked = request({"big": (2, {"VCPU": 5}), **many}, [statement("apart", "anti-affinity", "big")])
    built = build_on_terrain(asked, fleet)
    found = explain(built, Full(), remaining=lambda: 30.0, proved=True)
    assert (found.verdict, found.stage, found.complete) == ("infeasible", Stage.UNKNOWN, False)
    (conflict,) = found.conflicts
    assert [str(one) for one in conflict.elements] == ["resources big"]
    assert not conflict.minimal
    assert "time ran out" in found.note


def even(hosts: int, count: int) -> BuiltProblem:
    """Even over hosts, and over racks of one host each: both at once need a multiple."""
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(f"r{n}", "rack") for n in range(hosts)],
        [Attachment(f"h{n}", f"r{n}") for n in range(hosts)],
    )
    fleet = terrain([Host(f"h{n}", {"VCPU": 9}) for n in range(hosts)], topology)
    policies = [
        statement(f"even-{level}s", "spread", "a", level=level, max_skew=0)
        for level in ("host", "rack")
    ]
    return build_on_terrain(request({"a": (count, {"VCPU": 1})}, policies), fleet)


def test_a_count_between_the_steps_is_found_where_no_other_change_helps() -> None:
    found = explain(even(7, 12), Portfolio(CpSat()), remaining=lambda: 30.0)
    assert [str(one.change) for one in found.relaxations] == ["a count 12->7"]
    assert found.complete
    assert found.note == ""


def test_values_that_were_not_tried_are_named_and_no_change_is_ruled_out() -> None:
    # 101 members and more hosts than changes are tried: 100 of them would do.
    found = explain(even(100, 190), Portfolio(CpSat()), remaining=lambda: 30.0)
    assert found.relaxations == ()
    assert NO_SMALL_CHANGE not in found.note
    assert "not every value was tried of a count" in found.note
    assert not found.complete


def test_the_present_count_is_no_answer_and_hides_no_other_change() -> None:
    fleet = terrain([Host("h0", {"VCPU": 9}, {"VCPU": 9}), Host("h1", {"VCPU": 9})], EMPTY)
    stands = {MemberName("a", index): "h0" for index in range(3)}
    together = statement("together", "affinity", "a")
    built = build_on_terrain(request({"a": (4, {"VCPU": 3})}, [together], fixed=stands), fleet)

    def changes(terms: ChangeTerms) -> list[str]:
        found = explain(built, Portfolio(CpSat()), remaining=lambda: 30.0, terms=terms)
        return [str(one.change) for one in found.relaxations]

    assert changes(ChangeTerms()) == ["a count 4->3"]
    resized = ChangeTerms(present={"a": 3})
    assert changes(resized) == ["together strength required->preferred"]


_PRINTED = """
from tests.engine.test_incomplete_explanations import explained
print(explained())
"""


def explained() -> str:
    """The explanations of some problems, as text."""
    found = []
    for seed in range(25):
        built = random_built(seed)
        why = explain(built, Portfolio(CpSat()), remaining=lambda: 60.0, seed=seed)
        found.append((why.verdict, why.stage, why.conflicts, why.relaxations, why.note))
    return "\n".join(map(repr, found))


def test_the_same_request_is_explained_alike_in_every_process() -> None:
    first, second = (
        subprocess.run(
            [sys.executable, "-c", _PRINTED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("1", "2")
    )
    assert first
    assert first == second
