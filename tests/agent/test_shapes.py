"""What the agent makes of whole machines."""

from collections.abc import Mapping
from pathlib import Path

import os_resource_classes
import os_traits
import pytest
from tests.agent.machines import (
    SHAPES,
    Machine,
    accelerated,
    arm_without_numa,
    edge,
    smart_nic,
    two_sockets,
    with_fpgas,
)

from moorage.agent.cpu_traits import AARCH64, X86
from moorage.agent.discovery import discover
from moorage.agent.files import Files
from moorage.agent.node_providers import target_of
from moorage.agent.target import Target
from moorage.client.agent_file import read_agent_config


def target(machine: Machine, where: Path, config: str = "") -> Target:
    return target_of(discover(Files(machine.write(where))), read_agent_config(config))


def stock(found: Target) -> Mapping[str, Mapping[str, int]]:
    return {
        one.key: {name: inventory.total for name, inventory in one.inventories.items()}
        for one in found.providers
    }


def traits(found: Target, key: str) -> set[str]:
    return next(set(one.traits) for one in found.providers if one.key == key)


def parents(found: Target) -> Mapping[str, str | None]:
    return {one.key: one.parent for one in found.providers}


def test_two_sockets_beside_nova(tmp_path: Path) -> None:
    config = """
    networks:
      - {interface: "ens1f*", physnet: A, bandwidth: link}
      - {address: "0000:af:*", physnet: net-b, traits: [CUSTOM_GOLD]}
    """
    found = target(two_sockets(), tmp_path, config)
    assert found.cautions == ()
    assert stock(found) == {
        "numa0": {"CUSTOM_HUGEPAGES_2MB": 1024, "CUSTOM_HUGEPAGES_1GB": 4},
        "numa1": {"CUSTOM_HUGEPAGES_2MB": 1024},
        "pf:0000:3b:00.0": {
            "SRIOV_NET_VF": 8,
            "NET_BW_EGR_KILOBIT_PER_SEC": 25_000_000,
            "NET_BW_IGR_KILOBIT_PER_SEC": 25_000_000,
        },
        "pf:0000:af:00.0": {"SRIOV_NET_VF": 8},
    }
    assert parents(found)["pf:0000:3b:00.0"] == "numa0"
    assert parents(found)["pf:0000:af:00.0"] == "numa1"
    assert traits(found, "numa0") == {"HW_NUMA_ROOT"}
    assert traits(found, "pf:0000:af:00.0") == {
        "HW_NIC_SRIOV",
        "CUSTOM_PCI_15B3_1017",
        "CUSTOM_PHYSNET_NET_B",
        "CUSTOM_GOLD",
    }


def test_two_sockets_without_nova(tmp_path: Path) -> None:
    config = """
    root: agent
    dedicated_cpus: 4-7,16
    reserved: {MEMORY_MB: 4097, VCPU: 3}
    allocation_ratio: {VCPU: 4}
    traits: [CUSTOM_EDGE]
    """
    found = target(two_sockets(), tmp_path, config)
    by_key = {one.key: one for one in found.providers}
    assert stock(found)[""] == {"DISK_GB": 480}
    assert stock(found)["numa0"] == {
        "VCPU": 11,
        "PCPU": 5,
        "MEMORY_MB": 65_536 - 2048 - 4096,
        "CUSTOM_HUGEPAGES_2MB": 1024,
        "CUSTOM_HUGEPAGES_1GB": 4,
    }
    reserved = [by_key[key].inventories["MEMORY_MB"].reserved for key in ("numa0", "numa1")]
    assert sorted(reserved, key=str) == [2048, 2049]
    assert by_key["numa0"].inventories["VCPU"].allocation_ratio == 4
    assert {"HW_CPU_X86_AVX2", "HW_ARCH_X86_64", "CUSTOM_EDGE"} <= traits(found, "")
    assert {"HW_CPU_X86_AVX2", "HW_NUMA_ROOT"} <= traits(found, "numa1")


def test_a_node_as_a_whole(tmp_path: Path) -> None:
    found = target(two_sockets(), tmp_path, "{root: agent, bare_metal: CUSTOM_BAREMETAL_GOLD}")
    assert stock(found) == {"": {"CUSTOM_BAREMETAL_GOLD": 1}}


