"""Cuts an expanded fleet into parts; each is one request and one transaction.

Each part leaves a sound ledger, so what breaks off in between is loaded by doing it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet_expansion import ExpandedFleet
    from moorage.domain.fleet_load import ForeignLoad
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.topology import Topology


HOSTS_PER_PART: Final = 250
"""Keeps a part's transaction well under a second and its body under a few megabytes."""


@dataclass(frozen=True, slots=True)
class FleetPart:
    """Some hosts with their load; flavors and topology in the part where the order needs them.

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
    """Cut a fleet into parts of about that many providers; there is always at least one.

    A fleet without trees says nothing of where hosts stand, so its parts have no topology.
    """
    topology = fleet.topology if fleet.topology.levels else None
    order = {one.uuid: number for number, one in enumerate(fleet.providers)}
    ready: dict[str, list[ForeignLoad]] = {}
    for load in fleet.load:
        # With the last of its providers, all of them are there.
        ready.setdefault(max(load.allocations, key=order.__getitem__), []).append(load)
    pieces = list(_whole_trees(fleet.providers, hosts_per_part)) or [()]
    for number, providers in enumerate(pieces):
        yield FleetPart(
            providers=providers,
            load=tuple(load for one in providers for load in ready.get(one.uuid, ())),
            flavors=fleet.flavors if number == 0 else (),
            topology=topology if number + 1 == len(pieces) else None,
            lines={
                uuid: fleet.lines[uuid]
                for one in providers
                for uuid in (one.uuid, one.root_uuid)
                if uuid in fleet.lines
            },
        )


def _whole_trees(
    providers: Sequence[ResourceProvider], most: int
) -> Iterator[tuple[ResourceProvider, ...]]:
    """Runs of at most so many providers; a larger tree is a run by itself."""
    piece: list[ResourceProvider] = []
    for _, tree in groupby(providers, key=lambda one: one.root_uuid):
        some = list(tree)
        if piece and len(piece) + len(some) > most:
            yield tuple(piece)
            piece = []
        piece += some
    if piece:
        yield tuple(piece)
