"""The terrain: the hosts as one joint request needs them, as columns cut from a snapshot.

A host is a living root provider that does not share its inventory with others; one that does is a
pool. The terrain has all
that a problem, a policy or an explanation needs, so a changed request (a relaxation, one member
more) is solved without the snapshot, and an instance can be saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from moorage.domain.ensembles import KEEPING, MAX_MEMBERS
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.resources import MAX_AMOUNT
from moorage.domain.server_providers import OPERATORS
from moorage.domain.topology import HOST, OWN_LEVELS, SERVER, Level
from moorage.engine.devices.host_trees import columns_of, devices_of
from moorage.engine.joint.member_bookings import staying_allocations
from moorage.engine.joint.terrain_rows import levels_of_rows, rows_by_name, terrain_rows
from moorage.engine.state.domains import domains_at, domains_at_first_of
from moorage.engine.state.server_locations import usable_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.period import Period
    from moorage.domain.placement import Occupant, Place
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.topology import Topology
    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.joint.member_bookings import Allocations
    from moorage.engine.joint.terrain_rows import TerrainRows
    from moorage.engine.state.domains import Domains
    from moorage.engine.state.owners import Forbids
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


MOST_FREE: Final = 2 * MAX_AMOUNT * MAX_MEMBERS
"""Cap of free capacity: more than any request can ask for, and small enough that hundreds of
thousands of hosts can be summed in 64 bits, whatever their allocation ratios."""


@dataclass(frozen=True, eq=False)
class Terrain:
    """H hosts (rows) with the K resource classes, traits and aggregates a request names.

    Servers that offer slices are rows as well if a role of the request stands on them, those that
    its project may use. So are pools if a role is of volumes or ports, or a policy keeps others out
    of domains. What is said of hosts is said of all rows.
    """

    uuids: tuple[str, ...]
    names: tuple[str, ...]
    classes: tuple[str, ...]
    capacity: Ints
    """[H, K] of the empty hosts; 0 where the host has none of the class. At most what is booked
    plus `MOST_FREE`."""
    free: Ints
    """[H, K] capacity less the peak of every live booking over the request's period."""
    min_unit: Ints
    max_unit: Ints
    """[H, K]; 0 where the host has none of the class, so that no amount obeys."""
    step_size: Ints
    traits: Mapping[str, Bools]
    """Trait -> [H]; absent: no host has it."""
    aggregates: Mapping[str, Bools]
    """Aggregate UUID -> [H]; absent: no host is in it."""
    topology: Topology
    levels: Mapping[Level, tuple[Ints, tuple[str, ...]]]
    """Level of the topology -> domain number or -1 per host [H], and the numbers' names."""
    occupants_of: Callable[[int], Sequence[Occupant]]
    """Row -> occupants of the host's tree within the request's period."""
    occupied: Callable[[Forbids, frozenset[str]], Bools] | None = None
    """As `rows_with`, without looking at each occupant."""
    devices: Devices | None = None
    """The nested and sharing providers, if the request uses any. Then the columns are sums over all
    providers that a host's members may use, without unit rules."""
    standing_on: Ints | None = None
    """[H] row of the host on which each row is: its own, or that of its server's host, or -1 if the
    server is on none. None: every row is a host."""
    staying: Callable[[], Sequence[Allocations]] = tuple
    """What those of the ensemble's members have booked that stay where they are."""
    emptied: bool = False
    """Whether the bookings of all others are left out."""
    usable: Mapping[str, Bools] = field(default_factory=lambda: MappingProxyType({}))
    """Another project that roles belong to, or "" -> [H] servers that its slices may use. Absent:
    all."""
    offered: Mapping[str, Bools] = field(default_factory=lambda: MappingProxyType({}))
    """Who offers servers, as `Role.servers_of` says it, or "" for the request's own project -> [H]
    these servers; of all whom roles belong to or name. Empty: slices may use whatever is usable."""
    _or_below: dict[Level, Domains] = field(default_factory=dict, repr=False)
    """Cache of levels with `or_below`; bookings do not change them."""
    _lists: dict[Level, list[int]] = field(default_factory=dict, repr=False)
    """Cache of `domain_list`."""
    _hosts: TerrainRows | None = field(default=None, repr=False)
    """What later snapshots with these hosts know of them as well."""

    @property
    def host_count(self) -> int:
        """H."""
        return len(self.uuids)

    @property
    def fleet_rows(self) -> Ints | None:
        """[H] rows in the snapshot that it was cut from; None: read from an instance."""
        return None if self._hosts is None else self._hosts.rows

    @property
    def locations(self) -> Ints:
        """[H] row of the host on which each row is, or -1: what policies judge a member by.

        A host or pool is its own; what a server offers is where the server is.
        """
        return self._rows if self.standing_on is None else self.standing_on

    def located(self, hosts: Bools) -> Bools:
        """[H] rows whose location is one of these [H] hosts."""
        if self.standing_on is None:
            return hosts
        return (self.standing_on >= 0) & hosts[self.standing_on]

    def domains(self, level: Level) -> Ints:
        """[H] domain number or -1; at the levels `host` and `server` a row, in every tree."""
        if level.name == HOST:
            return self.locations
        if level.name == SERVER:
            return np.where(self.offering, self._rows, -1)
        if level.or_below:
            return self._domains_or_below(level).numbers.astype(np.int64)
        return self.levels[level][0]

    def domain_list(self, level: Level) -> Sequence[int]:
        """`domains` as a list, which is quicker to read host by host."""
        found = self._lists.get(level)
        if found is None:
            found = self._lists[level] = self.domains(level).tolist()
        return found

    def domain_name(self, level: Level, domain: int) -> str:
        """The name of a domain number."""
        if level.or_below:
            return self._domains_or_below(level).names[domain]
        return self.names[domain] if level.name in OWN_LEVELS else self.levels[level][1][domain]

    @property
    def _rows(self) -> Ints:
        return np.arange(self.host_count, dtype=np.int64)

    @cached_property
    def offering(self) -> Bools:
        """[H] the servers that offer slices; all others are hosts or pools."""
        if self.standing_on is None:
            return np.zeros(self.host_count, dtype=np.bool_)
        return np.asarray(self.standing_on != self._rows)

    @property
    def pools(self) -> Bools:
        """[H] providers that share their inventory with hosts."""
        return self.has_trait(SHARING_TRAIT)

    def _domains_or_below(self, level: Level) -> Domains:
        found = self._or_below.get(level)
        if found is None:
            upwards = self.topology.upwards(level.tree)
            downwards = reversed(upwards[: upwards.index(level.name) + 1])
            plain = [Level(level.tree, name) for name in downwards]
            found = self._or_below[level] = domains_at_first_of(
                [self.domains(one) for one in plain],
                [self.names if one.name == HOST else self.levels[one][1] for one in plain],
            )
        return found

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Host name or UUID -> row."""
        return rows_by_name(self.uuids, self.names) if self._hosts is None else self._hosts.row_of

    def rows_named(self, name: str) -> Bools:
        """[H] rows at what a name or UUID means: a host, a domain of any tree, an aggregate.

        The name of what a server offers means that alone.
        """
        mask = np.zeros(self.host_count, dtype=np.bool_)
        if name in self.row_of:
            mask[self.row_of[name]] = True
            mask |= self.located(mask)
        if name in self.aggregates:
            mask |= self.located(self.aggregates[name])
        for tree in self.topology.levels:
            domain = self.topology.domains.get((tree, name))
            if domain is not None:
                numbers, names = self.levels[Level(tree, domain.level)]
                mask |= numbers == names.index(name)
        return mask

    def has_trait(self, trait: str) -> Bools:
        """[H] whether the row itself has the trait, as what gives members their resources."""
        return self.traits.get(trait, np.zeros(self.host_count, dtype=np.bool_))

    def rows_with(self, forbids: Forbids, without: frozenset[str]) -> Bools:
        """[H] hosts with a forbidden occupant, apart from the consumers in `without`."""
        if self.occupied is not None:
            return self.occupied(forbids, without)
        return np.array(
            [
                any(one.consumer not in without and forbids(one) for one in self.occupants_of(row))
                for row in range(self.host_count)
            ],
            dtype=np.bool_,
        )

    def with_places(self, places: Sequence[Place]) -> Terrain:
        """The terrain after these places were taken from the free capacity."""
        return self.with_allocations([place.allocations for place in places])

    def with_allocations(self, taken: Sequence[Allocations]) -> Terrain:
        """The terrain after these amounts by provider UUID were taken from the free capacity."""
        if self.devices is not None:
            return self.with_devices(self.devices.with_places(taken))
        free = self.free.copy()
        for allocations in taken:
            for host, amounts in allocations.items():
                for name, amount in amounts.items():
                    free[self.row_of[host], self.classes.index(name)] -= amount
        return replace(self, free=free)

    def without_bookings(self) -> Terrain:
        """The terrain without any bookings but those of the ensemble's members that stay."""
        alone = replace(self, occupants_of=lambda _row: (), occupied=None, emptied=True)
        if self.devices is None:
            emptied = replace(alone, free=self.capacity)
        else:
            emptied = alone.with_devices(self.devices.without_bookings())
        known = self.row_of if self.devices is None else self.devices.position_of
        return emptied.with_allocations(
            [
                {
                    provider: {name: amounts[name] for name in amounts.keys() & set(self.classes)}
                    for provider, amounts in allocations.items()
                    if provider in known
                }
                for allocations in self.staying()
            ]
        )

    def with_devices(self, devices: Devices) -> Terrain:
        """The terrain with its devices in this state."""
        sums = _sums(devices, self.host_count)
        return replace(self, devices=devices, capacity=sums["capacity"], free=sums["free"])


