"""`/v1/series`."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from moorage.api.native import lease_requests, reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import NO_ACTIONS, view, wall
from moorage.api.native.paging import Listing
from moorage.domain.errors import InvalidDescription
from moorage.domain.leases import LeaseState, Yielding
from moorage.domain.period import format_instant, parse_duration
from moorage.domain.recurrence import parse_every
from moorage.domain.series import state_of
from moorage.usecases.series.change import cancel_series, rename_series
from moorage.usecases.series.create import create_series, extend_series
from moorage.usecases.series.queries import list_series, own_series, series_with_leases
from moorage.usecases.series.requests import Extension, Extent, SeriesRequest
from moorage.wire import series as wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.leases import Lease
    from moorage.domain.series import Series
    from moorage.usecases.series.requests import SeriesResult
    from moorage.wire.series import ExtensionBody, SeriesBody

T = TypeVar("T")


def create(call: Call) -> Reply:
    """POST: grant all occurrences, or report those that do not fit."""
    body: SeriesBody = call.body.series
    made = call.perform(
        create_series,
        series_request(call, body),
        reading.identity(call, body, body.id),
    )
    return _made(call, made, created=True)


def listing(call: Call) -> Reply:
    """GET: a page of series, oldest first."""
    read = partial(
        list_series,
        call.env.store,
        call.caller,
        all_projects=call.flag("all_projects"),
        name=call.query.get("name"),
    )
    listing_ = Listing(
        call,
        "series",
        lambda page: read(page=page),
        lambda found: ((one.id, _view(call, one, counts)) for one, counts in found),
    )
    return listing_.reply("series", {"computed_at": format_instant(call.env.store.now())})


def show(call: Call) -> Reply:
    """GET: one series with its leases."""
    store = call.env.store
    return _made(call, series_with_leases(store, own_series(store, call.caller, call.path["id"])))


def rename(call: Call) -> Reply:
    """PATCH: rename a series and its leases."""
    body = call.body.series
    made = call.perform(
        rename_series,
        call.path["id"],
        body.name,
        call.expected(body.generation),
    )
    return _made(call, made)


def extend(call: Call) -> Reply:
    """POST: grant further occurrences, or report those that do not fit."""
    body: ExtensionBody = call.body.series
    made = call.perform(
        extend_series,
        call.path["id"],
        Extension(_extent(body), body.as_many_as_fit, call.may(reading.PRIORITY)),
        call.expected(body.generation),
    )
    return _made(call, made)


def cancel(call: Call) -> Reply:
    """DELETE: cancel leases that have not started: all, from a number on, or one."""
    since, only = _number(call, "from"), _number(call, "only")
    if since is not None and only is not None:
        raise InvalidDescription("give from or only, and not both", path="only")
    cancelled = call.perform(cancel_series, call.path["id"], since=since, only=only)
    return Reply(wire.Cancelled([_occurrence(one) for one in cancelled], call.dry_run))


def series_request(call: Call, body: SeriesBody) -> SeriesRequest:
    """The request of a body.

    Raises:
        InvalidDescription: it says several things where one is needed or none at all, or its
            times, durations, members or actions cannot be understood.
        NotFound: no such template for this caller.
    """
    if sum(one is not None for one in (body.ensemble, body.template, body.amount)) != 1:
        raise InvalidDescription(
            "give one of ensemble, template and amount, and not more: each occurrence is of an"
            " ensemble of its own",
            path="series",
        )
    return SeriesRequest(
        name=body.name,
        description=_description(call, body),
        every=_read("series.every", parse_every, body.every),
        duration=_read("series.duration", parse_duration, body.duration),
        extent=_extent(body),
        start=None if body.start is None else _wall(body.start),
        zone=body.zone,
        lead=lease_requests.span(body.lead, "series.lead") or 0,
        cleaning=lease_requests.span(body.cleaning, "series.cleaning") or 0,
        expiry=lease_requests.span(body.expiry, "series.expiry"),
        priority=body.priority,
        before_start=lease_requests.before_start(body.before_start),
        actions=lease_requests.actions(body),
        objective=reading.objective(call, body.objective),
        seed=body.seed,
        time_limit=reading.duration(body.time_limit, "series.time_limit"),
        as_many_as_fit=body.as_many_as_fit,
        any_priority=call.may(reading.PRIORITY),
    )


def _description(call: Call, body: SeriesBody) -> EnsembleDescription:
    if body.template is not None:
        return lease_requests.template_ensemble(call, body.template)
    if body.ensemble is not None:
        return lease_requests.described_ensemble(body.ensemble, body.name)
    assert body.amount is not None, "one of the three is given"
    return lease_requests.flavor_ensemble(body.amount, body.name)


def _extent(body: SeriesBody | ExtensionBody) -> Extent:
    if (body.times is None) is (body.until_date is None):
        raise InvalidDescription("give times or until_date, and not both", path="series.times")
    if body.until_date is None:
        return Extent(times=body.times)
    try:
        return Extent(until=date.fromisoformat(body.until_date))
    except ValueError:
        raise InvalidDescription(
            f"not a date such as 2026-12-24: {body.until_date!r}", path="series.until_date"
        ) from None


def _read(path: str, read: Callable[[str], T], text: str) -> T:
    """Parse a text; an error gets the text's path."""
    try:
        return read(text)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=path) from None


def _wall(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidDescription(
            f"not a time such as 2026-12-07T08:00: {text!r}", path="series.start"
        ) from None


def _number(call: Call, name: str) -> int | None:
    text = call.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise InvalidDescription(f"{name} is the number of an occurrence, not {text!r}", path=name)
    return int(text[:9])


# --- shown ------------------------------------------------------------------------------------


def _made(call: Call, made: SeriesResult, *, created: bool = False) -> Reply:
    series, dry = made.series, call.dry_run
    counts = Counter(one.state for one in made.leases)
    occurrences = [_occurrence(one, dry_run=dry and created) for one in made.leases]
    return call.made(
        wire.OneSeries(
            _view(call, series, counts, occurrences),
            dry_run=dry,
            computed_at=format_instant(made.snapshot.taken_at),
            revision=made.snapshot.revision,
        ),
        generation=series.generation,
        location=f"series/{series.id}" if created else None,
    )


def _view(
    call: Call,
    series: Series,
    counts: Mapping[LeaseState, int],
    occurrences: list[wire.Occurrence] | None = None,
) -> wire.Series:
    terms, recurrence = series.terms, series.recurrence
    return view(
        wire.Series,
        series,
        terms,
        recurrence,
        status=state_of(series, counts.keys(), call.env.store.now()),
        every=str(recurrence.every),
        start=wall(recurrence.start),
        duration=terms.period.end - terms.period.start,
        times=series.reach,
        granted=sum(counts.values()),
        closed=counts.get(LeaseState.CLOSED, 0),
        places=len(series.model.members),
        before_start=[one for one in Yielding if one in terms.before_start],
        **{**NO_ACTIONS, **series.actions},
        left_out=[
            view(wire.LeftOut, one, explanation_id=one.explanation) for one in series.left_out
        ],
        links=[call.link("self", "series", series.id)],
        occurrences=occurrences,
    )


def _occurrence(lease: Lease, *, dry_run: bool = False) -> wire.Occurrence:
    return view(
        wire.Occurrence,
        lease,
        lease.occurrence,
        lease.terms.period,
        lease_id=None if dry_run else lease.id,
        status=LeaseState.PENDING if lease.proposed else lease.state,
    )
