"""The fleet as a map for operators: every host's fill and state, and how many of a size fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.describe import read_ensemble
from moorage.domain.errors import UnknownName
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period, from_now_on
from moorage.domain.requests import Objective
from moorage.domain.topology import DEFAULT_TREE, Level, unknown_level
from moorage.engine.capacity.capacity_over_time import hosts_where
from moorage.engine.capacity.fleet_map import (
    MOST_FITS,
    HostFlag,
    classes_of,
    host_columns,
    map_layout,
)
from moorage.engine.joint.build import build, build_on_terrain
from moorage.engine.joint.problem import most_by_host
from moorage.usecases.compliance.queries import members_of_violations
from moorage.usecases.decide.closed_hosts import closed_hosts, providers_kept
from moorage.usecases.decide.member_places import consumer_of, host_row, hosts_of, locate_members
from moorage.usecases.decide.solution import request_for
from moorage.usecases.ensembles.create import described_ensemble
from moorage.usecases.shared.access import own_ensemble, require_operator
from moorage.usecases.shared.kept_maps import FleetMap
from moorage.usecases.shared.role_resolution import known_flavor, names_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble, Member
    from moorage.domain.period import Instant
    from moorage.engine.capacity.fleet_map import MapLayout
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store
    from moorage.usecases.shared.kept_maps import MapQuery

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

PREFERRED: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
"""Classes that a map shows if nobody names one: the first of these that any host has."""


def fleet_map(
    env: UseCaseEnvironment, caller: Caller, query: MapQuery, since: str | None = None
) -> tuple[FleetMap, FleetMap | None]:
    """The map, and the one with the tag `since` if this process still knows it.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: no host has the class, or there is no such tree, level or trait.
        NotFound: no such flavor or ensemble.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    found = env.kept_maps.current(query, snapshot, lambda: _made(env, caller, snapshot, query))
    return found, None if since is None else env.kept_maps.tagged(query, since)


def _made(env: UseCaseEnvironment, caller: Caller, snapshot: Snapshot, query: MapQuery) -> FleetMap:
    at = from_now_on(query.at, snapshot.taken_at)
    level, tree = _level(snapshot, query)
    layout = map_layout(snapshot, level, tree)
    classes = classes_of(snapshot, layout)
    shown = _shown_class(classes, query.resource_class)
    columns = host_columns(snapshot, layout, shown, at)
    flags = columns.flags
    exclusive = env.store.exclusive_ensembles(snapshot).ensembles
    for flag, mask in (
        (HostFlag.BROKEN, _with_violations(env.store, snapshot)),
        (HostFlag.FILTERED, ~_wanted(env, caller, snapshot, query, at)),
        (HostFlag.EXCLUSIVE, providers_kept(exclusive, snapshot, Period(at, at + 1))),
    ):
        flags[mask[layout.rows]] |= flag.value
    fits = _fits(env, caller, snapshot, layout, query.flavor, at)
    return FleetMap(
        revision=snapshot.revision,
        at=at,
        computed_at=snapshot.taken_at,
        valid_until=snapshot.valid_until,
        resource_class=shown,
        classes=classes,
        levels=dict(snapshot.topology.levels),
        layout=layout,
        fill=columns.fill,
        flags=flags,
        fits=None if fits is None else np.minimum(fits, MOST_FITS).astype(np.uint8),
        block_free=layout.sums(columns.free),
        block_capacity=layout.sums(columns.capacity),
        block_fits=None if fits is None else layout.sums(fits),
    )


def _level(snapshot: Snapshot, query: MapQuery) -> tuple[Level | None, str]:
    """The level whose domains are the blocks; None: the tree has none.

    Raises:
        UnknownName: there is no such tree, or it has no such level.
    """
    levels = snapshot.topology.levels
    tree = query.tree or (
        DEFAULT_TREE if DEFAULT_TREE in levels else next(iter(levels), DEFAULT_TREE)
    )
    if tree not in levels and query.tree not in {None, DEFAULT_TREE}:
        raise UnknownName("tree", tree, path="tree", known=levels)
    names = levels.get(tree, ())
    if query.level is None:
        return (Level(tree, names[-1]) if names else None), tree
    if query.level not in names:
        raise unknown_level(query.level, names, path="level")
    return Level(tree, query.level), tree


