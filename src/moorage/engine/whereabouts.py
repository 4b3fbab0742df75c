"""Where consumers have bookings, kept from one snapshot to the next."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.engine.columns import ProviderState

_SLACK: Final = 50_000
"""Notes of consumers that may have left since, before it is worth counting anew."""


class Whereabouts:
    """Consumer -> rows on which it may have bookings: perhaps too many, never too few.

    Made when somebody first asks, for all who see the same states; then shared by the snapshots
    that follow. Rows are only added, so it holds for all of them; whoever looks up compares with
    the states of the own snapshot.
    """

    def __init__(self) -> None:
        self._writing = Lock()
        self._rows: dict[str, tuple[int, ...]] | None = None
        self._noted = 0
        self._enough = 0

    def rows(self, consumer: str, states: Iterable[ProviderState | None]) -> tuple[int, ...]:
        """Where the consumer may be; `states` are the snapshot's, for the first who asks."""
        if self._rows is None:
            with self._writing:
                if self._rows is None:
                    self._rows = self._noting({}, enumerate(states))
                    self._enough = 2 * self._noted + _SLACK
        return self._rows.get(consumer, ())

    def after(self, changed: Iterable[tuple[int, ProviderState | None]]) -> Whereabouts:
        """What a snapshot has in which these rows changed: this one, with them, or a new one."""
        if self._rows is None or self._noted > self._enough:
            return Whereabouts()
        with self._writing:
            self._noting(self._rows, changed)
        return self

    def _noting(
        self, rows: dict[str, tuple[int, ...]], states: Iterable[tuple[int, ProviderState | None]]
    ) -> dict[str, tuple[int, ...]]:
        for row, state in states:
            for occupant in () if state is None else state.occupants:
                known = rows.get(occupant.consumer, ())
                if row not in known:
                    rows[occupant.consumer] = (*known, row)
                    self._noted += 1
        return rows
