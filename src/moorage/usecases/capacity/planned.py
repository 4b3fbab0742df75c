"""Planned changes of capacity: create, list and delete windows in which hosts are away."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import (
    Changeset,
    DropCapacityWindow,
    DropEffects,
    EndBookings,
    PutCapacityWindow,
)
from moorage.domain.errors import (
    CapacityExceeded,
    ConcurrentUpdate,
    InvalidDescription,
    NotFound,
    WouldBreakLease,
)
from moorage.domain.period import (
    DAY,
    FOREVER,
    HOUR,
    Period,
    format_instant,
    from_now_on,
    say_duration,
)
from moorage.domain.plain_values import line
from moorage.usecases.capacity.planned_leases import (
    Clearance,
    clear_hosts,
    lease_ends,
    with_hosts_away,
)
from moorage.usecases.capacity.planned_notices import (
    RemainingOccupant,
    host_names,
    remaining_occupants,
    window_notices,
)
from moorage.usecases.compliance.impact import NOTHING as NO_IMPACT
from moorage.usecases.compliance.impact import Impact, ensembles_at, newly_broken
from moorage.usecases.preemption.restoration import restored_ends
from moorage.usecases.shared.access import made_by_request, require_operator
from moorage.usecases.shared.lookup import hosts_of_domain
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller
    from moorage.usecases.relocation.movable_leases import LeaseMove


_JUDGING: Final = 2.0
"""Seconds for which is judged what a window breaks."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A capacity window as requested by an operator."""

    kind: WindowKind
    hosts: tuple[str, ...] = ()
    """Names or UUIDs of root providers."""
    domains: tuple[str, ...] = ()
    """Names of domains; all of their hosts are included."""
    start: Instant | None = None
    """None: now."""
    end: Instant | None = None
    """None: for ever."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """A capacity window, the consumers on its hosts, and the leases that move for it."""

    window: CapacityWindow
    hosts: Mapping[str, str]
    """UUID -> name of its hosts that exist."""
    now: Instant
    staying: tuple[RemainingOccupant, ...] = ()
    moved: tuple[str, ...] = ()
    """Ids of leases that move for it."""
    breaks: Impact = NO_IMPACT
    """The violations that begin with it, of the ensembles whose members stay there."""


def plan_window(
    env: UseCaseEnvironment,
    caller: Caller,
    planning: PlanRequest,
    identity: RequestIdentity,
) -> PlannedWindow:
    """Plan an absence of hosts; leases on them that have not started move.

    If moving is not enough, preemptible consumers are displaced for the moved leases, and warned.
    Servers on the hosts stay: the answer lists them, and so do notices before and at the beginning.
    Consumers displaced for a lease that moves away get later ends. A repeat of the request with the
    same id returns its window.

    Raises:
        Forbidden: the caller is no operator.
        NotFound, UnknownName: no such host or domain.
        InvalidDescription: no hosts, a period that is over or that the kind does not allow, or a
            reason with control characters.
        WouldBreakLease: a lease on the hosts cannot get other places.
        DuplicateName: another request used the same id.
        Busy: too many conflicting commits.
    """
    require_operator(caller)
    line(planning.reason, "window.reason")
    if (made := _made_before(env, identity)) is not None:
        return made
    return retry(env, lambda: _plan(env, caller, planning, identity))


def _plan(
    env: UseCaseEnvironment,
    caller: Caller,
    planning: PlanRequest,
    identity: RequestIdentity,
) -> PlannedWindow:
    snapshot = env.store.snapshot()
    exclusive = env.store.exclusive_ensembles(snapshot)
    now = snapshot.taken_at
    hosts = resolve_hosts(snapshot, planning.hosts, planning.domains)
    window = CapacityWindow(
        id=identity.id,
        kind=planning.kind,
        hosts=hosts,
        period=_period(planning, now),
        reason=planning.reason,
        project_id=caller.project_id,
        user_id=caller.user_id,
        digest=identity.digest,
        created_at=now,
    )
    found = clear_hosts(
        env, snapshot, hosts, window.period, exclusive.ensembles, env.limits.time_limit
    )
    if found.stuck:
        raise window_refusal(env, snapshot, window, found, exclusive.ensembles)
    moved = tuple(one.planned.lease.id for one in found.moved)
    changes: list[Change] = [change for one in found.moved for change in one.changes(now)]
    changes += [one for each in found.moved for one in each.endings(env.store, now)]
    changes += _room_given_back(env, with_hosts_away(snapshot, hosts, window.period), found.moved)
    changes += [
        PutCapacityWindow(window),
        *window_notices(snapshot, window, env.limits.notice),
    ]
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
        exclusive_revision=snapshot.exclusive_revision,
    )
    try:
        env.store.commit(changeset)
    except CapacityExceeded as overtaken:
        # A booking has meanwhile taken capacity that a later end needs: compute again.
        raise ConcurrentUpdate(overtaken.message, subject=window.id) from overtaken
    return PlannedWindow(
        window,
        host_names(snapshot, window),
        now,
        remaining_occupants(snapshot, window),
        moved,
        _impact(env, snapshot, window, found.moved),
    )


def _impact(
    env: UseCaseEnvironment,
    snapshot: Snapshot,
    window: CapacityWindow,
    moved: Iterable[LeaseMove],
) -> Impact:
    """The violations that begin when the window does; leases that move are at their new places."""
    begin = max(window.period.start, snapshot.taken_at)
    away = with_hosts_away(snapshot, window.hosts, window.period).at(begin)
    there = frozenset[str]().union(
        *(ensembles_at(env.store, snapshot, snapshot.row_of[one]) for one in window.hosts)
    )
    staying = there - {one.planned.lease.ensemble_id for one in moved}
    return newly_broken(env, snapshot.at(begin), away, ensembles=staying, seconds=_JUDGING)


def _room_given_back(
    env: UseCaseEnvironment, view: Snapshot, moved: Sequence[LeaseMove]
) -> list[Change]:
    """Later ends for consumers displaced for leases in the places that these leave.

    `view` is the fleet with the hosts away.
    """
    instead = {who: some for one in moved for who, some in one.bookings(view).items()}
    displaced = [gone for one in moved for gone in one.displaced]
    leases = [one.planned.lease.id for one in moved]
    ending = {one.consumer for one in displaced}
    return [
        one
        for one in restored_ends(env.store, view, leases, instead, env.limits.notice)
        if not (isinstance(one, EndBookings) and one.consumers & ending)
    ]


def list_windows(env: UseCaseEnvironment, caller: Caller, page: Page) -> tuple[PlannedWindow, ...]:
    """A page of all windows by creation time, past ones included, without their occupants.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    return tuple(
        PlannedWindow(one, host_names(snapshot, one), snapshot.taken_at)
        for one in env.store.capacity_windows(page=page)
    )


