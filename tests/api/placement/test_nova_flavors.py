"""Flavors of Nova from the listing to the host: held, asked for as Nova does, and taken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from falcon.testing import TestClient

from moorage.app import create_app
from moorage.client.discovery import OPERATOR_TOKEN
from moorage.domain.nova.server_request import NovaRules, translate
from moorage.domain.nova_servers import FlavorSize, NovaServer
from moorage.settings import configure, read
from moorage.settings.configs import Settings
from moorage.testing import in_process
from moorage.testing.ledger_copy import private_ledger

ALIAS = {"name": "nic", "vendor_id": "8086", "product_id": "154c"}
FLEET = """
fleet: devices
hosts:
  - &plain
    name: plain
    inventories: {VCPU: 16, PCPU: 8, MEMORY_MB: 65536, DISK_GB: 200}
    traits: [COMPUTE_NODE, HW_CPU_HYPERTHREADING]
  - name: gpu
    inventories: {VCPU: 16, PCPU: 8, MEMORY_MB: 65536, DISK_GB: 200}
    traits: [COMPUTE_NODE, COMPUTE_NET_VIRTIO_PACKED]
    children:
      - {name: gpu0, inventories: {VGPU: 1}, traits: [HW_GPU_API_VULKAN]}
      - {name: gpu1, inventories: {VGPU: 1}, traits: [HW_GPU_API_VULKAN]}
      - {name: nic0, inventories: {CUSTOM_PCI_8086_154C: 2}}
