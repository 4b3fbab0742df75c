"""Index from consumer to the provider rows on which it may have bookings."""

from __future__ import annotations

from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.engine.state.columns import ProviderState

_SLACK: Final = 50_000
"""Stale entries that are tolerated before the index is built again."""


class ConsumerRows:
    """Consumer -> rows on which it may have bookings: a superset, never too few.

    Built at the first lookup, and shared by the snapshots that follow. Rows are only added, so it
    is valid for all of them; callers check each row against the states of their snapshot.
    """

    def __init__(self) -> None:
        self._writing = Lock()
        self._rows: dict[str, tuple[int, ...]] | None = None
        self._entries = 0
        self._rebuild_above = 0

    def rows(self, consumer: str, states: Iterable[ProviderState | None]) -> tuple[int, ...]:
        """Rows on which the consumer may be; the first call builds the index from `states`."""
        if self._rows is None:
            with self._writing:
                if self._rows is None:
                    self._rows = self._add({}, enumerate(map(consumers_of, states)))
                    self._rebuild_above = 2 * self._entries + _SLACK
        return self._rows.get(consumer, ())

    def updated(self, added: Iterable[tuple[int, Iterable[str]]]) -> ConsumerRows:
        """The index of a snapshot in which these consumers were added to rows.

        This object with the rows added, or an unbuilt one if too many entries are stale.
        `added` may contain consumers that were there before.
        """
        if self._rows is None or self._entries > self._rebuild_above:
            return ConsumerRows()
        with self._writing:
            self._add(self._rows, added)
        return self

    def _add(
        self, rows: dict[str, tuple[int, ...]], added: Iterable[tuple[int, Iterable[str]]]
    ) -> dict[str, tuple[int, ...]]:
        for row, some in added:
            for consumer in some:
                known = rows.get(consumer, ())
                if row not in known:
                    rows[consumer] = (*known, row)
                    self._entries += 1
        return rows


def consumers_of(state: ProviderState | None) -> Iterable[str]:
    """The consumers with bookings on a provider."""
    return () if state is None else map(_CONSUMER, state.occupants)


_CONSUMER: Final = attrgetter("consumer")
