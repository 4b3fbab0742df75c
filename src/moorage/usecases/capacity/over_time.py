"""Capacity over time: step functions by resource class, and how many of a size fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.errors import InvalidDescription
from moorage.engine.profile import counted, profile
from moorage.engine.steps import Steps
from moorage.usecases.capacity.scope import grid, hosts_of, parts_by, size_of, window_of
from moorage.usecases.capacity.seen import WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.profile import Profile
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.capacity.scope import Part, Scope, Size
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller

    Ints: TypeAlias = NDArray[np.int64]

MOST_ROWS: Final = 10_000
"""Of one step function; a longer or busier time takes a `step`."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Units of one resource class from an instant on."""

    at: Instant
    total: int
    away: int
    """What hosts have that are planned to be away: no part of the total."""
    reserved: int
    allocated: int
    unbacked: int
    """What is booked beyond the total: on hosts that are away, and what is over-full."""
    available: int
    busy: int
    """The part of the total that cannot be had, in ten-thousandths, rounded up; all of nothing."""


@dataclass(frozen=True, slots=True)
class Fits:
    """How many fit from an instant on: at that instant, or through the step that begins there."""

    at: Instant
    count: int


@dataclass(frozen=True, slots=True)
class Course:
    """What there is in one part of the fleet."""

    domain: str | None
    hosts: int
    resources: Mapping[str, tuple[Amounts, ...]]
    fits: tuple[Fits, ...] | None
    """None where no size was asked about."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """The answer, part by part."""

    window: Period
    snapshot: Snapshot
    courses: tuple[Course, ...]


def capacity_over_time(
    parts: Parts,
    caller: Caller,
    scope: Scope,
    *,
    step: Duration | None = None,
    by: str | None = None,
) -> OverTime:
    """Total, reserved, allocated and available by resource class, and how many of a size fit.

    Args:
        parts: the ports.
        caller: which domains exist for it.
        scope: when and where, and what shall fit; without a size every class is told.
        step: tell the worst of each step of this length, instead of every change.
        by: a level, by whose domains hosts are told apart.

    Raises:
        InvalidDescription: a time that cannot be asked about, or too much of it.
        NotFound: no such flavor. UnknownName: no such domain, level, class or trait.
        Forbidden: domains that are not for tenants. LimitExceeded: beyond the horizon.
    """
    snapshot = parts.store.snapshot()
    window = window_of(parts, scope, snapshot.taken_at)
    starts = None if step is None else grid(window, step, MOST_ROWS)
    size = size_of(parts, scope)
    hosts = hosts_of(snapshot, caller, scope, size)
    some = parts_by(snapshot, caller, hosts, by, scope.zone)
    return OverTime(
        window, snapshot, tuple(_course(snapshot, one, size, window, starts, step) for one in some)
    )


def _course(
    snapshot: Snapshot,
    part: Part,
    size: Size,
    window: Period,
    starts: Ints | None,
    step: Duration | None,
) -> Course:
    classes = sorted(size.resources) if size.resources else _classes(snapshot, part)
    resources = {}
    for name in classes:
        found = profile(snapshot, part.hosts, name, window)
        resources[name] = _every(found) if starts is None else _worst(found, starts, window.end)
    return Course(
        part.domain,
        int(part.hosts.sum()),
        resources,
        _fits(snapshot, part, size, window, starts, step) if size.resources else None,
    )


def _classes(snapshot: Snapshot, part: Part) -> list[str]:
    """Those that some of the hosts have in their trees."""
    roots = snapshot.root
    return sorted(
        name for name, one in snapshot.classes.items() if part.hosts[roots[one.rows]].any()
    )


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
    return _rows(at, *(one.on(at) for one in functions))


def _worst(found: Profile, starts: Ints, end: Instant) -> tuple[Amounts, ...]:
    """A row for each step: the least there is, and the most that is taken, at any instant."""
    ends = np.r_[starts[1:], end]

    def most(one: Steps) -> Ints:
        highest: Ints = -Steps(one.at, -one.value).lowest(starts, ends)
        return highest

    return _rows(
        starts,
        found.total.lowest(starts, ends),
        most(found.away),
        most(found.reserved),
        most(found.allocated),
        most(found.unbacked),
        found.available.lowest(starts, ends),
        most(_busy(found)),
    )


def _busy(found: Profile) -> Steps:
    """The share of what is there that cannot be had; where nothing is there, all of it."""
    at = np.unique(np.concatenate((found.total.at, found.available.at)))
    total, available = found.total.on(at), found.available.on(at)
    share = -((available - total) * WHOLE // np.maximum(total, 1))
    return Steps(at, np.where(total > 0, share, WHOLE))


def _rows(at: Ints, *functions: Ints) -> tuple[Amounts, ...]:
    columns = [one.tolist() for one in functions]
    return tuple(Amounts(*row) for row in zip(at.tolist(), *columns, strict=True))


def _fits(
    snapshot: Snapshot,
    part: Part,
    size: Size,
    window: Period,
    starts: Ints | None,
    step: Duration | None,
) -> tuple[Fits, ...]:
    if starts is None or step is None:
        found = counted(snapshot, part.hosts, size.resources, window).total()
        _check(len(found.at))
        return _pairs(found.at, found.value)
    # The last step may be cut short: then it is looked at by itself.
    whole = starts[starts + step <= window.end]
    counts: list[int] = []
    if len(whole):
        stays = counted(snapshot, part.hosts, size.resources, window, through=step).total()
        counts = stays.on(whole).tolist()
    if len(whole) < len(starts):
        rest = type(window)(int(starts[-1]), window.end)
        length = rest.end - rest.start
        tail = counted(snapshot, part.hosts, size.resources, rest, through=length).total()
        counts.append(int(tail.value[0]))
    return _pairs(starts, np.array(counts, dtype=np.int64))


def _pairs(at: Ints, counts: Ints) -> tuple[Fits, ...]:
    return tuple(Fits(*row) for row in zip(at.tolist(), counts.tolist(), strict=True))


def _check(rows: int) -> None:
    if rows > MOST_ROWS:
        raise InvalidDescription(
            f"it changes {rows} times; at most {MOST_ROWS} are told: give a step", path="step"
        )
