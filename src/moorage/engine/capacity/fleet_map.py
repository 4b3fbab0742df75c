"""The fleet as columns for a map: hosts by block, with fill and flags of each at an instant.

A *block* is a domain of one level, such as a rack; its *parent* is the domain of the level above
that holds it. What is said of a host sums over the providers of its tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.host_states import ClosingReason, HostState
from moorage.domain.reservables import WHOLE_HOST
from moorage.domain.words import natural
from moorage.engine.capacity.capacity_over_time import hosts_where
from moorage.engine.state.host_states import host_states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.period import Instant
    from moorage.domain.topology import Level
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

NONE_OF_IT: Final = 255
"""The fill of a host without the class."""
MOST_FILL: Final = 200
"""Fill is counted up to here, in percent of the capacity."""
_FULL: Final = 100
MOST_FITS: Final = 255
"""What fits on one host is counted up to here."""


class HostFlag(IntFlag):
    """What is marked of a host on the map."""

    CLOSED = 1
    DOWN = 2
    AWAY = 4
    """Planned to be away at the instant; such a host is down, too."""
    OVER = 8
    """More is booked than there is, of any class on any provider."""
    BROKEN = 16
    """A member there is concerned by a violation that is open."""
    FILTERED = 32
    """It fails a filter of the query."""
    WITHOUT_SERVER = 64
    """Something is held or reserved there, and no server is there or being built."""
    EXCLUSIVE = 128
    """It is kept for one project or ensemble, or is leased whole."""


@dataclass(frozen=True, eq=False)
class MapLayout:
    """The order of the H hosts on the map, and the B blocks that they are in."""

    tree: str
    level: str | None
    """None: the tree has no levels, and all hosts are in one block."""
    parent_level: str | None
    rows: Ints
    """[H] rows of the hosts, by block, then by name."""
    names: tuple[str, ...]
    """[H]"""
    blocks: tuple[str, ...]
    """[B] names; hosts outside of the tree are in a last one, which has none."""
    parent: Ints
    """[B] index into `parents`, or -1."""
    count: Ints
    """[B] how many hosts each block has."""
    parents: tuple[str, ...]

    @cached_property
    def digest(self) -> bytes:
        """Equal for equal layouts, in every process."""
        text = repr((self.tree, self.level, self.names, self.blocks, self.parents))
        found = blake2b(text.encode(), digest_size=16)
        found.update(self.parent.tobytes() + self.count.tobytes())
        return found.digest()

    @property
    def first(self) -> Ints:
        """[B] the index of each block's first host."""
        found: Ints = np.cumsum(self.count) - self.count
        return found

    def sums(self, values: Ints) -> Ints:
        """[B] the sums over the hosts [H] of each block."""
        ends = np.concatenate(([0], np.cumsum(values)))
        first = self.first
        found: Ints = ends[first + self.count] - ends[first]
        return found


@dataclass(frozen=True, eq=False)
class HostColumns:
    """What there is of one class on the H hosts of a layout at an instant, and their flags."""

    fill: NDArray[np.uint8]
    """[H] percent that is booked, up to `MOST_FILL`, or `NONE_OF_IT`."""
    flags: NDArray[np.uint16]
    """[H] sums of `HostFlag`."""
    free: Ints
    """[H] what is not booked; nothing on a host that is out of service."""
    capacity: Ints
    """[H]"""


def map_layout(snapshot: Snapshot, level: Level | None, tree: str) -> MapLayout:
    """The layout by the domains of a level; kept with the snapshot as long as it holds."""
    hosts = np.flatnonzero(hosts_where(snapshot))
    key = ("map layout", level, tree)
    kept = snapshot.cache.get(key)
    if isinstance(kept, MapLayout) and np.array_equal(np.sort(kept.rows), hosts):
        return kept
    found = _layout(snapshot, hosts, level, tree)
    snapshot.cache[key] = found
    return found


def _layout(snapshot: Snapshot, hosts: Ints, level: Level | None, tree: str) -> MapLayout:
    names = [snapshot.names[row] for row in hosts.tolist()]
    keys = [natural(name) for name in names]
    order = np.array(sorted(range(len(names)), key=keys.__getitem__), dtype=np.int64)
    if level is None:
        parents: Sequence[str] = ()
        domains: list[tuple[str, int]] = []
        block = np.full(len(names), 0, dtype=np.int64)
    else:
        parents, domains, numbers = _blocks(snapshot, level)
        block = numbers[snapshot.domains_of_hosts(level)[hosts]]
    order = order[np.argsort(block[order], kind="stable")]
    count = np.bincount(block, minlength=len(domains) + 1)
    if not count[-1] and domains:
        count = count[:-1]
    else:
        domains = [*domains, ("", -1)]
    return MapLayout(
        tree=tree,
        level=None if level is None else level.name,
        parent_level=_above(snapshot, level),
        rows=hosts[order],
        names=tuple(names[at] for at in order.tolist()),
        blocks=tuple(name for name, _ in domains),
        parent=np.array([parent for _, parent in domains], dtype=np.int64),
        count=count,
        parents=tuple(parents),
    )


def _above(snapshot: Snapshot, level: Level | None) -> str | None:
    if level is None:
        return None
    names = snapshot.topology.levels[level.tree]
    at = names.index(level.name)
    return names[at - 1] if at else None


