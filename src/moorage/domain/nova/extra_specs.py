"""Extra specs: those that decide a place, those of Nova's without effect, and labels.

Names and values are those of Nova's own validators. Nova decides a server's place by some of them:
as resources and traits asked of Placement, or by filters of its scheduler that compare hosts. Keys
of any other namespace are labels: no filter reads them. Refused are wrong names and values in
Nova's namespaces, and what its filters compare with hosts or aggregates: read without them, a
flavor would be called feasible where Nova finds no host.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.nova.properties import (
    ValueRule,
    anything,
    at_least,
    flag,
    integer,
    matching,
    one_of,
    shown,
)
from moorage.domain.resources import NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.nova.properties import Properties

GROUP_KEY: Final = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)", re.DOTALL)
"""An amount or a trait: of the server's own resources, or of the group with this suffix."""
_OF_NODE: Final = re.compile(r"hw:numa_(cpus|mem)\.[0-9]{1,3}", re.ASCII)
_CPUS: Final = matching(r"[0-9^,\- ]{1,2000}", "0-3,^1")
PAGE_SIZE: Final = matching(
    r"large|small|any|[0-9]{1,15}(([KMGT]i?)?(b|bit|B))?", "large, 2048 or 1GB"
)

DECIDING: Final[MappingProxyType[str, ValueRule]] = MappingProxyType(
    {
        "group_policy": one_of("none", "isolate"),
        "hw:cpu_policy": one_of("shared", "dedicated", "mixed"),
        "hw:cpu_dedicated_mask": _CPUS,
        "hw:cpu_thread_policy": one_of("prefer", "isolate", "require"),
        "hw:cpu_realtime": flag,
        "hw:cpu_realtime_mask": _CPUS,
        "hw:emulator_threads_policy": one_of("share", "isolate"),
        "hw:ephemeral_encryption": flag,
        "hw:ephemeral_encryption_format": one_of("plain", "luks", "luksv2"),
        "hw:locked_memory": flag,
        "hw:maxphysaddr_bits": at_least(1),
        "hw:maxphysaddr_mode": one_of("passthrough", "emulate"),
        "hw:mem_encryption": flag,
        "hw:mem_encryption_model": one_of("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"),
        "hw:mem_page_size": PAGE_SIZE,
        "hw:numa_nodes": at_least(1, 128),
        "hw:pci_numa_affinity_policy": one_of("required", "preferred", "legacy", "socket"),
        "hw:pmem": matching(r"[a-zA-Z0-9_]+(\s*,\s*[a-zA-Z0-9_]+)*", "6GB,512MB"),
        "hw:sound_model": one_of(
            *("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")
        ),
        "hw:tpm_model": one_of("tpm-tis", "tpm-crb"),
        "hw:tpm_secret_security": one_of("user", "host", "deployment"),
        "hw:tpm_version": one_of("1.2", "2.0"),
        "hw:virtio_packed_ring": flag,
        "os:secure_boot": one_of("required", "disabled", "optional"),
        "pci_passthrough:alias": matching(
            r"[^:,]+:[0-9]{1,4}(\s*,\s*[^:,]+:[0-9]{1,4})*", "gpu:1,nic:2"
        ),
    }
)
"""Keys that decide where a server may stand, beside amounts, traits and amounts of NUMA nodes."""

