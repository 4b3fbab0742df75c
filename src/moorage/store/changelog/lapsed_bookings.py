"""Deletes bookings that have lapsed: they count nowhere, and any commit of holds deletes them.

A sweep changes no sum at its instant, so it moves no provider's revision; it is told in the log all
the same. Who follows the ledger and still had these bookings would count them as live again where
the clock is set back, and the ledger would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Integer, bindparam, delete, or_, select, union

from moorage.domain.bookings import BookingState
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.period import Instant
    from moorage.store.database.session import Session

_b = tables.bookings.c
# As in the conditions of the partial indexes, and each with its own.
_HELD = _b.state != BookingState.ALLOCATED.value
_LAPSED = _HELD & (_b.lapses_at <= bindparam("now"))
_ENDED = _HELD & (_b.end_at <= bindparam("now"))
_OWNERS = union(select(_b.consumer).where(_LAPSED), select(_b.consumer).where(_ENDED))
_SOME_OWNERS = _OWNERS.limit(bindparam("most", type_=Integer))
_WHERE = (_b.consumer, _b.provider)
_DEAD = union(select(*_WHERE).where(_LAPSED), select(*_WHERE).where(_ENDED))
_SWEEPS = (delete(tables.bookings).where(_LAPSED), delete(tables.bookings).where(_ENDED))
_DEAD_OF = or_(_LAPSED, _ENDED) & _b.consumer.in_(bindparam("consumers", expanding=True))
_OF = select(*_WHERE).where(_DEAD_OF).distinct()
_SWEEP_OF = delete(tables.bookings).where(_DEAD_OF)


@dataclass(frozen=True, slots=True)
class Swept:
    """Where bookings were deleted that no longer lived."""

    consumers: frozenset[str] = frozenset()
    providers: frozenset[str] = frozenset()


def lapsed_consumers(connection: Session, now: Instant, *, most: int) -> Sequence[str]:
    """Some consumers with bookings that no longer live."""
    return connection.scalars(_SOME_OWNERS, {"now": now, "most": most}).all()


def sweep_all(connection: Session, now: Instant) -> Swept:
    """Delete all such bookings."""
    found = connection.execute(_DEAD, {"now": now}).all()
    if found:
        for sweep in _SWEEPS:
            connection.do(sweep, {"now": now})
    return _swept(found)


def sweep_of(connection: Session, now: Instant, consumers: Sequence[str]) -> Swept:
    """Delete such bookings of these consumers (few enough for one statement)."""
    parameters = {"now": now, "consumers": consumers}
    found = connection.execute(_OF, parameters).all()
    connection.do(_SWEEP_OF, parameters)
    return _swept(found)


def _swept(found: Iterable[tuple[str, str]]) -> Swept:
    pairs = list(found)
    return Swept(
        frozenset(consumer for consumer, _ in pairs), frozenset(provider for _, provider in pairs)
    )
