"""A flavor's extra specs: which are understood, which place nothing, and which are refused.

Nova decides a server's place by extra specs in several ways: as resources and traits asked of
Placement, by device requests, by what its NUMA fitting needs, and by filters of its scheduler. A
flavor with such a key that is not understood here is refused by name: read without it, it would be
called feasible where Nova finds no host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.resources import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCES: Final = "resources:"
TRAIT: Final = "trait:"
HOW: Final = frozenset({"required", "forbidden"})
"""What a flavor says of a trait."""

WITHOUT_PLACE: Final = (
    "quota:",
    "hw_rng:",
    "hw_video:",
)
"""How extra specs begin that place nothing, whatever they say."""

HARMLESS: Final[Mapping[str, frozenset[str] | None]] = {
    "hide_hypervisor_id": None,
    "hw:hide_hypervisor_id": None,
    "hw:boot_menu": None,
    "hw:cpu_sockets": None,
    "hw:cpu_cores": None,
    "hw:cpu_threads": None,
    "hw:cpu_max_sockets": None,
    "hw:cpu_max_cores": None,
    "hw:cpu_max_threads": None,
    "hw:serial_port_count": None,
    "hw:vif_multiqueue_enabled": None,
    "hw:watchdog_action": None,
    "hw:cpu_policy": frozenset({"shared"}),
    "hw:cpu_thread_policy": frozenset({"prefer"}),
    "hw:emulator_threads_policy": frozenset({"share"}),
    "hw:mem_encryption": frozenset({"false"}),
    "hw:cpu_realtime": frozenset({"false", "no"}),
    "hw:locked_memory": frozenset({"false"}),
    "hw:virtio_packed_ring": frozenset({"false"}),
    "hw:ephemeral_encryption": frozenset({"false"}),
    "os:secure_boot": frozenset({"disabled", "optional"}),
}
"""Extra specs that place nothing: with any value (None), or with one of these."""

_WHY: Final = (
    ("resources", "Nova asks Placement for it in a group of its own"),
    ("trait", "Nova asks Placement for it in a group of its own"),
    ("group_policy", "it speaks of numbered groups of resources"),
    ("pci_passthrough:", "it asks for a device of the host"),
    ("accel:", "it asks for an accelerator of the host"),
    ("capabilities:", "a filter of Nova's scheduler compares it with hosts"),
    ("aggregate_instance_extra_specs:", "a filter of Nova's scheduler compares it with aggregates"),
    ("hw:cpu_policy", "it asks for dedicated processors (PCPU)"),
    ("hw:numa_", "the server must fit into NUMA nodes of the host"),
    ("hw:mem_page_size", "the server must fit into NUMA nodes of the host"),
    ("hw:", "it may decide on which hosts the server can run"),
    ("os:", "it may decide on which hosts the server can run"),
)
"""How an extra spec begins, and why it may decide a place; the first that fits."""


def why_not(key: str, value: str) -> str | None:
    """Why a flavor with this extra spec cannot be placed; None if it can."""
    kind, _, name = key.partition(":")
    if kind == "resources" and NAME.fullmatch(name):
        return None
    if kind == "trait" and NAME.fullmatch(name):
        return None if value in HOW else f"a trait is required or forbidden, not {value!r}"
    if key.startswith(WITHOUT_PLACE):
        return None
    if key in HARMLESS:
        values = HARMLESS[key]
        if values is None or value.lower() in values:
            return None
    if ":" not in key and key != "group_policy":
        return "filters of Nova's scheduler compare it with hosts and aggregates"
    found = (why for start, why in _WHY if key.startswith(start))
    return next(found, "nothing is known of it")


def check(specs: Mapping[str, str], path: str, *, understood: frozenset[str] = frozenset()) -> None:
    """Refuse extra specs that may affect placement and are not supported.

    Args:
        specs: key -> value.
        path: where the error says they stand.
        understood: further keys that the caller understands.

    Raises:
        InvalidDescription: others; names every one of them, and why.
    """
    refused = {
        key: why
        for key, value in specs.items()
        if key not in understood and (why := why_not(key, value)) is not None
    }
    if refused:
        said = "; ".join(f"{key}: {why}" for key, why in sorted(refused.items()))
        raise InvalidDescription(
            f"extra specs that may decide the place and are not supported: {said}",
            path=f"{path}.{min(refused)}",
        )


def check_stored(specs: Mapping[str, str], path: str) -> None:
    """Refuse extra specs as `check` does, and those that name resources or traits.

    Raises:
        InvalidDescription: see `check`; also for resources and traits, which belong there.
    """
    for key in sorted(specs):
        if key.startswith((RESOURCES, TRAIT)):
            raise InvalidDescription(
                f"{key}: write it among the flavor's resources, required or forbidden",
                path=f"{path}.{key}",
            )
    check(specs, path)
