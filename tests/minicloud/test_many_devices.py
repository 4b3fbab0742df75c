"""Servers with several devices of hosts with many: Nova filters the candidates that it gets.

Four of 16 devices are 43,680 candidates a host. Nova asks for 1,000 in all; for any number where a
server has a hint of a group, of which the setting `max_allocation_candidates` leaves 1,000 here. If
they were of one host, a server that may not go there would find "No valid host" in an empty cloud.
"""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.minicloud import moves
from tests.minicloud.cloud import Cloud
from tests.minicloud.tenant import Operator, Tenant

DEVICE = "CUSTOM_GPU"
PER_HOST = 16
ASKED = 4


@pytest.fixture
def flavor(cloud: Cloud, operator: Operator) -> Iterator[str]:
    """A flavor of four devices, and the devices on every host."""
    placement, name = operator.placement, "gpus"
    operator.placement.default_microversion = "1.39"
    assert placement.put(f"/resource_classes/{DEVICE}").status_code < 300
    made = []
    hosts = {one.name: one.id for one in placement.resource_providers()}
    for host in cloud.layout.computes:
        for number in range(PER_HOST):
            uuid = str(uuid4())
            device = {"name": f"{host}-gpu-{number}", "uuid": uuid}
            body = {**device, "parent_provider_uuid": hosts[host]}
            assert placement.post("/resource_providers", json=body).status_code == 200
            made.append(uuid)
            stock = {"resource_provider_generation": 0, "inventories": {DEVICE: {"total": 1}}}
            answer = placement.put(f"/resource_providers/{uuid}/inventories", json=stock)
            assert answer.status_code == 200, answer.text
    specs = {f"resources{n}:{DEVICE}": "1" for n in range(1, ASKED + 1)}
    found = operator.nova.create_flavor(name=name, vcpus=1, ram=512, disk=1)
    operator.nova.create_flavor_extra_specs(found, {**specs, "group_policy": "isolate"})
    yield name
    operator.nova.delete_flavor(found)
    for uuid in made:
        placement.delete(f"/resource_providers/{uuid}")
    placement.delete(f"/resource_classes/{DEVICE}")


def devices(operator: Operator, server: str) -> set[str]:
    """The host's name and its devices that the server has."""
    return {name for name, amounts in operator.allocations(server).items() if DEVICE in amounts}


def test_servers_of_a_group_with_devices_are_placed_apart_and_evacuated(
    operator: Operator, flavor: str, demo: Tenant
) -> None:
    group = demo.nova.create_server_group(name="apart", policy="anti-affinity")
    try:
        servers = []
        for _ in range(2):
            [server] = demo.boot(flavor, hints={"group": group.id})
            demo.built(server)
            servers.append(server)
        first, second = (operator.host(one) for one in servers)
        assert first != second
        for server in servers:
            assert {one.partition("-gpu-")[0] for one in devices(operator, server)} == {
                operator.host(server)
            }
            assert len(devices(operator, server)) == ASKED
        moves.evacuate(operator, demo, servers[0])
        assert operator.host(servers[0]) not in {first, second}
        assert len(devices(operator, servers[0])) == ASKED
    finally:
        demo.nova.delete_server_group(group)
