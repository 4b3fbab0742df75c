"""Counts how many servers of one size fit now, and how much of a class is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from moorage.domain.resources import Amounts
    from moorage.domain.topology import Level
    from moorage.engine.state.snapshot import Bools, Ints, Snapshot


def in_domain(snapshot: Snapshot, level: Level, name: str) -> Bools:
    """[P] providers of the hosts in a domain; none if there is no such domain."""
    names = snapshot.domain_names(level)
    if name not in names:
        return np.zeros(len(snapshot.uuids), dtype=np.bool_)
    found: Bools = snapshot.domains(level) == names.index(name)
    return found


def count_fitting(snapshot: Snapshot, amounts: Amounts, among: Bools) -> int:
    """How many servers of this size, without an end, fit beside all present and later bookings.

    The classes of a host are summed over its providers, so with nested providers the result is an
    upper bound.

    `amounts` are of one server; `among` are [P] the providers that count.
    """
    pieces: Ints | None = None
    for name, amount in amounts.items():
        columns = snapshot.classes.get(name)
        if columns is None:
            return 0
        here = among[columns.rows]
        free = np.maximum(columns.capacity - columns.peak, 0)
        hosts = np.zeros(len(snapshot.uuids), dtype=np.int64)
        np.add.at(hosts, snapshot.root[columns.rows][here], free[here] // amount)
        pieces = hosts if pieces is None else np.minimum(pieces, hosts)
    return 0 if pieces is None else int(pieces.sum())


def used_share(snapshot: Snapshot, resource_class: str, among: Bools) -> float:
    """The used share of a class, from 0 to 1, at the highest occupancy of each inventory."""
    columns = snapshot.classes.get(resource_class)
    if columns is None:
        return 0.0
    here = among[columns.rows]
    capacity = int(columns.capacity[here].sum())
    return float(columns.peak[here].sum() / capacity) if capacity else 0.0
