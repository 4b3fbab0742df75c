"""The nested and sharing providers (devices) that requests for certain classes may use, as trees.

Bookings do not change them: they are cut once and kept with the snapshot from revision to revision.
Only providers that have something a request asks for are here; each has its nearest ancestor that
is here as parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.ensembles import MemberKind
from moorage.engine.state.kept_columns import KeptColumns, are_same
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.state.sharing import Sharing
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.integer]
    Bools: TypeAlias = NDArray[np.bool_]

PROCESSORS: Final = frozenset({"VCPU", "PCPU"})


class Positions(Mapping[str, int]):
    """Provider UUID -> position."""

    def __init__(self, row_of: Mapping[str, int], rows: Ints) -> None:
        """`row_of` has more than the `rows`, which are ascending."""
        self._row_of, self._rows = row_of, rows

    def __getitem__(self, uuid: str) -> int:
        row = self._row_of[uuid]
        at = int(self._rows.searchsorted(row))
        if at == len(self._rows) or self._rows[at] != row:
            raise KeyError(uuid)
        return at

    def __iter__(self) -> Iterator[str]:
        return (uuid for uuid in self._row_of if uuid in self)

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True, eq=False)
class Inventories:
    """The n providers here that have a class."""

    positions: Ints
    """[n], ascending."""
    at: Ints | slice
    """[n] indices into the columns of the class; a slice: all of them."""


@dataclass(frozen=True, eq=False)
class DeviceTrees:
    """P providers (positions), for H hosts (rows of a terrain)."""

    rows: Ints
    """[P] rows of the fleet, ascending."""
    row_of: Mapping[str, int]
    """UUID -> row of the fleet."""
    uuids: tuple[str, ...]
    host: Ints
    """[P] row of the host in whose tree it stands; -1 for one that stands in none."""
    parent: Ints
    """[P] position of the nearest provider above it that is here, or -1."""
    computing: Bools
    """[P] compute nodes, which servers take from: it or one below it has `VCPU` or `PCPU`. None if
    no role is of volumes."""
    borrower: Ints
    """[q] row of a host, ascending."""
    lender: Ints
    """[q] position of a provider of another tree that shares its inventory with that host."""
    inventories: tuple[Inventories, ...] = ()
    """Per class that they were cut for."""
    key: object = None
    """Under which they are kept."""
    kept: KeptColumns[object, object] = field(default_factory=KeptColumns, repr=False)
    """What is known of these trees from request to request; see `devices.role_capacity`."""

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        arrays = (self.rows, self.host, self.parent, self.computing, *self.accessible)
        indices = (some for one in self.inventories for some in (one.positions, one.at))
        links = (self.borrower, self.lender, self.lends)
        every = (*arrays, *indices, *links)
        named = 8 * len(self.uuids)
        return named + sum(one.nbytes for one in every if not isinstance(one, slice))

    @cached_property
    def position_of(self) -> Positions:
        """Provider UUID -> position."""
        return Positions(self.row_of, self.rows)

    @cached_property
    def accessible(self) -> tuple[Ints, Ints, Bools]:
        """All (host row, provider position, is from another tree) that a host's members may use.

        Host by host.
        """
        own = np.flatnonzero(self.host >= 0).astype(np.int32)
        row = np.concatenate((self.host[own], self.borrower)).astype(np.int32)
        position = np.concatenate((own, self.lender)).astype(np.int32)
        borrowed = np.arange(len(row)) >= len(own)
        order = np.argsort(row, kind="stable")
        return row[order], position[order], borrowed[order]

    @cached_property
    def lends(self) -> Bools:
        """[P] whether it shares its inventory with hosts of other trees."""
        found = np.zeros(len(self.uuids), dtype=np.bool_)
        found[self.lender] = True
        return found

    def entries_of(self, hosts: Ints) -> Ints:
        """Indices into `accessible` of what the members on some hosts may use, host by host."""
        row = self.accessible[0]
        sought = hosts.astype(row.dtype)
        first, last = row.searchsorted(sought), row.searchsorted(sought, "right")
        count = last - first
        offset = np.repeat(first - np.cumsum(count) + count, count)
        found: Ints = np.arange(len(offset)) + offset
        return found

    def hosts_with(self, positions: Ints) -> Ints:
        """Rows of the hosts whose members may use any of some providers, ascending."""
        own = self.host[positions]
        if len(self.lender):
            meant = np.zeros(len(self.uuids), dtype=np.bool_)
            meant[positions] = True
            own = np.concatenate((own, self.borrower[meant[self.lender]]))
        found: Ints = np.unique(own[own >= 0])
        return found


@dataclass(frozen=True, eq=False)
class _Kept:
    """Trees, and what they were cut from."""

    made_from: tuple[NDArray[np.generic] | None, ...]
    trees: DeviceTrees


def device_trees(
    snapshot: Snapshot, request: EnsembleRequest, classes: Sequence[str], hosts: Ints
) -> DeviceTrees:
    """The trees that a request for these classes may use on hosts with these rows [H]."""
    named = frozenset(_named_without_resources(request))
    volumes = any(role.kind == MemberKind.VOLUME for role in request.every_choice)
    pairs = sharing(snapshot)
    made_from = (
        hosts,
        pairs.anchor,
        pairs.lender,
        *(_rows(snapshot, name) for name in classes),
        *(snapshot.traits.get(trait) for trait in sorted(named)),
        *((_rows(snapshot, name) for name in sorted(PROCESSORS)) if volumes else ()),
    )
    store = snapshot.cache.get("devices")
    if not isinstance(store, KeptColumns):
        store = snapshot.cache["devices"] = KeptColumns()
    # Of the same classes there are trees of hosts alone, and of hosts with pools or servers.
    key = (tuple(classes), named, volumes, len(hosts))
    kept = store.get(key)
    if not isinstance(kept, _Kept) or not are_same(kept.made_from, made_from):
        trees = _cut(snapshot, classes, hosts, (pairs, named, volumes))
        kept = _Kept(made_from, replace(trees, key=key, kept=store))
        store.put(key, kept, trees.size)
    return kept.trees


def _rows(snapshot: Snapshot, name: str) -> Ints | None:
    columns = snapshot.classes.get(name)
    return None if columns is None else columns.rows


def _named_without_resources(request: EnsembleRequest) -> Iterator[str]:
    """The traits that groups without resources name: whoever has one is there as well."""
    for role in request.every_choice:
        for group in role.groups:
            if not group.resources:
                yield from frozenset().union(*group.required)


def _cut(
    snapshot: Snapshot,
    classes: Sequence[str],
    hosts: Ints,
    what: tuple[Sharing, frozenset[str], bool],
) -> DeviceTrees:
    pairs, named, volumes = what
    count = len(snapshot.uuids)
    row_of_host = np.full(count, -1, dtype=np.int64)
    row_of_host[hosts] = np.arange(len(hosts))
    host = row_of_host[snapshot.root]
    there = host >= 0
    there[pairs.lender] = True
    kept = _relevant(snapshot, classes, named) & snapshot.alive & there
    rows = np.flatnonzero(kept)
    position = np.full(count, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    matter = (row_of_host[pairs.anchor] >= 0) & kept[pairs.lender]
    borrower, lender = row_of_host[pairs.anchor[matter]], position[pairs.lender[matter]]
    order = np.argsort(borrower, kind="stable")
    return DeviceTrees(
        rows=rows.astype(np.int32),
        row_of=snapshot.row_of,
        uuids=tuple(map(snapshot.uuids.__getitem__, rows.tolist())),
        host=host[rows].astype(np.int32),
        parent=_parents(snapshot, kept, position)[rows].astype(np.int32),
        computing=_computing(snapshot, volumes=volumes)[rows],
        borrower=borrower[order].astype(np.int32),
        lender=lender[order].astype(np.int32),
        inventories=tuple(_inventories(snapshot, name, position) for name in classes),
    )


def _inventories(snapshot: Snapshot, name: str, position: Ints) -> Inventories:
    """The providers of a class that have a `position` [rows]."""
    columns = snapshot.classes.get(name)
    if columns is None:
        nothing = np.zeros(0, dtype=np.int32)
        return Inventories(nothing, nothing)
    positions = position[columns.rows].astype(np.int32)
    there = positions >= 0
    if there.all():
        return Inventories(positions, slice(None))
    return Inventories(positions[there], np.flatnonzero(there).astype(np.int32))


def _relevant(snapshot: Snapshot, classes: Sequence[str], named: frozenset[str]) -> Bools:
    """[rows] providers with one of the classes, or a trait that a group without resources names."""
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for name in classes:
        columns = snapshot.classes.get(name)
        if columns is not None:
            found[columns.rows] = True
    for trait in named:
        found |= snapshot.traits.get(trait, found)
    return found


def _computing(snapshot: Snapshot, *, volumes: bool) -> Bools:
    """[rows] `DeviceTrees.computing`."""
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    if volumes:
        for name in PROCESSORS & snapshot.classes.keys():
            rows = snapshot.classes[name].rows
            while len(rows):
                found[rows] = True
                above = snapshot.parent[rows]
                rows = above[above >= 0]
    return found


def _parents(snapshot: Snapshot, kept: Bools, position: Ints) -> Ints:
    """[rows] position of the nearest ancestor that is kept, or -1."""
    above = snapshot.parent.astype(np.int64)
    # Row -1, no parent, counts as kept: there the loop ends.
    stays = np.append(kept, True)
    while not stays[above].all():
        above = np.where(stays[above], above, np.append(snapshot.parent, -1)[above])
    return np.append(position, -1)[above]
