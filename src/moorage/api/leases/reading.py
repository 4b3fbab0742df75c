"""A lease's name and dates, read from requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.api.leases import dates
from moorage.domain import plain_values
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import Period
from moorage.domain.plain_values import MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.period import Instant


def read_name(body: Mapping[str, Any]) -> str:
    """A lease's name.

    Raises:
        InvalidDescription: none, or none that can be one.
    """
    name = body.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise InvalidDescription(f"A lease needs a name of 1 to {MAX_NAME} characters")
    return plain_values.name(name, "name")


def read_period(body: Mapping[str, Any], now: Instant) -> Period:
    """A lease's period. A start within the present minute is now.

    Raises:
        InvalidDescription: missing dates, a start in the past, an end before it.
    """
    for key in ("start_date", "end_date"):
        if body.get(key) is None:
            raise InvalidDescription(f"{key} is missing")
    start, end = dates.read(body["start_date"], now), dates.read(body["end_date"], now)
    if start < now - now % dates.MINUTE:
        raise InvalidDescription("Start date must be later than current date")
    start = max(start, now)
    if end <= start:
        raise InvalidDescription("End date must be later than start date.")
    return Period(start, end)
