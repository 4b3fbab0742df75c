"""Capacity over time: step functions by resource class, and how many members of a size fit.

A tenant does not see the instants at which other bookings begin or end: where a value changes
between two instants of the disclosure's grid, the worst value of that cell is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from moorage.domain.disclosure import EXACT
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import DAY, HOUR, MINUTE, Period
from moorage.engine.capacity.capacity_over_time import count_fits, profile
from moorage.engine.time.step_functions import StepFunction
from moorage.usecases.capacity.scope import WHOLE, grid, hosts_of, parts_by, size_of, window_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.period import Duration, Instant
    from moorage.engine.capacity.capacity_over_time import Profile
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.capacity.scope import HostGroup, MemberSize, Scope
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

MOST_ROWS: Final = 10_000
"""Most rows of one step function; a longer or busier period needs a `step`."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Units of one resource class from an instant on."""

    at: Instant
    total: int
    away: int
    """Capacity of hosts that are planned to be away; not in the total."""
    reserved: int
    allocated: int
    unbacked: int
    """Booked beyond the total: on hosts that are away, and overages."""
    available: int
    busy: int
    """The unavailable share of the total in ten-thousandths, rounded up; all of it if that is 0."""


@dataclass(frozen=True, slots=True)
class FitCount:
    """How many fit from an instant on, or throughout the step that begins there."""

    at: Instant
    count: int


_Row = TypeVar("_Row", Amounts, FitCount)


@dataclass(frozen=True, slots=True)
class CapacityProfile:
    """The capacity over time of one group of hosts."""

    domain: str | None
    hosts: int
    shared_by: tuple[str, ...]
    """See `HostGroup.shared_by`."""
    resources: Mapping[str, tuple[Amounts, ...]]
    fits: tuple[FitCount, ...] | None
    """None if no size was given, and of a group of pools."""


@dataclass(frozen=True, slots=True)
class CapacityOverTime:
    """The capacity over time, by groups of hosts."""

    window: Period
    snapshot: Snapshot
    courses: tuple[CapacityProfile, ...]
    step: Duration | None
    """The length of a row; None: as long as nothing changes."""


def capacity_over_time(  # noqa: PLR0913 - what is asked for has its names
    env: UseCaseEnvironment,
    caller: Caller,
    scope: Scope,
    *,
    step: Duration | None = None,
    most: int | None = None,
    by: str | None = None,
    told: Disclosure = EXACT,
) -> CapacityOverTime:
    """Amounts by resource class over time, and how many members of a size fit.

    Args:
        env: ports and limits.
        caller: the caller, who may see certain domains.
        scope: period, hosts and size; without a size all resource classes are returned.
        step: return the worst value of each step of this length, instead of every change.
        most: how many steps there may be: they are longer then, and of the lengths that people use.
        by: a level, by whose domains hosts are grouped.
        told: how exactly instants are disclosed.

    Raises:
        InvalidDescription: the period is empty or over, or there are too many rows or hosts.
        NotFound: no such flavor. UnknownName: no such domain, level, class or trait.
        Forbidden: tenants may not see the level's domains. LimitExceeded: beyond the horizon.
    """
    snapshot = env.store.snapshot()
    window = window_of(env, scope, snapshot.taken_at)
    if most is not None:
        step = _coarser(window.end - window.start, step, most)
    starts = None if step is None else grid(window, step, MOST_ROWS)
    size = size_of(env, caller, scope)
    hosts = hosts_of(snapshot, caller, scope, size)
    some = parts_by(snapshot, caller, hosts, by, scope.zone)
    if told.exact:
        courses = (_course(snapshot, one, size, window, starts, step) for one in some)
    else:
        seen = _Roughly(snapshot, told, window, starts)
        courses = (seen.course(one, size) for one in some)
    return CapacityOverTime(window, snapshot, tuple(courses), step)


_LENGTHS: Final = (
    *(n * MINUTE for n in (1, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28)),
)


