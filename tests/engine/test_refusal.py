"""Explanations of known cases: story A's to the letter, and what happens when time runs out."""

from dataclasses import replace

import pytest

from moorage.domain.ensembles import Role
from moorage.domain.errors import Busy
from moorage.domain.explain import Element, Explanation, Fact, Stage
from moorage.domain.member_names import MemberName
from moorage.domain.period import Duration
from moorage.domain.placement import Place
from moorage.domain.topology import EMPTY
from moorage.engine.explain.refusal import RefusalExplanation, explain
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Outcome, Problem
from moorage.solver.cpsat import CpSat
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import (
    Host,
    request,
    shop,
    statement,
    story_a,
    terrain,
    three_racks,
)
from moorage.testing.trees import Node, stated


def why(built: BuiltProblem, *, seconds: float = 30.0) -> RefusalExplanation:
    return explain(built, Portfolio(CpSat()), remaining=lambda: seconds)


def grown(*, db: int, keep: int) -> BuiltProblem:
    """The shop after it was placed, asked to grow."""
    first = story_a()
    outcome = Greedy().solve(first.problem, time_limit=5_000_000, seed=0)
    assert outcome.hosts is not None
    pairs = zip(first.problem.members, outcome.hosts.tolist(), strict=True)
    fixed = {member: first.problem.hosts[row] for member, row in pairs}
    fleet = three_racks()
    taken = [Place(h, {h: first.request.role_of(m).resources}) for m, h in fixed.items()]
    asked = replace(shop(fixed=fixed, db=db, keep=keep), restated=frozenset({"db-ha"}))
    return build_on_terrain(asked, fleet.with_places(taken))


def test_story_a_comes_out_as_printed() -> None:
    found = why(grown(db=4, keep=3))
    assert (found.verdict, found.stage) == ("infeasible", Stage.POLICY)
    (conflict,) = found.conflicts
    assert conflict.elements == (Element("policy", "db-ha"),)
    assert conflict.needs == ("4 racks for 4 x db (max 1 per rack)",)
    assert conflict.facts == (Fact("racks usable for m1.xlarge", 3, 4),)
    assert conflict.minimal
    assert [(one.cost, str(one.change)) for one in found.relaxations] == [
        (1, "db-ha keep 3->2"),
        (2, "db count 4->5"),
    ]
    assert found.considered == 9
    assert found.rejected["policy:db-ha"] == 9


def test_a_shortage_is_told_in_resources() -> None:
    hosts = [Host(f"h{i}", {"VCPU": 4}) for i in range(3)]
    found = why(build_on_terrain(request({"a": (4, {"VCPU": 3})}), terrain(hosts, EMPTY)))
    assert found.stage is Stage.STATIC
    assert found.conflicts[0].elements == (Element("resources", "a"),)
    assert found.conflicts[0].needs == ("3 VCPU for each of 4 x a",)
    assert found.conflicts[0].facts == (Fact("places of 3 VCPU on hosts usable for a", 3, 4),)
    assert [str(one.change) for one in found.relaxations] == ["a count 4->3"]


def test_what_hosts_share_is_free_once() -> None:
    nodes = [Node(f"h{i}", f"h{i}", {"CPU": 9}) for i in range(3)]
    pool = Node("pool", None, {"DISK": 5}, lends_to=("h0", "h1", "h2"))
    found = why(stated([*nodes, pool], [(Role("a", {"CPU": 1, "DISK": 2}), 3)]))
    assert found.conflicts[0].facts == (Fact("DISK free on hosts usable for a", 5, 6),)
    assert [str(one.change) for one in found.relaxations] == ["a count 3->2"]


def test_a_shortage_by_load_is_a_matter_of_capacity() -> None:
    hosts = [Host("h1", {"VCPU": 8}, {"VCPU": 6})]
    found = why(build_on_terrain(request({"a": (2, {"VCPU": 2})}), terrain(hosts, EMPTY)))
    assert found.stage is Stage.CAPACITY


def test_load_does_not_hide_that_not_even_an_empty_fleet_would_do() -> None:
    hosts = [Host("h1", {"VCPU": 8}, {"VCPU": 6}), Host("h2", {"VCPU": 8}, {"VCPU": 8})]
    apart = statement("apart", "anti-affinity", "a")
    found = why(build_on_terrain(request({"a": (3, {"VCPU": 2})}, [apart]), terrain(hosts, EMPTY)))
    assert found.stage is Stage.STATIC


def test_a_trait_nobody_has_is_told_as_a_trait() -> None:
    asked = request({"a": (1, {"VCPU": 1})})
    role = Role("a", {"VCPU": 1}, required=(frozenset({"CUSTOM_GPU"}),))
    fleet = terrain([Host("h1", {"VCPU": 8})], EMPTY)
    found = why(build_on_terrain(replace(asked, roles=(role,)), fleet))
    assert found.conflicts[0].elements == (Element("traits", "a"),)
    assert found.conflicts[0].needs == ("hosts with CUSTOM_GPU for 1 x a",)
    assert [str(one.change) for one in found.relaxations] == ["a required ['CUSTOM_GPU']->[]"]


