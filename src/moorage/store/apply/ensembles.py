"""Ensembles, decisions, claims and explanations."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, insert, select, update

from moorage.domain.errors import (
    ConcurrentUpdate,
    DuplicateName,
    HoldExpired,
    LimitExceeded,
    NotFound,
)
from moorage.store import bodies, read, tables
from moorage.store.batch import chunks

if TYPE_CHECKING:
    from sqlalchemy import Table

    from moorage.domain.changes import (
        BoundHeld,
        DeleteEnsemble,
        ExpectEnsemble,
        PutClaim,
        PutDecision,
        PutEnsemble,
        PutExplanation,
    )
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.store.batch import Batch

_KEEPERS_MOVED: Final = update(tables.ledger).values(
    keepers_revision=tables.ledger.c.keepers_revision + 1
)


def put_ensemble(batch: Batch, change: PutEnsemble) -> None:
    """See `PutEnsemble`.

    Raises:
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or of another generation.
        DuplicateName: one of its servers is a member of another ensemble.
    """
    ensemble = change.ensemble
    if change.generation is not None:
        ensemble = replace(ensemble, generation=change.generation + 1)
    values = {
        "project_id": ensemble.project_id,
        "name": ensemble.name,
        "generation": ensemble.generation,
        "body": bodies.ENSEMBLE.encode(ensemble),
    }
    _write(batch, tables.ensembles, "ensemble", ensemble.id, values, change.generation)
    _list_members(batch, ensemble.id, _tags(ensemble))
    _list_keeper(batch, ensemble.id, keeps=ensemble.keeps_others_out)


def _list_keeper(batch: Batch, ensemble_id: str, *, keeps: bool) -> None:
    """Say whether an ensemble keeps others out; whoever relies on all that do sees it move."""
    table = tables.keepers
    mine = table.c.ensemble_id == ensemble_id
    kept = batch.connection.execute(select(table).where(mine)).first() is not None
    if keeps and not kept:
        batch.connection.execute(insert(table).values(ensemble_id=ensemble_id))
    elif kept and not keeps:
        batch.connection.execute(delete(table).where(mine))
    if kept or keeps:
        batch.connection.execute(_KEEPERS_MOVED)


def _tags(ensemble: Ensemble) -> dict[str, str]:
    """Consumer -> its role's tags, for members whose role has any."""
    tags = {role.name: json.dumps(sorted(role.tags)) for role in ensemble.roles if role.tags}
    return {
        consumer: tags[member.name.role]
        for member in ensemble.members
        if member.name.role in tags
        for consumer in (member.uuid, member.server_id)
        if consumer is not None
    }


def _list_members(batch: Batch, ensemble_id: str, wanted: dict[str, str]) -> None:
    """Say which consumers are members; providers they stand on look different afterwards.

    Raises:
        DuplicateName: a server is a member of another ensemble.
    """
    table = tables.members
    rows = batch.connection.execute(
        select(table.c.consumer, table.c.tags).where(table.c.ensemble_id == ensemble_id)
    )
    stored = {row.consumer: row.tags for row in rows}
    differing = {name for name, _ in stored.items() ^ wanted.items()}
    for some in chunks(differing):
        others = table.c.consumer.in_(some) & (table.c.ensemble_id != ensemble_id)
        taken = batch.connection.scalars(select(table.c.consumer).where(others)).first()
        if taken is not None:
            raise DuplicateName("member", taken)
        batch.connection.execute(delete(table).where(table.c.consumer.in_(some)))
        bookings = tables.bookings.c
        standing = select(bookings.provider).where(bookings.consumer.in_(some)).distinct()
        for provider in batch.connection.scalars(standing):
            batch.touch(provider, bookings_only=True)
    fresh = [
        {"consumer": consumer, "ensemble_id": ensemble_id, "tags": tags}
        for consumer, tags in wanted.items()
        if consumer in differing
    ]
    if fresh:
        batch.connection.execute(insert(table), fresh)


def delete_ensemble(batch: Batch, change: DeleteEnsemble) -> None:
    """See `DeleteEnsemble`.

    Raises:
        NotFound, ConcurrentUpdate: it is not there, or of another generation.
    """
    _expect(batch, tables.ensembles, "ensemble", change.id, change.generation)
    _list_members(batch, change.id, {})
    _list_keeper(batch, change.id, keeps=False)
    batch.connection.execute(delete(tables.ensembles).where(tables.ensembles.c.id == change.id))


