"""Leases that hold places on hosts which are to be away: moved in time, or in the way.

A lease that has not started is placed anew, first only those of its members that stand there,
then all of them, then together with other leases that have not started, and last so that
preemptible users end for those that move. One that has
started, or whose owner was told its hosts, stays where it is: then the hosts cannot be away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.errors import Busy, NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER, Period
from moorage.engine.build import build
from moorage.engine.conflicts import POLICY, Deletion, Oracle, binding
from moorage.engine.cost import holds
from moorage.engine.facts import facts, needs
from moorage.engine.overlay import exchanged
from moorage.engine.problem import Verdict
from moorage.engine.windows import joint, shares
from moorage.usecases.closed import closed_hosts
from moorage.usecases.joint import find, judged, request_for
from moorage.usecases.leases.gone import (
    all_who_could,
    gone_for,
    of_least_priority,
    wanted_by,
)
from moorage.usecases.leases.planned import Moved, movable, planned_in
from moorage.usecases.leases.replan import elsewhere, grudging, hold, party

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.leases.gone import Giving
    from moorage.usecases.leases.planned import Planned
    from moorage.usecases.leases.yielding import Candidate
    from moorage.usecases.parts import Parts

_COUNTED: Final = re.compile(r"(\d+ \w+) for .*")
_WHY: Final = 2.0
"""Seconds in which it is found out what a lease runs into."""


@dataclass(frozen=True, slots=True)
class InTheWay:
    """A lease that has no other places, and why."""

    lease: Lease
    why: str


@dataclass(frozen=True, slots=True)
class Cleared:
    """Who moves so that hosts may be away, and who cannot."""

    moved: tuple[Moved, ...]
    stuck: tuple[InTheWay, ...]


def away(snapshot: Snapshot, hosts: Iterable[str], period: Period) -> Snapshot:
    """The same fleet with hosts away over a period."""
    rows = (row for host in hosts for row in snapshot.tree(snapshot.row_of[host]).tolist())
    states = (snapshot.state(row) for row in rows)
    return snapshot.with_states(replace(one, down=(*one.down, period)) for one in states)


def there(snapshot: Snapshot, hosts: Iterable[str], period: Period) -> list[tuple[str, Booking]]:
    """Host and booking of everybody in the hosts' trees at some time of a period."""
    now = snapshot.taken_at
    return [
        (host, one)
        for host in hosts
        for row in snapshot.tree(snapshot.row_of[host]).tolist()
        for one in snapshot.bookings_of(row)
        if one.period.start < period.end and one.occupies_until(now) > period.start
    ]


def leases_there(parts: Parts, bookings: Iterable[Booking]) -> list[Lease]:
    """The open leases that bookings are for: places kept for them, and servers drawn from them."""
    found: dict[str, Lease] = {}
    for decision_id in sorted({one.decision for one in bookings if one.decision is not None}):
        try:
            lease_id = parts.store.decision(decision_id).lease_id
            lease = None if lease_id is None else parts.store.lease(lease_id)
        except NotFound:
            continue
        if lease is not None and lease.state is not LeaseState.CLOSED:
            found[lease.id] = lease
    return sorted(found.values(), key=lambda one: (one.terms.period.start, one.id))


def cleared(
    parts: Parts,
    snapshot: Snapshot,
    hosts: Sequence[str],
    period: Period,
    keepers: Sequence[Ensemble],
    time_limit: Duration,
) -> Cleared:
    """Look for other places for every lease that holds some on these hosts then.

    Args:
        parts: the ports.
        snapshot: the fleet as it is.
        hosts: UUIDs of root providers that are to be away.
        period: when.
        keepers: ensembles that keep others out.
        time_limit: for each solve.
    """
    bookings = [one for _, one in there(snapshot, hosts, period)]
    leases = leases_there(parts, bookings)
    if not leases:
        return Cleared((), ())
    consumers = frozenset(one.consumer for one in bookings)
    view = away(snapshot, hosts, period)
    moving: list[Planned] = []
    fixed: list[InTheWay] = []
    for lease in leases:
        planned = movable(parts.store, snapshot, lease.decision_id)
        if planned is None or planned.decision.period.start <= snapshot.taken_at:
            fixed.append(InTheWay(lease, _why_fixed(lease)))
        else:
            moving.append(planned)
    if fixed:
        return Cleared((), tuple(fixed))
    one_by_one, stuck = _one_by_one(parts, view, moving, consumers, keepers, time_limit)
    if stuck is None:
        return Cleared(tuple(one_by_one), ())
    together = _together(parts, view, moving, keepers, time_limit)
    if together is None:
        together = _with_ends(parts, view, moving, keepers, time_limit)
    if together is not None:
        return Cleared(together, ())
    lease, built = stuck
    return Cleared((), (InTheWay(lease, _why(parts, built)),))


def _why_fixed(lease: Lease) -> str:
    started = lease.state is not LeaseState.PENDING
    return f"it is {lease.state}" if started else "its hosts are fixed"


