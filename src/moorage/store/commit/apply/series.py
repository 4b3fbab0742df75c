"""Series of leases: what their occurrences have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.store.commit.apply.kinds import Kind, write
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import PutSeries
    from moorage.store.commit.batch import Batch

_SERIES: Final = Kind.of("series", tables.series.c.generation)


def put_series(batch: Batch, change: PutSeries) -> None:
    """See `PutSeries`.

    Raises:
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or of another generation.
    """
    one = change.stored
    values = {
        "project_id": one.project_id,
        "name": one.name,
        "generation": one.generation,
        "body": stored_bodies.SERIES.encode(one),
    }
    write(batch, _SERIES, one.id, values, change.generation)