_LEVEL: Final = one_of("custom", "high", "normal", "low")
WITHOUT_EFFECT: Final[MappingProxyType[str, ValueRule]] = MappingProxyType(
    {
        "hide_hypervisor_id": flag,
        "hw:boot_menu": flag,
        "hw:cpu_cores": at_least(1),
        "hw:cpu_max_cores": at_least(1),
        "hw:cpu_max_sockets": at_least(1),
        "hw:cpu_max_threads": at_least(1),
        "hw:cpu_sockets": at_least(1),
        "hw:cpu_threads": at_least(1),
        "hw:hide_hypervisor_id": flag,
        "hw:pmu": flag,
        "hw:redirected_usb_ports": at_least(0, 15),
        "hw:serial_port_count": at_least(0),
        "hw:usb_model": one_of("none", "nec-xhci", "qemu-xhci"),
        "hw:vif_multiqueue_enabled": flag,
        "hw:viommu_model": one_of("intel", "smmuv3", "virtio", "auto"),
        "hw:watchdog_action": one_of("none", "pause", "poweroff", "reset", "disabled"),
        "hw_rng:allowed": flag,
        "hw_rng:rate_bytes": at_least(0),
        "hw_rng:rate_period": at_least(0),
        "hw_video:ram_max_mb": at_least(0),
        "quota:cpu_period": at_least(0),
        "quota:cpu_quota": integer,
        "quota:cpu_shares": at_least(0),
        "vmware:hw_version": anything,
        "vmware:storage_policy": anything,
        **{
            f"quota:disk_{direction}_{unit}_sec": at_least(0)
            for direction in ("read", "write", "total")
            for unit in ("bytes", "iops")
        },
        **{
            f"quota:vif_{direction}_{measure}": at_least(0)
            for direction in ("inbound", "outbound")
            for measure in ("average", "peak", "burst")
        },
        **{
            f"quota:{device}_{what}": rule
            for device in ("cpu", "memory", "disk_io", "vif")
            for what, rule in (
                ("limit", at_least(0)),
                ("reservation", integer),
                ("shares_level", _LEVEL),
                ("shares_share", at_least(0)),
            )
        },
    }
)
"""Keys without effect on placement."""

_NAMESPACES: Final = frozenset(
    {
        *(key.partition(":")[0] for key in (*DECIDING, *WITHOUT_EFFECT) if ":" in key),
        *("accel", "aggregate_instance_extra_specs", "capabilities"),
    }
)
"""Nova's namespaces, beside those of amounts and traits. It refuses other keys in them."""

_WHY: Final = MappingProxyType(
    {
        "accel:device_profile": "the accelerators of a device profile are not known here",
        "capabilities": "a filter of Nova's scheduler compares it with hosts",
        "aggregate_instance_extra_specs": (
            "a filter of Nova's scheduler compares it with aggregates"
        ),
    }
)
"""Why a key, or those of a namespace, are refused although Nova knows them."""


def decides(key: str) -> bool:
    """Whether an accepted extra spec decides where a server may stand."""
    return not (key in WITHOUT_EFFECT or _is_label(key))


def labels(keys: Iterable[str]) -> tuple[str, ...]:
    """The extra specs that neither Placement nor a filter of Nova's is asked for, sorted."""
    return tuple(sorted(filter(_is_label, keys)))


def _is_label(key: str) -> bool:
    namespace, colon, _ = key.partition(":")
    return bool(colon) and namespace not in _NAMESPACES and GROUP_KEY.fullmatch(key) is None


def check_extra_specs(specs: Properties) -> None:
    """Check every name and value.

    Raises:
        InvalidDescription: unknown names or wrong values; it names every one, and why.
    """
    refused = dict(sorted(_refused(specs)))
    if refused:
        said = "; ".join(f"{key}: {why}" for key, why in refused.items())
        raise InvalidDescription(
            f"extra specs that cannot be placed: {said}", path=f"{specs.path}.{min(refused)}"
        )


def _refused(specs: Properties) -> Iterator[tuple[str, str]]:
    for key, value in specs.values.items():
        why = _why_not(key, value)
        if why is not None:
            yield key, why


def _why_not(key: str, value: str) -> str | None:
    """Why an extra spec is refused; None: a label, or known with a value that Nova takes."""
    if _is_label(key):
        return None
    group = GROUP_KEY.fullmatch(key)
    if group is not None:
        return _wrong_in_group(group[1], group[3], value)
    rule = DECIDING.get(key) or WITHOUT_EFFECT.get(key)
    if rule is None and (node := _OF_NODE.fullmatch(key)) is not None:
        rule = _CPUS if node[1] == "cpus" else at_least(1)
    if rule is not None:
        wrong = rule(value)
        return None if wrong is None else f"{wrong}, not {shown(value)}"
    if ":" not in key:
        return "filters of Nova's scheduler compare it with hosts and aggregates"
    return _WHY.get(key) or _WHY.get(key.partition(":")[0]) or "Nova has no such extra spec"


def _wrong_in_group(kind: str, name: str, value: str) -> str | None:
    if NAME.fullmatch(name) is None:
        what = "resource class" if kind == "resources" else "trait"
        return f"{shown(name)} is no name of a {what}"
    rule = at_least(0, 2**31 - 1) if kind == "resources" else one_of("required", "forbidden")
    wrong = rule(value)
    return None if wrong is None else f"{wrong}, not {shown(value)}"
