"""The ledger as a Placement service would be taken over: what its wire shows, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.content import AllocationSet, Content
from moorage.domain.resources import is_custom_name
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.consumers import Consumer
    from moorage.domain.resources import Amounts
    from moorage.usecases.ports import Store

PAGE: Final = 5_000
"""Consumers read at once."""


def ledger_content(store: Store, *, advance: Callable[[int], None] = lambda _: None) -> Content:
    """Providers, names and allocations. `advance` hears of every page of consumers read.

    Holds are no allocations and are left out, as on the wire. Read while nobody writes; a
    consumer that changes between two pages is seen as it is when its page is read.
    """
    snapshot = store.snapshot()
    providers = {}
    for state in snapshot.states:
        if state is not None:
            one = state.provider
            stock = tuple(sorted(one.inventories, key=lambda item: item.resource_class))
            providers[one.uuid] = replace(one, inventories=stock)
    return Content(
        providers=providers,
        consumers=_sets(store, advance),
        resource_classes=tuple(
            one.name for one in store.resource_classes() if is_custom_name(one.name)
        ),
        traits=frozenset(one.name for one in store.traits() if is_custom_name(one.name)),
    )


def _sets(store: Store, advance: Callable[[int], None]) -> dict[str, AllocationSet]:
    found: dict[str, AllocationSet] = {}
    marker: str | None = None
    while True:
        page = store.bookings(page=Page(limit=PAGE, marker=marker))
        if not page:
            return found
        allocated: dict[str, dict[str, Amounts]] = {}
        owners: dict[str, Consumer] = {}
        for consumer, booking in page:
            marker = consumer.uuid
            if booking.state is BookingState.ALLOCATED:
                owners[consumer.uuid] = consumer
                allocated.setdefault(consumer.uuid, {})[booking.provider] = booking.amounts
        for uuid, allocations in allocated.items():
            found[uuid] = AllocationSet(owners[uuid], allocations)
        advance(len(allocated))
