"""One by one: pinned, so that what it does can be compared with a slow reading of its rules."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.member_names import MemberName
from moorage.domain.topology import Level
from moorage.engine.joint.cost import satisfies
from moorage.engine.joint.problem import Problem
from moorage.engine.joint.sequential import place_sequentially
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    OnlyOn,
    Primitive,
    SameDomain,
    Skew,
)

RACK = Level("location", "rack")
HOST = Level("location", "host")


def members(**roles: int) -> tuple[MemberName, ...]:
    return tuple(sorted(MemberName(role, i) for role, n in roles.items() for i in range(n)))


def problem(
    free: Sequence[int],
    racks: Sequence[int],
    demand: dict[str, int],
    everyone: tuple[MemberName, ...],
    primitives: Sequence[Primitive] = (),
) -> Problem:
    roles = tuple(sorted(demand))
    amounts = np.array([[demand[role]] for role in roles], dtype=np.int64)
    capacity = np.array([[one] for one in free], dtype=np.int64)
    return Problem(
        members=everyone,
        roles=roles,
        role_of=np.array([roles.index(one.role) for one in everyone], dtype=np.int64),
        demand=amounts,
        allowed=(capacity[:, 0] >= amounts),
        fixed=np.full(len(everyone), -1, dtype=np.int64),
        classes=("VCPU",),
        free=capacity,
        capacity=capacity,
        hosts=tuple(f"h{i + 1}" for i in range(len(free))),
        domains={
            RACK: np.array(racks, dtype=np.int64),
            HOST: np.arange(len(free), dtype=np.int64),
        },
        primitives=tuple(primitives),
        objective=None,
    )


def story(order: str) -> str:
    """Place the shop of the first story in this order; say where it fails."""
    everyone = members(web=3, app=3, db=3)
    by = {role: [one for one in everyone if one.role == role] for role in ("web", "app", "db")}
    primitives: list[Primitive] = [
        AtMostTogether(policy="db-ha", members=tuple(by["db"]), level=RACK, domains=1, limit=1),
        AtMost(policy="web-apart", members=tuple(by["web"]), level=HOST, limit=1),
        AtLeastDomains(policy="web-racks", members=tuple(by["web"]), level=RACK, limit=2),
        Skew(policy="web-racks", members=tuple(by["web"]), level=RACK, domains=(0, 1, 2), limit=1),
        *(
            SameDomain(policy="pair", members=pair, level=RACK)
            for pair in zip(by["app"], by["db"], strict=True)
        ),
    ]
    fleet = problem(
        [16, 16, 16, 16, 16, 16, 8, 6, 6],
        [0, 0, 0, 1, 1, 1, 2, 2, 2],
        {"web": 1, "app": 2, "db": 8},
        everyone,
        primitives,
    )
    turns = [one for role in order.split(",") for one in by[role]]
    found = place_sequentially(fleet, turns, names=fleet.hosts)
    return f"{found.failed} {' '.join(found.conflict)}"


def test_the_first_story_ends_at_the_second_database() -> None:
    assert story("web,app,db") == "db[1] db-ha pair"


def test_another_order_may_find_its_way() -> None:
    assert story("db,app,web") == "None "


def test_most_free_first_then_by_name() -> None:
    everyone = members(a=4)
    fleet = problem([4, 6, 6, 2], [0, 0, 0, 0], {"a": 2}, everyone)
    found = place_sequentially(fleet, everyone, names=("d", "c", "b", "a"))
    # 6 6 -> b; c still has 6; then b, c and d are equal with 4.
    assert list(found.hosts.values()) == [2, 1, 2, 1]


def test_no_room_blames_no_policy() -> None:
    everyone = members(a=2)
    apart = AtMost(policy="apart", members=everyone, level=HOST, limit=1)
    found = place_sequentially(
        problem([3], [0], {"a": 2}, everyone, [apart]), everyone, names=("h",)
    )
    assert (found.failed, found.conflict) == (MemberName("a", 1), ())


def test_fixed_members_stand_from_the_beginning() -> None:
    everyone = members(a=2)
    apart = AtMost(policy="apart", members=everyone, level=HOST, limit=1)
    fleet = problem([4, 8], [0, 0], {"a": 1}, everyone, [apart])
    fleet = replace(fleet, fixed=np.array([1, -1], dtype=np.int64))
    found = place_sequentially(fleet, everyone[1:], names=fleet.hosts)
    assert found.hosts == {everyone[1]: 0}


def test_a_least_number_of_domains_steers_the_last_members_only() -> None:
    everyone = members(a=3)
    least = AtLeastDomains(policy="two", members=everyone, level=RACK, limit=2)
    fleet = problem([100, 100, 1], [0, 0, 1], {"a": 1}, everyone, [least])
    assert list(place_sequentially(fleet, everyone, names=fleet.hosts).hosts.values()) == [0, 1, 2]


def test_both_sides_of_apart_are_kept_off_each_other() -> None:
    everyone = members(a=1, b=1)
    apart = Apart(policy="p", members=everyone[:1], others=everyone[1:], level=RACK)
    fleet = problem([9, 8, 7], [0, 0, 1], {"a": 1, "b": 1}, everyone, [apart])
    for order in (everyone, everyone[::-1]):
        found = place_sequentially(fleet, order, names=fleet.hosts)
        assert sorted(found.hosts.values()) == [0, 2]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    everyone = members(a=draw(st.integers(1, 3)), b=draw(st.integers(0, 3)))
    hosts = draw(st.integers(1, 4))
    free = draw(st.lists(st.integers(0, 4), min_size=hosts, max_size=hosts))
    racks = draw(st.lists(st.integers(0, 2), min_size=hosts, max_size=hosts))
    some = st.lists(st.sampled_from(everyone), min_size=1, unique=True).map(tuple)
    level = st.sampled_from([RACK, HOST])
    limit = st.integers(0, 2)
    kinds = st.one_of(
        st.builds(AtMost, policy=st.just("p"), members=some, level=level, limit=limit),
        st.builds(AtLeastDomains, policy=st.just("q"), members=some, level=level, limit=limit),
        st.builds(SameDomain, policy=st.just("r"), members=some, level=level),
        st.builds(Near, policy=st.just("t"), members=some, others=some, level=level),
        st.builds(
            OnlyOn,
            policy=st.just("s"),
            members=some,
            hosts=st.frozensets(st.integers(0, hosts - 1)),
        ),
    )
    posted = draw(st.lists(kinds, max_size=3))
    return problem(free, racks, {"a": 1, "b": 2}, everyone, posted)


@given(problems(), st.randoms(use_true_random=False))
def test_whatever_it_finishes_is_a_placement_and_it_repeats(fleet: Problem, random: object) -> None:
    order = list(fleet.members)
    random.shuffle(order)  # type: ignore[attr-defined]
    found = place_sequentially(fleet, order, names=fleet.hosts)
    assert found == place_sequentially(fleet, order, names=fleet.hosts)
    if found.failed is None:
        rows = np.array([[found.hosts[one] for one in fleet.members]], dtype=np.int64)
        assert satisfies(fleet, rows).all()
    else:
        assert order.index(found.failed) == len(found.hosts)


@given(problems())
def test_the_blamed_are_to_blame_and_none_is_needless(fleet: Problem) -> None:
    found = place_sequentially(fleet, fleet.members, names=fleet.hosts)
    if not found.conflict:
        return
    for name in (None, *found.conflict):
        kept = [
            one for one in fleet.primitives if one.policy in found.conflict and one.policy != name
        ]
        index = fleet.members.index(found.failed) if found.failed else 0
        stands = fleet.fixed.copy()
        free = fleet.free.copy()
        for member, row in found.hosts.items():
            stands[fleet.members.index(member)] = row
            free[row] -= fleet.demand[fleet.role_of[fleet.members.index(member)]]
        again = replace(
            fleet,
            primitives=tuple(kept),
            fixed=stands,
            free=free,
            allowed=fleet.allowed & (free[:, 0] >= fleet.demand),
        )
        left = place_sequentially(again, [fleet.members[index]], names=fleet.hosts)
        assert (left.failed is None) == (name is not None)
