"""Entries of the waitlist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func, select

from moorage.domain.errors import LimitExceeded
from moorage.domain.waitlist import EntryState
from moorage.store import bodies, tables
from moorage.store.apply.kinds import OF, Kind, write

if TYPE_CHECKING:
    from moorage.domain.changes import PutEntry
    from moorage.store.batch import Batch

_w = tables.waitlist.c
_ENTRY: Final = Kind.of("waitlist entry", _w.generation, _w.body)
_WAITING: Final = select(func.count()).where(
    _w.project_id == OF, _w.state == EntryState.WAITING.value
)


def put_entry(batch: Batch, change: PutEntry) -> None:
    """See `PutEntry`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate, LimitExceeded.
    """
    one = change.stored
    if change.limit is not None:
        used = int(batch.connection.scalars(_WAITING, {"of": one.project_id}).one())
        if used >= change.limit:
            raise LimitExceeded("waitlist entries", limit=change.limit, used=used, requested=1)
    whole = one.whole
    values: dict[str, Any] = {
        "project_id": one.project_id,
        "state": one.state.value,
        "priority": one.terms.priority,
        "entered_at": one.entered_at,
        "start_at": whole.start,
        "end_at": whole.end,
        "generation": one.generation,
        "body": bodies.ENTRY.encode(one),
    }
    write(batch, _ENTRY, one.id, values, change.generation)
