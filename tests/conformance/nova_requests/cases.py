"""Generated flavors, images, alias tables and ports, as JSON values."""

from __future__ import annotations

import random
from typing import Any

ALIASES = (
    {"name": "nic", "vendor_id": "8086", "product_id": "154c", "device_type": "type-VF"},
    {
        "name": "gpu",
        "vendor_id": "10de",
        "product_id": "20b2",
        "resource_class": "gpu a100",
        "traits": "HW_GPU_API_VULKAN,custom_big,fast",
    },
    {
        "name": "vgpu",
        "vendor_id": "10DE",
        "product_id": "20b5",
        "resource_class": "vgpu",
        "numa_policy": "preferred",
    },
)
ARCHITECTURES = ("x86_64", "amd64", "aarch64")


def cases(seed: int, count: int) -> list[dict[str, Any]]:
    """So many cases of a seed; about a quarter contradict themselves."""
    dice = random.Random(seed)
    return [_case(dice) for _ in range(count)]


def _case(dice: random.Random) -> dict[str, Any]:
    vcpus = dice.choice((1, 2, 4, 8, 12))
    size = {
        "vcpus": vcpus,
        "memory_mb": dice.choice((512, 2048, 4096, 6144)),
        "root_gb": dice.choice((0, 10, 40)),
        "ephemeral_gb": dice.choice((0, 0, 5)),
        "swap_mb": dice.choice((0, 0, 512, 1500)),
    }
    specs: dict[str, str] = {}
    image: dict[str, str] = {}
    for part in dice.sample(PARTS, k=dice.choice((0, 1, 1, 2, 2, 3, 4))):
        part(dice, size, specs, image)
    return {
        "size": size,
        "extra_specs": specs,
        "image_properties": image,
        "from_volume": dice.random() < 0.3,
        "rules": {
            "pci_in_placement": dice.random() < 0.7,
            "image_metadata_prefilter": dice.random() < 0.3,
            "image_type_support": dice.random() < 0.3,
        },
        "ports": [_port(dice, number) for number in range(dice.choice((0, 0, 0, 1, 2)))],
    }


def _port(dice: random.Random, number: int) -> dict[str, Any]:
    """A port's `resource_request` as Neutron gives it."""
    bandwidth = {
        "id": f"a{number}000000-0000-4000-8000-000000000000",
        "required": ["CUSTOM_PHYSNET_2", "CUSTOM_VNIC_TYPE_NORMAL"],
        "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000, "NET_BW_IGR_KILOBIT_PER_SEC": 500},
    }
    packets = {
        "id": f"b{number}000000-0000-4000-8000-000000000000",
        "required": ["CUSTOM_VNIC_TYPE_NORMAL"],
        "resources": {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 10},
    }
    groups = [bandwidth, packets] if dice.random() < 0.5 else [bandwidth]
    together = [one["id"] for one in groups] if len(groups) > 1 else []
    return {"request_groups": groups, "same_subtree": together}


Size = dict[str, int]
Words = dict[str, str]


def _some(
    dice: random.Random, specs: Words, image: Words, name: str, values: tuple[str, ...]
) -> None:
    """State one of the values in the flavor, in the image, or in both."""
    where = dice.random()
    if where < 0.75:
        specs[f"hw:{name}"] = dice.choice(values)
    if where > 0.6:
        image[f"hw_{name}"] = dice.choice(values)


