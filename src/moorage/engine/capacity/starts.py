"""When a request could begin: the starts worth looking at, and those that counting refutes.

What is free over a window changes for the better only where something ends. So of all starts in
a range only its first and the ends in it matter: a request that fits at any other fits at the
nearest of these before it, for whoever is there between the two is there at the later one too.

Most of them are refuted in bulk, without looking at one window after the other. A host lacks room
for `k` more members of a role in some segments of time, and a window of a given length meets the
segment `[a, b)` exactly if it starts in `(a - length, b)`. Summed over hosts that is a step
function of the start, for all starts at once; clipped per domain it counts for the policies that
bound domains. Each test is necessary: what it refutes has no placement, what it leaves may have
none.

A request that is decided anew gives back what it has: its own bookings are no obstacle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.disclosure import EXACT
from moorage.domain.period import FOREVER, Period
from moorage.domain.topology import HOST
from moorage.engine.joint.terrain import MOST_FREE
from moorage.engine.state.overlay import without_consumers
from moorage.engine.state.sharing import SHARING_TRAIT
from moorage.engine.time.tallies import Tallies
from moorage.policies.primitives import AtLeastDomains, AtMost, SameDomain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import Role
    from moorage.domain.period import Duration, Instant
    from moorage.engine.joint.build import Built
    from moorage.engine.state.columns import ClassColumns
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

LAYERS: Final = 12
"""Members of one role on one host are counted one by one up to here; more are taken to fit
wherever so many do and the empty host has room for them."""


@dataclass(frozen=True, slots=True)
class Starts:
    """Windows of `length` that start between `first` and `last`, both included.

    A length of `FOREVER` never ends.
    """

    first: Instant
    last: Instant
    length: Duration
    told: Disclosure = EXACT
    """How exactly the start is told: others' ends are rounded up to it, the first start is not."""

    def window(self, start: Instant) -> Period:
        """The window that starts then."""
        endless = self.length >= FOREVER - start
        return Period(start, FOREVER if endless else start + self.length)

    @property
    def whole(self) -> Period:
        """From the first start to the end of the last window."""
        return Period(self.first, self.window(self.last).end)


def candidates(built: Built, snapshot: Snapshot, starts: Starts) -> Ints:
    """The starts in the range that are worth looking at: its first, and every end in it.

    Args:
        built: the request, stated for any window.
        snapshot: the fleet.
        starts: the range.

    Returns:
        Ascending; those of the hosts that could hold some of the request if they were empty, and of
        what these share.
    """
    snapshot = without_consumers(snapshot, built.request.released)
    near = _host_of(built, snapshot, _anywhere(built)) >= 0
    sharing = snapshot.traits.get(SHARING_TRAIT)
    if sharing is not None:
        near = near | sharing
    ends = [np.array([starts.first], dtype=np.int64)]
    for columns in snapshot.classes.values():
        timed = columns.timed
        inside = (timed.end > starts.first) & (timed.end <= starts.last)
        ends.append(timed.end[inside & near[timed.owner]])
    return told_starts(starts, np.concatenate(ends))


