"""Story A over the API: the numbers are the mission's."""

import re
from typing import Any

from moorage.testing.service import OPERATOR, Service

SERVER = {"flavorRef": "m1.xlarge", "imageRef": "debian", "networks": ["shop-net"]}
FLAVORS = {"web": "m1.small", "app": "m1.medium", "db": "m1.xlarge"}


def servers_of(service: Service, decision: str) -> None:
    """Claim and activate every member."""
    for role, flavor in FLAVORS.items():
        for index in range(3):
            claim = service.call(
                "POST",
                f"/decisions/{decision}/claims",
                {"claim": {"member": f"{role}[{index}]", "server": {"flavorRef": flavor}}},
            )
            assert claim.status_code == 201, claim.text
            ended = service.call(
                "PATCH",
                f"/claims/{claim.json['claim']['id']}",
                {"claim": {"status": "active", "server_id": server_id(role, index)}},
            )
            assert ended.status_code == 200, ended.text


def server_id(role: str, index: int) -> str:
    return f"00000000-0000-4000-8000-{ord(role[0]):06x}{index:06x}"


def test_a_dry_run_judges_and_writes_nothing(service: Service, shop: dict[str, Any]) -> None:
    answer = service.call(
        "POST", "/ensembles", {"ensemble": {**shop, "decide": {}}}, query={"dry_run": "1"}
    )
    assert answer.status_code == 200
    assert answer.json["dry_run"] is True
    assert len(answer.json["decision"]["assignments"]) == 9
    assert service.call("GET", "/ensembles").json["ensembles"] == []
    assert not service.store.bookings(decision=answer.json["decision"]["id"])


def test_exactly_five_more_web_servers_fit(service: Service, shop: dict[str, Any]) -> None:
    answer = service.call(
        "POST",
        "/ensembles",
        {"ensemble": {**shop, "decide": {"hold": "10m", "max_additional": ["web"]}}},
        caller=OPERATOR,
    )
    decision = answer.json["decision"]
    assert decision["max_additional"] == {"web": {"count": 5, "exact": True, "step": 1}}
    assert decision["expires_at"] == "2026-11-21T09:10:00Z"
    assert decision["solve"]["optimal"] is True
    assert (decision["solve"]["gap"], decision["solve"]["ended"]) == (0.0, "proved")
    assert [one["satisfied"] for one in decision["policies"]] == [True] * 4
    racks = {one["domains"]["rack"] for one in decision["assignments"] if "db" in one["member"]}
    assert racks == {"r1", "r2", "r3"}


def test_a_tenant_is_told_a_number_that_is_surely_there(
    service: Service, shop: dict[str, Any]
) -> None:
    asked = {**shop, "decide": {"hold": "10m", "max_additional": ["web", "app"]}}
    made = service.call("POST", "/ensembles", {"ensemble": asked}).json
    assert made["decision"]["max_additional"] == {
        "web": {"count": 5, "exact": False, "step": 1},
        "app": {"count": 10, "exact": False, "step": 1},
    }


def test_a_claim_is_compared_with_the_description(service: Service, held: dict[str, Any]) -> None:
    path = f"/decisions/{held['decision']['id']}/claims"
    claim = service.call("POST", path, {"claim": {"member": "db[0]", "server": SERVER}})
    assert claim.status_code == 201
    made = claim.json["claim"]
    assert made["status"] == "building"
    assert made["present_as"]["header"] == {"X-Openstack-Request-Id": f"req-{made['id']}"}
    ignored = [one["path"] for one in made["comparison"]["diff"] if one["effect"] == "ignored"]
    assert ignored == ["imageRef", "networks"]

    wrong = {"claim": {"member": "db[1]", "server": {**SERVER, "flavorRef": "m1.2xlarge"}}}
    refused = service.call("POST", path, wrong)
    error = refused.json["errors"][0]
    assert (refused.status_code, error["code"]) == (409, "ensemble.description_mismatch")
    assert {
        "path": "flavor.VCPU",
        "described": 8,
        "requested": 16,
        "effect": "exceeds",
    } in error["diff"]
    assert error["remedies"] == [
        "resubmit_as_described",
        "redecide_member",
        "supersede_decision",
    ]