def test_gpus_as_a_whole_and_shared(tmp_path: Path) -> None:
    config = """
    mediated_types: [nvidia-1, nvidia-474]
    disks: [{name: "nvme1*", class: CUSTOM_NVME, traits: [CUSTOM_FAST]}]
    """
    found = target(accelerated(), tmp_path, config)
    assert found.cautions == ()
    assert {key: some for key, some in stock(found).items() if "numa" not in key} == {
        "gpu:0000:17:00.0": {"PGPU": 1},
        "gpu:0000:31:00.0": {"VGPU": 8},
        "gpu:0000:b1:00.0": {"PGPU": 1},
        "gpu:0000:ca:00.0": {"VGPU": 8},
        "disk:nvme1n1": {"CUSTOM_NVME": 1},
    }
    assert traits(found, "gpu:0000:31:00.0") == {
        "CUSTOM_PCI_10DE_20B5",
        "CUSTOM_VGPU_GRID_A100_5C",
    }
    assert parents(found)["disk:nvme1n1"] == "numa1"


def test_of_several_types_one_must_be_chosen(tmp_path: Path) -> None:
    found = target(accelerated(), tmp_path)
    assert stock(found)["gpu:0000:31:00.0"] == {}
    assert {one.code for one in found.cautions} == {"ambiguous-types"}


def test_regions_of_fpgas(tmp_path: Path) -> None:
    found = target(with_fpgas(), tmp_path)
    assert {key: some for key, some in stock(found).items() if "numa" not in key} == {
        "fpga:0000:5e:00.0": {"FPGA": 1},
        "fpga:0000:b0:00.0:0": {"FPGA": 1},
        "fpga:0000:b0:00.0:1": {"FPGA": 1},
    }
    assert traits(found, "fpga:0000:b0:00.0:1") == {
        "CUSTOM_PCI_8086_09C4",
        "CUSTOM_FPGA_INTERFACE_9926AB6D",
    }


def test_arm_without_numa(tmp_path: Path) -> None:
    assert stock(target(arm_without_numa(), tmp_path / "a")) == {
        "memory": {"CUSTOM_HUGEPAGES_2MB": 64}
    }
    found = target(arm_without_numa(), tmp_path / "b", "root: agent")
    assert stock(found) == {
        "": {"VCPU": 4, "MEMORY_MB": 8064, "CUSTOM_HUGEPAGES_2MB": 64, "DISK_GB": 58}
    }
    assert {"HW_CPU_AARCH64_SVE", "HW_ARCH_AARCH64"} <= traits(found, "")


def test_an_edge_node(tmp_path: Path) -> None:
    config = "shared_storage: [{mount: /var/lib/nova/instances, total_gb: 8000}]"
    found = target(edge(), tmp_path, config)
    assert stock(found) == {
        "numa0": {"CUSTOM_HUGEPAGES_1GB": 64},
        "storage": {},
        "pf:0000:51:00.0": {"SRIOV_NET_VF": 16},
        "pf:0000:6b:00.0": {"CUSTOM_PCI_8086_4941": 16},
    }
    [pool] = found.pools
    assert (pool.name, pool.total_gb) == ("10.0.0.9:/vms", 8000)


def test_bandwidth_of_a_link_that_is_down_is_not_reported(tmp_path: Path) -> None:
    found = target(edge(), tmp_path, 'networks: [{interface: "ens785f1", bandwidth: link}]')
    assert "pf:0000:51:00.1" not in stock(found)
    assert [one.code for one in found.cautions] == ["no-link"]


def test_switchdev(tmp_path: Path) -> None:
    found = target(smart_nic(), tmp_path)
    assert stock(found) == {"numa0": {}, "pf:0000:08:00.0": {"SRIOV_NET_VF": 4}}
    assert "HW_NIC_OFFLOAD_SWITCHDEV" in traits(found, "pf:0000:08:00.0")


@pytest.mark.parametrize("config", ["", "root: agent", "{root: agent, numa: false}"])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_names_are_standard_or_custom(shape: str, config: str, tmp_path: Path) -> None:
    found = target(SHAPES[shape](), tmp_path, config)
    for one in found.providers:
        classes = one.inventories.keys()
        assert {c for c in classes if not c.startswith("CUSTOM_")} <= set(
            os_resource_classes.STANDARDS
        )
        standard = {trait for trait in one.traits if not trait.startswith("CUSTOM_")}
        assert standard <= set(os_traits.get_traits())


def test_every_trait_of_processors_is_standard() -> None:
    assert {*X86.values(), *AARCH64.values()} <= set(os_traits.get_traits())


def test_this_machine() -> None:
    """The kernel that the tests run on: whatever it shows, it is understood."""
    node = discover(Files(Path("/")))
    if node.doubts:  # as on kernels that bring memory up lazily, and tell so for nodes only
        assert {one.code for one in node.doubts} == {"memory-differs"}
        return
    found = target_of(node, read_agent_config("{root: agent, name: here}"))
    amounts: dict[str, int] = {}
    for some in stock(found).values():
        for name, total in some.items():
            amounts[name] = amounts.get(name, 0) + total
    assert amounts["VCPU"] == len(node.processors.online)
    assert amounts["MEMORY_MB"] > 0
