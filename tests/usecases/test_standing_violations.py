"""A server was let in where a policy does not want it: what comes after is decided beside it."""

from types import MappingProxyType
from typing import Any

import pytest

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.testing.service import OPERATOR, TENANT, Service

SERVER = "dddddddd-0000-4000-8000-0000000000aa"


@pytest.fixture
def path(service: Service) -> str:
    """Two of role db on one host, though they are to be apart; the second is a server."""
    body: dict[str, Any] = {
        "name": "pair",
        "members": [
            {"name": "db", "count": 1, "resources": {"VCPU": 2}},
            {"name": "web", "count": 1, "resources": {"VCPU": 1}},
        ],
        "policies": [{"name": "apart", "type": "anti-affinity", "members": ["db"]}],
        "decide": {},
    }
    made = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    path = f"/ensembles/{made['id']}"
    host = service.call("GET", f"{path}/members/db[0]", caller=OPERATOR).json["member"]["host"]
    snapshot = service.store.snapshot()
    provider = snapshot.uuids[snapshot.names.index(host)]
    amounts = MappingProxyType({provider: MappingProxyType({"VCPU": 2})})
    server = Consumer(SERVER, TENANT.project_id, "ann", "INSTANCE")
    service.store.commit(Changeset((ReplaceAllocations(server, amounts, None),)))
    joining = {"server_id": SERVER, "name": "db", "on_violation": "accept_and_report"}
    assert service.call("POST", f"{path}/members", {"member": joining}).status_code == 201
    return path


def changed(service: Service, path: str, change: dict[str, Any]) -> Any:
    return service.call("PATCH", path, {"ensemble": change}, headers={"If-Match": "*"})


def hosts(service: Service, path: str) -> dict[str, str]:
    told = service.call("GET", f"{path}/members", caller=OPERATOR).json["members"]
    return {one["name"]: one["host"] for one in told}


@pytest.mark.parametrize("role", ["web", "db"])
def test_more_members_come_and_make_nothing_worse(service: Service, path: str, role: str) -> None:
    count = {"web": 3, "db": 4}[role]
    grown = changed(service, path, {"members": [{"name": role, "count": count}]})
    assert grown.status_code == 200, grown.text
    (status,) = grown.json["decision"]["policies"]
    assert (status["satisfied"], status["standing"]) == (False, 1)
    at = hosts(service, path)
    dbs = [host for name, host in at.items() if name.startswith("db")]
    assert len(set(dbs)) == len(dbs) - 1
    assert at["db[0]"] == at["db[1]"]


def test_where_they_cannot_the_true_reason_is_told(service: Service, path: str) -> None:
    refused = changed(service, path, {"members": [{"name": "db", "count": 11}]})
    assert refused.status_code == 409, refused.text
    error = refused.json["errors"][0]
    assert "db[0] and db[1] break it where they stand" in str(error)


def test_a_policy_that_is_changed_must_hold_for_all(service: Service, path: str) -> None:
    stated = {"name": "apart", "level": "rack"}
    refused = changed(service, path, {"policies": [stated]})
    assert refused.status_code == 409, refused.text


@pytest.mark.parametrize("role", ["web", "db"])
def test_more_fit_one_by_one_beside_members_that_stand_too_close(
    service: Service, path: str, role: str
) -> None:
    """They keep off the same hosts whatever comes, or are not concerned at all."""
    body = {"fit": {"ensemble_id": path.removeprefix("/ensembles/"), "role": role}}
    told = service.call("POST", "/capacity/fit", body, caller=OPERATOR).json["fit"]
    assert told["exact"]
    assert told["step"] == 1
    assert told["additional"] >= 8
    for count in range(1, 4):
        more = {"members": [{"name": role, "count": {"web": 1, "db": 2}[role] + count}]}
        assert changed(service, path, more).status_code == 200
