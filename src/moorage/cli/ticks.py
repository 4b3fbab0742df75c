"""Ticks of a time axis and their labels: round times, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from typing import TYPE_CHECKING, Final

from moorage.domain.period import DAY, HOUR, MINUTE, SECOND, from_datetime, to_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.period import Duration, Instant, Period

STEPS: Final[tuple[Duration, ...]] = (
    *(n * SECOND for n in (1, 5, 15, 30)),
    *(n * MINUTE for n in (1, 5, 15, 30)),
    *(n * HOUR for n in (1, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14)),
)
MONTHS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 600, 1200)
"""Steps where even two weeks are too close: whole months, then years."""
_MONDAYS: Final = 7 * DAY
_MONDAY: Final = 4 * DAY
"""1970-01-05, from which weeks are counted."""
_BY_DAYS: Final = 3 * DAY
"""From this length on noon and midnight are noise, however much room there is."""
_GAP: Final = 2
"""Columns between two labels."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick: an instant on the axis, and its label."""

    instant: Instant
    label: str


def ticks(window: Period, columns: int) -> list[Tick]:
    """The ticks of a window with so many columns: as many as their labels leave room for."""
    length = window.end - window.start
    steps = (step for step in STEPS if step >= DAY or length < _BY_DAYS)
    for step in steps:
        room = step * columns // length - _GAP
        for form in _forms(step):
            if len(f"{_SAMPLE:{form}}") <= room:
                return [Tick(at, _label(at, step, form)) for at in _rounded(window, step)]
    for months in MONTHS:
        if months * 30 * DAY * columns >= (len("2026-12") + _GAP) * length:
            break
    return [Tick(at, f"{to_datetime(at):%Y-%m}") for at in _firsts(window, months)]


_SAMPLE: Final = to_datetime(0)


def _forms(step: Duration) -> tuple[str, ...]:
    """Forms of labels, the best first; weekdays for steps of days, not of weeks."""
    if step < MINUTE:
        return ("%H:%M:%S",)
    if step < DAY:
        return ("%H:%M",)
    return ("%a %m-%d", "%m-%d") if step < _MONDAYS else ("%m-%d",)


def _label(at: Instant, step: Duration, form: str) -> str:
    """A tick's label: the day at midnight, where the others are times of day."""
    return f"{to_datetime(at):{form if step >= DAY or at % DAY else '%m-%d'}}"


def _rounded(window: Period, step: Duration) -> Iterator[Instant]:
    """The multiples of the step in the window; weeks begin on Mondays."""
    origin = _MONDAY if step >= _MONDAYS else 0
    at = window.start + (origin - window.start) % step
    while at < window.end:
        yield at
        at += step


def _firsts(window: Period, months: int) -> Iterator[Instant]:
    """The first days of every so many months, counted from a January."""
    start = to_datetime(window.start)
    month = -(-(start.year * 12 + start.month - 1) // months) * months
    while month < MAXYEAR * 12:
        at = from_datetime(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC))
        if at >= window.end:
            return
        if at >= window.start:
            yield at
        month += months
