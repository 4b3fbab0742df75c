"""Times and durations as people type them, for argparse.

Nothing depends on the machine's time zone: a time without an offset is UTC, as every time that
is printed.
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import (
    checked,
    format_duration,
    format_instant,
    from_datetime,
    parse_duration,
    say_duration,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW: Final = "now"
TIME_HELP: Final = "such as 2026-12-07T08:00Z, '2026-12-07 08:00' or 2026-12-07; UTC, or +01:00"


def time_of(text: str) -> str:
    """A time as the API reads it: `2026-12-07 08:00` becomes `2026-12-07T08:00:00Z`.

    Raises:
        argparse.ArgumentTypeError: not a time.
    """
    try:
        when = datetime.fromisoformat(text)
        return format_instant(checked(from_datetime(when if when.tzinfo else _utc(when))))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a time {TIME_HELP}: {text!r}") from None
    except InvalidDescription as error:
        raise argparse.ArgumentTypeError(error.message) from None


def time_or_now(text: str) -> str:
    """As `time_of`; `now` stays as it is: the service's clock says when that is."""
    return NOW if text == NOW else time_of(text)


def typed(text: str) -> str:
    """As `time_or_now`, judged but left as it was typed: whose clock it is, is not known yet."""
    time_or_now(text)
    return text


def span(text: str) -> str:
    """A duration as the API reads it: `4d10h` becomes `P4DT10H`.

    Raises:
        argparse.ArgumentTypeError: not a duration.
    """
    try:
        return format_duration(parse_duration(text))
    except InvalidDescription as error:
        raise argparse.ArgumentTypeError(error.message) from None


def minute(instant: str | None) -> str:
    """An instant for people: seconds, and parts of them, only where there are any."""
    return re.sub(r"(T\d\d:\d\d):00(?:\.0+)?Z", r"\1Z", instant) if instant else "-"


def length(duration: str) -> str | None:
    """`PT1H30M` as `1h30m`; nothing for no time at all."""
    time = parse_duration(duration)
    return say_duration(time) if time else None


def actions(written: Sequence[str]) -> str | None:
    """`release, notify:1d`, of `release` and `notify:P1D`; nothing where there are none."""
    return ", ".join(map(_action, written)) or None


def _action(written: str) -> str:
    *words, last = written.split(":")
    return ":".join([*words, length(last) or last]) if last.startswith("P") else written


def period(start: str | None, end: str | None) -> str:
    """`2026-12-07T08:00Z .. 2026-12-11T18:00Z`."""
    return f"{minute(start)} .. {minute(end)}"


def _utc(when: datetime) -> datetime:
    return when.replace(tzinfo=UTC)
