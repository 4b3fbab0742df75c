"""Members that stay where they are and are booked anew: for another period, or another decision."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.period import FOREVER, Period
from moorage.usecases.standing import MemberStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.requests import EnsembleRequest
    from moorage.usecases.proposal import Proposal
    from moorage.usecases.standing import Standing


def staying_put(
    proposal: Proposal, request: EnsembleRequest, stand: Standing, period: Period
) -> Mapping[MemberName, tuple[Booking, ...]]:
    """Members that stay put and are written anew: those held; in a lease, all who end with it."""
    found: dict[MemberName, tuple[Booking, ...]] = {}
    for name in request.fixed:
        bookings, status = stand.bookings[name], stand.of(name)
        if status is MemberStatus.HELD:
            found[name] = tuple(_kept(one, period, stand.at) for one in bookings)
        elif proposal.promise is not None and bookings[0].period.end != FOREVER:
            found[name] = tuple(
                replace(one, period=Period(one.period.start, period.end)) for one in bookings
            )
    return MappingProxyType(found)


def rebooked(
    stays: Mapping[MemberName, tuple[Booking, ...]], stand: Standing
) -> dict[str, tuple[Booking, ...]]:
    """What members that stay put are booked for afterwards, by consumer; only what differs."""
    return {some[0].consumer: some for name, some in stays.items() if some != stand.bookings[name]}


def _kept(booking: Booking, period: Period, now: Instant) -> Booking:
    """A hold for another period; one that ends before its time ends there still."""
    begun = booking.period.start <= now and period.start <= now
    start = booking.period.start if begun else period.start
    if booking.declared_end is None:
        return replace(booking, period=Period(start, period.end))
    end = min(booking.period.end, period.end)
    return replace(booking, period=Period(start, end), declared_end=period.end)
