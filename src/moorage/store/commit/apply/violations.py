"""Violations, and which ensembles were judged as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, false, select, text, true, update

from moorage.domain.errors import ConcurrentUpdate, NotFound
from moorage.store.commit.apply.kinds import OF, Kind, write
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import MarkJudged, PutViolation
    from moorage.store.commit.batch import Batch

_v, _e = tables.violations.c, tables.ensembles.c
_VIOLATION: Final = Kind.of("violation", _v.generation)
_OPEN: Final = select(_v.id).where(
    _v.ensemble_id == OF, _v.subject == bindparam("subject_is"), _v.ended_at.is_(None)
)
_THERE: Final = select(_e.id).where(_e.id == OF)
_JUDGED: Final = (
    update(tables.ensembles)
    .where(_e.id == OF, _e.generation == bindparam("seen"))
    .values(unjudged=false())
)
_PROJECT: Final = select(_e.project_id).where(_e.id == OF)
_REFERRING: Final = (
    update(tables.ensembles)
    .where(_e.project_id == OF, text(tables.REFERS), _e.body.like(bindparam("named")))
    .values(unjudged=true())
)
_GONE: Final = delete(tables.violations).where(_v.ensemble_id == OF)


def put_violation(batch: Batch, change: PutViolation) -> None:
    """See `PutViolation`.

    Raises:
        ConcurrentUpdate, NotFound.
    """
    one, connection = change.stored, batch.connection
    if change.generation is None:
        if connection.scalars(_THERE, {"of": one.ensemble_id}).first() is None:
            raise NotFound("ensemble", one.ensemble_id)
        asked = {"of": one.ensemble_id, "subject_is": one.key}
        if connection.scalars(_OPEN, asked).first() is not None:
            raise ConcurrentUpdate(
                f"ensemble {one.ensemble_id} has an open violation of {one.key}",
                subject=one.ensemble_id,
            )
    values: dict[str, Any] = {
        "ensemble_id": one.ensemble_id,
        "project_id": one.project_id,
        "subject": one.key,
        "type": one.type,
        "required": one.required,
        "since": one.since,
        "ended_at": None if one.open else one.until,
        "generation": one.generation,
        "body": stored_bodies.VIOLATION.encode(one),
    }
    write(batch, _VIOLATION, one.id, values, change.generation)


def mark_judged(batch: Batch, change: MarkJudged) -> None:
    """See `MarkJudged`."""
    batch.connection.do(_JUDGED, [{"of": id_, "seen": seen} for id_, seen in change.judged])


def drop_violations(batch: Batch, ensemble_id: str) -> None:
    """Delete the violations of an ensemble that is deleted; those that refer to it are unjudged.

    Only ensembles of its project may. One whose description has its id otherwise is judged in vain.
    """
    connection = batch.connection
    connection.do(_GONE, {"of": ensemble_id})
    for project in connection.scalars(_PROJECT, {"of": ensemble_id}).all():
        connection.do(_REFERRING, {"of": project, "named": f"%{ensemble_id}%"})