def _one_by_one(
    parts: Parts,
    view: Snapshot,
    moving: Sequence[Planned],
    consumers: frozenset[str],
    keepers: Sequence[Ensemble],
    time_limit: Duration,
) -> tuple[list[Moved], tuple[Lease, Built] | None]:
    """Each lease after the other, the earliest first; and the first that finds no place."""
    moved: list[Moved] = []
    for planned in moving:
        hurt = frozenset(
            name
            for name, bookings in planned.stand.bookings.items()
            if bookings[0].consumer in consumers
        )
        everyone = frozenset(planned.stand.places)
        for anew in dict.fromkeys((hurt, everyone)):
            asked = _built(view, planned, anew, keepers)
            try:
                found = find(parts.solver, asked, time_limit=time_limit, seed=0)
            except Busy:
                found = None
            if found is not None:
                moves = Moved(planned, MappingProxyType({n: found.place(n) for n in sorted(anew)}))
                moved.append(moves)
                view = exchanged(view, planned.bookings(moves.places))
                break
        else:
            return [], (planned.lease, _built(view, planned, everyone, keepers))
    return moved, None


def _built(
    view: Snapshot, planned: Planned, anew: frozenset[MemberName], keepers: Sequence[Ensemble]
) -> Built:
    """A lease's own problem, some of its members placed anew."""
    decision = planned.decision
    ahead = Period(max(decision.period.start, view.taken_at), decision.period.end)
    request = request_for(planned.ensemble, planned.stand, anew, ahead, decision.objective)
    return build(request, view, closed=closed_hosts(keepers, view, planned.ensemble, ahead))


def _together(
    parts: Parts,
    view: Snapshot,
    moving: Sequence[Planned],
    keepers: Sequence[Ensemble],
    time_limit: Duration,
    giving: Giving | None = None,
) -> tuple[Moved, ...] | None:
    """All of them jointly, with the other leases of their time that may move."""
    if any(role.groups for one in moving for role in one.ensemble.roles):
        return None
    first = min(one.decision.period.start for one in moving)
    last = max(one.decision.period.end for one in moving)
    own = frozenset[str]().union(*(one.consumers for one in moving))
    planned = [*moving, *planned_in(parts.store, view, Period(first, last), own)]
    released = frozenset[str]().union(*(one.consumers for one in planned))
    there = view if giving is None else giving.soon(view)
    bare = exchanged(there, dict.fromkeys(released, ()))
    parties = [party(there, one, released, keepers, bare) for one in planned]
    problem = joint(parties, bare)
    if giving is not None:
        problem = grudging(problem, parties, exchanged(view, dict.fromkeys(released, ())))
    outcome = parts.solver.solve(problem, time_limit=time_limit, seed=0)
    if outcome.verdict is not Verdict.FEASIBLE or outcome.hosts is None:
        return None
    if not holds(problem, outcome.hosts[None, :])[0]:
        return None
    answers = shares(parties, problem, outcome.hosts)
    founds = [judged(one.built, outcome, rows) for one, rows in zip(parties, answers, strict=True)]
    moved = tuple(
        Moved(one, places)
        for one, found in zip(planned, founds, strict=True)
        if (places := elsewhere(one, found))
    )
    if giving is None:
        return moved
    instead = {who: some for one in moved for who, some in one.planned.bookings(one.places).items()}
    wanting = [wanted_by(one, view.taken_at) for one in moved]
    gone = gone_for(view, instead, wanting, giving)
    if gone is None or not hold(view, gone[1], planned, founds, keepers):
        return None
    return tuple(
        replace(one, displaced=end.displaced, evicted=end.evicted)
        for one, end in zip(moved, gone[0], strict=True)
    )


def _with_ends(
    parts: Parts,
    view: Snapshot,
    moving: Sequence[Planned],
    keepers: Sequence[Ensemble],
    time_limit: Duration,
) -> tuple[Moved, ...] | None:
    """The same with preemptible users who end for leases that move."""
    giving = all_who_could(view, parts.limits.notice, frozenset())
    if not giving.candidates:
        return None

    def jointly(few: Mapping[str, Candidate]) -> tuple[Moved, ...] | None:
        some = replace(giving, candidates=few)
        return _together(parts, view, moving, keepers, time_limit, some)

    every = giving.candidates
    return of_least_priority(every, jointly(every), jointly)


def _why(parts: Parts, built: Built) -> str:
    """`needs 4 hosts one-per-host, 3 left`, or whatever is known."""
    ends = parts.stopwatch() + _WHY
    oracle = Oracle(parts.solver, lambda: ends - parts.stopwatch())
    core = next(Deletion(built, oracle).conflicts(), None)
    if core is None:
        return "no other places were found"
    turns = binding(built, core, oracle)
    policies = [one for one in core.elements if one.kind == POLICY]
    for one in policies or core.elements:
        wanted = needs(built, one, turns)
        counted = _COUNTED.fullmatch(wanted) if one.kind == POLICY else None
        numbers = facts(built, (one,), turns)
        if counted is not None and numbers:
            return f"needs {counted[1]} {one.name}, {numbers[0][1]} left"
        told = ", ".join(f"{label}: {number}" for label, number in numbers)
        return f"needs {wanted}; {told}" if told else f"needs {wanted}"
    return "no other places were found"


def lease_ends(
    parts: Parts, snapshot: Snapshot, hosts: Iterable[str], since: Instant
) -> list[Instant]:
    """When leases leave these hosts, after `since`, ascending: where being away may fit first."""
    every = [one for _, one in there(snapshot, hosts, Period(since, FOREVER))]
    leases = leases_there(parts, every)
    decisions = {one.decision_id for one in leases}
    ends = {
        one.period.end
        for one in every
        if one.decision in decisions or one.state is BookingState.RESERVED
    }
    return sorted(one for one in ends if since < one < FOREVER)
