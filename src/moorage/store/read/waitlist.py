"""Reads the waitlist, in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, func, select

from moorage.domain.waitlist import EntryState
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.period import Period
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.store.database.session import Session

_w = tables.waitlist.c
_WAITING: Final = _w.state == EntryState.WAITING.value
_LINE: Final = (
    select(_w.body)
    .where(_WAITING, _w.start_at < bindparam("end"), _w.end_at > bindparam("start"))
    .order_by(_w.priority.desc(), _w.entered_at, _w.number)
    .limit(bindparam("most", type_=Integer))
)
_COUNTS: Final = select(_w.state, func.count().label("count")).group_by(_w.state)


def waiting_entries(connection: Session, period: Period, limit: int) -> list[WaitlistEntry]:
    """Those that wait and might have places at some time of a period, the first ones."""
    given: dict[str, Any] = {"start": period.start, "end": period.end, "most": limit}
    return [stored_bodies.ENTRY.decode(body) for body in connection.scalars(_LINE, given)]


def counts(connection: Session) -> Mapping[EntryState, int]:
    """How many entries there are in each state."""
    return {EntryState(row.state): int(row.count) for row in connection.execute(_COUNTS)}
