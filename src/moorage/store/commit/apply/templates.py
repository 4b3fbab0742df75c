"""Templates, version by version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, delete, false, insert, select, true, update

from moorage.domain.errors import ConcurrentUpdate, DuplicateName, NotFound
from moorage.store.commit.apply.kinds import OF
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import DeleteTemplate, PutTemplate
    from moorage.store.commit.batch import Batch

_t = tables.templates.c
_NEWEST: Final = select(_t.version).where(_t.id == OF, _t.newest == true())
_NAMED: Final = select(_t.id).where(_t.project_id == bindparam("of"), _t.name == bindparam("named"))
_AGED: Final = update(tables.templates).where(_t.id == OF).values(newest=false())
_INSERT: Final = insert(tables.templates)
_DELETE: Final = delete(tables.templates).where(_t.id == OF)


def put_template(batch: Batch, change: PutTemplate) -> None:
    """See `PutTemplate`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate.
    """
    one = change.template
    newest = batch.connection.scalars(_NEWEST, {"of": one.id}).one_or_none()
    if one.version == 1:
        named = {"of": one.project_id, "named": one.name}
        if newest is not None:
            raise DuplicateName("template", one.id)
        if batch.connection.scalars(_NAMED, named).first() is not None:
            raise DuplicateName("template", one.name)
    elif newest is None:
        raise NotFound("template", one.id)
    elif newest != one.version - 1:
        raise ConcurrentUpdate(
            f"template {one.id}: version {newest} is the newest, not {one.version - 1}",
            subject=one.id,
        )
    batch.connection.do(_AGED, {"of": one.id})
    values = {
        "id": one.id,
        "version": one.version,
        "project_id": one.project_id,
        "name": one.name,
        "shared": one.shared,
        "newest": True,
        "body": stored_bodies.TEMPLATE.encode(one),
    }
    batch.connection.do(_INSERT, values)


def delete_template(batch: Batch, change: DeleteTemplate) -> None:
    """See `DeleteTemplate`.

    Raises:
        NotFound: there is none.
    """
    if batch.connection.scalars(_NEWEST, {"of": change.id}).first() is None:
        raise NotFound("template", change.id)
    batch.connection.do(_DELETE, {"of": change.id})
