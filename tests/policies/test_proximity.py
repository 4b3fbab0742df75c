"""Proximity of tiers: every domain of the first side has some member of each other one."""

from typing import Any

import pytest

from moorage.domain.errors import Contradiction, InvalidDescription
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.verify import verify
from moorage.policies.contradiction import refuse_contradictions
from moorage.policies.proximity import Proximity
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, request, statement, terrain

TIERS = {"between": [["app"], ["cache"]]}
LIMIT = 5 * SECOND


def built(
    *policies: tuple[str, str, dict[str, Any]],
    app: tuple[int, int] = (6, 1),
    cache: tuple[int, int] = (3, 1),
    free: tuple[int, ...] = (8,) * 12,
    hosts: int = 2,
    fixed: dict[MemberName, str] | None = None,
    weight: int | None = None,
) -> BuiltProblem:
    """`app` and `cache` (count, VCPU each) on racks of two hosts, three racks in a zone."""
    racks = len(free) // hosts
    topology = Topology.build(
        {"location": ("zone", "rack")},
        [
            *(Domain(f"z{i}", "zone") for i in range(-(-racks // 3))),
            *(Domain(f"r{i}", "rack", parent=f"z{i // 3}") for i in range(racks)),
        ],
        [Attachment(f"h{i}", f"r{i // hosts}") for i in range(len(free))],
    )
    fleet = terrain(
        [Host(f"h{i}", {"VCPU": 8}, {"VCPU": 8 - n}) for i, n in enumerate(free)], topology
    )
    stated = [
        statement(name, type_, *members.split(), weight=weight if name == "a" else None, **given)
        for name, (type_, members, given) in zip("abcdef", policies, strict=False)
    ]
    roles = {name: (n, {"VCPU": each}) for name, (n, each) in (("app", app), ("cache", cache))}
    return build_on_terrain(request(roles, stated, fixed=fixed), fleet)


Policy = tuple[str, str, dict[str, Any]]
NEAR: Policy = ("proximity", "app cache", {**TIERS, "level": "rack"})
SPREAD = ("spread", "app", {"level": "rack", "min_domains": 3})
WIDE = ("spread", "app", {"level": "rack", "min_domains": 2})
FIRST = {MemberName("app", 0): "h0"}


def racks(made: BuiltProblem, rows: Any, hosts: int = 2) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for name, row in zip(made.problem.members, rows, strict=True):
        found.setdefault(name.role, set()).add(int(row) // hosts)
    return found


@pytest.mark.parametrize(("app", "cache"), [(1, 1), (1, 4), (4, 1)])
def test_a_spread_tier_is_placed_without_an_exact_solver(app: int, cache: int) -> None:
    """Whichever of the two takes more, and is placed first."""
    made = built(NEAR, SPREAD, app=(6, app), cache=(3, cache))
    found = Greedy().solve(made.problem, time_limit=LIMIT, seed=0)
    assert found.hosts is not None
    verify(made, found.hosts)
    used = racks(made, found.hosts)
    assert len(used["app"]) == 3
    assert used["app"] == used["cache"]


def test_others_may_be_where_nobody_needs_them() -> None:
    made = built(NEAR, ("spread", "cache", {"level": "rack", "min_domains": 3}), app=(1, 1))
    found = Portfolio(CpSat()).solve(made.problem, time_limit=LIMIT, seed=0)
    assert found.hosts is not None
    verify(made, found.hosts)


@pytest.mark.parametrize(
    ("policies", "given"),
    [
        # One cache is near members in one rack.
        ((NEAR, WIDE), {"app": (3, 1), "cache": (1, 1), "free": (8, 8, 8, 8)}),
        # Three apps have room in two racks, of which one has none for a cache.
        ((NEAR,), {"app": (3, 4), "cache": (1, 4), "free": (4, 4, 4, 3)}),
        ((NEAR,), {"app": (1, 1), "cache": (2, 4), "free": (3, 3, 4, 4), "fixed": FIRST}),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(policies: tuple[Any, ...], given: dict[str, Any]) -> None:
    made = built(*policies, **given)
    for solver in (Exhaustive(), Portfolio(CpSat())):
        found = solver.solve(made.problem, time_limit=LIMIT, seed=0)
        assert found.verdict is Verdict.INFEASIBLE
    assert refuted(made.problem)


def test_a_refusal_says_why_and_what_helps() -> None:
    """No rack has room for both, and each zone has."""
    made = built(NEAR, app=(1, 4), cache=(1, 4), free=(4, 3, 4, 3, 0, 0))
    refusal = explain(made, Portfolio(CpSat()), remaining=lambda: 30.0)
    [conflict] = refusal.conflicts
    assert "1 x cache in the rack of 1 x app" in conflict.needs
    assert "a level rack->zone" in [str(one.change) for one in refusal.relaxations]


def test_the_last_resort_is_to_prefer_it() -> None:
    made = built(NEAR, app=(1, 4), cache=(1, 4), free=(4, 3, 0, 0, 0, 0, 4, 3))
    refusal = explain(made, Portfolio(CpSat()), remaining=lambda: 30.0)
    assert [str(one.change) for one in refusal.relaxations] == ["a strength required->preferred"]


@pytest.mark.parametrize(("caches", "penalty"), [(1, 2), (2, 1), (3, 0)])
def test_preferred_it_costs_its_weight_for_every_domain_without(caches: int, penalty: int) -> None:
    made = built(NEAR, SPREAD, cache=(caches, 1), weight=5)
    for solver in (Greedy(), Portfolio(CpSat())):
        found = solver.solve(made.problem, time_limit=LIMIT, seed=0)
        assert found.hosts is not None
        status, _ = verify(made, found.hosts)
        assert status.penalty == 5 * penalty


def test_tiers_that_need_more_others_than_there_are_contradict_each_other() -> None:
    asked = request({"app": (3, {"VCPU": 1}), "cache": (2, {"VCPU": 1})})
    stated = [
        statement(name, type_, *members.split(), **given)
        for name, (type_, members, given) in (("near", NEAR), ("wide", SPREAD))
    ]
    with pytest.raises(
        Contradiction, match="one of 2 x cache in every rack that has any of 3 x app"
    ) as refused:
        refuse_contradictions(asked.roles, asked.members, stated)
    assert set(refused.value.policies) == {"near", "wide"}


def test_too_few_others_are_seen_without_a_search() -> None:
    many = built(NEAR, SPREAD, app=(150, 1), cache=(2, 1))
    asked = many.request
    with pytest.raises(Contradiction):
        refuse_contradictions(asked.roles, asked.members, asked.policies)
    assert refuted(many.problem)


def test_no_others_are_near_nobody() -> None:
    asked = request({"app": (1, {"VCPU": 1}), "cache": (0, {"VCPU": 1})})
    near = statement("near", NEAR[0], *NEAR[1].split(), **NEAR[2])
    with pytest.raises(Contradiction, match="one of 0 x cache in the rack of 1 x app"):
        refuse_contradictions(asked.roles, asked.members, [near])


@pytest.mark.parametrize(
    ("sides", "path", "text"),
    [
        ("roles", "between", "must be one of members, or a list of sides, not"),
        ([["ensemble:x"], ["app"]], "between[0]", "the first side names roles"),
        ([["app"], ["cache", "ensemble:x"]], "between[1]", "or else other ensembles"),
        ([["app"], ["app"]], "between[1]", "app is on two sides"),
        ([["app"], ["cache[]"]], "between[1]", "not a member"),
    ],
)
def test_sides_that_are_none_are_refused(sides: object, path: str, text: str) -> None:
    with pytest.raises(InvalidDescription, match=text) as refused:
        Proximity.parse({"level": "rack", "between": sides}, path="p")
    assert refused.value.path in {f"p.{path}", "member"}