def show_window(env: UseCaseEnvironment, caller: Caller, window_id: str) -> PlannedWindow:
    """A window, with the consumers on its hosts at some time of it.

    Raises:
        Forbidden: the caller is no operator. NotFound: there is no such window.
    """
    require_operator(caller)
    return _shown(env, env.store.capacity_window(window_id))


def drop_window(env: UseCaseEnvironment, caller: Caller, window_id: str) -> None:
    """Delete a window, or end it now if it has begun; moved leases keep their new places.

    Raises:
        Forbidden: the caller is no operator. NotFound: there is no such window.
    """
    require_operator(caller)
    env.store.capacity_window(window_id)
    env.store.commit(Changeset((DropCapacityWindow(window_id), DropEffects(window_id))))


def _made_before(env: UseCaseEnvironment, identity: RequestIdentity) -> PlannedWindow | None:
    known = made_by_request("capacity window", identity, env.store.capacity_window)
    if known is None:
        return None
    return _shown(env, known)


def _shown(env: UseCaseEnvironment, window: CapacityWindow) -> PlannedWindow:
    snapshot = env.store.snapshot()
    there = remaining_occupants(snapshot, window)
    return PlannedWindow(window, host_names(snapshot, window), snapshot.taken_at, there)


def _period(planning: PlanRequest, now: Instant) -> Period:
    """The period of the absence.

    Raises:
        InvalidDescription: the period is over, is empty, or does not match the kind.
    """
    start = from_now_on(planning.start, now)
    end = FOREVER if planning.end is None else planning.end
    if end <= now:
        raise InvalidDescription("the window lies in the past", path="window.end")
    if planning.kind is WindowKind.MAINTENANCE and end == FOREVER:
        raise InvalidDescription(
            "maintenance needs an end; use decommission for hosts that do not return",
            path="window.end",
        )
    if planning.kind is WindowKind.DECOMMISSION and end != FOREVER:
        raise InvalidDescription(
            "a decommission has no end; use maintenance for hosts that return", path="window.end"
        )
    if planning.kind is WindowKind.DELIVERY and (end == FOREVER or start != now):
        raise InvalidDescription(
            "a delivery begins now and ends when the hosts are there: give only its end",
            path="window",
        )
    if end <= start:
        raise InvalidDescription(
            f"the window must end after its start, {format_instant(start)}", path="window.end"
        )
    return Period(start, end)


