"""A fleet as plain columns, made from a seed, and the snapshot that the engine gets of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.bookings import Booking
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.state.arrivals import AddedBookings
from moorage.engine.state.columns import ProviderState
from moorage.engine.state.snapshot import Snapshot
from moorage.testing.problems import OTHER_PROJECT, PROJECT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    _Rows: TypeAlias = tuple[Ints, Bools, Ints]

VCPU: Final = "VCPU"
MEMORY: Final = "MEMORY_MB"
GENERATIONS: Final = ((32, 128), (48, 192), (64, 256), (96, 512))
"""VCPU and GiB of the four kinds of hosts."""
AVX: Final = "HW_CPU_X86_AVX2"
BEYOND: Final = "CUSTOM_BEYOND_ZONE_0"
"""Trait of every host that is not in the first zone."""
RACK: Final = 25
"""Hosts of a rack."""
_EMPTY_RACKS, _EMPTY_HOSTS = 0.025, 0.025
_OWN: Final = 0.03
"""Share of the used hosts on which the ensembles' own project is alone."""
_RARE_LOAD: Final = 0.3
_SERVER: Final = 6
"""VCPUs of a server that is there already, at most."""
_UNEVEN: Final = 5.0
"""How uneven the load is: the sum of the parameters of its beta distribution."""


