"""Roles with alternatives: described, decided, claimed and kept."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from moorage.testing.service import OPERATOR, Service

ROOT = Path(__file__).parents[3]
FLEET = """\
fleet: two-kinds
topology:
  location: {levels: [rack], domains: [{name: r1, level: rack}, {name: r2, level: rack}]}
hosts:
  - {name: fast, inventories: {VCPU: 8}, traits: [HW_CPU_X86_AVX512F], place: {location: r1}}
  - {name: slow1, inventories: {VCPU: 8}, place: {location: r1}}
  - {name: slow2, inventories: {VCPU: 8}, place: {location: r2}}
flavors:
  - {name: m1.small, resources: {VCPU: 1}}
  - {name: m1.medium, resources: {VCPU: 2}}
"""
AVX = "HW_CPU_X86_AVX512F"
BIG = {"resources": {"VCPU": 4}, "required": [AVX]}
SMALL = {"flavor": "m1.medium"}


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service(FLEET)
    yield found
    found.close()


def described(count: int, *policies: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    role = {"name": "web", "count": count, "alternatives": [BIG, SMALL], **more}
    return {"name": "e", "members": [role], "policies": list(policies)}


def made(service: Service, body: Mapping[str, Any], **decide: Any) -> Any:
    answer = service.call("POST", "/ensembles", {"ensemble": {**body, "decide": decide}})
    assert answer.status_code == 201, answer.text
    return answer.json


def taken(decision: Mapping[str, Any]) -> dict[str, int]:
    return {one["member"]: one["alternative"] for one in decision["assignments"]}


def test_as_many_first_choices_as_there_is_room_for(service: Service) -> None:
    found = made(service, described(3))
    assert sorted(taken(found["decision"]).values()) == [0, 0, 1]
    [role] = found["ensemble"]["members"]
    assert (role["resources"], role["required"]) == ({"VCPU": 4}, ["HW_CPU_X86_AVX512F"])
    assert [one["flavor"] for one in role["alternatives"]] == [None, "m1.medium"]
    path = f"/ensembles/{found['ensemble']['id']}"
    members = service.call("GET", f"{path}/members").json["members"]
    assert {one["name"]: one["alternative"] for one in members} == taken(found["decision"])
    again = service.call("GET", f"/decisions/{found['decision']['id']}").json["decision"]
    assert taken(again) == taken(found["decision"])


def test_policies_hold_for_whatever_is_taken(service: Service) -> None:
    apart = {"type": "anti-affinity", "members": ["web"], "level": "host"}
    assert sorted(taken(made(service, described(3, apart))["decision"]).values()) == [0, 1, 1]


def test_the_objective_decides_where_choices_cost_nothing(service: Service) -> None:
    """Spread over three hosts is better than two first choices on one."""
    found = made(service, described(3), alternatives="cheapest")
    assert sorted(taken(found["decision"]).values()) in ([0, 1, 1], [1, 1, 1])
    assert found["decision"]["solve"]["value"] == found["decision"]["solve"]["bound"] == 0


def test_a_claim_is_compared_with_what_was_taken(service: Service) -> None:
    found = made(service, described(3))
    [small] = [name for name, choice in taken(found["decision"]).items() if choice]
    path = f"/decisions/{found['decision']['id']}/claims"
    bigger = {"claim": {"member": small, "server": {"resources": {"VCPU": 4}}}}
    refused = service.call("POST", path, bigger)
    assert refused.status_code == 409, refused.text
    claim = {"claim": {"member": small, "server": {"flavorRef": "m1.medium"}}}
    answer = service.call("POST", path, claim)
    assert answer.status_code == 201, answer.text
    server = service.ids.uuid()
    active = {"claim": {"status": "active", "server_id": server}}
    done = service.call("PATCH", f"/claims/{answer.json['claim']['id']}", active)
    assert done.status_code == 200, done.text
    # What is placed stays what it is when more come.
    grown = service.call(
        "PATCH",
        f"/ensembles/{found['ensemble']['id']}",
        {"ensemble": {"members": [{"name": "web", "count": 5}], "decide": {}}},
        headers={"If-Match": "*"},
    )
    assert grown.status_code == 200, grown.text
    after = taken(grown.json["decision"])
    assert taken(found["decision"]).items() <= after.items()
    assert sorted(after.values()) == [0, 0, 1, 1, 1]


def test_a_member_that_is_placed_anew_for_a_claim_stays_what_it_was(service: Service) -> None:
    found = made(service, described(3))
    [small] = [name for name, choice in taken(found["decision"]).items() if choice]
    claim = {
        "member": small,
        "server": {"resources": {"VCPU": 3}},
        "on_mismatch": "redecide_member",
    }
    path = f"/decisions/{found['decision']['id']}/claims"
    answer = service.call("POST", path, {"claim": claim})
    assert answer.status_code == 201, answer.text
    decision = answer.json["claim"]["decision_id"]
    after = service.call("GET", f"/decisions/{decision}").json["decision"]
    assert taken(after) == taken(found["decision"])


def test_headroom_and_templates(service: Service) -> None:
    found = made(service, described(2))
    path = f"/ensembles/{found['ensemble']['id']}"
    answer = service.call("PUT", f"{path}/headroom", {"headroom": {"role": "web", "count": 3}})
    assert answer.status_code == 200, answer.text
    answer = service.call("POST", f"{path}/extend", {"extend": {"role": "web", "count": 3}})
    assert answer.json["extend"]["from_headroom"] == 3, answer.text
    assert sorted(taken(answer.json["extend"]["decision"]).values()) == [0, 0, 1, 1, 1]
    source = {"members": [{"name": "web", "alternatives": [BIG, SMALL]}]}
    body = {"template": {"name": "t", "source": source}}
    template = service.call("POST", "/templates", body)
    assert template.status_code == 201, template.text
    one = {"instance": {"name": "i", "decide": {}}}
    path = f"/templates/{template.json['template']['id']}/instances"
    instance = service.call("POST", path, one)
    assert instance.status_code == 201, instance.text


def test_extending_and_counting_use_every_alternative(service: Service) -> None:
    found = made(service, described(2), max_additional=["web"])
    # Two of four on the fast host; four of two on each of the others.
    assert found["decision"]["max_additional"]["web"]["count"] == 8
    path = f"/ensembles/{found['ensemble']['id']}/extend"
    answer = service.call("POST", path, {"extend": {"role": "web", "count": 8}})
    assert answer.status_code in {200, 201}, answer.text
    assert sorted(taken(answer.json["extend"]["decision"]).values()) == [0] * 2 + [1] * 8


def test_a_refusal_names_the_role(service: Service) -> None:
    apart = {"type": "anti-affinity", "members": ["web"], "level": "host"}
    body = {"ensemble": {**described(4, apart), "decide": {}}}
    answer = service.call("POST", "/ensembles", body)
    assert answer.status_code == 409, answer.text
    [error] = answer.json["errors"]
    link = next(one["href"] for one in error["links"] if one["rel"] == "explanation")
    found = service.call("GET", link.partition("/v1")[2])
    assert found.status_code == 200, found.text
    assert "4 x web" in found.text
    assert "|" not in found.text


@pytest.mark.parametrize(
    ("role", "path"),
    [
        ({"alternatives": [SMALL]}, "members[0].alternatives"),
        ({"alternatives": [SMALL] * 9}, "members[0].alternatives"),
        ({"alternatives": [SMALL, BIG], "flavor": "m1.small"}, "members[0].flavor"),
        ({"alternatives": [SMALL, {"flavor": "m1.huge"}]}, "members[0].alternatives[1].flavor"),
        ({"alternatives": [SMALL, {}]}, "members[0].alternatives[1].flavor"),
        ({"alternatives": [SMALL, {**BIG, "count": 2}]}, "members[0].alternatives[1]"),
        ({"alternatives": [SMALL, {"alternatives": [SMALL, BIG]}]}, "members[0].alternatives[1]"),
    ],
)
def test_bad_alternatives(service: Service, role: Mapping[str, Any], path: str) -> None:
    body = {"name": "e", "members": [{"name": "web", **role}]}
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 400, answer.text
    assert path in answer.json["errors"][0]["path"], answer.text


def test_a_lease_is_of_one_kind(service: Service) -> None:
    times = {"start": "2026-11-27T09:00:00Z", "end": "2026-11-28T09:00:00Z"}
    lease = {"name": "l", **times, "ensemble": described(1)}
    answer = service.call("POST", "/leases", {"lease": lease})
    assert answer.status_code == 400, answer.text
    assert "alternatives" in answer.text


def test_no_lease_moves_for_it(service: Service) -> None:
    """It would have to be solved together with them; what does not fit beside them is refused."""
    apart = {"type": "anti-affinity", "members": ["x"], "level": "host"}
    members = [{"name": "x", "count": 2, "resources": {"VCPU": 6}}]
    times = {"start": "2026-11-22T09:00:00Z", "end": "2026-11-23T09:00:00Z"}
    lease = {"name": "l", **times, "ensemble": {"members": members, "policies": [apart]}}
    answer = service.call("POST", "/leases", {"lease": lease})
    assert answer.status_code == 201, answer.text
    for decide in ({}, {"preemptible": True}, {"until": "2026-11-22T08:00:00Z"}):
        body = {"ensemble": {**described(13), "name": f"e{len(str(decide))}", "decide": decide}}
        answer = service.call("POST", "/ensembles", body)
        assert answer.status_code == 409, answer.text


def test_devices_that_only_a_later_choice_takes() -> None:
    """n2 and n4 have an FPGA each; no host has the processors of the first choice."""
    choices = [
        {"resources": {"VCPU": 1000}},
        {"flavor": "edge.small", "groups": [{"name": "f", "resources": {"FPGA": 1}}]},
        {"flavor": "edge.small"},
    ]
    found = Service((ROOT / "fleets/edge-numa.yaml").read_text("utf-8"))
    try:
        role = {"name": "v", "count": 4, "alternatives": choices}
        decided = made(found, {"name": "e", "members": [role]})["decision"]
        assert sorted(taken(decided).values()) == [1, 1, 2, 2]
    finally:
        found.close()


def test_how_many_more_of_the_whole(service: Service) -> None:
    found = made(service, described(2))
    path = {"fit": {"ensemble_id": found["ensemble"]["id"]}}
    answer = service.call("POST", "/capacity/fit", path)
    assert answer.status_code == 200, answer.text
    assert answer.json["fit"]["additional"] >= 1


def test_alternatives_without_a_common_class() -> None:
    choices = [{"resources": {"VCPU": 30}}, {"resources": {"MEMORY_MB": 1000}}]
    found = Service((ROOT / "fleets/edge.yaml").read_text("utf-8"))
    try:
        role = {"name": "u", "count": 3, "alternatives": choices}
        decided = made(found, {"name": "e", "members": [role]}, max_additional=["u"])["decision"]
        assert decided["max_additional"]["u"]["count"] > 0
    finally:
        found.close()


def test_a_fence_that_refuses_every_choice_is_explained(service: Service) -> None:
    fence = {"type": "fence", "members": ["web"], "domains": ["r2"]}
    body = {"ensemble": {**described(9, fence), "decide": {}}}
    answer = service.call("POST", "/ensembles", body, caller=OPERATOR)
    assert answer.status_code == 409, answer.text


def test_hosts_that_are_closed_to_a_tag_are_closed_to_every_choice(service: Service) -> None:
    """An ensemble keeps what is tagged away from its host; a choice of a tagged role is tagged."""
    alone = {"type": "exclusive", "members": ["x"], "level": "rack", "against": "tag:noisy"}
    quiet = {"name": "x", "count": 1, "resources": {"VCPU": 1}, "required": [AVX]}
    made(service, {"name": "quiet", "members": [quiet], "policies": [alone]})
    found = made(service, described(4, tags=["noisy"]))["decision"]
    assert set(taken(found).values()) == {1}, "the fast host is in the rack of the quiet one"
    assert len({one["domains"]["rack"] for one in found["assignments"]}) == 1


def test_a_refusal_names_members_that_stand_as_an_alternative(service: Service) -> None:
    """They were looked for by the name that stands for them while places are searched."""
    near = {"name": "near", "type": "affinity", "members": ["*"], "level": "rack"}
    either = [{"resources": {"VCPU": 16}}, {"resources": {"VCPU": 2}}]
    role = {"name": "web", "count": 1, "alternatives": either}
    found = made(service, {"name": "e", "members": [role], "policies": [near]})
    more = {"role": {"name": "db", "count": 3, "resources": {"VCPU": 6}}, "decide": {}}
    path = f"/ensembles/{found['ensemble']['id']}/members"
    answer = service.call("POST", path, {"member": more})
    assert answer.status_code == 409, answer.text
    conflict = answer.json["errors"][0]["explanation"]["conflict"]
    assert {one.get("policy") for one in conflict} > {"near"}
    assert {one.get("resources") for one in conflict} > {"db"}
    assert "|" not in str(conflict)
