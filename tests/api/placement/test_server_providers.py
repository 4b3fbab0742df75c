"""Providers that servers offer, by Placement's own API: ordinary roots, and no circles."""

from typing import Any
from uuid import uuid4

import pytest
from falcon.testing import TestClient
from tests.api.placement.test_tickets import PLACEMENT

from moorage.app import create_app
from moorage.domain.changes import Changeset, CreateProvider, PutInventories
from moorage.domain.providers import Inventory
from moorage.settings import configure, read
from moorage.store import Ledger, open_store

HOST, FIRST, SECOND = (str(uuid4()) for _ in range(3))
ANN, BOB = (str(uuid4()) for _ in range(2))


class Cloud:
    """A host; and ann's server and bob's, each of which offers units of VCPU."""

    def __init__(self, store: Ledger) -> None:
        for provider, name, offered_by in (
            (HOST, "host", None),
            (FIRST, f"server:{ANN}", ANN),
            (SECOND, f"server:{BOB}", BOB),
        ):
            stock = PutInventories(provider, (Inventory("VCPU", 8),), None)
            store.commit(Changeset((CreateProvider(provider, name, None, offered_by), stock)))
        settings = configure(read({"database": "sqlite://"}, {}, ()))
        self.client = TestClient(create_app(settings, store=store))

    def put(self, consumer: str, provider: str) -> Any:
        body = {
            "allocations": {provider: {"resources": {"VCPU": 1}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        path = f"/placement/allocations/{consumer}"
        return self.client.simulate_put(path, json=body, headers=PLACEMENT)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        return self.client.simulate_request(
            method, f"/placement{path}", json=body, headers=PLACEMENT
        )


@pytest.fixture
def cloud(database_url: str) -> Any:
    store = open_store(database_url)
    yield Cloud(store)
    store.close()


def test_one_is_listed_and_used_as_any_root(cloud: Cloud) -> None:
    found = cloud.send("GET", f"/resource_providers?name=server:{ANN}").json
    (one,) = found["resource_providers"]
    assert (one["uuid"], one["parent_provider_uuid"]) == (FIRST, None)
    assert cloud.put(ANN, HOST).status_code == 204
    assert cloud.put(str(uuid4()), FIRST).status_code == 204
    refused = cloud.send("DELETE", f"/resource_providers/{FIRST}")
    assert refused.status_code == 409
    assert refused.json["errors"][0]["code"] == "placement.resource_provider.inuse"


@pytest.mark.parametrize("shared", [False, True])
def test_no_server_is_offered_a_place_on_one(cloud: Cloud, *, shared: bool) -> None:
    """Whatever class a project offers, flavors that ask for it get hosts."""
    asked = "VCPU:1"
    if shared:
        asked, aggregates = "VCPU:1,DISK_GB:1", {"aggregates": [str(uuid4())]}
        pool = {"uuid": str(uuid4()), "name": "pool"}
        assert cloud.send("POST", "/resource_providers", pool).status_code == 200
        generation = {"resource_provider_generation": 0}
        for part, body in (
            ("inventories", {"inventories": {"DISK_GB": {"total": 9}}} | generation),
            ("traits", {"traits": ["MISC_SHARES_VIA_AGGREGATE"],
                        "resource_provider_generation": 1}),
        ):  # fmt: skip
            path = f"/resource_providers/{pool['uuid']}/{part}"
            assert cloud.send("PUT", path, body).status_code == 200
        for one in (HOST, FIRST, SECOND, pool["uuid"]):
            path = f"/resource_providers/{one}"
            known = cloud.send("GET", path).json["generation"]
            body = aggregates | {"resource_provider_generation": known}
            assert cloud.send("PUT", f"{path}/aggregates", body).status_code == 200

    def offered(**more: Any) -> list[str]:
        query = "".join(f"&{name}={value}" for name, value in more.items())
        answer = cloud.send("GET", f"/allocation_candidates?resources={asked}{query}")
        assert answer.status_code == 200, answer.text
        return [
            provider
            for one in answer.json["allocation_requests"]
            for provider, used in one["allocations"].items()
            if "VCPU" in used["resources"]
        ]

    assert cloud.put(ANN, HOST).status_code == 204
    assert offered() == offered(limit=1) == [HOST]
    assert offered(in_tree=FIRST) == []


def test_a_server_is_not_put_on_what_stands_on_it(cloud: Cloud) -> None:
    assert cloud.put(BOB, FIRST).status_code == 204
    for provider in (FIRST, SECOND):
        refused = cloud.put(ANN, provider)
        assert refused.status_code == 409
        assert f"consumer {ANN} cannot use provider {provider}" in refused.text
    assert cloud.send("GET", f"/allocations/{ANN}").json["allocations"] == {}
    assert cloud.put(ANN, HOST).status_code == 204


def test_its_name_is_its_servers(cloud: Cloud) -> None:
    refused = cloud.send("PUT", f"/resource_providers/{FIRST}", {"name": "renamed"})
    assert (refused.status_code, "is not renamed" in refused.text) == (400, True)
    assert cloud.send("GET", f"/resource_providers/{FIRST}").json["name"] == f"server:{ANN}"


def test_one_is_neither_child_nor_parent(cloud: Cloud) -> None:
    under = {"name": "card", "uuid": str(uuid4()), "parent_provider_uuid": FIRST}
    assert cloud.send("POST", "/resource_providers", under).status_code == 400
    moved = {"name": "renamed", "parent_provider_uuid": HOST}
    assert cloud.send("PUT", f"/resource_providers/{FIRST}", moved).status_code == 400
    found = cloud.send("GET", f"/resource_providers/{FIRST}").json
    assert (found["name"], found["root_provider_uuid"]) == (f"server:{ANN}", FIRST)
