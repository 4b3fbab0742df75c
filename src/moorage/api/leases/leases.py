"""`/leases`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.api.leases import dates, shapes
from moorage.api.leases.call import Call, Collection, Reply
from moorage.api.leases.protocol import BEYOND, AddressesShort
from moorage.domain import plain_values
from moorage.domain.errors import Forbidden, Infeasible, InvalidDescription, NotFound
from moorage.domain.leases import LeaseState, Terms
from moorage.domain.period import Period, parse_duration
from moorage.domain.plain_values import MAX_NAME
from moorage.domain.quotas import MOST_PRIORITY
from moorage.usecases.blazar import lease_request, requirements, reservables
from moorage.usecases.blazar.largest_size import LeaseSizes, grant_largest, new_lease_sizes
from moorage.usecases.blazar.lease_status import missing_roles, unready
from moorage.usecases.blazar.refusals import lacking_type
from moorage.usecases.blazar.reservation_changes import changed_reservations
from moorage.usecases.leases.annotations import annotate
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.change import LeaseChange, change_lease
from moorage.usecases.leases.queries import list_leases, own_lease
from moorage.usecases.paging import Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.usecases.blazar.reservation_changes import ReservationChange
    from moorage.usecases.decide.request import RefusalDetail, RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.leases.requests import LeaseRequest, LeaseResult


def read_name(body: Mapping[str, Any]) -> str:
    """A lease's name.

    Raises:
        InvalidDescription: none, or none that can be one.
    """
    name = body.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise InvalidDescription(f"A lease needs a name of 1 to {MAX_NAME} characters")
    return plain_values.name(name, "name")


def read_period(body: Mapping[str, Any], now: Instant) -> Period:
    """A lease's period. A start within the present minute is now.

    Raises:
        InvalidDescription: missing dates, a start in the past, an end before it.
    """
    for key in ("start_date", "end_date"):
        if body.get(key) is None:
            raise InvalidDescription(f"{key} is missing")
    start, end = dates.read(body["start_date"], now), dates.read(body["end_date"], now)
    if start < now - now % dates.MINUTE:
        raise InvalidDescription("Start date must be later than current date")
    start = max(start, now)
    if end <= start:
        raise InvalidDescription("End date must be later than start date.")
    return Period(start, end)


_OVER: Final = {LeaseState.ENDING, LeaseState.CLOSED}


def listing(call: Call) -> Reply:
    """GET: every lease of the project, or for operators of all; paged from 1.1 on."""
    page = call.page() if call.has(BEYOND) else Page(limit=_ALL)
    return Reply(Collection("leases", (_shown(call, one) for one in _listed(call, page))))


def _shown(call: Call, lease: Lease) -> dict[str, Any]:
    """A lease, active only where its tenant can use what it names."""
    now = call.env.store.now()
    return shapes.lease(lease, now, unready(call.env, lease), missing_roles(call.env, lease))


def _listed(call: Call, page: Page) -> Iterator[Lease]:
    """A page of leases without deleted ones, which the store still has."""
    left = page.limit
    while left:
        page = replace(page, limit=min(_AT_ONCE, left))
        some = list_leases(
            call.env.store,
            call.caller,
            all_projects=call.caller.operator,
            name=call.query.get("name") if call.has(BEYOND) else None,
            page=page,
        )
        kept = [one for one in some if not _deleted(one)]
        yield from kept
        left -= len(kept)
        if len(some) < page.limit:
            return
        page = replace(page, marker=some[-1].id)


_AT_ONCE: Final = 50
"""Leases that are read at once."""
_ALL: Final = 100_000
"""Blazar has no pages: as many as anybody has."""


def show(call: Call) -> Reply:
    """GET: one lease."""
    return Reply({"lease": _shown(call, _own(call))})


def create(call: Call) -> Reply:
    """POST: grant a lease. Of hosts as many as fit, between `min` and `max`."""
    wanted = _wanted(call)

    def request_at(number: int) -> LeaseRequest:
        parts = lease_request.at_size(wanted.parts, number)
        return replace(
            replace(wanted, parts=parts).lease_request(), any_priority=call.caller.operator
        )

    choice = new_lease_sizes(call.caller, lease_request.count_sizes(wanted.parts), request_at)
    types = {one.role: one.resource_type for one in wanted.parts}
    return Reply({"lease": _shown(call, _granted(call, choice, types))}, status=201)


def update(call: Call) -> Reply:
    """PUT: change name, dates, and the changeable fields of reservations; or end it now."""
    lease, body = _own(call), call.object()
    if not body:
        return Reply({"lease": _shown(call, lease)})
    now = call.env.store.now()
    change = _change(call, lease, body)
    ending = change.end is not None and change.end <= now
    if ending:
        change = replace(change, end=None)
    parts = _reservations(call, lease, body, change)
    period = Period(lease.terms.period.start, max(now, lease.terms.period.start + 1))
    said = _annotations(
        lease, body, period if ending else _period_after(lease, change), parts.words, now
    )
    if said != lease.annotations:
        change = replace(change, annotations=said)
    change = replace(change, restated=parts.restated)

    def grant(
        env: UseCaseEnvironment, number: int, identity: RequestIdentity, refusal: RefusalDetail
    ) -> LeaseResult:
        sized = replace(change, counts=parts.counts[number], refusal=refusal)
        return change_lease(env, call.caller, lease.id, sized, None, identity)

    types = {role: str(one["resource_type"]) for role, one in parts.words.items()}
    changed = _granted(call, LeaseSizes(len(parts.counts), grant), types)
    if ending:
        changed = cancel_lease(call.env, call.caller, lease.id)
    return Reply({"lease": shapes.lease(changed, now, status=shapes.UPDATING)})


def delete(call: Call) -> Reply:
    """DELETE: cancel a lease before its start, end a running one; Blazar shows neither any more."""
    lease = _own(call)
    if lease.state not in _OVER:
        lease = cancel_lease(call.env, call.caller, lease.id)
    annotate(call.env, lease, {**lease.annotations, shapes.DELETED: True})
    return Reply(None, status=204)


def _granted(call: Call, choice: LeaseSizes, types: Mapping[str, str]) -> Lease:
    """The lease in the largest size that fits; `types` are of its reservations, by role.

    Raises:
        Infeasible: it does not fit; `AddressesShort` where floating IPs are what is lacking.
    """
    try:
        return grant_largest(call.env, choice, call.env.ids.uuid).lease
    except Infeasible as error:
        if lacking_type(error, types) != lease_request.ADDRESSES:
            raise
        raise AddressesShort(
            error.message, explanation=error.explanation, stored=error.stored
        ) from error


# --- reading --------------------------------------------------------------------------------


def _own(call: Call) -> Lease:
    lease = own_lease(call.env.store, call.caller, call.path["id"])
    if _deleted(lease):
        raise NotFound("lease", lease.id)
    return lease


def _deleted(lease: Lease) -> bool:
    return bool(lease.annotations.get(shapes.DELETED))


def _wanted(call: Call) -> lease_request.BlazarLeaseRequest:
    body = call.object()
    now = call.env.store.now()
    period = read_period(body, now)
    annotations: dict[str, Any] = {}
    if body.get("before_end_date") is not None:
        annotations[lease_request.BEFORE_END] = _before_end(body, period, now)
    terms = Terms(period)
    if call.has(BEYOND):
        terms = replace(
            terms,
            expiry=_duration(body, "expiry"),
            priority=_priority(body),
            lead=_duration(body, "lead") or 0,
            cleaning=_duration(body, "cleaning") or 0,
        )
    return lease_request.BlazarLeaseRequest(
        read_name(body),
        terms,
        lease_request.read_parts(
            body.get("reservations"),
            lease_request.OfferedResources(call.env.store, partial(_properties, call)),
        ),
        MappingProxyType(annotations),
    )


def _properties(call: Call) -> requirements.Properties:
    """The host properties that the caller may query: an operator all of them."""
    if call.caller.operator:
        return requirements.ALL
    private = reservables.private_keys(call.env.store)
    return requirements.Properties(call.env.limits.disclosure.host_properties, private)


def _before_end(body: Mapping[str, Any], period: Period, now: Instant) -> Instant:
    at = dates.read(body["before_end_date"], now)
    if not period.start < at < period.end:
        raise Forbidden("before_end_date must be between the lease's dates")
    return at


def _duration(body: Mapping[str, Any], key: str) -> int | None:
    text = body.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidDescription(f"{key} is a duration such as PT2H")
    return parse_duration(text)


def _priority(body: Mapping[str, Any]) -> int:
    value = body.get("priority", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_PRIORITY:
        raise InvalidDescription(f"priority is a number from 0 to {MOST_PRIORITY}")
    return value


# --- changing -------------------------------------------------------------------------------


def _change(call: Call, lease: Lease, body: Mapping[str, Any]) -> LeaseChange:
    """The new name and dates; the end is None where the lease is to end now."""
    now = call.env.store.now()
    if lease.state in _OVER and body.keys() - {"name"}:
        raise InvalidDescription("Terminated leases can only be renamed")
    period = lease.terms.period
    start, end = (
        _date(body, key, before, now)
        for key, before in (("start_date", period.start), ("end_date", period.end))
    )
    if start is not None:
        if lease.state is not LeaseState.PENDING:
            raise InvalidDescription("Cannot modify the start date of already started leases")
        start = _not_past(start, now, "Start date must be later than current date")
    if end is not None:
        wrong = "End date must be later than current and start date"
        end = _not_past(end, now, wrong)
        if end < (start or period.start) or (end > now and end == (start or period.start)):
            raise InvalidDescription(wrong)
    elif start is not None and start >= period.end:
        raise InvalidDescription("End date must be later than current and start date")
    return LeaseChange(
        name=read_name(body) if body.get("name") not in (None, lease.name) else None,
        start=start,
        end=end,
    )


def _date(body: Mapping[str, Any], key: str, before: Instant, now: Instant) -> Instant | None:
    """The new date under a key; None if it is as before: requests say no seconds."""
    if key not in body:
        return None
    at = dates.read(body[key], now)
    return None if at in (before, before - before % dates.MINUTE) else at


def _not_past(at: Instant, now: Instant, wrong: str) -> Instant:
    """The date; if it is of the present minute, now.

    Raises:
        InvalidDescription: it is in the past.
    """
    if at < now - now % dates.MINUTE:
        raise InvalidDescription(wrong)
    return max(at, now)


def _reservations(
    call: Call, lease: Lease, body: Mapping[str, Any], change: LeaseChange
) -> ReservationChange:
    """The reservations after the change."""
    before, after = lease.terms.period, _period_after(lease, change)
    return changed_reservations(
        lease,
        call.env.store.ensemble(lease.ensemble_id),
        body.get("reservations"),
        lease_request.OfferedResources(call.env.store, partial(_properties, call)),
        extended=after.start < before.start or after.end > before.end,
    )


def _period_after(lease: Lease, change: LeaseChange) -> Period:
    period = lease.terms.period
    return Period(change.start or period.start, change.end or period.end)


def _annotations(
    lease: Lease,
    body: Mapping[str, Any],
    period: Period,
    words: Mapping[str, Mapping[str, Any]],
    now: Instant,
) -> Mapping[str, object]:
    """The lease's annotations, updated with Blazar's fields of the change.

    `period` is the lease's after the change. A reminder keeps its distance from the end.

    Raises:
        Forbidden, InvalidDescription: Blazar's fields cannot express it.
    """
    said = dict(lease.annotations)
    if words:
        said[lease_request.RESERVATIONS] = dict(words)
    if body.get("before_end_date") is not None:
        said[lease_request.BEFORE_END] = _before_end(body, period, now)
    elif isinstance(at := said.get(lease_request.BEFORE_END), int):
        moved = period.end - (lease.terms.period.end - at)
        said[lease_request.BEFORE_END] = max(moved, period.start)
    return MappingProxyType(said)
