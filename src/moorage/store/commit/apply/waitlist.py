"""Entries of the waitlist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.domain.quotas import QuotaName
from moorage.domain.waitlist import EntryState
from moorage.store.commit.apply.kinds import Kind, write
from moorage.store.commit.apply.quotas import refuse_beyond
from moorage.store.read.stored_counts import count
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import PutEntry
    from moorage.store.commit.batch import Batch

_w = tables.waitlist.c
_ENTRY: Final = Kind.of("waitlist entry", _w.generation, _w.body)


def put_entry(batch: Batch, change: PutEntry) -> None:
    """See `PutEntry`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate, QuotaExceeded.
    """
    one = change.stored
    if change.limit is not None:
        used = count(batch.connection, one.project_id, QuotaName.WAITLIST)
        refuse_beyond(batch, one.project_id, QuotaName.WAITLIST, change.limit, used + 1)
    whole = one.whole
    values: dict[str, Any] = {
        "project_id": one.project_id,
        "state": one.state.value,
        "priority": one.terms.priority,
        "entered_at": one.entered_at,
        "start_at": whole.start,
        "end_at": whole.end,
        "generation": one.generation,
        "ended_at": None if one.state is EntryState.WAITING else batch.now,
        "body": stored_bodies.ENTRY.encode(one),
    }
    write(batch, _ENTRY, one.id, values, change.generation)
