"""What all queries of the ledger share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from moorage.store.read import stored_values
from moorage.usecases.ports import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Select, Table

    from moorage.domain.period import Instant
    from moorage.store.backend import Backend
    from moorage.store.values.codec import Shape
    from moorage.usecases.ports import Clock

    T = TypeVar("T")

WHOLE_LEDGER: Final = Page()


class Reader:
    """Base of the queries. Each is a transaction of its own and may run in any thread."""

    def __init__(self, backend: Backend, clock: Clock | None) -> None:
        self._backend = backend
        self._clock = clock

    def now(self) -> Instant:
        return self._backend.now() if self._clock is None else self._clock.now()

    def _listed(
        self, table: Table, shape: Shape[T], wanted: Select[Any], page: Page
    ) -> Sequence[T]:
        """Values by creation, one page of them."""
        return self._backend.read(
            lambda connection: stored_values.listed(
                connection, table, shape, wanted, newest_first=False, page=page
            )
        )
