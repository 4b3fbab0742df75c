"""Groups in descriptions: made flat, with paths for names and policies within each copy."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.describe import read_ensemble
from moorage.domain.describe_nested import MAX_DEPTH, flat_body
from moorage.domain.ensembles import PolicyStatement, Role, Selector, edges
from moorage.domain.errors import InvalidDescription
from moorage.domain.member_names import MemberName
from moorage.domain.role_paths import is_within

ONE = {"resources": {"VCPU": 1}}


def group(name: str, *members: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "ensemble", "members": list(members), **more}


def role(name: str, count: int = 1) -> dict[str, Any]:
    return {"name": name, "count": count, **ONE}


def described(*members: dict[str, Any], policies: Any = ()) -> dict[str, Any]:
    return {"name": "e", "members": list(members), "policies": list(policies)}


def selected(body: dict[str, Any], *selectors: str, zipped: bool = False) -> list[list[str]]:
    found = read_ensemble(body)
    statement = PolicyStatement("p", "affinity", tuple(map(Selector.parse, selectors)), zip=zipped)
    return edge_names(found, statement)


def edge_names(found: Any, statement: PolicyStatement) -> list[list[str]]:
    roles = [Role(one.name, {}) for one in found.roles]
    members = [MemberName(one.name, i) for one in found.roles for i in range(one.count)]
    return [list(map(str, edge)) for edge in edges(statement, roles, members)]


EAST = described(role("lb"), group("east", role("web", 2), role("db"), count=2))


def test_roles_are_named_by_their_paths() -> None:
    body = described(role("lb"), group("east", role("web", 2)), group("west", role("db"), count=2))
    found = {one.name: one.count for one in read_ensemble(body).roles}
    assert found == {"lb": 1, "east/web": 2, "west/0/db": 1, "west/1/db": 1}


EVERY = "east/0/db[0] east/0/web[0] east/0/web[1] east/1/db[0] east/1/web[0] east/1/web[1]"


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("east", EVERY),
        ("east[1]", "east/1/db[0] east/1/web[0] east/1/web[1]"),
        ("east/1", "east/1/db[0] east/1/web[0] east/1/web[1]"),
        ("east/db", "east/0/db[0] east/1/db[0]"),
        ("east/0/web", "east/0/web[0] east/0/web[1]"),
        ("east/0/web[1]", "east/0/web[1]"),
        ("lb", "lb[0]"),
    ],
)  # fmt: skip
def test_a_selector_names_a_group_a_copy_or_a_role_of_all_copies(selector: str, names: str) -> None:
    assert selected(EAST, selector) == [names.split()]


@pytest.mark.parametrize("selector", ["east[2]", "eas", "web", "east/web[0]", "east/2", "lb/web"])
def test_what_names_nothing_selects_nothing(selector: str) -> None:
    assert selected(EAST, selector) == []


def test_copies_can_be_zipped() -> None:
    assert selected(EAST, "east[0]", "east[1]", zipped=True) == [
        ["east/0/db[0]", "east/1/db[0]"],
        ["east/0/web[0]", "east/1/web[0]"],
        ["east/0/web[1]", "east/1/web[1]"],
    ]


def test_policies_of_a_group_are_within_each_copy() -> None:
    inner = [
        {"type": "anti-affinity", "members": ["*"], "level": "rack"},
        {"name": "pair", "type": "proximity", "zip": ["web", "db[0]"], "level": "rack"},
        "soft-affinity",
    ]
    own = {"name": "own", "type": "spread", "members": ["east"], "level": "zone"}
    body = described(
        group("east", role("web", 2), role("db"), count=2, policies=inner), policies=[own]
    )
    found = read_ensemble(body)
    assert [one.name for one in found.policies] == [
        "own",
        *(
            f"east/{i}/{name}"
            for i in (0, 1)
            for name in ("anti-affinity", "pair", "soft-affinity")
        ),
    ]
    second = {one.name: one for one in found.policies}
    assert edge_names(found, second["east/1/pair"]) == [["east/1/web[0]", "east/1/db[0]"]]
    everyone = [["east/1/db[0]", "east/1/web[0]", "east/1/web[1]"]]
    assert edge_names(found, second["east/1/anti-affinity"]) == everyone
    assert edge_names(found, second["east/1/soft-affinity"]) == everyone
    assert (second["east/1/soft-affinity"].type, second["east/1/soft-affinity"].weight) == (
        "affinity", 1
    )  # fmt: skip


def deep(depth: int) -> dict[str, Any]:
    found = role("web")
    for _ in range(depth):
        found = group("g", found)
    return found


def test_the_depth_is_bounded() -> None:
    [one] = read_ensemble(described(deep(MAX_DEPTH))).roles
    assert one.name == "g/" * MAX_DEPTH + "web"
    with pytest.raises(InvalidDescription, match="more than 5 groups within each other") as refused:
        read_ensemble(described(deep(MAX_DEPTH + 1)))
    assert refused.value.path == "members[0]" + ".members[0]" * MAX_DEPTH


@pytest.mark.parametrize(
    ("members", "path", "text"),
    [
        ([group("a", role("w"), count=1_000_000)], "members[0].count", "between 0 and 5000"),
        ([group("a", role("w"), count=0)], "members[0].count", "at least one copy"),
        ([group("a", group("b", role("w", 0), count=5000), count=5000)],
         "members[0].members[0].members", "more than 5000 roles"),
        ([group("a", role("w", 100), count=51)], "members", "more than 5000 members"),
        ([group("a")], "members[0].members", "a group needs members"),
        ([group("a", group("b"))], "members[0].members[0].members", "a group needs members"),
        ([group("a", role("w")), role("a")], "members[1].name", "has the name of a group"),
        ([role("a/0/w"), group("a", role("w"), count=2)], "members[0].name", "path into group a"),
        ([role("a[0]/w"), group("a", role("w"), count=2)], "members[0].name", "cannot name a role"),
        ([role("a/x"), group("a", role("w"))], "members[0].name", "path into group a"),
        ([group("a", role("w")), group("a", role("v"))], "members", "twice: give each a name"),
        ([group("a", role("w"), role("w"))], "members", "a/w is described twice"),
        ([group("a", role("w/x"))], "members[0].members[0].name", "cannot name a group or what"),
        ([group("a", role("0"))], "members[0].members[0].name", "not only a number"),
        ([group("0", role("w"))], "members[0].name", "not only a number"),
        ([group("tag:a", role("w"))], "members[0].name", "cannot name"),
        ([{"kind": "ensemble", "members": [role("w")]}], "members[0].name", "needs a name"),
        ([{"name": "a", "members": [role("w")]}], "members[0].kind", "write kind: ensemble"),
        ([group("a", role("w"), flavor="m1")], "members[0].flavor", "unknown field flavor"),
        ([group("a", role("w"), members=[3])], "members[0].members[0]", "must be a mapping"),
        ([group("a", role("w"), policies=3)], "members[0].policies", "must be a list"),
        ([group("a", {"name": "w"})], "members[0].members[0].flavor", "needs a flavor or"),
        ([group("a" * 60, group("b" * 60, role("w" * 60)))],
         "members[0].members[0].members[0].name", "at most 128"),
        ([{"name": "w", "alternatives": [{"kind": "ensemble"}, ONE]}],
         "members[0].alternatives[0].kind", "cannot be one of several alternatives"),
    ],
)  # fmt: skip
def test_bad_groups_are_refused_with_their_place(members: Any, path: str, text: str) -> None:
    with pytest.raises(InvalidDescription, match=text) as refused:
        read_ensemble(described(*members))
    assert refused.value.path == path


@pytest.mark.parametrize("selector", ["tag:x", {"tag": "x"}])
def test_a_policy_of_a_group_selects_no_tags(selector: Any) -> None:
    policy = {"type": "affinity", "members": ["w", selector]}
    with pytest.raises(InvalidDescription, match="tags are of the whole") as refused:
        read_ensemble(described(group("a", role("w"), policies=[policy])))
    assert refused.value.path == "members[0].policies[0].members[1]"


steps = st.sampled_from(["a", "b", "c"])


@st.composite
def trees(draw: Any, depth: int = 2) -> list[dict[str, Any]]:
    """Members of an ensemble or group."""
    found = []
    for name in draw(st.lists(steps, min_size=1, max_size=3, unique=True)):
        if depth and draw(st.booleans()):
            more = {"count": draw(st.integers(1, 3))} if draw(st.booleans()) else {}
            inner = draw(trees(depth=depth - 1))
            policies = [{"name": "p", "type": "affinity", "members": ["*"]}]
            found.append(group(name, *inner, policies=policies, **more))
        else:
            found.append(role(name, draw(st.integers(1, 2))))
    return found


def count_of(members: list[dict[str, Any]]) -> int:
    return sum(
        one.get("count", 1) * (count_of(one["members"]) if "members" in one else 1)
        for one in members
    )


@given(trees())
def test_every_member_is_there_once_and_in_the_policy_of_each_group_it_is_in(
    members: list[dict[str, Any]],
) -> None:
    found = read_ensemble(described(*members))
    names = [MemberName(one.name, i) for one in found.roles for i in range(one.count)]
    assert len(set(names)) == len(names) == count_of(members)
    listed = Counter(
        (one.name.removesuffix("/p"), name)
        for one in found.policies
        for edge in edge_names(found, one)
        for name in edge
    )
    assert set(listed.values()) <= {1}
    assert {name for _, name in listed} == {str(one) for one in names if "/" in one.role}
    for copy, name in listed:
        assert is_within(name.partition("[")[0], copy)
    flat = read_ensemble(flat_body(described(*members)))
    assert flat.policies == found.policies
    assert flat.roles == found.roles
