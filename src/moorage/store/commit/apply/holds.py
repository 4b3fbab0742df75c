"""Writes holds, claims and reservations; exchanges a hold for an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from moorage.domain.bookings import Binding, BookingState
from moorage.domain.errors import (
    ConcurrentUpdate,
    ConsumerConflict,
    HoldExpired,
    InvalidDescription,
    NotFound,
    WrongState,
)
from moorage.domain.period import FOREVER, format_instant
from moorage.domain.refusal_commands import to_see_own
from moorage.store.commit.apply.allocations import holder, stored_consumer, write_consumer
from moorage.store.database.statements import chunks
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import (
        BindAllocations,
        DropBookings,
        EndBookings,
        PutBookings,
        SwapHold,
        TakeHold,
    )
    from moorage.store.commit.batch import Batch

_b = tables.bookings.c
_ALLOCATED = BookingState.ALLOCATED.value
_HOLDS = (_b.consumer.in_(bindparam("consumers", expanding=True))) & (_b.state != _ALLOCATED)
_OWN = select(tables.bookings).where(_HOLDS)
_DROP = delete(tables.bookings).where(_HOLDS)
_UNCLAIMED = (
    _b.consumer.in_(bindparam("consumers", expanding=True))
    & ((_b.state == BookingState.HELD.value) | (_b.state == BookingState.RESERVED.value))
    & (_b.decision == bindparam("of"))
)
_OWN_UNCLAIMED = select(tables.bookings).where(_UNCLAIMED)
_DROP_UNCLAIMED = delete(tables.bookings).where(_UNCLAIMED)
_SWAP = (
    update(tables.bookings)
    .where(_b.consumer == bindparam("member"), _b.state != _ALLOCATED)
    .values(
        consumer=bindparam("server"),
        state=_ALLOCATED,
        lapses_at=FOREVER,
        binding=Binding.BOUND.value,
    )
)
_HAS_ALLOCATIONS = (
    select(_b.number).where(_b.consumer == bindparam("uuid"), _b.state == _ALLOCATED).limit(1)
)


_STOOD = (
    select(tables.consumers.c.uuid, tables.bookings)
    .outerjoin(tables.bookings, (_b.consumer == tables.consumers.c.uuid) & (_b.state != _ALLOCATED))
    .where(tables.consumers.c.uuid.in_(bindparam("consumers", expanding=True)))
)
"""Which consumers there are, with their holds: every booking's consumer is one of them."""
_NEW_CONSUMERS = insert(tables.consumers)
_ALL_OF = _b.consumer.in_(bindparam("consumers", expanding=True))
_EVERY = select(tables.bookings).where(_ALL_OF)
_YIELD = (
    update(tables.bookings)
    .where(_ALL_OF)
    # MariaDB assigns from left to right: the old end is read before it goes.
    .ordered_values(
        (_b.declared_end, func.coalesce(_b.declared_end, _b.end_at)),
        (_b.yields_to, bindparam("lease")),
        (_b.end_at, bindparam("until")),
    )
)
_END = (
    update(tables.bookings)
    .where(_ALL_OF)
    .values(declared_end=None, yields_to=bindparam("lease"), end_at=bindparam("until"))
)


_BIND = (
    update(tables.bookings)
    .where(_b.consumer == bindparam("of_consumer"), _b.state == _ALLOCATED)
    .values(
        {
            name: bindparam(name)
            for name in (
                "start_at",
                "end_at",
                "preemptible",
                "yields_to",
                "declared_end",
                "decision",
                "priority",
            )
        }
    )
)


def put_bookings(batch: Batch, every: Sequence[PutBookings]) -> None:
    """See `PutBookings`. Whether they fit is judged on the changeset's end state.

    As many statements for a hundred members of an ensemble as for one. Of several changes of one
    consumer the last one stays.

    Raises:
        InvalidDescription: another consumer's booking, an allocation, or two bookings of one
            state for the same inventory.
    """
    fresh = {one.consumer.uuid: _checked(one) for one in every}
    known: set[str] = set()
    for some in chunks(fresh):
        stood = batch.connection.execute(_STOOD, {"consumers": some})
        known.update(row.uuid for row in stood)
        _drop_rows(batch, some, [row for row in stood if row.number is not None])
    owners = {one.consumer.uuid: one.consumer for one in every if fresh[one.consumer.uuid]}
    if new := [one for uuid, one in owners.items() if uuid not in known]:
        batch.connection.do(_NEW_CONSUMERS, list(map(holder, new)))
        batch.born.update((one.uuid, one.project_id) for one in new)
    holders = {uuid: one.project_id for uuid, one in owners.items()}
    batch.put((booking for found in fresh.values() for booking in found), holders)


def _checked(change: PutBookings) -> tuple[Booking, ...]:
    """What to write for one consumer."""
    uuid = change.consumer.uuid
    keys: list[tuple[str, str, BookingState]] = []
    for booking in change.bookings:
        if booking.consumer != uuid or booking.state is BookingState.ALLOCATED:
            raise InvalidDescription(
                f"{booking.state} booking of {booking.consumer} among the holds of {uuid}",
                path="bookings",
            )
        keys += [(booking.provider, name, booking.state) for name in booking.amounts]
    if len(set(keys)) != len(keys):
        raise InvalidDescription(f"{uuid} books an inventory twice", path="bookings")
    return tuple(one for one in change.bookings if one.amounts)