def expect_ensemble(batch: Batch, change: ExpectEnsemble) -> None:
    """See `ExpectEnsemble`.

    Raises:
        NotFound, ConcurrentUpdate: it is not there, or of another generation.
    """
    _expect(batch, tables.ensembles, "ensemble", change.id, change.generation)


def put_decision(batch: Batch, change: PutDecision) -> None:
    """See `PutDecision`.

    Raises:
        HoldExpired: it is too late.
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or of another generation.
    """
    decision = change.decision
    _in_time(batch, change.not_after)
    if change.generation is not None:
        decision = replace(decision, generation=change.generation + 1)
    values = {
        "ensemble_id": decision.ensemble_id,
        "project_id": decision.project_id,
        "state": decision.state.value,
        "expires_at": decision.expires_at,
        "generation": decision.generation,
        "body": bodies.DECISION.encode(decision),
    }
    _write(batch, tables.decisions, "decision", decision.id, values, change.generation)


def bound_held(batch: Batch, change: BoundHeld) -> None:
    """See `BoundHeld`.

    Raises:
        LimitExceeded: the project holds more.
    """
    held = read.held(batch.connection, change.project_id, now=batch.now)
    if held > change.limit:
        raise LimitExceeded(
            "places held",
            limit=change.limit,
            used=max(held - change.requested, 0),
            requested=change.requested,
        )


def put_claim(batch: Batch, change: PutClaim) -> None:
    """See `PutClaim`.

    Raises:
        HoldExpired: it is too late.
        DuplicateName: a new one whose id is taken.
        NotFound, ConcurrentUpdate: the stored one is gone, or in another state.
    """
    claim = change.claim
    _in_time(batch, change.not_after)
    values = {
        "decision_id": claim.decision_id,
        "state": claim.state.value,
        "lapses_at": claim.lapses_at,
        "body": bodies.CLAIM.encode(claim),
    }
    table = tables.claims
    if change.expected_state is None:
        _insert(batch, table, "claim", claim.id, values)
        return
    found = select(table.c.state).where(table.c.id == claim.id)
    state = batch.connection.scalars(found).one_or_none()
    if state is None:
        raise NotFound("claim", claim.id)
    if state != change.expected_state:
        raise ConcurrentUpdate(
            f"claim {claim.id} is {state}, no longer {change.expected_state}", subject=claim.id
        )
    batch.connection.execute(update(table).where(table.c.id == claim.id).values(values))


def put_explanation(batch: Batch, change: PutExplanation) -> None:
    """See `PutExplanation`.

    Raises:
        DuplicateName: there is one of that id.
    """
    values = {
        "project_id": change.project_id,
        "body": bodies.EXPLANATION.encode(change.explanation),
        "instance": change.instance,
        "request": change.request,
        "digest": change.digest,
    }
    table = tables.explanations
    _insert(batch, table, "explanation", change.explanation.id, values)
    if change.keep is not None:
        mine = table.c.project_id == change.project_id
        newest = select(table.c.number).where(mine).order_by(table.c.number.desc())
        surplus = newest.offset(change.keep).limit(1)
        last = batch.connection.scalars(surplus).one_or_none()
        if last is not None:
            batch.connection.execute(delete(table).where(mine, table.c.number <= last))


def _in_time(batch: Batch, not_after: Instant | None) -> None:
    if not_after is not None and batch.now >= not_after:
        raise HoldExpired("the hold has lapsed; decide again")


# --- rows with an id and a generation -------------------------------------------------------


def _write(
    batch: Batch, table: Table, kind: str, id_: str, values: dict[str, Any], expected: int | None
) -> None:
    if expected is None:
        _insert(batch, table, kind, id_, values)
        return
    _expect(batch, table, kind, id_, expected)
    batch.connection.execute(update(table).where(table.c.id == id_).values(values))


def _insert(batch: Batch, table: Table, kind: str, id_: str, values: dict[str, Any]) -> None:
    taken = select(table.c.number).where(table.c.id == id_)
    if batch.connection.scalars(taken).first() is not None:
        raise DuplicateName(kind, id_)
    batch.connection.execute(insert(table).values(id=id_, **values))


def _expect(batch: Batch, table: Table, kind: str, id_: str, expected: int | None) -> None:
    found = select(table.c.generation).where(table.c.id == id_)
    stored = batch.connection.scalars(found).one_or_none()
    if stored is None:
        raise NotFound(kind, id_)
    if expected is not None and stored != expected:
        raise ConcurrentUpdate(
            f"{kind} {id_}: generation expected {expected}, found {stored}", subject=id_
        )
