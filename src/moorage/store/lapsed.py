"""Bookings that no longer live: they count nowhere, and whoever comes by sweeps them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, or_, select

from moorage.domain.bookings import BookingState
from moorage.store import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.period import Instant
    from moorage.store.session import Session

_b = tables.bookings.c
_IS_DEAD = (_b.state != BookingState.ALLOCATED.value) & or_(
    _b.lapses_at <= bindparam("now"), _b.end_at <= bindparam("now")
)
_DEAD = select(_b.consumer).where(_IS_DEAD).distinct()
_SWEEP = delete(tables.bookings).where(_IS_DEAD)
_SWEEP_OF = _SWEEP.where(_b.consumer.in_(bindparam("consumers", expanding=True)))


def who_lapsed(connection: Session, now: Instant, *, most: int) -> Sequence[str]:
    """Some consumers with bookings that no longer live."""
    return connection.scalars(_DEAD.limit(most), {"now": now}).all()


def sweep_all(connection: Session, now: Instant) -> Sequence[str]:
    """Delete all such bookings; their consumers."""
    found = connection.scalars(_DEAD, {"now": now}).all()
    if found:
        connection.execute(_SWEEP, {"now": now})
    return found


def sweep_of(connection: Session, now: Instant, consumers: Sequence[str]) -> None:
    """Delete such bookings of these consumers (few enough for one statement)."""
    connection.execute(_SWEEP_OF, {"now": now, "consumers": consumers})
