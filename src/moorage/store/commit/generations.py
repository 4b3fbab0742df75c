"""Wire generations and revisions of the providers that a commit touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select, update

from moorage.domain.errors import UnknownName
from moorage.store.database.statements import chunks
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.period import Instant
    from moorage.store.commit.batch import Batch
    from moorage.store.database.session import Question, Rows, Session

_p = tables.providers.c
_MOVED = _p.uuid.in_(bindparam("providers", expanding=True))
MOVE = (
    update(tables.providers)
    .where(_MOVED)
    .values(
        generation=_p.generation + bindparam("bump"),
        revision=_p.revision + 1,
        updated_at=bindparam("at"),
    )
)
_TOUCH = update(tables.providers).where(_MOVED).values(revision=_p.revision + 1)
_RAISE = (
    update(tables.providers)
    .where(_MOVED)
    .values(generation=_p.generation + bindparam("bump"), updated_at=bindparam("at"))
)
_MOVE_AND_TELL = MOVE.returning(_p.uuid, _p.generation)
_TOUCH_AND_TELL = _TOUCH.returning(_p.uuid, _p.generation)
_TELL = select(_p.uuid, _p.generation).where(_MOVED)


def move(batch: Batch) -> list[Question]:
    """Move wire generations and revisions of every provider touched.

    Returns:
        What is still to be asked: the new generations of those whose old ones nobody knows.
    """
    alike: dict[tuple[int, bool], list[str]] = {}
    born: dict[int, list[str]] = {}
    for uuid in (one for one in batch.touched if one not in batch.gone):
        bump, known = batch.bump(uuid), uuid in batch.generations
        if not (known and uuid in batch.created):
            alike.setdefault((bump, known), []).append(uuid)
        elif bump:  # its first revision is counted already
            born.setdefault(bump, []).append(uuid)
    asked: list[Question] = []
    for (bump, known), uuids in alike.items():
        for some in chunks(uuids):
            asked += _move(batch.connection, some, bump, batch.now, known=known)
    for bump, uuids in born.items():
        for some in chunks(uuids):
            batch.connection.do(_RAISE, {"providers": some, "bump": bump, "at": batch.now})
    return asked


def _move(
    connection: Session, providers: list[str], bump: int, now: Instant, *, known: bool
) -> Iterator[Question]:
    parameters = {"providers": providers, **({"bump": bump, "at": now} if bump else {})}
    if not known and connection.dialect.update_returning:
        yield _MOVE_AND_TELL if bump else _TOUCH_AND_TELL, parameters
        return
    connection.do(MOVE if bump else _TOUCH, parameters)
    if not known:
        yield _TELL, {"providers": providers}


def generations_of(batch: Batch, moved: Sequence[Rows]) -> dict[str, int]:
    """The new wire generations by provider.

    Raises:
        UnknownName: one of them does not exist.
    """
    found = {row.uuid: row.generation for rows in moved for row in rows}
    unknown: list[str] = []
    for uuid in batch.touched:
        if uuid in found or uuid in batch.gone:
            continue
        if uuid in batch.generations:
            found[uuid] = batch.generations[uuid] + batch.bump(uuid)
        else:
            unknown.append(uuid)
    if unknown:
        first = min(unknown)
        raise UnknownName("resource provider", first, path=f"allocations.{first}")
    return found