def cut_terrain(snapshot: Snapshot, request: EnsembleRequest) -> Terrain:
    """Cut the terrain of a request from a snapshot."""
    usable = _usable(snapshot, request)
    # Pools are also in the domains that a policy keeps to the members, whatever these are.
    # A policy may refer to an ensemble with members on pools.
    pools = (
        any(role.of_one_provider for role in request.every_choice)
        or any(one.type in KEEPING for one in request.policies)
        or bool(request.references)
    )
    hosts = terrain_rows(snapshot, _servers(snapshot, request, usable), pools=pools)
    rows = hosts.rows
    words = set(_named_strings(request)) | ({SHARING_TRAIT} if pools else set())
    topology = snapshot.topology
    devices = devices_of(snapshot, request, rows, MOST_FREE)
    classes = tuple(sorted({name for role in request.every_choice for name in role.resources}))
    columns: dict[str, Any] = (
        {"classes": classes, **columns_of(snapshot, request, rows, classes, MOST_FREE)}
        if devices is None
        else {"classes": devices.classes, **_sums(devices, len(rows))}
    )
    return Terrain(
        uuids=hosts.uuids,
        names=hosts.names,
        **columns,
        traits={name: mask[rows] for name, mask in snapshot.traits.items() if name in words},
        aggregates={
            name: np.isin(rows, members)
            for name, members in snapshot.aggregates.items()
            if name in words
        },
        topology=topology,
        levels=hosts.levels or levels_of_rows(snapshot, rows),
        occupants_of=_occupants(snapshot, rows, request.period),
        occupied=lambda forbids, without: snapshot.roots_with(
            forbids, request.period, without=without
        )[rows],
        devices=devices,
        standing_on=_standing_on(snapshot, rows) if hosts.servers else None,
        usable={project: np.isin(rows, some) for project, some in usable.items()},
        offered=_offered(snapshot, request, rows) if hosts.servers else {},
        staying=lambda: staying_allocations(snapshot, request),
        _lists=hosts.lists if hosts.levels else {},
        _hosts=hosts,
    )


