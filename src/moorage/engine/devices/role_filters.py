"""Filters of hosts by their devices, for one member of a role alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.devices.slot_requirements import obeys_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.slot_requirements import RoleRequirements, Slot

    Bools: TypeAlias = NDArray[np.bool_]
    Filter: TypeAlias = tuple[str, Bools]

DEVICES: Final = "devices"
"""Reason id of hosts that have each device of a role, but not all of them for one member."""


@dataclass(frozen=True, eq=False)
class UnchangingFilters:
    """The filters that bookings do not change: reason id and mask [H]."""

    sizeless: tuple[Filter, ...]
    """Of roles without resources of their own: also of hosts that are empty."""
    own: tuple[Filter, ...]
    """Unit rules and traits of the member's own resources."""
    slots: tuple[Filter, ...]
    """Per slot: whether a provider may serve it."""

    @property
    def masks(self) -> list[Bools]:
        """Of all filters."""
        return [mask for some in (self.sizeless, self.own, self.slots) for _, mask in some]


def unchanging_filters(
    role: Role,
    requirements: RoleRequirements,
    devices: Devices,
    aggregates: Mapping[str, Bools],
    hosts: int,
) -> UnchangingFilters:
    """The unchanging filters of so many hosts for a role.

    `aggregates` has, by aggregate UUID, [H] whether the host's root is in it.
    """
    usable = _Usable(devices, hosts)
    return UnchangingFilters(
        sizeless=tuple(_sizeless(role, devices, usable, aggregates)),
        own=tuple(_of_own(role, devices, usable)),
        slots=tuple(
            (
                f"{DEVICES}:{slot.group}" if slot.group else "aggregate",
                usable.any_of(slot.own, slot.lends),
            )
            for slot in requirements.slots
        ),
    )


def with_room(
    requirements: RoleRequirements, filters: UnchangingFilters, devices: Devices, hosts: int
) -> Iterator[Filter]:
    """Per slot and class: whether a provider of the host that may serve it has enough free."""
    usable = _Usable(devices, hosts)
    for slot, (_, able) in zip(requirements.slots, filters.slots, strict=True):
        for k, amount in slot.amounts:
            yield f"capacity:{devices.classes[k]}", usable.has_room(slot, k, amount) | ~able


def _sizeless(
    role: Role, devices: Devices, usable: _Usable, aggregates: Mapping[str, Bools]
) -> Iterator[Filter]:
    """Of a role without resources of its own.

    Some provider of the host, or shared with it, has a trait of each set; one of them, or the host,
    is in an aggregate of each.
    """
    if role.resources or role.of_one_provider:
        return
    for any_of in role.required:
        gives = np.logical_or.reduce([devices.has_trait(trait) for trait in any_of])
        yield f"trait:{'|'.join(sorted(any_of))}", usable.any_of(gives, gives)
    for any_of in role.member_of:
        gives = devices.in_any_aggregate(any_of)
        roots = [aggregates[uuid] for uuid in any_of if uuid in aggregates]
        yield "aggregate", np.logical_or.reduce([usable.any_of(gives, gives), *roots])


def _of_own(role: Role, devices: Devices, usable: _Usable) -> Iterator[Filter]:
    """Unit rules and traits of the member's own resources."""
    has = {
        name: devices.unit_rule("max_unit", devices.classes.index(name)) > 0
        for name in role.resources
    }
    for name, amount in role.resources.items():
        obeys = obeys_units(devices, devices.classes.index(name), amount)
        yield f"unit:{name}", usable.any_of(obeys, obeys)
    if not has:
        return
    for any_of in role.required:
        gives = np.logical_or.reduce([*has.values()]) & np.logical_or.reduce(
            [devices.has_trait(trait) for trait in any_of]
        )
        yield f"trait:{'|'.join(sorted(any_of))}", usable.any_of(gives, gives)
    for trait in sorted(role.forbidden):
        for mask in has.values():
            free_of = mask & ~devices.has_trait(trait)
            yield f"forbidden:{trait}", usable.any_of(free_of, free_of)


class _Usable:
    """Turns masks over providers into masks over hosts: whether a usable provider is in them."""

    def __init__(self, devices: Devices, hosts: int) -> None:
        self._devices, self._hosts = devices, hosts

    def any_of(self, own: Bools, lends: Bools) -> Bools:
        """[H] whether a provider of the host is in `own` [P], or one that it may use in `lends`."""
        trees = self._devices.trees
        found = np.zeros(self._hosts + 1, dtype=np.bool_)  # the last is for providers of no host
        found[trees.host[own]] = True
        if len(trees.lender):
            found[trees.borrower[lends[trees.lender]]] = True
        return found[:-1]

    def has_room(self, slot: Slot, k: int, amount: int) -> Bools:
        """[H] whether a provider that may serve the slot has the amount free."""
        room = self._devices.free[:, k] >= amount
        own = slot.own & room
        return self.any_of(own, own if slot.lends is slot.own else slot.lends & room)
