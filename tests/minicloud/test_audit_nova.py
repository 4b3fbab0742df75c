"""`moorage admin audit --nova` on a running cloud: nothing where all is well, and what is not."""

from typing import Any
from uuid import uuid4

from tests.minicloud.admin import admin
from tests.minicloud.cloud import Cloud
from tests.minicloud.tenant import Operator, Tenant, eventually


def audited(cloud: Cloud) -> list[tuple[str, str]]:
    _, told = admin(cloud, "audit", "--nova", "catalog", "--keystone")
    return sorted((one["kind"], one["subject"]) for one in told["findings"])


def hosts(operator: Operator) -> dict[str, str]:
    return {one.name: one.id for one in operator.connection.placement.resource_providers()}


def write(operator: Operator, consumer: str, body: dict[str, Any]) -> None:
    answer = operator.connection.placement.put(
        f"/allocations/{consumer}", json=body, microversion="1.38"
    )
    assert answer.status_code == 204, answer.text


def test_what_differs_from_nova_is_found(cloud: Cloud, operator: Operator, demo: Tenant) -> None:
    held = demo.hold({"name": "web", "count": 2, "flavor": "m1.small"})
    servers = [demo.boot("m1.small", hints={"moorage": held["name"]})[0] for _ in range(2)]
    demo.built(*servers)
    assert audited(cloud) == []
    # Allocations of a server that Nova does not have, and a server that has none.
    stranger = str(uuid4())
    amounts = {"resources": {"VCPU": 1}}
    body = {
        "allocations": {hosts(operator)["compute1"]: amounts},
        "project_id": demo.connection.current_project_id,
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    write(operator, stranger, body)
    kept = operator.connection.placement.get(
        f"/allocations/{servers[0]}", microversion="1.38"
    ).json()
    operator.connection.placement.delete(f"/allocations/{servers[0]}")
    try:
        found = audited(cloud)
        assert ("unlisted", stranger) in found, "it is young"
        assert ("unaccounted", servers[0]) in found
    finally:
        operator.connection.placement.delete(f"/allocations/{stranger}")
        again = {**kept, "consumer_generation": None, "consumer_type": "INSTANCE"}
        again["allocations"] = {
            host: {"resources": one["resources"]} for host, one in kept["allocations"].items()
        }
        write(operator, servers[0], again)
    assert audited(cloud) == []


def test_services_and_hosts(cloud: Cloud, operator: Operator, demo: Tenant) -> None:
    name = "compute3"
    [service] = operator.nova.services(host=name, binary="nova-compute")
    traits = f"/resource_providers/{hosts(operator)[name]}/traits"
    operator.nova.disable_service(service)
    try:
        disabled = "COMPUTE_STATUS_DISABLED"
        placement = operator.connection.placement
        eventually(
            lambda: disabled in placement.get(traits, microversion="1.6").json()["traits"],
            "the trait is there",
        )
        assert audited(cloud) == []
        told = placement.get(traits, microversion="1.6").json()
        told["traits"].remove(disabled)
        assert placement.put(traits, json=told, microversion="1.6").status_code == 200
        assert audited(cloud) == [("unmarked", hosts(operator)[name])]
    finally:
        operator.nova.enable_service(service)
    eventually(lambda: audited(cloud) == [], "all is well again")
    # A provider that looks like a host, of which Nova knows nothing.
    gone = str(uuid4())
    placement.post("/resource_providers", json={"name": "left-over", "uuid": gone})
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    placement.put(f"/resource_providers/{gone}/inventories", json=stock)
    try:
        assert audited(cloud) == [("departed", gone)]
    finally:
        placement.delete(f"/resource_providers/{gone}")
