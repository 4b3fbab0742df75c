"""Checks an assignment of devices by sums and lookups, without a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.engine.devices.proof import Proof
    from moorage.engine.devices.slot_requirements import RoleRequirements
    from moorage.engine.joint.problem import Problem


def device_faults(
    problem: Problem,
    proof: Proof,
    rows: np.typing.NDArray[np.int64],
    providers: Mapping[int, tuple[int, ...]],
) -> Iterator[str]:
    """Every fault of an assignment of devices to the members that are placed now, as text.

    Args:
        problem: the members.
        proof: their requirements, and the devices.
        rows: [M] the host of each member.
        providers: per placed member, per slot of its role, the provider's position.
    """
    devices = proof.devices
    taken = np.zeros_like(devices.free)
    for m in np.flatnonzero(problem.fixed < 0).tolist():
        requirements = proof.requirements[int(problem.role_of[m])]
        given = providers.get(m, ())
        if len(given) != len(requirements.slots):
            yield f"{problem.members[m]} is not given all it asks for"
            continue
        mine: dict[tuple[int, int], int] = {}
        for slot, at in zip(requirements.slots, given, strict=True):
            gives = slot.own[at] if devices.host[at] == rows[m] else slot.lends[at]
            if not gives or not _reaches(proof, int(rows[m]), at):
                yield f"{problem.members[m]}: {slot.label} from {devices.uuids[at]}"
            for k, amount in slot.amounts:
                mine[at, k] = mine.get((at, k), 0) + amount
        if any(amount > devices.max_unit[key] for key, amount in mine.items()):
            yield f"{problem.members[m]} takes more of one provider than one consumer may"
        yield from (
            f"{problem.members[m]}: {fault}" for fault in _rule_faults(proof, requirements, given)
        )
        for key, amount in mine.items():
            taken[key] += amount
    for at, k in np.argwhere((taken > 0) & (taken > devices.free)).tolist():
        yield (
            f"{devices.classes[k]} of {devices.uuids[at]}: "
            f"taken {taken[at, k]}, free {devices.free[at, k]}"
        )


def _reaches(proof: Proof, host: int, at: int) -> bool:
    """Whether a host's members may use the provider."""
    devices = proof.devices
    if devices.host[at] == host:
        return True
    first, last = np.searchsorted(devices.borrower, [host, host + 1])
    return bool((devices.lender[first:last] == at).any())


def _rule_faults(
    proof: Proof, requirements: RoleRequirements, given: tuple[int, ...]
) -> Iterator[str]:
    """Faults of one member's providers: `same_subtree`, `beside`, `isolate` and required traits."""
    devices = proof.devices
    for names in requirements.subtrees:
        if not _one_subtree(proof, {given[n] for n in names}):
            yield "groups that belong together are of several subtrees"
    if requirements.beside:
        own = {given[n] for n in requirements.own if not devices.lends[given[n]]}
        low = {at for at in own if not any(_above(proof, at, one) for one in own - {at})}
        if not _one_subtree(proof, low | {given[n] for n in requirements.beside}):
            yield "a group is of another subtree than the member's own resources"
    named = [at for at, slot in zip(given, requirements.slots, strict=True) if slot.group]
    if requirements.isolate and len(set(named)) < len(named):
        yield "one provider serves two groups"
    for mask in requirements.required:
        if not any(mask[given[n]] for n in requirements.own):
            yield "nobody who gives own resources has a required trait"


def _one_subtree(proof: Proof, positions: set[int]) -> bool:
    return any(all(top == at or _above(proof, top, at) for at in positions) for top in positions)


def _above(proof: Proof, top: int, at: int) -> bool:
    """Whether one provider is an ancestor of another."""
    parent = proof.devices.parent
    at = int(parent[at])
    while at >= 0:
        if at == top:
            return True
        at = int(parent[at])
    return False
