"""Placement's allocations: bookings that have begun, open-ended unless somebody said an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, exists, insert, select, update

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.consumers import ANY_GENERATION, UNKNOWN_TYPE, Consumer
from moorage.domain.errors import (
    ConsumerConflict,
    InvalidDescription,
    NotFound,
    PlaceLeft,
    ServerOfMember,
)
from moorage.domain.period import FOREVER, Period
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from sqlalchemy import Row

    from moorage.domain.changes import DeleteAllocations, ReplaceAllocations, Stay
    from moorage.store.commit.batch import Batch

_b, _c = tables.bookings.c, tables.consumers.c
_ALLOCATED = BookingState.ALLOCATED.value
_CONSUMER = select(tables.consumers).where(_c.uuid == bindparam("uuid"))
STANDING = select(
    exists().where(tables.member_servers.c.server == bindparam("uuid")).label("of_member"),
    tables.consumers,
    tables.bookings,
).select_from(
    tables.ledger.outerjoin(tables.consumers, _c.uuid == bindparam("uuid")).outerjoin(
        tables.bookings, (_b.consumer == _c.uuid) & (_b.state == _ALLOCATED)
    )
)
"""Whether a consumer is a member's server; and the consumer, if there is one, with each of its
allocations, or with none. By the ledger's only row there is an answer about any."""
OWN = select(tables.bookings).where(_b.consumer == bindparam("uuid"), _b.state == _ALLOCATED)
_STANDING = select(_b.provider).where(_b.consumer == bindparam("uuid")).distinct()
_CLEAR = delete(tables.bookings).where(_b.consumer == bindparam("uuid"), _b.state == _ALLOCATED)
INSERT = insert(tables.consumers)
_UPDATE = (
    update(tables.consumers)
    .where(_c.uuid == bindparam("of"))
    .values({name: bindparam(name) for name in ("project_id", "user_id", "type", "generation")})
)
_RESET = update(tables.consumers).where(_c.uuid == bindparam("of")).values(generation=0)


def stored_consumer(batch: Batch, uuid: str) -> Any:  # noqa: ANN401 - a row
    """The consumer's row; its generation is 0 while it has holds only."""
    return batch.connection.execute(_CONSUMER, {"uuid": uuid}).one_or_none()


def holder(consumer: Consumer) -> dict[str, object]:
    """The row of a new consumer that has holds only."""
    return consumer_columns(consumer, 0)


def consumer_columns(consumer: Consumer, generation: int) -> dict[str, object]:
    """The row of a consumer."""
    return {
        "uuid": consumer.uuid,
        "project_id": consumer.project_id,
        "user_id": consumer.user_id,
        "type": consumer.type or UNKNOWN_TYPE,
        "generation": generation,
        "migration_of": consumer.migration_of,
    }


def write_consumer(
    batch: Batch, consumer: Consumer, stored: Row[Any] | None, generation: int
) -> None:
    """Write a consumer as given, with this generation; a type of None changes none."""
    if stored is None or consumer.uuid in batch.born:
        batch.born[consumer.uuid] = consumer.project_id
    if stored is None:
        batch.connection.do(INSERT, consumer_columns(consumer, generation))
        return
    if stored.project_id != consumer.project_id:  # whose its holds are, is read there too
        batch.swept.update(batch.connection.scalars(_STANDING, {"uuid": consumer.uuid}))
    columns = {
        "of": consumer.uuid,
        "project_id": consumer.project_id,
        "user_id": consumer.user_id,
        "type": consumer.type or stored.type,
        "generation": generation,
    }
    batch.connection.do(_UPDATE, columns)


def replace_allocations(batch: Batch, change: ReplaceAllocations) -> None:
    """See `ReplaceAllocations`. Whether it fits is judged on the changeset's end state.

    Raises:
        ConsumerConflict: the consumer's generation has changed.
        InvalidDescription: an amount below 1, or a provider without amounts.
    """
    uuid = change.consumer.uuid
    found = batch.query(STANDING, {"uuid": uuid})
    stored = found[0] if found[0].uuid is not None else None
    own = [row for row in found if row.number is not None]
    actual = stored.generation if stored is not None and own else None
    if change.generation is not ANY_GENERATION and change.generation != actual:
        raise ConsumerConflict(uuid, expected=change.generation, actual=actual)
    inherited = _taken_over(batch, change)
    fresh = _fresh(batch, change, inherited or own)
    if not fresh:
        _clear(batch, uuid, own)
        _forget_generation(batch, uuid)
        batch.allotted.update(row.provider for row in own)
        return
    if found[0].of_member:
        batch.of_members.append(uuid)
    generation = (actual or 0) + 1
    write_consumer(batch, change.consumer, stored, generation)
    # Who gets another's place, as in a revert, leaves its own, though both be on one provider.
    _clear(batch, uuid, own, stays_on=frozenset() if inherited else change.allocations.keys())
    batch.put(fresh)
    batch.allotted.update(change.allocations)
    batch.consumer_generations[uuid] = generation


