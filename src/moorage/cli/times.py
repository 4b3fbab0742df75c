"""Times and durations as people type them: argparse types, one grammar for all options.

A time is absolute (`2026-12-07T08:00Z`), `now`, or so long from now (`+2h`, `1w`; `-1d` is past).
Nothing depends on the machine's time zone: a time without an offset is UTC, as every time that
is printed. `now` is by the service's clock, which a simulation sets.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import (
    SECOND,
    checked,
    format_duration,
    format_instant,
    from_datetime,
    parse_duration,
    parse_instant,
    say_duration,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.period import Duration, Instant

NOW: Final = "now"
TIME_HELP: Final = (
    "2026-12-07T08:00Z, '2026-12-07 08:00' or 2026-12-07 (UTC, or with an offset), now, or +2h, 1w:"
    " so long from now"
)


@dataclass(frozen=True, slots=True)
class RelativeTime:
    """A time relative to now, resolved once the service's time is known."""

    ahead: Duration

    def since(self, now: Instant) -> str:
        """The time in the API's form: a whole second, unless it is now.

        Raises:
            InvalidDescription: beyond the times that may be given.
        """
        then = checked(now + self.ahead)
        return format_instant(then // SECOND * SECOND if self.ahead >= SECOND else then)


@dataclass(frozen=True, slots=True)
class RelativePeriod:
    """A start and an end, either of which may be relative."""

    start: str | RelativeTime
    end: str | RelativeTime | Duration

    def since(self, now: Instant) -> tuple[str, str]:
        """Both times in the API's form.

        Raises:
            InvalidDescription: beyond the times that may be given.
        """
        start = self.start.since(now) if isinstance(self.start, RelativeTime) else self.start
        if isinstance(self.end, int):
            return start, format_instant(checked(parse_instant(start) + self.end))
        return start, self.end.since(now) if isinstance(self.end, RelativeTime) else self.end


def time_of(text: str) -> str | RelativeTime:
    """A time as the API reads it: `2026-12-07 08:00` becomes `2026-12-07T08:00:00Z`.

    Raises:
        argparse.ArgumentTypeError: not a time.
    """
    if text == NOW:
        return RelativeTime(0)
    try:
        when = datetime.fromisoformat(text)
        return format_instant(checked(from_datetime(when if when.tzinfo else _utc(when))))
    except ValueError:
        return _relative(text)
    except InvalidDescription as error:
        raise argparse.ArgumentTypeError(error.message) from None


def _relative(text: str) -> RelativeTime:
    sign = -1 if text.startswith("-") else 1
    try:
        return RelativeTime(sign * parse_duration(text.removeprefix("+").removeprefix("-")))
    except InvalidDescription:
        raise argparse.ArgumentTypeError(f"not a time: {text!r}; write {TIME_HELP}") from None


def time_or_now(text: str) -> str | RelativeTime:
    """As `time_of`; `now` stays as it is: the service resolves it by its own clock."""
    return NOW if text == NOW else time_of(text)


def stretch(text: str) -> RelativePeriod:
    """`2026-12-09T06:00Z/24h` (24 hours from the start) or `FROM/TO`, two times.

    Raises:
        argparse.ArgumentTypeError: neither form.
    """
    start, slash, rest = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError("write FROM/DURATION or FROM/TO: 2026-12-09T06:00Z/24h")
    try:
        return RelativePeriod(time_of(start), parse_duration(rest))
    except InvalidDescription:
        return RelativePeriod(time_of(start), time_of(rest))


def local_or_instant(text: str) -> str | RelativeTime:
    """As `time_or_now`; an absolute time stays as typed, since its zone is not known yet."""
    found = time_or_now(text)
    return found if isinstance(found, RelativeTime) else text


def span(text: str) -> str:
    """A duration as the API reads it: `4d10h` becomes `P4DT10H`.

    Raises:
        argparse.ArgumentTypeError: not a duration.
    """
    try:
        return format_duration(parse_duration(text))
    except InvalidDescription as error:
        raise argparse.ArgumentTypeError(error.message) from None


def seconds(text: str) -> int:
    """A duration in whole seconds.

    Raises:
        argparse.ArgumentTypeError: not a duration, or with a part of a second.
    """
    try:
        whole, rest = divmod(parse_duration(text), SECOND)
    except InvalidDescription as error:
        raise argparse.ArgumentTypeError(error.message) from None
    if rest:
        raise argparse.ArgumentTypeError(f"whole seconds, not {text!r}")
    return whole


def minute(instant: str | None) -> str:
    """An instant for people, with seconds only if they are not 0."""
    return re.sub(r"(T\d\d:\d\d):00(?:\.0+)?Z", r"\1Z", instant) if instant else "-"


def length(duration: str) -> str | None:
    """A duration for people: `PT1H30M` as `1h30m`; empty if zero."""
    time = parse_duration(duration)
    return say_duration(time) if time else None


def actions(written: Sequence[str]) -> str | None:
    """Actions for people: `release, notify:1d`, of `release` and `notify:P1D`; may be empty."""
    return ", ".join(map(_action, written)) or None


def _action(written: str) -> str:
    *words, last = written.split(":")
    return ":".join([*words, length(last) or last]) if last.startswith("P") else written


def period(start: str | None, end: str | None) -> str:
    """A period for people: `2026-12-07T08:00Z .. 2026-12-11T18:00Z`."""
    return f"{minute(start)} .. {minute(end)}"


def _utc(when: datetime) -> datetime:
    return when.replace(tzinfo=UTC)
