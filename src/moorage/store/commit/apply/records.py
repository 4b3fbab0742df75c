"""Records that ended long ago are deleted, with what is theirs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, func, insert, select

from moorage.domain.changes import DropCapacityWindow
from moorage.domain.records import RecordKind
from moorage.store.commit.apply.capacity_windows import drop_window
from moorage.store.commit.apply.ensembles import drop_ensemble
from moorage.store.database.statements import chunks
from moorage.store.read.records import SOUGHT, leases_of_series, unused
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Column, Delete

    from moorage.domain.changes import DeleteRecords
    from moorage.domain.period import Instant
    from moorage.store.commit.batch import Batch

_SOME: Final[Any] = bindparam("some", expanding=True)
_l, _s = tables.leases.c, tables.lease_serials.c
_WHOSE: Final = select(_l.ensemble_id).where(_l.id.in_(_SOME)).distinct()
_SERIALS: Final = (
    select(_l.project_id, func.max(_l.serial).label("last"))
    .where(_l.id.in_(_SOME))
    .group_by(_l.project_id)
)
_KNOWN_SERIALS: Final = select(_s.project_id, _s.last).where(_s.project_id.in_(_SOME))
_NO_SERIALS: Final = delete(tables.lease_serials).where(_s.project_id.in_(_SOME))
_NEW_SERIALS: Final = insert(tables.lease_serials)
_DECISIONS_OF: Final = select(tables.decisions.c.id).where(
    tables.decisions.c.ensemble_id.in_(_SOME)
)


def _of(column: Column[Any]) -> Delete:
    return delete(column.table).where(column.in_(_SOME))


_OF_LEASES: Final = (
    _of(tables.reservations.c.lease_id),
    _of(tables.lease_uses.c.lease_id),
    _of(_l.id),
)
_OF_DECISIONS: Final = (_of(tables.claims.c.decision_id), _of(tables.decisions.c.id))
_OF_ENTRIES: Final = (_of(tables.waitlist.c.id),)
_OF_EFFECTS: Final = (_of(tables.effects.c.id),)
_OF_VIOLATIONS: Final = (_of(tables.violations.c.id),)
_OF_PLANS: Final = (_of(tables.plans.c.id),)
_OF_THE_SERIES: Final = (_of(tables.series.c.id),)


def delete_records(batch: Batch, change: DeleteRecords) -> None:
    """See `DeleteRecords`."""
    ids = SOUGHT[change.kind].still(batch.connection, change.before, change.ids)
    _DELETE[change.kind](batch, ids, change.before)


def _leases(batch: Batch, ids: Sequence[str], before: Instant) -> None:
    """Leases; the highest number of each project is noted, so that it is not given again."""
    connection = batch.connection
    ensembles: set[str] = set()
    last: dict[str, int] = {}
    for some in chunks(ids):
        ensembles.update(connection.scalars(_WHOSE, {"some": some}))
        for row in connection.execute(_SERIALS, {"some": some}):
            last[row.project_id] = max(row.last, last.get(row.project_id, 0))
    for some in chunks(last):
        for row in connection.execute(_KNOWN_SERIALS, {"some": some}):
            last[row.project_id] = max(row.last, last[row.project_id])
        connection.do(_NO_SERIALS, {"some": some})
        connection.do(_NEW_SERIALS, [{"project_id": one, "last": last[one]} for one in some])
    _rows(batch, ids, _OF_LEASES)
    gone = unused(connection, ensembles, before)
    for one in gone:
        drop_ensemble(batch, one)
    decisions = [
        one for some in chunks(gone) for one in connection.scalars(_DECISIONS_OF, {"some": some})
    ]
    _rows(batch, decisions, _OF_DECISIONS)


def _series(batch: Batch, ids: Sequence[str], before: Instant) -> None:
    _leases(batch, leases_of_series(batch.connection, ids), before)
    _rows(batch, ids, _OF_THE_SERIES)


def _decisions(batch: Batch, ids: Sequence[str], _: Instant) -> None:
    _rows(batch, ids, _OF_DECISIONS)


def _entries(batch: Batch, ids: Sequence[str], _: Instant) -> None:
    _rows(batch, ids, _OF_ENTRIES)


def _effects(batch: Batch, ids: Sequence[str], _: Instant) -> None:
    _rows(batch, ids, _OF_EFFECTS)


def _violations(batch: Batch, ids: Sequence[str], _: Instant) -> None:
    _rows(batch, ids, _OF_VIOLATIONS)


def _windows(batch: Batch, ids: Sequence[str], _: Instant) -> None:
    for one in ids:
        drop_window(batch, DropCapacityWindow(one))


def _plans(batch: Batch, ids: Sequence[str], _: Instant) -> None:
    _rows(batch, ids, _OF_PLANS)


def _rows(batch: Batch, ids: Sequence[str], statements: Sequence[Delete]) -> None:
    for some in chunks(ids):
        for statement in statements:
            batch.connection.do(statement, {"some": some})


_DELETE: Final[Mapping[RecordKind, Callable[[Batch, Sequence[str], Instant], None]]] = (
    MappingProxyType(
        {
            RecordKind.SERIES: _series,
            RecordKind.LEASE: _leases,
            RecordKind.ENTRY: _entries,
            RecordKind.DECISION: _decisions,
            RecordKind.EFFECT: _effects,
            RecordKind.VIOLATION: _violations,
            RecordKind.WINDOW: _windows,
            RecordKind.PLAN: _plans,
        }
    )
)
