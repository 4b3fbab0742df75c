"""Who stands on each provider, without telling consumers of one project apart.

There may be a million consumers and few kinds of them; a policy that keeps strangers away needs the
kinds only. They are kept per chunk of states, and renewed where states have changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.period import FOREVER
from moorage.engine.state.chunks import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from moorage.domain.period import Instant, Period
    from moorage.domain.placement import Occupant
    from moorage.engine.state.chunks import Chunks
    from moorage.engine.state.columns import ProviderState

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

Forbids: TypeAlias = "Callable[[Occupant], bool]"
"""Judges an occupant by its project and tags; it gets one without a consumer."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The owners on one provider."""

    state: ProviderState | None
    kinds: tuple[int, ...]
    """Numbers of the kinds of its owners, each once."""
    settled_from: Instant
    """From this instant on all of its bookings occupy for ever; `FOREVER`: some do not."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    states: tuple[ProviderState | None, ...]
    rows: tuple[_Row, ...]
    number_of: dict[Occupant, int]
    """The number of each kind in the chunk, and of some that have left it."""
    pairs: tuple[Ints, Ints]
    """Numbers of kinds, and the rows (within the chunk) where they stand."""
    settled_from: Ints


_NOBODY: Final = _Row(None, (), 0)
_UNUSED: Final = 64
"""So many more kinds than stand in a chunk are kept; then all are numbered anew."""


class Owners:
    """Kinds of owners by provider row, shared by a snapshot and those that follow it."""

    def __init__(self) -> None:
        self._chunks: dict[int, _Chunk] = {}

    def rows_with(
        self, states: Chunks[ProviderState | None], forbids: Forbids, period: Period
    ) -> tuple[Bools, Bools]:
        """The rows where somebody forbidden stands in a period that begins now or later.

        Returns:
            [P] such rows, and [P] rows that must be looked at one by one: bookings on them begin or
            end, so that the first is an upper bound for them.
        """
        found = np.zeros(len(states), dtype=np.bool_)
        unsettled = np.zeros(len(states), dtype=np.bool_)
        for number, chunk in enumerate(states.chunks):
            known = self._chunks.get(number)
            if known is None or known.states is not chunk:
                # Another thread may do the same; either result is right.
                known = self._chunks[number] = _summary(chunk, known)
            first, (kinds, rows) = number * SIZE, known.pairs
            bad = np.array([forbids(one) for one in known.number_of], dtype=np.bool_)
            found[first + rows[bad[kinds]]] = True
            unsettled[first : first + len(chunk)] = known.settled_from >= period.end
        return found, unsettled & found


def _summary(states: tuple[ProviderState | None, ...], old: _Chunk | None) -> _Chunk:
    """A chunk's kinds; rows whose states have not changed are those of the chunk before."""
    before = () if old is None else old.rows
    number_of = {} if old is None else dict(old.number_of)
    rows = tuple(
        before[number]
        if number < len(before) and before[number].state is state
        else _row(state, number_of)
        for number, state in enumerate(states)
    )
    kinds = np.array([kind for row in rows for kind in row.kinds], dtype=np.int64)
    if old is not None and len(number_of) > len(np.unique(kinds)) + _UNUSED:
        return _summary(states, None)
    counts = np.array([len(row.kinds) for row in rows], dtype=np.int64)
    at = np.repeat(np.arange(len(rows)), counts)
    settled = np.array([row.settled_from for row in rows], dtype=np.int64)
    return _Chunk(states, rows, number_of, (kinds, at), settled)


def _row(state: ProviderState | None, number_of: dict[Occupant, int]) -> _Row:
    """The kinds of owners on one provider; those not seen before get the next numbers."""
    if state is None:
        return _NOBODY
    # In a state without some consumers' bookings, as one that preemption looks at, they are not.
    there = {one.consumer for one in state.bookings}
    kinds: dict[tuple[str, frozenset[str]], Occupant] = {}
    for one in state.occupants:
        if one.consumer in there:
            kinds.setdefault((one.project_id, one.tags), one)
    settled_from = max((one.period.start for one in state.bookings), default=0)
    if any(one.period.end != FOREVER or one.lapses_at != FOREVER for one in state.bookings):
        settled_from = FOREVER
    owners = (replace(one, consumer="") for one in kinds.values())
    numbers = tuple(number_of.setdefault(one, len(number_of)) for one in owners)
    return _Row(state, numbers, settled_from)
