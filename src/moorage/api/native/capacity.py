"""`/v1/capacity`: capacity over time, how many more fit, free windows, and planned ones."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import instant as end_of
from moorage.api.native.lease_requests import template_ensemble
from moorage.api.native.paging import Listing
from moorage.api.native.reading import duration, identity, instant
from moorage.domain.capacity_windows import WindowKind
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import FOREVER, Period, format_duration, format_instant
from moorage.domain.resources import NAME, amounts
from moorage.usecases.capacity.copies import fit_described, fit_more
from moorage.usecases.capacity.fit import fit_members
from moorage.usecases.capacity.free_windows import free_windows
from moorage.usecases.capacity.over_time import capacity_over_time
from moorage.usecases.capacity.planned import (
    PlanRequest,
    drop_window,
    list_windows,
    plan_window,
    show_window,
)
from moorage.usecases.capacity.scope import CapacityDisclosure, Scope
from moorage.usecases.decide.max_additional import told_with_step
from moorage.usecases.shared.role_resolution import known_flavor
from moorage.wire import capacity as wire

if TYPE_CHECKING:
    from moorage.domain.describe import EnsembleDescription
    from moorage.usecases.capacity.fit import Fit
    from moorage.usecases.capacity.over_time import Amounts, CapacityProfile
    from moorage.usecases.capacity.planned import PlannedWindow
    from moorage.wire.capacity import FitBody, PlannedBody, WindowBody

EXACT: Final = "moorage:capacity:exact"
_AMOUNT: Final = re.compile(r"([A-Z0-9_]+):(\d{1,10})", re.ASCII)


def show(call: Call) -> Reply:
    """GET: capacity over time."""
    step = duration(call.query.get("step"), "step")
    seen = _sight(call)
    found = capacity_over_time(
        *(call.env, call.caller, _scope(call)),
        step=step,
        by=call.query.get("by"),
        told=seen.instants,
    )
    return Reply(
        wire.OneCapacity(
            wire.CapacityValue(
                start=format_instant(found.window.start),
                end=format_instant(found.window.end),
                computed_at=format_instant(found.snapshot.taken_at),
                revision=found.snapshot.revision,
                step=None if step is None else format_duration(step),
                exact=seen.exact,
                parts=[_course(one, seen) for one in found.courses],
            )
        )
    )


def fit(call: Call) -> Reply:
    """POST: how many more fit."""
    body: FitBody = call.body.fit
    window = _window(call, body.window)
    limit = duration(body.time_limit, "fit.time_limit")
    if sum(one is not None for one in (body.ensemble_id, body.template, body.flavor)) != 1:
        raise InvalidDescription(
            "say what shall fit: ensemble_id, template or flavor, one of them", path="fit"
        )
    if body.role is not None and body.ensemble_id is not None:
        found = call.perform(fit_members, body.ensemble_id, body.role, window, time_limit=limit)
        return Reply(wire.OneFit(_fit(found, _sight(call))))
    if body.role is not None:
        raise InvalidDescription("a role is one of an ensemble", path="fit.role")
    if body.ensemble_id is not None:
        found = call.perform(fit_more, body.ensemble_id, window, time_limit=limit)
    else:
        described = _described(call, body)
        found = call.perform(fit_described, described, window, time_limit=limit)
    return Reply(wire.OneFit(_fit(found, _sight(call))))


def _described(call: Call, body: FitBody) -> EnsembleDescription:
    """The ensemble of a template, or one server of a flavor."""
    if body.template is not None:
        return template_ensemble(call, body.template)
    name = known_flavor(call.env.store, str(body.flavor)).name
    return read_ensemble({"name": name, "members": [{"name": "server", "flavor": body.flavor}]})


def windows(call: Call) -> Reply:
    """GET: windows in which so many fit for so long."""
    count = _count(call.query.get("count", "1"))
    length = duration(call.query.get("duration"), "duration")
    if length is None:
        raise InvalidDescription("say for how long, such as duration=PT4H", path="duration")
    seen = _sight(call)
    found = free_windows(
        *(call.env, call.caller, _scope(call)), count=count, duration=length, told=seen.instants
    )
    return Reply(
        wire.Windows(
            windows=[
                wire.FreeWindow(
                    earliest=format_instant(one.earliest),
                    latest=format_instant(one.latest),
                    count=max(seen.count(one.count), count),
                )
                for one in found.windows
            ],
            count=count,
            duration=format_duration(length),
            start=format_instant(found.window.start),
            end=format_instant(found.window.end),
            computed_at=format_instant(found.snapshot.taken_at),
            revision=found.snapshot.revision,
        )
    )


def _sight(call: Call) -> CapacityDisclosure:
    return CapacityDisclosure(call.may(EXACT), call.env.limits.disclosure)


def _scope(call: Call) -> Scope:
    """The query's period, domain and size.

    Raises:
        InvalidDescription: one of them cannot be understood.
    """
    query = call.query
    since, until = query.get("from"), query.get("to")
    required, forbidden = _traits(query.get("required", ""))
    return Scope(
        since=None if since is None else instant(since, "from"),
        until=None if until is None else instant(until, "to"),
        zone=query.get("zone"),
        flavor=query.get("flavor"),
        resources=amounts(_resources(query.get("resources", ""))),
        required=required,
        forbidden=forbidden,
    )


def _resources(text: str) -> dict[str, int]:
    """`VCPU:4,MEMORY_MB:8192`."""
    found = {}
    for one in text.split(",") if text else ():
        match = _AMOUNT.fullmatch(one)
        if match is None:
            raise InvalidDescription(
                f"write CLASS:AMOUNT, such as VCPU:4, not {one!r}", path="resources"
            )
        found[match[1]] = int(match[2])
    return found


def _traits(text: str) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """`A,B|C,!D`: A, one of B and C, and no D."""
    required, forbidden = [], set()
    for one in text.split(",") if text else ():
        names = one.removeprefix("!").split("|")
        if not all(NAME.fullmatch(name) for name in names) or (one[0] == "!" and len(names) > 1):
            raise InvalidDescription(f"not a trait, A|B or !A: {one!r}", path="required")
        if one.startswith("!"):
            forbidden.add(names[0])
        else:
            required.append(frozenset(names))
    return tuple(required), frozenset(forbidden)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10]) > 0):
        raise InvalidDescription(f"count is a positive number, not {text!r}", path="count")
    return int(text[:10])


def _window(call: Call, body: WindowBody | None) -> Period | None:
    """The window in the body; both ends null is no window."""
    if body is None or (body.start is None and body.end is None):
        return None
    start = call.env.store.now() if body.start is None else instant(body.start, "fit.window.start")
    end = FOREVER if body.end is None else instant(body.end, "fit.window.end")
    if end <= start:
        raise InvalidDescription(
            f"it must end after it starts, at {format_instant(start)}", path="fit.window.end"
        )
    return Period(start, end)


def _course(one: CapacityProfile, seen: CapacityDisclosure) -> wire.Course:
    return wire.Course(
        domain=one.domain,
        hosts=one.hosts if seen.exact else UNSET,
        shared_by=list(one.shared_by) or UNSET,
        resources={
            name: [_amounts(row, seen) for row in rows] for name, rows in one.resources.items()
        },
        fit=None
        if one.fits is None
        else [wire.Count(format_instant(row.at), seen.count(row.count)) for row in one.fits],
    )


def _amounts(row: Amounts, seen: CapacityDisclosure) -> wire.Amounts:
    return wire.Amounts(
        at=format_instant(row.at),
        available=seen.count(row.available),
        busy=seen.busy(row.busy),
        total=row.total if seen.exact else UNSET,
        away=row.away if seen.exact else UNSET,
        reserved=row.reserved if seen.exact else UNSET,
        allocated=row.allocated if seen.exact else UNSET,
        unbacked=row.unbacked if seen.exact else UNSET,
    )


def _fit(found: Fit, seen: CapacityDisclosure) -> wire.Fit:
    end = found.window.end
    told, step = told_with_step(seen.count(found.additional), found.step)
    return wire.Fit(
        additional=told,
        exact=found.exact and seen.whole(found.additional),
        step=step,
        limited_by=[
            wire.Limit(
                policy=one.policy,
                role=one.role,
                classes=list(one.classes),
                needs=one.needs,
                facts=dict(one.facts) if seen.exact else UNSET,
            )
            for one in found.limited_by
        ],
        quota_allows=found.quota_allows,
        window=wire.Window(format_instant(found.window.start), end_of(end)),
        computed_at=format_instant(found.snapshot.taken_at),
        revision=found.snapshot.revision,
    )


def list_planned(call: Call) -> Reply:
    """GET: every planned window, past ones too."""
    listing_ = Listing(
        call,
        "capacity/planned",
        partial(list_windows, call.env, call.caller),
        lambda found: ((one.window.id, _planned(call, one, UNSET, UNSET)) for one in found),
    )
    return listing_.reply("windows")


def show_planned(call: Call) -> Reply:
    """GET: one window, and the bookings on its hosts."""
    found = call.perform(show_window, call.path["id"])
    return Reply(wire.OnePlanned(_planned(call, found, _staying(found), UNSET)))


def create_planned(call: Call) -> Reply:
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
    )
    return Reply(
        wire.OnePlanned(_planned(call, made, _staying(made), list(made.moved)), call.dry_run),
        status=200 if call.dry_run else None,
        location=f"{call.base}/capacity/planned/{made.window.id}",
    )


def delete_planned(call: Call) -> Reply:
    """DELETE: delete the window."""
    call.perform(drop_window, call.path["id"])
    return Reply()


def _planned(
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
        end=end_of(window.period.end),
        reason=window.reason,
        created_at=format_instant(window.created_at),
        links=[call.link("self", "capacity", "planned", window.id)],
        staying=staying,
        moved_leases=moved,
    )


def _staying(found: PlannedWindow) -> list[wire.Staying]:
    return [
        wire.Staying(one.consumer, one.project_id, one.host, one.state.value, end_of(one.end))
        for one in found.staying
    ]
