"""Policies that contradict each other are refused without any fleet, and named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import PolicyStatement, Selector
from moorage.domain.errors import Contradiction
from moorage.domain.period import SECOND
from moorage.domain.topology import Level
from moorage.engine.joint.problem import Verdict
from moorage.policies.contradiction import refuse_contradictions as check
from moorage.policies.hypothetical_fleet import HypotheticalFleet
from moorage.solver.exhaustive import Exhaustive
from moorage.testing.problems import random_built, request, shop, statement

ONE = {"VCPU": 1}


def refused(*policies: PolicyStatement, a: int = 3, b: int = 3) -> tuple[str, ...]:
    """The policies a contradiction names, or nothing."""
    asked = request({"a": (a, ONE), "b": (b, ONE)}, policies)
    try:
        check(asked.roles, asked.members, asked.policies)
    except Contradiction as contradiction:
        return contradiction.policies
    return ()


def on_a(name: str, type_: str, parameters: dict[str, object]) -> PolicyStatement:
    return PolicyStatement(name, type_, (Selector(role="a"),), parameters=parameters)


def test_the_shop_contradicts_nothing() -> None:
    asked = shop()
    check(asked.roles, asked.members, asked.policies)


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (("affinity", {}), ("anti-affinity", {}), ("one", "two")),
        (("affinity", {}), ("anti-affinity", {"level": "rack"}), ("one", "two")),
        (("affinity", {"level": "rack"}), ("anti-affinity", {}), ()),
        (("affinity", {"level": "rack"}), ("anti-affinity", {"level": "zone"}), ("one", "two")),
        (("affinity", {"level": "zone"}), ("anti-affinity", {"level": "rack"}), ()),
        (("affinity", {}), ("anti-affinity", {"max_per_domain": 3}), ()),
        (("affinity", {}), ("anti-affinity", {"max_per_domain": 2}), ("one", "two")),
        (
            ("affinity", {"level": "rack"}),
            ("survive", {"level": "rack", "keep": 1}),
            ("one", "two"),
        ),
        (("affinity", {"level": "rack"}), ("survive", {"level": "host", "keep": 1}), ()),
        (("proximity", {"max_distance": 0}), ("separation", {"min_distance": 2}), ("one", "two")),
        (("proximity", {"max_distance": 1}), ("separation", {"min_distance": 1}), ()),
        (
            ("affinity", {"level": "rack"}),
            ("spread", {"level": "rack", "min_domains": 2}),
            ("one", "two"),
        ),
        (("fence", {"domains": ["r1"]}), ("ban", {"domains": ["r1", "r2"]}), ("one", "two")),
        (("fence", {"domains": ["r1", "r3"]}), ("ban", {"domains": ["r1"]}), ()),
        (("fence", {"domains": ["r1"]}), ("fence", {"domains": ["r2"]}), ()),
        (("fence", {"traits": ["T"]}), ("ban", {"traits": ["T"]}), ("one", "two")),
        (("affinity", {"level": "shelf"}), ("anti-affinity", {"level": "rack"}), ()),
    ],
)
def test_two_policies_on_the_same_members(
    first: tuple[str, dict[str, object]],
    second: tuple[str, dict[str, object]],
    named: tuple[str, ...],
) -> None:
    found = refused(on_a("one", *first), on_a("two", *second))
    assert sorted(found) == list(named)


@pytest.mark.parametrize(
    ("type_", "parameters"),
    [
        ("survive", {"keep": 3}),
        ("survive", {"keep": 4}),
        ("survive", {"keep": 2, "lose": 2}),
        ("spread", {"min_domains": 4}),
    ],
)
def test_a_policy_can_contradict_itself(type_: str, parameters: dict[str, object]) -> None:
    assert refused(on_a("alone", type_, parameters)) == ("alone",)


def test_members_are_joined_over_several_policies() -> None:
    found = refused(
        statement("x", "affinity", "a[0]", "b[0]"),
        statement("y", "affinity", "b[0]", "b[1]"),
        statement("z", "anti-affinity", "a[0]", "b[1]"),
    )
    assert set(found) == {"x", "y", "z"}


def test_joined_members_share_the_hosts_left_to_each() -> None:
    found = refused(
        statement("x", "affinity", "a[0]", "b[0]"),
        statement("in", "fence", "a[0]", domains=["r1"]),
        statement("out", "ban", "b[0]", domains=["r1"]),
    )
    assert set(found) == {"x", "in", "out"}


def test_preferred_policies_contradict_nothing() -> None:
    assert not refused(
        statement("x", "affinity", "a"), statement("y", "anti-affinity", "a", weight=1)
    )


@given(seed=st.integers(0, 10**6))
def test_what_has_a_placement_is_not_refused(seed: int) -> None:
    built = random_built(seed)
    asked = built.request
    levels = dict(built.terrain.topology.levels)
    outcome = Exhaustive().solve(built.problem, time_limit=SECOND, seed=0)
    # What members break by standing is accepted of a placement, and still contradicts itself.
    if outcome.verdict is Verdict.FEASIBLE and not built.standing:
        check(asked.roles, asked.members, asked.policies, levels=levels)


@pytest.mark.parametrize("inner", ["host", "rack"])
def test_joins_are_looked_for_once_a_level(inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many hyperedges there are: 400 of them here, against 200 that join."""
    asked = request(
        {"a": (100, ONE), "b": (100, ONE)},
        [
            statement(name, type_, "a", "b", zip_=True, level=level)
            for name, type_, level in (
                ("p", "proximity", inner),
                ("q", "proximity", inner),
                ("s", "separation", "host" if inner == "rack" else "zone"),
                ("t", "separation", "host" if inner == "rack" else "zone"),
            )
            if inner == "rack" or type_ == "proximity"
        ]
        + [
            statement(name, "anti-affinity", "a", "b", zip_=True, level="rack", max_per_domain=2)
            for name in ("u", "v")
        ],
    )
    looks: list[Level] = []
    real = HypotheticalFleet.implies

    def implies(fleet: HypotheticalFleet, fine: Level, coarse: Level) -> bool:
        looks.append(coarse)
        return real(fleet, fine, coarse)

    monkeypatch.setattr(HypotheticalFleet, "implies", implies)
    check(asked.roles, asked.members, asked.policies)
    assert len(looks) <= 3 * 200, "200 joins, at three levels"
