"""Which records may be deleted: those that ended long ago and that nothing in use refers to.

Each question is asked twice: to find some, and again by their ids inside the commit that deletes
them, which is alone then.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from sqlalchemy import Integer, and_, bindparam, exists, literal_column, or_, select

from moorage.domain.decisions import ClaimState
from moorage.domain.records import Deletable, RecordKind, RecordPlace
from moorage.domain.waitlist import EntryState
from moorage.store.database.statements import chunks
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Row, Select, Table

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.store.backend import Backend
    from moorage.store.database.session import Session

Found: TypeAlias = "Sequence[Row[Any]]"

_SOME: Final[Any] = bindparam("some", expanding=True)
_BEFORE: Final[Any] = bindparam("before")
_l, _d, _e, _w = tables.leases.c, tables.decisions.c, tables.ensembles.c, tables.waitlist.c
_f, _s, _b, _v = tables.effects.c, tables.series.c, tables.bookings.c, tables.capacity_windows.c
_i: Final = tables.violations.c
_p: Final = tables.plans.c
_newer: Final = tables.decisions.alias("newer").c

_SERIES: Final = select(_s.number, _s.id, _s.body, literal_column("0").label("ended_at")).where(
    ~exists().where(_l.series_id == _s.id, or_(_l.ended_at.is_(None), _l.ended_at >= _BEFORE))
)
_LEASES: Final = select(_l.number, _l.id, _l.ended_at, _l.ensemble_id).where(
    _l.ended_at < _BEFORE,
    # What was kept while a series was made is none of its leases.
    or_(_l.state == tables.LAPSED, ~exists().where(_s.id == _l.series_id)),
)
_ENTRIES: Final = select(_w.number, _w.id, _w.ended_at).where(
    _w.ended_at < _BEFORE, ~exists().where(_l.id == _w.id)
)
_DECISIONS: Final = select(_d.number, _d.id, _d.ended_at, _d.ensemble_id).where(
    _d.ended_at < _BEFORE,
    or_(
        ~exists().where(_e.id == _d.ensemble_id),
        exists().where(_newer.ensemble_id == _d.ensemble_id, _newer.number > _d.number),
    ),
    ~exists().where(_b.decision == _d.id),
)
_EFFECTS: Final = select(_f.number, _f.id, _f.ended_at).where(
    _f.ended_at < _BEFORE,
    # Of what is there still, what was done is read to know what is to be done.
    ~exists().where(_l.id == _f.subject),
    ~exists().where(tables.consumers.c.uuid == _f.subject),
)
_VIOLATIONS: Final = select(_i.number, _i.id, _i.ended_at).where(_i.ended_at < _BEFORE)
_PLANS: Final = select(_p.number, _p.id, _p.ended_at).where(_p.ended_at < _BEFORE)
_WINDOWS: Final = select(_v.number, _v.id, _v.body, literal_column("0").label("ended_at"))

_OF_SERIES: Final = select(_l.id, _l.series_id, _l.ensemble_id, _l.number, _l.state).where(
    _l.series_id.in_(_SOME)
)
_OF_ENSEMBLES: Final = select(_l.id, _l.ensemble_id, _l.number, _l.body).where(
    _l.ensemble_id.in_(_SOME)
)
_ENSEMBLES: Final = select(_e.body).where(_e.id.in_(_SOME))
_PROJECTS_WAITING: Final = select(_w.body).where(
    _w.project_id.in_(_SOME), _w.state == EntryState.WAITING.value
)
_BOOKED: Final = select(_b.consumer).where(_b.consumer.in_(_SOME)).distinct()
_CLAIMS: Final = select(tables.claims.c.body).where(tables.claims.c.decision_id.in_(_SOME))
_CURRENT: Final = select(_d.body).where(_d.ensemble_id.in_(_SOME), _d.ended_at.is_(None))
_RECENT: Final = (
    select(_d.ensemble_id)
    .where(_d.ensemble_id.in_(_SOME), or_(_d.ended_at.is_(None), _d.ended_at >= _BEFORE))
    .distinct()
)


class Deletes(Protocol):
    """Of rows of one kind, those that may go."""

    def __call__(self, connection: Session, rows: Found, before: Instant, /) -> list[str]:
        """Their ids."""


def deletable_series(connection: Session, rows: Found, before: Instant) -> list[str]:
    """Series of which every lease may be deleted; of one without leases its last change counts."""
    leases: dict[str, list[Row[Any]]] = {row.id: [] for row in rows}
    for some in chunks(leases):
        for row in connection.execute(_OF_SERIES, {"some": some}):
            leases[row.series_id].append(row)
    every = [one for found in leases.values() for one in found]
    free = set(deletable_leases(connection, every, before))
    return [
        row.id
        for row in rows
        if all(one.id in free for one in leases[row.id])
        and (leases[row.id] or stored_bodies.SERIES.decode(row.body).updated_at < before)
    ]


def leases_of_series(connection: Session, series_ids: Collection[str]) -> list[str]:
    """The ids of all leases of these series."""
    return [
        row.id
        for some in chunks(series_ids)
        for row in connection.execute(_OF_SERIES, {"some": some})
    ]


def deletable_leases(connection: Session, rows: Found, before: Instant) -> list[str]:
    """Leases without servers, of ensembles that nobody waits to lease; or that had another since.

    What an ensemble is used for now belongs to its newest lease.
    """
    del before
    ensembles = {row.ensemble_id for row in rows}
    newest: dict[str, int] = {}
    for some in chunks(ensembles):
        for row in connection.execute(_OF_ENSEMBLES, {"some": some}):
            newest[row.ensemble_id] = max(row.number, newest.get(row.ensemble_id, 0))
    used = in_use(connection, stored(connection, ensembles))
    return [
        row.id
        for row in rows
        if row.ensemble_id not in used or row.number < newest[row.ensemble_id]
    ]


def deletable_decisions(connection: Session, rows: Found, before: Instant) -> list[str]:
    """Decisions that nothing in use refers to.

    No lease shows them, no claim is of them whose server is there or being built, and no decision
    that is not over has their ticket.
    """
    del before
    shown, kept = set(), set()
    for some in chunks({row.ensemble_id for row in rows}):
        for body in connection.scalars(_CURRENT, {"some": some}):
            kept.add(stored_bodies.DECISION.decode(body).ticket)
        for lease in connection.execute(_OF_ENSEMBLES, {"some": some}):
            shown.add(stored_bodies.LEASE.decode(lease.body).decision_id)
    servers: dict[str, str] = {}
    for some in chunks(row.id for row in rows):
        for claim in map(stored_bodies.CLAIM.decode, connection.scalars(_CLAIMS, {"some": some})):
            if claim.state is ClaimState.BUILDING:
                kept.add(claim.decision_id)
            elif claim.state is ClaimState.ACTIVE and claim.server_id is not None:
                servers[claim.server_id] = claim.decision_id
    kept |= {servers[one] for one in _booked(connection, servers)}
    return [row.id for row in rows if row.id not in shown and row.id not in kept]


def all_of_them(connection: Session, rows: Found, before: Instant) -> list[str]:
    """Every one that was found."""
    del connection, before
    return [row.id for row in rows]


def windows_over(connection: Session, rows: Found, before: Instant) -> list[str]:
    """Capacity windows that ended before."""
    del connection
    return [
        row.id for row in rows if stored_bodies.CAPACITY_WINDOW.decode(row.body).period.end < before
    ]


def stored(connection: Session, ensemble_ids: Iterable[str]) -> list[Ensemble]:
    """Those of ensembles that are there."""
    return [
        stored_bodies.ENSEMBLE.decode(body)
        for some in chunks(ensemble_ids)
        for body in connection.scalars(_ENSEMBLES, {"some": some})
    ]


def in_use(connection: Session, ensembles: Collection[Ensemble]) -> set[str]:
    """Ids of ensembles some of whose members have places, or that wait to be leased."""
    owners = {
        consumer: one.id
        for one in ensembles
        for member in one.members
        for consumer in (member.uuid, member.server_id)
        if consumer is not None
    }
    used = {owners[one] for one in _booked(connection, owners)}
    for some in chunks(one.project_id for one in ensembles):
        for body in connection.scalars(_PROJECTS_WAITING, {"some": some}):
            used.add(stored_bodies.ENTRY.decode(body).ensemble_id)
    return used


def unused(connection: Session, ensemble_ids: Collection[str], before: Instant) -> list[str]:
    """Ensembles that nothing refers to any more and nobody has changed or placed since."""
    found = stored(connection, ensemble_ids)
    kept = in_use(connection, found)
    for some in chunks(one.id for one in found):
        kept.update(row.ensemble_id for row in connection.execute(_OF_ENSEMBLES, {"some": some}))
        kept.update(connection.scalars(_RECENT, {"some": some, "before": before}))
    return [one.id for one in found if one.id not in kept and one.updated_at < before]


def _booked(connection: Session, consumers: Iterable[str]) -> set[str]:
    """Those of consumers that have bookings."""
    return {
        one for some in chunks(consumers) for one in connection.scalars(_BOOKED, {"some": some})
    }


class _Sought:
    """How records of one kind are found."""

    def __init__(self, query: Select[Any], table: Table, deletable: Deletes) -> None:
        """Found by the query, in the order in which they ended, or in which they were made."""
        columns = table.c
        order: tuple[ColumnElement[Any], ...] = (columns.number,)
        beyond: ColumnElement[bool] = columns.number > bindparam("number")
        if "ended_at" in columns:
            order = (columns.ended_at, columns.number)
            at: Any = bindparam("ended_at")
            beyond = or_(columns.ended_at > at, and_(columns.ended_at == at, beyond))
            query = query.where(columns.ended_at.is_not(None))  # in the words of the index
        self._next = query.where(beyond).order_by(*order).limit(bindparam("most", type_=Integer))
        self._named = query.where(columns.id.in_(_SOME))
        self._deletable = deletable

    def some(
        self, connection: Session, before: Instant, after: RecordPlace, most: int
    ) -> Deletable:
        """Look at the next ones."""
        given = {"before": before, "number": after.number, "ended_at": after.ended_at, "most": most}
        rows = connection.execute(self._next, given)
        place = RecordPlace(rows[-1].ended_at, rows[-1].number) if len(rows) == most else None
        return Deletable(tuple(self._deletable(connection, rows, before)), place)

    def still(self, connection: Session, before: Instant, ids: Collection[str]) -> list[str]:
        """Those of them that may go still."""
        return [
            one
            for some in chunks(ids)
            for one in self._deletable(
                connection,
                connection.execute(self._named, {"before": before, "some": some}),
                before,
            )
        ]


SOUGHT: Final[Mapping[RecordKind, _Sought]] = MappingProxyType(
    {
        RecordKind.SERIES: _Sought(_SERIES, tables.series, deletable_series),
        RecordKind.LEASE: _Sought(_LEASES, tables.leases, deletable_leases),
        RecordKind.ENTRY: _Sought(_ENTRIES, tables.waitlist, all_of_them),
        RecordKind.DECISION: _Sought(_DECISIONS, tables.decisions, deletable_decisions),
        RecordKind.EFFECT: _Sought(_EFFECTS, tables.effects, all_of_them),
        RecordKind.VIOLATION: _Sought(_VIOLATIONS, tables.violations, all_of_them),
        RecordKind.WINDOW: _Sought(_WINDOWS, tables.capacity_windows, windows_over),
        RecordKind.PLAN: _Sought(_PLANS, tables.plans, all_of_them),
    }
)


class RecordStore:
    """See `usecases.ports.Records`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def deletable(
        self, kind: RecordKind, before: Instant, after: RecordPlace, most: int
    ) -> Deletable:
        sought = SOUGHT[kind]
        return self._backend.read(lambda connection: sought.some(connection, before, after, most))
