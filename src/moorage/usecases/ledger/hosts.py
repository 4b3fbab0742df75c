"""Hosts and the fleet for operators: consumers, usage, domains, and why a host is closed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.errors import NotFound
from moorage.domain.host_states import HostState
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.resources import total
from moorage.engine.state.host_states import closings, host_states
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.host_labels import domains_of
from moorage.usecases.shared.lookup import every_record, host_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.consumers import Consumer
    from moorage.domain.host_states import Closing
    from moorage.domain.period import Instant
    from moorage.domain.resources import Amounts
    from moorage.domain.topology import Level
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store


@dataclass(frozen=True, slots=True)
class Fill:
    """Capacity and use of one resource class in a host's tree."""

    capacity: int
    allocated: int
    """The usage that Placement's API shows."""
    booked: int
    """The peak of all live bookings from now on, holds included, whether the host is closed or
    not: what is placed on it stays there."""


@dataclass(frozen=True, slots=True)
class HostView:
    """A host as an operator sees it."""

    uuid: str
    name: str
    domains: Mapping[Level, str]
    resources: Mapping[str, Fill]
    traits: tuple[str, ...]
    shares: bool = False
    """Whether it is no host, but a sharing provider or pool that hosts use."""
    state: HostState = HostState.OPEN
    closed: tuple[Closing, ...] = ()
    """Why it is not open, or will not be."""


@dataclass(frozen=True, slots=True)
class FleetView:
    """The fleet at one revision; each host's view is made when it is asked for."""

    snapshot: Snapshot
    uuids: tuple[str, ...]
    """UUIDs of the hosts, ordered by name."""
    _fills: Mapping[int, Mapping[str, Fill]]
    _windows: Mapping[str, Sequence[CapacityWindow]]

    def host(self, uuid: str) -> HostView:
        """The view of a host by its UUID."""
        row = self.snapshot.row_of[uuid]
        return _host_view(self.snapshot, row, self._fills.get(row, {}), self._windows)


def _host_view(
    snapshot: Snapshot,
    row: int,
    resources: Mapping[str, Fill],
    windows: Mapping[str, Sequence[CapacityWindow]],
) -> HostView:
    traits = snapshot.traits_of(row)
    return HostView(
        uuid=snapshot.uuids[row],
        name=snapshot.names[row],
        domains=domains_of(snapshot, row),
        resources=resources,
        traits=tuple(sorted(traits)),
        shares=SHARING_TRAIT in traits,
        state=host_states(snapshot).state(row),
        closed=tuple(host_closings(snapshot, row, windows)),
    )


def view_fleet(env: UseCaseEnvironment, caller: Caller) -> FleetView:
    """All hosts, as of one snapshot.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    rows = sorted(snapshot.hosts.tolist(), key=lambda row: snapshot.names[row])
    return FleetView(
        snapshot,
        tuple(snapshot.uuids[row] for row in rows),
        _fills(snapshot),
        windows_by_host(env.store, snapshot.taken_at),
    )


def _fills(snapshot: Snapshot, only: int | None = None) -> dict[int, dict[str, Fill]]:
    """Root row -> resource class -> sums over the tree's providers; of all roots, or of one."""
    found: dict[int, dict[str, Fill]] = {}
    now = snapshot.taken_at
    for name, columns in sorted(snapshot.classes.items()):
        roots = snapshot.root[columns.rows]
        some = slice(None) if only is None else np.flatnonzero(roots == only)
        numbers = zip(
            roots[some].tolist(),
            columns.capacity[some].tolist(),
            columns.used[some].tolist(),
            columns.booked_over(Period(now))[some].tolist(),
            strict=True,
        )
        for root, capacity, used, most in numbers:
            of_root = found.setdefault(root, {})
            before = of_root.get(name, Fill(0, 0, 0))
            of_root[name] = Fill(
                before.capacity + capacity, before.allocated + used, before.booked + most
            )
    return found


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A root provider: a host, or a provider that hosts share."""

    uuid: str
    name: str
    domains: Mapping[Level, str]
    shares: bool
    """Whether it is no host, but a sharing provider or pool that hosts use."""
    state: HostState
    closed: tuple[Closing, ...]
    """Why it is not open, or will not be."""
    consumers: int
    """The number of consumers with live bookings in its tree."""
    until: Instant | None
    """The last end of these bookings; None without any."""

    @property
    def open(self) -> bool:
        """Whether the host is in service: members may be placed on it now."""
        return self.state is HostState.OPEN


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A consumer's use of a host's tree."""

    consumer: Consumer
    booking: Booking
    """Its first booking there; all of them have the same state and end."""
    amounts: Amounts
    """Its amounts on all providers of the tree."""
    ensemble: str | None = None
    ensemble_name: str | None = None
    member: str | None = None
    lease: str | None = None