def told_starts(starts: Starts, at: Ints) -> Ints:
    """The first of these starts that may be told at or after each, ascending; in the range."""
    if not starts.told.exact:
        grid = starts.told.times
        at = np.where(at == starts.first, at, -(-at // grid) * grid)
    return np.unique(at[at <= starts.last])


def plausible(built: Built, snapshot: Snapshot, starts: Starts, at: Ints) -> Bools:
    """Which starts counting does not refute.

    Args:
        built: the request, stated for any window; all its members are to be placed.
        snapshot: the fleet.
        starts: the range and the windows' length.
        at: [S] starts in the range, ascending.

    Returns:
        [S] False where it is proved that the request does not fit in that window.
    """
    snapshot = without_consumers(snapshot, built.request.released)
    found = np.ones(len(at), dtype=np.bool_)
    counts = Counter(member.role for member in built.request.members)
    for role in built.request.roles:
        if counts[role.name]:
            for steps, least in _tests(built, snapshot, starts, role, counts[role.name]):
                found &= steps.sum_at(at) >= least
                if not found.any():
                    return found
    return found


def enough_in_all(built: Built, snapshot: Snapshot, starts: Starts, at: Ints) -> Bools:
    """Which starts have enough free on all providers together, wherever that is.

    So much is needed even where those who are there may change their places.

    Args:
        built: the request, stated for any window; all its members are to be placed.
        snapshot: the fleet.
        starts: the range and the windows' length.
        at: [S] starts in the range, ascending.

    Returns:
        [S] False where it is proved that the request fits in that window in no arrangement.
    """
    snapshot = without_consumers(snapshot, built.request.released)
    found = np.ones(len(at), dtype=np.bool_)
    counts = Counter(member.role for member in built.request.members)
    needed: Counter[str] = Counter()
    for role in built.request.roles:
        for name, amount in _amounts(role).items():
            needed[name] += amount * counts[role.name]
    everywhere = np.where(snapshot.alive, 0, -1)
    for name, amount in needed.items():
        free = _free(snapshot, name, everywhere, starts, 1)
        if amount and free is not None:
            short = free[0].segments_below(amount)
            lacking = Tallies.windows_meeting([short], starts.length, starts.first)
            found &= lacking.weighted_zeros(np.ones(1, dtype=np.int64)).sum_at(at) >= 1
    return found


def _anywhere(built: Built) -> Bools:
    """[H] hosts that could hold a member of some role if they were empty."""
    masks = list(built.ground.eligible_rows.values())
    nowhere = np.zeros(built.terrain.host_count, dtype=np.bool_)
    found: Bools = np.logical_or.reduce([nowhere, *masks])
    return found


def _host_of(built: Built, snapshot: Snapshot, which: Bools) -> Ints:
    """[P] the terrain's row of each provider's host, or -1 where it is none of `which` [H]."""
    rows = np.array([snapshot.row_of[uuid] for uuid in built.terrain.uuids], dtype=np.int64)
    host = np.full(len(snapshot.uuids), -1, dtype=np.int64)
    host[rows[which]] = np.flatnonzero(which)
    found = host[snapshot.root]
    found[~snapshot.alive] = -1
    return found


# --- room for members of one role -------------------------------------------------------------


def _tests(
    built: Built, snapshot: Snapshot, starts: Starts, role: Role, count: int
) -> Iterator[tuple[Tallies, int]]:
    """Step functions of the start, and what each must reach for the role's members to fit."""
    eligible = built.ground.eligible_rows[role.name]
    required = [one for one in built.problem.primitives if one.weight is None]
    share = {number: _share(one, role.name) for number, one in enumerate(required)}
    most = min([count, *(_per_host(one, share[n], count) for n, one in enumerate(required))])
    room = _room(built, snapshot, starts, role, eligible, most)
    if room is None:
        return
    yield room.total(), count
    for number, primitive in enumerate(required):
        level = getattr(primitive, "level", None)
        if not share[number] or level is None or level.name == HOST:
            continue
        grouped = room.grouped(built.terrain.domains(level))
        match primitive:
            case AtMost(limit=limit):
                yield grouped.capped(limit).total(), share[number]
            case SameDomain():
                yield grouped.at_least(share[number]).total(), 1
            case AtLeastDomains(limit=limit) if share[number] == len(primitive.members):
                yield grouped.at_least(1).total(), limit
            case _:
                pass


def _share(primitive: Primitive, role: str) -> int:
    """How many of the role's members it is about."""
    return sum(member.role == role for member in primitive.members)


def _per_host(primitive: Primitive, share: int, count: int) -> int:
    """How many members of a role it lets stand on one host."""
    bound = isinstance(primitive, AtMost) and primitive.level.name == HOST and share == count
    return primitive.limit if bound and isinstance(primitive, AtMost) else count


def _room(
    built: Built, snapshot: Snapshot, starts: Starts, role: Role, eligible: Bools, most: int
) -> Tallies | None:
    """Per host how many of the role's members, up to `most`, have room throughout a window.

    None where nothing that can be counted bounds them.
    """
    host_of = _host_of(built, snapshot, eligible)
    free = [
        (steps, amount)
        for name, amount in _amounts(role).items()
        if amount and (steps := _free(snapshot, name, host_of, starts, len(eligible))) is not None
    ]
    if not free:
        return None
    empty = np.where(eligible, most, 0)
    for (_, capacity), amount in free:
        empty = np.minimum(empty, capacity // amount)
    layers = []
    for k in range(1, min(most, LAYERS) + 1):
        weight = np.where(empty >= k, empty - k + 1 if k == LAYERS else 1, 0)
        short = [steps.segments_below(k * amount) for (steps, _), amount in free]
        layers.append(
            Tallies.windows_meeting(short, starts.length, starts.first).weighted_zeros(weight)
        )
    return Tallies.summed(layers)


def _amounts(role: Role) -> Counter[str]:
    """What one member takes of each class in all."""
    found = Counter(role.resources)
    for group in role.groups:
        found.update(group.resources)
    return found


def _free(
    snapshot: Snapshot, name: str, host_of: Ints, starts: Starts, hosts: int
) -> tuple[Tallies, Ints] | None:
    """What a class has free on each host over time, and [H] when empty.

    None where it is shared between hosts, or plenty beyond what can be added up.
    """
    columns = snapshot.classes.get(name)
    if columns is None:
        nothing = np.zeros(hosts, dtype=np.int64)
        return Tallies.constant(nothing), nothing
    sharing = snapshot.traits.get(SHARING_TRAIT)
    if sharing is not None and sharing[columns.rows].any():
        return None
    if (columns.capacity > MOST_FREE).any():
        return None
    host = host_of[columns.rows]
    there = host >= 0
    capacity = np.where(there, np.maximum(columns.capacity, 0), 0)
    used = _used(columns, there, capacity, starts)
    whole = np.zeros(hosts, dtype=np.int64)
    np.add.at(whole, host[there], capacity[there])
    return used.grouped(np.where(there, host, -1), hosts).subtracted_from(whole), whole


def _used(columns: ClassColumns, there: Bools, capacity: Ints, starts: Starts) -> Tallies:
    """[n] what each inventory has booked over time, up to its capacity: more is no more taken."""
    timed, whole = columns.timed, starts.whole
    owner = columns.position[timed.owner].astype(np.int64)
    inside = there[owner] & (timed.start < whole.end) & (timed.end > whole.start)
    owner, amount = owner[inside], timed.amount[inside]
    steps = Tallies.of(
        np.where(there, columns.base, 0),
        np.concatenate((owner, owner)),
        np.concatenate((np.maximum(timed.start[inside], whole.start), timed.end[inside])),
        np.concatenate((amount, -amount)),
    )
    return steps.capped(capacity)
