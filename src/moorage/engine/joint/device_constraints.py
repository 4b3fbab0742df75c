"""The constraints that devices add to a joint problem: host filters, columns, pool cuts, a proof.

Filters and columns are relaxations of the devices' exact feasibility: what they reject is
impossible; what they allow is proved for each placement found (`proved_solve`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.devices.proof import Proof
from moorage.engine.devices.slot_requirements import (
    lending_nothing,
    obeys_units,
    role_requirements,
)
from moorage.engine.joint.device_cuts import pool_cuts

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
"""Reason id of hosts that have each device of a role, but not all of them for one member."""


@dataclass(frozen=True, eq=False)
class DeviceConstraints:
    """Constraints for R roles and H hosts, as X columns besides the terrain's classes."""

    proof: Proof
    unrestricted: Proof
    """The same where no provider is closed to any role."""
    demand: Ints
    """[R, X]"""
    free: Ints
    """[H, X]"""
    names: tuple[str, ...]
    """Length X."""
    cuts: tuple[Cut, ...]


def device_constraints(
    terrain: Terrain,
    devices: Devices,
    roles: Sequence[Role],
    moving: Mapping[str, int],
    closed: Mapping[str, frozenset[str]],
) -> DeviceConstraints:
    """Build the device constraints of these roles.

    `moving` has, by role, how many of its members are to be placed; `closed` the UUIDs of providers
    that may not be used for it.
    """
    wishes = tuple(role_requirements(role, devices, terrain.aggregates) for role in roles)
    proof = unrestricted = Proof(devices, wishes, terrain.host_count)
    shut = [_positions(devices, closed[role.name]) & devices.lends for role in roles]
    if any(mask.any() for mask in shut):
        pairs = zip(wishes, shut, strict=True)
        restricted = tuple(lending_nothing(one, mask) for one, mask in pairs)
        proof = Proof(devices, restricted, terrain.host_count)
    counts = [proof.max_members(r, moving.get(role.name, 0)) for r, role in enumerate(roles)]
    demand = [np.eye(len(roles), dtype=np.int64)]
    free = [np.array(counts, dtype=np.int64).reshape(len(roles), -1).T]
    names = [f"places for {role.name}" for role in roles]
    if sum(bool(moving.get(role.name)) for role in roles) > 1:
        for name, needs, has in _slot_columns(proof):
            demand.append(needs[:, None])
            free.append(has[:, None])
            names.append(name)
    return DeviceConstraints(
        proof=proof,
        unrestricted=unrestricted,
        demand=np.hstack(demand),
        free=np.hstack(free) if terrain.host_count else np.zeros((0, len(names)), dtype=np.int64),
        names=tuple(names),
        cuts=tuple(pool_cuts(proof, moving)),
    )


def empty_proof(constraints: DeviceConstraints) -> Proof:
    """The proof for the same roles and devices with all capacity free, and nothing closed."""
    proof = constraints.unrestricted
    return Proof(proof.devices.without_bookings(), proof.requirements, proof.host_count)


def device_filters(
    role: Role, number: int, constraints: DeviceConstraints
) -> Iterator[tuple[str, Bools]]:
    """The filters of hosts for the role alone, nothing closed: reason id and mask [H]."""
    proof = constraints.unrestricted
    found = _HostMasks(proof)
    each = np.ones(proof.host_count, dtype=np.bool_)
    for reason, mask in (
        *found.of_role(role),
        *(one for slot in proof.requirements[number].slots for one in found.of_slot(slot)),
    ):
        each &= mask
        yield reason, mask
    # Hosts that fail a filter above are not rejected a second time.
    yield DEVICES, _serves_one(proof, number) | ~each


def lending_closed(
    constraints: DeviceConstraints, closed: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The keys of `closed` with a provider that lends to hosts of other trees."""
    devices = constraints.proof.devices
    return frozenset(
        key for key, uuids in closed.items() if (_positions(devices, uuids) & devices.lends).any()
    )


def with_lenders_closed(number: int, constraints: DeviceConstraints) -> Bools:
    """[H] hosts that serve one member of a role, or would not with all lenders open."""
    proof, unrestricted = constraints.proof, constraints.unrestricted
    if proof is unrestricted:
        return np.ones(proof.host_count, dtype=np.bool_)
    return _serves_one(proof, number) | ~_serves_one(unrestricted, number)


def _serves_one(proof: Proof, number: int) -> Bools:
    """[H] hosts that may serve one member of a role, by number."""
    alone = proof.single_role(number, 1)
    return alone.feasible | alone.undecided


def _positions(devices: Devices, uuids: frozenset[str]) -> Bools:
    """[P] providers with these UUIDs."""
    found = np.zeros(len(devices.uuids), dtype=np.bool_)
    found[[devices.position_of[uuid] for uuid in uuids if uuid in devices.position_of]] = True
    return found


def filters_without_size(
    role: Role, constraints: DeviceConstraints, aggregates: Mapping[str, Bools]
) -> Iterator[tuple[str, Bools]]:
    """The filters of hosts for a role without resources of its own: reason id and mask [H].

    Some provider of the host, or shared with it, has a trait of each set; one of them, or the host,
    is in an aggregate of each. `aggregates` are those of hosts.
    """
    if role.resources or role.of_one_provider:
        return
    found, devices = _HostMasks(constraints.proof), constraints.proof.devices
    for any_of in role.required:
        gives = np.logical_or.reduce([devices.has_trait(trait) for trait in any_of])
        yield f"trait:{'|'.join(sorted(any_of))}", found.any_of(gives, gives)
    for any_of in role.member_of:
        gives = devices.in_any_aggregate(any_of)
        roots = [aggregates[uuid] for uuid in any_of if uuid in aggregates]
        yield "aggregate", np.logical_or.reduce([found.any_of(gives, gives), *roots])


class _HostMasks:
    """Turns masks over devices into masks over hosts: whether a usable provider is in them."""

    def __init__(self, proof: Proof) -> None:
        self._devices = proof.devices
        self._hosts = proof.host_count
        self._row, self._position, self._borrowed = proof.devices.accessible

    def any_of(self, own: Bools, lends: Bools) -> Bools:
        """[H] whether a provider of the host is in `own` [P], or one that it may use in `lends`."""
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
            yield f"unit:{name}", self.any_of(obeys, obeys)
        if not has:
            return
        for any_of in role.required:
            gives = np.logical_or.reduce([*has.values()]) & np.logical_or.reduce(
                [devices.has_trait(trait) for trait in any_of]
            )
            yield f"trait:{'|'.join(sorted(any_of))}", self.any_of(gives, gives)
        for trait in sorted(role.forbidden):
            for mask in has.values():
                free_of = mask & ~devices.has_trait(trait)
                yield f"forbidden:{trait}", self.any_of(free_of, free_of)

    def of_slot(self, slot: Slot) -> Iterator[tuple[str, Bools]]:
        """Whether a provider may serve the slot, and whether one has enough free."""
        reason = f"{DEVICES}:{slot.group}" if slot.group else "aggregate"
        able = self.any_of(slot.own, slot.lends)
        yield reason, able
        for k, amount in slot.amounts:
            room = self._devices.free[:, k] >= amount
            name = self._devices.classes[k]
            yield f"capacity:{name}", self.any_of(slot.own & room, slot.lends & room) | ~able


def _slot_columns(proof: Proof) -> Iterator[tuple[str, Ints, Ints]]:
    """Columns per slot and class: name, demand [R], and [H] what its providers have free.

    The demand counts all slots that only these providers may serve.
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
