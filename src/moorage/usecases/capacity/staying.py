"""Who is on hosts that are to be away, and is not moved by Moorage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.period import Period
from moorage.usecases.capacity.room import there

if TYPE_CHECKING:
    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.period import Instant
    from moorage.engine.snapshot import Snapshot


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


def host_names(snapshot: Snapshot, window: CapacityWindow) -> dict[str, str]:
    """UUID -> name of the window's hosts, of those that there are."""
    known = ((uuid, snapshot.row_of.get(uuid)) for uuid in window.hosts)
    return {uuid: snapshot.names[row] for uuid, row in known if row is not None}


def staying(snapshot: Snapshot, window: CapacityWindow) -> tuple[Staying, ...]:
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
