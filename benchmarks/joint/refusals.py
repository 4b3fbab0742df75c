"""Families of requests that cannot be placed, each with its only minimal conflict.

Each is a feasible ensemble with a part added that cannot be, whatever the fleet's load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks.joint.draft import Draft, Instance, NotPlantable, Part
from benchmarks.joint.fleet import BEYOND, rare, rare_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def too_many(draft: Draft, members: int, seed: int) -> Instance:
    """More members than the domains may hold, said in one of four ways."""
    variants = (_over_zones, _over_rare_racks, _surviving_too_much, _over_a_fence)
    return variants[seed % len(variants)](draft, members, seed)


def _over_zones(draft: Draft, members: int, seed: int) -> Instance:
    zones = len(draft.fleet.called["zone"])
    each = max(members // 2 // zones, 1)
    _background(draft, members - zones * each - 1, seed)
    role = _unplaced(draft, zones * each + 1, draft.role("many", 2, 4))
    draft.policy("many-zones", "anti-affinity", role, level="zone", max_per_domain=each)
    return draft.instance("too-many", seed, conflict=_parts("many-zones"))


def _over_rare_racks(draft: Draft, members: int, seed: int) -> Instance:
    for size in reversed(rare_sizes(len(draft.fleet.names))):
        role = draft.role("many", 1, 1, rare(size))
        racks = len(np.unique(draft.domains("rack")[draft.slots(role) > 0]))
        if racks < members and racks < len(draft.fleet.called["rack"]):
            break
    else:
        raise NotPlantable
    _background(draft, members - racks - 1, seed)
    _unplaced(draft, racks + 1, role)
    draft.policy("many-racks", "anti-affinity", role, level="rack")
    return draft.instance("too-many", seed, conflict=_parts("many-racks", traits=role))


def _surviving_too_much(draft: Draft, members: int, seed: int) -> Instance:
    zones = len(draft.fleet.called["zone"])
    count = max(members // 3, zones)
    _background(draft, members - count, seed)
    role = _unplaced(draft, count, draft.role("many", 2, 4))
    # Spread as evenly as can be, the two fullest zones have at least so many.
    most = 2 * (count // zones) + min(count % zones, 2)
    draft.policy("many-stay", "survive", role, level="zone", lose=2, keep=count - most + 1)
    return draft.instance("too-many", seed, conflict=_parts("many-stay"))


def _over_a_fence(draft: Draft, members: int, seed: int) -> Instance:
    zone = draft.fleet.called["zone"][-1]
    inside = draft.domains("zone") == len(draft.fleet.called["zone"]) - 1
    racks = len(np.unique(draft.domains("rack")[inside]))
    each = max(members // 2 // racks, 1)
    if racks * each >= members:
        return _over_zones(draft, members, seed)
    _background(draft, members - racks * each - 1, seed)
    role = _unplaced(draft, racks * each + 1, draft.role("many", 1, 2))
    draft.policy("many-here", "fence", role, domains=[zone])
    draft.policy("many-racks", "anti-affinity", role, level="rack", max_per_domain=each)
    return draft.instance("too-many", seed, conflict=_parts("many-here", "many-racks"))


def zone_missing(draft: Draft, members: int, seed: int) -> Instance:
    """A role in every zone, but no host of one zone has its trait, or its fence leaves one out."""
    zones = len(draft.fleet.called["zone"])
    count = max(members // 3, zones)
    _background(draft, members - count, seed)
    fenced = bool(seed % 2)
    role = _unplaced(draft, count, draft.role("wide", 4, 8, *([] if fenced else [BEYOND])))
    draft.policy("wide-zones", "spread", role, level="zone", min_domains=zones)
    draft.policy("wide-apart", "anti-affinity", role)
    conflict = _parts("wide-zones", traits=role)
    if fenced:
        draft.policy("wide-here", "fence", role, domains=list(draft.fleet.called["zone"][1:]))
        conflict = _parts("wide-zones", "wide-here")
    return draft.instance("zone-missing", seed, conflict=conflict)


def _parts(*policies: str, **of_roles: str) -> frozenset[Part]:
    """A conflict of policies, and of other parts of roles by their kind."""
    return frozenset((*(("policy", name) for name in policies), *of_roles.items()))


def _unplaced(draft: Draft, count: int, role: str) -> str:
    for _ in range(count):
        draft.without_host(role)
    return role


def crossing(draft: Draft, members: int, seed: int) -> Instance:
    """Two policies of which each alone can be met: near each other and far from each other."""
    count = max(members // 3, 3)
    if seed % 2:
        _background(draft, members - 2 * count, seed)
        one = _unplaced(draft, count, draft.role("left", 2, 4))
        other = _unplaced(draft, count, draft.role("right", 2, 4))
        draft.policy("near", "proximity", one, other, zip_=True, level="rack")
        draft.policy("far", "separation", one, other, zip_=True, level="rack")
    else:
        count = min(count, 8)
        _background(draft, members - count, seed)
        role = _unplaced(draft, count, draft.role("torn", 1, 1))
        draft.policy("near", "affinity", role, level="rack")
        draft.policy("far", "spread", role, level="rack", min_domains=3)
    return draft.instance("crossing", seed, conflict=_parts("near", "far"))


def capacity(draft: Draft, members: int, seed: int) -> Instance:
    """One member more than the hosts with a trait have room for."""
    known = [
        (slots, cores, size)
        for size in rare_sizes(len(draft.fleet.names))
        for cores in (16, 32, 48)
        if 0 < (slots := _slots(draft, cores, size)) < members
    ]
    if not known:
        raise NotPlantable
    slots, cores, size = max(known)
    role = draft.role("large", cores, 2 * cores, rare(size))
    _background(draft, members - slots - 1, seed)
    _unplaced(draft, slots + 1, role)
    return draft.instance("capacity", seed, conflict=_parts(resources=role, traits=role))


def _slots(draft: Draft, cores: int, size: int) -> int:
    return int(draft.slots(draft.role("large", cores, 2 * cores, rare(size))).sum())


def _background(draft: Draft, members: int, seed: int) -> None:
    """Other members, which can be placed beside: two tiers, or for some seeds pairs as well."""
    if members <= 0:
        return
    pairs = members // 3 if seed // 4 % 2 else 0
    front, back = draft.role("front", 2, 4), draft.role("back", 4, 8)
    left = members - 2 * pairs
    draft.plant(front, left - left // 2, most={"host": 1}, even="zone")
    draft.plant(back, left // 2, most={"host": 1})
    draft.policy("front-apart", "anti-affinity", front)
    draft.policy("front-zones", "spread", front, level="zone", max_skew=1)
    if left > 1:
        draft.policy("back-apart", "anti-affinity", back)
    if pairs:
        _plant_pairs(draft, pairs)


def _plant_pairs(draft: Draft, pairs: int) -> None:
    """Pairs in a rack each, of which one half is spread."""
    rack_of = draft.domains("rack")
    app, db = draft.role("app", 2, 4), draft.role("db", 8, 16)
    draft.plant(db, pairs, even="zone")
    for member, row in list(draft.hosts.items()):
        if member.role == db:
            same = rack_of == rack_of[row]
            draft.put(app, draft.choose((draft.slots(app) > 0) & same))
    draft.policy("pairs", "proximity", app, db, zip_=True, level="rack")
    limit = draft.fullest(db, "rack")
    draft.policy("db-racks", "anti-affinity", db, level="rack", max_per_domain=limit)


REFUSALS: Final[Mapping[str, Callable[[Draft, int, int], Instance]]] = {
    "too-many": too_many,
    "zone-missing": zone_missing,
    "crossing": crossing,
    "capacity": capacity,
}
"""Families of requests that cannot be placed."""
