"""Judges the end state of a changeset: capacity, unit rules, inventories still in use.

Per inventory that got bookings: what others take is the end state without what the changeset
wrote; what it may use is the capacity, or its own former use where that was more. So one
changeset may move capacity between consumers, and an over-full inventory may empty slowly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, case, func, or_, select

from moorage.domain.bookings import BookingState
from moorage.domain.errors import (
    CapacityExceeded,
    ConstraintViolated,
    InventoryInUse,
    UnknownName,
)
from moorage.domain.period import FOREVER
from moorage.engine.capacity import Shortfall, shortfall
from moorage.engine.timeline import Spans
from moorage.store import rows, tables
from moorage.store.batch import chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.providers import Inventory
    from moorage.store.batch import Batch, Pair, Span
    from moorage.store.session import Rows
    from moorage.store.statements import Parameters

_b = tables.bookings.c
_NOW: Final[Any] = bindparam("now")
_START = case((_b.start_at <= _NOW, _NOW), else_=_b.start_at)
_END = case((_b.end_at <= _NOW, FOREVER), else_=_b.end_at)
_OCCUPANCY = (
    select(
        _b.provider,
        _b.resource_class,
        _START.label("start_at"),
        _END.label("end_at"),
        func.sum(_b.amount).label("amount"),
    )
    .where(
        _b.provider.in_(bindparam("providers", expanding=True)),
        _b.lapses_at > _NOW,
        or_(_b.state == BookingState.ALLOCATED.value, _b.end_at > _NOW),
    )
    .group_by(_b.provider, _b.resource_class, _START, _END)
)
_INVENTORIES = select(tables.inventories).where(
    tables.inventories.c.provider.in_(bindparam("providers", expanding=True))
)
_IN_USE = (
    select(_b.provider, _b.resource_class)
    .distinct()
    .where(
        and_(
            _b.provider.in_(bindparam("providers", expanding=True)),
            _b.lapses_at > _NOW,
            or_(_b.state == BookingState.ALLOCATED.value, _b.end_at > _NOW),
        )
    )
)


def questions(batch: Batch) -> list[tuple[Any, Parameters]]:
    """What `judge` must know of the end state: pairs of statements with their parameters."""
    found: list[tuple[Any, Parameters]] = []
    for providers in chunks(provider for provider, _ in batch.added):
        parameters = {"providers": providers, "now": batch.now}
        found += ((_INVENTORIES, parameters), (_OCCUPANCY, parameters))
    return found


def judge(batch: Batch, answers: Sequence[Rows]) -> None:
    """Judge every inventory that the batch booked or dropped, by the answers to `questions`.

    Raises:
        CapacityExceeded, ConstraintViolated, InventoryInUse.
        UnknownName: a booking names no resource class.
    """
    inventories: dict[Pair, Inventory] = {}
    occupancy: dict[Pair, list[Span]] = {}
    for stock, occupied in zip(answers[::2], answers[1::2], strict=True):
        inventories |= _inventories(stock)
        for row in occupied:
            span = (row.start_at, row.end_at, int(row.amount))
            occupancy.setdefault((row.provider, row.resource_class), []).append(span)
    pairs = sorted(batch.added)
    _judge_names(batch, [pair for pair in pairs if pair not in inventories])
    for pair in pairs:
        _judge_units(batch, pair, inventories.get(pair))
        _judge_capacity(batch, pair, inventories[pair], occupancy.get(pair, []))
    _judge_dropped(batch)


def _inventories(found: Rows) -> dict[Pair, Inventory]:
    return {(row.provider, row.resource_class): rows.inventory(row) for row in found}


def _judge_names(batch: Batch, without_inventory: list[Pair]) -> None:
    """A class that nobody knows, or that the changeset itself drops, before what does not fit."""
    batch.look_up_classes(name for _, name in without_inventory)
    for provider, name in without_inventory:
        if not batch.knows_class(name):
            raise UnknownName("resource class", name, path=f"allocations.{provider}.resources")
    for provider, name in without_inventory:
        if (provider, name) in batch.dropped:
            raise InventoryInUse(provider, (name,))


def _judge_units(batch: Batch, pair: Pair, inventory: Inventory | None) -> None:
    provider, name = pair
    for amount in sorted(batch.amounts.get(pair, ())):
        rule = "no inventory" if inventory is None else inventory.rule_broken_by(amount)
        if rule is not None:
            raise ConstraintViolated(provider, name, requested=amount, rule=rule)


def _judge_capacity(batch: Batch, pair: Pair, inventory: Inventory, occupancy: list[Span]) -> None:
    added, removed = batch.added[pair], batch.removed.get(pair, [])
    found = _at_once(batch, inventory.capacity, occupancy, added, removed)
    if found is None:
        return
    raise CapacityExceeded(pair[0], pair[1], free=found.free, requested=found.requested)


def _at_once(
    batch: Batch, capacity: int, occupancy: list[Span], added: list[Span], removed: list[Span]
) -> Shortfall | None:
    """The same as `shortfall`; sums suffice where everything is from now on and for ever."""
    flat = (batch.now, FOREVER)
    if all(span[:2] == flat for spans in (occupancy, added, removed) for span in spans):
        total, asked = sum(span[2] for span in occupancy), sum(span[2] for span in added)
        if total <= capacity or asked <= sum(span[2] for span in removed):
            return None
        return Shortfall(at=batch.now, free=capacity - (total - asked), requested=asked)
    others = [*occupancy, *((start, end, -amount) for start, end, amount in added)]
    return shortfall(
        capacity,
        others=_spans(others),
        before=_spans(removed),
        after=_spans(added),
        since=batch.now,
    )


def _spans(items: list[Any]) -> Spans:
    return Spans.of((0, *span) for span in items)


def _judge_dropped(batch: Batch) -> None:
    for providers in chunks({provider for provider, _ in batch.dropped}):
        parameters = {"providers": providers, "now": batch.now}
        in_use, stock = batch.connection.ask((_IN_USE, parameters), (_INVENTORIES, parameters))
        booked = {tuple(row) for row in in_use}
        left = sorted((booked & batch.dropped) - _inventories(stock).keys())
        if left:
            provider = left[0][0]
            classes = tuple(name for one, name in left if one == provider)
            raise InventoryInUse(provider, classes)
