"""The fields of a snapshot: the ledger's providers at one revision as columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from moorage.engine.state.consumer_locations import ConsumerRows
from moorage.engine.state.owners import Owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.domain.request_mix import StatedMix
    from moorage.domain.topology import Topology
    from moorage.engine.state.chunks import Chunks
    from moorage.engine.state.columns import ClassColumns, ProviderState

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LedgerColumns:
    """P providers at one revision. Rows are stable between revisions while providers live."""

    revision: int
    topology_revision: int
    """Moves when the topology or the stated mix changes."""
    exclusive_revision: int
    """Of all ensembles that keep others out: not newer than what else is seen here."""
    waited: bool
    """Whether the waitlist had waiting entries."""
    taken_at: Instant
    valid_until: Instant
    """The next instant at which time alone changes an answer (a lapse, a start or an end)."""
    uuids: tuple[str, ...]
    names: tuple[str, ...]
    row_of: Mapping[str, int]
    """UUID -> row."""
    parent: Rows
    """[P] parent row or -1."""
    root: Rows
    """[P] root row (its own for a root)."""
    alive: Bools
    """[P] False for rows of deleted providers."""
    generation: Ints
    revisions: Ints
    """[P] internal revision per provider."""
    created_at: Ints
    updated_at: Ints
    classes: Mapping[str, ClassColumns]
    traits: Mapping[str, Bools]
    """Trait -> [P] mask; absent: no provider has it."""
    aggregates: Mapping[str, Rows]
    """Aggregate UUID -> rows, ascending."""
    topology: Topology
    states: Chunks[ProviderState | None] = field(repr=False)
    """[P] as the store's feed delivered them; None for rows of deleted providers."""
    next_change: Ints = field(repr=False)
    """[P] the next instant at which time alone changes the row; `FOREVER` if never."""
    preemptible: Bools = field(repr=False)
    """[P] whether any booking on the row may be ended for a lease."""
    stated_mix: StatedMix | None = None
    """What others are expected to ask for, as an operator stated it."""
    offered_by: Mapping[int, str] = field(default_factory=dict)
    """Row of a server provider -> the consumer that offers it."""
    noted_hosts: frozenset[int] = frozenset()
    """Rows of root providers with planned absences, or with a `HostRecord`."""
    cache: dict[object, object] = field(default_factory=dict, repr=False)
    """Values derived from names, trees and topology; shared by snapshots that agree in these."""
    consumer_rows: ConsumerRows = field(default_factory=ConsumerRows, repr=False)
    """Index from consumer to rows; built at the first lookup, passed on to later snapshots."""
    owners: Owners = field(default_factory=Owners, repr=False)
    """Kinds of consumers by row; built at the first lookup, passed on to later snapshots."""

    def state(self, row: int) -> ProviderState:
        """The state of a living row as the store delivered it."""
        state = self.states[row]
        assert state is not None, f"row {row} is of a deleted provider"
        return state

    def rows_of_consumer(self, consumer: str) -> tuple[int, ...]:
        """Rows on which the consumer has stored bookings, live or lapsed."""
        return tuple(
            row
            for row in sorted(self.consumer_rows.rows(consumer, self.states))
            if row < len(self.states)
            and (state := self.states[row]) is not None
            and any(one.consumer == consumer for one in state.occupants)
        )

    def live_bookings(self, consumers: Iterable[str]) -> Mapping[str, tuple[Booking, ...]]:
        """The live bookings of those of the consumers that have some, by row of the provider.

        Each row is read once: a host may have as many of an ensemble's members as it has bookings.
        """
        found: dict[str, list[Booking]] = {consumer: [] for consumer in consumers}
        index, states, now = self.consumer_rows, self.states, self.taken_at
        for row in sorted({row for one in found for row in index.rows(one, states)}):
            state = states[row] if row < len(states) else None
            for booking in () if state is None else state.bookings:
                mine = found.get(booking.consumer)
                if mine is not None and booking.live(now):
                    mine.append(booking)
        return {consumer: tuple(some) for consumer, some in found.items() if some}
