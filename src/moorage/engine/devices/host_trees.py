"""The nested and sharing providers of hosts (devices) that one joint request may use, as columns.

Only providers that have something the request asks for are kept; each keeps its nearest kept
ancestor as parent. Requests whose resources all come from the hosts' root providers need none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.ensembles import MemberKind
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.resources import Amounts
    from moorage.engine.state.sharing import Sharing
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

PROCESSORS: Final = frozenset({"VCPU", "PCPU"})
COLUMNS = ("capacity", "free", "min_unit", "max_unit", "step_size")


@dataclass(frozen=True, eq=False)
class Devices:
    """P providers (positions) with K resource classes, for H hosts (rows of a terrain)."""

    uuids: tuple[str, ...]
    host: Ints
    """[P] row of the host in whose tree it stands; -1 for one that stands in none."""
    parent: Ints
    """[P] position of the nearest provider above it that is here, or -1."""
    classes: tuple[str, ...]
    capacity: Ints
    """[P, K] when empty; 0 where the provider has none of the class."""
    free: Ints
    """[P, K] capacity less the peak of every live booking over the request's period."""
    min_unit: Ints
    max_unit: Ints
    """[P, K]; 0 where the provider has none of the class, so that no amount obeys."""
    step_size: Ints
    traits: Mapping[str, Bools]
    """Trait -> [P]; absent: no provider here has it."""
    aggregates: Mapping[str, Bools]
    """Aggregate UUID -> [P]; absent: no provider here is in it."""
    computing: Bools
    """[P] compute nodes, which servers take from: it or one below it has `VCPU` or `PCPU`. None if
    no role is of volumes."""
    borrower: Ints
    """[q] row of a host, ascending."""
    lender: Ints
    """[q] position of a provider of another tree that shares its inventory with that host."""

    @cached_property
    def position_of(self) -> Mapping[str, int]:
        """Provider UUID -> position."""
        return MappingProxyType({uuid: at for at, uuid in enumerate(self.uuids)})

    @cached_property
    def accessible(self) -> tuple[Ints, Ints, Bools]:
        """All (host row, provider position, is from another tree) that a host's members may use."""
        own = np.flatnonzero(self.host >= 0)
        row = np.concatenate((self.host[own], self.borrower))
        position = np.concatenate((own, self.lender))
        borrowed = np.arange(len(row)) >= len(own)
        order = np.argsort(row, kind="stable")
        return row[order], position[order], borrowed[order]

    @cached_property
    def lends(self) -> Bools:
        """[P] whether it shares its inventory with hosts of other trees."""
        found = np.zeros(len(self.uuids), dtype=np.bool_)
        found[self.lender] = True
        return found

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """[P] the provider's position and those of its ancestors."""
        found: list[frozenset[int]] = []
        for start in range(len(self.uuids)):
            line, at = {start}, int(self.parent[start])
            while at >= 0:
                line.add(at)
                at = int(self.parent[at])
            found.append(frozenset(line))
        return tuple(found)

    def has_trait(self, trait: str) -> Bools:
        """[P] whether the provider itself carries the trait."""
        return self.traits.get(trait, np.zeros(len(self.uuids), dtype=np.bool_))

    def in_any_aggregate(self, aggregates: Iterable[str]) -> Bools:
        """[P] whether the provider itself is in one of the aggregates."""
        found = np.zeros(len(self.uuids), dtype=np.bool_)
        for uuid in aggregates:
            found |= self.aggregates.get(uuid, found)
        return found

    def per_host(self, amounts: Ints, count: int) -> Ints:
        """[H, ...] sums of [P, ...] over all providers that each of `count` hosts may use."""
        row, position, _ = self.accessible
        found = np.zeros((count, *amounts.shape[1:]), dtype=np.int64)
        np.add.at(found, row, amounts[position])
        return found

    def with_places(self, places: Iterable[Mapping[str, Amounts]]) -> Devices:
        """The devices after these amounts by provider UUID were taken from `free`."""
        free = self.free.copy()
        for place in places:
            for uuid, amounts in place.items():
                for name, amount in amounts.items():
                    free[self.position_of[uuid], self.classes.index(name)] -= amount
        return replace(self, free=free)

    def without_bookings(self) -> Devices:
        """The devices with all capacity free."""
        return replace(self, free=self.capacity)


def classes_of(roles: Iterable[Role]) -> tuple[str, ...]:
    """Every resource class that the roles and their groups ask for."""
    classes: set[str] = set()
    for role in roles:
        classes.update(role.resources)
        for group in role.groups:
            classes.update(group.resources)
    return tuple(sorted(classes))