def list_hosts(env: UseCaseEnvironment, caller: Caller, page: Page) -> tuple[HostStatus, ...]:
    """A page of hosts by UUID.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: the page's marker is no host.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    if page.marker is not None:
        host_named(snapshot, page.marker)
    rows = sorted(snapshot.hosts.tolist(), key=lambda row: snapshot.uuids[row])
    after = (row for row in rows if page.marker is None or snapshot.uuids[row] > page.marker)
    windows = windows_by_host(env.store, snapshot.taken_at)
    return tuple(host_status(snapshot, row, windows) for row in islice(after, page.limit))


def show_host(
    env: UseCaseEnvironment, caller: Caller, name: str, page: Page
) -> tuple[HostStatus, HostView, tuple[Occupancy, ...]]:
    """A host by name or UUID, what it has, and a page of its consumers, ordered by UUID.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
    """
    require_operator(caller)
    store, snapshot = env.store, env.store.snapshot()
    row = host_named(snapshot, name)
    windows = windows_by_host(store, snapshot.taken_at)
    return (
        host_status(snapshot, row, windows),
        _host_view(snapshot, row, _fills(snapshot, row).get(row, {}), windows),
        tuple(_occupancies(store, snapshot, row, page)),
    )


def windows_by_host(store: Store, now: Instant) -> Mapping[str, Sequence[CapacityWindow]]:
    """Host UUID -> capacity windows that are not over, by their start."""
    found: dict[str, list[CapacityWindow]] = defaultdict(list)
    for one in every_record(store.capacity_windows):
        if one.state_at(now) != "over":
            for host in one.hosts:
                found[host].append(one)
    return {host: sorted(some, key=lambda one: one.period.start) for host, some in found.items()}


def host_closings(
    snapshot: Snapshot, row: int, windows: Mapping[str, Sequence[CapacityWindow]]
) -> Iterator[Closing]:
    """The reasons why a host is closed, now or later, with what is recorded of its windows."""
    recorded = list(windows.get(snapshot.uuids[row], ()))
    for closing in closings(snapshot, row):
        found = next((one for one in recorded if _is_of(closing, one)), None)
        if found is None:
            yield closing
        else:
            recorded.remove(found)
            yield replace(
                closing, capacity_window=found.id, kind=found.kind.value, reason=found.reason
            )


def _is_of(closing: Closing, window: CapacityWindow) -> bool:
    end = FOREVER if closing.end is None else closing.end
    return (closing.start, end) == (window.period.start, window.period.end)


def _tree(snapshot: Snapshot, row: int) -> list[int]:
    rows: list[int] = snapshot.tree(row).tolist()
    return rows


def host_status(
    snapshot: Snapshot, row: int, windows: Mapping[str, Sequence[CapacityWindow]]
) -> HostStatus:
    """The state and the use of a host."""
    now = snapshot.taken_at
    booked = [one for below in _tree(snapshot, row) for one in snapshot.bookings_of(below)]
    return HostStatus(
        uuid=snapshot.uuids[row],
        name=snapshot.names[row],
        domains=domains_of(snapshot, row),
        shares=SHARING_TRAIT in snapshot.traits_of(row),
        state=host_states(snapshot).state(row),
        closed=tuple(host_closings(snapshot, row, windows)),
        consumers=len({one.consumer for one in booked}),
        until=max((one.occupies_until(now) for one in booked), default=None),
    )


def _occupancies(store: Store, snapshot: Snapshot, row: int, page: Page) -> Iterator[Occupancy]:
    """Consumers with live bookings in a root's tree, each with all of its amounts there."""
    by_consumer: dict[str, list[Booking]] = defaultdict(list)
    for below in _tree(snapshot, row):
        for one in snapshot.bookings_of(below):
            if page.marker is None or one.consumer > page.marker:
                by_consumer[one.consumer].append(one)
    for consumer in islice(sorted(by_consumer), page.limit):
        some = by_consumer[consumer]
        # Placement's API has no consumer for a hold alone; its bookings name it.
        known = store.bookings(consumer=consumer)
        if known:  # else it has gone since the snapshot was taken
            amounts = MappingProxyType(dict(total(one.amounts for one in some)))
            yield _of_member(store, Occupancy(known[0][0], some[0], amounts))


def _of_member(store: Store, one: Occupancy) -> Occupancy:
    """The occupancy with ensemble, member and lease, if its booking names a decision."""
    if one.booking.decision is None:
        return one
    try:
        decision = store.decision(one.booking.decision)
        ensemble = store.ensemble(decision.ensemble_id)
    except NotFound:
        return one
    uuid = one.consumer.uuid
    members = (each for each in ensemble.members if uuid in {each.uuid, each.server_id})
    member = next(members, None)
    return replace(
        one,
        ensemble=ensemble.id,
        ensemble_name=ensemble.name,
        member=None if member is None else str(member.name),
        lease=decision.lease_id,
    )
