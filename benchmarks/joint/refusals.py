"""Families of requests that cannot be placed, each with its only minimal conflict.

Each is a feasible ensemble with a part added that cannot be, whatever the fleet's load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks.joint.draft import Draft, Instance, NotPlantable
from benchmarks.joint.fleet import BEYOND, rare, rare_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def too_many(draft: Draft, members: int, seed: int) -> Instance:
    """More members than the domains may hold: of all zones, or of the racks with a trait."""
    if seed % 2:
        return _too_many_for_rare_racks(draft, members, seed)
    zones = len(draft.fleet.called["zone"])
    each = max(members // 2 // zones, 1)
    _background(draft, members - zones * each - 1)
    role = draft.role("many", 2, 4)
    for _ in range(zones * each + 1):
        draft.without_host(role)
    draft.policy("many-zones", "anti-affinity", role, level="zone", max_per_domain=each)
    return draft.instance("too-many", seed, conflict=frozenset({("policy", "many-zones")}))


def _too_many_for_rare_racks(draft: Draft, members: int, seed: int) -> Instance:
    for size in reversed(rare_sizes(len(draft.fleet.names))):
        role = draft.role("many", 1, 1, rare(size))
        racks = len(np.unique(draft.domains("rack")[draft.slots(role) > 0]))
        if racks < members and racks < len(draft.fleet.called["rack"]):
            break
    else:
        raise NotPlantable
    _background(draft, members - racks - 1)
    for _ in range(racks + 1):
        draft.without_host(role)
    draft.policy("many-racks", "anti-affinity", role, level="rack")
    conflict = frozenset({("policy", "many-racks"), ("traits", role)})
    return draft.instance("too-many", seed, conflict=conflict)


def zone_missing(draft: Draft, members: int, seed: int) -> Instance:
    """A role in every zone, with a trait that no host of one zone has."""
    zones = len(draft.fleet.called["zone"])
    count = max(members // 3, zones)
    _background(draft, members - count)
    role = draft.role("wide", 4, 8, BEYOND)
    for _ in range(count):
        draft.without_host(role)
    draft.policy("wide-zones", "spread", role, level="zone", min_domains=zones)
    draft.policy("wide-apart", "anti-affinity", role)
    conflict = frozenset({("policy", "wide-zones"), ("traits", role)})
    return draft.instance("zone-missing", seed, conflict=conflict)


def crossing(draft: Draft, members: int, seed: int) -> Instance:
    """Two policies of which each alone can be met: near each other and far from each other."""
    count = max(members // 3, 3)
    names = ("near", "far")
    if seed % 2:
        _background(draft, members - 2 * count)
        one, other = draft.role("left", 2, 4), draft.role("right", 2, 4)
        for role in (one, other):
            for _ in range(count):
                draft.without_host(role)
        draft.policy("near", "proximity", one, other, zip_=True, level="rack")
        draft.policy("far", "separation", one, other, zip_=True, level="rack")
    else:
        count = min(count, 8)
        _background(draft, members - count)
        role = draft.role("torn", 1, 1)
        for _ in range(count):
            draft.without_host(role)
        draft.policy("near", "affinity", role, level="rack")
        draft.policy("far", "spread", role, level="rack", min_domains=3)
    conflict = frozenset(("policy", name) for name in names)
    return draft.instance("crossing", seed, conflict=conflict)


def capacity(draft: Draft, members: int, seed: int) -> Instance:
    """One member more than the hosts with a trait have room for."""
    for size in reversed(rare_sizes(len(draft.fleet.names))):
        for cores in (16, 32, 48):
            role = draft.role("large", cores, 2 * cores, rare(size))
            slots = int(draft.slots(role).sum())
            if 0 < slots < members:
                break
        else:
            continue
        break
    else:
        raise NotPlantable
    _background(draft, members - slots - 1)
    for _ in range(slots + 1):
        draft.without_host(role)
    conflict = frozenset({("resources", role), ("traits", role)})
    return draft.instance("capacity", seed, conflict=conflict)


def _background(draft: Draft, members: int) -> None:
    """Members of two roles that can be placed, with policies that hold beside the others."""
    if members <= 0:
        return
    front, back = draft.role("front", 2, 4), draft.role("back", 4, 8)
    draft.plant(front, members - members // 2, most={"host": 1}, even="zone")
    draft.plant(back, members // 2, most={"host": 1})
    draft.policy("front-apart", "anti-affinity", front)
    draft.policy("front-zones", "spread", front, level="zone", max_skew=1)
    if members > 1:
        draft.policy("back-apart", "anti-affinity", back)


REFUSALS: Final[Mapping[str, Callable[[Draft, int, int], Instance]]] = {
    "too-many": too_many,
    "zone-missing": zone_missing,
    "crossing": crossing,
    "capacity": capacity,
}
"""Families of requests that cannot be placed."""
