"""Bodies over the fleet, put together from encoded pieces.

A body over a thousand hosts is mostly what it was a moment ago. What it says of a provider is
encoded once per state of the provider and kept by row; a candidate is a text with holes for
UUIDs, made once for all trees in which the same positions give the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, count, pairwise
from operator import is_not
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from moorage.api.placement.names import trait_order
from moorage.domain.virtual import MOST
from moorage.engine.chunks import SIZE
from moorage.engine.sharing import SHARES
from moorage.engine.stays import PLENTY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.providers import ResourceProvider
    from moorage.engine.candidates import Batch, Candidate
    from moorage.engine.reach import Want
    from moorage.engine.search import Picks
    from moorage.engine.snapshot import ProviderState, Snapshot

    Rows: TypeAlias = NDArray[np.integer]
    Encode: TypeAlias = Callable[[Snapshot, int, ProviderState], bytes]

_encode = msgspec.json.Encoder().encode
_HOLE: Final = "%s"
_TABLE: Final = 256 * 1024
"""Bytes of candidates written at once."""
_FORMS: Final = 512
"""Candidates' texts with holes that are kept for later queries; few have more than a kilobyte."""


# --- candidates -----------------------------------------------------------------------------


def allocation_requests(snapshot: Snapshot, found: Sequence[Candidate]) -> bytes:
    """The candidates as the newest version shows them, by comma: by provider, with mappings."""
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
    return _encode(shown)[1:-1]


def batched_requests(
    snapshot: Snapshot, slots: tuple[Want, ...], found: Sequence[Batch]
) -> tuple[list[bytes], Rows]:
    """The same for candidates that are still together by what they have in common.

    Returns:
        The texts, and the rows of every provider that gives something, perhaps repeated.
    """
    writer = _Writer(snapshot, slots)
    texts: list[bytes] = []
    for batch in found:
        if len(batch.trees) == 1:
            tree = batch.trees[0].tolist()
            each = [writer.one([tree[at] for at in picks]) for picks in batch.selections]
            texts.append(f"{','.join(each)},".encode())
        else:
            texts += writer.alike(batch)
    if texts:
        texts[-1] = texts[-1][:-1]
    return texts, writer.used()


class _Writer:
    """Texts of one query's candidates. Class names and suffixes hold no percent sign."""

    def __init__(self, snapshot: Snapshot, slots: tuple[Want, ...]) -> None:
        self._snapshot = snapshot
        self._uuids = snapshot.uuids
        self._slots = slots
        self._givers: set[int] = set()
        self._columns: list[Rows] = []
        self._giving = [1 << n if slot.amounts else 0 for n, slot in enumerate(slots)]
        self._suffixed = [n for n, slot in enumerate(slots) if slot.suffix]
        self._plain = [n for n, slot in enumerate(slots) if not slot.suffix]
        self._resources: dict[int, str] = {}
        self._gives: dict[tuple[int, int], str] = {}
        """(row, bits: slots it gives) -> its entry in `allocations`."""
        self._maps: list[dict[int, str]] = [{} for _ in slots]
        """Per suffixed slot: row -> its entry in `mappings`."""

    def used(self) -> Rows:
        """The rows of who gives something in what was written, perhaps repeated."""
        return np.concatenate([np.fromiter(self._givers, dtype=np.int64), *self._columns])

    def one(self, rows: Sequence[int]) -> str:
        """The candidate in which these rows give the slots."""
        gives: dict[int, int] = {}
        for row, bit in zip(rows, self._giving, strict=True):
            gives[row] = gives.get(row, 0) | bit
        amounts = [self._gives.get(item) or self._entry(*item) for item in gives.items() if item[1]]
        self._givers.update([row for row, bits in gives.items() if bits])
        names = [self._maps[n].get(rows[n]) or self._mapping(n, rows[n]) for n in self._suffixed]
        if self._plain:
            names.append(_mapping("", [self._uuids[row] for row in {rows[n] for n in self._plain}]))
        return _candidate(amounts, names)

    def alike(self, batch: Batch) -> Iterator[bytes]:
        """The candidates in which the same positions of several trees give the same."""
        forms = [_form(self._slots, picks) for picks in batch.selections]
        givers = {position for form in forms for position in form.givers}
        self._columns += [batch.trees[:, position] for position in givers]
        filled = _by_columns if _alike_long(self._snapshot, batch.trees) else _one_by_one
        for form in forms:
            columns = [batch.trees[:, hole] for hole in form.holes]
            yield from filled(self._snapshot, form.text, columns)

    def _entry(self, row: int, bits: int) -> str:
        found = self._gives[row, bits] = f'"{self._uuids[row]}":{self._amounts(bits)}'
        return found

    def _mapping(self, number: int, row: int) -> str:
        text = _mapping(self._slots[number].suffix, [self._uuids[row]])
        self._maps[number][row] = text
        return text

    def _amounts(self, bits: int) -> str:
        """What one provider gives to some slots together."""
        found = self._resources.get(bits)
        if found is None:
            found = self._resources[bits] = _summed(self._slots, bits)
        return found


