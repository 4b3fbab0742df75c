"""Rows <-> the values of providers, inventories, consumers and bookings."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.consumers import Consumer
from moorage.domain.host_states import HostRecord
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.period import Instant
    from moorage.domain.resources import Amounts


_STATES = {state.value: state for state in BookingState}
_NO_TAGS: Final[frozenset[str]] = frozenset()
_NOBODY: Final[frozenset[str]] = frozenset()
_BINDINGS = {binding.value: binding for binding in Binding}


def inventory(row: Any) -> Inventory:  # noqa: ANN401 - a row of `inventories`
    """One inventory."""
    return Inventory(
        row.resource_class,
        row.total,
        row.reserved,
        row.min_unit,
        row.max_unit,
        row.step_size,
        row.allocation_ratio,
        row.updated_at,
    )


def host_record(row: Any) -> HostRecord:  # noqa: ANN401 - a row of `host_records`
    """What is stored of one host's state."""
    closing, service = row.closing, row.service
    return HostRecord(
        None if closing is None else stored_bodies.OPERATOR_CLOSING.decode(closing),
        None if service is None else stored_bodies.SERVICE_REPORT.decode(service),
    )


def inventory_columns(provider: str, one: Inventory, now: Instant) -> dict[str, object]:
    """What to write for one inventory."""
    return {
        "provider": provider,
        "resource_class": one.resource_class,
        "total": one.total,
        "reserved": one.reserved,
        "min_unit": one.min_unit,
        "max_unit": one.max_unit,
        "step_size": one.step_size,
        "allocation_ratio": float(one.allocation_ratio),
        "updated_at": now,
    }


def provider(
    row: Any,  # noqa: ANN401 - a row of `providers`, with the `offer` that its server makes
    inventories: Iterable[Inventory],
    traits: Iterable[str],
    aggregates: Iterable[str],
) -> ResourceProvider:
    """One provider with all it has."""
    offer = None if row.offer is None else stored_bodies.SERVER_PROVIDER.decode(row.offer)
    return ResourceProvider(
        uuid=intern(row.uuid),
        name=row.name,
        parent_uuid=row.parent,
        root_uuid=intern(row.root),
        generation=row.generation,
        revision=row.revision,
        created_at=row.created_at,
        updated_at=row.updated_at,
        inventories=tuple(inventories),
        traits=frozenset(traits),
        aggregates=frozenset(aggregates),
        offered_by=row.offered_by,
        open_to=_NOBODY if offer is None else offer.open_to,
        owner="" if offer is None else offer.project_id,
        by_operator=offer is not None and offer.by_operator,
    )


def recounted(
    one: ResourceProvider, *, generation: int, revision: int, updated_at: Instant
) -> ResourceProvider:
    """The same provider with other counters; `replace` would look at every field."""
    return ResourceProvider(
        one.uuid,
        one.name,
        one.parent_uuid,
        one.root_uuid,
        generation,
        revision,
        one.created_at,
        updated_at,
        one.inventories,
        one.traits,
        one.aggregates,
        one.offered_by,
        one.open_to,
        one.owner,
        one.by_operator,
    )


def consumer(row: Any) -> Consumer:  # noqa: ANN401 - a row with the columns of `consumers`
    """One consumer."""
    return Consumer(
        row.uuid, row.project_id, row.user_id, row.type, row.generation, row.migration_of
    )


def occupant(consumer_uuid: str, project_id: str, tags: str | None) -> Occupant:
    """Who a booking's consumer is to policies; `tags` is JSON, or None for no member."""
    found = _NO_TAGS if tags is None else frozenset[str](json.loads(tags))
    return Occupant(consumer_uuid, intern(project_id), found)


BOOKING: Final = (
    "consumer",
    "provider",
    "start_at",
    "end_at",
    "state",
    "lapses_at",
    "binding",
    "decision",
    "preemptible",
    "yields_to",
    "declared_end",
    "priority",
)
"""The columns that rows of one booking have in common, in the order of `_booking`."""

BOOKING_ROW: Final = (*BOOKING, "resource_class", "amount")
"""The columns that rows of bookings begin with, in this order."""

_COMMON: Final = len(BOOKING)


def bookings(
    rows: Iterable[Any], occupants: Mapping[str, Occupant] | None = None
) -> tuple[Booking, ...]:
    """Put rows, one per resource class, together to bookings, in the order of their rows.

    With `occupants`, by consumer, bookings share the texts of their consumers with them.
    """
    amounts: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in rows:
        amounts.setdefault(row[:_COMMON], {})[row[_COMMON]] = row[_COMMON + 1]
    if occupants is None:
        return tuple(_booking(key, found) for key, found in amounts.items())
    return tuple(
        _booking((occupants[key[0]].consumer, *key[1:]), found) for key, found in amounts.items()
    )


def as_read(one: Booking) -> Booking:
    """A booking to be written as it will be read: its classes in their order."""
    names = list(one.amounts)
    ordered = sorted(names)
    if names == ordered:
        return one
    return replace(one, amounts=MappingProxyType({name: one.amounts[name] for name in ordered}))


@lru_cache(maxsize=65_536)
def _shared_amounts(*items: tuple[str, int]) -> Amounts:
    """One object for all bookings of equal amounts: a snapshot holds hundreds of thousands."""
    return MappingProxyType(dict(sorted(items)))


@lru_cache(maxsize=65_536)
def _shared_period(start: Instant, end: Instant) -> Period:
    """One object for all bookings of one period."""
    return Period(start, end)


def _booking(key: tuple[Any, ...], amounts: dict[str, int]) -> Booking:
    who, where, start, end, state, lapses_at, binding, decision, preemptible, *yields = key
    return Booking(
        who,
        intern(where),
        _shared_amounts(*amounts.items()),
        _shared_period(start, end),
        _STATES[state],
        lapses_at,
        _BINDINGS[binding],
        decision,
        bool(preemptible),
        *yields,
    )


def packed(one: Booking) -> tuple[Amounts, list[object]]:
    """A booking as plain JSON values without its provider, for `unpacked`.

    The values are in the order of `BOOKING`. A new one goes to the end: texts of a version that did
    not have it yet are read as well.
    """
    return dict(one.amounts), [
        one.consumer,
        one.period.start,
        one.period.end,
        one.state.value,
        one.lapses_at,
        one.binding.value,
        one.decision,
        one.preemptible,
        one.yields_to,
        one.declared_end,
        one.priority,
    ]


def unpacked(provider: str, amounts: dict[str, int], values: list[Any]) -> Booking:
    """The booking of which `packed` made these, on its provider."""
    consumer, *others = values
    return _booking((consumer, provider, *others), amounts)


def booking_columns(one: Booking, holder: str | None = None) -> list[dict[str, object]]:
    """What to write for one booking: a row per resource class. `holder` is a hold's project."""
    common = {
        "consumer": one.consumer,
        "provider": one.provider,
        "start_at": one.period.start,
        "end_at": one.period.end,
        "lapses_at": one.lapses_at,
        "state": str(one.state),
        "binding": str(one.binding),
        "decision": one.decision,
        "preemptible": one.preemptible,
        "yields_to": one.yields_to,
        "declared_end": one.declared_end,
        "priority": one.priority,
        "holder": holder,
    }
    found = []
    for resource_class, amount in one.amounts.items():
        found.append({**common, "resource_class": resource_class, "amount": amount})
    return found


def by(rows: Iterable[Any], attribute: str) -> Mapping[str, list[Any]]:
    """Rows grouped by one of their columns."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(getattr(row, attribute), []).append(row)
    return found
