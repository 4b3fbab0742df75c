"""Who leaves when an ensemble shrinks: against every choice there is."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import PolicyStatement, Role, edges
from moorage.domain.member_names import MemberName
from moorage.domain.placement import Placement
from moorage.domain.topology import Level
from moorage.engine.joint import shrink
from moorage.engine.joint.shrink import Shrinking, choose_members
from moorage.policies import parse
from moorage.policies.ideal_fleet import IdealFleet
from moorage.policies.rules import PolicyRule
from moorage.testing.problems import statement

FLEET = IdealFleet({"location": ("rack",)}, {Level("location", "rack"): 3}, 4)
"""Three racks of four hosts: host h is in rack h % 3."""
ROLES = tuple(Role(name, {"VCPU": 1}) for name in "ab")

RULES: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("spread", ("a",), {"level": "rack", "max_skew": 1}),
    ("spread", ("*",), {"level": "rack", "max_skew": 2}),
    ("spread", ("a", "b"), {"level": "rack", "min_domains": 2}),
    ("survive", ("a",), {"level": "rack", "keep": 2}),
    ("survive", ("*",), {"level": "host", "lose": 2, "keep": 3}),
    ("anti-affinity", ("*",), {"level": "rack", "max_per_domain": 2}),
    ("affinity", ("a[0]", "b"), {"level": "rack"}),
    ("proximity", ("a", "b"), {"level": "rack", "between": [["a"], ["b"]]}),
    ("proximity", ("a", "b"), {"level": "rack", "between": [["b"], ["a"]]}),
]


@st.composite
def shrinkings(draw: st.DrawFn, *, rules: int = 3) -> Shrinking:
    sizes = {"a": draw(st.integers(1, 6)), "b": draw(st.integers(0, 4))}
    members = [MemberName(role, i) for role, size in sizes.items() for i in range(size)]
    placed = {one: draw(st.integers(0, 11)) for one in members if draw(st.integers(0, 9))}
    stated: list[PolicyStatement] = []
    for number in range(draw(st.integers(0, rules))):
        kind, selected, parameters = draw(st.sampled_from(RULES))
        weight = draw(st.sampled_from([None, None, 3]))
        stated.append(statement(f"p{number}", kind, *selected, weight=weight, **parameters))
    if draw(st.booleans()):
        stated.append(statement("pair", "proximity", "a", "b", zip_=True, level="rack"))
    return Shrinking(
        ROLES,
        [PolicyRule(one, parse(one), ()) for one in stated],
        Placement(FLEET, placed),
        {role: draw(st.integers(0, size)) for role, size in sizes.items()},
        draw(st.permutations(members)),
        [one for one in members if one not in placed],
    )


def choices(one: Shrinking) -> Iterator[frozenset[MemberName]]:
    pools = [[name for name in one.order if name.role == role] for role in one.counts]
    ways = (
        combinations(pool, one.counts[role]) for pool, role in zip(pools, one.counts, strict=True)
    )
    for some in product(*ways):
        yield frozenset(name for names in some for name in names)


def placed_edges(
    one: Shrinking, statement: PolicyStatement, gone: frozenset[MemberName]
) -> Iterator[tuple[MemberName, ...]]:
    """Who has a place of each edge of the members that stay; of a zip the edges that all have."""
    every = [name for name in (*one.placement.hosts, *one.unplaced) if name not in gone]
    for edge in edges(statement, one.roles, every):
        some = tuple(name for name in edge if name in one.placement.hosts)
        if some and (some == edge or not statement.zip):
            yield some


def broken(one: Shrinking, gone: frozenset[MemberName]) -> dict[str, int]:
    """Required policy -> its violations, by the policies' meanings."""
    return {
        rule.statement.name: sum(
            violation.amount
            for edge in placed_edges(one, rule.statement, gone)
            for violation in rule.policy.violations(edge, one.placement)
        )
        for rule in one.rules
        if rule.statement.required
    }


def keeps(one: Shrinking, gone: frozenset[MemberName]) -> bool:
    before = broken(one, frozenset())
    return all(amount <= before[name] for name, amount in broken(one, gone).items())


@given(shrinkings())
def test_a_choice_keeps_the_policies_if_there_is_one(one: Shrinking) -> None:
    found = choose_members(one)
    gone = frozenset(found.gone)
    assert {role: sum(name.role == role for name in gone) for role in one.counts} == one.counts
    assert found.proved
    assert (not found.broken) == keeps(one, gone) == any(keeps(one, some) for some in choices(one))
    if keeps(one, gone):
        least = min(one.judged(some).penalty for some in choices(one) if keeps(one, some))
        assert one.judged(gone).penalty == least


@given(shrinkings())
def test_among_equal_choices_those_first_in_the_order_leave(one: Shrinking) -> None:
    found = choose_members(one)
    good = [
        some
        for some in choices(one)
        if keeps(one, some)
        and one.judged(some).penalty == one.judged(frozenset(found.gone)).penalty
    ]
    if good:
        places = {name: at for at, name in enumerate(one.order)}
        ranked = [
            [sorted(places[name] for name in some if name.role == role) for role in one.counts]
            for some in good
        ]
        chosen = [
            sorted(places[name] for name in found.gone if name.role == role) for role in one.counts
        ]
        assert chosen == min(ranked)


@pytest.fixture
def _never_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "MOST_TRIED", 0)


@pytest.mark.usefixtures("_never_all")
@given(shrinkings())
def test_a_choice_made_one_by_one_is_judged_truly(one: Shrinking) -> None:
    found = choose_members(one)
    gone = frozenset(found.gone)
    assert {role: sum(name.role == role for name in gone) for role in one.counts} == one.counts
    assert not found.proved or not any(one.counts.values())
    assert (not found.broken) == keeps(one, gone)


@pytest.mark.usefixtures("_never_all")
@given(shrinkings(rules=1))
def test_for_one_policy_a_choice_made_one_by_one_keeps_it_if_any_does(one: Shrinking) -> None:
    alone = Shrinking(one.roles, one.rules[:1], one.placement, one.counts, one.order)
    found = choose_members(alone)
    assert (not found.broken) == any(keeps(alone, some) for some in choices(alone))


def test_many_leave_at_once() -> None:
    members = [MemberName("a", i) for i in range(600)]
    placed: dict[Any, int] = {name: name.index % 12 for name in members}
    even = statement("even", "spread", "a", level="rack", max_skew=1)
    found = choose_members(
        Shrinking(
            ROLES,
            [PolicyRule(even, parse(even), ())],
            Placement(FLEET, placed),
            {"a": 250},
            list(reversed(members)),
        )
    )
    assert (len(found.gone), found.broken, found.proved) == (250, (), False)


def test_a_zip_pairs_members_with_those_without_a_place() -> None:
    """Without a[0], which has no place, a[1] would be beside b[0], in another rack."""
    a, b = ([MemberName(role, n) for n in range(2)] for role in "ab")
    pair = statement("pair", "proximity", "a", "b", zip_=True, level="rack")
    placement = Placement(FLEET, {a[1]: 0, b[0]: 1, b[1]: 3})
    rules = [PolicyRule(pair, parse(pair), ())]
    choice = choose_members(Shrinking(ROLES, rules, placement, {"a": 1}, a, [a[0]]))
    assert choice.gone == (a[1],)
    assert not choice.broken