@dataclass(frozen=True, slots=True)
class _Form:
    """A candidate's text with holes."""

    text: str
    holes: tuple[int, ...]
    """The positions whose UUIDs fill the holes in turn."""
    givers: tuple[int, ...]
    """The positions that give something."""


@lru_cache(maxsize=_FORMS)
def _form(slots: tuple[Want, ...], picks: Picks) -> _Form:
    """The candidate in which these positions of a tree give the slots."""
    gives: dict[int, int] = {}
    maps: dict[str, list[int]] = {}
    for number, (slot, position) in enumerate(zip(slots, picks, strict=True)):
        gives[position] = gives.get(position, 0) | (1 << number if slot.amounts else 0)
        maps.setdefault(slot.suffix, []).append(position)
    givers = [position for position, bits in gives.items() if bits]
    amounts = [f'"{_HOLE}":{_summed(slots, bits)}' for bits in gives.values() if bits]
    holes, names = list(givers), []
    for suffix, positions in maps.items():
        distinct = list(dict.fromkeys(positions))
        names.append(_mapping(suffix, [_HOLE] * len(distinct)))
        holes += distinct
    return _Form(_candidate(amounts, names), tuple(holes), tuple(givers))


def _summed(slots: Sequence[Want], bits: int) -> str:
    """What one provider gives that serves the slots of these bits."""
    sums: dict[str, int] = {}
    for number, slot in enumerate(slots):
        if bits >> number & 1:
            for name, amount in slot.amounts:
                sums[name] = sums.get(name, 0) + amount
    return f'{{"resources":{_encode(sums).decode()}}}'


