"""Bodies over the fleet, put together from encoded pieces.

A body over a thousand hosts is mostly what it was a moment ago. What it says of a provider is
encoded once per state of the provider and kept by row; a candidate is a text with holes for
UUIDs, made once for all trees in which the same positions give the same.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from moorage.api.placement.names import trait_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.engine.candidates import Batch, Candidate, Piece
    from moorage.engine.search import Picks
    from moorage.engine.snapshot import ProviderState, Snapshot

    Encode: TypeAlias = Callable[[Snapshot, int, ProviderState], bytes]
    Fill: TypeAlias = Callable[[Sequence[str]], str]
    """Puts a tree's UUIDs, by position, into a candidate's text."""

_encode = msgspec.json.Encoder().encode
_NOTHING: tuple[None, bytes] = (None, b"")


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


def batched_requests(snapshot: Snapshot, pieces: Sequence[Piece], found: Sequence[Batch]) -> bytes:
    """The same for candidates that are still together by what they have in common."""
    uuids, writer = snapshot.uuids, _Writer(pieces)
    texts: list[str] = []
    for batch in found:
        fill = writer.fill(batch.picks)
        texts.extend([fill([uuids[row] for row in tree]) for tree in batch.trees])
    return f"[{','.join(texts)}]".encode()


class _Writer:
    """Texts of one query's candidates. Class names and suffixes hold no percent sign."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._fills: dict[Picks, Fill] = {}
        self._resources: dict[tuple[int, ...], str] = {}

    def fill(self, picks: Picks) -> Fill:
        """What writes a candidate with these picks."""
        found = self._fills.get(picks)
        if found is None:
            found = self._fills[picks] = self._made(picks)
        return found

    def _made(self, picks: Picks) -> Fill:
        gives: dict[int, tuple[int, ...]] = {}
        maps: dict[str, list[int]] = {}
        for number, (piece, position) in enumerate(zip(self._pieces, picks, strict=True)):
            if piece.wants:
                gives[position] = (*gives.get(position, ()), number)
            givers = maps.setdefault(piece.suffix, [])
            if position not in givers:
                givers.append(position)
        amounts = ",".join([self._amounts(numbers) for numbers in gives.values()])
        names = ",".join(
            [f'"{suffix}":[{",".join(["%s"] * len(of))}]' for suffix, of in maps.items()]
        ).replace("%s", '"%s"')
        text = f'{{"allocations":{{{amounts}}},"mappings":{{{names}}}}}'
        return _filling(text, [*gives, *(one for of in maps.values() for one in of)])

    def _amounts(self, numbers: tuple[int, ...]) -> str:
        """What one provider gives to some pieces together."""
        found = self._resources.get(numbers)
        if found is None:
            sums: dict[str, int] = {}
            for number in numbers:
                for name, amount in self._pieces[number].wants.items():
                    sums[name] = sums.get(name, 0) + amount
            found = self._resources[numbers] = f'"%s":{{"resources":{_encode(sums).decode()}}}'
        return found


def _filling(text: str, holes: Sequence[int]) -> Fill:
    if not holes:
        return lambda _: text
    if len(set(holes)) == 1:
        parts, only = text.split("%s"), holes[0]
        return lambda uuids: uuids[only].join(parts)
    pick = itemgetter(*holes)
    return lambda uuids: text % pick(uuids)


# --- what is said of one provider ---------------------------------------------------------------


class Fragments:
    """Encoded pieces by row, each kept as long as the provider's state is the same value.

    May be used from several threads: a piece and the state it was made from change together.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._kept: list[tuple[ProviderState | None, bytes]] = []

    def of(self, snapshot: Snapshot, rows: Sequence[int]) -> bytes:
        """The pieces of some living rows, by comma."""
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
        return b",".join(pieces)


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
