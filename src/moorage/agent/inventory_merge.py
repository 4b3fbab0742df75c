"""Inventories and traits of a provider: the target's, and what others have added to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution
from moorage.agent.target import OWNED, VANISHED, is_device, kind_of
from moorage.domain.providers import Inventory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.agent.ledger_tree import PresentProvider
    from moorage.agent.target import TargetInventory, TargetProvider
    from moorage.domain.resources import ResourceClass, Trait

_CLASSES: Final = frozenset(
    {
        "VCPU",
        "PCPU",
        "MEMORY_MB",
        "DISK_GB",
        "SRIOV_NET_VF",
        "NET_BW_EGR_KILOBIT_PER_SEC",
        "NET_BW_IGR_KILOBIT_PER_SEC",
        "PGPU",
        "VGPU",
        "FPGA",
    }
)
_CLASS_STARTS: Final = ("CUSTOM_PCI_", "CUSTOM_HUGEPAGES_")
_TRAIT_STARTS: Final = (
    "HW_",
    "CUSTOM_PCI_",
    "CUSTOM_PHYSNET_",
    "CUSTOM_VGPU_",
    "CUSTOM_FPGA_INTERFACE_",
)


def is_managed_class(key: str, name: ResourceClass) -> bool:
    """Whether the agent reports such a class on such a provider, so that it may remove it."""
    return name in _CLASSES or name.startswith(_CLASS_STARTS) or kind_of(key) == "disk"


def merged(present: Inventory | None, target: TargetInventory, name: ResourceClass) -> Inventory:
    """The inventory as it should be: what the target leaves open stays as it is."""
    reserved = target.reserved
    if reserved is None:
        reserved = present.reserved if present else 0
    ratio = target.allocation_ratio
    if ratio is None:
        ratio = present.allocation_ratio if present else 1.0
    return Inventory(
        resource_class=name,
        total=target.total,
        reserved=min(reserved, target.total),
        max_unit=target.total,
        allocation_ratio=ratio,
    )


def device_inventories(
    target: TargetProvider, present: PresentProvider, cautions: list[Caution]
) -> tuple[Inventory, ...]:
    """A device's inventories: never below what is in use, and never without a class in use."""
    found: dict[ResourceClass, Inventory] = {}
    for name, one in target.inventories.items():
        before = present.inventories.get(name)
        if before is not None and VANISHED in present.traits:
            before = None  # it is back: nothing of it is kept back any more
        found[name] = merged(before, one, name)
        used = present.used(name)
        if used > one.total:
            said = f"{used} {name} are in use, and {one.total} are there; {used} stay"
            cautions.append(Caution("below-use", present.name, said))
            found[name] = Inventory(
                name, used, max_unit=used, allocation_ratio=found[name].allocation_ratio
            )
    for name, before in present.inventories.items():
        if name in found:
            continue
        if not is_managed_class(target.key, name):
            found[name] = before
        elif present.used(name):
            said = f"{name} is gone, and in use; it stays, with all of it reserved"
            cautions.append(Caution("vanished-in-use", present.name, said))
            found[name] = kept_back(before)
    return in_order(found)


def kept_back(one: Inventory) -> Inventory:
    """The inventory with nothing left to allocate."""
    return Inventory(
        one.resource_class,
        one.total,
        one.total,
        one.min_unit,
        one.max_unit,
        one.step_size,
        one.allocation_ratio,
    )


def in_order(some: Mapping[ResourceClass, Inventory]) -> tuple[Inventory, ...]:
    """Inventories by class."""
    return tuple(some[name] for name in sorted(some))


def merged_traits(target: TargetProvider, present: frozenset[Trait]) -> frozenset[Trait]:
    """The target's traits, the mark of ownership, and those that others have added."""
    others = {one for one in present if one != VANISHED and not one.startswith(_TRAIT_STARTS)}
    return target.traits | others | {OWNED}


def device_model(key: str, traits: frozenset[Trait], classes: frozenset[ResourceClass]) -> object:
    """What devices have in common that may stand for each other after a change of addresses."""
    if not is_device(key):
        return None
    telling = frozenset(one for one in traits if one.startswith(_TRAIT_STARTS))
    return kind_of(key), telling, classes
