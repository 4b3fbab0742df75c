"""What devices add to a joint problem: filters per role, columns that count, pools, and a proof.

Filters and columns are relaxations: what they refuse is impossible, what they allow is proved
once somebody stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.devices.proof import Proof
from moorage.engine.devices.slot_requirements import obeys_units, role_requirements
from moorage.engine.joint.device_cuts import pools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.slot_requirements import Slot
    from moorage.engine.joint.terrain import Terrain
    from moorage.policies.primitives import Cut

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

DEVICES = "devices"
"""Reason id of hosts that have each of a role's devices, but not all for one member."""


@dataclass(frozen=True, eq=False)
class Outfit:
    """R roles and H hosts; X columns beside those of the terrain's classes."""

    proof: Proof
    demand: Ints
    """[R, X]"""
    free: Ints
    """[H, X]"""
    names: tuple[str, ...]
    """Length X."""
    cuts: tuple[Cut, ...]


def outfit(
    terrain: Terrain, devices: Devices, roles: Sequence[Role], moving: Mapping[str, int]
) -> Outfit:
    """State the devices of these roles.

    Args:
        terrain: the hosts.
        devices: its providers.
        roles: the roles of the problem.
        moving: role -> how many of its members are to be placed.
    """
    wishes = tuple(role_requirements(role, devices, terrain.aggregates) for role in roles)
    proof = Proof(devices, wishes, terrain.host_count)
    counts = [proof.max_members(r, moving.get(role.name, 0)) for r, role in enumerate(roles)]
    demand = [np.eye(len(roles), dtype=np.int64)]
    free = [np.array(counts, dtype=np.int64).reshape(len(roles), -1).T]
    names = [f"places for {role.name}" for role in roles]
    if sum(bool(moving.get(role.name)) for role in roles) > 1:
        for name, needs, has in _narrow(proof):
            demand.append(needs[:, None])
            free.append(has[:, None])
            names.append(name)
    return Outfit(
        proof=proof,
        demand=np.hstack(demand),
        free=np.hstack(free) if terrain.host_count else np.zeros((0, len(names)), dtype=np.int64),
        names=tuple(names),
        cuts=tuple(pools(proof, moving)),
    )


def emptied(outfit: Outfit) -> Proof:
    """The same questions to the same devices, with nobody on them."""
    proof = outfit.proof
    return Proof(proof.devices.without_bookings(), proof.requirements, proof.host_count)


def filters(role: Role, number: int, outfit: Outfit) -> Iterator[tuple[str, Bools]]:
    """Every rule a host must pass for the role alone: reason id and mask [H]."""
    found = _Passing(outfit.proof)
    each = np.ones(outfit.proof.host_count, dtype=np.bool_)
    for reason, mask in (
        *found.of_role(role),
        *(one for slot in outfit.proof.requirements[number].slots for one in found.of_slot(slot)),
    ):
        each &= mask
        yield reason, mask
    alone = outfit.proof.single_role(number, 1)
    # Where something cannot be had at all, that has been said.
    yield DEVICES, alone.feasible | alone.undecided | ~each


class _Passing:
    """Masks over hosts: whether any provider in reach passes."""

    def __init__(self, proof: Proof) -> None:
        self._devices = proof.devices
        self._hosts = proof.host_count
        self._row, self._position, self._borrowed = proof.devices.accessible

    def _any(self, own: Bools, lends: Bools) -> Bools:
        passes = np.where(self._borrowed, lends[self._position], own[self._position])
        found = np.zeros(self._hosts, dtype=np.bool_)
        found[self._row[passes]] = True
        return found

    def of_role(self, role: Role) -> Iterator[tuple[str, Bools]]:
        """Unit rules, traits and aggregates of the member's own resources."""
        devices = self._devices
        has = {
            name: devices.max_unit[:, devices.classes.index(name)] > 0 for name in role.resources
        }
        for name, amount in role.resources.items():
            obeys = obeys_units(devices, devices.classes.index(name), amount)
            yield f"unit:{name}", self._any(obeys, obeys)
        if not has:
            return
        for any_of in role.required:
            gives = np.logical_or.reduce([*has.values()]) & np.logical_or.reduce(
                [devices.has_trait(trait) for trait in any_of]
            )
            yield f"trait:{'|'.join(sorted(any_of))}", self._any(gives, gives)
        for trait in sorted(role.forbidden):
            for mask in has.values():
                free_of = mask & ~devices.has_trait(trait)
                yield f"forbidden:{trait}", self._any(free_of, free_of)

    def of_slot(self, slot: Slot) -> Iterator[tuple[str, Bools]]:
        """That somebody may give the slot at all, and that somebody has so much left."""
        reason = f"{DEVICES}:{slot.group}" if slot.group else "aggregate"
        able = self._any(slot.own, slot.lends)
        yield reason, able
        for k, amount in slot.amounts:
            room = self._devices.free[:, k] >= amount
            name = self._devices.classes[k]
            yield f"capacity:{name}", self._any(slot.own & room, slot.lends & room) | ~able


def _narrow(proof: Proof) -> Iterator[tuple[str, Ints, Ints]]:
    """What the hosts have of a class from those who may give some slot, and what roles need of it.

    Needs [R] are those of all slots that nobody else may give.
    """
    row, position, borrowed = proof.devices.accessible
    slots = [(r, slot) for r, one in enumerate(proof.requirements) for slot in one.slots]
    seen: set[tuple[int, bytes, bytes]] = set()
    for _, slot in slots:
        for k, _ in slot.amounts:
            key = (k, slot.own.tobytes(), slot.lends.tobytes())
            if key in seen:
                continue
            seen.add(key)
            needs = np.zeros(len(proof.requirements), dtype=np.int64)
            for r, other in slots:
                if (other.own & ~slot.own).any() or (other.lends & ~slot.lends).any():
                    continue
                needs[r] += sum(amount for c, amount in other.amounts if c == k)
            able = np.where(borrowed, slot.lends[position], slot.own[position])
            has = np.zeros(proof.host_count, dtype=np.int64)
            room = np.maximum(proof.devices.free[position, k], 0)
            np.add.at(has, row, np.where(able, room, 0))
            yield f"{proof.devices.classes[k]} for {slot.label}", needs, has