def drop_bookings(batch: Batch, change: DropBookings) -> None:
    """See `DropBookings`."""
    if change.decision is None:
        _drop(batch, change.consumers)
        return
    for some in chunks(change.consumers):
        parameters = {"consumers": some, "of": change.decision}
        batch.take_away(batch.connection.execute(_OWN_UNCLAIMED, parameters).all())
        batch.connection.do(_DROP_UNCLAIMED, parameters)


def _drop(batch: Batch, consumers: Iterable[str]) -> None:
    for some in chunks(consumers):
        _drop_rows(batch, some, batch.connection.execute(_OWN, {"consumers": some}))


def _drop_rows(batch: Batch, consumers: list[str], own: Sequence[Any]) -> None:
    """Drop all holds of these consumers, which are known to the last row."""
    if own:
        batch.take_away(own)
        batch.connection.do(_DROP, {"consumers": consumers})


def take_hold(batch: Batch, change: TakeHold) -> None:
    """See `TakeHold`. No wire generation moves: what is written instead moves its own.

    Raises:
        HoldExpired: nothing is held for the member (any more).
    """
    own = batch.connection.execute(_OWN, {"consumers": [change.member_uuid]}).all()
    _expect_live(batch, own)
    batch.take_away(own)
    batch.connection.do(_DROP, {"consumers": [change.member_uuid]})


def swap_hold(batch: Batch, change: SwapHold) -> None:
    """See `SwapHold`. The wire generation of each provider moves: an allocation is born.

    Nothing is judged anew: what was held is taken, no more and no longer.

    Raises:
        HoldExpired: nothing is held for the member (any more).
        NotFound: the server is another project's, or a hold that lives is in its name.
        ConsumerConflict: the server has allocations already.
    """
    server = change.server.uuid
    own = batch.connection.execute(_OWN, {"consumers": [change.member_uuid]}).all()
    _expect_live(batch, own)
    stored = stored_consumer(batch, server)
    if stored is not None and stored.project_id != change.server.project_id:
        # That it exists is nobody else's to know.
        raise NotFound("server", server)
    if batch.connection.scalars(_HAS_ALLOCATIONS, {"uuid": server}).first() is not None:
        assert stored is not None, "bookings belong to a consumer"
        raise ConsumerConflict(server, expected=None, actual=stored.generation)
    if stored is not None:
        _forget_lapsed(batch, server)
    write_consumer(batch, change.server, stored, 1)
    batch.connection.do(_SWAP, {"member": change.member_uuid, "server": server})
    batch.consumer_generations[server] = 1
    batch.vacated.add(change.member_uuid)
    for row in own:
        batch.touch(row.provider, bookings_only=True)
        batch.allotted.add(row.provider)


def _forget_lapsed(batch: Batch, server: str) -> None:
    """Drop holds in a server's name that nobody has swept out yet.

    Raises:
        NotFound: one of them lives.
    """
    holds = batch.connection.execute(_OWN, {"consumers": [server]}).all()
    if any(batch.is_live(row) for row in holds):
        raise NotFound("server", server)
    batch.take_away(holds)
    batch.connection.do(_DROP, {"consumers": [server]})


def end_bookings(batch: Batch, change: EndBookings) -> None:
    """See `EndBookings`. A later end is judged on the changeset's end state.

    Raises:
        ConcurrentUpdate: one that should yield is not preemptible.
        WrongState: one begins at that end or later.
    """
    for some in chunks(change.consumers):
        own = batch.connection.execute(_EVERY, {"consumers": some}).all()
        firm = next((row for row in own if not row.preemptible), None)
        if change.yields_to is not None and firm is not None:
            raise ConcurrentUpdate(
                f"{firm.consumer} does not yield to a lease", subject=firm.consumer
            )
        later = next((row for row in own if row.start_at >= change.end), None)
        if later is not None:
            begins, end = format_instant(later.start_at), format_instant(change.end)
            raise WrongState(f"{later.consumer} begins at {begins} and cannot end at {end}")
        batch.take_away(own)
        batch.renew(own, change.end)
        statement = _END if change.yields_to is None else _YIELD
        batch.connection.do(
            statement, {"consumers": some, "until": change.end, "lease": change.yields_to}
        )


def bind_allocations(batch: Batch, change: BindAllocations) -> None:
    """See `BindAllocations`. They end no later than before, so nothing is judged anew."""
    consumer, terms = change.consumer, change.terms
    own = [
        row
        for row in batch.connection.execute(_EVERY, {"consumers": [consumer]}).all()
        if row.state == _ALLOCATED
    ]
    if not own:
        return
    batch.take_away(own)
    batch.renew(own, terms.period.end)
    columns = {
        "of_consumer": consumer,
        # One that is overrun has its end behind it.
        "start_at": min(terms.period.start, *(row.start_at for row in own)),
        "end_at": terms.period.end,
        "preemptible": terms.preemptible,
        "yields_to": terms.yields_to,
        "declared_end": terms.declared_end,
        "decision": terms.decision,
        "priority": terms.priority,
    }
    batch.connection.do(_BIND, columns)


def _expect_live(batch: Batch, own: Sequence[Any]) -> None:
    if not own or not all(batch.is_live(row) for row in own):
        remedy = to_see_own("ensemble")
        raise HoldExpired(f"the hold has lapsed and its place is gone{remedy}")
