"""The ledger's records as Placement's API shows them, for comparison with a Placement service."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.content import AllocationSet, Content
from moorage.usecases.paging import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import Consumer
    from moorage.domain.topology import Topology
    from moorage.usecases.ports import Store

PAGE: Final = 5_000
"""Consumers read in one page."""


def ledger_content(store: Store, *, advance: Callable[[int], None] = lambda _: None) -> Content:
    """The ledger's providers, names and allocations.

    Holds are left out, as Placement's API does not show them. The read is consistent only while
    nobody writes: a consumer that changes between two pages is read as of its own page. `advance`
    is called with 1 for every consumer.
    """
    snapshot = store.snapshot()
    providers = {}
    for state in snapshot.states:
        if state is not None:
            one = state.provider
            stock = tuple(sorted(one.inventories, key=lambda item: item.resource_class))
            providers[one.uuid] = replace(one, inventories=stock)
    classes = {one.name: one.updated_at for one in store.resource_classes()}
    traits = {one.name: one.updated_at for one in store.traits()}
    return Content(
        providers=providers,
        consumers=_sets(store, advance),
        resource_classes=tuple(classes),
        traits=frozenset(traits),
        class_times=classes,
        trait_times=traits,
    )


def _sets(store: Store, advance: Callable[[int], None]) -> dict[str, AllocationSet]:
    found: dict[str, AllocationSet] = {}
    for one in booked_sets(store):
        allocated = one.allocated
        if allocated:
            amounts = {booking.provider: booking.amounts for booking in allocated}
            found[one.consumer.uuid] = AllocationSet(one.consumer, amounts)
            advance(1)
    return found


def topology_content(topology: Topology) -> tuple[object, ...]:
    """The content of a topology, comparable: without line numbers of its file."""
    return (
        dict(topology.levels),
        {key: (one.level, one.parent) for key, one in topology.domains.items()},
        dict(topology.attachments),
    )


@dataclass(frozen=True, slots=True)
class ConsumerBookings:
    """A consumer with all of its live bookings."""

    consumer: Consumer
    bookings: tuple[Booking, ...]

    @property
    def allocated(self) -> tuple[Booking, ...]:
        """Its allocations, which Placement's API shows."""
        return tuple(one for one in self.bookings if one.state is BookingState.ALLOCATED)


def booked_sets(store: Store) -> Iterator[ConsumerBookings]:
    """All consumers with live bookings, by UUID, read page by page."""
    marker: str | None = None
    while page := store.bookings(page=Page(limit=PAGE, marker=marker)):
        for uuid, some in groupby(page, key=lambda owned: owned[0].uuid):
            owned = list(some)
            yield ConsumerBookings(owned[0][0], tuple(booking for _, booking in owned))
            marker = uuid
