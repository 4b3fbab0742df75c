"""Planned changes of capacity: plan that hosts are away, list that, and think better of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import (
    Changeset,
    DropCapacityWindow,
    DropEffects,
    EndBookings,
    PutCapacityWindow,
)
from moorage.domain.errors import CapacityExceeded, ConcurrentUpdate, InvalidDescription, NotFound
from moorage.domain.period import FOREVER, Period, format_instant, from_now_on
from moorage.usecases.access import for_operators
from moorage.usecases.capacity.instead import hosts_meant, refusal
from moorage.usecases.capacity.notices import notices
from moorage.usecases.capacity.room import away, cleared
from moorage.usecases.capacity.staying import Staying, host_names, staying
from moorage.usecases.digest import same_request
from moorage.usecases.leases.given_back import given_back
from moorage.usecases.leases.gone import ended, endings
from moorage.usecases.patience import again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.period import Instant
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.leases.planned import Moved
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller, Page
    from moorage.usecases.proposal import Naming


@dataclass(frozen=True, slots=True)
class Planning:
    """What an operator plans."""

    kind: WindowKind
    hosts: tuple[str, ...] = ()
    """Names or UUIDs of root providers."""
    domains: tuple[str, ...] = ()
    """Names of domains, all of whose hosts are meant."""
    start: Instant | None = None
    """None: now."""
    end: Instant | None = None
    """None: for ever."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """A window, who is on its hosts, and which leases move for it."""

    window: CapacityWindow
    hosts: Mapping[str, str]
    """UUID -> name, of those that there are."""
    now: Instant
    staying: tuple[Staying, ...] = ()
    moved: tuple[str, ...] = ()
    """Ids of leases that get other places for it."""
    dry_run: bool = False


def plan_window(
    parts: Parts, caller: Caller, planning: Planning, naming: Naming, *, dry_run: bool = False
) -> Planned:
    """Let hosts be away over a period; leases in the way that have not started move.

    Where that alone is not enough preemptible users end for those that move, and are told.

    Servers that are there stay: they are told of in the answer, and again a notice before the
    beginning and at the beginning. Who ended early for a lease that moves gets a later end. The
    same request under the same id gets the window it made.

    Raises:
        Forbidden: the caller is no operator.
        NotFound, UnknownName: no such host or domain.
        InvalidDescription: no hosts, or a period that is over, or that the kind does not allow.
        WouldBreakLease: a lease holds places there and has no others.
        DuplicateName: the id was used by another request.
        Busy: the ledger moved too often.
    """
    for_operators(caller)
    if (made := _made_before(parts, naming)) is not None:
        return made
    return again(parts, lambda: _plan(parts, caller, planning, naming, dry_run=dry_run))


def _plan(
    parts: Parts, caller: Caller, planning: Planning, naming: Naming, *, dry_run: bool
) -> Planned:
    keepers = parts.store.keepers()
    snapshot = parts.store.snapshot()
    now = snapshot.taken_at
    hosts = hosts_meant(snapshot, planning.hosts, planning.domains)
    window = CapacityWindow(
        id=naming.id,
        kind=planning.kind,
        hosts=hosts,
        period=_period(planning, now),
        reason=planning.reason,
        project_id=caller.project_id,
        user_id=caller.user_id,
        digest=naming.digest,
        created_at=now,
    )
    found = cleared(
        parts, snapshot, hosts, window.period, keepers.ensembles, parts.limits.time_limit
    )
    if found.stuck:
        raise refusal(parts, snapshot, window, found, keepers.ensembles)
    moved = tuple(one.planned.lease.id for one in found.moved)
    if not dry_run:
        changes: list[Change] = [change for one in found.moved for change in one.changes(now)]
        changes += endings(parts.store, found.moved, now)
        changes += _room_given_back(parts, away(snapshot, hosts, window.period), found.moved)
        changes += [PutCapacityWindow(window), *notices(snapshot, window, parts.limits.notice)]
        relied = _relied(snapshot, hosts)
        standing: dict[str, frozenset[str]] = {}
        seen = {}
        for one in found.moved:
            standing |= one.relied()
            beside = one.providers().union(*one.relied().values())
            for uuid in beside - relied.keys():
                relied[uuid] = int(snapshot.revisions[snapshot.row_of[uuid]])
                seen[uuid] = snapshot.state(snapshot.row_of[uuid]).provider
        changeset = Changeset(
            tuple(changes),
            relies_on=MappingProxyType(relied),
            seen=MappingProxyType(seen),
            standing=MappingProxyType(standing),
            topology_revision=snapshot.topology_revision,
            keepers_revision=keepers.revision,
        )
        try:
            parts.store.commit(changeset)
        except CapacityExceeded as overtaken:
            # Where a later end was given back somebody else has come meanwhile: look again.
            raise ConcurrentUpdate(overtaken.message, subject=window.id) from overtaken
    return Planned(
        window, host_names(snapshot, window), now, staying(snapshot, window), moved, dry_run
    )


def _room_given_back(parts: Parts, view: Snapshot, moved: Sequence[Moved]) -> list[Change]:
    """Later ends for those who yielded to leases in the places that these have left.

    Args:
        parts: the ports.
        view: the fleet with the hosts away.
        moved: the leases that get other places.
    """
    instead = {who: some for one in moved for who, some in one.planned.bookings(one.places).items()}
    displaced = [gone for one in moved for gone in one.displaced]
    instead |= ended(view, displaced)
    leases = [one.planned.lease.id for one in moved]
    ending = {one.consumer for one in displaced}
    return [
        one
        for one in given_back(parts.store, view, leases, instead, parts.limits.notice)
        if not (isinstance(one, EndBookings) and one.consumers & ending)
    ]


def list_windows(parts: Parts, caller: Caller, page: Page) -> tuple[Planned, ...]:
    """Every window by creation, those that are over too, without who is there.

    Raises:
        Forbidden: the caller is no operator.
    """
    for_operators(caller)
    snapshot = parts.store.snapshot()
    return tuple(
        Planned(one, host_names(snapshot, one), snapshot.taken_at)
        for one in parts.store.capacity_windows(page=page)
    )


def show_window(parts: Parts, caller: Caller, window_id: str) -> Planned:
    """A window, and who is on its hosts at some time of it.

    Raises:
        Forbidden: the caller is no operator. NotFound: there is none.
    """
    for_operators(caller)
    return _shown(parts, parts.store.capacity_window(window_id))


def drop_window(parts: Parts, caller: Caller, window_id: str, *, dry_run: bool = False) -> None:
    """Let its hosts be there; one that has begun ends now. Leases that moved stay where they are.

    Raises:
        Forbidden: the caller is no operator. NotFound: there is none.
    """
    for_operators(caller)
    parts.store.capacity_window(window_id)
    if not dry_run:
        parts.store.commit(Changeset((DropCapacityWindow(window_id), DropEffects(window_id))))


def _made_before(parts: Parts, naming: Naming) -> Planned | None:
    if not naming.digest:  # an id that nobody gave, and nobody has
        return None
    try:
        known = parts.store.capacity_window(naming.id)
    except NotFound:
        return None
    same_request("capacity window", naming.id, stored=known.digest, given=naming.digest)
    return _shown(parts, known)


def _shown(parts: Parts, window: CapacityWindow) -> Planned:
    snapshot = parts.store.snapshot()
    there = staying(snapshot, window)
    return Planned(window, host_names(snapshot, window), snapshot.taken_at, there)


def _period(planning: Planning, now: Instant) -> Period:
    """When the hosts are away.

    Raises:
        InvalidDescription: it is over, ends before it starts, or is not what the kind means.
    """
    start = from_now_on(planning.start, now)
    end = FOREVER if planning.end is None else planning.end
    if end <= now:
        raise InvalidDescription("the window lies in the past", path="window.end")
    if planning.kind is WindowKind.MAINTENANCE and end == FOREVER:
        raise InvalidDescription(
            "maintenance has an end; decommission is for ever", path="window.end"
        )
    if planning.kind is WindowKind.DECOMMISSION and end != FOREVER:
        raise InvalidDescription("what is decommissioned does not come back", path="window.end")
    if planning.kind is WindowKind.DELIVERY and (end == FOREVER or start != now):
        raise InvalidDescription(
            "a delivery is away from now until it comes: give its end only", path="window"
        )
    if end <= start:
        raise InvalidDescription(
            f"it must end after it starts, at {format_instant(start)}", path="window.end"
        )
    return Period(start, end)


def _relied(snapshot: Snapshot, hosts: Sequence[str]) -> dict[str, int]:
    """Nobody may come or go in the trees of the hosts meanwhile."""
    rows = (row for host in hosts for row in snapshot.tree(snapshot.row_of[host]).tolist())
    return {snapshot.uuids[row]: int(snapshot.revisions[row]) for row in rows}