def test_a_policy_and_a_size_can_conflict_where_each_alone_holds() -> None:
    hosts = [Host("h1", {"VCPU": 8}), Host("h2", {"VCPU": 1}), Host("h3", {"VCPU": 1})]
    apart = statement("apart", "anti-affinity", "a")
    found = why(build_on_terrain(request({"a": (2, {"VCPU": 2})}, [apart]), terrain(hosts, EMPTY)))
    assert set(found.conflicts[0].elements) == {
        Element("resources", "a"),
        Element("policy", "apart"),
    }
    assert [str(one.change) for one in found.relaxations] == [
        "a count 2->1",
        "apart max_per_domain 1->2",
    ]


def test_two_independent_conflicts_are_both_named() -> None:
    asked = request(
        {"a": (3, {"VCPU": 1}), "b": (3, {"VCPU": 1})},
        [statement("a-apart", "anti-affinity", "a"), statement("b-apart", "anti-affinity", "b")],
    )
    fleet = terrain([Host("h1", {"VCPU": 8}), Host("h2", {"VCPU": 8})], EMPTY)
    found = why(build_on_terrain(asked, fleet))
    assert {one.elements for one in found.conflicts} == {
        (Element("policy", "a-apart"),),
        (Element("policy", "b-apart"),),
    }
    assert "independent" in found.note


def test_a_fleet_closed_to_the_request_is_told_as_closed() -> None:
    fleet = terrain([Host("h1", {"VCPU": 8})], EMPTY)
    found = why(
        build_on_terrain(
            request({"a": (1, {"VCPU": 1})}), fleet, closed={"exclusive": frozenset({"h1"})}
        )
    )
    (conflict,) = found.conflicts
    assert conflict.elements == (
        Element("closed", "hosts that other ensembles keep to themselves"),
    )
    assert found.note == "no single small change makes it fit"
    assert found.rejected == {"exclusive": 1}


def test_hosts_that_others_keep_are_told_beside_the_size_that_does_not_fit_elsewhere() -> None:
    big, small = Host("h1", {"MEMORY_MB": 64}), Host("h2", {"MEMORY_MB": 2})
    kept = {"exclusive/a": frozenset({"h1"}), "disabled": frozenset[str]()}
    asked = request({"a": (1, {"MEMORY_MB": 8}), "b": (1, {"MEMORY_MB": 1})})
    found = why(build_on_terrain(asked, terrain([big, small], EMPTY), closed=kept))
    (conflict,) = found.conflicts
    assert conflict.elements == (
        Element("closed", "hosts that other ensembles keep to themselves"),
        Element("resources", "a"),
    )
    assert conflict.needs == ("", "8 MEMORY_MB for each of 1 x a")
    assert conflict.minimal


def test_closed_hosts_are_not_told_where_they_would_not_help() -> None:
    hosts = [Host("h1", {"MEMORY_MB": 4}), Host("h2", {"MEMORY_MB": 2})]
    kept = {"exclusive": frozenset({"h1"})}
    built = build_on_terrain(
        request({"a": (1, {"MEMORY_MB": 8})}), terrain(hosts, EMPTY), closed=kept
    )
    assert why(built).conflicts[0].elements == (Element("resources", "a"),)


def test_a_new_policy_that_fixed_members_break_is_named_alone() -> None:
    stands = {MemberName("a", 0): "h1", MemberName("a", 1): "h1"}
    apart = statement("apart", "anti-affinity", "a")
    fleet = terrain([Host("h1", {"VCPU": 8}), Host("h2", {"VCPU": 8})], EMPTY)
    asked = request({"a": (3, {"VCPU": 1})}, [apart], fixed=stands)
    found = why(build_on_terrain(replace(asked, restated=frozenset({"apart"})), fleet))
    assert found.conflicts[0].elements == (Element("policy", "apart"),)
    assert [str(one.change) for one in found.relaxations] == ["apart max_per_domain 1->2"]


def test_who_breaks_a_policy_by_standing_is_told() -> None:
    stands = {MemberName("a", 0): "h1", MemberName("a", 1): "h1"}
    apart = statement("apart", "anti-affinity", "a")
    fleet = terrain([Host("h1", {"VCPU": 8}), Host("h2", {"VCPU": 8})], EMPTY)
    found = why(build_on_terrain(request({"a": (4, {"VCPU": 1})}, [apart], fixed=stands), fleet))
    (conflict,) = found.conflicts
    assert conflict.elements == (Element("policy", "apart"),)
    (need,) = conflict.needs
    told = "2 hosts for 2 x a (max 1 per host) elsewhere; a[0] and a[1] break it where they stand"
    assert need == f"{told}, and nothing may make that worse"
    assert conflict.facts == (Fact("hosts usable for a", 1, 2),)


