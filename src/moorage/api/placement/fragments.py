"""Bodies over the fleet, put together from encoded pieces.

A body over a thousand hosts is mostly what it was a moment ago. What it says of a provider is
encoded once per state of the provider and kept by row; a candidate is a text with holes for
UUIDs, made once for all trees in which the same positions give the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from moorage.api.placement.names import trait_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.engine.candidates import Batch, Candidate, Piece
    from moorage.engine.search import Picks
    from moorage.engine.snapshot import ProviderState, Snapshot

    Encode: TypeAlias = Callable[[Snapshot, int, ProviderState], bytes]

_encode = msgspec.json.Encoder().encode
_NOTHING: Final[tuple[None, bytes]] = (None, b"")
_HOLE: Final = "%s"
_BETWEEN: Final = '","'


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
    uuids, forms = snapshot.uuids, _Forms(pieces)
    texts: list[str] = []
    used: set[int] = set()
    for batch in found:
        form = forms.of(batch.picks)
        trees = batch.trees.tolist()
        texts += form.filled(uuids, trees)
        for position in form.gives:
            used.update([tree[position] for tree in trees])
    return f"[{','.join(texts)}]".encode(), used


@dataclass(frozen=True, slots=True)
class _Form:
    """A candidate's text with holes, and the positions whose UUIDs fill them in turn."""

    text: str
    holes: tuple[int, ...]
    gives: tuple[int, ...]
    """Positions that give something."""

    def filled(self, uuids: Sequence[str], trees: Sequence[Sequence[int]]) -> list[str]:
        """One text per tree."""
        if len(set(self.holes)) == 1:
            parts, only = self.text.split(_HOLE), self.holes[0]
            return [uuids[tree[only]].join(parts) for tree in trees]
        text, holes = self.text, self.holes
        return [text % tuple([uuids[tree[hole]] for hole in holes]) for tree in trees]


class _Forms:
    """Forms of one query's candidates. Class names and suffixes hold no percent sign."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._made: dict[Picks, _Form] = {}
        self._resources: dict[tuple[int, ...], str] = {}

    def of(self, picks: Picks) -> _Form:
        """The form of candidates with these picks."""
        found = self._made.get(picks)
        if found is None:
            found = self._made[picks] = self._form(picks)
        return found

    def _form(self, picks: Picks) -> _Form:
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
            [f'"{suffix}":["{_BETWEEN.join([_HOLE] * len(of))}"]' for suffix, of in maps.items()]
        )
        holes = (*gives, *[one for of in maps.values() for one in of])
        text = f'{{"allocations":{{{amounts}}},"mappings":{{{names}}}}}'
        return _Form(text, holes, tuple(gives))

    def _amounts(self, numbers: tuple[int, ...]) -> str:
        """What one provider gives to some pieces together."""
        found = self._resources.get(numbers)
        if found is None:
            sums: dict[str, int] = {}
            for number in numbers:
                for name, amount in self._pieces[number].wants.items():
                    sums[name] = sums.get(name, 0) + amount
            text = f'"{_HOLE}":{{"resources":{_encode(sums).decode()}}}'
            found = self._resources[numbers] = text
        return found


# --- what is said of one provider ---------------------------------------------------------------


class Fragments:
    """Encoded pieces by row, each kept as long as the provider's state is the same value.

    May be used from several threads: a piece and the state it was made from change together.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._kept: list[tuple[ProviderState | None, bytes]] = []

    def within(
        self, snapshot: Snapshot, rows: Sequence[int], *, before: bytes, after: bytes
    ) -> bytes:
        """The pieces of some living rows, by comma, between two texts."""
        pieces = self._pieces(snapshot, rows)
        if not pieces:
            return before + after
        # Megabytes: they are copied once.
        pieces[0] = before + pieces[0]
        pieces[-1] += after
        return b",".join(pieces)

    def _pieces(self, snapshot: Snapshot, rows: Sequence[int]) -> list[bytes]:
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
