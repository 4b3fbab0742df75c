"""Bodies over the fleet, put together from encoded pieces.

A body over a thousand hosts is mostly what it was a moment ago. What it says of a provider is
encoded once per state of the provider and kept by row; a candidate is a text with holes for
UUIDs, made once for all trees in which the same positions give the same.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from moorage.api.placement.names import trait_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.candidates import Batch, Candidate, Piece
    from moorage.engine.search import Picks
    from moorage.engine.snapshot import ProviderState, Snapshot

    Rows: TypeAlias = NDArray[np.integer]
    Encode: TypeAlias = Callable[[Snapshot, int, ProviderState], bytes]

_encode = msgspec.json.Encoder().encode
_NOTHING: Final[tuple[None, bytes]] = (None, b"")
_HOLE: Final = "%s"
BLOCK: Final = 64
"""Rows whose pieces are also kept joined."""


# --- candidates -----------------------------------------------------------------------------


def allocation_requests(snapshot: Snapshot, found: Sequence[Candidate]) -> bytes:
    """The candidates as the newest version shows them: by provider, with mappings."""
    uuids = snapshot.uuids
    shown = [
        {
            "allocations": {
                uuids[row]: {"resources": dict(taken)} for row, taken in one.allocations
            },
            "mappings": {suffix: [uuids[row] for row in rows] for suffix, rows in one.mappings},
        }
        for one in found
    ]
    return _encode(shown)


def batched_requests(
    snapshot: Snapshot, pieces: Sequence[Piece], found: Sequence[Batch]
) -> tuple[bytes, set[int]]:
    """The same for candidates that are still together by what they have in common.

    Returns:
        The list as bytes, and the rows of every provider that gives something.
    """
    writer = _Writer(snapshot.uuids, pieces)
    texts: list[str] = []
    used: set[int] = set()
    for batch in found:
        if len(batch.trees) == 1:
            tree = batch.trees[0].tolist()
            texts += [writer.one([tree[at] for at in picks], used) for picks in batch.selections]
        else:
            texts += writer.alike(batch, used)
    return f"[{','.join(texts)}]".encode(), used


class _Writer:
    """Texts of one query's candidates. Class names and suffixes hold no percent sign."""

    def __init__(self, uuids: Sequence[str], pieces: Sequence[Piece]) -> None:
        self._uuids = uuids
        self._pieces = pieces
        self._giving = [1 << n if piece.wants else 0 for n, piece in enumerate(pieces)]
        self._suffixed = [n for n, piece in enumerate(pieces) if piece.suffix]
        self._plain = [n for n, piece in enumerate(pieces) if not piece.suffix]
        self._resources: dict[int, str] = {}
        self._gives: dict[tuple[int, int], str] = {}
        """(row, bits: pieces it gives) -> its entry in `allocations`."""
        self._maps: list[dict[int, str]] = [{} for _ in pieces]
        """Per suffixed piece: row -> its entry in `mappings`."""

    def one(self, rows: Sequence[int], used: set[int]) -> str:
        """The candidate in which these rows give the pieces; adds givers to `used`."""
        gives: dict[int, int] = {}
        for row, bit in zip(rows, self._giving, strict=True):
            gives[row] = gives.get(row, 0) | bit
        amounts = [self._gives.get(item) or self._entry(*item) for item in gives.items() if item[1]]
        used.update([row for row, bits in gives.items() if bits])
        names = [self._maps[n].get(rows[n]) or self._mapping(n, rows[n]) for n in self._suffixed]
        if self._plain:
            names.append(_mapping("", [self._uuids[row] for row in {rows[n] for n in self._plain}]))
        return _candidate(amounts, names)

    def alike(self, batch: Batch, used: set[int]) -> Iterator[str]:
        """The candidates in which the same positions of several trees give the same."""
        givers: set[int] = set()
        forms = [self._form(picks, givers) for picks in batch.selections]
        uuids = self._uuids
        names: dict[int, list[str]] = {}
        for position in {hole for _, holes in forms for hole in holes}:
            rows = batch.trees[:, position].tolist()
            names[position] = [uuids[row] for row in rows]
            if position in givers:
                used.update(rows)
        for text, holes in forms:
            if len(set(holes)) == 1:
                parts = text.split(_HOLE)
                yield from [name.join(parts) for name in names[holes[0]]]
            else:
                columns = [names[hole] for hole in holes]
                yield from [text % those for those in zip(*columns, strict=True)]

    def _form(self, picks: Picks, givers: set[int]) -> tuple[str, Sequence[int]]:
        """A candidate's text with holes, and the positions whose UUIDs fill them in turn."""
        gives: dict[int, int] = {}
        for position, bit in zip(picks, self._giving, strict=True):
            gives[position] = gives.get(position, 0) | bit
        maps: dict[str, list[int]] = {}
        for piece, position in zip(self._pieces, picks, strict=True):
            maps.setdefault(piece.suffix, []).append(position)
        holes = [position for position, bits in gives.items() if bits]
        givers.update(holes)
        amounts = [f'"{_HOLE}":{self._amounts(bits)}' for bits in gives.values() if bits]
        names = []
        for suffix, positions in maps.items():
            distinct = list(dict.fromkeys(positions))
            names.append(_mapping(suffix, [_HOLE] * len(distinct)))
            holes += distinct
        return _candidate(amounts, names), holes

    def _entry(self, row: int, bits: int) -> str:
        found = self._gives[row, bits] = f'"{self._uuids[row]}":{self._amounts(bits)}'
        return found

    def _mapping(self, number: int, row: int) -> str:
        text = _mapping(self._pieces[number].suffix, [self._uuids[row]])
        self._maps[number][row] = text
        return text

    def _amounts(self, bits: int) -> str:
        """What one provider gives to some pieces together."""
        found = self._resources.get(bits)
        if found is None:
            found = self._resources[bits] = self._summed(bits)
        return found

    def _summed(self, bits: int) -> str:
        sums: dict[str, int] = {}
        for number, piece in enumerate(self._pieces):
            if bits >> number & 1:
                for name, amount in piece.wants.items():
                    sums[name] = sums.get(name, 0) + amount
        return f'{{"resources":{_encode(sums).decode()}}}'


