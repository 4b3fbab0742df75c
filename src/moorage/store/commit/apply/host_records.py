"""What is stored of hosts' states: who has closed one, and which Nova says do not serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, insert, select, update

from moorage.domain.errors import ConcurrentUpdate, NotFound
from moorage.domain.host_states import NOTHING_CLOSES
from moorage.store.commit.apply.kinds import OF
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import CloseHost, PutHostService, TellHost
    from moorage.store.commit.batch import Batch

_r, _p, _t = tables.host_records.c, tables.providers.c, tables.told_hosts.c
_TREE: Final = select(_p.uuid).where(_p.root == OF)
_RECORD: Final = select(_r.closing, _r.service).where(_r.provider == OF)
_INSERT: Final = insert(tables.host_records)
_UPDATE: Final = (
    update(tables.host_records)
    .where(_r.provider == OF)
    .values(closing=bindparam("closing"), service=bindparam("service"))
)
_DELETE: Final = delete(tables.host_records).where(_r.provider == OF)

_TOLD: Final = select(_t.told).where(_t.provider == OF)
_NO_MORE: Final = delete(tables.told_hosts).where(_t.provider == OF)
_TELL: Final = insert(tables.told_hosts)


def close_host(batch: Batch, change: CloseHost) -> None:
    """See `CloseHost`.

    Raises:
        NotFound: it is no root provider.
    """
    closing = change.closing
    body = None if closing is None else stored_bodies.OPERATOR_CLOSING.encode(closing)
    _write(batch, change.provider, closing=body)


def put_host_service(batch: Batch, change: PutHostService) -> None:
    """See `PutHostService`.

    Raises:
        NotFound: it is no root provider.
    """
    service = change.service
    body = None if service is None else stored_bodies.SERVICE_REPORT.encode(service)
    _write(batch, change.provider, service=body)


def _write(batch: Batch, host: str, **part: str | None) -> None:
    """Write one part of a host's record; one without any is deleted."""
    tree = batch.connection.scalars(_TREE, {"of": host}).all()
    if host not in tree:
        raise NotFound("host", host)
    for uuid in tree:
        batch.touch(uuid)
    stored = batch.connection.execute(_RECORD, {"of": host}).first()
    known: dict[str, Any] = {"closing": None, "service": None}
    if stored is not None:
        known = {"closing": stored.closing, "service": stored.service}
    known |= part
    if stored is None:
        batch.connection.do(_INSERT, {"provider": host, **known})
    elif any(known.values()):
        batch.connection.do(_UPDATE, {"of": host, **known})
    else:
        batch.connection.do(_DELETE, {"of": host})


def tell_host(batch: Batch, change: TellHost) -> None:
    """See `TellHost`.

    Raises:
        ConcurrentUpdate, NotFound.
    """
    connection, of = batch.connection, {"of": change.provider}
    if change.provider not in connection.scalars(_TREE, of).all():
        raise NotFound("host", change.provider)
    told = connection.scalars(_TOLD, of).first()
    if (told or str(NOTHING_CLOSES)) != str(change.was):
        raise ConcurrentUpdate(f"host {change.name} was told as {told}", subject=change.provider)
    connection.do(_NO_MORE, of)
    if change.now != NOTHING_CLOSES:
        connection.do(_TELL, {"provider": change.provider, "told": str(change.now)})