"""
SIZE = {"RAM": 2048, "Disk": 20, "Ephemeral": 0, "VCPUs": 4, "Swap": 0}
SPECS: Mapping[str, dict[str, str]] = {
    "pinned": {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"},
    "mixed": {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1"},
    "two-gpus": {
        "resources1:VGPU": "1",
        "trait1:HW_GPU_API_VULKAN": "required",
        "resources2:VGPU": "1",
        "group_policy": "isolate",
    },
    "nics": {"pci_passthrough:alias": "nic:2"},
    "packed": {"hw:virtio_packed_ring": "true", "quota:cpu_shares": "10"},
    "nodes": {"hw:numa_nodes": "2", "hw:mem_page_size": "large"},
    "plain": {},
    "labelled": {"scs:name-v2": "SCS-2-4", "acme:cpu:kind": "shared"},
}
ADMIN = {"X-Auth-Token": OPERATOR_TOKEN}
PLACEMENT = {"X-Auth-Token": OPERATOR_TOKEN, "OpenStack-API-Version": "placement 1.39"}
TENANT = {"X-Auth-Token": "ann:shop", "X-Roles": "member"}


class Cloud:
    """A ledger of two hosts with Nova's flavors loaded."""

    def __init__(self, client: TestClient, settings: Settings) -> None:
        self.client, self.rules = client, settings.limits.nova

    def native(self, method: str, path: str, body: Any = None, **expected: int) -> Any:
        answer = self.client.simulate_request(method, f"/v1{path}", json=body, headers=TENANT)
        assert answer.status_code == expected.get("status", answer.status_code), answer.text
        return answer.json

    def held(self, role: dict[str, Any]) -> Any:
        """A held decision of one role."""
        members = [{"name": "a", "count": 1, **role}]
        body = {"ensemble": {"name": str(uuid4()), "members": members, "decide": {"hold": "PT10M"}}}
        return self.native("POST", "/ensembles", body, status=201)

    def places(self, made: Any) -> dict[str, dict[str, int]]:
        """Provider's name -> what the decision holds there."""
        path = f"/v1/decisions/{made['decision']['id']}"
        (found,) = self.client.simulate_get(path, headers=ADMIN).json["decision"]["assignments"]
        names = self.names()
        return {names[one]: amounts for one, amounts in found["allocations"].items()}

    def names(self) -> dict[str, str]:
        """Provider's UUID -> its name, without those of its ancestors."""
        found = self.client.simulate_get("/placement/resource_providers", headers=PLACEMENT).json
        providers = found["resource_providers"]
        return {one["uuid"]: one["name"].rpartition("/")[2] for one in providers}

    def ask_as_nova(self, server: NovaServer) -> Any:
        """Nova's query for a server."""
        query = urlencode(sorted(nova_query(server, self.rules)))
        path = f"/placement/allocation_candidates?{query}"
        answer = self.client.simulate_get(path, headers=PLACEMENT)
        assert answer.status_code == 200, answer.text
        return answer.json["allocation_requests"]

    def write_as_nova(self, allocations: Any) -> Any:
        body = {
            "allocations": allocations,
            "project_id": "shop",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        path = f"/placement/allocations/{uuid4()}"
        return self.client.simulate_put(path, json=body, headers=PLACEMENT)


def nova_query(server: NovaServer, rules: NovaRules) -> Iterator[tuple[str, str]]:
    """The query of Nova for a server, as `ResourceRequest.to_querystring` writes it."""
    asked = translate(server, rules)
    groups = [("", asked.resources, asked.required, asked.forbidden)]
    groups += [(one.name, one.resources, one.required, one.forbidden) for one in asked.groups]
    for suffix, resources, any_of, forbidden in groups:
        required = frozenset().union(*any_of)
        yield f"resources{suffix}", ",".join(f"{name}:{n}" for name, n in resources.items())
        if required or forbidden:
            yield f"required{suffix}", ",".join([*required, *(f"!{one}" for one in forbidden)])
    if asked.root_required:
        yield "root_required", ",".join(sorted(asked.root_required))
    if len(asked.groups) > 1:
        yield "group_policy", "isolate" if asked.isolate else "none"


def ticket_server(flavor: Any) -> NovaServer:
    """A server with a ticket's flavor."""
    numbers = (flavor[key] for key in ("vcpus", "ram", "disk", "ephemeral", "swap"))
    return NovaServer(FlavorSize(*numbers), flavor["extra_specs"], {})


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    given = {"database": "sqlite://", "pci_in_placement": "true", "pci_alias": [json.dumps(ALIAS)]}
    settings = configure(read(given, {}, files=()))
    store = private_ledger(fleet=FLEET)
    try:
        application = create_app(settings, store=store)
        with in_process.client(application) as operator:
            rows = [
                {**SIZE, "ID": name, "Name": name, "Properties": specs}
                for name, specs in SPECS.items()
            ]
            loaded = operator.flavors.load(rows)
            assert loaded.body["refused"] == []
        yield Cloud(TestClient(application), settings)
    finally:
        store.close()


@pytest.mark.parametrize(
    ("flavor", "expected"),
    [
        ("pinned", {"plain": {"PCPU": 4, "MEMORY_MB": 2048, "DISK_GB": 20}}),
        ("packed", {"gpu": {"VCPU": 4, "MEMORY_MB": 2048, "DISK_GB": 20}}),
        (
            "two-gpus",
            {
                "gpu": {"VCPU": 4, "MEMORY_MB": 2048, "DISK_GB": 20},
                "gpu0": {"VGPU": 1},
                "gpu1": {"VGPU": 1},
            },
        ),
        (
            "nics",
            {
                "gpu": {"VCPU": 4, "MEMORY_MB": 2048, "DISK_GB": 20},
                "nic0": {"CUSTOM_PCI_8086_154C": 2},
            },
        ),
    ],
)
def test_a_role_gets_what_nova_asks_for_its_flavor(
    cloud: Cloud, flavor: str, expected: dict[str, dict[str, int]]
) -> None:
    assert cloud.places(cloud.held({"flavor": flavor})) == expected


@pytest.mark.parametrize("flavor", SPECS)
def test_nova_finds_and_takes_the_held_place_by_the_ticket(cloud: Cloud, flavor: str) -> None:
    made = cloud.held({"flavor": flavor})
    (ticket,) = made["decision"]["ticket_flavors"]
    found = cloud.ask_as_nova(ticket_server(ticket))
    held = cloud.places(made)
    seen = [
        {cloud.names()[uuid]: dict(one["resources"]) for uuid, one in each["allocations"].items()}
        for each in found
    ]
    name = ticket["resource_class"]
    for one in seen:
        assert sum(amounts.pop(name, 0) for amounts in one.values()) == 1
    assert held in seen
    assert cloud.write_as_nova(found[seen.index(held)]["allocations"]).status_code == 204
    path = f"/ensembles/{made['ensemble']['id']}/members"
    assert [one["status"] for one in cloud.native("GET", path)["members"]] == ["active"]


def test_labels_are_listed_and_stay_with_the_ticket(cloud: Cloud) -> None:
    shown = cloud.native("GET", "/flavors/labelled")["flavor"]
    assert shown["labels"] == ["acme:cpu:kind", "scs:name-v2"]
    (ticket,) = cloud.held({"flavor": "labelled"})["decision"]["ticket_flavors"]
    assert SPECS["labelled"].items() <= ticket["extra_specs"].items()


def test_an_image_and_a_root_volume_change_what_is_asked(cloud: Cloud) -> None:
    pinned = cloud.held({"flavor": "plain", "image_properties": {"hw_cpu_policy": "dedicated"}})
    assert next(iter(cloud.places(pinned).values()))["PCPU"] == 4
    volume = cloud.held({"flavor": "plain", "boot_from_volume": True})
    assert "DISK_GB" not in next(iter(cloud.places(volume).values()))
    (role,) = volume["ensemble"]["members"]
    assert role["boot_from_volume"] is True
    assert role["image_properties"] is None


def test_what_only_nova_can_check_is_named(cloud: Cloud) -> None:
    (role,) = cloud.held({"flavor": "nodes"})["ensemble"]["members"]
    assert role["host_checks"] == ["hw:numa_nodes", "hw:mem_page_size"]


@pytest.mark.parametrize(
    ("role", "path", "word"),
    [
        (
            {"flavor": "pinned", "image_properties": {"hw_cpu_thread_policy": "isolate"}},
            "members[0].flavor.hw:cpu_thread_policy",
            "the image isolate",
        ),
        (
            {"flavor": "plain", "image_properties": {"hw_unheard_of": "x"}},
            "members[0].image_properties.hw_unheard_of",
            "not known",
        ),
        (
            {"resources": {"VCPU": 1}, "boot_from_volume": True},
            "members[0].boot_from_volume",
            "has no flavor",
        ),
        (
            {"flavor": "two-gpus", "groups": [{"name": "1", "resources": {"VGPU": 1}}]},
            "members[0].groups",
            "a group of the name 1",
        ),
    ],
)
def test_contradictions_are_refused_by_name(
    cloud: Cloud, role: dict[str, Any], path: str, word: str
) -> None:
    body = {"ensemble": {"name": "x", "members": [{"name": "a", "count": 1, **role}]}}
    (error,) = cloud.native("POST", "/ensembles", body, status=400)["errors"]
    assert error["path"] == path
    assert word in error["detail"]


def test_a_trait_that_no_host_has_itself_is_named(cloud: Cloud) -> None:
    sound = {"name": "sound", "vcpus": 1, "ram": 512, "extra_specs": {"hw:sound_model": "virtio"}}
    path = "/v1/flavors"
    made = cloud.client.simulate_post(path, json={"flavor": sound}, headers=ADMIN)
    assert made.json["flavor"]["root_required"] == ["COMPUTE_SOUND_MODEL_VIRTIO"]
    members = [{"name": "a", "count": 1, "flavor": "sound"}]
    body = {"ensemble": {"name": "x", "members": members, "decide": {}}}
    refused = json.dumps(cloud.native("POST", "/ensembles", body, status=409))
    assert "hosts with COMPUTE_SOUND_MODEL_VIRTIO for 1 x a" in refused


def test_ports_ask_for_what_neutron_says(cloud: Cloud) -> None:
    port = {
        "name": "data",
        "resource_request": {
            "request_groups": [
                {"id": str(uuid4()), "required": [], "resources": {"CUSTOM_PCI_8086_154C": 1}}
            ],
            "same_subtree": [],
        },
    }
    held = cloud.places(cloud.held({"flavor": "plain", "ports": [port]}))
    assert held["nic0"] == {"CUSTOM_PCI_8086_154C": 1}


@pytest.mark.parametrize(
    ("server", "verdict"),
    [
        ({"flavorRef": "two-gpus"}, "matches"),
        ({"flavorRef": "plain"}, "narrower"),
        ({"flavorRef": "two-gpus", "boot_from_volume": True}, "narrower"),
        ({"flavorRef": "packed"}, None),
        ({"flavorRef": "nics"}, None),
    ],
)
def test_a_claim_is_compared_with_all_that_its_flavor_asks(
    cloud: Cloud, server: dict[str, Any], verdict: str | None
) -> None:
    made = cloud.held({"flavor": "two-gpus"})
    path = f"/decisions/{made['decision']['id']}/claims"
    body = {"claim": {"member": "a[0]", "server": server}}
    answer = cloud.native("POST", path, body, status=409 if verdict is None else 201)
    if verdict is not None:
        assert answer["claim"]["comparison"]["verdict"] == verdict