def _cpu_policy(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    _some(dice, specs, image, "cpu_policy", ("dedicated", "dedicated", "shared"))
    if dice.random() < 0.5:
        _some(dice, specs, image, "cpu_thread_policy", ("prefer", "isolate", "require"))
    if dice.random() < 0.5:
        specs["hw:emulator_threads_policy"] = dice.choice(("share", "isolate"))


def _mixed(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    specs["hw:cpu_policy"] = "mixed"
    last = size["vcpus"] - 1
    masks = ("0", f"0-{last}", "^0", f"0-{max(last - 1, 0)}", "0-20", "0-3,^1")
    if dice.random() < 0.7:
        specs["hw:cpu_dedicated_mask"] = dice.choice(masks)
    else:
        _realtime(dice, size, specs, image)
    if dice.random() < 0.3:
        specs["hw:emulator_threads_policy"] = dice.choice(("share", "isolate"))


def _realtime(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    specs["hw:cpu_realtime"] = dice.choice(("true", "yes", "false"))
    if dice.random() < 0.6:
        specs.setdefault("hw:cpu_policy", "dedicated")
    if dice.random() < 0.8:
        _some(dice, specs, image, "cpu_realtime_mask", ("^0", "1-3", "0"))


def _explicit_processors(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    suffix = dice.choice(("", "", "1"))
    vcpus = size["vcpus"]
    amount = dice.choice((vcpus, vcpus, vcpus + 1, 0))
    specs[f"resources{suffix}:{dice.choice(('VCPU', 'PCPU'))}"] = str(amount)
    if dice.random() < 0.4:
        specs["trait:HW_CPU_HYPERTHREADING"] = dice.choice(("required", "forbidden"))


def _numa(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    _some(dice, specs, image, "numa_nodes", ("1", "2", "3"))
    if dice.random() < 0.4 and size["vcpus"] > 1:
        half = size["vcpus"] // 2
        specs["hw:numa_nodes"] = "2"
        specs["hw:numa_cpus.0"] = f"0-{half - 1}"
        specs["hw:numa_cpus.1"] = f"{dice.choice((half, half, 0))}-{size['vcpus'] - 1}"
        specs["hw:numa_mem.0"] = str(size["memory_mb"] // 2)
        if dice.random() < 0.9:
            specs["hw:numa_mem.1"] = str(size["memory_mb"] - size["memory_mb"] // 2)


def _pages(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    _some(dice, specs, image, "mem_page_size", ("large", "any", "small", "2048", "1GB", "2MB"))
    if dice.random() < 0.3:
        _some(dice, specs, image, "locked_memory", ("true", "false"))


def _amounts(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    for name in dice.sample(("VGPU", "CUSTOM_FPGA", "DISK_GB", "MEMORY_MB", "PCI_DEVICE"), k=2):
        specs[f"resources:{name}"] = dice.choice(("0", "1", "2"))
    if dice.random() < 0.3:
        specs["resources:VCPU"] = "0"


def _numbered(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    suffixes = dice.sample(("1", "2", "_gpu", "-a"), k=dice.choice((1, 2, 3)))
    for suffix in suffixes:
        for name in dice.sample(("VGPU", "CUSTOM_FPGA", "SRIOV_NET_VF"), k=dice.choice((1, 2))):
            specs[f"resources{suffix}:{name}"] = dice.choice(("0", "1", "1", "3"))
        if dice.random() < 0.6:
            how = dice.choice(("required", "forbidden"))
            specs[f"trait{suffix}:{dice.choice(('CUSTOM_A', 'HW_GPU_API_VULKAN'))}"] = how
    if dice.random() < 0.8:
        specs["group_policy"] = dice.choice(("none", "isolate"))


def _traits(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    names = ("HW_CPU_X86_AVX2", "CUSTOM_A", "STORAGE_DISK_SSD")
    for name in dice.sample(names, k=2):
        specs[f"trait:{name}"] = dice.choice(("required", "forbidden"))
    for name in dice.sample(names, k=dice.choice((0, 1))):
        image[f"trait:{name}"] = "required"


def _aliases(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    named = dice.sample(("nic", "gpu", "vgpu", "nobody"), k=dice.choice((1, 1, 2)))
    specs["pci_passthrough:alias"] = ",".join(f"{one}:{dice.choice((1, 1, 2))}" for one in named)
    if dice.random() < 0.4:
        policies = ("required", "preferred", "legacy", "socket")
        _some(dice, specs, image, "pci_numa_affinity_policy", policies)


def _firmware(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    if dice.random() < 0.6:
        specs["os:secure_boot"] = dice.choice(("required", "disabled"))
    if dice.random() < 0.5:
        image["os_secure_boot"] = dice.choice(("required", "disabled", "optional"))
    if dice.random() < 0.7:
        image["hw_firmware_type"] = dice.choice(("uefi", "uefi", "bios"))
    if dice.random() < 0.4:
        image["hw_firmware_stateless"] = dice.choice(("true", "false"))


def _encrypted_memory(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    _some(dice, specs, image, "mem_encryption", ("true", "true", "false"))
    if dice.random() < 0.5:
        models = ("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx")
        _some(dice, specs, image, "mem_encryption_model", models)
    if dice.random() < 0.9:
        image["hw_firmware_type"] = "uefi"
    if dice.random() < 0.5:
        image["hw_firmware_stateless"] = "true"
    if dice.random() < 0.4:
        image["hw_machine_type"] = dice.choice(("q35", "pc-q35-8.0", "pc"))
    if dice.random() < 0.4:
        image["hw_video_model"] = "none"


def _tpm(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    _some(dice, specs, image, "tpm_version", ("2.0", "2.0", "1.2"))
    if dice.random() < 0.5:
        _some(dice, specs, image, "tpm_model", ("tpm-tis", "tpm-crb"))
    if dice.random() < 0.3:
        specs["hw:tpm_secret_security"] = dice.choice(("user", "host", "deployment"))


def _host_features(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    choices: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("virtio_packed_ring", ("true", "false")),
        ("ephemeral_encryption", ("true", "false")),
        ("ephemeral_encryption_format", ("luks", "plain")),
        ("sound_model", ("virtio", "ich9")),
        ("maxphysaddr_mode", ("emulate", "passthrough")),
    )
    for name, values in dice.sample(choices, k=2):
        _some(dice, specs, image, name, values)
    if dice.random() < 0.3:
        specs["hw:pmem"] = dice.choice(("6GB", "6GB,6GB,512MB"))


def _devices_of_image(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    choices = (
        ("hw_disk_bus", ("virtio", "scsi", "sata")),
        ("hw_cdrom_bus", ("ide", "sata")),
        ("hw_video_model", ("virtio", "vga", "none")),
        ("hw_vif_model", ("virtio", "e1000")),
        ("hw_architecture", ARCHITECTURES),
        ("architecture", ARCHITECTURES),
        ("disk_format", ("qcow2", "raw", "vmdk")),
        ("hw_viommu_model", ("intel", "auto")),
    )
    for name, values in dice.sample(choices, k=3):
        image[name] = dice.choice(values)


def _without_effect(dice: random.Random, size: Size, specs: Words, image: Words) -> None:
    specs |= {"quota:cpu_shares": "10", "hw_rng:allowed": "True", "hw:watchdog_action": "reset"}
    specs |= {"scs:name-v2": "SCS-2-4", "acme:cpu:kind": "shared", "vmware:hw_version": "vmx-19"}
    specs |= {"hw:cpu_max_sockets": "2", "hw_video:ram_max_mb": "64", "hw:hide_hypervisor_id": "1"}
    image |= {"os_distro": "debian", "hw_qemu_guest_agent": "yes", "owner_specified.note": "x"}


PARTS = (
    _cpu_policy,
    _mixed,
    _realtime,
    _explicit_processors,
    _numa,
    _pages,
    _amounts,
    _numbered,
    _traits,
    _aliases,
    _firmware,
    _encrypted_memory,
    _tpm,
    _host_features,
    _devices_of_image,
    _without_effect,
)
