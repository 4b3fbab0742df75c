"""Groups of members: described, placed, grown by their paths, and added to an ensemble."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.testing.service import Service

from tests.api.native.conftest import refused  # isort: skip

FLEET = """\
fleet: racks
topology:
  location:
    levels: [rack]
    domains: [{name: r0, level: rack}, {name: r1, level: rack}, {name: r2, level: rack}]
hosts:
  - {name: h0, inventories: {VCPU: 4}, place: {location: r0}}
  - {name: h1, inventories: {VCPU: 4}, place: {location: r0}}
  - {name: h2, inventories: {VCPU: 4}, place: {location: r1}}
  - {name: h3, inventories: {VCPU: 4}, place: {location: r1}}
  - {name: h4, inventories: {VCPU: 4}, place: {location: r2}}
  - {name: h5, inventories: {VCPU: 4}, place: {location: r2}}
flavors:
  - {name: m1.small, resources: {VCPU: 1}}
"""
CLUSTER: dict[str, Any] = {
    "name": "east",
    "kind": "ensemble",
    "count": 2,
    "members": [
        {"name": "web", "count": 2, "flavor": "m1.small"},
        {"name": "db", "flavor": "m1.small"},
    ],
    "policies": [
        {"name": "near", "type": "affinity", "members": ["*"], "level": "rack"},
        {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"},
    ],
}


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service(FLEET)
    yield found
    found.close()


def body(*policies: Any, cluster: Any = CLUSTER) -> dict[str, Any]:
    return {"name": "e", "members": [cluster], "policies": list(policies)}


def created(service: Service, described: Any, **decide: Any) -> Any:
    answer = service.call("POST", "/ensembles", {"ensemble": {**described, "decide": decide}})
    assert answer.status_code == 201, answer.text
    return answer.json


def racks(service: Service, ensemble: str) -> dict[str, str]:
    members = service.call("GET", f"/ensembles/{ensemble}/members").json["members"]
    return {one["name"]: one["domains"]["rack"] for one in members}


def test_each_copy_keeps_the_policies_of_the_group(service: Service) -> None:
    made = created(service, body())["ensemble"]
    assert {one["name"]: one["count"] for one in made["members"]} == {
        "east/0/web": 2, "east/0/db": 1, "east/1/web": 2, "east/1/db": 1
    }  # fmt: skip
    assert [one["name"] for one in made["policies"]] == [
        "east/0/near", "east/0/apart", "east/1/near", "east/1/apart"
    ]  # fmt: skip
    assert made["policies"][0]["members"] == ["east/0"]
    found = racks(service, made["id"])
    for copy in (0, 1):
        assert len({rack for name, rack in found.items() if name.startswith(f"east/{copy}/")}) == 1


def test_a_later_policy_names_groups_and_an_unknown_one_is_refused(service: Service) -> None:
    path = f"/ensembles/{created(service, body())['ensemble']['id']}/policies"
    put = {"policy": {"name": "s", "type": "spread", "members": ["east[0]", "east/db"],
                      "level": "host", "min_domains": 2}}  # fmt: skip
    any_generation = {"If-Match": "*"}
    assert service.call("PUT", f"{path}/s", put, headers=any_generation).status_code == 200
    for name, near in (("eats", "east"), ("east/wbe", "east/1/web"), ("east[2]", "east")):
        put = {"policy": {"name": "t", "type": "affinity", "members": [name]}}
        answer = service.call("PUT", f"{path}/t", put, headers=any_generation)
        error = refused(answer, 400, "invalid_description")
        assert f"{name} selects nothing here; did you mean {near}" in error["detail"]


def test_copies_have_racks_of_their_own(service: Service) -> None:
    apart = {"name": "apart", "type": "separation", "between": [["east[0]"], ["east[1]"]],
             "level": "rack"}  # fmt: skip
    made = created(service, body(apart))["ensemble"]
    assert made["policies"][0] == {**apart, "strength": "required"}
    found = racks(service, made["id"])
    assert found["east/0/db[0]"] != found["east/1/db[0]"]
    path = f"/ensembles/{made['id']}"
    third = {"policies": [{"name": "apart", "between": [["east[0]"], ["east[2]"]]}]}
    answer = service.call("PATCH", path, {"ensemble": {**third, "generation": 0}})
    error = refused(answer, 400, "invalid_description")
    assert "east[2] selects nothing here" in error["detail"]
    assert "policies[0].between" in answer.text
    whole = {"policies": [{"name": "apart", "members": ["east"], "between": "groups"}]}
    answer = service.call("PATCH", path, {"ensemble": {**whole, "generation": 0}})
    assert answer.status_code == 200, answer.text
    policy = answer.json["ensemble"]["policies"][0]
    assert (policy["between"], policy["members"]) == ("groups", ["east"])
    back = {"policies": [{"name": "apart", "between": apart["between"]}]}
    answer = service.call("PATCH", path, {"ensemble": {**back, "generation": 1}})
    assert answer.json["ensemble"]["policies"][0] == {**apart, "strength": "required"}
    both = {**apart, "members": ["east"]}
    answer = service.call("POST", "/ensembles", {"ensemble": {**body(both), "name": "f"}})
    assert "leave out members" in refused(answer, 400, "invalid_description")["detail"]


def test_a_role_on_two_sides_is_refused(service: Service) -> None:
    apart = {"type": "separation", "between": [["east"], ["east/db"]], "level": "rack"}
    answer = service.call("POST", "/ensembles", {"ensemble": body(apart)})
    error = refused(answer, 400, "invalid_description")
    assert "role east/0/db is on two sides" in error["detail"]


def test_inner_sides_are_within_each_copy(service: Service) -> None:
    inner = {"name": "tiers", "type": "separation", "between": [["web"], ["db"]], "level": "host"}
    made = created(service, body(cluster={**CLUSTER, "policies": [inner]}))["ensemble"]
    assert [one["between"] for one in made["policies"]] == [
        [["east/0/web"], ["east/0/db"]], [["east/1/web"], ["east/1/db"]]
    ]  # fmt: skip


def test_roles_in_groups_grow_by_their_paths_and_groups_do_not(service: Service) -> None:
    path = f"/ensembles/{created(service, body(), hold='PT1H')['ensemble']['id']}"
    grown = service.call("POST", f"{path}/extend", {"extend": {"role": "east/1/db", "count": 1}})
    assert grown.status_code in (200, 201), grown.text
    found = racks(service, path.rpartition("/")[2])
    assert found["east/1/db[1]"] == found["east/1/db[0]"]
    for what in ("extend", "shrink"):
        answer = service.call("POST", f"{path}/{what}", {what: {"role": "east", "count": 1}})
        error = refused(answer, 400, "invalid_description")
        assert "east is a group: name a role of it, such as east/0/db" in error["detail"]


def test_a_group_is_added_with_its_policies(service: Service) -> None:
    made = created(service, body(), hold="PT1H")["ensemble"]
    change = {
        "members": [{**CLUSTER, "name": "west", "count": 1}],
        "generation": made["generation"],
    }
    answer = service.call("PATCH", f"/ensembles/{made['id']}", {"ensemble": change})
    assert answer.status_code == 200, answer.text
    assert [one["name"] for one in answer.json["ensemble"]["policies"]][-2:] == [
        "west/0/near", "west/0/apart"
    ]  # fmt: skip
    found = racks(service, made["id"])
    assert len({found[f"west/0/{name}"] for name in ("web[0]", "web[1]", "db[0]")}) == 1


def test_a_wrong_flavor_is_named_where_it_is(service: Service) -> None:
    wrong = {**CLUSTER, "members": [{"name": "web", "flavor": "m1.smal"}], "policies": []}
    answer = service.call("POST", "/ensembles", {"ensemble": body(cluster=wrong)})
    refused(answer, 400, "unknown_name")
    assert "members[0].members[0].flavor" in answer.text


@pytest.mark.parametrize("depth", [6, 500, 100_000])
def test_a_depth_bomb_is_refused(service: Service, depth: int) -> None:
    opening = b'{"name": "g", "kind": "ensemble", "members": ['
    text = (
        b'{"ensemble": {"name": "e", "members": ['
        + opening * depth
        + b'{"name": "w", "flavor": "m1.small"}'
        + b"]}" * depth
        + b"]}}"
    )
    answer = service.call("POST", "/ensembles", raw=text)
    assert answer.status_code == 400, answer.text[:300]


def test_too_many_copies_that_are_apart_are_refused(service: Service) -> None:
    cluster = {"name": "g", "kind": "ensemble", "count": 400,
               "members": [{"name": "w", "count": 2, "flavor": "m1.small"}]}  # fmt: skip
    apart = {"type": "separation", "members": ["g"], "between": "groups", "level": "rack"}
    answer = service.call("POST", "/ensembles", {"ensemble": body(apart, cluster=cluster)})
    assert "members in all policies together, each once for every other side" in answer.text
    assert "limit 100000" in answer.text
    assert answer.status_code in (400, 403)


def cells(count: int, each: int) -> dict[str, Any]:
    """So many cells of so many members, of which no two share a rack, each a side by its name."""
    roles = [{"name": f"cell{n}", "count": each, "flavor": "m1.small"} for n in range(count)]
    sides = [[one["name"]] for one in roles]
    apart = {"name": "apart", "type": "separation", "between": sides, "level": "rack"}
    return {"ensemble": {"name": "cells", "members": roles, "policies": [apart]}}


def test_a_thousand_sides_of_one_member_each_are_judged_by_the_fleet(service: Service) -> None:
    """They are not too many to compare: they lack racks."""
    error = refused(service.call("POST", "/ensembles", cells(1_000, 1)), 409, "infeasible")
    assert "apart" in error["detail"]


def test_more_sides_than_can_be_compared_are_refused(service: Service) -> None:
    answer = service.call("POST", "/ensembles", cells(400, 2))
    assert answer.status_code in (400, 403)
    assert "each once for every other side: limit 100000" in answer.text
    many = cells(3, 1)
    many["ensemble"]["policies"][0]["between"] = [["cell0"]] * 1_001
    answer = service.call("POST", "/ensembles", many)
    refused(answer, 400, "invalid_description")
    assert "must have 2 to 1000 sides, not 1001" in answer.text


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"type": "affinity", "level": "shelf"}, "level"),
        ({"type": "isolate", "at": "shelf"}, "at"),
        ({"type": "spread", "max_skew": -1}, "max_skew"),
        ({"type": "afinity"}, "type"),
        ({"type": "fence", "domains": ["nowhere"]}, "domains"),
        ({"type": "affinity", "members": ["wbe"]}, "members"),
        ({"type": "separation", "between": [["web"], ["wbe"]], "level": "host",
          "members": None}, "between"),
        ({"type": "proximity", "between": [["web"], ["ensemble:no"]], "level": "rack",
          "members": None}, "between"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_groups_policy_is_named_where_it_is_written(
    service: Service, wrong: dict[str, Any], field: str
) -> None:
    policy = {"name": "p", "members": ["web"], **wrong}
    policy = {key: value for key, value in policy.items() if value is not None}
    cluster = {**CLUSTER, "policies": [*CLUSTER["policies"], policy]}
    first = {"name": "q", "type": "affinity", "members": ["east/db"]}
    answer = service.call("POST", "/ensembles", {"ensemble": body(first, cluster=cluster)})
    assert answer.status_code == 400, answer.text
    path = answer.json["errors"][0]["path"]
    assert path.startswith(f"members[0].policies[2].{field}")


def test_what_is_wrong_with_an_added_policy_is_named_by_its_number_in_the_change(
    service: Service,
) -> None:
    made = created(service, body())["ensemble"]
    policies = [
        {"name": "q", "type": "affinity", "members": ["east/db"]},
        {"name": "p", "type": "isolate", "members": ["east/web"], "at": "shelf"},
    ]
    change = {"policies": policies, "generation": made["generation"]}
    answer = service.call("PATCH", f"/ensembles/{made['id']}", {"ensemble": change})
    assert refused(answer, 400, "unknown_name")["path"] == "policies[1].at"


def test_a_stored_policy_has_no_place_in_a_description(service: Service) -> None:
    made = created(service, body())["ensemble"]
    assert {one.path for one in service.store.ensemble(made["id"]).policies} == {""}


def test_each_copy_has_its_tiers_near_each_other(service: Service) -> None:
    cached = {"name": "cached", "type": "proximity", "between": [["web"], ["db"]], "level": "rack"}
    described = body(cluster={**CLUSTER, "policies": [cached]})
    answer = created(service, described)["ensemble"]
    [policy] = [one for one in answer["policies"] if one["name"] == "east/1/cached"]
    assert policy["between"] == [["east/1/web"], ["east/1/db"]]
    for copy in ("east/0", "east/1"):
        where = racks(service, answer["id"])
        tiers = [
            {where[name] for name in where if name.startswith(f"{copy}/{role}[")}
            for role in ("web", "db")
        ]
        assert tiers[0] <= tiers[1], where


def test_tiers_stay_near_each_other_as_they_grow_and_shrink(service: Service) -> None:
    members = [{"name": name, "count": 3, "flavor": "m1.small"} for name in ("web", "db")]
    policies = [
        {"type": "spread", "members": ["web"], "level": "rack", "min_domains": 3},
        {"type": "proximity", "between": [["web"], ["db"]], "level": "rack"},
    ]
    described = {"name": "e", "members": members, "policies": policies}
    path = f"/ensembles/{created(service, described, hold='PT1H')['ensemble']['id']}"
    grown = service.call("POST", f"{path}/extend", {"extend": {"role": "web", "count": 15}})
    assert grown.status_code in (200, 201), grown.text
    shrunk = service.call("POST", f"{path}/shrink", {"shrink": {"role": "db", "count": 1}})
    error = refused(shrunk, 409, "would_break_policy")
    assert error["detail"] == "every choice of members would break proximity"
