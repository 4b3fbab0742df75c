"""Subscriptions, how far they have come, and what was given up for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, delete, insert, select, update

from moorage.domain.errors import NotFound
from moorage.domain.quotas import QuotaName
from moorage.domain.subscriptions import NO_THRESHOLD
from moorage.store.commit.apply.kinds import OF, Kind, write
from moorage.store.commit.apply.quotas import refuse_beyond
from moorage.store.database.chunks import chunks
from moorage.store.read.stored_counts import count
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from moorage.domain.changes import (
        DeleteSubscription,
        DropDeadLetters,
        PassEvents,
        PutDeadLetters,
        PutSubscription,
    )
    from moorage.domain.subscriptions import Subscription
    from moorage.store.commit.batch import Batch

_s, _d = tables.subscriptions.c, tables.dead_letters.c
_SUBSCRIPTION: Final = Kind.of("subscription", _s.generation)
_PASS: Final = (
    update(tables.subscriptions)
    .where(_s.id == OF, _s.reached == bindparam("seen"))
    .values(reached=bindparam("to"))
)
_SOME: Final[Any] = bindparam("some", expanding=True)
_LETTERS: Final = insert(tables.dead_letters)
_NO_LETTERS: Final = delete(tables.dead_letters).where(_d.subscription_id == OF)
_DROP: Final = _NO_LETTERS.where(_d.id.in_(_SOME))
_SURPLUS: Final = (
    select(_d.number)
    .where(_d.subscription_id == OF)
    .order_by(_d.number.desc())
    .offset(bindparam("keep", type_=Integer))
    .limit(1)
)
_CUT: Final = _NO_LETTERS.where(_d.number <= bindparam("last"))


def put_subscription(batch: Batch, change: PutSubscription) -> None:
    """See `PutSubscription`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate, QuotaExceeded.
    """
    one = change.subscription
    if change.generation is None and change.limit is not None:
        used = count(batch.connection, one.project_id, QuotaName.SUBSCRIPTIONS)
        refuse_beyond(batch, one.project_id, QuotaName.SUBSCRIPTIONS, change.limit, used + 1)
    if change.generation is not None:
        one = replace(one, generation=change.generation + 1)
    write(batch, _SUBSCRIPTION, one.id, _columns(one), change.generation)


def _columns(one: Subscription) -> dict[str, Any]:
    return {
        "project_id": one.project_id,
        "name": one.name,
        "thresholds": one.threshold != NO_THRESHOLD,
        "reached": one.reached,
        "not_before": one.not_before,
        "generation": one.generation,
        "body": stored_bodies.SUBSCRIPTION.encode(one),
    }


def pass_events(batch: Batch, change: PassEvents) -> None:
    """See `PassEvents`."""
    for id_, seen, reached in change.passed:
        batch.connection.do(_PASS, {"of": id_, "seen": seen, "to": reached})


def delete_subscription(batch: Batch, change: DeleteSubscription) -> None:
    """See `DeleteSubscription`.

    Raises:
        NotFound: there is none.
    """
    if batch.connection.scalars(_SUBSCRIPTION.taken, {"of": change.id}).first() is None:
        raise NotFound("subscription", change.id)
    batch.connection.do(_SUBSCRIPTION.delete, {"of": change.id})
    batch.connection.do(_NO_LETTERS, {"of": change.id})


def put_dead_letters(batch: Batch, change: PutDeadLetters) -> None:
    """See `PutDeadLetters`. One that was there is written anew."""
    mine = {"of": change.subscription_id}
    for some in chunks(one.id for one in change.letters):
        batch.connection.do(_DROP, mine | {"some": some})
    rows = [
        {
            "id": one.id,
            "subscription_id": one.subscription_id,
            "queued": one.queued,
            "body": stored_bodies.DEAD_LETTER.encode(one),
        }
        for one in change.letters
    ]
    if rows:
        batch.connection.do(_LETTERS, rows)
    last = batch.connection.scalars(_SURPLUS, mine | {"keep": change.keep}).first()
    if last is not None:
        batch.connection.do(_CUT, mine | {"last": last})


def drop_dead_letters(batch: Batch, change: DropDeadLetters) -> None:
    """See `DropDeadLetters`."""
    for some in chunks(change.ids):
        batch.connection.do(_DROP, {"of": change.subscription_id, "some": some})
