"""Writes the mix of requests that an operator states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, insert

from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import PutRequestMix
    from moorage.store.commit.batch import Batch

_NONE: Final = delete(tables.request_mix)
_NEW: Final = insert(tables.request_mix)


def put_request_mix(batch: Batch, change: PutRequestMix) -> None:
    """See `PutRequestMix`."""
    batch.connection.do(_NONE)
    if change.mix is not None:
        batch.connection.do(_NEW, {"id": 1, "body": stored_bodies.STATED_MIX.encode(change.mix)})
    # Snapshots read it together with the topology, so that no decision asks for it.
    batch.topology_moved = True
