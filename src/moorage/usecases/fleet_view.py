"""The fleet as operators see it: hosts, where they stand, and how full they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.period import Period
from moorage.usecases.access import for_operators
from moorage.usecases.labels import domains_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.topology import Level
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class Fill:
    """One resource class over a host's tree."""

    capacity: int
    allocated: int
    """What Placement's wire shows."""
    booked: int
    """The peak of everything live from now on, holds included; all of it where the host is away
    now. One that is planned to be away later is not full before."""


@dataclass(frozen=True, slots=True)
class HostView:
    """One host."""

    uuid: str
    name: str
    domains: Mapping[Level, str]
    resources: Mapping[str, Fill]
    traits: tuple[str, ...]


def view_fleet(parts: Parts, caller: Caller) -> tuple[Snapshot, tuple[HostView, ...]]:
    """Every host by name, and the snapshot it was read from.

    Raises:
        Forbidden: the caller is no operator.
    """
    for_operators(caller)
    snapshot = parts.store.snapshot()
    fills = _fills(snapshot)
    hosts = [
        HostView(
            uuid=snapshot.uuids[row],
            name=snapshot.names[row],
            domains=domains_of(snapshot.topology, snapshot.names[row]),
            resources=fills.get(row, {}),
            traits=tuple(sorted(snapshot.traits_of(row))),
        )
        for row in snapshot.roots.tolist()
    ]
    return snapshot, tuple(sorted(hosts, key=lambda host: host.name))


def _fills(snapshot: Snapshot) -> dict[int, dict[str, Fill]]:
    """Root row -> class -> sums over the tree's providers."""
    found: dict[int, dict[str, Fill]] = {}
    now = snapshot.taken_at
    for name, columns in sorted(snapshot.classes.items()):
        booked = columns.booked_over(Period(now))
        gone = (columns.down.start <= now) & (now < columns.down.end)
        away = np.isin(columns.rows, columns.down.owner[gone])
        roots = snapshot.root[columns.rows].tolist()
        numbers = zip(
            roots,
            columns.capacity.tolist(),
            columns.used.tolist(),
            np.where(away, np.maximum(booked, columns.capacity), booked).tolist(),
            strict=True,
        )
        for root, capacity, used, most in numbers:
            of_root = found.setdefault(root, {})
            before = of_root.get(name, Fill(0, 0, 0))
            of_root[name] = Fill(
                before.capacity + capacity, before.allocated + used, before.booked + most
            )
    return found
