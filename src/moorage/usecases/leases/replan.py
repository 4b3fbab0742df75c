"""Late binding: leases that have not started move to other places where that lets a request in.

A planned lease's places are a witness that it can be had, not where it will be (ADR-0008). A
request that finds no room is stated once more together with the planned leases of its time, each
over its own period (`engine.windows`); nobody moves for nothing, and what was granted stays
granted: their policies hold in the new places, and the commit writes all of it or nothing.

First only leases of its very time may move; where that is not enough, also those beside them in
time, and those beside these, and so on: who moves may need a place that somebody leaves later.

Leases stay where they are whose members were told a place, asked for devices, or keep others out;
and not more than `MOST` leases with `MOST_MEMBERS` members are moved for one request, the nearest
in time first: what is refused then is refused with the others where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import EndBookings, ExpectLease, PutBookings, PutDecision
from moorage.domain.decisions import DecisionState
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER, Period
from moorage.engine.build import state
from moorage.engine.cost import holds
from moorage.engine.overlay import exchanged, worsens
from moorage.engine.problem import Verdict
from moorage.engine.terrain import survey
from moorage.engine.verify import WrongAnswer
from moorage.engine.windows import Party, joint, shares
from moorage.usecases.closed import closed_hosts, disabled_hosts
from moorage.usecases.joint import judged, request_for, still_holds
from moorage.usecases.leases.given_back import given_back
from moorage.usecases.standing import MemberStatus, standing
from moorage.usecases.writing import hold_booking, member_consumer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration
    from moorage.domain.placement import Place
    from moorage.engine.build import Built
    from moorage.engine.problem import Outcome
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.deciding import Answer
    from moorage.usecases.joint import Found
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Solver, Store
    from moorage.usecases.proposal import Proposal
    from moorage.usecases.standing import Standing

MOST: Final = 50
"""Leases that one request may move."""
MOST_MEMBERS: Final = 1_000

_NOTHING: Final[Mapping[str, tuple[Booking, ...]]] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Planned:
    """A lease that may be moved: where its members' places are now."""

    lease: Lease
    decision: Decision
    ensemble: Ensemble
    stand: Standing

    @property
    def consumers(self) -> frozenset[str]:
        """Whose bookings its places are."""
        return frozenset(one[0].consumer for one in self.stand.bookings.values())

    def bookings(self, places: Mapping[MemberName, Place]) -> dict[str, tuple[Booking, ...]]:
        """Its members' bookings in other places, by consumer."""
        return {
            member.uuid: hold_booking(
                member, places[member.name], self.decision, binding=Binding.PLANNED
            )
            for member in self.ensemble.members
            if member.name in places
        }


@dataclass(frozen=True, eq=False)
class Moved:
    """A planned lease with other places than before."""

    planned: Planned
    places: Mapping[MemberName, Place]

    def changes(self, now: int) -> Iterator[Change]:
        """What is written of it."""
        decision = self.planned.decision
        places = MappingProxyType({**decision.places, **self.places})
        yield ExpectLease(self.planned.lease.id, self.planned.lease.generation)
        yield PutDecision(replace(decision, places=places, updated_at=now), decision.generation)
        bookings = self.planned.bookings(self.places)
        for member in self.planned.ensemble.members:
            if member.uuid in bookings:
                consumer = member_consumer(self.planned.ensemble, member)
                yield PutBookings(consumer, bookings[member.uuid])

    def providers(self) -> frozenset[str]:
        """Where its members come to."""
        return frozenset(uuid for place in self.places.values() for uuid in place.allocations)

    def relied(self) -> dict[str, frozenset[str]]:
        """Its consumers, and the providers that they must still be on."""
        return {
            bookings[0].consumer: frozenset(one.provider for one in bookings)
            for name, bookings in self.planned.stand.bookings.items()
            if name in self.places
        }


@dataclass(frozen=True, eq=False)
class Replanned:
    """An answer to a request, and who moves for it."""

    found: Found
    moved: tuple[Moved, ...]


def replanned(  # noqa: PLR0913 - what is asked, of whom, over what, and how long
    store: Store,
    solver: Solver,
    snapshot: Snapshot,
    built: Built,
    keepers: Sequence[Ensemble],
    staying: Mapping[str, tuple[Booking, ...]] = _NOTHING,
    *,
    time_limit: Duration,
    seed: int,
) -> Replanned | None:
    """An answer to a request that has none while planned leases stay where they are.

    Args:
        store: where leases are.
        solver: solves the joint problem.
        snapshot: the fleet, with everything in it.
        built: the request's problem, stated with those who stay as they will be.
        keepers: ensembles that keep others out.
        staying: what the request's members that stay where they are will be booked for, by
            consumer, where that is other than now; others move out of their way, too.
        time_limit: for the joint problem.
        seed: the solver's.

    Returns:
        None where there is none, or none was found in time.
    """
    if any(role.groups for role in built.request.roles):
        return None
    request = built.request
    for planned in widening(store, snapshot, request.period, request.own_consumers):
        if worsens(_without(snapshot, planned), staying):
            continue
        found = _moving(
            solver, snapshot, built, keepers, staying, planned, time_limit=time_limit, seed=seed
        )
        if found is not None:
            return found
    return None