def level_columns(
    topology: Topology, names: Sequence[str], standing_on: Ints | None = None
) -> dict[Level, tuple[Ints, tuple[str, ...]]]:
    """`Terrain.levels` for hosts with these names; for `standing_on` see `Terrain`."""
    on = np.arange(len(names)) if standing_on is None else standing_on
    somewhere, root = on >= 0, on.astype(np.int32)
    found = {}
    for level in topology.every_level:
        domains = domains_at(topology, level, names=names, root=root, alive=somewhere)
        found[level] = (domains.numbers.astype(np.int64), domains.names)
    return found


def _usable(snapshot: Snapshot, request: EnsembleRequest) -> dict[str, tuple[int, ...]]:
    """`Terrain.usable` as rows of the snapshot."""
    if not snapshot.offered_by:
        return {}
    projects = {
        role.shared_with for role in request.roles if any(one.is_slice for one in role.choices)
    }
    return {
        project: tuple(usable_servers(snapshot, project or request.project_id))
        for project in projects
    }


def _offered(snapshot: Snapshot, request: EnsembleRequest, rows: Ints) -> dict[str, Bools]:
    """`Terrain.offered` of these rows of the snapshot."""
    found: dict[str, list[bool]] = {}
    named = {name for role in request.every_choice for name in role.servers_of}
    for name in named.union(role.shared_with for role in request.roles):
        owner = name or request.project_id
        found[name] = [
            row in snapshot.offered_by
            and (
                snapshot.state(row).provider.by_operator
                if name == OPERATORS
                else snapshot.state(row).provider.owner == owner
            )
            for row in rows.tolist()
        ]
    return {name: np.array(mask, dtype=np.bool_) for name, mask in found.items()}


