"""Maps of the fleet that a process has made: the last ones of each query, for those who ask again.

Many look at the same map and ask for changes only, so a map is made once for each state of the
ledger, and the ones before it are kept for the differences.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from moorage.domain.period import Instant
    from moorage.engine.capacity.fleet_map import MapLayout
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]

_QUERIES: Final = 16
"""Queries whose maps are kept: those that were asked last."""
_MAPS: Final = 5
"""Maps that are kept of each."""


@dataclass(frozen=True, slots=True)
class MapQuery:
    """What a map shows. Two equal queries have the same map of one state of the ledger."""

    resource_class: str | None = None
    """None: the first that is there of those that people look at."""
    at: Instant | None = None
    """None: now."""
    tree: str | None = None
    level: str | None = None
    """None: the lowest of the tree."""
    flavor: str | None = None
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    ensemble: str | None = None
    project_id: str = ""
    """The caller's, by which what fits is judged."""


@dataclass(frozen=True, eq=False)
class FleetMap:
    """The fleet as columns at an instant; see `engine.capacity.fleet_map`."""

    revision: int
    at: Instant
    computed_at: Instant
    valid_until: Instant
    """When time alone changes it."""
    resource_class: str | None
    classes: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    layout: MapLayout
    fill: NDArray[np.uint8]
    flags: NDArray[np.uint16]
    fits: NDArray[np.uint8] | None
    block_free: Ints
    block_capacity: Ints
    block_fits: Ints | None
    bodies: dict[str, bytes] = field(default_factory=dict)
    """The map as it was sent, by form: whoever asks next gets the same bytes."""
    differences: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Tag of a map before -> what has changed since, as it was sent."""
    tag: str = field(init=False, default="")
    """Names what it shows: of equal maps it is equal, in every process."""

    def __post_init__(self) -> None:
        text = blake2b(self.layout.digest, digest_size=9)
        text.update(repr(self._head).encode())
        for column in (self.fill, self.flags, self.fits, self.block_free, self.block_capacity):
            text.update(b"" if column is None else column.tobytes())
        text.update(b"" if self.block_fits is None else self.block_fits.tobytes())
        object.__setattr__(self, "tag", f"{self.revision}-{text.hexdigest()}")

    @property
    def _head(self) -> tuple[object, ...]:
        return self.resource_class, self.classes, tuple(self.levels.items())

    def changed_since(self, other: FleetMap) -> Ints | None:
        """[n] the hosts that differ from another map; None: it shows other hosts."""
        if other.layout.digest != self.layout.digest or other._head != self._head:
            return None
        differs = (self.fill != other.fill) | (self.flags != other.flags)
        if self.fits is not None and other.fits is not None:
            differs |= self.fits != other.fits
        return np.flatnonzero(differs).astype(np.int64)


class KeptMaps:
    """The last maps of each query. Thread-safe; those who ask for one at once wait for one."""

    def __init__(self) -> None:
        """Keep none yet."""
        self._maps: OrderedDict[MapQuery, deque[FleetMap]] = OrderedDict()
        self._lock = Lock()

    def current(
        self, query: MapQuery, snapshot: Snapshot, make: Callable[[], FleetMap]
    ) -> FleetMap:
        """The map of a query for a snapshot; it is made if none is kept that still holds."""
        with self._lock:
            kept = self._maps.get(query)
            if kept is not None and _holds(kept[-1], snapshot):
                self._maps.move_to_end(query)
                return kept[-1]
            made = make()
            if kept is None:
                kept = self._maps[query] = deque(maxlen=_MAPS)
                while len(self._maps) > _QUERIES:
                    self._maps.popitem(last=False)
            if kept:
                kept[-1].bodies.clear()  # nobody is sent these any more
                kept[-1].differences.clear()
                if kept[-1].tag == made.tag:
                    kept.pop()
            kept.append(made)
            self._maps.move_to_end(query)
            return made

    def tagged(self, query: MapQuery, tag: str) -> FleetMap | None:
        """The map of a query with this tag, if it is kept."""
        with self._lock:
            return next((one for one in self._maps.get(query, ()) if one.tag == tag), None)


def _holds(kept: FleetMap, snapshot: Snapshot) -> bool:
    same = kept.revision == snapshot.revision
    return same and kept.computed_at <= snapshot.taken_at < kept.valid_until
