"""The base of the queries: values by id, pages of listings, answers to single questions."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import and_, bindparam, or_, select

from moorage.domain.errors import NotFound
from moorage.usecases.paging import WHOLE_LEDGER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ClauseElement, Column, Select, Table

    from moorage.domain.period import Instant
    from moorage.store.backend import Backend
    from moorage.store.database.session import Rows, Session
    from moorage.store.values.stored_bodies import StoredBody
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Clock

    T = TypeVar("T")

_BODIES: Final = 512
"""Decoded values kept by their text: a worker that plans leases anew reads the same ones often."""
_LONG: Final = 32_768
"""Characters of a text that is not kept."""


class Reader:
    """Each query is a transaction of its own and may run in any thread."""

    def __init__(self, backend: Backend, clock: Clock | None) -> None:
        self._backend = backend
        self._clock = clock

    def now(self) -> Instant:
        return self._backend.now() if self._clock is None else self._clock.now()

    def _ask(self, statement: ClauseElement, **given: object) -> Rows:
        """What one statement finds."""
        return self._backend.ask((statement, given))[0]

    def _one(self, table: Table, kind: str, shape: StoredBody[T], id_: str) -> T:
        """The value of an id.

        Raises:
            NotFound: there is none.
        """
        body = self._ask(_body_of(table), of=id_).scalar_one_or_none()
        if body is None:
            raise NotFound(kind, id_)
        return shape.decode(body) if len(body) > _LONG else _decoded(shape, body)

    def _every(self, shape: StoredBody[T], wanted: Select[Any], **given: object) -> Sequence[T]:
        """The values of all these bodies."""
        return [shape.decode(body) for body in self._ask(wanted, **given).scalars()]

    def _listed(
        self,
        table: Table,
        shape: StoredBody[T],
        wanted: Select[Any],
        page: Page = WHOLE_LEDGER,
        *,
        newest_first: bool = False,
    ) -> Sequence[T]:
        """Values by creation (or newest first), one page of them.

        Raises:
            NotFound: the page's marker names nothing.
        """
        found = self._backend.read(
            lambda connection: page_of(connection, table, wanted, page, newest_first=newest_first)
        )
        return [shape.decode(row.body) for row in found]


@lru_cache(maxsize=_BODIES)
def _decoded(shape: StoredBody[T], body: str) -> T:
    """Values are frozen: who reads the same text again gets the same value."""
    return shape.decode(body)


@cache
def _body_of(table: Table) -> Select[Any]:
    """Worded once per table: a statement made anew is worded anew."""
    return select(table.c.body).where(table.c.id == bindparam("of"))


def page_of(
    connection: Session, table: Table, wanted: Select[Any], page: Page, *, newest_first: bool
) -> Rows:
    """One page of these rows, in the page's order, else by creation or newest first.

    Raises:
        NotFound: the page's marker names nothing.
    """
    number, order = table.c.number, page.order
    column = number if order is None else table.c[_COLUMNS.get(order.key, order.key)]
    descending = newest_first if order is None else order.descending
    if page.marker is not None:
        # Of a thing with versions, the newest stands for it.
        marked = select(column.label("value"), number.label("place")).where(
            table.c.id == page.marker
        )
        last = connection.execute(marked.order_by(number.desc()).limit(1)).first()
        if last is None:
            raise NotFound("marker", page.marker)
        equal = and_(column == last.value, number > last.place)
        beyond = column < last.value if descending else column > last.value
        wanted = wanted.where(beyond if column is number else or_(beyond, equal))
    keys = [column.desc() if descending else column]
    return connection.execute(wanted.order_by(*dict.fromkeys([*keys, number])).limit(page.limit))


_COLUMNS: Final = {
    "created_at": "number",
    "start": "start_at",
    "end": "end_at",
    "computed_at": "at",
}
"""Fields by which a listing is ordered, where a column has another name."""


def matching(table: Table, **equal: object) -> Select[Any]:
    """The bodies of rows whose columns equal these values; None leaves a column free."""
    query = select(table.c.body)
    for column, value in equal.items():
        if value is not None:
            query = query.where(table.c[column] == value)
    return query


def due_rows(time: Column[Any]) -> Select[Any]:
    """Bodies of rows whose `time` has come, the longest overdue first."""
    table = time.table
    query = select(table.c.body).where(time <= bindparam("now"))
    return query.order_by(time, table.c.number).limit(bindparam("limit"))
