"""The offline verdict, held against trying everything."""

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import PolicyStatement, Role, Selector, edges
from moorage.domain.errors import Contradiction, InvalidDescription, UnknownName, UnknownPolicy
from moorage.domain.member_names import MemberName
from moorage.domain.placement import Placement
from moorage.domain.topology import Level
from moorage.policies.contradiction import refuse_contradictions
from moorage.policies.ideal_fleet import IdealFleet
from moorage.policies.registry import parse
from moorage.policies.satisfiable import LeastDomains
from moorage.policies.satisfiable import least_domains as count

RACK = Level("location", "rack")
LEVELS = {"location": ("rack",)}


def statement(name: str, kind: str, select: str, **parameters: object) -> PolicyStatement:
    zipped = "+" in select
    return PolicyStatement(
        name=name,
        type=kind,
        members=tuple(Selector.parse(one) for one in select.split("+" if zipped else ",")),
        zip=zipped,
        parameters={"level": "rack"} | parameters,
    )


def described(**counts: int) -> tuple[list[Role], list[MemberName]]:
    roles = [Role(name=role, resources={"VCPU": 1}) for role in counts]
    return roles, [MemberName(role, i) for role, n in counts.items() for i in range(n)]


def judge(
    roles: list[Role], members: list[MemberName], statements: Sequence[PolicyStatement]
) -> LeastDomains:
    """As `moorage ensemble check` does."""
    refuse_contradictions(roles, members, statements)
    return count(roles, members, statements)


def least(statements: Sequence[PolicyStatement], **counts: int) -> Mapping[str, int]:
    verdict = judge(*described(**counts), statements)
    assert verdict.proved
    return {str(level): count for level, count in verdict.counts.items()}


def test_the_shop_needs_three_racks() -> None:
    statements = [
        statement("db-ha", "survive", "db", keep=2),
        statement("web-apart", "anti-affinity", "web", level="host"),
        statement("web-racks", "spread", "web", min_domains=2, max_skew=1),
        statement("pair", "proximity", "app+db"),
    ]
    assert least(statements, web=3, app=3, db=3) == {"rack": 3}


def test_without_policies_anything_will_do() -> None:
    assert least([], a=4) == {}


def test_hosts_are_counted_where_they_are_what_it_takes() -> None:
    apart = statement("apart", "anti-affinity", "a", level="host")
    assert least([apart], a=4) == {"host": 4}


def test_one_policy_may_not_be_enough_to_count() -> None:
    statements = [
        statement("together", "affinity", "a"),
        statement("few", "anti-affinity", "a,b", max_per_domain=4),
        statement("zones", "spread", "b", level="zone", min_domains=3),
    ]
    assert least(statements, a=4, b=4) == {"zone": 3, "rack": 4}


def test_a_contradiction_names_the_fewest_policies_that_make_it() -> None:
    roles, members = described(a=4, b=2)
    with pytest.raises(Contradiction) as caught:
        judge(
            roles,
            members,
            [
                statement("fine", "spread", "b", min_domains=2),
                statement("together", "affinity", "a"),
                statement("apart", "anti-affinity", "a", max_per_domain=2),
            ],
        )
    assert caught.value.policies == ("together", "apart")


def test_one_policy_can_contradict_itself() -> None:
    roles, members = described(db=3)
    with pytest.raises(Contradiction, match="db-ha needs more than 3 x db to keep 3") as caught:
        judge(roles, members, [statement("db-ha", "survive", "db", keep=3)])
    assert caught.value.policies == ("db-ha",)


