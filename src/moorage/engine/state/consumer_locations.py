"""Where consumers have bookings, kept from one snapshot to the next."""

from __future__ import annotations

from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.engine.state.columns import ProviderState

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
                    self._rows = self._noting({}, enumerate(map(consumers, states)))
                    self._enough = 2 * self._noted + _SLACK
        return self._rows.get(consumer, ())

    def after(self, came: Iterable[tuple[int, Iterable[str]]]) -> Whereabouts:
        """What a snapshot has in which these consumers came to rows: this one, or a new one.

        Those who were there already may be among them.
        """
        if self._rows is None or self._noted > self._enough:
            return Whereabouts()
        with self._writing:
            self._noting(self._rows, came)
        return self

    def _noting(
        self, rows: dict[str, tuple[int, ...]], came: Iterable[tuple[int, Iterable[str]]]
    ) -> dict[str, tuple[int, ...]]:
        for row, some in came:
            for consumer in some:
                known = rows.get(consumer, ())
                if row not in known:
                    rows[consumer] = (*known, row)
                    self._noted += 1
        return rows


def consumers(state: ProviderState | None) -> Iterable[str]:
    """Everybody on a provider."""
    return () if state is None else map(_CONSUMER, state.occupants)


_CONSUMER: Final = attrgetter("consumer")
