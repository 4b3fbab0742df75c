"""Free windows: when a number of members fits for a duration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.disclosure import EXACT
from moorage.domain.errors import InvalidDescription
from moorage.engine.capacity.capacity_over_time import count_fits
from moorage.usecases.capacity.scope import hosts_of, size_of, window_of

if TYPE_CHECKING:
    from moorage.domain.disclosure import Disclosure
    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.capacity.scope import Scope
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

MOST: Final = 100
"""Most windows of one answer."""


@dataclass(frozen=True, slots=True)
class FreeWindow:
    """A window of starts: a stay may begin from `earliest` to `latest`, both included."""

    earliest: Instant
    latest: Instant
    count: int
    """The least number that fits, over all these starts."""


@dataclass(frozen=True, slots=True)
class FreeWindows:
    """The free windows in a period, the earliest first; at most `MOST`."""

    window: Period
    snapshot: Snapshot
    windows: tuple[FreeWindow, ...]


def free_windows(
    env: UseCaseEnvironment,
    caller: Caller,
    scope: Scope,
    *,
    count: int,
    duration: Duration,
    told: Disclosure = EXACT,
) -> FreeWindows:
    """The windows in which `count` members fit, each on one host for all of `duration`.

    Instants at which other bookings begin or end are rounded by `told`, so a window may be shown
    shorter than it is.

    Raises:
        InvalidDescription: no size is given, or the period is shorter than the stay.
        NotFound, UnknownName, LimitExceeded: as for capacity over time.
    """
    snapshot = env.store.snapshot()
    window = window_of(env, scope, snapshot.taken_at)
    size = size_of(env, caller, scope)
    if not size.resources:
        raise InvalidDescription("give the size of a member: a flavor or resources", path="flavor")
    if duration > window.end - window.start:
        raise InvalidDescription("the period is shorter than the duration", path="duration")
    hosts = hosts_of(snapshot, caller, scope, size)
    steps = count_fits(snapshot, hosts, size.resources, window, duration=duration).total()
    last = window.end - duration
    enough = steps.value >= count
    edges = np.flatnonzero(np.diff(np.r_[False, enough, False].astype(np.int8)))
    found = [
        FreeWindow(
            earliest=int(steps.at[first]),
            latest=last if after == len(enough) else int(steps.at[after]) - 1,
            count=int(steps.value[first:after].min()),
        )
        for first, after in edges.reshape(-1, 2).tolist()
    ]
    if not told.exact:
        rounded = (_roughly(one, window, duration, told) for one in found)
        found = [one for one in rounded if one.earliest <= one.latest]
    return FreeWindows(window, snapshot, tuple(found[:MOST]))


def _roughly(free: FreeWindow, window: Period, duration: Duration, told: Disclosure) -> FreeWindow:
    """The window rounded as a tenant may see it."""
    earliest, latest = free.earliest, free.latest
    if earliest > window.start:
        earliest = told.until(earliest)
    if latest < window.end - duration:
        latest = told.since(latest + duration) - duration
    return replace(free, earliest=earliest, latest=latest)