def _coarser(whole: Duration, step: Duration | None, most: int) -> Duration:
    """The shortest length of steps, `step` or a longer one, of which so many are enough."""
    least = -(-whole // most)
    if step is not None and step >= least:
        return step
    return next((one for one in _LENGTHS if one >= least), least)


def _course(
    snapshot: Snapshot,
    part: HostGroup,
    size: MemberSize,
    window: Period,
    starts: Ints | None,
    step: Duration | None,
) -> CapacityProfile:
    resources = {
        name: _every(found)
        if starts is None
        else _worst(found, starts, np.r_[starts[1:], window.end])
        for name, found in _profiles(snapshot, part, size, window).items()
    }
    return CapacityProfile(
        part.domain,
        int(part.hosts.sum()),
        part.shared_by,
        resources,
        _fits(snapshot, part, size, window, starts, step) if _counts(part, size) else None,
    )


def _counts(part: HostGroup, size: MemberSize) -> bool:
    """Whether it is counted how many fit: of a size, on hosts."""
    return bool(size.resources) and not part.shared_by


def _profiles(
    snapshot: Snapshot, part: HostGroup, size: MemberSize, window: Period
) -> dict[str, Profile]:
    """The profiles of the requested resource classes, by name."""
    there = part.hosts | part.pools
    classes = sorted(size.resources) if size.resources else _classes(snapshot, there)
    return {name: profile(snapshot, there, name, window) for name in classes}


@dataclass(frozen=True, slots=True)
class _Roughly:
    """Capacity as a tenant sees it: the worst value in each cell of the disclosure's grid."""

    snapshot: Snapshot
    told: Disclosure
    window: Period
    steps: Ints | None
    """Starts of the requested steps; None without steps."""

    @property
    def _around(self) -> Period:
        """The window, extended to whole cells of the disclosure's grid."""
        start = max(self.told.since(self.window.start), self.snapshot.taken_at)
        return Period(start, self.told.until(self.window.end))

    def course(self, part: HostGroup, size: MemberSize) -> CapacityProfile:
        around = self._around
        found = _profiles(self.snapshot, part, size, around)
        return CapacityProfile(
            part.domain,
            int(part.hosts.sum()),
            part.shared_by,
            {name: self._amounts(one) for name, one in found.items()},
            self._fits(part, size) if _counts(part, size) else None,
        )

    def _amounts(self, found: Profile) -> tuple[Amounts, ...]:
        busy = _busy(found)
        starts = self._starts(np.concatenate((found.available.at, busy.at)))
        lows, highs = self._cells(starts)
        return self._joined(_worst(found, lows, highs, told=starts))

    def _fits(self, part: HostGroup, size: MemberSize) -> tuple[FitCount, ...]:
        around, grid = self._around, self.told.times
        changes = count_fits(self.snapshot, part.hosts, size.resources, around).total().at
        starts = self._starts(changes)
        lows, highs = self._cells(starts)
        # Without steps, nothing changes in a row after its first cell.
        lengths = highs - lows if self.steps is not None else np.minimum(highs - lows, grid)
        counts = np.zeros(len(starts), dtype=np.int64)
        for length in np.unique(lengths).tolist():
            some = lengths == length
            over = Period(int(lows[some][0]), int(lows[some][-1]) + length)
            stays = count_fits(self.snapshot, part.hosts, size.resources, over, duration=length)
            counts[some] = stays.total().values_at(lows[some])
        return self._joined(_pairs(starts, counts))

    def _joined(self, rows: tuple[_Row, ...]) -> tuple[_Row, ...]:
        """The rows without repeated values; all rows if steps were requested."""
        if self.steps is not None:
            return rows
        known = (None, *rows)
        return tuple(
            row
            for row, before in zip(rows, known, strict=False)
            if before is None or replace(row, at=before.at) != before
        )

    def _starts(self, changes: Ints) -> Ints:
        """Starts of rows: the steps, or the cells of the grid in which something changes."""
        if self.steps is not None:
            return self.steps
        grid, window = self.told.times, self.window
        changes = changes[changes > self._around.start]
        edges = np.concatenate((changes - changes % grid, -(-changes // grid) * grid))
        inside = edges[(edges > window.start) & (edges < window.end)]
        found: Ints = np.unique(np.r_[window.start, inside])
        _check(len(found))
        return found

    def _cells(self, starts: Ints) -> tuple[Ints, Ints]:
        """The grid cells around rows: their starts and ends."""
        grid, around = self.told.times, self._around
        ends = np.r_[starts[1:], self.window.end]
        return np.maximum(starts - starts % grid, around.start), -(-ends // grid) * grid


def _classes(snapshot: Snapshot, there: Bools) -> list[str]:
    """Resource classes with inventories in the trees of these root rows."""
    roots = snapshot.root
    return sorted(name for name, one in snapshot.classes.items() if there[roots[one.rows]].any())


def _every(found: Profile) -> tuple[Amounts, ...]:
    """A row for every instant at which something changes."""
    functions = (
        found.total,
        found.away,
        found.reserved,
        found.allocated,
        found.unbacked,
        found.available,
        _busy(found),
    )
    at = np.unique(np.concatenate([one.at for one in functions]))
    _check(len(at))
    return _rows(at, *(one.values_at(at) for one in functions))


def _worst(
    found: Profile, starts: Ints, ends: Ints, *, told: Ints | None = None
) -> tuple[Amounts, ...]:
    """A row for each step: the minimum of what is available, and the maximum of what is taken.

    Rows begin at `told` if given, else at `starts`.
    """

    def most(one: StepFunction) -> Ints:
        highest: Ints = -StepFunction(one.at, -one.value).minimum_over(starts, ends)
        return highest

    return _rows(
        starts if told is None else told,
        found.total.minimum_over(starts, ends),
        most(found.away),
        most(found.reserved),
        most(found.allocated),
        most(found.unbacked),
        found.available.minimum_over(starts, ends),
        most(_busy(found)),
    )


def _busy(found: Profile) -> StepFunction:
    """The unavailable share of the total in ten-thousandths; all of it if the total is 0."""
    at = np.unique(np.concatenate((found.total.at, found.available.at)))
    total, available = found.total.values_at(at), found.available.values_at(at)
    share = -((available - total) * WHOLE // np.maximum(total, 1))
    return StepFunction(at, np.where(total > 0, share, WHOLE))


def _rows(at: Ints, *functions: Ints) -> tuple[Amounts, ...]:
    columns = [one.tolist() for one in functions]
    return tuple(Amounts(*row) for row in zip(at.tolist(), *columns, strict=True))


def _fits(
    snapshot: Snapshot,
    part: HostGroup,
    size: MemberSize,
    window: Period,
    starts: Ints | None,
    step: Duration | None,
) -> tuple[FitCount, ...]:
    if starts is None or step is None:
        found = count_fits(snapshot, part.hosts, size.resources, window).total()
        _check(len(found.at))
        return _pairs(found.at, found.value)
    # A last step that is cut short is counted with its own length.
    whole = starts[starts + step <= window.end]
    counts: list[int] = []
    if len(whole):
        stays = count_fits(snapshot, part.hosts, size.resources, window, duration=step).total()
        counts = stays.values_at(whole).tolist()
    if len(whole) < len(starts):
        rest = type(window)(int(starts[-1]), window.end)
        length = rest.end - rest.start
        tail = count_fits(snapshot, part.hosts, size.resources, rest, duration=length).total()
        counts.append(int(tail.value[0]))
    return _pairs(starts, np.array(counts, dtype=np.int64))


def _pairs(at: Ints, counts: Ints) -> tuple[FitCount, ...]:
    return tuple(FitCount(*row) for row in zip(at.tolist(), counts.tolist(), strict=True))


def _check(rows: int) -> None:
    if rows > MOST_ROWS:
        raise InvalidDescription(
            f"the answer has {rows} rows, more than {MOST_ROWS}: give a step", path="step"
        )