def test_preferred_policies_contradict_nobody() -> None:
    soft = PolicyStatement(
        "soft", "survive", (Selector(role="db"),), weight=5, parameters={"keep": 3}
    )
    assert least([soft], db=3) == {}


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (statement("p", "affinity", "nobody"), UnknownName),
        (statement("p", "affinity", "a[7]"), UnknownName),
        (statement("p", "attraction", "a"), UnknownPolicy),
        (statement("p", "survive", "a"), InvalidDescription),
    ],
)
def test_mistakes_are_told(bad: PolicyStatement, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        judge(*described(a=2), [bad])


def any_statement(name: str) -> st.SearchStrategy[PolicyStatement]:
    select = st.sampled_from(["a", "b", "a,b", "*", "a+b", "a[0],b[0]"])
    small = st.integers(1, 3)
    return st.one_of(
        st.builds(statement, st.just(name), st.just("affinity"), select),
        st.builds(statement, st.just(name), st.just("anti-affinity"), select, max_per_domain=small),
        st.builds(statement, st.just(name), st.just("spread"), select, min_domains=small),
        st.builds(statement, st.just(name), st.just("spread"), select, max_skew=st.integers(0, 2)),
        st.builds(statement, st.just(name), st.just("survive"), select, keep=small),
    )


def brute(statements: Sequence[PolicyStatement], racks: int) -> bool:
    """Whether any of all placements of two a and two b on so many racks meets every policy."""
    roles, members = described(a=2, b=2)
    fleet = IdealFleet(LEVELS, {RACK: racks}, 1)
    policies = [(parse(one), edges(one, roles, members)) for one in statements]
    return any(
        not any(policy.violations(edge, placement) for policy, found in policies for edge in found)
        for hosts in product(range(racks), repeat=len(members))
        for placement in [Placement(fleet, dict(zip(members, hosts, strict=True)))]
    )


@given(st.tuples(any_statement("p"), any_statement("q"), any_statement("r")))
def test_the_verdict_is_what_trying_everything_says(
    statements: tuple[PolicyStatement, ...],
) -> None:
    possible = [racks for racks in range(1, 5) if brute(statements, racks)]
    try:
        verdict = judge(*described(a=2, b=2), statements)
    except Contradiction as error:
        assert not possible
        named = [one for one in statements if one.name in error.policies]
        for left_out in named:
            rest = [one for one in named if one is not left_out]
            assert any(brute(rest, racks) for racks in range(1, 5))
    else:
        # What only a search shows to be impossible is no contradiction, and has no number.
        assert verdict.proved is bool(possible)
        assert verdict.counts.get(RACK) == (possible[0] if possible else None)


def test_domains_of_lower_levels_nest_in_higher_ones() -> None:
    zone = Level("location", "zone")
    feed = Level("power", "feed")
    fleet = IdealFleet(
        {"location": ("zone", "rack"), "power": ("feed",)}, {zone: 2, RACK: 5, feed: 2}, 3
    )
    assert fleet.host_count == 30
    parents: dict[int, set[int]] = {}
    for rack, above in zip(fleet.domains(RACK), fleet.domains(zone), strict=True):
        parents.setdefault(rack, set()).add(above)
    assert {rack: len(found) for rack, found in parents.items()} == dict.fromkeys(range(5), 1)
    crossed = set(zip(fleet.domains(RACK), fleet.domains(feed), strict=True))
    assert len(crossed) == 10


TRIANGLE = tuple(
    statement(f"p{i}", "separation", pair, level="host")
    for i, pair in enumerate(("a,b", "b,c", "a,c"))
)


@pytest.mark.parametrize(
    ("counts", "statements"),
    [
        # Forty zones of one rack each; more than one would search domain by domain.
        (
            {"a": 40},
            (
                statement("s", "separation", "a", level="zone"),
                statement("k", "anti-affinity", "a", max_per_domain=2),
            ),
        ),
        # Three racks in one zone and one in another: even, though the zones are not alike.
        (
            {"a": 3, "b": 1},
            (
                statement("m", "anti-affinity", "*", level="zone", max_per_domain=3),
                statement("z", "affinity", "a", level="zone"),
                statement("s", "spread", "*", max_skew=0),
            ),
        ),
        # One host in each of four racks.
        (
            {"a": 4},
            (
                statement("s", "spread", "a", level="host", max_skew=0),
                statement("q", "anti-affinity", "a"),
            ),
        ),
        # Every two apart takes three hosts in one rack, though each policy names two members.
        ({"a": 1, "b": 1, "c": 1}, (*TRIANGLE, statement("r", "affinity", "*"))),
    ],
)
def test_what_some_fleet_meets_is_not_refused(
    counts: dict[str, int], statements: tuple[PolicyStatement, ...]
) -> None:
    refuse_contradictions(*described(**counts), statements)


def test_what_only_a_search_shows_is_left_to_the_decision() -> None:
    """Two racks and three racks, both evenly: impossible only where the roles ask alike."""
    even = [
        statement(role, "spread", role, max_skew=0, min_domains=racks)
        for role, racks in (("a", 2), ("b", 3))
    ]
    roles, members = described(a=2, b=3)
    refuse_contradictions(roles, members, even)
    assert not count(roles, members, even).proved