@pytest.mark.parametrize(("hosts", "fits"), [(2, False), (3, True)])
def test_what_is_needed_beside_those_who_stand_together_is_enough(
    hosts: int, *, fits: bool
) -> None:
    """Three of four members on two hosts: one more host will do, and no host is counted twice."""
    stands = {MemberName("a", i): host for i, host in enumerate(("h0", "h0", "h1"))}
    fleet = terrain([Host(f"h{i}", {"VCPU": 8}) for i in range(hosts)], EMPTY)
    apart = statement("apart", "anti-affinity", "a")
    built = build_on_terrain(request({"a": (4, {"VCPU": 1})}, [apart], fixed=stands), fleet)
    assert (
        Portfolio(CpSat()).solve(built.problem, time_limit=10**6, seed=0).hosts is not None
    ) is fits
    if fits:
        return
    (conflict,) = why(built).conflicts
    assert conflict.needs[0].startswith("2 hosts for 2 x a (max 1 per host) elsewhere; ")
    assert conflict.facts == (Fact("hosts usable for a", 1, 2),)


def test_hosts_that_several_names_of_a_ban_leave_are_counted_once() -> None:
    fleet = terrain(
        [Host(f"h{i}", {"VCPU": 1}, traits=frozenset({f"CUSTOM_{i}"})) for i in range(5)], EMPTY
    )
    old = statement("old", "ban", "a", domains=["h0"], traits=["CUSTOM_1", "CUSTOM_2"])
    (conflict,) = why(build_on_terrain(request({"a": (3, {"VCPU": 1})}, [old]), fleet)).conflicts
    assert conflict.facts == (Fact("VCPU free on hosts usable for a", 2, 3),)


@pytest.mark.parametrize(
    ("lose", "keep", "needs"),
    [
        (1, 3, "3 hosts for 5 x a (max 2 per host)"),
        # Two on one host and one on each other do it: no host is held to one.
        (2, 2, "4 hosts for 5 x a (max 3 in any 2 hosts)"),
    ],
)
def test_what_survival_needs_is_no_more_than_it_asks(lose: int, keep: int, needs: str) -> None:
    survive = statement("s", "survive", "a", lose=lose, keep=keep)
    fleet = terrain([Host(f"h{i}", {"VCPU": 9}) for i in range(lose)], EMPTY)
    (conflict,) = why(
        build_on_terrain(request({"a": (5, {"VCPU": 1})}, [survive]), fleet)
    ).conflicts
    assert conflict.needs == (needs,)
    enough = terrain([Host(f"h{i}", {"VCPU": 9}) for i in range(int(needs[0]))], EMPTY)
    built = build_on_terrain(request({"a": (5, {"VCPU": 1})}, [survive]), enough)
    assert Portfolio(CpSat()).solve(built.problem, time_limit=10**6, seed=0).hosts is not None


def test_only_the_classes_that_bind_are_told() -> None:
    fleet = terrain([Host("h1", {"VCPU": 8, "MEMORY_MB": 99, "DISK_GB": 99})], EMPTY)
    size = {"VCPU": 5, "MEMORY_MB": 1, "DISK_GB": 1}
    (conflict,) = why(build_on_terrain(request({"a": (2, size)}), fleet)).conflicts
    assert conflict.needs == ("5 VCPU for each of 2 x a",)
    assert conflict.facts == (Fact("VCPU free on hosts usable for a", 8, 10),)


HARD = [Host("h1", {"VCPU": 11}), Host("h2", {"VCPU": 11})]
"""Members of 6, 4 and 3 VCPU fit by their sum, and by their number, and not by their shapes."""


def hard() -> BuiltProblem:
    sizes = {"a": (2, {"VCPU": 6}), "b": (1, {"VCPU": 4}), "c": (2, {"VCPU": 3})}
    return build_on_terrain(request(sizes), terrain(HARD, EMPTY))


def test_without_time_nothing_is_claimed_that_counting_did_not_prove() -> None:
    found = why(hard(), seconds=0.0)
    assert (found.verdict, found.conflicts, found.relaxations) == ("undecided", (), ())


class Full:
    """A solver whose queue is full."""

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        raise Busy("queue full")


def test_a_busy_solver_leaves_open_what_it_was_asked() -> None:
    found = explain(hard(), Full(), remaining=lambda: 10.0)
    assert found.verdict == "undecided"


def test_shapes_that_do_not_fit_are_proved_by_the_solver() -> None:
    found = why(hard())
    assert found.verdict == "infeasible"
    (conflict,) = found.conflicts
    assert {one.kind for one in conflict.elements} == {"resources"}
    assert conflict.minimal


@pytest.mark.parametrize("seed", range(3))
def test_the_same_question_gets_the_same_answer(seed: int) -> None:
    built = grown(db=4, keep=3)
    solver = Portfolio(CpSat())
    first, second = (explain(built, solver, remaining=lambda: 30.0, seed=seed) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("stage", list(Stage))
def test_a_refusal_without_a_conflict_is_told_without_the_name_of_a_stage(stage: Stage) -> None:
    told = Explanation("e", "infeasible", stage, 0, 1)
    assert " " in told.shortly
    assert not told.shortly.startswith(str(stage))
