"""Hosts and addresses that are offered for reservation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, delete, insert, or_, select, update

from moorage.domain.errors import DuplicateName, NotFound
from moorage.domain.reservables import ReservableKind
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import DropReservable, PutReservable
    from moorage.store.commit.batch import Batch

_r = tables.reservables.c
_MINE: Final = (_r.kind == bindparam("of_kind")) & (_r.id == bindparam("of"))
_TAKEN: Final = select(_r.id).where(
    _r.kind == bindparam("of_kind"), or_(_r.id == bindparam("of"), _r.name == bindparam("named"))
)
_KNOWN: Final = select(_r.id).where(_MINE)
_INSERT: Final = insert(tables.reservables)
_UPDATE: Final = update(tables.reservables).where(_MINE).values(body=bindparam("body"))
_HOST: Final = select(_r.body).where(
    _r.kind == ReservableKind.HOST.value, _r.name == bindparam("named")
)
_RENAME: Final = (
    update(tables.reservables)
    .where(_MINE)
    .values(name=bindparam("becomes"), body=bindparam("body"))
)
_DELETE: Final = delete(tables.reservables).where(_MINE)


def put_reservable(batch: Batch, change: PutReservable) -> None:
    """See `PutReservable`.

    Raises:
        DuplicateName: a new one whose id or name is taken.
        NotFound: there is none to change.
    """
    one = change.reservable
    mine = {"of_kind": one.kind.value, "of": one.id}
    body = stored_bodies.RESERVABLE.encode(one)
    if change.new:
        if batch.connection.scalars(_TAKEN, {**mine, "named": one.name}).first() is not None:
            raise DuplicateName(one.kind.value, one.name)
        values = {"kind": one.kind.value, "id": one.id, "name": one.name, "body": body}
        batch.connection.do(_INSERT, values)
        return
    _expect(batch, one.kind.value, one.id)
    batch.connection.do(_UPDATE, {**mine, "body": body})


def drop_reservable(batch: Batch, change: DropReservable) -> None:
    """See `DropReservable`.

    Raises:
        NotFound: there is none.
    """
    _expect(batch, change.kind.value, change.id)
    batch.connection.do(_DELETE, {"of_kind": change.kind.value, "of": change.id})


def rename_offered_host(batch: Batch, old: str, new: str) -> None:
    """Let a host that is offered stay so under its new name.

    Raises:
        DuplicateName: a host is offered under the new name.
    """
    body = batch.connection.scalars(_HOST, {"named": old}).one_or_none()
    if body is None:
        return
    if batch.connection.scalars(_HOST, {"named": new}).first() is not None:
        raise DuplicateName(ReservableKind.HOST.value, new)
    host = replace(stored_bodies.RESERVABLE.decode(body), name=new)
    mine = {"of_kind": host.kind.value, "of": host.id}
    body = stored_bodies.RESERVABLE.encode(host)
    batch.connection.do(_RENAME, {**mine, "becomes": new, "body": body})


def _expect(batch: Batch, kind: str, id_: str) -> None:
    if batch.connection.scalars(_KNOWN, {"of_kind": kind, "of": id_}).first() is None:
        raise NotFound(kind, id_)