def _by_columns(snapshot: Snapshot, text: str, columns: Sequence[Rows]) -> Iterator[bytes]:
    """A text with holes, filled with names of one length row by row, a comma after each.

    All copies of the text stand in one table of bytes, and each hole is one column of it.
    """
    names = _names(snapshot)
    width = names.itemsize
    parts = f"{text},".encode().split(_HOLE.encode())
    form = np.frombuffer((b"\0" * width).join(parts), dtype=np.uint8)
    starts = np.cumsum([len(part) + width for part in parts[:-1]]) - width
    some = max(1, _TABLE // len(form))
    for first in range(0, len(columns[0]), some):
        table = np.empty((len(columns[0][first : first + some]), len(form)), dtype=np.uint8)
        table[:] = form
        for start, rows in zip(starts.tolist(), columns, strict=True):
            hole = np.ndarray((len(table),), names.dtype, table, start, (len(form),))
            hole[:] = names[rows[first : first + some]]
        yield table.tobytes()


def _one_by_one(snapshot: Snapshot, text: str, columns: Sequence[Rows]) -> Iterator[bytes]:
    """The same for names of any length."""
    uuids = snapshot.uuids
    for rows in zip(*[column.tolist() for column in columns], strict=True):
        yield f"{text % tuple([uuids[row] for row in rows])},".encode()


def _alike_long(snapshot: Snapshot, rows: Rows) -> bool:
    """Whether all these rows have names of one length, in ASCII, as UUIDs have."""
    names = _names(snapshot)
    return bool(names.itemsize and names[rows].view(np.uint8).all())


def _names(snapshot: Snapshot) -> NDArray[np.bytes_]:
    """UUIDs by row, filled up with NUL to one length; empty where one of them is not ASCII."""
    kept = snapshot.cache.get("names")
    if not isinstance(kept, np.ndarray):
        try:
            kept = np.array(snapshot.uuids, dtype=np.bytes_)
        except UnicodeEncodeError:
            kept = np.zeros(0, dtype=np.bytes_)
        snapshot.cache["names"] = kept
    return kept


def _candidate(amounts: Sequence[str], names: Sequence[str]) -> str:
    return f'{{"allocations":{{{",".join(amounts)}}},"mappings":{{{",".join(names)}}}}}'


def _mapping(suffix: str, uuids: Sequence[str]) -> str:
    listed = '","'.join(uuids)
    return f'"{suffix}":["{listed}"]'


# --- what is said of one provider ---------------------------------------------------------------


class Fragments:
    """What is said of each provider, encoded once per state of it and kept joined.

    One text for each chunk of the snapshot's states, which is good as long as the chunk is the
    same value: an answer about much of a fleet is these very texts. May be used from several
    threads: a text and the chunk it was made from change together.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._kept: dict[int, _Joined] = {}

    def of(self, snapshot: Snapshot, rows: Rows) -> list[bytes]:
        """What is said of some living rows, ascending, by comma; in as few parts as may be."""
        parts: list[bytes] = []
        for number, some in _by_chunk(rows):
            joined = self._joined(snapshot, number)
            if some[-1] - some[0] + 1 == len(some):
                ends = joined.ends
                parts.append(joined.text[ends[some[0]] : ends[some[-1] + 1]])
            else:
                single = joined.single()
                parts += [single[at] for at in some]
        if parts:
            parts[-1] = parts[-1][:-1]
        return parts

    def _joined(self, snapshot: Snapshot, number: int) -> _Joined:
        states = snapshot.states.parts[number]
        kept = self._kept.get(number, _EMPTY)
        if kept.states is not states:
            if len(kept.states) > len(states):  # the snapshot is an older one
                kept = _EMPTY
            encode, first = self._encode, number * SIZE
            kept = self._kept[number] = kept.renewed(
                states, lambda at, state: encode(snapshot, first + at, state)
            )
        return kept


@dataclass(slots=True)
class _Joined:
    """What is said of the providers of one chunk, a comma after each; nothing of deleted ones."""

    states: tuple[ProviderState | None, ...]
    text: bytes
    ends: list[int]
    """[i] where the piece before item i ends, and its own begins."""
    _single: list[bytes] | None = None

    def single(self) -> list[bytes]:
        """The pieces one by one; kept once somebody has wanted some that do not stand together."""
        if self._single is None:
            self._single = [self.text[start:end] for start, end in pairwise(self.ends)]
        return self._single

    def renewed(
        self,
        states: tuple[ProviderState | None, ...],
        said: Callable[[int, ProviderState], bytes],
    ) -> _Joined:
        """The same for states that follow: only what is said of changed ones is made anew."""
        more = len(states) - len(self.states)
        ends = [*self.ends, *[self.ends[-1]] * more]
        changed = list(compress(count(), map(is_not, (*self.states, *[None] * more), states)))
        sizes = np.diff(ends)
        single = None if self._single is None else [*self._single, *[b""] * more]
        parts: list[bytes] = []
        at = 0
        for one in changed:
            state = states[one]
            piece = b"" if state is None else said(one, state) + b","
            sizes[one] = len(piece)
            if single is not None:
                single[one] = piece
            parts += (self.text[ends[at] : ends[one]], piece)
            at = one + 1
        parts.append(self.text[ends[at] :])
        return _Joined(states, b"".join(parts), [0, *np.cumsum(sizes).tolist()], single)


_EMPTY: Final = _Joined((), b"", [0])


def _by_chunk(rows: Rows) -> Iterator[tuple[int, list[int]]]:
    """Ascending rows as numbers of chunks with the places there."""
    number = rows // SIZE
    first = [0, *(np.flatnonzero(number[1:] != number[:-1]) + 1).tolist(), len(rows)]
    places = (rows % SIZE).tolist()
    for start, end in pairwise(first if len(rows) else ()):
        yield int(number[start]), places[start:end]


def summary(snapshot: Snapshot, row: int, state: ProviderState) -> bytes:
    """A provider's entry in `provider_summaries`."""
    return _summary(state.provider, _resources(snapshot, row, state))


def summary_with_terms(snapshot: Snapshot, row: int, state: ProviderState) -> bytes:
    """The same to who asks for a class of terms: of these every root provider has plenty."""
    provider = state.provider
    resources = _resources(snapshot, row, state)
    if provider.parent_uuid is None and SHARES not in provider.traits:
        resources |= {name: {"capacity": PLENTY, "used": 0} for name in MOST}
    return _summary(provider, resources)


def _summary(provider: ResourceProvider, resources: Mapping[str, Mapping[str, int]]) -> bytes:
    body = {
        "resources": resources,
        "traits": sorted(provider.traits, key=trait_order),
        "parent_provider_uuid": provider.parent_uuid,
        "root_provider_uuid": provider.root_uuid,
    }
    return b"%b:%b" % (_encode(provider.uuid), _encode(body))


def _resources(snapshot: Snapshot, row: int, state: ProviderState) -> dict[str, dict[str, int]]:
    found = {}
    for inventory in state.provider.inventories:
        columns = snapshot.classes[inventory.resource_class]
        at = columns.position[row]
        found[inventory.resource_class] = {
            "capacity": int(columns.capacity[at]),
            "used": int(columns.used[at]),
        }
    return found
