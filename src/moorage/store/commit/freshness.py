"""Checks that what a changeset relied on has not changed since it was read.

A revision that has not moved settles it. One that has moved is looked at only where the changeset
says what it saw: bookings of others come and go all the time, and whether there is still room is
judged by the commit itself (see `judge`). What it saw otherwise must be there unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, select, true

from moorage.domain.errors import ProviderConflict
from moorage.store.database.statements import chunks
from moorage.store.read.provider_states import forms
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.changes import Changeset
    from moorage.domain.providers import ResourceProvider
    from moorage.store.commit.batch import Batch

_p, _b, _l = tables.providers.c, tables.bookings.c, tables.ledger.c
_SOME: Final[Any] = bindparam("some", expanding=True)
_WHOLE = select(_l.topology_revision, _l.exclusive_revision)
_REVISIONS = (
    select(_p.uuid, _p.revision, _l.topology_revision, _l.exclusive_revision)
    .select_from(tables.providers.join(tables.ledger, true()))
    .where(_p.uuid.in_(_SOME))
)
"""With what there is one of, so that it need not be asked for."""
_STANDING = select(_b.consumer, _b.provider).distinct().where(_b.consumer.in_(_SOME))


def check_reliance(batch: Batch, changeset: Changeset) -> None:
    """Let a changeset pass of which nothing that it relied on has changed.

    Raises:
        ProviderConflict: something has; `subject` names a provider, `topology` or
            `exclusive ensembles`.
    """
    whole = (
        ("topology", "topology_revision", changeset.topology_revision),
        ("exclusive ensembles", "exclusive_revision", changeset.exclusive_revision),
    )
    relies_on_whole = any(relied is not None for _, _, relied in whole)
    if not (changeset.relies_on or relies_on_whole):
        return
    rows = _revisions(batch, changeset)
    moved = _moved(changeset, {row.uuid: row.revision for row in rows})
    if moved:
        _check_forms(batch, changeset, moved)
        _check_standing(batch, changeset)
    if not relies_on_whole:
        return
    stands = rows[-1] if rows else batch.connection.execute(_WHOLE).one()
    for subject, column, relied in whole:
        stored = getattr(stands, column)
        if relied is not None and stored != relied:
            raise ProviderConflict(
                f"{subject}: relied on revision {relied}, found {stored}", subject=subject
            )


def _revisions(batch: Batch, changeset: Changeset) -> list[Any]:
    """Rows of what the changeset relied on, as far as it is there."""
    return [
        row
        for some in chunks(changeset.relies_on)
        for row in batch.connection.execute(_REVISIONS, {"some": some})
    ]


def _moved(changeset: Changeset, found: Mapping[str, int]) -> list[str]:
    """Providers whose revision is another one, though that may not matter."""
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