def _moving(  # noqa: PLR0913 - see `replanned`; and who may move
    solver: Solver,
    snapshot: Snapshot,
    built: Built,
    keepers: Sequence[Ensemble],
    staying: Mapping[str, tuple[Booking, ...]],
    planned: Sequence[Planned],
    *,
    time_limit: Duration,
    seed: int,
) -> Replanned | None:
    """The answer for which some of these leases move; see `replanned`."""
    view = exchanged(snapshot, staying)
    released = built.request.released.union(*(one.consumers for one in planned))
    asked = replace(built.request, released=released)
    terrain = survey(view, asked)
    parties = [
        Party(state(asked, terrain, closed=built.closed), MappingProxyType({})),
        *(party(view, one, released, keepers) for one in planned),
    ]
    problem = joint(parties, view)
    outcome = solver.solve(problem, time_limit=time_limit, seed=seed)
    if outcome.verdict is not Verdict.FEASIBLE:
        return None
    assert outcome.hosts is not None
    if not holds(problem, outcome.hosts[None, :])[0]:
        raise WrongAnswer(("the joint answer breaks the joint problem",))
    answers = shares(parties, problem, outcome.hosts)
    founds = [judged(one.built, outcome, rows) for one, rows in zip(parties, answers, strict=True)]
    moved = tuple(
        Moved(one, places)
        for one, found in zip(planned, founds[1:], strict=True)
        if (places := elsewhere(one, found))
    )
    instead = dict(staying)
    for one in moved:
        instead |= one.planned.bookings(one.places)
    if staying and worsens(snapshot, instead):
        return None
    return _checked(exchanged(snapshot, instead), built, founds[0], outcome, moved)


def _without(snapshot: Snapshot, planned: Sequence[Planned]) -> Snapshot:
    return exchanged(snapshot, {name: () for one in planned for name in one.consumers})


def _checked(
    view: Snapshot, built: Built, found: Found, outcome: Outcome, moved: tuple[Moved, ...]
) -> Replanned | None:
    """The answer judged once more with everybody where they are then."""
    there = state(built.request, survey(view, built.request), closed=built.closed)
    judged_there = still_holds(found, there)
    if judged_there is None:
        return None
    timed = replace(judged_there.outcome, wall_ms=outcome.wall_ms)
    return Replanned(replace(judged_there, outcome=timed), moved)


def elsewhere(planned: Planned, found: Found) -> Mapping[MemberName, Place]:
    """Members whose host is another than before."""
    return MappingProxyType(
        {
            name: found.place(name)
            for name in found.built.request.members
            if found.hosts[name] != planned.stand.places[name].host
        }
    )


def party(
    snapshot: Snapshot, planned: Planned, released: frozenset[str], keepers: Sequence[Ensemble]
) -> Party:
    """A lease on the fleet without what `released` consumers hold."""
    period = planned.decision.period
    ahead = Period(max(period.start, snapshot.taken_at), period.end)
    everyone = frozenset(planned.stand.places)
    objective = planned.decision.objective
    request = replace(
        request_for(planned.ensemble, planned.stand, everyone, ahead, objective), released=released
    )
    closed = closed_hosts(keepers, snapshot, planned.ensemble, ahead)
    built = state(request, survey(snapshot, request), closed=closed)
    stood = {name: place.host for name, place in planned.stand.places.items()}
    return Party(built, MappingProxyType(stood))


