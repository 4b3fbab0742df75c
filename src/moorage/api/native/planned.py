"""`/v1/capacity/planned`: planned unavailability of hosts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from moorage.api.native.call import Call, Reply
from moorage.api.native.paging import Listing
from moorage.api.native.reading import identity, instant
from moorage.domain.capacity_windows import WindowKind
from moorage.domain.period import FOREVER, format_instant
from moorage.usecases.capacity.planned import (
    PlanRequest,
    drop_window,
    list_windows,
    plan_window,
    show_window,
)
from moorage.wire import capacity as wire

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.usecases.capacity.planned import PlannedWindow
    from moorage.wire.capacity import PlannedBody


def listing(call: Call) -> Reply:
    """GET: every planned window, past ones too."""
    listing_ = Listing(
        call,
        "capacity/planned",
        partial(list_windows, call.env, call.caller),
        lambda found: ((one.window.id, _view(call, one, UNSET, UNSET)) for one in found),
    )
    return listing_.reply("windows")


def show(call: Call) -> Reply:
    """GET: one window, and the bookings on its hosts."""
    found = call.perform(show_window, call.path["id"])
    return Reply(wire.OnePlanned(_view(call, found, _staying(found), UNSET)))


def create(call: Call) -> Reply:
    """POST: plan that hosts are unavailable."""
    body: PlannedBody = call.body.window
    made = call.perform(
        plan_window,
        PlanRequest(
            kind=WindowKind(body.kind),
            hosts=tuple(dict.fromkeys(body.hosts)),
            domains=tuple(dict.fromkeys(body.domains)),
            start=None if body.start is None else instant(body.start, "window.start"),
            end=None if body.end is None else instant(body.end, "window.end"),
            reason=body.reason,
        ),
        identity(call, body, body.id),
        dry_run=call.dry_run,
    )
    return Reply(
        wire.OnePlanned(_view(call, made, _staying(made), list(made.moved)), made.dry_run),
        status=200 if made.dry_run else None,
        location=f"{call.base}/capacity/planned/{made.window.id}",
    )


def delete(call: Call) -> Reply:
    """DELETE: delete the window."""
    call.perform(drop_window, call.path["id"], dry_run=call.dry_run)
    return Reply()


def _view(
    call: Call,
    one: PlannedWindow,
    staying: list[wire.Staying] | UnsetType,
    moved: list[str] | UnsetType,
) -> wire.PlannedWindow:
    window = one.window
    return wire.PlannedWindow(
        id=window.id,
        kind=window.kind.value,
        status=window.state_at(one.now),
        hosts=sorted(one.hosts.values()),
        start=format_instant(window.period.start),
        end=_end(window.period.end),
        reason=window.reason,
        created_at=format_instant(window.created_at),
        links=[call.link("self", "capacity", "planned", window.id)],
        staying=staying,
        moved_leases=moved,
    )


def _staying(found: PlannedWindow) -> list[wire.Staying]:
    return [
        wire.Staying(one.consumer, one.project_id, one.host, one.state.value, _end(one.end))
        for one in found.staying
    ]


def _end(at: Instant) -> str | None:
    return None if at == FOREVER else format_instant(at)