def _blocks(snapshot: Snapshot, level: Level) -> tuple[Sequence[str], list[tuple[str, int]], Ints]:
    """The parents, each block with its parent's index, and domain number -> number of the block.

    The last of these numbers, for hosts without a domain, is that of a block after all others.
    """
    topology, above = snapshot.topology, _above(snapshot, level)
    domains = topology.domains.items()
    parents = sorted(
        (name for (tree, name), one in domains if tree == level.tree and one.level == above),
        key=natural,
    )
    index = {name: at for at, name in enumerate(parents)}
    found = []
    for name in snapshot.domain_names(level):
        parent = None if above is None else topology.ancestor(level.tree, name, above)
        found.append((name, -1 if parent is None else index[parent]))
    # Those without a parent come after the others.
    ordered = sorted(found, key=lambda one: (one[1] < 0, one[1], natural(one[0])))
    place = {name: at for at, (name, _) in enumerate(ordered)}
    numbers = np.array([*(place[name] for name, _ in found), len(found)], dtype=np.int64)
    return parents, ordered, numbers


def host_columns(
    snapshot: Snapshot, layout: MapLayout, resource_class: str | None, at: Instant
) -> HostColumns:
    """Fill and state of the hosts at an instant, which is not before the snapshot's.

    Bookings count while they are in force: allocations, holds and reservations alike. Closed hosts
    stay closed, since nobody has said when they open.
    """
    size = len(snapshot.uuids)
    over, booked, served = (np.zeros(size, dtype=np.bool_) for _ in range(3))
    for columns in snapshot.classes.values():
        taken = columns.booked_at(at)
        roots = snapshot.root[columns.rows]
        over[roots[taken > columns.capacity]] = True
        booked[roots[taken > 0]] = True
        served[roots[columns.served_at(at) > 0]] = True
    severity, away = _states(snapshot, at)
    flags = np.zeros(size, dtype=np.uint16)
    for flag, mask in (
        (HostFlag.CLOSED, severity == HostState.CLOSED.severity),
        (HostFlag.DOWN, severity == HostState.DOWN.severity),
        (HostFlag.AWAY, away),
        (HostFlag.OVER, over),
        (HostFlag.WITHOUT_SERVER, booked & ~served),
        (HostFlag.EXCLUSIVE, _leased_whole(snapshot, at)),
    ):
        flags[mask] |= flag.value
    fill, free, capacity = _fill(snapshot, resource_class, at)
    free[severity > 0] = 0
    rows = layout.rows
    return HostColumns(fill[rows], flags[rows], free[rows], capacity[rows])


def _fill(
    snapshot: Snapshot, resource_class: str | None, at: Instant
) -> tuple[NDArray[np.uint8], Ints, Ints]:
    """[P] fill, free and capacity of a class by host.

    Only an empty host has a fill of 0, only one without anything left 100, or more if too much is
    booked.
    """
    size = len(snapshot.uuids)
    columns = None if resource_class is None else snapshot.classes.get(resource_class)
    booked, free, capacity = (np.zeros(size, dtype=np.int64) for _ in range(3))
    if columns is None:
        return np.full(size, NONE_OF_IT, dtype=np.uint8), free, capacity
    taken, roots = columns.booked_at(at), snapshot.root[columns.rows]
    np.add.at(booked, roots, taken)
    np.add.at(capacity, roots, columns.capacity)
    np.add.at(free, roots, np.maximum(columns.capacity - taken, 0))
    share = booked * float(_FULL) / np.maximum(capacity, 1)
    percent = np.clip(np.rint(share), 0, MOST_FILL).astype(np.int64)
    percent[(booked > 0) & (percent == 0)] = 1
    percent[(booked < capacity) & (percent == _FULL)] = _FULL - 1
    percent[(booked > capacity) & (percent == _FULL)] = _FULL + 1
    percent[(booked > 0) & (capacity <= 0)] = MOST_FILL
    fill = np.full(size, NONE_OF_IT, dtype=np.uint8)
    fill[roots] = percent[roots]
    return fill, free, capacity


def _states(snapshot: Snapshot, at: Instant) -> tuple[NDArray[np.int8], Bools]:
    """[P] the severity of each host's state at an instant, and whether it is away then."""
    size = len(snapshot.uuids)
    severity, away = np.zeros(size, dtype=np.int8), np.zeros(size, dtype=np.bool_)
    for row in snapshot.noted_hosts:
        away[row] = any(one.covers(at) for one in snapshot.state(row).down)
    for why, mask in host_states(snapshot).closed.items():
        if why is not ClosingReason.AWAY:
            severity[mask] = np.maximum(severity[mask], why.state.severity)
    severity[away] = HostState.DOWN.severity
    return severity, away


def _leased_whole(snapshot: Snapshot, at: Instant) -> Bools:
    """[P] hosts whose unit for a lease of the whole host is booked."""
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    columns = snapshot.classes.get(WHOLE_HOST)
    if columns is not None:
        found[snapshot.root[columns.rows[columns.booked_at(at) > 0]]] = True
    return found


def classes_of(snapshot: Snapshot, layout: MapLayout) -> tuple[str, ...]:
    """The resource classes that any host of the layout has, by name."""
    hosts = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    hosts[layout.rows] = True
    classes = snapshot.classes.items()
    return tuple(sorted(name for name, one in classes if hosts[snapshot.root[one.rows]].any()))
