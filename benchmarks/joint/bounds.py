"""Lower bounds of what an answer costs, by counting, independent of the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from benchmarks.joint.checker import domain_of, suitable

if TYPE_CHECKING:
    from benchmarks.joint.draft import Instance
    from benchmarks.joint.fleet import Fleet


def least_hops(fleet: Fleet, instance: Instance) -> int:
    """No placement has fewer hops: each team alone on the fleet, on hosts of its own.

    A team of n members that may not share hosts has n - 1 hops between hosts, and one for every
    rack and zone beyond the first; it needs as many as the roomiest of them take to hold it.
    """
    total = 0
    for team in instance.teams:
        size = sum(member.role == team for member in instance.request.members)
        role = next(role for role in instance.request.roles if role.name == team)
        demand = np.array([role.resources.get(name, 0) for name in fleet.classes])
        room = (fleet.free >= demand).all(axis=1) & suitable(fleet, role) & ~fleet.closed
        total += size - 1
        for level in ("rack", "zone"):
            held = np.sort(np.bincount(domain_of(fleet, level), room))[::-1]
            total += int(np.searchsorted(np.cumsum(held), size))
    return total