def room_left(
    parts: Parts, proposal: Proposal, decision: Decision, answer: Answer
) -> Iterator[Change]:
    """Later ends for those who yield to leases that change, move or go, where they yielded.

    Nobody yields to a lease where it moves: it moves to what is free. Who ends early for the
    decision itself gets nothing back. All are told together: what one lease leaves is not given
    back where another comes to.
    """
    moved, preempted = answer.look.moved, answer.look.preempted
    leases = [
        *(one.planned.lease.id for one in moved),
        *(gone.of.lease.id for gone in preempted),
    ]
    if proposal.gives_back and decision.lease_id is not None:
        leases.insert(0, decision.lease_id)
    if not leases:
        return
    ensemble, fixed = proposal.ensemble, answer.found.built.request.fixed
    instead = {
        one.uuid: hold_booking(one, decision.places[one.name], decision)
        for one in ensemble.members
        if one.name in decision.places and one.name not in fixed
    }
    instead |= {some[0].consumer: some for some in answer.look.staying.values()}
    instead |= dict.fromkeys(proposal.freed, ())
    without_place = (one for one in ensemble.members if one.name not in decision.places)
    instead |= {one.server_id or one.uuid: () for one in without_place}
    for one in moved:
        instead |= one.planned.bookings(one.places)
    for gone in preempted:
        instead |= dict.fromkeys(gone.of.consumers, ())
    later = given_back(
        parts.store,
        answer.snapshot,
        leases,
        instead,
        parts.limits.notice,
        {decision.id: decision.lease_id},
        ensemble if proposal.gives_back else None,
    )
    ending = {one.consumer for one in answer.look.displaced}
    for change in later:
        if not (isinstance(change, EndBookings) and change.consumers & ending):
            yield change


def widening(
    store: Store, snapshot: Snapshot, period: Period, own: frozenset[str]
) -> Iterator[Sequence[Planned]]:
    """Leases that may move together: those of a period, then also those around them; `own` do not.

    Nothing where the second would be no more than the first, or the first nothing.
    """
    times = _times(snapshot, own)
    near = [id_ for id_, one in times.items() if one.overlaps(period)]
    first = _movable(store, snapshot, near, times)
    if not first:
        return
    yield first
    if len(first) == MOST:
        return
    ring, reached = near, list(near)
    while ring and len(reached) < MOST:
        hull = Period(min(times[one].start for one in ring), max(times[one].end for one in ring))
        known = set(reached)
        ring = [id_ for id_, one in times.items() if id_ not in known and one.overlaps(hull)]
        reached += ring
    more = _movable(store, snapshot, reached[len(near) :], times)
    every = _few([*first, *more])
    if len(every) > len(first):
        yield every


def planned_in(
    store: Store, snapshot: Snapshot, period: Period, own: frozenset[str]
) -> Sequence[Planned]:
    """The leases of a period that may move together, the earliest first; `own` do not count."""
    times = _times(snapshot, own)
    near = [id_ for id_, one in times.items() if one.overlaps(period)]
    return _movable(store, snapshot, near, times)


def _times(snapshot: Snapshot, own: frozenset[str]) -> dict[str, Period]:
    """When the planned leases are, by the ids of their decisions; none of `own`."""
    return {
        one.decision: one.period
        for row in np.flatnonzero(snapshot.breaks < FOREVER).tolist()
        for one in snapshot.bookings_of(row)
        if one.state is BookingState.RESERVED
        and one.binding is Binding.PLANNED
        and one.decision is not None
        and one.consumer not in own
    }


def _movable(
    store: Store, snapshot: Snapshot, some: Sequence[str], times: Mapping[str, Period]
) -> Sequence[Planned]:
    """Those of these that may move, the earliest first, as many as may."""
    found: list[Planned] = []
    for decision_id in sorted(some, key=lambda id_: (times[id_].start, id_)):
        planned = movable(store, snapshot, decision_id)
        if planned is None or any(role.groups for role in planned.ensemble.roles):
            continue
        found.append(planned)
        if len(_few(found)) < len(found):
            break
    return _few(found)


def _few(some: Sequence[Planned]) -> Sequence[Planned]:
    """The first of these, as many as may move for one request."""
    members = 0
    for number, one in enumerate(some):
        members += len(one.stand.places)
        if number == MOST or members > MOST_MEMBERS:
            return some[:number]
    return some


def movable(store: Store, snapshot: Snapshot, decision_id: str) -> Planned | None:
    """The lease of a decision, if all of it may move."""
    try:
        decision = store.decision(decision_id)
        lease = None if decision.lease_id is None else store.lease(decision.lease_id)
        ensemble = store.ensemble(decision.ensemble_id)
    except NotFound:
        return None
    if (
        lease is None
        or lease.decision_id != decision.id
        or lease.state is not LeaseState.PENDING
        or lease.binding is not Binding.PLANNED
        or decision.state is not DecisionState.HELD
        or ensemble.keeps_others_out
    ):
        return None
    stand = standing(snapshot, ensemble)
    if any(stand.of(name) is not MemberStatus.HELD for name in decision.places):
        return None
    if disabled_hosts(snapshot) & {place.host for place in stand.places.values()}:
        # It needs other places itself, and must not keep this request from getting one.
        return None
    return Planned(lease, decision, ensemble, stand)
