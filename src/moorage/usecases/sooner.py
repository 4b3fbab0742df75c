"""Whether a request fits sooner than leases that stay where they are let it.

A request may have leases make room for it that have not started. So a window is only proved to be
the earliest where no earlier one could be had by that either. With all of them set aside a request
fits wherever it could be granted: the starts at which it does not are refuted at once, and most of
the others by what all hosts have free together, for who moves takes as much as before. What is
left is tried, as a request that names it would be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.period import FOREVER, Period
from moorage.engine.conflicts import Oracle
from moorage.engine.earliest import Sought
from moorage.engine.overlay import without
from moorage.engine.starts import candidates, enough_in_all, plausible
from moorage.usecases.leases.planned import MOST, MOST_MEMBERS, movable, planned_times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.engine.snapshot import Snapshot
    from moorage.engine.starts import Starts
    from moorage.usecases.ahead import Ahead
    from moorage.usecases.leases.planned import Planned
    from moorage.usecases.parts import Parts

_TRIES: Final = 40
"""Windows that are tried for one search."""
_SECONDS: Final = 2.0
"""For all of that, and no more than is left for the search."""
_LOOKED_UP: Final = 4 * MOST
"""Leases of which it is looked up whether they may move; more are taken to."""
_SET_ASIDE: Final = 2_000
"""Leases that are set aside for one search; with more of them ahead nothing is tried."""


def sooner(
    parts: Parts,
    ahead: Ahead,
    ranges: Iterable[tuple[Starts, Snapshot]],
    found: Sought,
    remaining: Callable[[], float],
    *,
    after: Instant | None,
) -> Sought:
    """The earliest start, with leases that move for it.

    Args:
        parts: the store, the solver and the stopwatch.
        ahead: what is looked for.
        ranges: the starts that were looked at, each with the fleet as it is for them.
        found: what came of it with leases where they are.
        remaining: seconds left.
        after: only starts after it count; None: all.
    """
    until = parts.stopwatch() + min(remaining(), _SECONDS)
    search = _Search(parts, ahead, lambda: until - parts.stopwatch())
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


@dataclass(eq=False)
class _Search:
    """Looks for one start; counts what it has tried."""

    parts: Parts
    ahead: Ahead
    remaining: Callable[[], float]
    tried: int = 0

    def giving(self, period: Period) -> Mapping[str, Period]:
        """Leases that may make room in a period, and when they are: by their decisions."""
        ahead = self.ahead
        if not self._outranks and any(role.groups for role in ahead.request.roles):
            return {}
        times = planned_times(ahead.snapshot, ahead.request.own_consumers)
        near = {id_: one for id_, one in times.items() if one.overlaps(period)}
        if self._outranks or len(near) > _LOOKED_UP:
            return near
        return {id_: one for id_, one in near.items() if self._movable(id_) is not None}

    def among(
        self, starts: Starts, view: Snapshot, giving: Mapping[str, Period], after: Instant | None
    ) -> Sought:
        """The first start that is granted, of those at which these leases could make room."""
        ahead = replace(self.ahead, keepers=()) if self._outranks else self.ahead
        built = ahead.stated(starts, starts.first, view)
        ends = [one.end for one in giving.values() if starts.first < one.end <= starts.last]
        at = np.union1d(candidates(built, view, starts), np.array(ends, dtype=np.int64))
        at = at if after is None else at[at > after]
        if not self._outranks:
            at = at[enough_in_all(built, view, starts, at)]
        if not len(at):
            return Sought(None, proved=True)
        if len(giving) > _SET_ASIDE:
            return Sought(None, proved=False)

        def gives(one: Booking) -> bool:
            return one.decision in giving and one.state is BookingState.RESERVED

        bare = without(view, np.flatnonzero(view.breaks < FOREVER).tolist(), gives)
        at = at[plausible(ahead.stated(starts, starts.first, bare), bare, starts, at)]
        oracle = Oracle(self.parts.solver, self.remaining, ahead.seed)
        proved = True
        for start in at.tolist():
            if oracle.feasible(ahead.stated(starts, start, bare).problem) is False:
                continue
            if self.tried == _TRIES or self.remaining() <= 0:
                return Sought(None, proved=False)
            granted = self._granted(starts.window(start))
            if granted:
                return Sought(start, proved)
            proved = proved and granted is False
        return Sought(None, proved)

    @property
    def _outranks(self) -> bool:
        return self.ahead.trial is not None and self.ahead.trial.outranks > 0

    def _granted(self, period: Period) -> bool | None:
        trial = self.ahead.trial
        if trial is None:
            return None
        self.tried += 1
        granted = trial.granted(period, self.remaining())
        return None if granted is False and not self._all_may_move(period) else granted

    def _all_may_move(self, period: Period) -> bool:
        """Whether all who could move for a window are few enough to move for one request."""
        times = planned_times(self.ahead.snapshot, self.ahead.request.own_consumers)
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
        return len(there) <= MOST and sum(len(one.stand.places) for one in there) <= MOST_MEMBERS

    def _movable(self, decision: str) -> Planned | None:
        found = movable(self.parts.store, self.ahead.snapshot, decision)
        if found is None or any(role.groups for role in found.ensemble.roles):
            return None
        return found
