"""Candidates as JSON text templates with holes for UUIDs.

A text is made once for all trees in which the same positions give the same, and kept for queries
that want the same; an answer is such texts, filled in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.api.placement.rendering import Text
    from moorage.engine.candidates.enumerate import Batch, Candidate
    from moorage.engine.candidates.query_shape import SlotRequest
    from moorage.engine.candidates.tree_search import Selection
    from moorage.engine.state.snapshot import Snapshot

    Rows: TypeAlias = NDArray[np.integer]

_encode = msgspec.json.Encoder().encode
_HOLE: Final = "%s"
_TABLE: Final = 256 * 1024
"""Bytes of candidates written at once."""
_WORTH_A_TABLE: Final = 16
"""Fewer trees are written one by one."""
_WORTH_FORMS: Final = 64
"""Selections that one tree has at most for each to be made a text with holes."""
_SHAPES: Final = 64
"""Kinds of candidates whose texts are cached for later queries."""
_FORMS: Final = 128
"""Texts kept of each sort; few have more than a kilobyte."""
_NOBODY: Final = np.zeros(0, dtype=np.int64)


def allocation_requests(snapshot: Snapshot, found: Sequence[Candidate]) -> bytes:
    """The candidates in the newest version's JSON, comma-separated: by provider, with mappings."""
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
    snapshot: Snapshot, slots: tuple[SlotRequest, ...], found: Sequence[Batch]
) -> tuple[list[Text], Rows]:
    """The same for candidates batched by tree shape.

    Returns:
        The texts, and the rows of every provider in them, perhaps repeated.
    """
    texts: list[Text] = []
    givers: list[Rows] = [_NOBODY]
    lone: _Lone | None = None
    form_of = _forms(slots)
    for batch in found:
        if len(batch.trees) == 1 and len(batch.selections) > _WORTH_FORMS:
            lone = lone or _Lone(snapshot, slots)
            texts.append(lone.every(batch))
            continue
        forms = [form_of(picks) for picks in batch.selections]
        givers += [batch.trees[:, at] for at in {at for form in forms for at in form.givers}]
        texts += _filled(snapshot, forms, batch.trees)
    if lone is not None:
        givers.append(np.fromiter(lone.givers, dtype=np.int64))
    if texts:
        texts[-1] = memoryview(texts[-1])[:-1]
    return texts, np.concatenate(givers)


# --- texts with holes -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """A candidate's JSON with holes for UUIDs, and a comma."""

    text: str
    holes: tuple[int, ...]
    """The positions whose UUIDs fill the holes in turn."""
    givers: tuple[int, ...]
    """The positions that give something."""


@lru_cache(maxsize=_SHAPES)
def _forms(slots: tuple[SlotRequest, ...]) -> Callable[[Selection], _Form]:
    """A cached function from picked positions to the form of their candidates."""
    return lru_cache(maxsize=_FORMS)(partial(_form, slots))


def _form(slots: tuple[SlotRequest, ...], picks: Selection) -> _Form:
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
    return _Form(f"{_candidate(amounts, names)},", tuple(holes), tuple(givers))


def _filled(snapshot: Snapshot, forms: Sequence[_Form], trees: Rows) -> Iterator[Text]:
    """Every form, filled in for every tree."""
    if len(trees) >= _WORTH_A_TABLE:
        names = _names(snapshot)
        if names.alike(trees):
            for form in forms:
                yield from _by_columns(names.table, form, trees)
            return
    uuids = snapshot.uuids
    for form in forms:
        each = [tuple([uuids[tree[at]] for at in form.holes]) for tree in trees.tolist()]
        yield "".join([form.text % one for one in each]).encode()


