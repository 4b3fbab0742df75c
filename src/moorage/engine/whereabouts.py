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

    Shared by a snapshot and those that follow from it. Rows are only added, so it holds for all
    of them; whoever looks up compares with the states of the own snapshot.
    """

    def __init__(self, states: Iterable[ProviderState | None]) -> None:
        self._writing = Lock()
        self._rows: dict[str, tuple[int, ...]] = {}
        self._noted = 0
        self.note(enumerate(states))
        self._enough = 2 * self._noted + _SLACK

    def note(self, states: Iterable[tuple[int, ProviderState | None]]) -> None:
        """Add rows with their states."""
        with self._writing:
            for row, state in states:
                for occupant in () if state is None else state.occupants:
                    rows = self._rows.get(occupant.consumer, ())
                    if row not in rows:
                        self._rows[occupant.consumer] = (*rows, row)
                        self._noted += 1

    @property
    def stale(self) -> bool:
        """Whether so much was noted since the start that a new one is smaller."""
        return self._noted > self._enough

    def rows(self, consumer: str) -> tuple[int, ...]:
        """Where the consumer may be."""
        return self._rows.get(consumer, ())