def _servers(
    snapshot: Snapshot, request: EnsembleRequest, usable: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """Rows of the server providers that a request's slices may use, or stand on already."""
    offered = snapshot.offered_by
    fixed = request.fixed.values() if offered else ()
    standing = {snapshot.row_of.get(host, -1) for host in fixed} & offered.keys()
    return tuple(sorted(standing.union(*usable.values())))


def _standing_on(snapshot: Snapshot, rows: Ints) -> Ints:
    """`Terrain.standing_on` of these rows of the snapshot."""
    at = np.full(len(snapshot.uuids), -1, dtype=np.int64)
    at[rows] = np.arange(len(rows))
    hosts = snapshot.locations.hosts[rows]
    return np.where(hosts >= 0, at[hosts], -1)


def _occupants(
    snapshot: Snapshot, rows: Ints, period: Period
) -> Callable[[int], Sequence[Occupant]]:
    """A cached lookup of a host's occupants, with a fast path for hosts with nothing below them."""

    @cache
    def parents() -> Bools:
        found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
        found[snapshot.parent[snapshot.alive & (snapshot.parent >= 0)]] = True
        found[list(snapshot.locations.on_host)] = True
        return found

    @cache
    def of(row: int) -> Sequence[Occupant]:
        host = int(rows[row])
        if parents()[host]:
            return snapshot.occupants(host, period)
        live = snapshot.consumers_in(host, period)
        return tuple(one for one in snapshot.state(host).occupants if one.consumer in live)

    return of


def _named_strings(request: EnsembleRequest) -> Iterator[str]:
    """Every trait and aggregate that a role names, and every string in a policy's parameters.

    Parameters are searched without knowing the policy type, so it works for plug-ins too.
    """
    for role in request.every_choice:
        for any_of in (*role.required, role.forbidden, role.root_required, *role.member_of):
            yield from any_of
    stack: list[object] = [statement.parameters for statement in request.policies]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif hasattr(item, "values"):
            stack.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            stack.extend(item)


def _sums(devices: Devices, hosts: int) -> dict[str, Ints]:
    """The capacity columns of hosts with devices: sums over the providers."""
    classes = range(len(devices.classes))
    free = np.empty((len(classes), hosts), dtype=np.int64).T
    booked = np.empty_like(free)
    for k in classes:
        left, taken = devices.free[:, k], devices.capacity[:, k] - devices.free[:, k]
        left = np.maximum(left, 0)
        free[:, k] = devices.per_host(left, left, hosts)
        booked[:, k] = devices.per_host(taken, taken, hosts)
    np.minimum(free, MOST_FREE, out=free)
    nothing = np.zeros_like(free)
    return {
        "capacity": free + booked,
        "free": free,
        "min_unit": nothing,
        "max_unit": nothing,
        "step_size": nothing + 1,
    }
