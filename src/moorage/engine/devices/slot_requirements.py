"""The slots of a role, and the providers that may serve each.

A slot is what one provider allocates: a request group as a whole, or one resource class of the
member's own resources. The rules are Placement's: a group's provider meets the group's traits and
aggregates itself; the providers of the own resources together have every required trait, none has a
forbidden one, and each is in the aggregates itself or by its root.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.ensembles import MemberKind
from moorage.domain.request_groups import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.resources import Amounts
    from moorage.engine.devices.host_trees import Devices

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Slot:
    """One slot, and the providers that meet its traits, aggregates and unit rules."""

    group: str
    """The group's name; empty for the member's own resources."""
    amounts: tuple[tuple[int, int], ...]
    """(class number, amount) pairs."""
    own: Bools
    """[P] providers that may serve members on their own tree."""
    lends: Bools
    """[P] providers that may serve members on hosts with which they share."""
    label: str
    """The request as text."""


@dataclass(frozen=True, eq=False)
class RoleRequirements:
    """The slots of one member of a role, and the rules between them; sets hold slot numbers."""

    role: str
    slots: tuple[Slot, ...]
    required: tuple[Bools, ...] = ()
    """Per required trait set: [P] providers with any of its traits. The own slots' providers meet
    all sets together. Of a role without resources of its own none: `filters_without_size` decides
    by the providers of the host."""
    subtrees: tuple[frozenset[int], ...] = ()
    """`same_subtree` sets: one slot's provider is, or is an ancestor of, all the others."""
    beside: frozenset[int] = frozenset()
    """Slots whose providers are in one subtree with those of the own slots."""
    isolate: bool = False

    @property
    def own(self) -> frozenset[int]:
        """Numbers of the slots of the member's own resources."""
        return frozenset(n for n, slot in enumerate(self.slots) if not slot.group)


def role_requirements(
    role: Role, devices: Devices, host_aggregates: Mapping[str, Bools]
) -> RoleRequirements:
    """The requirements of one member of a role on these providers.

    `host_aggregates` has, by aggregate UUID, [H] whether the host's root is in it.
    """
    if role.of_one_provider:
        return RoleRequirements(role.name, (_whole(role, devices),))
    slots = (
        *_own_slots(role, devices, host_aggregates),
        *(_group(one, devices) for one in role.groups),
    )
    number = {slot.group: n for n, slot in enumerate(slots) if slot.group}
    return RoleRequirements(
        role=role.name,
        slots=slots,
        required=tuple(_any_trait(devices, any_of) for any_of in role.required if role.resources),
        subtrees=tuple(frozenset(number[name] for name in names) for names in role.same_subtree),
        beside=frozenset(number[one.name] for one in role.groups if one.beside),
        isolate=role.isolate,
    )


def lending_nothing(requirements: RoleRequirements, closed: Bools) -> RoleRequirements:
    """The requirements where these [P] providers lend nothing to hosts of other trees."""
    slots = (replace(slot, lends=slot.lends & ~closed) for slot in requirements.slots)
    return replace(requirements, slots=tuple(slots))


def describe_group(resources: Amounts, required: tuple[frozenset[str], ...]) -> str:
    """A group's request as text: `2 SRIOV_NET_VF with CUSTOM_PHYSNET_A`."""
    amounts = " and ".join(f"{n} {name}" for name, n in sorted(resources.items())) or "a provider"
    traits = ", ".join(sorted("|".join(sorted(any_of)) for any_of in required))
    return f"{amounts} with {traits}" if traits else amounts


def _own_slots(
    role: Role, devices: Devices, host_aggregates: Mapping[str, Bools]
) -> Iterator[Slot]:
    allowed = _without(devices, role.forbidden)
    by_itself = _in_every(devices, role.member_of)
    by_root = by_itself | _root_in_every(devices, role.member_of, host_aggregates)
    for name, amount in sorted(role.resources.items()):
        k = devices.classes.index(name)
        own = lends = allowed & obeys_units(devices, k, amount)
        if role.member_of:
            own, lends = own & by_root, lends & by_itself
        yield Slot("", ((k, amount),), own, lends, f"{amount} {name}")


def _group(group: Group, devices: Devices) -> Slot:
    amounts = tuple(
        (devices.classes.index(name), amount) for name, amount in sorted(group.resources.items())
    )
    masks = [
        _without(devices, group.forbidden),
        _in_every(devices, group.member_of),
        *(_any_trait(devices, any_of) for any_of in group.required),
        *(obeys_units(devices, k, amount) for k, amount in amounts),
    ]
    gives = reduce(np.logical_and, masks)
    # A group without resources selects a provider of the host's own tree only.
    lends = gives if amounts else np.zeros_like(gives)
    return Slot(group.name, amounts, gives, lends, describe_group(group.resources, group.required))


def _whole(role: Role, devices: Devices) -> Slot:
    """The slot of a volume or port, with the name of its kind: a group that no other tree serves.

    A volume is not given by compute nodes: servers take from their disks.
    """
    one = Group(
        role.kind,
        role.resources,
        required=role.required,
        forbidden=role.forbidden,
        member_of=role.member_of,
    )
    slot = _group(one, devices)
    own = slot.own & ~devices.trees.computing if role.kind == MemberKind.VOLUME else slot.own
    return replace(slot, own=own, lends=np.zeros_like(own))


def _any_trait(devices: Devices, any_of: frozenset[str]) -> Bools:
    found = np.zeros(len(devices.uuids), dtype=np.bool_)
    for trait in any_of:
        found |= devices.has_trait(trait)
    return found


def _without(devices: Devices, forbidden: frozenset[str]) -> Bools:
    return ~_any_trait(devices, forbidden)


def _in_every(devices: Devices, member_of: tuple[frozenset[str], ...]) -> Bools:
    found = np.ones(len(devices.uuids), dtype=np.bool_)
    for any_of in member_of:
        found &= devices.in_any_aggregate(any_of)
    return found


def _root_in_every(
    devices: Devices, member_of: tuple[frozenset[str], ...], host_aggregates: Mapping[str, Bools]
) -> Bools:
    """[P] whether the root of the provider's tree is in an aggregate of every set."""
    found: Bools = devices.trees.host >= 0
    for any_of in member_of:
        masks = [
            np.append(host_aggregates[uuid], False) for uuid in any_of if uuid in host_aggregates
        ]
        found = found & reduce(
            np.logical_or, (m[devices.trees.host] for m in masks), np.zeros_like(found)
        )
    return found


def obeys_units(devices: Devices, k: int, amount: int) -> Bools:
    """[P] whether the amount obeys the provider's min_unit, max_unit and step_size."""
    obeys: Bools = devices.unit_rule("min_unit", k) <= amount
    obeys &= devices.unit_rule("max_unit", k) >= amount
    obeys &= amount % devices.unit_rule("step_size", k) == 0
    return obeys
