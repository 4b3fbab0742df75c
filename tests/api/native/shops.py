"""An ensemble of project A with a role of project B, as tests call it."""

from typing import Any
from uuid import uuid4

import pytest

from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.ports import Caller

__all__ = ["accepted", "offered", "placed"]

STRANGER = Caller("eve", "project-c", frozenset({"member"}))
READS_B = Caller("rob", "project-b", frozenset({"reader"}))
SIZE = {"VCPU": 1, "MEMORY_MB": 1024}
WEB = {
    "name": "web",
    "count": 2,
    "resources": {"VCPU": 2, "MEMORY_MB": 2048},
    "tags": ["secret-tag"],
    "server": {"user_data": "secret-user-data", "image": "secret-image"},
}
DB = {"name": "db", "count": 2, "resources": SIZE, "project": "project-b"}
APART = {"name": "db-apart", "type": "anti-affinity", "members": ["db"], "level": "host"}
PAIR = {"name": "pair", "type": "proximity", "zip": ["web", "db"], "level": "rack"}
OWN = {
    "name": "secret-policy",
    "type": "spread",
    "members": ["web"],
    "level": "rack",
    "max_skew": 9,
}
DESCRIPTION = {
    "name": "shop",
    "metadata": {"secret-key": "secret-value"},
    "members": [WEB, DB],
    "policies": [APART, PAIR, OWN],
}


class Shop:
    """An ensemble of project A with a role of project B."""

    def __init__(self, service: Service, **changed: Any) -> None:
        self.service = service
        made = service.call("POST", "/ensembles", {"ensemble": {**DESCRIPTION, **changed}})
        assert made.status_code == 201, made.text
        self.id = made.json["ensemble"]["id"]

    @property
    def share(self) -> str:
        """The present share's id."""
        roles = self.seen(OPERATOR)["members"]
        (share,) = (one["share"]["id"] for one in roles if one["name"] == "db")
        return str(share)

    def post(self, path: str, body: object = None, caller: Caller = TENANT) -> Any:
        return self.service.call("POST", path, body, caller=caller)

    def accept(self, caller: Caller = OTHER) -> Any:
        return self.post(f"/shares/{self.share}/accept", caller=caller)

    def revoke(self, caller: Caller = OTHER) -> Any:
        return self.post(f"/shares/{self.share}/revoke", caller=caller)

    def decide(self, **options: Any) -> Any:
        body = {"decision": {"ensemble_id": self.id, "hold": "PT10M", **options}}
        return self.post("/decisions", body)

    def change(self, **fields: Any) -> Any:
        headers = {"If-Match": "*"}
        body = {"ensemble": fields}
        return self.service.call("PATCH", f"/ensembles/{self.id}", body, headers=headers)

    def seen(self, caller: Caller = TENANT) -> Any:
        answer = self.service.call("GET", f"/ensembles/{self.id}", caller=caller)
        assert answer.status_code == 200, answer.text
        return answer.json["ensemble"]

    def members(self, caller: Caller = OPERATOR) -> dict[str, Any]:
        answer = self.service.call("GET", f"/ensembles/{self.id}/members", caller=caller)
        return {one["name"]: one for one in answer.json["members"]}

    def decision(self) -> str:
        return str(self.seen()["decision"]["id"])

    def claim(self, member: str, caller: Caller = OTHER, resources: Any = None) -> Any:
        size = resources or (SIZE if member.startswith("db") else WEB["resources"])
        body = {"claim": {"member": member, "server": {"resources": size}}}
        return self.post(f"/decisions/{self.decision()}/claims", body, caller)

    def boot(self, member: str, caller: Caller = OTHER) -> str:
        """Claim a place and report its server; the server's id."""
        claim = self.claim(member, caller).json["claim"]["id"]
        server = str(uuid4())
        body = {"claim": {"status": "active", "server_id": server}}
        done = self.service.call("PATCH", f"/claims/{claim}", body, caller=caller)
        assert done.status_code == 200, done.text
        return server

    def booked(self, consumer: str) -> set[tuple[str, str]]:
        """Project and state of a consumer's bookings."""
        found = self.service.store.bookings(consumer=consumer)
        return {(owner.project_id, booking.state.value) for owner, booking in found}

    def events(self, caller: Caller, type_: str) -> list[Any]:
        query = {"type": type_}
        answer = self.service.call("GET", "/events", caller=caller, query=query)
        return [one["body"] for one in answer.json["events"]]


@pytest.fixture
def offered(service: Service) -> Shop:
    return Shop(service)


@pytest.fixture
def accepted(offered: Shop) -> Shop:
    assert offered.accept().status_code == 200
    return offered


@pytest.fixture
def placed(accepted: Shop) -> Shop:
    made = accepted.decide()
    assert made.status_code == 201, made.text
    return accepted