@dataclass(frozen=True, eq=False)
class Fleet:
    """H hosts with K resource classes; what is said of a host is in its row."""

    names: tuple[str, ...]
    """Also the UUIDs."""
    classes: tuple[str, ...]
    capacity: Ints
    """[H, K]"""
    used: Ints
    """[H, K]"""
    domains: Mapping[str, Ints]
    """Level -> [H] number of the host's domain."""
    called: Mapping[str, tuple[str, ...]]
    """Level -> the names of its domains."""
    trees: Mapping[str, tuple[str, ...]]
    """Tree -> its levels from the top down."""
    traits: Mapping[str, Bools]
    strangers: Bools
    """[H] whether consumers of other projects are on the host, and of no other."""
    relatives: Bools
    """[H] whether servers of the ensembles' own project, of no ensemble, are on it alone."""
    closed: Bools
    """[H] whether another ensemble keeps the host to itself."""

    @property
    def free(self) -> Ints:
        """What is not used, [H, K]."""
        return self.capacity - self.used

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Name of a host -> row."""
        return {name: row for row, name in enumerate(self.names)}

    @property
    def closed_names(self) -> frozenset[str]:
        """Names of the hosts that others keep to themselves."""
        return frozenset(self.names[row] for row in np.flatnonzero(self.closed).tolist())

    def with_trait(self, *traits: str) -> Bools:
        """[H] the hosts that have all of them."""
        found = np.ones(len(self.names), dtype=np.bool_)
        for trait in traits:
            found &= self.traits.get(trait, np.zeros_like(found))
        return found


def rare(hosts: int) -> str:
    """The trait that exactly so many hosts have: 4, 16, 64 or 256."""
    return f"CUSTOM_RARE_{hosts}"


def rare_sizes(hosts: int) -> tuple[int, ...]:
    """How many hosts have each rare trait, in a fleet of so many."""
    return tuple(size for size in (4, 16, 64, 256) if 8 * size <= hosts)


def zones_of(hosts: int) -> int:
    """How many zones a fleet of so many hosts has."""
    return next(zones for most, zones in ((4_000, 3), (40_000, 5), (10**9, 8)) if hosts <= most)


def make_fleet(hosts: int, *, load: float, seed: int) -> Fleet:
    """Racks of 25 of one kind of hosts, in zones; on average `load` of a host is used.

    A few racks and some more hosts are empty. Hosts with a rare trait are less full than others.
    """
    dice = np.random.default_rng(seed)
    racks = max(3, hosts // RACK)
    zones = zones_of(hosts)
    rack = np.arange(hosts) % racks
    kinds = np.array(GENERATIONS, dtype=np.int64)[rack % len(GENERATIONS)]
    traits = {AVX: rack % 4 > 0, BEYOND: rack % zones > 0}
    someone = dice.permutation(hosts)
    special = np.zeros(hosts, dtype=np.bool_)
    for size in rare_sizes(hosts):
        mine, someone = someone[:size], someone[size:]
        traits[rare(size)] = np.isin(np.arange(hosts), mine)
        special[mine] = True
    fill = _fill(dice, load, (rack, special, kinds[:, 0]))
    used = np.stack([kinds[:, 0] * fill, kinds[:, 1] * fill * dice.uniform(0.6, 1.0, hosts)], 1)
    used = np.rint(used).astype(np.int64)
    busy = used[:, 0] > 0
    own = busy & (dice.random(hosts) < _OWN)
    return Fleet(
        names=tuple(f"host-{row:06}" for row in range(hosts)),
        classes=(VCPU, MEMORY),
        capacity=kinds,
        used=np.where(busy[:, None], used, 0),
        domains={"zone": rack % zones, "rack": rack, "feed": np.arange(hosts) % (2 * racks)},
        called={
            "zone": tuple(f"az{number}" for number in range(zones)),
            "rack": tuple(f"rack{number:04}" for number in range(racks)),
            "feed": tuple(f"feed{number:04}" for number in range(2 * racks)),
        },
        trees={"location": ("zone", "rack"), "power": ("feed",)},
        traits=traits,
        strangers=busy & ~own,
        relatives=own,
        closed=np.zeros(hosts, dtype=np.bool_),
    )


def _fill(dice: np.random.Generator, load: float, fleet_rows: _Rows) -> Floats:
    """[H] how full each host is, such that `load` of all VCPUs is used."""
    rack, special, cores = fleet_rows
    hosts = len(rack)
    empty = (dice.random(int(rack.max()) + 1) < _EMPTY_RACKS)[rack]
    empty |= dice.random(hosts) < _EMPTY_HOSTS
    # A rare host is never wholly empty: then its load is as uneven as that of the others.
    empty &= ~special
    fill = dice.beta(_UNEVEN * load, _UNEVEN * (1 - load), hosts)
    fill[special] *= _RARE_LOAD
    fill[empty] = 0.0
    usual = ~special & ~empty
    wanted = cores[usual].sum() + (cores * fill)[special].sum() - load * cores.sum()
    room = wanted / (cores * (1 - fill))[usual].sum()
    return np.where(usual, np.maximum(0.0, 1 - (1 - fill) * room), fill)


def topology_of(fleet: Fleet) -> Topology:
    """The trees of a fleet. Each domain is below the one that its first host says."""
    domains, leaves = [], []
    for tree, levels in fleet.trees.items():
        for above, level in zip((None, *levels), levels, strict=False):
            numbers, names = fleet.domains[level], fleet.called[level]
            first = np.full(len(names), -1, dtype=np.int64)
            first[numbers[::-1]] = np.arange(len(numbers))[::-1]
            for number, name in enumerate(names):
                parent = None
                if above is not None and first[number] >= 0:
                    parent = fleet.called[above][int(fleet.domains[above][first[number]])]
                domains.append(Domain(name, level, tree, parent=parent))
        lowest = levels[-1]
        leaves += [
            Attachment(host, fleet.called[lowest][number], tree)
            for host, number in zip(fleet.names, fleet.domains[lowest].tolist(), strict=True)
        ]
    return Topology.build(fleet.trees, domains, leaves)


def snapshot_of(fleet: Fleet) -> Snapshot:
    """The fleet as the engine knows it: each host with what is booked on it, and by whom."""
    return snapshot_with(fleet, states_of(fleet))


def snapshot_with(fleet: Fleet, states: Iterable[ProviderState]) -> Snapshot:
    """The same of hosts with more: these are all providers."""
    return Snapshot.empty().with_states(
        states, revision=1, topology=topology_of(fleet), topology_revision=1
    )


def states_of(fleet: Fleet) -> Iterator[ProviderState]:
    """Each host with what is booked on it, and by whom."""
    traits = [set[str]() for _ in fleet.names]
    for trait, mask in fleet.traits.items():
        for row in np.flatnonzero(mask).tolist():
            traits[row].add(trait)
    return (_state(fleet, row, frozenset(mine)) for row, mine in enumerate(traits))


def _state(fleet: Fleet, row: int, traits: frozenset[str]) -> ProviderState:
    name = fleet.names[row]
    provider = ResourceProvider(
        uuid=name,
        name=name,
        parent_uuid=None,
        root_uuid=name,
        inventories=tuple(
            Inventory(resource_class, total)
            for resource_class, total in zip(
                fleet.classes, fleet.capacity[row].tolist(), strict=True
            )
            if total > 0
        ),
        traits=traits,
    )
    owner = OTHER_PROJECT if fleet.strangers[row] else PROJECT
    bookings = [
        Booking(f"server-{row}-{number}", name, amounts, Period(0))
        for number, amounts in enumerate(servers_of(fleet.classes, fleet.used[row]))
    ]
    occupants = tuple(Occupant(one.consumer, owner) for one in bookings)
    return ProviderState(provider, tuple(bookings), occupants)


def servers_of(classes: tuple[str, ...], used: Ints) -> Iterator[Mapping[str, int]]:
    """What the servers of a host take each; together all that is used of it."""
    count = -(-int(used[0]) // _SERVER)
    for number in range(count):
        parts = zip(classes, used.tolist(), strict=True)
        yield MappingProxyType(
            {
                name: amount * (number + 1) // count - amount * number // count
                for name, amount in parts
            }
        )


def after_a_commit(
    fleet: Fleet, snapshot: Snapshot, number: int, avoid: Collection[int]
) -> tuple[Fleet, Snapshot]:
    """The fleet after somebody's server of one VCPU was built, and the next snapshot.

    The host is none to be avoided, has no rare trait and is in use by others already, so that no
    answer and no conflict that was planted is touched.
    """
    ordinary = fleet.strangers & (fleet.free[:, fleet.classes.index(VCPU)] > 0)
    for trait, mask in fleet.traits.items():
        if trait.startswith(rare(0)[:-1]):
            ordinary &= ~mask
    ordinary[list(avoid)] = False
    rows = np.flatnonzero(ordinary)
    row = int(rows[(number * 7919) % len(rows)])
    amounts = {row: [MappingProxyType({VCPU: 1})]}
    used = fleet.used.copy()
    used[row, fleet.classes.index(VCPU)] += 1
    return replace(fleet, used=used), booked(snapshot, fleet, amounts, f"commit-{number}")


def booked(
    snapshot: Snapshot,
    fleet: Fleet,
    amounts: Mapping[int, Sequence[Mapping[str, int]]],
    consumer: str,
) -> Snapshot:
    """The next snapshot: on each of these hosts (rows) servers of others that take so much."""
    added = []
    for row, servers in amounts.items():
        uuid = fleet.names[row]
        old = snapshot.state(snapshot.row(uuid))
        bookings = tuple(
            Booking(f"{consumer}-{uuid}-{number}", uuid, taken, Period(0))
            for number, taken in enumerate(servers)
        )
        state = replace(
            old,
            provider=replace(old.provider, revision=old.provider.revision + 1),
            bookings=(*old.bookings, *bookings),
            occupants=(
                *old.occupants,
                *(Occupant(one.consumer, OTHER_PROJECT) for one in bookings),
            ),
        )
        added.append(AddedBookings(state, bookings))
    return snapshot.with_states(added, revision=snapshot.revision + 1)
