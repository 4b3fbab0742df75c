"""What those members of an ensemble have booked that a request leaves where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.state.snapshot import Snapshot

Allocations: TypeAlias = "Mapping[str, Mapping[str, int]]"
"""Provider UUID -> class -> amount."""


def staying_allocations(snapshot: Snapshot, request: EnsembleRequest) -> Sequence[Allocations]:
    """Per consumer, what it has booked at most on each provider in the request's period.

    Of several bookings one after another the largest amount counts.
    """
    found: list[Allocations] = []
    for consumer in sorted(request.own_consumers - request.released):
        booked: dict[str, dict[str, int]] = {}
        for row in snapshot.rows_of_consumer(consumer):
            if consumer not in snapshot.consumers_in(row, request.period):
                continue
            for booking in snapshot.bookings_of(row):
                if booking.consumer == consumer:
                    amounts = booked.setdefault(booking.provider, {})
                    for name, amount in booking.amounts.items():
                        amounts[name] = max(amounts.get(name, 0), amount)
        found.append(booked)
    return found
