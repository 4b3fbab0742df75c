"""The candidates body, put together from encoded pieces.

A body over a thousand hosts is mostly what it was a moment ago. A provider's summary is encoded
once per state of the provider and kept; amounts are encoded once per body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from moorage.api.placement.names import trait_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.engine.candidates import Candidate
    from moorage.engine.snapshot import ProviderState, Snapshot

_encode = msgspec.json.Encoder().encode

SPARE: Final = 1000
"""Summaries of providers that are gone may stay up to this many beyond the fleet's size."""


def allocation_requests(snapshot: Snapshot, found: Sequence[Candidate]) -> bytes:
    """The candidates as the newest version shows them: by provider, with mappings."""
    amounts: dict[int, str] = {}
    uuids = snapshot.uuids
    pieces = []
    for candidate in found:
        givers = []
        for row, taken in candidate.allocations:
            text = amounts.get(id(taken))
            if text is None:
                text = amounts[id(taken)] = _encode(dict(taken)).decode()
            givers.append(f'"{uuids[row]}":{{"resources":{text}}}')
        maps = []
        for suffix, rows in candidate.mappings:
            mapped = '","'.join([uuids[row] for row in rows])
            maps.append(f'"{suffix}":["{mapped}"]')
        pieces.append(f'{{"allocations":{{{",".join(givers)}}},"mappings":{{{",".join(maps)}}}}}')
    return f"[{','.join(pieces)}]".encode()


class Summaries:
    """Encoded provider summaries, each kept as long as the provider's state is the same value."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[ProviderState, bytes]] = {}

    def of(self, snapshot: Snapshot, rows: Sequence[int]) -> bytes:
        """The summaries of some rows as one JSON object, keyed by UUID."""
        if len(self._kept) > len(snapshot.row_of) + SPARE:
            self._kept.clear()
        pieces = []
        for row in rows:
            state = snapshot.state(row)
            kept = self._kept.get(state.provider.uuid)
            if kept is None or kept[0] is not state:
                kept = self._kept[state.provider.uuid] = (state, _summary(snapshot, row, state))
            pieces.append(kept[1])
        return b"{%b}" % b",".join(pieces)


def _summary(snapshot: Snapshot, row: int, state: ProviderState) -> bytes:
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