def _fresh(batch: Batch, change: ReplaceAllocations, before: Sequence[Row[Any]]) -> list[Booking]:
    terms = _terms(batch, change, before)
    found: list[Booking] = []
    for provider, amounts in change.allocations.items():
        if not amounts or min(amounts.values()) < 1:
            raise InvalidDescription(
                "an allocation needs amounts of at least 1",
                path=f"allocations.{provider}.resources",
            )
        by_class = dict(sorted(amounts.items()))
        found.append(Booking(change.consumer.uuid, provider, by_class, **terms))
    return found


def _terms(batch: Batch, change: ReplaceAllocations, before: Sequence[Row[Any]]) -> dict[str, Any]:
    """From when to when, who it yields to, and whose place it has.

    As those that another gives up for it, or as its own before; else as it says.

    Raises:
        InvalidDescription: an end that has passed.
    """
    if change.until is not None:
        if change.until <= batch.now:
            raise InvalidDescription("allocations cannot end in the past", path="until")
        return {
            "period": Period(batch.now, change.until),
            "preemptible": change.stay.preemptible,
            "priority": change.stay.priority,
            "decision": change.stay.decision,
        }
    if not before:
        return _first_terms(batch, change.stay)
    first = before[0]
    if first.end_at == FOREVER:
        return {
            "period": Period(batch.now, FOREVER),
            "preemptible": bool(first.preemptible),
            "priority": first.priority,
            "decision": first.decision,
        }
    return {
        # One that is overrun has its end behind it.
        "period": Period(min(row.start_at for row in before), first.end_at),
        "preemptible": bool(first.preemptible),
        "priority": first.priority,
        "yields_to": first.yields_to,
        "declared_end": first.declared_end,
        "decision": first.decision,
    }


def _first_terms(batch: Batch, stay: Stay) -> dict[str, Any]:
    declared = FOREVER if stay.life is None else batch.now + stay.life
    if stay.declared_end is not None:
        declared = stay.declared_end
    end = declared if stay.until is None else min(declared, stay.until)
    # It has another end than its own: for a lease, or as its host will be away, by its hold.
    early = stay.yields_to is not None or stay.declared_end is not None
    if end <= batch.now:
        raise InvalidDescription("allocations cannot end in the past", path="until")
    return {
        "period": Period(batch.now, end),
        "preemptible": stay.preemptible,
        "priority": stay.priority,
        "yields_to": stay.yields_to if end < declared else None,
        "declared_end": declared if early and end < declared else None,
        "decision": stay.decision,
    }


def _taken_over(batch: Batch, change: ReplaceAllocations) -> Sequence[Row[Any]]:
    """What the consumer that the change names has given up, if this one gets it as it was.

    So Nova moves a server's allocations to its migration and back: the server's end goes along.
    """
    given = batch.given_up.get(change.takes_over or "", ())
    if change.until is not None:
        return ()
    wanted = {
        (provider, name, amount)
        for provider, amounts in change.allocations.items()
        for name, amount in amounts.items()
    }
    if {(row.provider, row.resource_class, row.amount) for row in given} != wanted:
        return ()
    return batch.given_up.pop(change.takes_over or "", ())


def check_members(batch: Batch) -> None:
    """Refuse that a member's server gets allocations.

    Raises:
        ServerOfMember: one does.
    """
    if batch.of_members:
        raise ServerOfMember(f"consumer {batch.of_members[0]} is the server of a member")


def check_places(batch: Batch) -> None:
    """Refuse that a consumer leaves the place of a decision, unless another one gets it as it was.

    Raises:
        PlaceLeft: somebody does.
    """
    left = [
        consumer
        for consumer, had in batch.given_up.items()
        if any(row.decision is not None for row in had)
    ]
    if left:
        raise PlaceLeft(tuple(left))


def _clear(
    batch: Batch, uuid: str, own: Sequence[Row[Any]], *, stays_on: AbstractSet[str] = frozenset()
) -> None:
    """Take a consumer's allocations away; it is forgotten at the end if it has nothing left."""
    if not own:
        return
    left = [row for row in own if row.provider not in stays_on]
    if left:
        batch.given_up[uuid] = left
    batch.take_away(own)
    batch.connection.do(_CLEAR, {"uuid": uuid})


def _forget_generation(batch: Batch, uuid: str) -> None:
    """With nothing but holds left, the next allocation is a consumer's first."""
    batch.connection.do(_RESET, {"of": uuid})


def delete_allocations(batch: Batch, change: DeleteAllocations) -> None:
    """See `DeleteAllocations`.

    Raises:
        NotFound: the consumer has none.
    """
    own = batch.query(OWN, {"uuid": change.consumer})
    if not own:
        raise NotFound("consumer", change.consumer)
    _clear(batch, change.consumer, own)
    _forget_generation(batch, change.consumer)
