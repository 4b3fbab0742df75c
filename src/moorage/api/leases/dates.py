"""Dates in Blazar's formats.

Requests say `YYYY-MM-DD HH:MM` in UTC, or `now`. Replies say `YYYY-MM-DDTHH:MM:SS.ffffff`, always
with six digits: the client parses exactly that. When a thing was created or changed is told with a
blank instead of the `T`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import FOREVER, MINUTE, checked, from_datetime, to_datetime
from moorage.domain.words import shown

if TYPE_CHECKING:
    from moorage.domain.period import Instant

NOW: Final = "now"
__all__ = ["MINUTE", "NOW", "read", "stamped", "written"]
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}", re.ASCII)


def read(text: object, now: Instant) -> Instant:
    """The instant that a request's date means.

    Raises:
        InvalidDescription: another form, or no such date.
    """
    if text == NOW:
        return now
    if not isinstance(text, str) or _DATE.fullmatch(text) is None:
        raise InvalidDescription(f"Date must be in format '%Y-%m-%d %H:%M', not {shown(text)}")
    try:
        when = datetime.fromisoformat(f"{text}:00").replace(tzinfo=UTC)
    except ValueError:
        raise InvalidDescription(f"There is no date {text!r}") from None
    return checked(from_datetime(when))


def written(instant: Instant) -> str:
    """The date of a lease, event or allocation."""
    return _text(instant, "T")


def stamped(instant: Instant) -> str:
    """The time at which a record was created or changed."""
    return _text(instant, " ")


def _text(instant: Instant, between: str) -> str:
    # A lease has an end, and every instant that may be given has a date.
    assert instant != FOREVER, "only bounded periods are told"
    return to_datetime(instant).replace(tzinfo=None).isoformat(between, "microseconds")
