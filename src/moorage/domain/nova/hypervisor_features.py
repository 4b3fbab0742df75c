"""Features that a server needs of its hypervisor: traits, and slots for encrypted memory."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.nova.properties import is_true

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.nova.properties import Hardware
    from moorage.domain.resources import Trait

ENCRYPTION_SLOT: Final = "MEM_ENCRYPTION_CONTEXT"
_ENCRYPTION_TRAITS: Final = MappingProxyType(
    {
        "amd-sev": "HW_CPU_X86_AMD_SEV",
        "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
        "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
        "intel-tdx": "HW_CPU_X86_INTEL_TDX",
    }
)
_STATELESS: Final = frozenset({"amd-sev-snp", "intel-tdx"})
"""Kinds of memory encryption that need firmware without a state."""
_ADDRESSES: Final = MappingProxyType(
    {
        "passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
        "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED",
    }
)
_MEMORY: Final = "hw:mem_encryption"


@dataclass(frozen=True, slots=True)
class FeatureDemand:
    """What the features of a server ask of Placement."""

    traits: frozenset[Trait]
    """Of the providers of the server's own resources."""
    root_traits: frozenset[Trait]
    """Of the host itself."""
    encrypted: bool
    """Whether it needs a slot for encrypted memory."""


def feature_demand(hardware: Hardware) -> FeatureDemand:
    """The demand of a server's features.

    Raises:
        InvalidDescription: the extra specs and image properties contradict each other.
    """
    encryption = _memory_encryption(hardware)
    _check_locked_memory(hardware)
    return FeatureDemand(
        frozenset(_traits(hardware, encryption)),
        frozenset(_root_traits(hardware)),
        encryption is not None,
    )


def _traits(hardware: Hardware, encryption: str | None) -> Iterator[Trait]:
    if encryption is not None:
        yield _ENCRYPTION_TRAITS[encryption]
    yield from _tpm_traits(hardware)
    if hardware.agreed("pci_numa_affinity_policy") == "socket":
        yield "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"
    if hardware.agreed("secure_boot", "os") == "required":
        yield "COMPUTE_SECURITY_UEFI_SECURE_BOOT"
    addresses = hardware.agreed("maxphysaddr_mode")
    if addresses is not None:
        yield _ADDRESSES[addresses]
    if _stateless(hardware):
        yield "COMPUTE_SECURITY_STATELESS_FIRMWARE"


def _root_traits(hardware: Hardware) -> Iterator[Trait]:
    if hardware.flag("virtio_packed_ring"):
        yield "COMPUTE_NET_VIRTIO_PACKED"
    if hardware.flag("ephemeral_encryption"):
        yield "COMPUTE_EPHEMERAL_ENCRYPTION"
        form = hardware.agreed("ephemeral_encryption_format")
        if form is not None:
            yield f"COMPUTE_EPHEMERAL_ENCRYPTION_{form.upper()}"
    if hardware.agreed("sound_model") == "virtio":
        yield "COMPUTE_SOUND_MODEL_VIRTIO"
    if hardware.agreed("tpm_version") is not None:
        security = hardware.flavor.get("hw:tpm_secret_security") or "user"
        yield f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{security.upper()}"


def _tpm_traits(hardware: Hardware) -> Iterator[Trait]:
    version = hardware.agreed("tpm_version")
    if version is None:
        return
    model = hardware.agreed("tpm_model") or "tpm-tis"
    if model == "tpm-crb" and version != "2.0":
        raise hardware.flavor.refusal("hw:tpm_model", "tpm-crb needs hw:tpm_version 2.0")
    yield "COMPUTE_SECURITY_TPM_CRB" if model == "tpm-crb" else "COMPUTE_SECURITY_TPM_TIS"
    yield "COMPUTE_SECURITY_TPM_2_0" if version == "2.0" else "COMPUTE_SECURITY_TPM_1_2"


def _memory_encryption(hardware: Hardware) -> str | None:
    """The kind of memory encryption; None: none is asked for."""
    if not hardware.flag("mem_encryption"):
        return None
    kind = hardware.agreed("mem_encryption_model") or "amd-sev"
    image = hardware.image
    if not image.known:
        return kind
    if image.get("hw_firmware_type") != "uefi":
        raise hardware.flavor.refusal(_MEMORY, "the image needs hw_firmware_type uefi")
    machine = image.get("hw_machine_type")
    if machine is not None and "q35" not in machine:
        raise hardware.flavor.refusal(_MEMORY, f"the image needs a q35 machine, not {machine}")
    if kind in _STATELESS and not _stateless(hardware):
        raise hardware.flavor.refusal(
            _MEMORY, f"for {kind} the image needs hw_firmware_stateless true"
        )
    if kind == "intel-tdx" and image.get("hw_video_model") != "none":
        raise hardware.flavor.refusal(_MEMORY, "for intel-tdx the image needs hw_video_model none")
    return kind


def _stateless(hardware: Hardware) -> bool:
    """Whether the image asks for firmware without a state; only UEFI can be so."""
    image = hardware.image
    asked = image.get("hw_firmware_stateless")
    return asked is not None and is_true(asked) and image.get("hw_firmware_type") == "uefi"


def _check_locked_memory(hardware: Hardware) -> None:
    if hardware.flag("locked_memory") and hardware.both("mem_page_size") == (None, None):
        raise hardware.flavor.refusal("hw:locked_memory", "it needs hw:mem_page_size")
