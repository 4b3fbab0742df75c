"""Instants, half-open periods and durations.

An instant is an integer: microseconds since the Unix epoch, UTC. Integers
compare, sort and store alike in Python, numpy and every SQL engine, and carry
no time zone to get wrong. `FOREVER` stands for "no planned end".

Times that are read lie between `EARLIEST` and `LATEST`, and durations are at most `LONGEST`:
so the end of every hold and claim, a present instant plus a duration, can be written as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from moorage.domain.errors import InvalidDescription

Instant: TypeAlias = int
"""Microseconds since 1970-01-01T00:00:00Z."""

Duration: TypeAlias = int
"""Microseconds."""

SECOND: Final[Duration] = 1_000_000
MINUTE: Final[Duration] = 60 * SECOND
HOUR: Final[Duration] = 60 * MINUTE
DAY: Final[Duration] = 24 * HOUR

FOREVER: Final[Instant] = 2**63 - 1
"""The end of a period that has none; also the `lapses_at` of a booking that stays."""

EARLIEST: Final[Instant] = 0
"""The first instant that may be given: 1970-01-01T00:00:00Z."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final[Instant] = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""The last instant that may be given: 9000-01-01T00:00:00Z."""

LONGEST: Final[Duration] = 36_500 * DAY
"""The longest duration that may be given: a hundred years."""

_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LONG_TEXT: Final = 64
"""Characters of a duration; also keeps the numbers in it short enough to be read."""
_SHORT = re.compile(
    r"(?:(?P<w>\d+)w)?(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?", re.ASCII
)
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)S)?)?",
    re.ASCII,
)
_UNITS: Final = {"w": 7 * DAY, "d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND}


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """The half-open interval `[start, end)`; periods that touch do not overlap."""

    start: Instant
    end: Instant = FOREVER

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise InvalidDescription(f"a period must end after it starts: {self}", path="interval")

    def __str__(self) -> str:
        return f"[{format_instant(self.start)}, {format_instant(self.end)})"

    @property
    def open_ended(self) -> bool:
        """Whether no end is planned."""
        return self.end == FOREVER

    def overlaps(self, other: Period) -> bool:
        """Whether some instant lies in both periods."""
        return self.start < other.end and other.start < self.end

    def covers(self, instant: Instant) -> bool:
        """Whether `instant` lies in the period."""
        return self.start <= instant < self.end


def from_now_on(start: Instant | None, now: Instant) -> Instant:
    """The start of a queried period: now, unless a later one is given.

    A day that is named by its date has begun at midnight, so what has passed of it is left out.
    The start of a lease is no question but a promise: see `usecases.leases.shaping`.
    """
    return now if start is None else max(start, now)


def parse_instant(text: str) -> Instant:
    """Read an RFC 3339 time with an offset (`2026-11-21T09:00:00Z`).

    Raises:
        InvalidDescription: not a time, one without an offset, or one that `checked` refuses.
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidDescription(f"not an RFC 3339 time: {text!r}") from error
    if when.tzinfo is None:
        raise InvalidDescription(f"a time needs an offset, such as a final Z: {text!r}")
    return checked(from_datetime(when))


def checked(instant: Instant) -> Instant:
    """The instant, which lies between `EARLIEST` and `LATEST`.

    Raises:
        InvalidDescription: it does not.
    """
    if not EARLIEST <= instant <= LATEST:
        raise InvalidDescription(
            f"a time must lie between {format_instant(EARLIEST)} and {format_instant(LATEST)},"
            f" not at {format_instant(instant)}"
        )
    return instant


def from_datetime(when: datetime) -> Instant:
    """Turn an aware datetime into an instant."""
    return (when - _EPOCH) // timedelta(microseconds=1)


def to_datetime(instant: Instant) -> datetime:
    """Turn an instant into an aware datetime in UTC; `FOREVER` has none."""
    return _EPOCH + timedelta(microseconds=instant)


def format_instant(instant: Instant) -> str:
    """Write an instant as RFC 3339 in UTC; `FOREVER` becomes `forever`.

    What lies outside years 1 to 9999 has no such text: the nearest that has one is written.
    """
    if instant == FOREVER:
        return "forever"
    when = to_datetime(min(max(instant, _FIRST), _LAST)).replace(tzinfo=None)
    return f"{when.isoformat()}Z"


def parse_duration(text: str) -> Duration:
    """Read an ISO 8601 duration (`PT10M`, `P4DT10H`) or the short form (`10m`, `4d10h`, `1w`).

    Years and months are refused: their length depends on the calendar.

    Raises:
        InvalidDescription: neither form, nothing but a unit, or more than `LONGEST`.
    """
    if len(text) > _LONG_TEXT:
        raise InvalidDescription(f"not a duration such as PT10M or 10m: {text[:_LONG_TEXT]!r}...")
    match = (_ISO if text.startswith("P") else _SHORT).fullmatch(text)
    fields = {unit: int(n) for unit, n in match.groupdict().items() if n} if match else {}
    if not fields:
        raise InvalidDescription(f"not a duration such as PT10M or 10m: {text!r}")
    duration = sum(_UNITS[unit] * n for unit, n in fields.items())
    if duration > LONGEST:
        raise InvalidDescription(f"a duration is at most {LONGEST // DAY} days: {text!r}")
    return duration


def say_duration(duration: Duration) -> str:
    """Write a duration for people, in whole seconds: `10m`, `4d10h`, as they may type it."""
    return format_duration(duration).removeprefix("P").replace("T", "").lower()


def format_duration(duration: Duration) -> str:
    """Write a duration in ISO 8601, whole seconds: `PT10M`, `P4DT10H`."""
    days, rest = divmod(duration // SECOND, DAY // SECOND)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if n)
    day_part = f"{days}D" if days else ""
    if not day_part and not clock:
        return "PT0S"
    return f"P{day_part}" + (f"T{clock}" if clock else "")
