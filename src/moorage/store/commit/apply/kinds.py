"""Rows of things with an id, of any kind: written new, or over a state that is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, insert, select, update

from moorage.domain.errors import ConcurrentUpdate, DuplicateName, NotFound
from moorage.store.schema.columns import ONCE

if TYPE_CHECKING:
    from sqlalchemy import Column, Delete, FromClause, Insert, Row, Select, Update

    from moorage.store.commit.batch import Batch

OF: Final[Any] = bindparam("of")
"""The id in a statement about one thing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is written of things with an id, of one kind."""

    name: str
    taken: Select[Any]
    seen: Select[Any]
    """What whoever changes one says to have seen; then what events need to know of it."""
    insert: Insert
    update: Update
    delete: Delete

    @classmethod
    def of(cls, name: str, state: Column[Any], *told: Column[Any]) -> Kind:
        """Of the table that the column is in; an update leaves its id, and what is `ONCE`."""
        table, mine = state.table, state.table.c.id == OF
        values: dict[str, Any] = {one: bindparam(one) for one in _written(table)}
        return cls(
            name,
            taken=select(table.c.number).where(mine),
            seen=select(state, *told).where(mine),
            insert=insert(table),
            update=update(table).where(mine).values(values),
            delete=delete(table).where(mine),
        )


def _written(table: FromClause) -> list[str]:
    names = (one.name for one in table.c if not one.info.get(ONCE))
    return [name for name in names if name not in {"number", "id"}]


def write(batch: Batch, kind: Kind, id_: str, values: dict[str, Any], expected: int | None) -> None:
    """Write a new thing (`expected` None), or over the state that is expected.

    Raises:
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: see `expect`.
    """
    if expected is None:
        insert_new(batch, kind, id_, values)
        return
    batch.replaced.setdefault((kind.name, id_), expect(batch, kind, id_, expected))
    batch.connection.do(kind.update, {"of": id_, **values})


def insert_new(batch: Batch, kind: Kind, id_: str, values: dict[str, Any]) -> None:
    """Write a new thing.

    Raises:
        DuplicateName: its id is taken.
    """
    if batch.is_taken(kind.name, id_, kind.taken):
        raise DuplicateName(kind.name, id_)
    batch.connection.do(kind.insert, {"id": id_, **values})


def expect(batch: Batch, kind: Kind, id_: str, expected: int | None) -> Row[Any]:
    """Let a thing pass that is stored in the state expected; None: in whatever state.

    Returns:
        Its row, as `Kind.seen` says.

    Raises:
        NotFound, ConcurrentUpdate: it is gone, or in another.
    """
    stored: Row[Any] | None = batch.connection.execute(kind.seen, {"of": id_}).one_or_none()
    if stored is None:
        raise NotFound(kind.name, id_)
    if expected is not None and stored[0] != expected:
        raise ConcurrentUpdate(
            f"{kind.name} {id_}: generation expected {expected}, found {stored[0]}", subject=id_
        )
    return stored
