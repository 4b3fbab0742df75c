"""How many pieces of one size fit now, host by host, and how much of a class is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from moorage.domain.resources import Amounts
    from moorage.domain.topology import Level
    from moorage.engine.state.snapshot import Bools, Ints, Snapshot


def in_domain(snapshot: Snapshot, level: Level, name: str) -> Bools:
    """[P] providers of hosts in a domain; nobody, where there is no such domain."""
    names = snapshot.domain_names(level)
    if name not in names:
        return np.zeros(len(snapshot.uuids), dtype=np.bool_)
    found: Bools = snapshot.domains(level) == names.index(name)
    return found


def fitting(snapshot: Snapshot, amounts: Amounts, among: Bools) -> int:
    """How many pieces of this size fit beside all that is booked, now or later, for good.

    A host gives each class out of all its providers together, so that of nested providers the
    number is the most there can be.

    Args:
        snapshot: the fleet.
        amounts: of one piece.
        among: [P] the providers that count.
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
    """Which share of a class is taken at the fullest time that is known, from 0 to 1."""
    columns = snapshot.classes.get(resource_class)
    if columns is None:
        return 0.0
    here = among[columns.rows]
    capacity = int(columns.capacity[here].sum())
    return float(columns.peak[here].sum() / capacity) if capacity else 0.0
