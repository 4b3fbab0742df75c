"""Candidate starts of a request's window, and refutation of most of them by counting.

The free capacity over a window increases only where a booking ends. So only the first start of a
range and the ends within it are candidates: a request that fits at any other start also fits at the
nearest candidate before it, because bookings between the two are there at the later start as well.

Most candidates are refuted in bulk. In some segments of time a host has no room for `k` more
members of a role, and a window of a given length overlaps the segment `[a, b)` exactly if it starts
in `(a - length, b)`. Summed over hosts this gives a step function of the start; capped per domain
it serves the policies that bound domains. Each test is a necessary condition: a refuted start has
no placement, another may have none either.

When a request is decided again, its present bookings are left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.disclosure import EXACT
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.topology import HOST
from moorage.engine.joint.terrain import MOST_FREE
from moorage.engine.state.overlay import without_consumers
from moorage.engine.time.tallies import Tallies
from moorage.policies.primitives import AtLeastDomains, AtMost, SameDomain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import Role
    from moorage.domain.period import Duration, Instant
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.columns import ClassColumns
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

LAYERS: Final = 12
"""Members of one role on a host are counted exactly up to here. Where this many fit, more are
assumed to fit, up to what the empty host can hold."""


@dataclass(frozen=True, slots=True)
class Starts:
    """Windows of `length` that start between `first` and `last`, both included.

    With a length of `FOREVER` they have no end.
    """

    first: Instant
    last: Instant
    length: Duration
    disclosure: Disclosure = EXACT
    """How exactly starts may be disclosed: all but the first are rounded up to its grid."""

    def window(self, start: Instant) -> Period:
        """The window with this start."""
        endless = self.length >= FOREVER - start
        return Period(start, FOREVER if endless else start + self.length)

    @property
    def whole(self) -> Period:
        """From the first start to the end of the last window."""
        return Period(self.first, self.window(self.last).end)


def candidate_starts(built: BuiltProblem, snapshot: Snapshot, starts: Starts) -> Ints:
    """The candidate starts in a range: its first, and the ends of bookings in it.

    The request is built for any window.

    Returns:
        Ascending; only ends on hosts that could hold a member if they were empty, and on sharing
        providers.
    """
    snapshot = without_consumers(snapshot, built.request.released)
    near = _host_of(built, snapshot, _eligible_hosts(built)) >= 0
    sharing = snapshot.traits.get(SHARING_TRAIT)
    if sharing is not None:
        near = near | sharing
    ends = [np.array([starts.first], dtype=np.int64)]
    for columns in snapshot.classes.values():
        timed = columns.timed
        inside = (timed.end > starts.first) & (timed.end <= starts.last)
        ends.append(timed.end[inside & near[timed.owner]])
    return disclosed_starts(starts, np.concatenate(ends))


def disclosed_starts(starts: Starts, at: Ints) -> Ints:
    """Round starts up to instants that may be disclosed: ascending, distinct, within the range."""
    if not starts.disclosure.exact:
        grid = starts.disclosure.times
        at = np.where(at == starts.first, at, -(-at // grid) * grid)
    return np.unique(at[at <= starts.last])


def not_refuted(built: BuiltProblem, snapshot: Snapshot, starts: Starts, at: Ints) -> Bools:
    """Refute starts by counting, role by role.

    The request is built for any window, and all its members are to be placed; `at` are [S] starts
    in the range, ascending.

    Returns:
        [S] False where it is proved that the request does not fit in that window.
    """
    snapshot = without_consumers(snapshot, built.request.released)
    found = np.ones(len(at), dtype=np.bool_)
    counts = Counter(member.role for member in built.request.members)
    for role in built.request.roles:
        if counts[role.name]:
            for steps, least in _necessary_conditions(
                built, snapshot, starts, role, counts[role.name]
            ):
                found &= steps.sum_at(at) >= least
                if not found.any():
                    return found
    return found


def enough_total_capacity(
    built: BuiltProblem, snapshot: Snapshot, starts: Starts, at: Ints
) -> Bools:
    """Refute starts at which the whole fleet has too little free of a class.

    This is necessary even if other leases may be relocated.

    The request is built for any window, and all its members are to be placed; `at` are [S] starts
    in the range, ascending.

    Returns:
        [S] False where it is proved that the request does not fit in that window.
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
        free = _free_capacity(snapshot, name, everywhere, starts, 1)
        if amount and free is not None:
            short = free[0].segments_below(amount)
            lacking = Tallies.windows_meeting([short], starts.length, starts.first)
            found &= lacking.weighted_zeros(np.ones(1, dtype=np.int64)).sum_at(at) >= 1
    return found


