"""The occurrences of a calendar, checked against the limits of leases."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from moorage.domain.errors import InvalidDescription, LimitExceeded
from moorage.domain.period import Period, format_instant
from moorage.domain.recurrence import local_time_at
from moorage.domain.series import Slot
from moorage.usecases.leases.shaping import checked_end

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from moorage.domain.leases import Terms
    from moorage.domain.period import Instant
    from moorage.domain.recurrence import Recurrence
    from moorage.usecases.series.requests import Extent
    from moorage.usecases.shared.limits import Limits

UTC = "UTC"


def zone_of(name: str) -> tzinfo:
    """The time zone of a name.

    Raises:
        InvalidDescription: there is no such zone.
    """
    try:
        # A name that is no zone's could still name a file in the zone database.
        if name == UTC or name in available_timezones():
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise InvalidDescription(
        f"no such time zone: {name!r}; write one such as Europe/Berlin", path="series.zone"
    )


def slots(
    limits: Limits,
    recurrence: Recurrence,
    terms: Terms,
    extent: Extent,
    *,
    after: int,
    now: Instant,
) -> tuple[Slot, ...]:
    """The checked occurrences after the first `after` ones.

    All occurrences have the length of the period of `terms`; `after` is how many were requested
    before.

    Raises:
        InvalidDescription: there are none, they overlap, or as for a lease.
        LimitExceeded: too many, too long, or too far ahead.
    """
    found = list(_found(limits, recurrence, terms, extent, after))
    chosen = found if not after else found[1:]
    if not chosen:
        raise InvalidDescription(_none(recurrence, extent, after), path="series.until_date")
    for one in chosen:
        checked_end(limits, terms.moved(one.period), now)
    for one, other in pairwise(found):
        _check_apart(one, other, terms)
    return tuple(chosen)


def _found(
    limits: Limits, recurrence: Recurrence, terms: Terms, extent: Extent, after: int
) -> Sequence[Slot]:
    """The occurrences, with the one before them if there is one."""
    zone = zone_of(recurrence.zone)
    length = terms.period.end - terms.period.start
    found: list[Slot] = []
    chosen = None if extent.times is None else after + extent.times
    if chosen is not None and chosen > limits.occurrences:
        raise _too_many(limits, chosen, after)
    for index, start in enumerate(recurrence.starts(zone), 1):
        if chosen is not None and index > chosen:
            break
        if extent.until is not None and local_time_at(start, zone).date() > extent.until:
            break
        if index > limits.occurrences:
            raise _too_many(limits, index, after)
        if index >= after:
            found.append(Slot(index, Period(start, start + length)))
    return found


def _none(recurrence: Recurrence, extent: Extent, after: int) -> str:
    """The message for a calendar without an occurrence up to a date."""
    if not after:
        return "there is no occurrence until then"
    zone = zone_of(recurrence.zone)
    dates = [local_time_at(one, zone).date() for one in islice(recurrence.starts(zone), after + 1)]
    there = f"the series is there until number {after}, which starts on {dates[after - 1]}"
    if extent.until is not None and extent.until < dates[after - 1]:
        return f"all occurrences until then exist already: {there}"
    follows = f"; the next would start on {dates[after]}" if len(dates) > after else ""
    return f"no further occurrence until then: {there}{follows}"


def _too_many(limits: Limits, requested: int, after: int) -> LimitExceeded:
    most = limits.occurrences
    return LimitExceeded(
        "occurrences of a series", limit=most, used=after, requested=requested - after
    )


def _check_apart(one: Slot, other: Slot, terms: Terms) -> None:
    """Check that two successive occurrences do not overlap."""
    before, after = terms.moved(one.period).occupied, terms.moved(other.period).occupied
    if before.overlaps(after):
        around = ", with lead and cleaning," if terms.lead or terms.cleaning else ""
        raise InvalidDescription(
            f"occurrences overlap one another: number {one.index}{around} is over at"
            f" {format_instant(before.end)}, number {other.index} begins at"
            f" {format_instant(after.start)}",
            path="series.duration",
        )


def first_at(slot: Slot, start: Instant) -> Slot:
    """The occurrence with another start."""
    return replace(slot, period=Period(start, slot.period.end))
