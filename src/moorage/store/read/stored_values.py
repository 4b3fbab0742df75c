"""Reads stored values; every function works in the caller's transaction.

Bookings are read in `bookings`, what belongs to leases in `leases`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import bindparam, exists, literal_column, or_, select, true

from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import NotFound
from moorage.domain.explain import Refusal
from moorage.domain.explain import RefusedRequest as AskedFor
from moorage.domain.waitlist import EntryState
from moorage.store.database.statements import chunks
from moorage.store.schema import tables
from moorage.store.values import stored_bodies
from moorage.usecases.ports import ExclusiveEnsembles, NamedRecord, Page

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Column, Select, Table

    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.explain import Stage
    from moorage.domain.period import Instant
    from moorage.domain.templates import Template
    from moorage.store.database.session import Asked, Question, Session
    from moorage.store.values.codec import Shape

    T = TypeVar("T")
    from collections.abc import Sequence

    from moorage.store.backend import Backend
    from moorage.usecases.ports import Clock

_BODIES: Final = 512
"""Decoded values kept by their text: a worker that plans leases anew reads the same ones often."""
_LONG: Final = 32_768
"""Characters of a text that is not kept."""


def whose_time_has_come(time: Column[Any]) -> Select[Any]:
    """Bodies of rows whose `time` has come, the longest overdue first."""
    table = time.table
    query = select(table.c.body).where(time <= bindparam("now"))
    return query.order_by(time, table.c.number).limit(bindparam("limit"))


_classes = tables.resource_classes.c
# What workers ask again and again, in every process: worded once.
_DUE_DECISIONS = whose_time_has_come(tables.decisions.c.expires_at).where(
    tables.decisions.c.state == DecisionState.HELD.value
)
_DUE_CLAIMS = whose_time_has_come(tables.claims.c.lapses_at).where(
    tables.claims.c.state == ClaimState.BUILDING.value
)
_CLASSES = select(_classes.name, _classes.updated_at).order_by(
    _classes.place.is_(None), _classes.place, _classes.number
)
_EXCLUSIVE_REVISION = select(
    tables.ledger.c.exclusive_revision,
    exists()
    .where(tables.waitlist.c.state == literal_column(f"'{EntryState.WAITING.value}'"))
    .label("waited"),
)
_TRAITS = select(tables.traits).order_by(tables.traits.c.name)
_TRAITS_NAMED = _TRAITS.where(tables.traits.c.name.in_(bindparam("names", expanding=True)))


def resource_classes(connection: Session) -> list[NamedRecord]:
    """Standard ones first, in their order; then custom ones by creation."""
    return [NamedRecord(row.name, row.updated_at) for row in connection.execute(_CLASSES)]


def traits(asked: Asked, names: Collection[str] | None) -> list[NamedRecord]:
    """Traits by name: every one, or those of these names that exist."""
    questions: list[Question] = [(_TRAITS, {})]
    if names is not None:
        questions = [(_TRAITS_NAMED, {"names": some}) for some in chunks(names)]
    return [
        NamedRecord(row.name, row.updated_at) for found in asked.ask(*questions) for row in found
    ]


def exclusive_revision(asked: Asked) -> tuple[int, bool]:
    """The revision of all ensembles that keep others out, and whether anybody waits."""
    row = asked.ask((_EXCLUSIVE_REVISION, {}))[0].one()
    return int(row.exclusive_revision), bool(row.waited)


def exclusive_ensembles(connection: Session) -> ExclusiveEnsembles:
    """Every ensemble that keeps others out, and their revision, in one look."""
    ensembles, keeping = tables.ensembles.c, tables.exclusive_ensembles.c
    query = (
        select(tables.ledger.c.exclusive_revision, ensembles.body)
        .select_from(tables.ledger)
        .outerjoin(tables.exclusive_ensembles, true())
        .outerjoin(tables.ensembles, ensembles.id == keeping.ensemble_id)
        .order_by(ensembles.number)
    )
    found = connection.execute(query).all()
    return ExclusiveEnsembles(
        revision=found[0].exclusive_revision,
        ensembles=tuple(stored_bodies.ENSEMBLE.decode(row.body) for row in found if row.body),
    )


def refusal(request: str, *, project_id: str | None, digest: str | None) -> Select[Any]:
    """The newest explanation of a request that was refused."""
    table = tables.explanations
    query = select(table).where(table.c.request == request)
    if project_id is not None:
        query = query.where(table.c.project_id == project_id)
    if digest is not None:
        query = query.where(table.c.digest == digest)
    return query.order_by(table.c.number.desc()).limit(1)


def refusals(
    connection: Session,
    *,
    project_id: str | None,
    ensemble: str | None,
    stage: Stage | None,
    since: Instant | None,
    page: Page,
) -> list[Refusal]:
    """Explanations, newest first, one page of them.

    Raises:
        NotFound: the page's marker names nothing.
    """
    t = tables.explanations.c
    wanted = select(t.body, t.project_id, t.ensemble_id, t.name, t.user_id)
    if page.marker is not None:
        place = connection.scalars(select(t.number).where(t.id == page.marker)).one_or_none()
        if place is None:
            raise NotFound("marker", page.marker)
        wanted = wanted.where(t.number < place)
    if project_id is not None:
        wanted = wanted.where(t.project_id == project_id)
    if ensemble is not None:
        wanted = wanted.where(or_(t.ensemble_id == ensemble, t.name == ensemble))
    if stage is not None:
        wanted = wanted.where(t.stage == stage.value)
    if since is not None:
        wanted = wanted.where(t.at >= since)
    rows = connection.execute(wanted.order_by(t.number.desc()).limit(page.limit))
    return [
        Refusal(
            stored_bodies.EXPLANATION.decode(row.body),
            row.project_id,
            AskedFor(row.ensemble_id, row.name, row.user_id) if row.ensemble_id else None,
        )
        for row in rows
    ]


# --- values in bodies -----------------------------------------------------------------------


def one(asked: Asked, table: Table, kind: str, shape: Shape[T], id_: str) -> T:
    """The value of an id.

    Raises:
        NotFound: there is none.
    """
    body = asked.ask((_body_of(table), {"of": id_}))[0].scalar_one_or_none()
    if body is None:
        raise NotFound(kind, id_)
    return shape.decode(body) if len(body) > _LONG else _decoded(shape, body)


@lru_cache(maxsize=_BODIES)
def _decoded(shape: Shape[T], body: str) -> T:
    """Values are frozen: who reads the same text again gets the same value."""
    return shape.decode(body)


@cache
def _body_of(table: Table) -> Select[Any]:
    """Worded once per table: a statement made anew is worded anew."""
    return select(table.c.body).where(table.c.id == bindparam("of"))


def listed(
    connection: Session,
    table: Table,
    shape: Shape[T],
    wanted: Select[Any],
    *,
    newest_first: bool,
    page: Page,
) -> list[T]:
    """Values by creation (or newest first), one page of them.

    Raises:
        NotFound: the page's marker names nothing.
    """
    number = table.c.number
    if page.marker is not None:
        # Of a thing with versions, the newest stands for it.
        marked = select(number).where(table.c.id == page.marker).order_by(number.desc()).limit(1)
        place = connection.scalars(marked).one_or_none()
        if place is None:
            raise NotFound("marker", page.marker)
        wanted = wanted.where(number < place if newest_first else number > place)
    ordered = wanted.order_by(number.desc() if newest_first else number).limit(page.limit)
    return [shape.decode(row.body) for row in connection.execute(ordered)]


def matching(table: Table, **equal: object) -> Select[Any]:
    """The bodies of rows whose columns equal these values; None leaves a column free."""
    query = select(table.c.body)
    for column, value in equal.items():
        if value is not None:
            query = query.where(table.c[column] == value)
    return query


def due_items(connection: Session, now: Instant, limit: int) -> list[Decision | Claim]:
    """Held decisions, then building claims, whose time has come."""
    given = {"now": now, "limit": limit}
    found = connection.scalars(_DUE_DECISIONS, given)
    decisions = [stored_bodies.DECISION.decode(body) for body in found]
    given = {"now": now, "limit": limit - len(decisions)}
    claims = [stored_bodies.CLAIM.decode(body) for body in connection.scalars(_DUE_CLAIMS, given)]
    return [*decisions, *claims]


def template(connection: Session, template_id: str, version: int | None) -> Template:
    """A version of a template; None: the newest.

    Raises:
        NotFound: there is none.
    """
    t = tables.templates.c
    query = select(t.body).where(t.id == template_id)
    query = query.where(t.newest == true() if version is None else t.version == version)
    body = connection.scalars(query).one_or_none()
    if body is None:
        name = template_id if version is None else f"{template_id}@{version}"
        raise NotFound("template", name)
    return stored_bodies.TEMPLATE.decode(body)


def templates(project_id: str | None, name: str | None) -> Select[Any]:
    """Bodies of the newest versions that a project may use; None: those of every project."""
    t = tables.templates.c
    query = select(t.body).where(t.newest == true())
    if project_id is not None:
        query = query.where(or_(t.project_id == project_id, t.shared == true()))
    return query if name is None else query.where(t.name == name)


WHOLE_LEDGER: Final = Page()


class Reader:
    """Base of the queries. Each is a transaction of its own and may run in any thread."""

    def __init__(self, backend: Backend, clock: Clock | None) -> None:
        self._backend = backend
        self._clock = clock

    def now(self) -> Instant:
        return self._backend.now() if self._clock is None else self._clock.now()

    def _listed(
        self, table: Table, shape: Shape[T], wanted: Select[Any], page: Page
    ) -> Sequence[T]:
        """Values by creation, one page of them."""
        return self._backend.read(
            lambda connection: listed(
                connection, table, shape, wanted, newest_first=False, page=page
            )
        )
