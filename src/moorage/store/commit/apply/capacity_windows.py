"""Planned changes of capacity: which hosts are away, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, insert, select

from moorage.domain.errors import DuplicateName, NotFound
from moorage.store.commit.apply.kinds import OF
from moorage.store.database.statements import chunks
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.changes import DropCapacityWindow, PutCapacityWindow
    from moorage.store.commit.batch import Batch

_w, _a, _p = tables.capacity_windows.c, tables.away.c, tables.providers.c
_KNOWN: Final = select(_w.id, _w.body).where(_w.id == OF)
_HOSTS: Final = select(_a.provider).where(_a.window_id == OF)
_ROOTS: Final[Any] = bindparam("roots", expanding=True)
_TREES: Final = select(_p.uuid, _p.root).where(_p.root.in_(_ROOTS))
_INSERT: Final = insert(tables.capacity_windows)
_INSERT_AWAY: Final = insert(tables.away)
_DELETE: Final = delete(tables.capacity_windows).where(_w.id == OF)
_DELETE_AWAY: Final = delete(tables.away).where(_a.window_id == OF)


def put_window(batch: Batch, change: PutCapacityWindow) -> None:
    """See `PutCapacityWindow`.

    Raises:
        DuplicateName: the id is taken.
        NotFound: a host is no root provider.
    """
    one = change.window
    if batch.connection.scalars(_KNOWN, {"of": one.id}).first() is not None:
        raise DuplicateName("capacity window", one.id)
    missing = set(one.hosts) - _touch(batch, one.hosts)
    if missing:
        raise NotFound("host", min(missing))
    body = stored_bodies.CAPACITY_WINDOW.encode(one)
    batch.connection.do(_INSERT, {"id": one.id, "body": body})
    period = {"start_at": one.period.start, "end_at": one.period.end}
    batch.connection.do(
        _INSERT_AWAY, [{"provider": host, "window_id": one.id, **period} for host in one.hosts]
    )


def drop_window(batch: Batch, change: DropCapacityWindow) -> None:
    """See `DropCapacityWindow`.

    Raises:
        NotFound: there is none.
    """
    known = batch.connection.execute(_KNOWN, {"of": change.id}).first()
    if known is None:
        raise NotFound("capacity window", change.id)
    batch.replaced["capacity window", change.id] = known
    _touch(batch, batch.connection.scalars(_HOSTS, {"of": change.id}).all())
    batch.connection.do(_DELETE_AWAY, {"of": change.id})
    batch.connection.do(_DELETE, {"of": change.id})


def _touch(batch: Batch, hosts: Iterable[str]) -> set[str]:
    """Note that everything in the trees of hosts changes; which of them there are."""
    found: set[str] = set()
    for roots in chunks(hosts):
        for row in batch.connection.execute(_TREES, {"roots": roots}):
            batch.touch(row.uuid)
            found.add(row.root)
    return found
