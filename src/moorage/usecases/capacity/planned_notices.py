"""Notices of planned capacity windows, and the consumers on their hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.bookings import BookingState
from moorage.domain.capacity_windows import WindowKind
from moorage.domain.effects import EffectKind
from moorage.domain.period import FOREVER, Period, format_instant
from moorage.usecases.capacity.planned_leases import bookings_on
from moorage.usecases.effects import notifications
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.changes import Change
    from moorage.domain.effects import Effect
    from moorage.domain.period import Duration, Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment


@dataclass(frozen=True, slots=True)
class RemainingOccupant:
    """A consumer on a host of a window, which its operator has to move."""

    consumer: str
    project_id: str
    host: str
    """The host's name."""
    state: BookingState
    end: Instant
    """Its end; of a hold, the instant at which it lapses."""


def host_names(snapshot: Snapshot, window: CapacityWindow) -> dict[str, str]:
    """UUID -> name of the window's hosts that exist."""
    known = ((uuid, snapshot.row_of.get(uuid)) for uuid in window.hosts)
    return {uuid: snapshot.names[row] for uuid, row in known if row is not None}


def remaining_occupants(
    snapshot: Snapshot, window: CapacityWindow
) -> tuple[RemainingOccupant, ...]:
    """Consumers on the hosts during the window, other than unclaimed places of leases."""
    period = window.period
    remaining = Period(max(period.start, snapshot.taken_at), max(period.end, snapshot.taken_at + 1))
    hosts = [one for one in window.hosts if one in snapshot.row_of]
    rows = [row for one in hosts for row in snapshot.tree(snapshot.row_of[one]).tolist()]
    whose = {one.consumer: one.project_id for row in rows for one in snapshot.state(row).occupants}
    found: dict[str, RemainingOccupant] = {}
    for host, one in bookings_on(snapshot, hosts, remaining):
        if one.state is BookingState.RESERVED:
            continue
        found[one.consumer] = RemainingOccupant(
            consumer=one.consumer,
            project_id=whose.get(one.consumer, ""),
            host=snapshot.names[snapshot.row_of[host]],
            state=one.state,
            end=min(one.occupies_until(snapshot.taken_at), one.lapses_at),
        )
    return tuple(sorted(found.values(), key=lambda one: (one.host, one.consumer)))


WINDOW: Final = "capacity_window"
"""The field of an effect's details that holds the window's id."""
_MOST: Final = 1_000
"""Most servers named in one notice."""


def window_notices(snapshot: Snapshot, window: CapacityWindow, notice: Duration) -> list[Change]:
    """Notices before and at the start of the absence, and at its end."""
    now, start, end = snapshot.taken_at, window.period.start, window.period.end
    edges = [(start, "begins"), (end, "ends")]
    if start > now:
        edges.insert(0, (max(start - notice, now), "soon"))
    if window.kind is WindowKind.DELIVERY:
        edges = [(end, "there")]
    return [
        notifications.idempotent_effect(
            EffectKind.NOTIFY,
            window.id,
            window.project_id,
            due=at,
            now=now,
            details={
                WINDOW: window.id,
                "kind": window.kind.value,
                "edge": edge,
                "hosts": sorted(host_names(snapshot, window).values()),
                "start": format_instant(start),
                "end": None if end == FOREVER else format_instant(end),
                "reason": window.reason,
            },
            same=(window.id, edge),
        )
        for at, edge in edges
        if at != FOREVER
    ]


def affected_servers(env: UseCaseEnvironment, effect: Effect) -> Mapping[str, object]:
    """Details that are added when the notice is sent: the servers on the hosts then."""
    id_ = effect.details.get(WINDOW)
    if effect.kind is not EffectKind.NOTIFY or id_ is None:
        return {}
    window = if_stored(env.store.capacity_window, str(id_))
    if window is None:
        return {}
    found = remaining_occupants(env.store.snapshot(), window)
    servers = [
        {
            "server": one.consumer,
            "project_id": one.project_id,
            "host": one.host,
            "ends": None if one.end == FOREVER else format_instant(one.end),
        }
        for one in found[:_MOST]
    ]
    return {"servers": servers, "affected": len(found)}