def devices_of(
    snapshot: Snapshot, request: EnsembleRequest, hosts: Ints, max_free: int
) -> Devices | None:
    """The devices that a request may use, or None if it uses only the hosts' root providers.

    `hosts` are [H] rows in the snapshot; free capacity counts up to `max_free`.
    """
    classes = classes_of(request.every_choice)
    row_of_host = np.full(len(snapshot.uuids), -1, dtype=np.int64)
    row_of_host[hosts] = np.arange(len(hosts))
    pairs = sharing(snapshot)
    grouped = any(role.groups or role.of_one_provider for role in request.every_choice)
    if not grouped and not _outside_hosts(snapshot, classes, row_of_host, pairs):
        return None
    host = row_of_host[snapshot.root]
    lends = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    lends[pairs.lender] = True
    kept = _relevant(snapshot, request, classes) & snapshot.alive & ((host >= 0) | lends)
    rows = np.flatnonzero(kept)
    position = np.full(len(snapshot.uuids), -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    matter = (row_of_host[pairs.anchor] >= 0) & kept[pairs.lender]
    borrower, lender = row_of_host[pairs.anchor[matter]], position[pairs.lender[matter]]
    order = np.argsort(borrower, kind="stable")
    words = set(_named_strings(request.every_choice))
    return Devices(
        uuids=tuple(snapshot.uuids[row] for row in rows.tolist()),
        host=host[rows],
        parent=_parents(snapshot, kept, position)[rows],
        classes=classes,
        **columns_of(snapshot, request, rows, classes, max_free),
        traits={name: mask[rows] for name, mask in snapshot.traits.items() if name in words},
        aggregates={
            name: np.isin(rows, members)
            for name, members in snapshot.aggregates.items()
            if name in words
        },
        computing=_computing(snapshot, request)[rows],
        borrower=borrower[order],
        lender=lender[order],
    )


def _outside_hosts(
    snapshot: Snapshot, classes: Sequence[str], row_of_host: Ints, pairs: Sharing
) -> bool:
    """Whether any provider but the hosts, and what servers offer, has any of the classes.

    What lends to other hosts is outside these, also if it is a row.
    """
    outside = row_of_host < 0
    outside[list(snapshot.offered_by)] = False
    outside[pairs.lender] = True
    found = (snapshot.classes.get(name) for name in classes)
    return any(bool(outside[one.rows].any()) for one in found if one is not None)


def _relevant(snapshot: Snapshot, request: EnsembleRequest, classes: Sequence[str]) -> Bools:
    """[rows] providers with one of the classes, or a trait that a group without resources names."""
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    for name in classes:
        columns = snapshot.classes.get(name)
        if columns is not None:
            found[columns.rows] = True
    for group in (one for role in request.every_choice for one in role.groups):
        if not group.resources:
            for trait in frozenset().union(*group.required):
                found |= snapshot.traits.get(trait, found)
    return found


def _computing(snapshot: Snapshot, request: EnsembleRequest) -> Bools:
    """[rows] `Devices.computing`."""
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    if any(role.kind == MemberKind.VOLUME for role in request.every_choice):
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


def columns_of(
    snapshot: Snapshot, request: EnsembleRequest, rows: Ints, classes: Sequence[str], max_free: int
) -> dict[str, Ints]:
    """The `COLUMNS` of some providers over the request's period: provider x class, amounts.

    `free` is at most `max_free`; a class that a provider does not have is all 0, in steps of 1.
    """
    # In memory a class is a row: all that reads them reads a class at a time.
    found = {name: np.zeros((len(classes), len(rows)), dtype=np.int64).T for name in COLUMNS}
    found["step_size"] += 1
    for k, name in enumerate(classes):
        columns = snapshot.classes.get(name)
        if columns is None:
            continue
        at = columns.position[rows]
        there = at >= 0
        has = slice(None) if there.all() else there
        at = at[has]
        peak = snapshot.peak_over(name, request.period, without=request.released)
        free = np.minimum(columns.capacity[at] - peak[at], max_free)
        found["capacity"][has, k] = free + peak[at]
        found["free"][has, k] = free
        for rule in ("min_unit", "max_unit", "step_size"):
            found[rule][has, k] = getattr(columns, rule)[at]
    return found


def _named_strings(roles: Iterable[Role]) -> Iterable[str]:
    """Every trait and aggregate that a role or group names."""
    for role in roles:
        for sets in (
            (*role.required, role.forbidden, *role.member_of),
            *((*one.required, one.forbidden, *one.member_of) for one in role.groups),
        ):
            for any_of in sets:
                yield from any_of
