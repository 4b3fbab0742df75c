"""Recurrences: calendar dates, at one time of day in one time zone.

A recurrence is stated as people state it: a first start in local time, a zone, and a rule
such as `weekdays`. Instants follow from that, so eight in the morning stays eight in the morning
where the clocks change:

- a time of day that a date does not have, because clocks are put forward over it, is as much later
  (`02:30` becomes `03:30`), and one that it has twice is the first of the two, as in RFC 5545;
- a date that a zone leaves out altogether has no occurrence;
- a month without the day of the first start has its last day instead.

Every occurrence lasts equally long. The zone's rules are an argument: nothing is read here.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import LATEST, Instant, from_datetime, to_datetime

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""Days of the week, as `date.weekday` counts them."""
GRAMMAR: Final = (
    "daily, weekdays, weekends, weekly, monthly, days of the week such as mon,wed,"
    " or a number of days, weeks or months such as '2 weeks'"
)
LONGEST_STEP: Final = 366
"""The most days, weeks or months from one occurrence to the next."""

_STEPS = re.compile(r"(\d{1,4}) ?(day|week|month)s?", re.ASCII)
_LAST_YEAR: Final = to_datetime(LATEST).year - 1


class Unit(StrEnum):
    """The units of a recurrence."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class RecurrenceRule:
    """The rule of the dates: every so many units, or certain days of each week."""

    unit: Unit
    step: int = 1
    days: frozenset[int] = frozenset()
    """Days of the week, Monday is 0; of weeks alone, and then each week has them."""

    def __str__(self) -> str:
        if self.days:
            return _DAY_SETS.get(self.days) or ",".join(DAYS[day] for day in sorted(self.days))
        if self.step > 1:
            return f"{self.step} {self.unit}s"
        return {Unit.DAY: "daily", Unit.WEEK: "weekly", Unit.MONTH: "monthly"}[self.unit]


_WEEKDAYS: Final = frozenset(range(5))
_WEEKENDS: Final = frozenset({5, 6})
_DAY_SETS: Final = {_WEEKDAYS: "weekdays", _WEEKENDS: "weekends"}
_WORDS: Final = {
    "daily": RecurrenceRule(Unit.DAY),
    "weekly": RecurrenceRule(Unit.WEEK),
    "monthly": RecurrenceRule(Unit.MONTH),
    "weekdays": RecurrenceRule(Unit.WEEK, days=_WEEKDAYS),
    "weekends": RecurrenceRule(Unit.WEEK, days=_WEEKENDS),
}


def parse_every(text: str) -> RecurrenceRule:
    """Read `weekdays`, `mon,wed` or `2 weeks`.

    Raises:
        InvalidDescription: it is nothing of `GRAMMAR`, or the step is nothing or too long.
    """
    said = text.strip().lower()
    if said in _WORDS:
        return _WORDS[said]
    if steps := _STEPS.fullmatch(said):
        step = int(steps[1])
        if not 1 <= step <= LONGEST_STEP:
            raise InvalidDescription(f"every 1 to {LONGEST_STEP} {steps[2]}s, not {step}")
        return RecurrenceRule(Unit(steps[2]), step)
    words = [one.strip() for one in said.split(",")]
    if len(set(words)) < len(words) or not set(words) <= set(DAYS):
        raise InvalidDescription(f"write {GRAMMAR}; not {text[:64]!r}")
    return RecurrenceRule(Unit.WEEK, days=frozenset(map(DAYS.index, words)))


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A first start in a zone's local time, and the rule by which it recurs.

    Where the first date is none of the rule's, as a Saturday is no weekday, the first occurrence
    is on the first date after it that is.
    """

    start: datetime
    """Local time in `zone`, as a naive datetime."""
    zone: str
    """By its name in the IANA database, such as `Europe/Berlin`."""
    every: RecurrenceRule

    def starts(self, zone: tzinfo) -> Iterator[Instant]:
        """The instants of all starts, ascending, up to the end of the calendar.

        Args:
            zone: the rules of `Recurrence.zone`.
        """
        before: Instant | None = None
        clock = self.start.time()
        for day in dates(self.every, self.start.date()):
            start = instant_of_local_time(datetime.combine(day, clock), zone)
            # A date that the zone leaves out falls on the next: it has no occurrence.
            if before is None or start > before:
                yield start
                before = start


def dates(every: RecurrenceRule, first: date) -> Iterator[date]:
    """The dates of a rule from a date on, in order."""
    number = 0
    while True:
        found = _date(every, first, number)
        if found is None:
            return
        if not every.days or found.weekday() in every.days:
            yield found
        number += 1


def _date(every: RecurrenceRule, first: date, number: int) -> date | None:
    """The rule's n-th candidate date; None: beyond the calendar."""
    if every.unit is Unit.MONTH:
        months = first.month - 1 + number * every.step
        year, month = first.year + months // 12, months % 12 + 1
        if year > _LAST_YEAR:
            return None
        return date(year, month, min(first.day, monthrange(year, month)[1]))
    length = 7 if every.unit is Unit.WEEK and not every.days else 1
    found = first + timedelta(days=number * every.step * length)
    return found if found.year <= _LAST_YEAR else None


def instant_of_local_time(wall: datetime, zone: tzinfo) -> Instant:
    """The instant of a zone's local time; see above where that is skipped or occurs twice."""
    return from_datetime(wall.replace(tzinfo=zone, fold=0).astimezone(UTC))


def local_time_at(instant: Instant, zone: tzinfo) -> datetime:
    """A zone's local time at an instant."""
    return to_datetime(instant).astimezone(zone).replace(tzinfo=None, fold=0)