def _by_columns(names: NDArray[np.bytes_], form: _Form, trees: Rows) -> Iterator[Text]:
    """A form filled in tree by tree, with UUIDs of equal length.

    All copies of the text stand in one table of bytes, and each hole is one column of it.
    """
    line, starts = _laid_out(form.text, names.itemsize)
    some = max(1, _TABLE // len(line))
    for first in range(0, len(trees), some):
        rows = trees[first : first + some]
        table = np.empty((len(rows), len(line)), dtype=np.uint8)
        table[:] = line
        looked_up: dict[int, NDArray[np.bytes_]] = {}
        for start, position in zip(starts, form.holes, strict=True):
            if position not in looked_up:
                looked_up[position] = names[rows[:, position]]
            hole = np.ndarray((len(rows),), names.dtype, table, start, (len(line),))
            hole[:] = looked_up[position]
        yield table.reshape(-1).data


@lru_cache(maxsize=_SHAPES * _FORMS)
def _laid_out(text: str, width: int) -> tuple[NDArray[np.uint8], tuple[int, ...]]:
    """The bytes of a text with holes of this width, and the offsets of the holes."""
    parts = text.encode().split(_HOLE.encode())
    line = np.frombuffer((b"\0" * width).join(parts), dtype=np.uint8)
    starts = np.cumsum([len(part) + width for part in parts[:-1]]) - width
    return line, tuple(starts.tolist())


@dataclass(frozen=True, slots=True)
class _Names:
    """UUIDs by row, padded with NUL to one length; empty if one of them is not ASCII."""

    table: NDArray[np.bytes_]
    even: bool
    """Whether all of them have that length, as UUIDs have."""

    def alike(self, rows: Rows) -> bool:
        """Whether all these rows have names of one length."""
        known = len(self.table) > 0
        return self.even or (known and bool(self.table[rows].view(np.uint8).all()))


def _names(snapshot: Snapshot) -> _Names:
    kept = snapshot.cache.get("names")
    if not isinstance(kept, _Names):
        try:
            table = np.array(snapshot.uuids, dtype=np.bytes_)
        except UnicodeEncodeError:
            table = np.zeros(0, dtype=np.bytes_)
        even = len(table) > 0 and bool(table.view(np.uint8).all())
        kept = snapshot.cache["names"] = _Names(table, even)
    return kept


# --- one tree with many candidates --------------------------------------------------------------


class _Lone:
    """The JSON of a single tree's many candidates. Names and suffixes hold no percent sign."""

    def __init__(self, snapshot: Snapshot, slots: tuple[SlotRequest, ...]) -> None:
        self._uuids = snapshot.uuids
        self._slots = slots
        self._giving = [1 << n if slot.amounts else 0 for n, slot in enumerate(slots)]
        self._suffixed = [n for n, slot in enumerate(slots) if slot.suffix]
        self._plain = [n for n, slot in enumerate(slots) if not slot.suffix]
        self._resources: dict[int, str] = {}
        self._gives: dict[tuple[int, int], str] = {}
        """(row, bits: slots it gives) -> its entry in `allocations`."""
        self._maps: list[dict[int, str]] = [{} for _ in slots]
        """Per suffixed slot: row -> its entry in `mappings`."""
        self.givers: set[int] = set()
        """The rows of the providers in the written candidates."""

    def every(self, batch: Batch) -> bytes:
        """Every selection of the batch's only tree."""
        tree = batch.trees[0].tolist()
        each = [self._one([tree[at] for at in picks]) for picks in batch.selections]
        return f"{','.join(each)},".encode()

    def _one(self, rows: Sequence[int]) -> str:
        """The candidate in which these rows serve the slots."""
        gives: dict[int, int] = {}
        for row, bit in zip(rows, self._giving, strict=True):
            gives[row] = gives.get(row, 0) | bit
        amounts = [self._gives.get(item) or self._entry(*item) for item in gives.items() if item[1]]
        self.givers.update([row for row, bits in gives.items() if bits])
        names = [self._maps[n].get(rows[n]) or self._mapping(n, rows[n]) for n in self._suffixed]
        if self._plain:
            names.append(_mapping("", [self._uuids[row] for row in {rows[n] for n in self._plain}]))
        return _candidate(amounts, names)

    def _entry(self, row: int, bits: int) -> str:
        found = self._gives[row, bits] = f'"{self._uuids[row]}":{self._amounts(bits)}'
        return found

    def _mapping(self, number: int, row: int) -> str:
        text = _mapping(self._slots[number].suffix, [self._uuids[row]])
        self._maps[number][row] = text
        return text

    def _amounts(self, bits: int) -> str:
        """The resources that one provider gives to several slots, cached."""
        found = self._resources.get(bits)
        if found is None:
            found = self._resources[bits] = _summed(self._slots, bits)
        return found


# --- words ----------------------------------------------------------------------------------


def _summed(slots: Sequence[SlotRequest], bits: int) -> str:
    """The resources that one provider gives to the slots of these bits."""
    sums: dict[str, int] = {}
    for number, slot in enumerate(slots):
        if bits >> number & 1:
            for name, amount in slot.amounts:
                sums[name] = sums.get(name, 0) + amount
    return f'{{"resources":{_encode(sums).decode()}}}'


def _candidate(amounts: Sequence[str], names: Sequence[str]) -> str:
    return f'{{"allocations":{{{",".join(amounts)}}},"mappings":{{{",".join(names)}}}}}'


def _mapping(suffix: str, uuids: Sequence[str]) -> str:
    listed = '","'.join(uuids)
    return f'"{suffix}":["{listed}"]'
