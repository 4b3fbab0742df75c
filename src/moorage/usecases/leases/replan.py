"""Late binding: leases that have not started move to other places where that lets a request in.

A planned lease's places are a witness that it can be had, not where it will be (ADR-0008). A
request that finds no room is stated once more together with the planned leases of its time, each
over its own period (`engine.windows`); nobody moves for nothing, and what was granted stays
granted: their policies hold in the new places, and the commit writes all of it or nothing.

First only leases of its very time may move; where that is not enough, also those beside them in
time, and those beside these, and so on: who moves may need a place that somebody leaves later.

Not more than `planned.MOST` leases with `planned.MOST_MEMBERS` members are moved for one request,
the nearest in time first: what is refused then is refused with the others where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.period import Period
from moorage.engine.build import state
from moorage.engine.cost import holds
from moorage.engine.overlay import exchanged, worsens
from moorage.engine.problem import Verdict
from moorage.engine.terrain import survey
from moorage.engine.verify import WrongAnswer
from moorage.engine.windows import Party, joint, shares
from moorage.usecases.closed import closed_hosts
from moorage.usecases.joint import judged, request_for, still_holds
from moorage.usecases.leases.planned import Moved, Planned, widening

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Duration
    from moorage.domain.placement import Place
    from moorage.engine.build import Built
    from moorage.engine.problem import Outcome
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Found
    from moorage.usecases.ports import Solver, Store

_NOBODY: Final = frozenset[str]()
_NOTHING: Final[Mapping[str, tuple[Booking, ...]]] = MappingProxyType({})


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
) -> Replanned | Verdict:
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
        `INFEASIBLE` where there is none, whichever of them move; `UNKNOWN` where none was found.
    """
    if any(role.groups for role in built.request.roles):
        return Verdict.INFEASIBLE
    request, vain = built.request, Verdict.INFEASIBLE
    for planned in widening(store, snapshot, request.period, request.own_consumers):
        if staying and worsens(_without(snapshot, planned), staying):
            continue
        found = _moving(
            solver, snapshot, built, keepers, staying, planned, time_limit=time_limit, seed=seed
        )
        if isinstance(found, Replanned):
            return found
        vain = found
    return vain


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
) -> Replanned | Verdict:
    """The answer for which some of these leases move; see `replanned`."""
    view = exchanged(snapshot, staying)
    released = built.request.released.union(*(one.consumers for one in planned))
    asked = replace(built.request, released=released)
    # Once for all: every party's terrain, and every slot of time, is without them.
    bare = exchanged(view, dict.fromkeys(released, ()))
    terrain = survey(bare, replace(asked, released=_NOBODY))
    parties = [
        Party(state(asked, terrain, closed=built.closed), MappingProxyType({})),
        *(party(view, one, released, keepers, bare) for one in planned),
    ]
    problem = joint(parties, bare)
    outcome = solver.solve(problem, time_limit=time_limit, seed=seed)
    if outcome.verdict is not Verdict.FEASIBLE:
        return outcome.verdict
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
        return Verdict.UNKNOWN
    return _checked(exchanged(snapshot, instead), built, founds[0], outcome, moved)


def _without(snapshot: Snapshot, planned: Sequence[Planned]) -> Snapshot:
    return exchanged(snapshot, {name: () for one in planned for name in one.consumers})


def _checked(
    view: Snapshot, built: Built, found: Found, outcome: Outcome, moved: tuple[Moved, ...]
) -> Replanned | Verdict:
    """The answer judged once more with everybody where they are then."""
    there = state(built.request, survey(view, built.request), closed=built.closed)
    judged_there = still_holds(found, there)
    if judged_there is None:
        return Verdict.UNKNOWN
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
    snapshot: Snapshot,
    planned: Planned,
    released: frozenset[str],
    keepers: Sequence[Ensemble],
    bare: Snapshot | None = None,
) -> Party:
    """A lease on the fleet without what `released` hold; that is `bare`, where it is known."""
    if bare is None:
        bare = exchanged(snapshot, dict.fromkeys(released, ()))
    period = planned.decision.period
    ahead = Period(max(period.start, snapshot.taken_at), period.end)
    everyone = frozenset(planned.stand.places)
    objective = planned.decision.objective
    request = replace(
        request_for(planned.ensemble, planned.stand, everyone, ahead, objective), released=released
    )
    closed = closed_hosts(keepers, snapshot, planned.ensemble, ahead)
    terrain = survey(bare, replace(request, released=_NOBODY))
    built = state(request, terrain, closed=closed)
    stood = {name: place.host for name, place in planned.stand.places.items()}
    return Party(built, MappingProxyType(stood))
