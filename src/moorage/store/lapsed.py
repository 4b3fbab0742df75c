"""Bookings that no longer live: they count nowhere, and whoever comes by sweeps them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Integer, bindparam, delete, literal_column, or_, select, union

from moorage.domain.bookings import BookingState
from moorage.store import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.period import Instant
    from moorage.store.session import Session

_b = tables.bookings.c
# In the very words of the partial indexes, and each with its own.
_HELD = _b.state != literal_column(f"'{BookingState.ALLOCATED.value}'")
_LAPSED = _HELD & (_b.lapses_at <= bindparam("now"))
_ENDED = _HELD & (_b.end_at <= bindparam("now"))
_DEAD = union(select(_b.consumer).where(_LAPSED), select(_b.consumer).where(_ENDED))
_SOME_DEAD = _DEAD.limit(bindparam("most", type_=Integer))
_SWEEPS = (delete(tables.bookings).where(_LAPSED), delete(tables.bookings).where(_ENDED))
_SWEEP_OF = delete(tables.bookings).where(
    or_(_LAPSED, _ENDED), _b.consumer.in_(bindparam("consumers", expanding=True))
)


def who_lapsed(connection: Session, now: Instant, *, most: int) -> Sequence[str]:
    """Some consumers with bookings that no longer live."""
    return connection.scalars(_SOME_DEAD, {"now": now, "most": most}).all()


def sweep_all(connection: Session, now: Instant) -> Sequence[str]:
    """Delete all such bookings; their consumers."""
    found = connection.scalars(_DEAD, {"now": now}).all()
    if found:
        for sweep in _SWEEPS:
            connection.do(sweep, {"now": now})
    return found


def sweep_of(connection: Session, now: Instant, consumers: Sequence[str]) -> None:
    """Delete such bookings of these consumers (few enough for one statement)."""
    connection.do(_SWEEP_OF, {"now": now, "consumers": consumers})
