"""Provider entries of fleet-wide answers, joined from encoded pieces.

A body over a thousand hosts is mostly the same as in the last answer: a provider's entry is encoded
once per state of the provider and cached by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress, count, pairwise
from operator import is_not
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from moorage.api.placement.names import trait_order
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.virtual_classes import MOST
from moorage.engine.state.bounded_view import UNLIMITED
from moorage.engine.state.chunks import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.api.placement.rendering import Text
    from moorage.domain.providers import ResourceProvider
    from moorage.engine.state.snapshot import ProviderState, Snapshot

    Rows: TypeAlias = NDArray[np.integer]
    Encode: TypeAlias = Callable[[Snapshot, int, ProviderState], bytes]

_encode = msgspec.json.Encoder().encode
_PIECES: Final = 256
"""Pieces that are joined at once where they do not stand together."""


class Fragments:
    """The encoded entry of each provider, cached by its state and joined by chunk.

    One text for each chunk of the snapshot's states, which is good as long as the chunk is the
    same value: an answer about much of a fleet is these very texts. May be used from several
    threads: a text and the chunk it was made from change together.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._kept: dict[int, _Joined] = {}

    def of(self, snapshot: Snapshot, rows: Rows) -> list[Text]:
        """The entries of some rows, ascending and comma-separated, in as few parts as possible."""
        parts: list[Text] = []
        pieces: list[bytes] = []
        for number, some in _by_chunk(rows):
            joined = self._joined(snapshot, number)
            together = some[-1] - some[0] + 1 == len(some)
            if not together:
                single = joined.single()
                pieces += [single[at] for at in some]
            if pieces and (together or len(pieces) > _PIECES):
                parts.append(b"".join(pieces))
                pieces = []
            if together:
                parts.append(joined.between(some[0], some[-1] + 1))
        if pieces:
            parts.append(b"".join(pieces))
        if parts:
            parts[-1] = memoryview(parts[-1])[:-1]
        return parts

    def _joined(self, snapshot: Snapshot, number: int) -> _Joined:
        states = snapshot.states.chunks[number]
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
    """The encoded entries of one chunk, a comma after each; deleted providers have none."""

    states: tuple[ProviderState | None, ...]
    text: bytes
    ends: list[int]
    """[i] where the piece before item i ends, and its own begins."""
    _single: list[bytes] | None = None

    def between(self, start: int, end: int) -> Text:
        """The entries from `start` to `end`; the whole text is passed on without a copy."""
        first, last = self.ends[start], self.ends[end]
        if last - first == len(self.text):
            return self.text
        return memoryview(self.text)[first:last]

    def single(self) -> list[bytes]:
        """The entries one by one; cached once a request needs entries that are not adjacent."""
        if self._single is None:
            self._single = [self.text[start:end] for start, end in pairwise(self.ends)]
        return self._single

    def renewed(
        self,
        states: tuple[ProviderState | None, ...],
        said: Callable[[int, ProviderState], bytes],
    ) -> _Joined:
        """The entries after a change of states: only changed ones are encoded anew."""
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
    """Ascending rows as chunk numbers with the positions in the chunk."""
    if not len(rows):
        return
    number = rows // SIZE
    first = [0, *((number[1:] != number[:-1]).nonzero()[0] + 1).tolist()]
    places = (rows - number * SIZE).tolist()
    ends = [*first[1:], len(places)]
    for chunk, start, end in zip(number[first].tolist(), first, ends, strict=True):
        yield chunk, places[start:end]


def summary(snapshot: Snapshot, row: int, state: ProviderState) -> bytes:
    """A provider's entry in `provider_summaries`."""
    return _summary(state.provider, _resources(snapshot, row, state))


def summary_with_terms(snapshot: Snapshot, row: int, state: ProviderState) -> bytes:
    """A summary for requests with a class of terms: every root provider has plenty of these."""
    provider = state.provider
    resources = _resources(snapshot, row, state)
    if provider.parent_uuid is None and SHARING_TRAIT not in provider.traits:
        resources |= {name: {"capacity": UNLIMITED, "used": 0} for name in MOST}
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
            "capacity": inventory.units,
            "used": int(columns.used[at]),
        }
    return found
