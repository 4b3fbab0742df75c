"""`/v1/capacity`: capacity over time, how many more fit, free windows, and planned ones."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import impact_view
from moorage.api.native.formats import view
from moorage.api.native.lease_requests import template_ensemble
from moorage.api.native.paging import Listing
from moorage.api.native.reading import duration, identity, instant
from moorage.domain.capacity_windows import WindowKind
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import FOREVER, Period, format_instant
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
    most = call.query.get("max_points")
    found = capacity_over_time(
        *(call.env, call.caller, _scope(call)),
        step=step,
        most=None if most is None else _count(most, "max_points"),
        by=call.query.get("by"),
        told=seen.instants,
    )
    return Reply(
        wire.OneCapacity(
            view(
                wire.CapacityValue,
                found.window,
                computed_at=found.snapshot.taken_at,
                revision=found.snapshot.revision,
                step=found.step,
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
    count = _count(call.query.get("count", "1"), "count")
    length = duration(call.query.get("duration"), "duration")
    if length is None:
        raise InvalidDescription("say for how long, such as duration=PT4H", path="duration")
    seen = _sight(call)
    found = free_windows(
        *(call.env, call.caller, _scope(call)), count=count, duration=length, told=seen.instants
    )
    return Reply(
        view(
            wire.Windows,
            found.window,
            windows=[
                view(wire.FreeWindow, one, count=max(seen.count(one.count), count))
                for one in found.windows
            ],
            count=count,
            duration=length,
            computed_at=found.snapshot.taken_at,
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
    required, forbidden = traits_of(query.get("required", ""), "required")
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


def traits_of(text: str, path: str) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """`A,B|C,!D`: A, one of B and C, and no D.

    Raises:
        InvalidDescription: it cannot be understood.
    """
    required, forbidden = [], set()
    for one in text.split(",") if text else ():
        names = one.removeprefix("!").split("|")
        if not all(NAME.fullmatch(name) for name in names) or (one[0] == "!" and len(names) > 1):
            raise InvalidDescription(f"not a trait, A|B or !A: {one!r}", path=path)
        if one.startswith("!"):
            forbidden.add(names[0])
        else:
            required.append(frozenset(names))
    return tuple(required), frozenset(forbidden)


def _count(text: str, path: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10]) > 0):
        raise InvalidDescription(f"{path} is a positive number, not {text!r}", path=path)
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
    return view(
        wire.Course,
        one,
        operator=seen.exact,
        shared_by=one.shared_by or None,
        resources={
            name: [_amounts(row, seen) for row in rows] for name, rows in one.resources.items()
        },
        fit=None
        if one.fits is None
        else [view(wire.Count, row, count=seen.count(row.count)) for row in one.fits],
    )


def _amounts(row: Amounts, seen: CapacityDisclosure) -> wire.Amounts:
    available, busy = seen.count(row.available), seen.busy(row.busy)
    return view(wire.Amounts, row, operator=seen.exact, available=available, busy=busy)


def _fit(found: Fit, seen: CapacityDisclosure) -> wire.Fit:
    told, step = told_with_step(seen.count(found.additional), found.step)
    return view(
        wire.Fit,
        found,
        operator=seen.exact,
        additional=told,
        exact=found.exact and seen.whole(found.additional),
        step=step,
        computed_at=found.snapshot.taken_at,
        revision=found.snapshot.revision,
    )


def list_planned(call: Call) -> Reply:
    """GET: every planned window, past ones too."""
    listing_ = Listing(
        call,
        "capacity/planned",
        partial(list_windows, call.env, call.caller),
        lambda found: ((one.window.id, _planned(call, one)) for one in found),
    )
    return listing_.reply("windows")


def show_planned(call: Call) -> Reply:
    """GET: one window, and the bookings on its hosts."""
    found = call.perform(show_window, call.path["id"])
    return Reply(wire.OnePlanned(_planned(call, found, staying=True)))


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
        wire.OnePlanned(
            _planned(call, made, staying=True, moved=True),
            call.dry_run,
            impact_view(made.breaks),
        ),
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
    *,
    staying: bool = False,
    moved: bool = False,
) -> wire.PlannedWindow:
    window = one.window
    return view(
        wire.PlannedWindow,
        window,
        window.period,
        status=window.state_at(one.now),
        hosts=sorted(one.hosts.values()),
        links=[call.link("self", "capacity", "planned", window.id)],
        staying=one.staying if staying else None,
        moved_leases=one.moved if moved else None,
    )
