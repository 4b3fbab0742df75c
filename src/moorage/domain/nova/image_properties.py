"""The image properties that Nova reads when it places a server.

Properties that begin `hw_`, `img_` or `trait:` are Nova's: unknown ones are refused by name. Any
other is a note of the image's owner, which Nova does not read.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.nova.extra_specs import DECIDING as DECIDING_SPECS
from moorage.domain.nova.properties import (
    Properties,
    ValueRule,
    anything,
    at_least,
    flag,
    matching,
    one_of,
    shown,
)
from moorage.domain.resources import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TRAIT: Final = "trait:"
_WORD: Final = matching(r"[A-Za-z0-9_-]{1,64}", "virtio")
_NODE_KEYS: Final = ("hw_numa_cpus.", "hw_numa_mem.")

LEGACY_NAMES: Final[MappingProxyType[str, str]] = MappingProxyType(
    {
        "architecture": "hw_architecture",
        "hypervisor_type": "img_hv_type",
        "hypervisor_version_requires": "img_hv_requested_version",
        "vm_mode": "hw_vm_mode",
    }
)
"""Older names of properties that decide."""
_ARCHITECTURES: Final = MappingProxyType(
    {
        **dict.fromkeys(("i386", "i486", "i586", "x86_32", "x86_32p"), "i686"),
        "amd64": "x86_64",
    }
)

PREFILTERED: Final[MappingProxyType[str, str]] = MappingProxyType(
    {
        "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
        "hw_disk_bus": "COMPUTE_STORAGE_BUS",
        "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
        "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
        "hw_architecture": "HW_ARCH",
        "hw_emulation_architecture": "COMPUTE_ARCH",
        "hw_viommu_model": "COMPUTE_VIOMMU",
    }
)
"""Properties that Nova makes traits of if `image_metadata_prefilter` is set -> how these begin."""

COMPARED: Final = (
    "hw_architecture",
    "hw_maxphysaddr_bits",
    "hw_vm_mode",
    "img_hv_requested_version",
    "img_hv_type",
)
"""Properties that a filter of Nova's scheduler compares with the host."""

_ALSO_IN_FLAVORS: Final = (
    *("cpu_policy", "cpu_thread_policy", "cpu_realtime_mask", "ephemeral_encryption"),
    *("ephemeral_encryption_format", "locked_memory", "maxphysaddr_bits", "maxphysaddr_mode"),
    *("mem_encryption", "mem_encryption_model", "mem_page_size", "numa_nodes"),
    *("pci_numa_affinity_policy", "sound_model", "tpm_model", "tpm_version", "virtio_packed_ring"),
)
DECIDING: Final[MappingProxyType[str, ValueRule]] = MappingProxyType(
    {
        **{f"hw_{name}": DECIDING_SPECS[f"hw:{name}"] for name in _ALSO_IN_FLAVORS},
        **dict.fromkeys(PREFILTERED, _WORD),
        **dict.fromkeys(COMPARED, anything),
        "disk_format": _WORD,
        "hw_firmware_stateless": flag,
        "hw_firmware_type": one_of("bios", "uefi"),
        "hw_machine_type": anything,
        "hw_maxphysaddr_bits": at_least(1),
        "os_secure_boot": DECIDING_SPECS["os:secure_boot"],
    }
)
"""Properties that decide, or may, where a server of the image can stand."""

WITHOUT_EFFECT: Final = frozenset(
    {
        *("hw_auto_disk_config", "hw_boot_menu", "hw_cpu_cores", "hw_cpu_max_cores"),
        *("hw_cpu_max_sockets", "hw_cpu_max_threads", "hw_cpu_sockets", "hw_cpu_threads"),
        *("hw_device_id", "hw_disk_type", "hw_ephemeral_encryption_secret_uuid", "hw_floppy_bus"),
        *("hw_input_bus", "hw_ipxe_boot", "hw_pmu", "hw_pointer_model", "hw_qemu_guest_agent"),
        *("hw_redirected_usb_ports", "hw_rescue_bus", "hw_rescue_device", "hw_rng_model"),
        *("hw_scsi_model", "hw_serial_port_count", "hw_time_hpet", "hw_usb_model"),
        *("hw_video_ram", "hw_vif_multiqueue_enabled", "hw_watchdog_action"),
        *("img_bdm_v2", "img_bittorrent", "img_block_device_mapping", "img_cache_in_nova"),
        *("img_compression_level", "img_config_drive", "img_hide_hypervisor_id"),
        *("img_linked_clone", "img_mappings", "img_owner_id", "img_root_device_name"),
        *("img_signature", "img_signature_certificate_uuid", "img_signature_hash_method"),
        *("img_signature_key_type", "img_use_agent", "img_version"),
    }
)
"""Properties with Nova's prefixes and without effect on placement."""


def read_image(properties: Mapping[str, str] | None, path: str) -> Properties:
    """An image's properties under their present names; None: nothing is said of the image.

    Raises:
        InvalidDescription: a property of Nova's that is not known, or a wrong value.
    """
    if properties is None:
        return Properties(path=path, known=False)
    given = Properties(properties, path)
    found: dict[str, str] = {}
    for key, value in properties.items():
        why = _why_not(LEGACY_NAMES.get(key, key), value)
        if why is not None:
            raise given.refusal(key, why)
        if key in LEGACY_NAMES:
            found.setdefault(LEGACY_NAMES[key], value)
        else:
            found[key] = value
    for key in ("hw_architecture", "hw_emulation_architecture"):
        if key in found:
            name = found[key].lower()
            found[key] = _ARCHITECTURES.get(name, name)
    return Properties(MappingProxyType(found), path)


def required_traits(image: Properties) -> Iterator[str]:
    """The traits that an image requires by itself."""
    for key in image.values:
        if key.startswith(TRAIT):
            yield key.removeprefix(TRAIT)


def prefiltered_traits(image: Properties) -> tuple[str, ...]:
    """The traits that Nova makes of an image's properties if `image_metadata_prefilter` is set."""
    return tuple(
        f"{start}_{image.values[key].replace('-', '_').upper()}"
        for key, start in PREFILTERED.items()
        if key in image.values
    )


def _why_not(key: str, value: str) -> str | None:
    if key.startswith(TRAIT):
        name = key.removeprefix(TRAIT)
        if NAME.fullmatch(name) is None:
            return f"{shown(name)} is no name of a trait"
        return None if value == "required" else f"must be required, not {shown(value)}"
    rule = DECIDING.get(key)
    if rule is None and key.startswith(_NODE_KEYS):
        kind, _, node = key.removeprefix("hw_").partition(".")
        if node.isascii() and node.isdigit():
            rule = DECIDING_SPECS["hw:cpu_dedicated_mask"] if kind == "numa_cpus" else at_least(1)
    if rule is not None:
        wrong = rule(value)
        return None if wrong is None else f"{wrong}, not {shown(value)}"
    if key not in WITHOUT_EFFECT and key.startswith(("hw_", "img_")):
        return "Nova's properties begin so, and this one is not known"
    return None
