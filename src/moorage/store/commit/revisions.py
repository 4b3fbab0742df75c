"""Revisions and wire generations: judged against what a changeset relied on, and moved at its end.

A revision that has not moved settles that nothing relied on has changed. One that has moved is
looked at only where the changeset says what it saw: bookings of others come and go all the time,
and whether there is still room is judged by the commit itself (see `check_inventories`). What it
saw otherwise must be there unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, select, update

from moorage.domain.errors import ProviderConflict, UnknownName
from moorage.store.database.statements import chunks
from moorage.store.read.provider_states import forms
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.domain.providers import ResourceProvider
    from moorage.store.commit.batch import Batch
    from moorage.store.database.session import Question, Rows, Session

_p, _b = tables.providers.c, tables.bookings.c
_SOME: Final[Any] = bindparam("some", expanding=True)
_REVISIONS = select(_p.uuid, _p.revision).where(_p.uuid.in_(_SOME))
_STANDING = select(_b.consumer, _b.provider).distinct().where(_b.consumer.in_(_SOME))


def check_reliance(batch: Batch, changeset: Changeset) -> None:
    """Let a changeset pass of which nothing that it relied on has changed.

    Raises:
        ProviderConflict: something has; `subject` names a provider, `topology` or
            `exclusive ensembles`.
    """
    if changeset.relies_on and (moved := _moved(batch, changeset)):
        _check_forms(batch, changeset, moved)
        _check_standing(batch, changeset)
    turn = batch.turn
    for subject, relied, stored in (
        ("topology", changeset.topology_revision, turn.topology_revision),
        ("exclusive ensembles", changeset.exclusive_revision, turn.exclusive_revision),
    ):
        if relied not in {None, stored}:
            raise ProviderConflict(
                f"{subject}: relied on revision {relied}, found {stored}", subject=subject
            )


def _moved(batch: Batch, changeset: Changeset) -> list[str]:
    """Providers whose revision is another one, though that may not matter."""
    found: dict[str, int] = {}
    for some in chunks(changeset.relies_on):
        found.update(batch.connection.execute(_REVISIONS, {"some": some}))
    moved = [uuid for uuid, seen in changeset.relies_on.items() if found.get(uuid) != seen]
    for uuid in moved:
        if uuid not in changeset.seen:
            seen, now = changeset.relies_on[uuid], found.get(uuid)
            raise ProviderConflict(
                f"provider {uuid}: relied on revision {seen}, found {now}", subject=uuid
            )
    return moved


def _check_forms(batch: Batch, changeset: Changeset, moved: list[str]) -> None:
    """Names, traits, aggregates, trees and offers of what has moved are as they were seen."""
    now = {one.uuid: one for one in forms(batch.connection, moved)}
    for uuid in moved:
        if uuid not in now or _form(now[uuid]) != _form(changeset.seen[uuid]):
            raise ProviderConflict(f"provider {uuid} is no longer as it was seen", subject=uuid)


def _form(provider: ResourceProvider) -> tuple[object, ...]:
    offer = provider.open_to, provider.owner, provider.by_operator
    return provider.name, provider.root_uuid, provider.traits, provider.aggregates, *offer


def _check_standing(batch: Batch, changeset: Changeset) -> None:
    """Check that the consumers of `standing` have bookings where they had."""
    now: dict[str, set[str]] = {}
    for some in chunks(changeset.standing):
        for consumer, provider in batch.connection.execute(_STANDING, {"some": some}):
            now.setdefault(consumer, set()).add(provider)
    for consumer, providers in changeset.standing.items():
        if now.get(consumer, set()) != providers:
            uuid = min(providers ^ now.get(consumer, set()))
            raise ProviderConflict(f"consumer {consumer} no longer stands there", subject=uuid)


# --- moving ------------------------------------------------------------------------------------

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
