"""The check of every commit: capacity at every instant, unit rules, inventories still in use.

Per inventory that got bookings: what others take is the end state without what the changeset
wrote; what it may use is the capacity, or its own former use where that was more. So one
changeset may move capacity between consumers, and an over-full inventory may empty slowly.

The end state is read, or, where `prefetch` has read the state before under the locks, made of that
and what the changeset did to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sqlalchemy import BigInteger, and_, bindparam, case, func, or_, select

from moorage.domain.bookings import BookingState
from moorage.domain.errors import CapacityExceeded, ConstraintViolated, InventoryInUse, UnknownName
from moorage.domain.period import FOREVER
from moorage.domain.providers import Inventory
from moorage.engine.time.capacity_check import Shortfall, shortfall
from moorage.engine.time.occupancy import Spans
from moorage.store.database.statements import chunks
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Row

    from moorage.domain.period import Instant
    from moorage.store.commit.batch import Batch, Pair, Span
    from moorage.store.database.session import Question, Rows

_b, _p = tables.bookings.c, tables.providers.c
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
_a, _i = tables.away.c, tables.inventories.c
_DOWN: Final[Any] = _a.start_at.label("down_from"), _a.end_at.label("down_to")
_RULES: Final[Any] = (
    *(_i.resource_class, _i.total, _i.reserved),
    *(_i.min_unit, _i.max_unit, _i.step_size, _i.allocation_ratio),
)
"""An inventory, but for its provider and when it was last changed."""
_INVENTORIES = (
    select(_i.provider, _p.offered_by, *_RULES, *_DOWN)
    .join(tables.providers, _p.uuid == tables.inventories.c.provider)
    .outerjoin(tables.away, _a.provider == _p.root)
    .where(tables.inventories.c.provider.in_(bindparam("providers", expanding=True)))
)
"""With a row for each time at which there is no capacity."""
THEN: Final[Any] = bindparam("then", type_=BigInteger)
_BEGUN = case((_b.start_at <= THEN, THEN), else_=_b.start_at)
STOCK = (
    select(_p.uuid.label("provider"), _p.offered_by, _p.generation, *_RULES, *_DOWN)
    .outerjoin(tables.inventories, tables.inventories.c.provider == _p.uuid)
    .outerjoin(tables.away, _a.provider == _p.root)
    .where(_p.uuid.in_(bindparam("providers", expanding=True)))
)
BOOKED = (
    select(
        _b.provider,
        _b.resource_class,
        _BEGUN.label("start_at"),
        _b.end_at,
        _b.lapses_at,
        _b.state,
        func.sum(_b.amount).label("amount"),
    )
    .where(_b.provider.in_(bindparam("providers", expanding=True)))
    .group_by(_b.provider, _b.resource_class, _BEGUN, _b.end_at, _b.lapses_at, _b.state)
)
"""Bookings with their times: the instant of the commit, which says which are live, comes later."""
_LOCATIONS: Final = (
    select(_b.consumer, _p.offered_by, *_DOWN)
    .join(tables.providers, _p.uuid == _b.provider)
    .outerjoin(tables.away, _a.provider == _p.root)
    .where(
        _b.consumer.in_(bindparam("servers", expanding=True)),
        _b.state == BookingState.ALLOCATED.value,
    )
    .distinct()
)
"""Where servers stand, with a row for each time at which there is no capacity."""
EARLIER: Final = 60_000_000
"""Microseconds before a guess of the instant of a commit at which it has certainly not been yet."""
_IN_USE = (
    select(_b.provider, _b.resource_class, _b.state, _b.consumer)
    .distinct()
    .where(
        and_(
            _b.provider.in_(bindparam("providers", expanding=True)),
            _b.lapses_at > _NOW,
            or_(_b.state == BookingState.ALLOCATED.value, _b.end_at > _NOW),
        )
    )
)


@dataclass(frozen=True, slots=True)
class InventoryState:
    """Inventories and what occupies them; all of some providers."""

    inventories: dict[Pair, Inventory]
    occupancy: dict[Pair, list[Span]]
    """Bookings, and times without capacity as if something took all of it."""
    offered: dict[str, str]
    """Server providers among the providers -> the consumers that offer them."""


def prefetch_questions(providers: list[str], now: Instant) -> list[Question]:
    """What `state_before` goes by, to be asked before the instant of the commit is known."""
    return [
        (STOCK, {"providers": providers}),
        (BOOKED, {"providers": providers, "then": now - EARLIER}),
    ]


def state_before(batch: Batch) -> InventoryState | None:
    """The state before the changeset of all that it may book, if that was foreseen."""
    if BOOKED not in batch.prefetched:
        return None
    given, booked = batch.prefetched[BOOKED]
    if given["then"] > batch.now:  # the clocks are that far apart
        return None
    _, stock = batch.prefetched[STOCK]
    generations, judged, lives, span = batch.generations, batch.added, batch.lives, batch.span
    for row in stock:
        generations[row.provider] = row.generation
    occupancy: dict[Pair, list[Span]] = {}
    for provider, name, start, end, lapses_at, state, amount in booked:
        pair = provider, name
        if pair in judged and lives(state, lapses_at, end):
            occupancy.setdefault(pair, []).append(span(start, end, int(amount)))
    stocked = [row for row in stock if (row.provider, row.resource_class) in judged]
    inventories = _inventories(stocked)
    _add_down(batch.now, stocked, inventories, occupancy)
    return InventoryState(inventories, occupancy, _offered(stocked))


def questions(batch: Batch) -> list[Question]:
    """What `check_inventories` must know of the end state, unless the state before it is known."""
    found: list[Question] = []
    for providers in chunks(provider for provider, _ in batch.added):
        parameters = {"providers": providers, "now": batch.now}
        found += ((_INVENTORIES, parameters), (_OCCUPANCY, parameters))
    return found


def answered_state(answers: Sequence[Rows], now: Instant) -> InventoryState:
    """The answers to `questions`."""
    inventories: dict[Pair, Inventory] = {}
    occupancy: dict[Pair, list[Span]] = {}
    offered: dict[str, str] = {}
    for stock, occupied in zip(answers[::2], answers[1::2], strict=True):
        stocked = list(stock)
        inventories |= _inventories(stocked)
        offered |= _offered(stocked)
        _add_down(now, stocked, inventories, occupancy)
        for row in occupied:
            span = (row.start_at, row.end_at, int(row.amount))
            occupancy.setdefault((row.provider, row.resource_class), []).append(span)
    return InventoryState(inventories, occupancy, offered)


def _offered(stock: Iterable[Any]) -> dict[str, str]:
    return {row.provider: row.offered_by for row in stock if row.offered_by is not None}


def _add_down(
    now: Instant,
    stock: Iterable[Any],
    inventories: dict[Pair, Inventory],
    occupancy: dict[Pair, list[Span]],
) -> None:
    """Add the times without capacity to what occupies inventories."""
    for row in stock:
        if row.down_to is not None and row.down_to > now:
            pair = (row.provider, row.resource_class)
            span = (max(row.down_from, now), row.down_to, inventories[pair].capacity)
            occupancy.setdefault(pair, []).append(span)


def _add_absences_of_hosts(batch: Batch, end: InventoryState) -> None:
    """Add the times at which the hosts of servers are away to what occupies what these offer.

    A server may stand on what another one offers.
    """
    absences: dict[str, set[tuple[Instant, Instant]]] = {}
    above: dict[str, set[str]] = {server: {server} for server in end.offered.values()}
    waiting = set(above)
    while waiting:
        rows = [
            row
            for servers in chunks(sorted(waiting))
            for row in batch.connection.execute(_LOCATIONS, {"servers": servers})
        ]
        waiting = set()
        for server, below, start, stop in rows:
            if stop is not None and stop > batch.now:
                for one in above[server]:
                    absences.setdefault(one, set()).add((max(start, batch.now), stop))
            if below is not None and not above[server] <= above.get(below, set()):
                above.setdefault(below, set()).update(above[server])
                waiting.add(below)
    for pair in batch.added.keys() & end.inventories.keys():
        for period in absences.get(end.offered.get(pair[0], ""), ()):
            span = (*period, end.inventories[pair].capacity)
            end.occupancy.setdefault(pair, []).append(span)


def state_after(batch: Batch, before: InventoryState) -> InventoryState:
    """The end state of a batch that leaves inventories as they are."""
    occupancy: dict[Pair, list[Span]] = {}
    for pair, added in batch.added.items():
        occupancy[pair] = spans = [*before.occupancy.get(pair, ()), *added]
        if pair in batch.removed:
            spans += [(start, end, -amount) for start, end, amount in batch.removed[pair]]
    return InventoryState(before.inventories, occupancy, before.offered)


def check_inventories(batch: Batch, end: InventoryState) -> None:
    """Check every inventory that the batch booked or dropped, by the end state.

    Raises:
        CapacityExceeded, ConstraintViolated, InventoryInUse.
        UnknownName: a booking names no resource class.
    """
    inventories = end.inventories
    pairs = sorted(batch.added)
    without_inventory = [pair for pair in pairs if pair not in inventories]
    if without_inventory:
        _check_names(batch, without_inventory)
    occupancy, amounts = end.occupancy, batch.amounts
    if end.offered:
        _add_absences_of_hosts(batch, end)
    for pair in pairs:
        _check_units(pair, amounts.get(pair, ()), inventories.get(pair))
        _check_capacity(batch, pair, inventories[pair], occupancy.get(pair, []))
    if batch.dropped:
        _check_dropped(batch)


def _inventories(found: Iterable[Any]) -> dict[Pair, Inventory]:
    return {
        (row.provider, row.resource_class): _inventory(
            row.resource_class,
            row.total,
            row.reserved,
            row.min_unit,
            row.max_unit,
            row.step_size,
            row.allocation_ratio,
        )
        for row in found
    }


_inventory = lru_cache(maxsize=1024)(Inventory)
"""A fleet has few kinds of them."""


def _check_names(batch: Batch, without_inventory: list[Pair]) -> None:
    """A class that nobody knows, or that the changeset itself drops, before what does not fit."""
    batch.look_up_classes(name for _, name in without_inventory)
    for provider, name in without_inventory:
        if not batch.knows_class(name):
            raise UnknownName("resource class", name, path=f"allocations.{provider}.resources")
    for provider, name in without_inventory:
        if (provider, name) in batch.dropped:
            raise InventoryInUse(provider, (name,))


def _check_units(pair: Pair, amounts: Iterable[int], inventory: Inventory | None) -> None:
    for amount in sorted(amounts):
        rule = "no inventory" if inventory is None else inventory.rule_broken_by(amount)
        if rule is not None:
            raise ConstraintViolated(*pair, requested=amount, rule=rule)


def _check_capacity(batch: Batch, pair: Pair, inventory: Inventory, occupancy: list[Span]) -> None:
    capacity, removed = inventory.capacity, batch.removed.get(pair, [])
    # What fits all together fits at every instant.
    if not removed and sum([amount for _, _, amount in occupancy]) <= capacity:
        return
    found = _at_once(batch, capacity, occupancy, batch.added[pair], removed)
    if found is None:
        return
    raise CapacityExceeded(pair[0], pair[1], free=found.free, requested=found.requested)


def _at_once(
    batch: Batch, capacity: int, occupancy: list[Span], added: list[Span], removed: list[Span]
) -> Shortfall | None:
    """The same as `shortfall`; sums suffice where everything is from now on and for ever."""
    total, asked, less = (_flat(spans, batch.now) for spans in (occupancy, added, removed))
    if total is not None and asked is not None and less is not None:
        if total <= capacity or asked <= less:
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


def _flat(spans: list[Span], now: Instant) -> int | None:
    """The sum of spans that all are from now on and for ever; None if one is not."""
    total = 0
    for start, end, amount in spans:
        if start != now or end != FOREVER:
            return None
        total += amount
    return total


def _spans(items: list[Any]) -> Spans:
    return Spans.of((0, *span) for span in items)


def _check_dropped(batch: Batch) -> None:
    for providers in chunks({provider for provider, _ in batch.dropped}):
        parameters = {"providers": providers, "now": batch.now}
        in_use, stock = batch.connection.ask((_IN_USE, parameters), (_INVENTORIES, parameters))
        gone = batch.dropped - _inventories(stock).keys()
        booked = [row for row in in_use if (row.provider, row.resource_class) in gone]
        if booked:
            _refuse_dropped(booked)


def _refuse_dropped(booked: Sequence[Row[Any]]) -> NoReturn:
    allocated = [row for row in booked if row.state == BookingState.ALLOCATED.value]
    provider = min(row.provider for row in allocated or booked)
    there = [row for row in allocated or booked if row.provider == provider]
    classes = tuple(sorted({row.resource_class for row in there}))
    holders = frozenset() if allocated else frozenset(row.consumer for row in booked)
    raise InventoryInUse(provider, classes, holders)
