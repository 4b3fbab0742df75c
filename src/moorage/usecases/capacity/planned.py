"""Planned changes of capacity: plan that hosts are away, list that, and think better of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import Changeset, DropCapacityWindow, DropEffects, PutCapacityWindow
from moorage.domain.effects import EffectKind
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.domain.period import FOREVER, Period, format_instant, from_now_on
from moorage.usecases.access import for_operators
from moorage.usecases.capacity.instead import hosts_meant, refusal
from moorage.usecases.capacity.room import cleared, there
from moorage.usecases.digest import same_request
from moorage.usecases.leases import facts
from moorage.usecases.patience import again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.period import Instant
    from moorage.engine.snapshot import Snapshot
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
class Staying:
    """Somebody on such a host, who has to go by himself, or be moved by its operator."""

    consumer: str
    project_id: str
    host: str
    """Its name."""
    state: BookingState
    end: Instant
    """When it ends by itself."""


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

    Servers that are there stay: they are told of in the answer, and again a notice before the
    beginning and at the beginning. The same request under the same id gets the window it made.

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
        changes += [PutCapacityWindow(window), *_notices(parts, snapshot, window)]
        relied = _relied(snapshot, hosts)
        standing: dict[str, frozenset[str]] = {}
        seen = {}
        for one in found.moved:
            standing |= one.relied()
            beside = one.providers().union(*one.relied().values())
            for uuid in beside - relied.keys():
                relied[uuid] = int(snapshot.revisions[snapshot.row_of[uuid]])
                seen[uuid] = snapshot.state(snapshot.row_of[uuid]).provider
        parts.store.commit(
            Changeset(
                tuple(changes),
                relies_on=MappingProxyType(relied),
                seen=MappingProxyType(seen),
                standing=MappingProxyType(standing),
                topology_revision=snapshot.topology_revision,
                keepers_revision=keepers.revision,
            )
        )
    return Planned(
        window, _names(snapshot, window), now, _staying(snapshot, window), moved, dry_run
    )


def list_windows(parts: Parts, caller: Caller, page: Page) -> tuple[Planned, ...]:
    """Every window by creation, those that are over too, without who is there.

    Raises:
        Forbidden: the caller is no operator.
    """
    for_operators(caller)
    snapshot = parts.store.snapshot()
    return tuple(
        Planned(one, _names(snapshot, one), snapshot.taken_at)
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
    staying = _staying(snapshot, window)
    return Planned(window, _names(snapshot, window), snapshot.taken_at, staying)


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


def _names(snapshot: Snapshot, window: CapacityWindow) -> dict[str, str]:
    known = ((uuid, snapshot.row_of.get(uuid)) for uuid in window.hosts)
    return {uuid: snapshot.names[row] for uuid, row in known if row is not None}


def _staying(snapshot: Snapshot, window: CapacityWindow) -> tuple[Staying, ...]:
    """Who is on the hosts at some time of the window and belongs to no lease that moves."""
    period = window.period
    ahead = Period(max(period.start, snapshot.taken_at), max(period.end, snapshot.taken_at + 1))
    hosts = [one for one in window.hosts if one in snapshot.row_of]
    rows = [row for one in hosts for row in snapshot.tree(snapshot.row_of[one]).tolist()]
    whose = {one.consumer: one.project_id for row in rows for one in snapshot.state(row).occupants}
    found: dict[str, Staying] = {}
    for host, one in there(snapshot, hosts, ahead):
        if one.state is BookingState.RESERVED:
            continue
        found[one.consumer] = Staying(
            consumer=one.consumer,
            project_id=whose.get(one.consumer, ""),
            host=snapshot.names[snapshot.row_of[host]],
            state=one.state,
            end=one.occupies_until(snapshot.taken_at),
        )
    return tuple(sorted(found.values(), key=lambda one: (one.host, one.consumer)))


def _notices(parts: Parts, snapshot: Snapshot, window: CapacityWindow) -> list[Change]:
    """Its operator is told a notice before it begins, and when it begins."""
    now, start = snapshot.taken_at, window.period.start
    if window.kind is WindowKind.DELIVERY:
        start = window.period.end
    instants = {max(start - parts.limits.notice, now): "soon", start: "begins"}
    if window.kind is WindowKind.DELIVERY:
        instants = {start: "there"}
    end = window.period.end
    return [
        facts.fact(
            EffectKind.NOTIFY,
            window.id,
            window.project_id,
            due=at,
            now=now,
            details={
                "capacity_window": window.id,
                "kind": window.kind.value,
                "edge": edge,
                "hosts": sorted(_names(snapshot, window).values()),
                "start": format_instant(window.period.start),
                "end": None if end == FOREVER else format_instant(end),
                "reason": window.reason,
            },
            same=(window.id, edge),
        )
        for at, edge in instants.items()
    ]