def _relied(snapshot: Snapshot, hosts: Sequence[str]) -> dict[str, int]:
    """The revisions of all providers in the hosts' trees."""
    rows = (row for host in hosts for row in snapshot.tree(snapshot.row_of[host]).tolist())
    return {snapshot.uuids[row]: int(snapshot.revisions[row]) for row in rows}


MOST_HOSTS: Final = 5_000
"""Most hosts of one window."""
_EARLIEST: Final = 12
"""How many starts are tried for an alternative."""


def resolve_hosts(
    snapshot: Snapshot, names: Iterable[str], domains: Iterable[str], *, path: str = "window"
) -> tuple[str, ...]:
    """UUIDs of the named hosts, ascending; `path` is what names them, for errors.

    Raises:
        NotFound, UnknownName: no such host or domain.
        InvalidDescription: no hosts, or too many.
    """
    uuids = {snapshot.names[row]: snapshot.uuids[row] for row in snapshot.hosts.tolist()}
    known, found = frozenset(uuids.values()), set[str]()
    for name in names:
        uuid = uuids.get(name, name)
        if uuid not in known:
            raise NotFound("host", name)
        found.add(uuid)
    for name in domains:
        rows = hosts_of_domain(snapshot, name, path=f"{path}.domains")
        found |= {snapshot.uuids[row] for row in rows}
    if not found:
        raise InvalidDescription("say which hosts: hosts or domains", path=f"{path}.hosts")
    if len(found) > MOST_HOSTS:
        raise InvalidDescription(
            f"that is {len(found)} hosts; a {path} has at most {MOST_HOSTS}", path=f"{path}.hosts"
        )
    return tuple(sorted(found))


_HOURS: Final[Duration] = 3 * DAY
"""The longest duration that is written in hours."""


def window_refusal(
    env: UseCaseEnvironment,
    snapshot: Snapshot,
    window: CapacityWindow,
    found: Clearance,
    exclusive: Sequence[Ensemble],
) -> WouldBreakLease:
    """The refusal: the leases in the way, and the earliest window of the same length instead."""
    mine = window.project_id
    leases = tuple(
        (one.lease.id, _called(one.lease, mine), one.lease.name, one.why) for one in found.stuck
    )
    if window.kind is WindowKind.DELIVERY:
        return WouldBreakLease(leases)
    now, period = snapshot.taken_at, window.period
    forever = period.end == FOREVER
    length = FOREVER if forever else period.end - period.start
    midnight = period.start // DAY * DAY
    since = max(midnight, now)
    what = "time" if forever else f"{_hours(length)} window"
    after = "from now" if midnight <= now else f"after {format_instant(midnight - 1)[:10]}"
    for at in (since, *lease_ends(env, snapshot, window.hosts, since))[:_EARLIEST]:
        other = Period(at, FOREVER if forever else at + length)
        if not clear_hosts(
            env, snapshot, window.hosts, other, exclusive, env.limits.time_limit
        ).stuck:
            said = f"earliest {what} {after}: {_minute(at)}"
            return WouldBreakLease(leases, earliest=at, instead=said)
    return WouldBreakLease(leases)


def _called(lease: Lease, project_id: str) -> str:
    """The lease's handle for its own project; for others its name, and its id to look it up by."""
    if lease.project_id == project_id:
        return lease.handle
    return f"{lease.name} {lease.id}".lstrip()


def _hours(length: Duration) -> str:
    """A duration such as `24h`; a longer one in days too, such as `72d15h`."""
    hours, rest = divmod(length, HOUR)
    if rest or length > _HOURS:
        return say_duration(length)
    return f"{hours}h"


def _minute(at: Instant) -> str:
    text = format_instant(at)
    return f"{text[:-4]}Z" if text.endswith(":00Z") else text
