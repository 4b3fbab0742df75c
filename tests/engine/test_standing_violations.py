"""What standing members break is accepted, and nothing may make it worse."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from moorage.domain.ensembles import PolicyStatement
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.placement import Placement
from moorage.domain.topology import Attachment, Domain, Level, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.cost import excess, satisfies
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.standing_violations import (
    FormerEdges,
    StandingViolation,
    relax_for_standing,
)
from moorage.engine.joint.verify import WrongAnswer, verify
from moorage.policies.primitives import Apart
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import every_placement
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, random_built, request, statement, terrain

RACKS = {"r1": ("h1", "h2"), "r2": ("h3", "h4"), "r3": ("h5", "h6")}
HOSTS = tuple(host for hosts in RACKS.values() for host in hosts)


def built(
    policy: PolicyStatement, stand: str, coming: int, *, restated: tuple[str, ...] = ()
) -> BuiltProblem:
    """Members of role a on these hosts, and so many more to come, on three racks of two hosts."""
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(rack, "rack") for rack in RACKS],
        [Attachment(host, rack) for rack, hosts in RACKS.items() for host in hosts],
    )
    fleet = terrain([Host(host, {"VCPU": 9}) for host in HOSTS], topology)
    fixed = {MemberName("a", i): host for i, host in enumerate(stand.split())}
    asked = request({"a": (len(fixed) + coming, {"VCPU": 1})}, [policy], fixed=fixed)
    return build_on_terrain(replace(asked, restated=frozenset(restated)), fleet)


def allowed(made: BuiltProblem) -> set[str]:
    """Where the members that come may stand, one text for each way, in any order."""
    rows = every_placement(made.problem)
    moving = np.flatnonzero(made.problem.fixed < 0)
    good = rows[satisfies(made.problem, rows)][:, moving]
    return {" ".join(sorted(HOSTS[row] for row in one)) for one in good.tolist()}


@pytest.mark.parametrize(
    ("policy", "stand", "coming", "amount", "ways"),
    [
        # Two on one host already: others not there, and not together.
        (("anti-affinity", {}), "h1 h1 h2", 1, 1, {"h3", "h4", "h5", "h6"}),
        (("anti-affinity", {}), "h1 h1 h1", 0, 2, {""}),
        # In two racks where one was asked for: in one of these.
        (("affinity", {"level": "rack"}), "h1 h3", 1, 1, {"h1", "h2", "h3", "h4"}),
        # All in one rack where two must remain of four: the next in another one.
        (("survive", {"level": "rack", "keep": 2}), "h1 h1 h2", 1, 1, {"h3", "h4", "h5", "h6"}),
        # Who comes mends what their number can: one rack more, but not two at once.
        (("spread", {"level": "rack", "min_domains": 3}), "h1 h2", 1, 1, {"h3", "h4", "h5", "h6"}),
        (("spread", {"level": "rack", "min_domains": 3}), "h1 h1 h2", 0, 2, {""}),
        (("spread", {"level": "rack", "max_skew": 1}), "h1 h1 h1", 1, 2, {"h3", "h4", "h5", "h6"}),
        # Two may stand in each of the others: then the skew is one, and nothing is broken.
        (("fence", {"domains": ["r1"]}), "h1 h3", 1, 1, {"h1", "h2"}),
        (("ban", {"domains": ["r1"]}), "h1 h3", 1, 1, {"h3", "h4", "h5", "h6"}),
    ],
)  # fmt: skip
def test_what_is_broken_already_may_not_get_worse(
    policy: tuple[str, dict[str, Any]], stand: str, coming: int, amount: int, ways: set[str]
) -> None:
    made = built(statement("p", policy[0], "a", **policy[1]), stand, coming)
    assert made.standing["p"].amount == amount
    assert allowed(made) == ways


@pytest.mark.parametrize(
    ("policy", "stand", "coming"),
    [
        # One of three stands: that two racks are used is up to the others.
        (("spread", {"level": "rack", "min_domains": 2}), "h1", 2),
        (("survive", {"level": "rack", "keep": 2}), "h1", 2),
        (("spread", {"level": "rack", "max_skew": 1}), "h1 h1", 4),
        # No three members keep three, wherever they stand.
        (("survive", {"level": "rack", "keep": 3}), "h1 h3", 1),
        (("spread", {"level": "rack", "min_domains": 3}), "h1", 1),
    ],
)
def test_what_is_not_the_fault_of_those_who_stand_is_required(
    policy: tuple[str, dict[str, Any]], stand: str, coming: int
) -> None:
    made = built(statement("p", policy[0], "a", **policy[1]), stand, coming)
    assert not made.standing
    assert "h1 h1" not in allowed(made)


def test_nothing_is_accepted_of_a_policy_that_is_stated_anew() -> None:
    apart = statement("p", "anti-affinity", "a")
    assert allowed(built(apart, "h1 h1", 1)) == {"h2", "h3", "h4", "h5", "h6"}
    assert allowed(built(apart, "h1 h1", 1, restated=("p",))) == set()


def test_a_preferred_policy_costs_what_it_costs() -> None:
    made = built(statement("p", "anti-affinity", "a", weight=3), "h1 h1", 0)
    assert not made.standing
    (status,) = verify(made, [0, 0])
    assert (status.satisfied, status.standing, status.penalty) == (False, 0, 3)


def test_the_status_tells_what_stands_broken() -> None:
    made = built(statement("p", "anti-affinity", "a"), "h1 h1", 1)
    (status,) = verify(made, [0, 0, 3])
    assert (status.satisfied, status.standing) == (False, 1)
    with pytest.raises(WrongAnswer, match="p: host h1 holds 3 of 3 x a, more than 1"):
        verify(made, [0, 0, 0])


def test_members_that_stand_where_no_domain_is_refute_nothing() -> None:
    """Nobody is to be placed, and the level has no domains at all: broken, and not for counting."""
    fleet = terrain(
        [Host("h1", {"VCPU": 9})],
        Topology.build({"location": ("rack",)}, [], []),
    )
    fixed = {MemberName("a", i): "h1" for i in range(2)}
    near = statement("p", "affinity", "a", level="rack")
    made = build_on_terrain(request({"a": (2, {"VCPU": 1})}, [near], fixed=fixed), fleet)
    assert made.standing["p"].amount == 2
    assert not refuted(made.problem)
    assert Portfolio(CpSat()).solve(made.problem, time_limit=SECOND, seed=0).hosts is not None


def test_sides_that_share_a_domain_are_left_alone_there() -> None:
    made = built(statement("p", "anti-affinity", "a", max_per_domain=9), "h1 h1 h2 h3", 2)
    names = made.problem.members
    rack = Level("location", "rack")
    domains = {rack: made.terrain.domains(rack)}
    apart = Apart(policy="q", members=(*names[:1], names[4]), others=names[1:4], level=rack)
    problem = replace(made.problem, primitives=(apart,), domains=domains)
    former = FormerEdges(zipped=False, edges=dict.fromkeys(names, (frozenset(names),)))
    told, broken = relax_for_standing(problem, {"q": former})
    assert broken == {"q": StandingViolation(1, names[:3])}
    rows = every_placement(told)
    rows = rows[satisfies(told, rows)]
    assert len(rows)
    # Of the one that comes to a side: neither in the shared rack, nor where the other side is.
    assert {int(row) for row in rows[:, 4]} == {4, 5}
    assert (excess(problem, apart, rows) == 1).all()


@pytest.mark.parametrize(
    ("others", "coming", "amount", "ways"),
    [
        # In two racks without others: one that comes mends one of them, two mend both.
        ("", {"b": 1}, 1, {"h1", "h2", "h3", "h4"}),
        ("", {"b": 2}, 0, {"h1 h3", "h1 h4", "h2 h3", "h2 h4"}),
        ("h1", {"b": 1}, 0, {"h3", "h4"}),
        # Who joins the tier joins it beside others, where such stand.
        ("h5", {"a": 1}, 2, {"h5", "h6"}),
        ("", {"a": 1}, 2, set()),
    ],
)
def test_others_that_come_mend_as_many_domains_as_they_can(
    others: str, coming: dict[str, int], amount: int, ways: set[str]
) -> None:
    near = statement("p", "proximity", "a", "b", level="rack", between=[["a"], ["b"]])
    stand = {"a": ["h1", "h3"], "b": others.split()}
    fleet = built(near, "", 1).terrain
    asked = request(
        {role: (len(stand[role]) + coming.get(role, 0), {"VCPU": 1}) for role in stand},
        [near],
        fixed={MemberName(role, i): host for role in stand for i, host in enumerate(stand[role])},
    )
    made = build_on_terrain(asked, fleet)
    assert (made.standing["p"].amount if made.standing else 0) == amount
    assert allowed(made) == ways


@pytest.mark.parametrize("chunk", range(4))
def test_a_placement_holds_exactly_if_the_meanings_find_nothing_worse(chunk: int) -> None:
    """Against every placement there is, by the policies' meanings: neither too strict nor too lax.

    What is accepted is what the best of all placements of the others leaves broken, or less.
    """
    seen = 0
    for seed in range(chunk * 250, chunk * 250 + 250):
        made = random_built(seed, hosts=4, members=4, fixed=0.5)
        if not made.standing:
            continue
        rows = every_placement(made.problem)
        if len(rows) > 300:
            continue
        seen += 1
        # Beside members that break it already, what is between roles is a little stricter.
        stricter = any(
            one.parameters.get("between", "members") != "members" for one in made.request.policies
        )
        right = satisfies(made.problem, rows)
        for row, holds_there in zip(rows, right.tolist(), strict=True):
            try:
                verify(made, row)
            except WrongAnswer:
                assert not holds_there, (seed, row)
            else:
                assert holds_there or stricter, (seed, row)
        free = itertools.product(range(len(made.problem.hosts)), repeat=len(made.problem.members))
        for name, broken in made.standing.items():
            amounts = [
                amount(made, name, row)
                for row in free
                if all(f in (-1, r) for f, r in zip(made.problem.fixed, row, strict=True))
            ]
            assert broken.amount <= min(amounts), (seed, name)
            break
    assert seen > 20


def amount(made: BuiltProblem, name: str, row: tuple[int, ...]) -> int:
    placement = Placement(made.policy_view, dict(zip(made.problem.members, row, strict=True)))
    return sum(
        violation.amount
        for rule in made.rules
        if rule.statement.name == name
        for edge in rule.edges
        for violation in rule.policy.violations(edge, placement)
    )
