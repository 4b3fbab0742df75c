"""Reads resource classes, traits, consumers, bookings and usages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.store.read import bookings, stored_values
from moorage.store.read.reader import WHOLE_LEDGER, Reader

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import Consumer
    from moorage.usecases.ports import NamedRecord, Page


class BookingQueries(Reader):
    """See `Store`."""

    def resource_classes(self) -> Sequence[NamedRecord]:
        return self._backend.read(stored_values.resource_classes)

    def traits(self, names: Collection[str] | None = None) -> Sequence[NamedRecord]:
        return stored_values.traits(self._backend, names)

    def consumer(self, uuid: str) -> tuple[Consumer, Sequence[Booking]] | None:
        return bookings.consumer(self._backend, uuid)

    def allocations_of_consumer(
        self, uuid: str
    ) -> tuple[Consumer, Sequence[Booking], Mapping[str, int]] | None:
        return bookings.allocations_of_consumer(self._backend, uuid)

    def allocations_of_provider(self, uuid: str) -> tuple[int, Sequence[tuple[Consumer, Booking]]]:
        return bookings.allocations_of_provider(self._backend, uuid)

    def usages(
        self, project_id: str, user_id: str | None = None
    ) -> Sequence[tuple[Consumer, Booking]]:
        return self._backend.read(
            lambda connection: bookings.usages(connection, project_id, user_id)
        )

    def bookings(
        self,
        *,
        provider: str | None = None,
        consumer: str | None = None,
        decision: str | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[tuple[Consumer, Booking]]:
        """See `Store`. Pages go by consumer: `limit` of them, after the one named `marker`."""
        return self._backend.read(
            lambda connection: bookings.bookings(
                connection,
                now=self.now(),
                provider=provider,
                consumer=consumer,
                decision=decision,
                page=page,
            )
        )

    def idle_consumers(self) -> Sequence[str]:
        return self._backend.read(bookings.idle_consumers)

    def held(self, project_id: str | None) -> int:
        return self._backend.read(
            lambda connection: bookings.held(connection, project_id, now=self.now())
        )