def _eligible_hosts(built: BuiltProblem) -> Bools:
    """[H] hosts that could hold a member of some role if they were empty."""
    masks = list(built.policy_view.eligible_rows.values())
    nowhere = np.zeros(built.terrain.host_count, dtype=np.bool_)
    found: Bools = np.logical_or.reduce([nowhere, *masks])
    return found


def _host_of(built: BuiltProblem, snapshot: Snapshot, which: Bools) -> Ints:
    """[P] the terrain's row of each provider's host, or -1 if it is not among `which` [H]."""
    rows = np.array([snapshot.row_of[uuid] for uuid in built.terrain.uuids], dtype=np.int64)
    host = np.full(len(snapshot.uuids), -1, dtype=np.int64)
    host[rows[which]] = np.flatnonzero(which)
    found = host[snapshot.root]
    found[~snapshot.alive] = -1
    return found


# --- counting the members of one role that fit ------------------------------------------------


def _necessary_conditions(
    built: BuiltProblem, snapshot: Snapshot, starts: Starts, role: Role, count: int
) -> Iterator[tuple[Tallies, int]]:
    """Necessary conditions for a role: (step function of the start, least value it must have)."""
    eligible = built.policy_view.eligible_rows[role.name]
    required = [one for one in built.problem.primitives if one.weight is None]
    share = {number: _member_count(one, role.name) for number, one in enumerate(required)}
    most = min([count, *(_per_host(one, share[n], count) for n, one in enumerate(required))])
    room = _slots_over_time(built, snapshot, starts, role, eligible, most)
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


def _member_count(primitive: Primitive, role: str) -> int:
    """How many of the role's members the primitive names."""
    return sum(member.role == role for member in primitive.members)


def _per_host(primitive: Primitive, share: int, count: int) -> int:
    """How many members of a role the primitive allows on one host."""
    bound = isinstance(primitive, AtMost) and primitive.level.name == HOST and share == count
    return primitive.limit if bound and isinstance(primitive, AtMost) else count


def _slots_over_time(
    built: BuiltProblem, snapshot: Snapshot, starts: Starts, role: Role, eligible: Bools, most: int
) -> Tallies | None:
    """Per host: how many of the role's members, up to `most`, fit in the window from each start.

    None if no countable class bounds them.
    """
    host_of = _host_of(built, snapshot, eligible)
    free = [
        (steps, amount)
        for name, amount in _amounts(role).items()
        if amount
        and (steps := _free_capacity(snapshot, name, host_of, starts, len(eligible))) is not None
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
    """What one member takes of each class, its groups included."""
    found = Counter(role.resources)
    for group in role.groups:
        found.update(group.resources)
    return found


def _free_capacity(
    snapshot: Snapshot, name: str, host_of: Ints, starts: Starts, hosts: int
) -> tuple[Tallies, Ints] | None:
    """The free amount of a class per host over time, and [H] the capacity of the empty hosts.

    None if the class has sharing providers, or capacities too large to be summed.
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
    used = _occupancy(columns, there, capacity, starts)
    whole = np.zeros(hosts, dtype=np.int64)
    np.add.at(whole, host[there], capacity[there])
    return used.grouped(np.where(there, host, -1), hosts).subtracted_from(whole), whole


def _occupancy(columns: ClassColumns, there: Bools, capacity: Ints, starts: Starts) -> Tallies:
    """[n] the occupancy of each inventory over time, capped at its capacity."""
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