def _shown_class(classes: tuple[str, ...], asked: str | None) -> str | None:
    if asked is None:
        return next((one for one in (*PREFERRED, *classes) if one in classes), None)
    if asked not in classes:
        raise UnknownName("resource class", asked, path="class", known=classes)
    return asked


def _with_violations(store: Store, snapshot: Snapshot) -> Bools:
    """[P] hosts on which a member is that an open violation concerns."""
    return _hosts_now(snapshot, members_of_violations(store))


def _hosts_now(snapshot: Snapshot, members: Iterable[Member]) -> Bools:
    found = np.zeros(len(snapshot.uuids), dtype=np.bool_)
    booked = snapshot.live_bookings({consumer_of(one) for one in members})
    rows = [
        host_row(snapshot, (snapshot.row_of[one.provider] for one in some))
        for some in booked.values()
    ]
    found[_located(snapshot, rows)] = True
    return found


def _located(snapshot: Snapshot, rows: list[int]) -> Ints:
    """The rows of the hosts where these root providers are: a slice is at its server's."""
    at = snapshot.locations.hosts[np.array(rows, dtype=np.int64)]
    found: Ints = at[at >= 0].astype(np.int64)
    return found


def _wanted(
    env: UseCaseEnvironment, caller: Caller, snapshot: Snapshot, query: MapQuery, at: Instant
) -> Bools:
    """[P] hosts that pass the filters: with the traits, and with members of the ensemble then."""
    names = names_for(env.store, caller)
    names.check_traits(query.forbidden.union(*query.required), "trait")
    found = hosts_where(snapshot, required=query.required, forbidden=query.forbidden)
    if query.ensemble is not None:
        ensemble = own_ensemble(env.store, caller, query.ensemble)
        there = np.zeros(len(found), dtype=np.bool_)
        rows = hosts_of(snapshot, ensemble.members, Period(at, at + 1))
        there[_located(snapshot, rows)] = True
        found &= there
    return found


def _fits(
    env: UseCaseEnvironment,
    caller: Caller,
    snapshot: Snapshot,
    layout: MapLayout,
    flavor: str | None,
    at: Instant,
) -> Ints | None:
    """[H] how many servers of a flavor each host takes from then on, if no other takes any."""
    if flavor is None:
        return None
    found: Ints = servers_that_fit(env, caller, snapshot, flavor, at)[layout.rows]
    return found


def servers_that_fit(
    env: UseCaseEnvironment,
    caller: Caller,
    snapshot: Snapshot,
    flavor: str,
    at: Instant | None = None,
) -> Ints:
    """[P] how many servers of a flavor each host takes from then on (None: now), each by itself.

    By the problem that is solved to place one, so what is closed to it takes none.

    Raises:
        NotFound: there is no such flavor.
    """
    name = known_flavor(env.store, flavor).name
    server = {"name": "server", "flavor": name}
    ensemble = described_ensemble(
        env, caller, read_ensemble({"name": "server", "members": [server]})
    )
    return _most(env, ensemble, snapshot, snapshot.taken_at if at is None else at)


def _most(env: UseCaseEnvironment, ensemble: Ensemble, snapshot: Snapshot, at: Instant) -> Ints:
    """[P] how many members of its one role each host takes."""
    period = Period(at)
    exclusive = env.store.exclusive_ensembles(snapshot).ensembles
    closed = closed_hosts(exclusive, snapshot, ensemble, period)
    everyone = frozenset(one.name for one in ensemble.members)
    places = locate_members(snapshot, ensemble)
    request = request_for(ensemble, places, everyone, period, Objective.PACK)
    built = build(request, snapshot, closed=closed)
    if built.terrain.devices is not None:
        # How many devices serve is counted for as many members as there are.
        role = ensemble.roles[0].name
        more = replace(request, members=tuple(MemberName(role, n) for n in range(MOST_FITS)))
        built = build_on_terrain(more, built.terrain, closed=closed)
    found = np.zeros(len(snapshot.uuids), dtype=np.int64)
    room = most_by_host(built.problem, range(len(built.problem.roles)))
    rows = built.terrain.fleet_rows
    assert room is not None, "one role has no alternatives here"
    assert rows is not None, "the terrain was cut from a snapshot"
    found[rows[: len(room)]] = room
    return found
