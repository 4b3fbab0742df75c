"""`/leases`."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.api.leases import dates, reading, shapes
from moorage.api.leases.call import Call, Reply
from moorage.api.leases.protocol import BEYOND
from moorage.domain.errors import Forbidden, Infeasible, InvalidDescription, NotFound
from moorage.domain.leases import LeaseState, Terms
from moorage.domain.period import Period, parse_duration
from moorage.domain.quotas import MOST_PRIORITY
from moorage.usecases.leases.annotate import annotate
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.change import LeaseChange, change_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.view import list_leases, own_lease
from moorage.usecases.ports import Page
from moorage.usecases.proposal import Naming
from moorage.usecases.reservations import asking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant

_OVER: Final = {LeaseState.ENDING, LeaseState.CLOSED}


def listing(call: Call) -> Reply:
    """GET: every lease of the project, or for operators of all; paged from 1.1 on."""
    page = call.page() if call.has(BEYOND) else Page(limit=_ALL)
    return Reply({"leases": [shapes.lease(one) for one in _listed(call, page)]})


def _listed(call: Call, page: Page) -> list[Lease]:
    """A page of leases that were not deleted: the store knows those that were, too."""
    found: list[Lease] = []
    while True:
        some = list_leases(
            call.parts.store,
            call.caller,
            all_projects=call.caller.operator,
            name=call.query.get("name") if call.has(BEYOND) else None,
            page=page,
        )
        found += [one for one in some if not _deleted(one)]
        if len(found) >= page.limit or len(some) < page.limit:
            return found[: page.limit]
        page = replace(page, marker=some[-1].id)


_ALL: Final = 100_000
"""Blazar has no pages: as many as anybody has."""


def show(call: Call) -> Reply:
    """GET: one lease."""
    return Reply({"lease": shapes.lease(_own(call))})


def create(call: Call) -> Reply:
    """POST: grant a lease. Of hosts as many as there are, between `min` and `max`."""
    wanted = _wanted(call)
    last: Infeasible | None = None
    for sized in asking.sizes(wanted.parts):
        try:
            ask = replace(wanted, parts=sized).ask()
            ask = replace(ask, any_priority=call.caller.operator)
            # Requirements become names of hosts, which tenants may not write; none is told them.
            named = replace(call.caller, as_operator=True)
            granted = create_lease(call.parts, named, ask, Naming(call.parts.ids.uuid()))
        except Infeasible as error:
            last = error
            continue
        return Reply({"lease": shapes.lease(granted.lease)}, status=201)
    assert last is not None, "at least one size is tried"
    raise last


def update(call: Call) -> Reply:
    """PUT: name, dates, and what reservations can change to."""
    lease, body = _own(call), call.object()
    if not body:
        return Reply({"lease": shapes.lease(lease)})
    change = _change(call, lease, body)
    # Judged before anything is written: a change is made as a whole, or not at all.
    _restated(lease, body, _period_after(lease, change), call.parts.store.now())
    if change != LeaseChange():
        granted = change_lease(
            call.parts, call.caller, lease.id, change, None, Naming(call.parts.ids.uuid())
        )
        lease = granted.lease
    said = _restated(lease, body, lease.terms.period, call.parts.store.now())
    if said != lease.annotations:
        lease = annotate(call.parts, lease, said)
    return Reply({"lease": shapes.lease(lease, status=shapes.UPDATING)})


def delete(call: Call) -> Reply:
    """DELETE: one that has not begun never does, a running one ends; Blazar knows it no more."""
    lease = _own(call)
    if lease.state not in _OVER:
        lease = cancel_lease(call.parts, call.caller, lease.id)
    annotate(call.parts, lease, {**lease.annotations, shapes.DELETED: True})
    return Reply(None, status=204)


# --- reading --------------------------------------------------------------------------------


def _own(call: Call) -> Lease:
    lease = own_lease(call.parts.store, call.caller, call.path["id"])
    if _deleted(lease):
        raise NotFound("lease", lease.id)
    return lease


def _deleted(lease: Lease) -> bool:
    return bool(lease.annotations.get(shapes.DELETED))


def _wanted(call: Call) -> asking.Wanted:
    body = call.object()
    now = call.parts.store.now()
    period = reading.read_period(body, now)
    annotations: dict[str, Any] = {}
    if body.get("before_end_date") is not None:
        annotations[asking.BEFORE_END] = _before_end(body, period, now)
    terms = Terms(period)
    if call.has(BEYOND):
        terms = replace(
            terms,
            expiry=_duration(body, "expiry"),
            priority=_priority(body),
            lead=_duration(body, "lead") or 0,
            cleaning=_duration(body, "cleaning") or 0,
        )
    return asking.Wanted(
        reading.read_name(body),
        terms,
        asking.read_parts(body.get("reservations"), asking.Offered(call.parts.store)),
        MappingProxyType(annotations),
    )


def _before_end(body: Mapping[str, Any], period: Period, now: Instant) -> Instant:
    at = dates.read(body["before_end_date"], now)
    if not period.start <= at <= period.end:
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
    now = call.parts.store.now()
    start = None if "start_date" not in body else dates.read(body["start_date"], now)
    end = None if "end_date" not in body else dates.read(body["end_date"], now)
    period = lease.terms.period
    if start is not None and start != period.start:
        if lease.state is not LeaseState.PENDING:
            raise InvalidDescription("Cannot modify the start date of already started leases")
        if start < now - now % dates.MINUTE:
            raise InvalidDescription("Start date must be later than current date")
        start = max(start, now)
    else:
        start = None
    if (end or period.end) <= (start or period.start):
        raise InvalidDescription("End date must be later than current and start date")
    return LeaseChange(
        name=reading.read_name(body) if body.get("name") not in (None, lease.name) else None,
        start=start,
        end=None if end == period.end else end,
        counts=MappingProxyType(_counts(call, lease, body)),
    )


def _counts(call: Call, lease: Lease, body: Mapping[str, Any]) -> dict[str, int]:
    """Roles whose number of members changes."""
    found: dict[str, int] = {}
    for part, source in _named(lease, body):
        words = shapes.reserved(lease, part)
        if source.get("resource_type", words["resource_type"]) != words["resource_type"]:
            raise asking.Changed("A reservation's resource_type cannot be changed")
        if "amount" in source and "amount" in words:
            count = asking.read_count(source, "amount")
            if count != words["amount"]:
                found[part.role] = count
        elif "max" in words:
            present = call.parts.store.ensemble(lease.ensemble_id).count(part.role)
            if (count := _hosts(source, words, present)) != present:
                found[part.role] = count
        for key in source:
            if key not in asking.CHANGEABLE and source[key] != words.get(key, source[key]):
                raise asking.Changed(f"{key} of a reservation cannot be changed")
    return found


def _hosts(source: Mapping[str, Any], words: Mapping[str, Any], present: int) -> int:
    """How many hosts there are to be: a larger `max` asks for all of them."""
    least, most = (
        asking.read_count(source, key) if key in source else words[key] for key in ("min", "max")
    )
    if most < least:
        raise InvalidDescription("max must be at least min")
    if most > words["max"]:
        return int(most)
    return int(min(max(present, least), most))


def _period_after(lease: Lease, change: LeaseChange) -> Period:
    period = lease.terms.period
    return Period(change.start or period.start, change.end or period.end)


def _named(lease: Lease, body: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    source = body.get("reservations")
    source = [] if source is None else source
    if not isinstance(source, list):
        raise InvalidDescription("reservations is a list")
    by_id = {part.id: part for part in lease.reservations}
    for one in source:
        if not isinstance(one, dict) or "id" not in one:
            raise InvalidDescription("Reservations to change need their id")
        if not isinstance(one["id"], str) or one["id"] not in by_id:
            raise InvalidDescription(f"The lease has no reservation {one['id']}")
        yield by_id[one["id"]], one


def _restated(
    lease: Lease, body: Mapping[str, Any], period: Period, now: Instant
) -> Mapping[str, Any]:
    """The lease's annotations with what the change says in Blazar's words.

    `period` is the lease's after the change.

    Raises:
        Forbidden, InvalidDescription: it cannot be told in them.
    """
    said = dict(lease.annotations)
    words = said.get(asking.RESERVATIONS)
    if isinstance(words, dict):
        changed = dict(words)
        for part, source in _named(lease, body):
            mine = changed.get(part.role, {})
            numbers = {
                key: asking.read_count(source, key)
                for key in ("amount", "min", "max")
                if key in source and key in mine
            }
            changed[part.role] = {**mine, **numbers}
        said[asking.RESERVATIONS] = changed
    if body.get("before_end_date") is not None:
        said[asking.BEFORE_END] = _before_end(body, period, now)
    elif isinstance(at := said.get(asking.BEFORE_END), int):
        said[asking.BEFORE_END] = min(at, period.end)
    return said
