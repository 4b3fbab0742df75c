"""Flavors with extra specs: held as Nova asks for them, and taken by Nova's own servers."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.minicloud.cloud import Cloud
from tests.minicloud.contents import load_flavors
from tests.minicloud.tenant import Operator, Tenant
from tests.minicloud.test_ticket_flavors import flavor_of, places

SIZE = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 3}


@pytest.fixture
def fpgas(cloud: Cloud, operator: Operator) -> Iterator[str]:
    """The name of a compute with two devices below it, each of one CUSTOM_FPGA."""
    placement = operator.connection.placement
    placement.put("/resource_classes/CUSTOM_FPGA", microversion="1.7")
    placement.put("/traits/CUSTOM_XCU250", microversion="1.6")
    host = next(one for one in placement.resource_providers() if one.name.endswith("2"))
    devices = [str(uuid4()), str(uuid4())]
    for number, uuid in enumerate(devices):
        body: dict[str, Any] = {"name": f"fpga{number}", "uuid": uuid}
        body["parent_provider_uuid"] = host.id
        placement.post("/resource_providers", json=body, microversion="1.20").raise_for_status()
        path = f"/resource_providers/{uuid}"
        stock = {"resource_provider_generation": 0, "inventories": {"CUSTOM_FPGA": {"total": 1}}}
        placement.put(f"{path}/inventories", json=stock, microversion="1.20").raise_for_status()
        traits = {"resource_provider_generation": 1, "traits": ["CUSTOM_XCU250"]}
        placement.put(f"{path}/traits", json=traits, microversion="1.20").raise_for_status()
    yield str(host.name)
    for uuid in devices:
        placement.delete(f"/resource_providers/{uuid}").raise_for_status()
    # A compute keeps what it has read, and fails when it is gone.
    cloud.program(host.name).stop()
    cloud.start(host.name)


def loaded_flavor(operator: Operator, **specs: str) -> str:
    """The name of a new flavor of Nova, which Moorage has loaded."""
    name = f"f{uuid4().hex[:8]}"
    made = operator.nova.create_flavor(name=name, vcpus=2, ram=1024, disk=1, ephemeral=1, swap=512)
    operator.nova.create_flavor_extra_specs(made, specs)
    load_flavors(operator.cloud, operator.connection)
    return name


def test_numbered_groups_are_held_and_taken(operator: Operator, fpgas: str, demo: Tenant) -> None:
    flavor = loaded_flavor(
        operator,
        **{
            "resources1:CUSTOM_FPGA": "1",
            "trait1:CUSTOM_XCU250": "required",
            "resources2:CUSTOM_FPGA": "1",
            "group_policy": "isolate",
            "quota:cpu_shares": "10",
        },
    )
    held = demo.hold({"name": "a", "count": 1, "flavor": flavor})
    assert places(operator, held["id"]) == {"a[0]": fpgas}
    [server] = demo.boot(flavor_of(demo, held))
    demo.built(server)
    devices = {f"fpga{number}": {"CUSTOM_FPGA": 1} for number in range(2)}
    assert operator.allocations(server) == {fpgas: SIZE, **devices}
    assert demo.members(held["ensemble"])["a[0]"]["server_id"] == server


def test_a_hint_takes_the_place_of_a_flavor_with_groups(
    operator: Operator, fpgas: str, demo: Tenant
) -> None:
    flavor = loaded_flavor(operator, **{"resources_card:CUSTOM_FPGA": "1"})
    held = demo.hold({"name": "a", "count": 2, "flavor": flavor})
    servers = [
        *demo.boot(flavor, hints={"moorage": f"{held['name']}/a"}),
        *demo.boot(flavor, hints={"moorage": f"{held['name']}/a"}),
    ]
    demo.built(*servers)
    assert {operator.host(one) for one in servers} == {fpgas}
    taken = [operator.allocations(one) for one in servers]
    cards = [sorted(name for name in one if name.startswith("fpga")) for one in taken]
    assert sorted(cards) == [["fpga0"], ["fpga1"]]
