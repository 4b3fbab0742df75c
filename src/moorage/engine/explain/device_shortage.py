"""Explains missing devices: what a role's groups demand, and how many hosts have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moorage.engine.devices.slot_requirements import describe_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.ensembles import Role
    from moorage.engine.joint.build import BuiltProblem


def device_demand(role: Role, groups: frozenset[str]) -> str:
    """The groups as text: `2 SRIOV_NET_VF with CUSTOM_PHYSNET_A beside its own resources`."""
    parts = [
        describe_group(one.resources, one.required)
        + (" beside its own resources" if one.beside else "")
        for one in role.groups
        if one.name in groups
    ]
    parts += [
        f"{' and '.join(sorted(names))} in one subtree"
        for names in (names & groups for names in role.same_subtree)
        if len(names) > 1
    ]
    if role.isolate and len(groups) > 1:
        parts.append("each group of a provider of its own")
    return ", ".join(parts)


def device_facts(built: BuiltProblem, role: Role, groups: frozenset[str]) -> dict[str, int]:
    """Facts: how often each group fits in total, and how many hosts can serve one member."""
    proof = built.problem.proof
    if proof is None or role.name not in built.problem.roles:
        return {}
    number = built.problem.roles.index(role.name)
    found = dict(_amounts(built, number, groups))
    served = proof.single_role(number, 1).feasible
    found[f"hosts that serve all of one {role.name}"] = int(served.sum())
    return found


def _amounts(built: BuiltProblem, number: int, groups: frozenset[str]) -> Iterator[tuple[str, int]]:
    proof = built.problem.proof
    assert proof is not None
    devices = proof.devices
    for slot in proof.requirements[number].slots:
        if slot.group in groups:
            able = slot.own | slot.lends
            for k, amount in slot.amounts:
                whole = np.maximum(devices.free[able, k], 0) // amount
                yield f"places for {slot.label}", int(whole.sum())
