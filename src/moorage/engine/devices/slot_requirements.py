"""What a role requires of providers, slot by slot, and which providers may give each.

A slot is what one provider gives in one piece: a request group as a whole, or one resource
class of the member's own resources. The rules are Placement's: a group's provider meets the
group's traits and aggregates itself; the providers of the own resources together have every
required trait, none has a forbidden one, and each is in the aggregates itself or by its root.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Group, Role
    from moorage.domain.resources import Amounts
    from moorage.engine.devices.host_trees import Devices

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Slot:
    """One piece, and who may give it as far as traits, aggregates and unit rules say."""

    group: str
    """Empty for the member's own resources."""
    amounts: tuple[tuple[int, int], ...]
    """(Class number, amount)."""
    own: Bools
    """[P] to members on its own tree."""
    lends: Bools
    """[P] to members of hosts that it shares with."""
    label: str
    """What is asked for, in words."""


@dataclass(frozen=True, eq=False)
class Wish:
    """One member of a role in slots; sets hold numbers of slots."""

    role: str
    slots: tuple[Slot, ...]
    required: tuple[Bools, ...]
    """[P] per required trait set: who has any of it. The own slots' givers meet all together."""
    subtrees: tuple[frozenset[int], ...]
    """In each set, one slot's giver is or stands above all the others."""
    beside: frozenset[int]
    """Slots whose givers are of one subtree with those of the own slots."""
    isolate: bool

    @property
    def own(self) -> frozenset[int]:
        """Numbers of the slots of the member's own resources."""
        return frozenset(n for n, slot in enumerate(self.slots) if not slot.group)


def wish(role: Role, devices: Devices, rooted: Mapping[str, Bools]) -> Wish:
    """What one member of a role asks of these providers.

    Args:
        role: the role.
        devices: the providers.
        rooted: aggregate UUID -> [H] whether the host's root is in it.
    """
    slots = (*_own_slots(role, devices, rooted), *(_group(one, devices) for one in role.groups))
    number = {slot.group: n for n, slot in enumerate(slots) if slot.group}
    return Wish(
        role=role.name,
        slots=slots,
        required=tuple(_any_trait(devices, any_of) for any_of in role.required),
        subtrees=tuple(frozenset(number[name] for name in names) for names in role.same_subtree),
        beside=frozenset(number[one.name] for one in role.groups if one.beside),
        isolate=role.isolate,
    )


def words(resources: Amounts, required: tuple[frozenset[str], ...]) -> str:
    """What a group asks for: `2 SRIOV_NET_VF with CUSTOM_PHYSNET_A`."""
    amounts = " and ".join(f"{n} {name}" for name, n in sorted(resources.items())) or "a provider"
    traits = ", ".join(sorted("|".join(sorted(any_of)) for any_of in required))
    return f"{amounts} with {traits}" if traits else amounts


def _own_slots(role: Role, devices: Devices, rooted: Mapping[str, Bools]) -> Iterator[Slot]:
    allowed = _without(devices, role.forbidden)
    by_itself = _in_every(devices, role.member_of)
    by_root = by_itself | _root_in_every(devices, role.member_of, rooted)
    for name, amount in sorted(role.resources.items()):
        k = devices.classes.index(name)
        gives = allowed & obeys_units(devices, k, amount)
        yield Slot("", ((k, amount),), gives & by_root, gives & by_itself, f"{amount} {name}")


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
    # A provider that gives nothing is only named as a part of the host's own tree.
    lends = gives if amounts else np.zeros_like(gives)
    return Slot(group.name, amounts, gives, lends, words(group.resources, group.required))


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
        found &= devices.in_any(any_of)
    return found


def _root_in_every(
    devices: Devices, member_of: tuple[frozenset[str], ...], rooted: Mapping[str, Bools]
) -> Bools:
    """[P] whether the root of its tree alone is in an aggregate of every set."""
    found: Bools = devices.host >= 0
    for any_of in member_of:
        masks = [np.append(rooted[uuid], False) for uuid in any_of if uuid in rooted]
        found = found & reduce(
            np.logical_or, (m[devices.host] for m in masks), np.zeros_like(found)
        )
    return found


def obeys_units(devices: Devices, k: int, amount: int) -> Bools:
    """[P] whether one booking of the amount obeys min, max and step of the provider."""
    obeys: Bools = (devices.min_unit[:, k] <= amount) & (devices.max_unit[:, k] >= amount)
    obeys &= amount % devices.step_size[:, k] == 0
    return obeys
