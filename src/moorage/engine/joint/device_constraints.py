"""The constraints that devices add to a joint problem: host filters, columns, pool cuts, a proof.

Filters and columns are relaxations of the devices' exact feasibility: what they reject is
impossible; what they allow is proved for each placement found (`proved_solve`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.engine.devices.proof import Proof
from moorage.engine.devices.role_capacity import RoleCapacity, role_capacity, role_rules
from moorage.engine.devices.role_filters import DEVICES, with_room
from moorage.engine.devices.slot_requirements import lending_nothing
from moorage.engine.joint.device_cuts import pool_cuts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.role_capacity import RoleRules
    from moorage.engine.devices.slot_requirements import Slot
    from moorage.engine.joint.terrain import Terrain
    from moorage.policies.primitives import Cut

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DeviceConstraints:
    """Constraints for R roles and H hosts, as X columns besides the terrain's classes."""

    proof: Proof
    rules: tuple[RoleRules, ...]
    """[R]"""
    unrestricted: tuple[RoleCapacity, ...]
    """[R] where no provider is closed to any role."""
    restricted: tuple[RoleCapacity, ...]
    """[R] without those that are closed; the same if none is."""
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
    hosts = terrain.host_count
    counts = [moving.get(role.name, 0) for role in roles]
    rules = tuple(role_rules(role, devices, terrain.aggregates, hosts) for role in roles)
    restricted = unrestricted = tuple(
        role_capacity(role, one, devices, hosts, count)
        for role, one, count in zip(roles, rules, counts, strict=True)
    )
    wishes = [
        replace(one.requirements, role=role.name) for role, one in zip(roles, rules, strict=True)
    ]
    shut = [_positions(devices, closed[role.name]) & devices.trees.lends for role in roles]
    if any(mask.any() for mask in shut):
        wishes = [lending_nothing(one, mask) for one, mask in zip(wishes, shut, strict=True)]
        restricted = tuple(
            RoleCapacity.unknown(one, devices.trees, hosts).renewed(devices, count)
            for one, count in zip(wishes, counts, strict=True)
        )
    proof = Proof(devices, tuple(wishes), hosts)
    demand = [np.eye(len(roles), dtype=np.int64)]
    most = [one.max_members(count) for one, count in zip(restricted, counts, strict=True)]
    free = [np.array(most, dtype=np.int64).reshape(len(roles), -1).T]
    names = [f"places for {role.name}" for role in roles]
    if sum(map(bool, counts)) > 1:
        for name, needs, has in _slot_columns(proof):
            demand.append(needs[:, None])
            free.append(has[:, None])
            names.append(name)
    return DeviceConstraints(
        proof=proof,
        rules=rules,
        unrestricted=unrestricted,
        restricted=restricted,
        demand=np.hstack(demand),
        free=np.hstack(free) if hosts else np.zeros((0, len(names)), dtype=np.int64),
        names=tuple(names),
        cuts=tuple(pool_cuts(proof, moving)),
    )


def device_filters(number: int, constraints: DeviceConstraints) -> Iterator[tuple[str, Bools]]:
    """The filters of hosts for one role alone, nothing closed: reason id and mask [H]."""
    proof, rules = constraints.proof, constraints.rules[number]
    each = np.ones(proof.host_count, dtype=np.bool_)
    for reason, mask in (
        *rules.filters.own,
        *rules.filters.slots,
        *with_room(rules.requirements, rules.filters, proof.devices, proof.host_count),
    ):
        each &= mask
        yield reason, mask
    # Hosts that fail a filter above are not rejected a second time.
    yield DEVICES, constraints.unrestricted[number].serves_one | ~each


def filters_without_size(
    number: int, constraints: DeviceConstraints
) -> tuple[tuple[str, Bools], ...]:
    """The filters of hosts for a role without resources of its own: reason id and mask [H]."""
    return constraints.rules[number].filters.sizeless


def serves_when_empty(role: Role, number: int, constraints: DeviceConstraints) -> Bools:
    """[H] hosts that could serve one member of a role with all capacity free, nothing closed."""
    proof, rules = constraints.proof, constraints.rules[number]
    empty = proof.devices.without_bookings()
    return role_capacity(role, rules, empty, proof.host_count, 1).serves_one


def lending_closed(
    constraints: DeviceConstraints, closed: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The keys of `closed` with a provider that lends to hosts of other trees."""
    devices = constraints.proof.devices
    return frozenset(
        key
        for key, uuids in closed.items()
        if (_positions(devices, uuids) & devices.trees.lends).any()
    )


def with_lenders_closed(number: int, constraints: DeviceConstraints) -> Bools:
    """[H] hosts that serve one member of a role, or would not with all lenders open."""
    serves_one = constraints.unrestricted[number].serves_one
    return constraints.restricted[number].serves_one | ~serves_one


def _positions(devices: Devices, uuids: frozenset[str]) -> Bools:
    """[P] providers with these UUIDs."""
    found = np.zeros(len(devices.uuids), dtype=np.bool_)
    found[[devices.position_of[uuid] for uuid in uuids if uuid in devices.position_of]] = True
    return found


def _slot_columns(proof: Proof) -> Iterator[tuple[str, Ints, Ints]]:
    """Columns per slot and class: name, demand [R], and [H] what its providers have free.

    The demand counts all slots that only these providers may serve.
    """
    devices = proof.devices
    slots = [(r, slot) for r, one in enumerate(proof.requirements) for slot in one.slots]
    numbers: dict[tuple[bytes, bytes], int] = {}
    # Slots with the same providers have the same number.
    number = [numbers.setdefault(_givers(slot), len(numbers)) for _, slot in slots]
    within: dict[tuple[int, int], bool] = {}
    seen: set[tuple[int, int]] = set()
    for mine, (_, slot) in zip(number, slots, strict=True):
        for k, _ in slot.amounts:
            if (k, mine) in seen:
                continue
            seen.add((k, mine))
            needs = np.zeros(len(proof.requirements), dtype=np.int64)
            for theirs, (r, other) in zip(number, slots, strict=True):
                pair = theirs, mine
                if pair not in within:
                    within[pair] = not (
                        (other.own & ~slot.own).any() or (other.lends & ~slot.lends).any()
                    )
                if within[pair]:
                    needs[r] += sum(amount for c, amount in other.amounts if c == k)
            room = np.maximum(devices.free[:, k], 0)
            has = devices.per_host(
                np.where(slot.own, room, 0), np.where(slot.lends, room, 0), proof.host_count
            )
            yield f"{devices.classes[k]} for {slot.label}", needs, has


def _givers(slot: Slot) -> tuple[bytes, bytes]:
    return slot.own.tobytes(), slot.lends.tobytes()
