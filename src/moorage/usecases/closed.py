"""Hosts on which nothing is placed now, whatever a member asks for, each with its reason.

Nova's own queries leave out compute hosts that are disabled, by a forbidden trait; decisions made
here do the same.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.usecases.kept import kept_hosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Period
    from moorage.engine.snapshot import Snapshot

DISABLED_TRAIT: Final = "COMPUTE_STATUS_DISABLED"
"""What Nova puts on the provider of a host whose compute service is disabled."""
DISABLED: Final = "disabled"
"""The reason id of such hosts."""


def closed_hosts(
    keepers: Iterable[Ensemble], snapshot: Snapshot, newcomer: Ensemble, period: Period
) -> Mapping[str, frozenset[str]]:
    """Reason id -> UUIDs of hosts closed to the members of `newcomer` that are placed now.

    Args:
        keepers: ensembles that keep others out; see `kept_hosts`.
        snapshot: the fleet.
        newcomer: whose members are placed.
        period: when.
    """
    kept = kept_hosts(keepers, snapshot, newcomer, period)
    return MappingProxyType({**kept, DISABLED: disabled_hosts(snapshot)})


def disabled_hosts(snapshot: Snapshot) -> frozenset[str]:
    """UUIDs of the hosts that are disabled."""
    marked = snapshot.traits.get(DISABLED_TRAIT)
    if marked is None:
        return frozenset()
    roots = snapshot.roots
    return frozenset(snapshot.uuids[row] for row in roots[marked[roots]].tolist())