def _candidate(amounts: Sequence[str], names: Sequence[str]) -> str:
    return f'{{"allocations":{{{",".join(amounts)}}},"mappings":{{{",".join(names)}}}}}'


def _mapping(suffix: str, uuids: Sequence[str]) -> str:
    listed = '","'.join(uuids)
    return f'"{suffix}":["{listed}"]'


# --- what is said of one provider ---------------------------------------------------------------


class Fragments:
    """Encoded pieces by row, each kept as long as the provider's state is the same value.

    May be used from several threads: a piece and the state it was made from change together.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._kept: list[tuple[ProviderState | None, bytes]] = []
        self._blocks: dict[int, tuple[tuple[ProviderState | None, ...], bytes]] = {}
        """Pieces of neighbouring rows, joined: answers about much of a fleet are mostly these."""

    def within(self, snapshot: Snapshot, rows: Rows, *, before: bytes, after: bytes) -> bytes:
        """The pieces of some living rows, ascending, by comma, between two texts."""
        pieces = list(self._pieces(snapshot, rows))
        if not pieces:
            return before + after
        # Megabytes: they are copied once.
        pieces[0] = before + pieces[0]
        pieces[-1] += after
        return b",".join(pieces)

    def _pieces(self, snapshot: Snapshot, rows: Rows) -> Iterator[bytes]:
        """Row by row, but block by block where a whole block is wanted."""
        counts = np.bincount(rows // BLOCK)
        whole = counts == BLOCK
        if not whole.any():
            yield from self._each(snapshot, rows.tolist())
            return
        start, all_rows = 0, rows.tolist()
        for block, count in enumerate(counts.tolist()):
            if count == BLOCK:
                yield self._block(snapshot, block)
            elif count:
                yield from self._each(snapshot, all_rows[start : start + count])
            start += count

    def _each(self, snapshot: Snapshot, rows: Sequence[int]) -> list[bytes]:
        states, kept = snapshot.states, self._kept
        if len(kept) < len(states):
            kept.extend([_NOTHING] * (len(states) - len(kept)))
        pieces = []
        for row in rows:
            entry = kept[row]
            if entry[0] is not states[row]:
                state = snapshot.state(row)
                entry = kept[row] = (state, self._encode(snapshot, row, state))
            pieces.append(entry[1])
        return pieces

    def _block(self, snapshot: Snapshot, block: int) -> bytes:
        first = block * BLOCK
        states = snapshot.states[first : first + BLOCK]
        kept = self._blocks.get(block)
        if kept is None or not all(map(is_, kept[0], states)):
            text = b",".join(self._each(snapshot, range(first, first + BLOCK)))
            kept = self._blocks[block] = (states, text)
        return kept[1]


def summary(snapshot: Snapshot, row: int, state: ProviderState) -> bytes:
    """A provider's entry in `provider_summaries`."""
    provider = state.provider
    body = {
        "resources": _resources(snapshot, row, state),
        "traits": sorted(provider.traits, key=trait_order),
        "parent_provider_uuid": provider.parent_uuid,
        "root_provider_uuid": provider.root_uuid,
    }
    return b"%b:%b" % (_encode(provider.uuid), _encode(body))


def _resources(
    snapshot: Snapshot, row: int, state: ProviderState
) -> Mapping[str, Mapping[str, int]]:
    found = {}
    for inventory in state.provider.inventories:
        columns = snapshot.classes[inventory.resource_class]
        at = columns.position[row]
        found[inventory.resource_class] = {
            "capacity": int(columns.capacity[at]),
            "used": int(columns.used[at]),
        }
    return found
