"""A fleet in parts: each is one request and one transaction, and leaves a sound ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet_expansion import ExpandedFleet
    from moorage.domain.fleet_load import ForeignLoad
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.topology import Topology

HOSTS_PER_PART: Final = 250
"""Keeps a part's transaction well under a second and its body under a few megabytes."""


@dataclass(frozen=True, slots=True)
class FleetPart:
    """Some hosts with the load on them; flavors and topology where they belong in the order.

    Flavors come with the first part, the topology with the last: it names hosts, which must
    be there.
    """

    providers: tuple[ResourceProvider, ...] = ()
    load: tuple[ForeignLoad, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    topology: Topology | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Provider -> line of the file that describes it, where there is a file."""


def parts(fleet: ExpandedFleet, hosts_per_part: int = HOSTS_PER_PART) -> Iterator[FleetPart]:
    """Cut a fleet into parts of at most that many hosts; there is always at least one.

    A fleet without trees says nothing of where hosts stand, so its parts have no topology.
    """
    topology = fleet.topology if fleet.topology.levels else None
    on_host: dict[str, list[ForeignLoad]] = {}
    for load in fleet.load:
        for provider in load.allocations:
            on_host.setdefault(provider, []).append(load)
    starts = range(0, max(len(fleet.providers), 1), hosts_per_part)
    for start in starts:
        providers = fleet.providers[start : start + hosts_per_part]
        yield FleetPart(
            providers=providers,
            load=tuple(load for one in providers for load in on_host.get(one.uuid, ())),
            flavors=fleet.flavors if start == 0 else (),
            topology=topology if start == starts[-1] else None,
            lines={one.uuid: fleet.lines[one.uuid] for one in providers if one.uuid in fleet.lines},
        )
