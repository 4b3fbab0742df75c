"""The hosts of a planned window, and alternatives where leases prevent it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.capacity_windows import WindowKind
from moorage.domain.errors import InvalidDescription, NotFound, UnknownName, WouldBreakLease
from moorage.domain.period import DAY, FOREVER, HOUR, Period, format_instant, say_duration
from moorage.domain.topology import HOST, Level
from moorage.usecases.capacity.planned_leases import Clearance, clear_hosts, lease_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment

MOST_HOSTS: Final = 5_000
"""Most hosts of one window."""
_EARLIEST: Final = 12
"""How many starts are tried for an alternative."""


def resolve_hosts(
    snapshot: Snapshot, names: Iterable[str], domains: Iterable[str]
) -> tuple[str, ...]:
    """UUIDs of the named hosts, ascending.

    Raises:
        NotFound, UnknownName: no such host or domain.
        InvalidDescription: no hosts, or too many.
    """
    roots = {snapshot.names[row]: snapshot.uuids[row] for row in snapshot.roots.tolist()}
    found: set[str] = set()
    for name in names:
        uuid = roots.get(name, name)
        row = snapshot.row_of.get(uuid)
        if row is None or snapshot.parent[row] >= 0:
            raise NotFound("host", name)
        found.add(uuid)
    for name in domains:
        found |= _of_domain(snapshot, name)
    if not found:
        raise InvalidDescription("say which hosts: hosts or domains", path="window.hosts")
    if len(found) > MOST_HOSTS:
        raise InvalidDescription(
            f"that is {len(found)} hosts; a window has at most {MOST_HOSTS}", path="window.hosts"
        )
    return tuple(sorted(found))


def _of_domain(snapshot: Snapshot, name: str) -> set[str]:
    levels = [
        Level(tree, one)
        for tree, names in snapshot.topology.levels.items()
        for one in names
        if one != HOST
    ]
    known = [one for one in levels if name in snapshot.domain_names(one)]
    if not known:
        raise UnknownName("domain", name, path="window.domains")
    return {
        snapshot.uuids[row]
        for level in known
        for row in snapshot.roots.tolist()
        if snapshot.domains(level)[row] == snapshot.domain_names(level).index(name)
    }


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
    since = max(period.start // DAY * DAY, now)
    what = "time" if forever else f"{_hours(length)} window"
    after = f"after {format_instant(period.start // DAY * DAY - 1)[:10]}"
    for at in (since, *lease_ends(env, snapshot, window.hosts, since))[:_EARLIEST]:
        other = Period(at, FOREVER if forever else at + length)
        if not clear_hosts(
            env, snapshot, window.hosts, other, exclusive, env.limits.time_limit
        ).stuck:
            said = f"earliest {what} {after}: {_minute(at)}"
            return WouldBreakLease(leases, earliest=at, instead=said)
    return WouldBreakLease(leases)


def _called(lease: Lease, project_id: str) -> str:
    """The lease's handle for its own project; for others its id, which operators can look up."""
    return lease.handle if lease.project_id == project_id else lease.id


def _hours(length: Duration) -> str:
    """A duration such as `24h`; a longer one in days too, such as `72d15h`."""
    hours, rest = divmod(length, HOUR)
    if rest or length > _HOURS:
        return say_duration(length)
    return f"{hours}h"


def _minute(at: Instant) -> str:
    text = format_instant(at)
    return f"{text[:-4]}Z" if text.endswith(":00Z") else text
