"""Families of requests that can be placed, each with an answer that is known.

Limits of policies are as tight as the planted answer allows.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from benchmarks.joint.draft import Draft, Instance, NotPlantable
from benchmarks.joint.fleet import AVX, RACK, rare, rare_sizes
from benchmarks.joint.refusals import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.joint.fleet import Fleet
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

SETS: Final = {"tune": 22_000_000, "held-out": 71_000_000}
"""Name of a set of instances -> its first seed. The second was never used while tuning."""
_TRIES: Final = 5
_POWERS: Final = (1, 2, 4, 8, 16, 32, 64)


def high_availability(draft: Draft, members: int, seed: int) -> Instance:
    """Three tiers, each on hosts of its own, even over zones and few to a rack."""
    part = max(members // 5, 1)
    web, app, db = draft.role("web", 2, 4), draft.role("app", 4, 8), draft.role("db", 8, 32)
    per_rack = -(-2 * part // max(len(draft.fleet.called["rack"]) // 2, 1))
    draft.plant(db, part, most={"host": 1, "rack": per_rack}, even="zone")
    draft.plant(app, part, most={"host": 1, "rack": 2 * per_rack})
    draft.plant(web, members - 2 * part, most={"host": 1}, even="zone")
    for role in (web, app, db):
        draft.policy(f"{role}-apart", "anti-affinity", role)
    draft.policy("web-zones", "spread", web, level="zone", max_skew=1)
    limit = draft.fullest(app, "rack")
    draft.policy("app-racks", "anti-affinity", app, level="rack", max_per_domain=limit)
    for level in ("rack", "zone"):
        if keep := part - draft.fullest(db, level):
            draft.policy(f"db-{level}s", "survive", db, level=level, keep=keep)
    return draft.instance("high-availability", seed)


def nested(draft: Draft, members: int, seed: int) -> Instance:
    """Cells of nine with a lead each: a cell in a rack and on hosts of its own, leads apart."""
    cells = max(members // 10, 1)
    rack_of = draft.domains("rack")
    lead = draft.role("lead", 8, 16, AVX)
    most = -(-2 * cells // len(draft.fleet.called["rack"]))
    cores = _common_size(draft, 10, -(-3 * cells // (2 * most)))
    led = np.zeros(len(draft.fleet.called["rack"]), dtype=np.int64)
    for number in range(cells):
        cell = draft.role(f"cell{number}", cores, 2 * cores)
        open_hosts = np.bincount(rack_of, draft.slots(cell) > 0, len(led))
        leading = np.bincount(rack_of, draft.slots(lead) > 0, len(led)) > 0
        # The lead may take the room of one worker.
        rack = draft.choose((open_hosts > 9) & leading & (led < most))  # noqa: PLR2004 - a cell's workers
        led[rack] += 1
        draft.put(lead, draft.choose((draft.slots(lead) > 0) & (rack_of == rack)))
        draft.plant(cell, 9, among=rack_of == rack, most={"host": 1})
        draft.policy(f"near{number}", "affinity", cell, f"lead[{number}]", level="rack")
        draft.policy(f"apart{number}", "anti-affinity", cell)
    limit = draft.fullest(lead, "rack")
    draft.policy("lead-racks", "anti-affinity", lead, level="rack", max_per_domain=limit)
    skew = draft.fullest(lead, "zone") - draft.emptiest(lead, "zone")
    draft.policy("lead-zones", "spread", lead, level="zone", max_skew=max(skew, 1))
    return draft.instance("nested", seed)


def mixed(draft: Draft, members: int, seed: int) -> Instance:
    """Four tiers: spread front ends, paired workers and stores, a quorum and a cache."""
    part = max(members // 6, 1)
    rack_of = draft.domains("rack")
    racks, zones = len(draft.fleet.called["rack"]), len(draft.fleet.called["zone"])
    web, app = draft.role("web", 2, 4), draft.role("app", 4, 8)
    db, cache = draft.role("db", 16, 64), draft.role("cache", 8, 64)
    per_rack = max(2, -(-4 * part // racks))
    stored, in_zone = np.zeros(racks, dtype=np.int64), np.zeros(zones, dtype=np.int64)
    for _ in range(2 * part):
        open_racks = (stored < per_rack) & (np.bincount(rack_of, draft.slots(app), racks) > 0)
        room = (draft.slots(db) > 0) & open_racks[rack_of]
        room &= (in_zone < -(-2 * part // zones) + 1)[draft.domains("zone")]
        row = draft.choose(room)
        draft.put(db, row)
        draft.put(app, draft.choose((draft.slots(app) > 0) & (rack_of == rack_of[row])))
        stored[rack_of[row]] += 1
        in_zone[draft.domains("zone")[row]] += 1
    draft.plant(cache, part, most={"feed": -(-2 * part // (2 * racks))})
    draft.plant(web, max(members - 5 * part, 1), most={"host": 1}, even="zone")
    draft.policy(
        "web-racks", "spread", web, level="rack", min_domains=min(3, draft.used(web, "rack"))
    )
    draft.policy("web-apart", "anti-affinity", web)
    draft.policy("pairs", "proximity", app, db, zip_=True, level="rack")
    if keep := 2 * part - draft.fullest(db, "zone"):
        draft.policy("db-ha", "survive", db, level="zone", keep=keep)
    limit = draft.fullest(db, "rack")
    draft.policy("db-apart", "anti-affinity", db, level="rack", max_per_domain=limit)
    feeds = draft.fullest(cache, "feed")
    draft.policy(
        "cache-feeds", "anti-affinity", cache, level="feed", tree="power", max_per_domain=feeds
    )
    return draft.instance("mixed", seed)


def tight(draft: Draft, members: int, seed: int) -> Instance:
    """Teams that want to be in one rack or at least one zone, each member on its own host."""
    teams, left = list[str](), members
    rack_of, racks = draft.domains("rack"), len(draft.fleet.called["rack"])
    cores = _common_size(draft, RACK // 2, racks // 5)
    while left:
        size = min(left, int(draft.dice.integers(8, 17)))
        left -= size
        team = draft.role(f"team{len(teams)}", cores, 2 * cores)
        teams.append(team)
        room = np.bincount(rack_of, draft.slots(team) > 0, racks)
        fitting = np.flatnonzero(room >= size)
        # The rack that is filled best, or else the two with the most room of a zone.
        chosen = (
            fitting[[np.argmin(room[fitting])]]
            if len(fitting)
            else _roomiest_pair(room, draft.domains("zone"), rack_of)
        )
        draft.plant(team, size, among=np.isin(rack_of, chosen), most={"host": 1})
        draft.policy(f"apart-{team}", "anti-affinity", team)
        for level in ("rack", "zone"):
            draft.policy(f"{level}-{team}", "proximity", team, level=level, weight=1)
    return draft.instance("tight", seed, teams=tuple(teams))


def _common_size(draft: Draft, hosts: int, racks: int) -> int:
    """The largest of some sizes for which so many racks have so many hosts with room."""
    rack_of = draft.domains("rack")
    for cores in (8, 4, 2):
        slots = draft.slots(draft.role("any", cores, 2 * cores))
        if (np.bincount(rack_of, slots > 0) >= hosts).sum() >= racks:
            return cores
    return 1


def _roomiest_pair(room: Ints, zone_of: Ints, rack_of: Ints) -> Ints:
    zone_of_rack = np.zeros(len(room), dtype=np.int64)
    zone_of_rack[rack_of] = zone_of
    order = np.argsort(-room, kind="stable")
    mine = order[zone_of_rack[order] == zone_of_rack[order[0]]]
    return np.asarray(mine[:2], dtype=np.int64)


def scarce(draft: Draft, members: int, seed: int) -> Instance:
    """Some members fill all hosts that have a trait; the others may be anywhere, there as well."""
    known = []
    for size in rare_sizes(len(draft.fleet.names)):
        for cores in (16, 32, 48):
            slots = int(draft.slots(draft.role("few", cores, 2 * cores, rare(size))).sum())
            known.append((slots if 0 < slots <= members // 2 else -slots, cores, size))
    count, cores, size = max(known)
    if not 0 < abs(count) < members:
        raise NotPlantable
    plain, few = draft.role("all", 4, 8), draft.role("few", cores, 2 * cores, rare(size))
    draft.plant(few, abs(count))
    rest = ~draft.fleet.with_trait(rare(size))
    draft.plant(plain, members - abs(count), among=rest, most={"host": 2})
    limit = draft.fullest(plain, "host")
    draft.policy("all-apart", "anti-affinity", plain, max_per_domain=limit)
    zones = draft.used(plain, "zone")
    draft.policy("all-zones", "spread", plain, level="zone", min_domains=min(2, zones))
    return draft.instance("scarce", seed)


def exclusive(draft: Draft, members: int, seed: int) -> Instance:
    """A half, or all of the members on hosts or racks without anybody else's servers."""
    everyone, level = seed % 4 == 3, "rack" if seed % 3 == 2 else "host"  # noqa: PLR2004 - one in so many
    against = "others" if seed % 2 else "other_projects"
    count = members if everyone else max(members // 2, 1)
    foreign = draft.fleet.strangers | (draft.fleet.relatives if against == "others" else False)
    open_hosts = _without(draft.domains(level), foreign)
    if not open_hosts.any():
        open_hosts, level = ~foreign, "host"
    cores = next((size for size in (4, 2) if _has_room(draft, size, open_hosts, count)), 1)
    quiet = draft.role("quiet", cores, 2 * cores)
    slots = np.where(open_hosts, draft.slots(quiet), 0)
    most = max(2, int(1.5 * count / max(open_hosts.sum(), 1)) + 1)
    while np.minimum(slots, most).sum() < count and most < slots.max():
        most *= 2
    draft.plant(quiet, count, among=open_hosts, most={"host": most})
    draft.policy("alone", "exclusive", quiet, against=against, level=level)
    limit = draft.fullest(quiet, "host")
    draft.policy("quiet-few", "anti-affinity", quiet, max_per_domain=limit)
    if members > count:
        other = draft.role("wide", 4, 8)
        draft.plant(other, members - count, even="zone")
        draft.policy("wide-zones", "spread", other, level="zone", max_skew=1)
    return draft.instance("exclusive", seed)


def _without(domains: Ints, foreign: Bools) -> Bools:
    """[H] the hosts in domains without anybody foreign."""
    taken = np.zeros(int(domains.max()) + 1, dtype=np.bool_)
    taken[domains[foreign]] = True
    return ~taken[domains]


def _has_room(draft: Draft, cores: int, among: Bools, count: int) -> bool:
    """Whether so many members of a size fit easily on these hosts."""
    slots = draft.slots(draft.role("quiet", cores, 2 * cores))
    return bool(slots[among].sum() * 0.8 >= count)


def exact(draft: Draft, members: int, seed: int) -> Instance:
    """Members that fill every VCPU of the hosts they are fenced to; their sizes are powers of 2."""
    pool: Bools = np.zeros(len(draft.fleet.names), dtype=np.bool_)
    for size in rare_sizes(len(pool)):
        pool |= draft.fleet.with_trait(rare(size))
    chosen, pieces = list[int](), list[list[int]]()
    for row in draft.dice.permutation(np.flatnonzero(pool)).tolist():
        free = int(draft.free[row, 0])
        bits = [power for power in _POWERS if free & power]
        if not bits:
            continue
        if sum(map(len, pieces)) + len(bits) > members:
            break
        chosen.append(row)
        pieces.append(bits)
    # Halve pieces until there are as many as members.
    for _ in range(members - sum(map(len, pieces))):
        large = [(i, j) for i, mine in enumerate(pieces) for j, size in enumerate(mine) if size > 1]
        if not large:
            raise NotPlantable
        i, j = large[draft.dice.integers(len(large))]
        pieces[i][j] //= 2
        pieces[i].append(pieces[i][j])
    names = {size: draft.role(f"size{size}", size, 2 * size) for size in _POWERS}
    for row, mine in zip(chosen, pieces, strict=True):
        for size in mine:
            draft.put(names[size], row)
    fence = [draft.fleet.names[row] for row in chosen]
    draft.policy("pool", "fence", "*", domains=fence)
    return draft.instance("exact", seed)


FAMILIES: Final[Mapping[str, Callable[[Draft, int, int], Instance]]] = {
    "high-availability": high_availability,
    "nested": nested,
    "mixed": mixed,
    "tight": tight,
    "scarce": scarce,
    "exclusive": exclusive,
    "exact": exact,
}
"""Families of requests that can be placed."""


def make(family: str, fleet: Fleet, members: int, seed: int) -> Instance:
    """An instance of a family on a fleet; the same for the same fleet and seed.

    Raises:
        NotPlantable: the fleet is too small or too full for it.
    """
    plant = {**FAMILIES, **REFUSALS}[family]
    for attempt in range(_TRIES):
        dice = np.random.default_rng([seed, zlib.crc32(family.encode()), members, attempt])
        try:
            return plant(Draft(fleet, dice), members, seed)
        except NotPlantable:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")
