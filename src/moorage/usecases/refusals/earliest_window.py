"""The earliest window in a range of starts in which a request fits, also if leases move for it.

Each start is judged like a request for that window: with the exclusive policies of other ensembles
in that period, and, if a lease may displace preemptible consumers, without those that can be
warned in time. This search leaves leases that have not started in their places;
`earlier_start_by_moves` then searches for earlier starts that are possible if they move.

A window is proved to be the earliest only if relocation cannot make an earlier one possible. Starts
at which the request does not fit even without all movable leases are excluded first; then those at
which the total free capacity is too small, since a moved lease takes as much as before. The
remaining starts are tried one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain import deadline
from moorage.domain.bookings import BookingState
from moorage.domain.errors import Busy
from moorage.domain.explain import Window
from moorage.domain.period import FOREVER, SECOND, Period
from moorage.domain.requests import Objective
from moorage.engine.capacity.earliest_start import NO_START, EarliestStart, first_fitting
from moorage.engine.capacity.starts import (
    Starts,
    candidate_starts,
    disclosed_starts,
    enough_total_capacity,
    not_refuted,
)
from moorage.engine.explain.conflicts import Oracle
from moorage.engine.state.overlay import without_bookings
from moorage.usecases.decide.solution import request_for
from moorage.usecases.preemption.victims import displaceable, without_candidates
from moorage.usecases.refusals.trial import WindowRequest
from moorage.usecases.relocation.movable_leases import MOST, MOST_MEMBERS, movable, movable_periods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant
    from moorage.engine.joint.problem import Problem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.preemption.pending_leases import PendingLease
    from moorage.usecases.shared.environment import Environment


def next_window(
    env: Environment,
    lease: PendingLease,
    view: Snapshot,
    exclusive: tuple[Ensemble, ...],
    budget: Duration,
) -> Window | None:
    """The earliest window in which a lease fits on `view`, no earlier than its own window."""
    terms = lease.lease.terms
    members = frozenset(member.name for member in lease.ensemble.members)
    member_places = replace(lease.member_places, places={}, bookings={}, status={})
    request = request_for(lease.ensemble, member_places, members, terms.occupied, Objective.SPREAD)
    length = terms.occupied.end - terms.occupied.start
    first = terms.occupied.start
    last = max(first, view.taken_at + env.limits.horizon - length)
    window_request = WindowRequest(
        lease.ensemble, request, view, exclusive, seed=lease.decision.solve.seed
    )
    told = replace(env.limits.disclosure, exact=False)  # its owner reads it, whoever displaces it
    try:
        sought = earliest_start(
            env, window_request, Starts(first, last, length, told), time_limit=budget
        )
    except Busy:
        return None
    if sought.start is None:
        return None
    start = sought.start + terms.lead
    return Window(start, start + terms.period.end - terms.period.start, sought.proved)


_TRIES: Final = 40
"""Windows that one search tries at most."""
_SECONDS: Final = 2.0
"""Time limit of these trials together, if the search has that much left."""
_LOOKED_UP: Final = 4 * MOST
"""Leases that are read at most to see whether they may move; if there are more, all count."""
_SET_ASIDE: Final = 2_000
"""Leases that are left out of the snapshot at most; if there are more, nothing is tried."""


def earlier_start_by_moves(
    env: Environment,
    window_request: WindowRequest,
    ranges: Iterable[tuple[Starts, Snapshot]],
    found: EarliestStart,
    remaining: Callable[[], float],
    *,
    after: Instant | None,
) -> EarliestStart:
    """The earliest start that is possible if leases move.

    `ranges` are the parts of the range of starts, each with its fleet; `found` is the earliest
    start without moves. Only starts later than `after` count; None: all. `remaining` returns the
    seconds left.
    """
    search = _Search(env, window_request, env.countdown(min(remaining(), _SECONDS)))
    proved = True
    for starts, view in ranges:
        if found.start is not None and found.start <= starts.first:
            break
        last = starts.last if found.start is None else min(starts.last, found.start - 1)
        some = replace(starts, last=last)
        giving = search.giving(some.whole)
        sought = search.among(some, view, giving, after) if giving else found
        proved = proved and sought.proved
        if giving and sought.start is not None:
            return replace(found, start=sought.start, proved=proved)
    return replace(found, proved=proved)


def _problem(
    window_request: WindowRequest, starts: Starts, start: Instant, view: Snapshot
) -> Problem:
    return window_request.problem_at(starts, start, view).problem


@dataclass(eq=False)
class _Search:
    """A search for one start, with the number of windows tried so far."""

    env: Environment
    window_request: WindowRequest
    remaining: Callable[[], float]
    tried: int = 0

    def giving(self, period: Period) -> Mapping[str, Period]:
        """Decision id -> period, of leases in `period` that may make room."""
        window_request = self.window_request
        if not self._outranks and any(role.decided_alone for role in window_request.request.roles):
            return {}
        times = movable_periods(window_request.snapshot, window_request.request.own_consumers)
        near = {id_: one for id_, one in times.items() if one.overlaps(period)}
        if self._outranks or len(near) > _LOOKED_UP:
            return near
        return {id_: one for id_, one in near.items() if self._movable(id_) is not None}

    def among(
        self, starts: Starts, view: Snapshot, giving: Mapping[str, Period], after: Instant | None
    ) -> EarliestStart:
        """The first start at which the request is granted if the leases in `giving` make room."""
        window_request = (
            replace(self.window_request, exclusive=()) if self._outranks else self.window_request
        )
        built = window_request.problem_at(starts, starts.first, view)
        ends = [one.end for one in giving.values() if starts.first < one.end <= starts.last]
        others = disclosed_starts(starts, np.array(ends, dtype=np.int64))
        at = np.union1d(candidate_starts(built, view, starts), others)
        at = at if after is None else at[at > after]
        if not self._outranks:
            at = at[enough_total_capacity(built, view, starts, at)]
        if not len(at):
            return EarliestStart(None, proved=True)
        if len(giving) > _SET_ASIDE:
            return EarliestStart(None, proved=False)

        def gives(one: Booking) -> bool:
            return one.decision in giving and one.state is BookingState.RESERVED

        bare = without_bookings(view, np.flatnonzero(view.next_change < FOREVER).tolist(), gives)
        at = at[
            not_refuted(window_request.problem_at(starts, starts.first, bare), bare, starts, at)
        ]
        oracle = Oracle(self.env.solver, self.remaining, window_request.seed)
        proved = True
        for start in at.tolist():
            if (
                oracle.feasible_if_time(partial(_problem, window_request, starts, start, bare))
                is False
            ):
                continue
            if self.tried == _TRIES or self.remaining() <= 0:
                return EarliestStart(None, proved=False)
            granted = self._granted(starts.window(start))
            if granted:
                return EarliestStart(start, proved)
            proved = proved and granted is False
        return EarliestStart(None, proved)

    @property
    def _outranks(self) -> bool:
        return self.window_request.trial is not None and self.window_request.trial.outranks > 0

    def _granted(self, period: Period) -> bool | None:
        trial = self.window_request.trial
        if trial is None:
            return None
        self.tried += 1
        granted = trial.in_window(period).granted(self.remaining())
        return None if granted is False and not self._all_may_move(period) else granted

    def _all_may_move(self, period: Period) -> bool:
        """Whether the leases that could move for a window are few enough for one request."""
        times = movable_periods(
            self.window_request.snapshot, self.window_request.request.own_consumers
        )
        hull, some = period, [one for one in times.values() if one.overlaps(period)]
        while True:
            hull = Period(
                min([hull.start, *(one.start for one in some)]),
                max([hull.end, *(one.end for one in some)]),
            )
            more = [one for one in times.values() if one.overlaps(hull)]
            if len(more) == len(some):
                break
            some = more
        near = [id_ for id_, one in times.items() if one.overlaps(hull)]
        if len(near) > _LOOKED_UP:
            return False
        there = [one for id_ in near if (one := self._movable(id_)) is not None]
        return (
            len(there) <= MOST
            and sum(len(one.member_places.places) for one in there) <= MOST_MEMBERS
        )

    def _movable(self, decision: str) -> PendingLease | None:
        deadline.check()
        found = movable(self.env.store, self.window_request.snapshot, decision)
        if found is None or any(role.decided_alone for role in found.ensemble.roles):
            return None
        return found


def earliest_start(
    env: Environment,
    window_request: WindowRequest,
    starts: Starts,
    *,
    time_limit: Duration,
    later: bool = False,
) -> EarliestStart:
    """The earliest start in a range at which the whole request fits.

    `starts` are those of the booked period, which includes lead and cleaning; with `later` the
    first is skipped. `time_limit` is for the whole search; past it the answer is not proved.
    """
    left = env.countdown(time_limit / SECOND)

    def remaining() -> float:
        return deadline.left(left())

    found, ranges = NO_START, _parts(env, window_request, starts)
    for part, view in ranges:
        first = later and part.first == starts.first
        sought = _among(env, window_request, part, view, remaining, later=first)
        found = EarliestStart(sought.start, proved=found.proved and sought.proved)
        if found.start is not None:
            break
    found = replace(found, proved_without_relocation=found.proved)
    after = starts.first if later else None
    return earlier_start_by_moves(env, window_request, ranges, found, remaining, after=after)


def disclosed_earliest_start(
    env: Environment,
    window_request: WindowRequest,
    starts: Starts,
    *,
    time_limit: Duration,
    later: bool = False,
) -> EarliestStart:
    """As `earliest_start`, but also tries the last start if starts are disclosed on a grid.

    The last start is given by the request, so it discloses no instant of other leases.
    """
    found = earliest_start(env, window_request, starts, time_limit=time_limit, later=later)
    if found.start is not None or starts.disclosure.exact or starts.first >= starts.last:
        return found
    end = replace(starts, first=starts.last)
    last = earliest_start(env, window_request, end, time_limit=time_limit)
    proved, unmoved = (
        found.proved and last.proved,
        found.proved_without_relocation and last.proved_without_relocation,
    )
    return replace(last, proved=proved, proved_without_relocation=unmoved)


def _parts(
    env: Environment, window_request: WindowRequest, starts: Starts
) -> list[tuple[Starts, Snapshot]]:
    """The range split where preemptible consumers may be displaced, each part with its fleet."""
    since = window_request.displacing_from
    if since is None or since > starts.last or not window_request.snapshot.preemptible.any():
        return [(starts, window_request.snapshot)]
    since = max(since, starts.first)
    displacing = replace(starts, first=since)
    own = window_request.request.own_consumers
    going = displaceable(window_request.snapshot, displacing.whole, env.limits.notice, own)
    view = (
        without_candidates(window_request.snapshot, going.keys())
        if going
        else window_request.snapshot
    )
    if since == starts.first:
        return [(displacing, view)]
    return [(replace(starts, last=since - 1), window_request.snapshot), (displacing, view)]


def _among(
    env: Environment,
    window_request: WindowRequest,
    starts: Starts,
    view: Snapshot,
    remaining: Callable[[], float],
    *,
    later: bool,
) -> EarliestStart:
    built = window_request.problem_at(starts, starts.first, view)
    at = candidate_starts(built, view, starts)
    at = at[1:] if later else at
    if not len(at):
        return NO_START
    left = at[not_refuted(built, view, starts, at)].tolist()
    oracle = Oracle(env.solver, remaining, window_request.seed)
    return first_fitting(
        left,
        lambda start: oracle.feasible_if_time(
            lambda: window_request.problem_at(starts, start, view).problem
        ),
        remaining,
    )
