"""Servers of a role that belongs to another project, as Nova asks and writes."""

from typing import Any
from uuid import uuid4

from falcon.testing import TestClient
from tests.api.placement.test_exclusive_policy import Serve, serve
from tests.api.placement.test_tickets import ADMIN, NATIVE, PLACEMENT

__all__ = ["serve"]
OTHER = {"X-Auth-Token": "bob:other", "X-Roles": "member"}
ROLE = {"name": "db", "count": 2, "flavor": "m1.small", "project": "other"}
WEB = {"name": "web", "count": 2, "flavor": "m1.small"}
BESIDE = {"name": "beside", "type": "affinity", "members": ["web", "db"], "level": "host"}
ALONE = {"name": "alone", "type": "exclusive", "members": ["web"], "level": "host"}


class Shop:
    """A held ensemble of project `shop` with a role of project `other`, all on one host."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        body = {"name": "shop", "members": [WEB, ROLE], "policies": [BESIDE, ALONE]}
        self.id = self.native("POST", "/ensembles", {"ensemble": body})["ensemble"]["id"]
        (share,) = self.native("GET", "/shares", caller=OTHER)["shares"]
        self.native("POST", f"/shares/{share['id']}/accept", caller=OTHER)
        self.share = share["id"]
        decision = {"decision": {"ensemble_id": self.id, "hold": "PT10M"}}
        self.decision = self.native("POST", "/decisions", decision)["decision"]["id"]

    def native(self, method: str, path: str, body: Any = None, caller: Any = NATIVE) -> Any:
        answer = self.client.simulate_request(method, f"/v1{path}", json=body, headers=caller)
        assert answer.status_code < 300, answer.text
        return answer.json

    def place(self, caller: Any) -> tuple[str, dict[str, int]]:
        """The only host, and what a server of the caller's flavor asks for."""
        shown = self.native("GET", f"/decisions/{self.decision}", caller=caller)["decision"]
        (flavor,) = shown["ticket_flavors"]
        asked = self.amounts()
        asked[flavor["resource_class"]] = 1
        query = ",".join(f"{name}:{amount}" for name, amount in asked.items())
        path = f"/placement/allocation_candidates?resources={query}"
        answer = self.client.simulate_get(path, headers=PLACEMENT)
        (request,) = answer.json["allocation_requests"]
        (host,) = request["allocations"]
        return host, asked

    def amounts(self) -> dict[str, int]:
        found = self.client.simulate_get("/v1/flavors/m1.small", headers=ADMIN).json["flavor"]
        return dict(found["resources"])

    def put(self, host: str, amounts: dict[str, int], project: str, **headers: str) -> Any:
        body = {
            "allocations": {host: {"resources": amounts}},
            "project_id": project,
            "user_id": "bob",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        path = f"/placement/allocations/{uuid4()}"
        return self.client.simulate_put(path, json=body, headers=PLACEMENT | headers)

    def statuses(self) -> dict[str, str]:
        members = self.native("GET", f"/ensembles/{self.id}/members", caller=ADMIN)["members"]
        return {one["name"]: one["status"] for one in members}

    def usage(self, project: str) -> int:
        path = f"/placement/usages?project_id={project}"
        found = self.client.simulate_get(path, headers=PLACEMENT).json["usages"]
        return int(sum(one.get("VCPU", 0) for one in found.values()))


def test_tickets_of_a_role_are_its_projects(serve: Serve) -> None:
    shop = Shop(serve())
    host, amounts = shop.place(OTHER)
    refused = shop.put(host, amounts, "shop")
    assert refused.status_code == 409
    assert "the ticket of role db of ensemble shop is another project's" in refused.text
    assert shop.put(host, amounts, "other").status_code == 204
    assert (shop.usage("other"), shop.usage("shop")) == (1, 0)
    host, amounts = shop.place(NATIVE)
    assert shop.put(host, amounts, "other").status_code == 409
    assert shop.put(host, amounts, "shop").status_code == 204
    assert sorted(shop.statuses().values()) == ["active", "active", "held", "held"]


def test_members_of_the_ensemble_are_no_foreigners(serve: Serve) -> None:
    shop = Shop(serve(foreign_servers="refuse"))
    host, amounts = shop.place(OTHER)
    assert shop.put(host, amounts, "other").status_code == 204, "a member, of another project"
    foreign = shop.put(host, shop.amounts(), "other")
    assert foreign.status_code == 409, "a server of the same project that is no member"
    assert "is exclusive to others" in foreign.text
    found = shop.native("GET", f"/ensembles/{shop.id}?compliance=true")["ensemble"]
    assert found["compliance"] == []


def test_a_claim_is_presented_by_its_own_project(serve: Serve) -> None:
    shop = Shop(serve())
    body = {"claim": {"member": "db[0]", "server": {"flavor": "m1.small"}}}
    claim = shop.native("POST", f"/decisions/{shop.decision}/claims", body, OTHER)["claim"]
    host, _ = shop.place(OTHER)
    presented = {"X-Openstack-Request-Id": f"req-{claim['id']}"}
    shop.put(host, shop.amounts(), "shop", **presented)
    assert shop.statuses()["db[0]"] == "building", "not by the ensemble's project"
    assert shop.put(host, shop.amounts(), "other", **presented).status_code == 204
    assert shop.statuses()["db[0]"] == "active"
    events = shop.native("GET", "/events?type=claim.active", caller=OTHER)["events"]
    assert len(events) == 1


def test_without_the_share_the_ticket_has_no_place(serve: Serve) -> None:
    shop = Shop(serve())
    host, amounts = shop.place(OTHER)
    shop.native("POST", f"/shares/{shop.share}/revoke")
    refused = shop.put(host, amounts, "other")
    assert refused.status_code == 409
    assert "has no place left" in refused.text