def test_growth_that_cannot_be_names_a_minimal_conflict(
    service: Service, held: dict[str, Any]
) -> None:
    servers_of(service, held["decision"]["id"])
    confirmed = service.call("POST", f"/decisions/{held['decision']['id']}/confirm", {})
    assert confirmed.status_code == 200
    assert {name: confirmed.json[name] for name in ("claimed", "released", "members")} == {
        "claimed": 9,
        "released": 0,
        "members": 9,
    }
    assert confirmed.json["decision"]["status"] == "closed"

    grown = service.call(
        "PATCH",
        f"/ensembles/{held['ensemble']['id']}",
        {
            "ensemble": {
                "members": [{"name": "db", "count": 4}],
                "policies": [{"name": "db-ha", "keep": 3}],
            }
        },
        caller=OPERATOR,
        headers={"If-Match": "*"},
        query={"dry_run": "true"},
    )
    assert grown.status_code == 409
    why = grown.json["errors"][0]["explanation"]
    assert (why["verdict"], why["stage"], why["minimal"]) == ("infeasible", "policy", True)
    assert why["conflict"] == [
        {"policy": "db-ha", "needs": "4 racks for 4 x db (max 1 per rack)"},
        {"topology": "racks usable for m1.xlarge", "have": 3, "needed": 4},
    ]
    assert [(one["change"], one["verified"]) for one in why["relaxations"]] == [
        ({"policy": "db-ha", "keep": [3, 2]}, True),
        ({"member": "db", "count": [4, 5]}, True),
    ]
    shown = service.call("GET", f"/ensembles/{held['ensemble']['id']}").json["ensemble"]
    assert [role["count"] for role in shown["members"]] == [3, 3, 3]


def test_each_relaxation_applied_is_feasible(service: Service, held: dict[str, Any]) -> None:
    for count, keep in ((4, 2), (5, 3)):
        answer = service.call(
            "PATCH",
            f"/ensembles/{held['ensemble']['id']}",
            {
                "ensemble": {
                    "members": [{"name": "db", "count": count}],
                    "policies": [{"name": "db-ha", "keep": keep}],
                }
            },
            headers={"If-Match": "*"},
            query={"dry_run": "true"},
        )
        assert answer.status_code == 200, answer.text
        assert len(answer.json["decision"]["assignments"]) == 6 + count


def test_the_shop_survives_a_rack(service: Service, held: dict[str, Any]) -> None:
    path = f"/ensembles/{held['ensemble']['id']}/survivability"
    found = {one["level"]: one["roles"] for one in service.call("GET", path).json["survivability"]}
    db = next(one for one in found["rack"] if one["role"] == "db")
    kept = {"role": "db", "total": 3, "in_service": 3, "keeps": 2, "needed": 2, "ok": True}
    assert db == {**kept, "hosts_left": None, "hosts_needed": None}
    web = next(one for one in found["host"] if one["role"] == "web")
    assert web["keeps"] == 2


def test_what_a_loss_takes_is_placed_again_or_not(service: Service, held: dict[str, Any]) -> None:
    path = f"/ensembles/{held['ensemble']['id']}/survivability"
    seen = {
        one["level"]: one
        for one in service.call("GET", path, caller=OPERATOR).json["survivability"]
    }
    # Only one host of r3 takes a db, and the web members are spread over all three racks.
    assert (seen["rack"]["again"], seen["rack"]["stuck"]) == ("refused", ["r1", "r2", "r3"])
    assert (seen["host"]["again"], seen["host"]["stuck"]) == ("refused", ["h7"])
    web = next(one for one in seen["host"]["roles"] if one["role"] == "web")
    assert (web["hosts_left"], web["hosts_needed"]) == (8, 3)
    mine = {one["level"]: one for one in service.call("GET", path).json["survivability"]}
    labels = mine["rack"]["stuck"]
    assert len(labels) == 3
    assert all(re.fullmatch("r-[a-z0-9]{5}", one) for one in labels)
    told = next(one for one in mine["host"]["roles"] if one["role"] == "web")
    assert told["hosts_left"] != 8
    assert told["hosts_needed"] == 3


def test_tenants_see_their_own_labels_and_no_names(service: Service, held: dict[str, Any]) -> None:
    text = service.call("GET", f"/ensembles/{held['ensemble']['id']}").text
    names = [f'"h{i}"' for i in range(1, 10)] + ['"r1"', '"r2"', '"r3"', '"az1"']
    assert not [name for name in names if name in text]
    assert '"allocations"' not in text
    decision = held["decision"]["id"]
    mine = service.call("GET", f"/decisions/{decision}").json["decision"]["assignments"]
    theirs = service.call("GET", f"/decisions/{decision}", caller=OPERATOR).json["decision"]
    by_label: dict[str, set[str]] = {}
    for label, name in zip(mine, theirs["assignments"], strict=True):
        by_label.setdefault(label["domains"]["rack"], set()).add(name["domains"]["rack"])
    assert len(by_label) == 3
    assert all(len(names) == 1 for names in by_label.values())
    assert theirs["assignments"][0]["host"] in {f"h{i}" for i in range(1, 10)}
