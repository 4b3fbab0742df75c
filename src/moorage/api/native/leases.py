"""`/v1/leases`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, structs

from moorage.api.native import answers_leases as told
from moorage.api.native import reading, views, views_leases, waitlist
from moorage.api.native.call import Call, Reply
from moorage.domain.describe import EnsembleDescription, read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.domain.lease_actions import Edge, read_actions
from moorage.domain.leases import LeaseState, Terms, Yielding
from moorage.domain.period import Period, parse_duration
from moorage.domain.requests import Objective
from moorage.usecases.leases.audience import audiences, notified
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.change import LeaseChange, change_lease
from moorage.usecases.leases.create import LeaseAsk, create_lease
from moorage.usecases.leases.view import (
    displaced_by,
    list_leases,
    own_lease,
    remaining,
    remaining_in,
)
from moorage.usecases.templates import instantiate
from moorage.usecases.waitlist.enter import create_or_wait
from moorage.usecases.waitlist.view import Shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.api.native.requests_leases import (
        AmountBody,
        LeaseBody,
        LeaseChangeBody,
        LeasedBody,
    )
    from moorage.api.native.requests_offers import OfferedTerms
    from moorage.api.native.requests_series import SeriesBody
    from moorage.api.native.requests_templates import ChosenTemplate
    from moorage.domain.period import Duration, Instant
    from moorage.usecases.leases.create import Granted

GRANTED = {one.value: one for one in LeaseState if one is not LeaseState.OFFERED}
"""The states of leases by their words; an offer is none."""
AMOUNT_ROLE = "server"
"""The one role of a lease of an amount of a flavor."""


def create(call: Call) -> Reply:
    """POST: grant a lease, or say why none can be granted; one that may wait is kept for then."""
    body: LeaseBody = call.body.lease
    ask = asked(body, call.parts.store.now(), any_priority=call.may(reading.PRIORITY))
    if body.template is not None:
        ask = replace(ask, description=instance(call, body.template))
    naming = reading.naming(call, body, body.id)
    wait = waitlist.wait_of(body)
    if wait is None:
        granted = create_lease(call.parts, call.caller, ask, naming, dry_run=call.dry_run)
        return granted_reply(call, granted, created=True)
    found = create_or_wait(call.parts, call.caller, ask, wait, naming, dry_run=call.dry_run)
    if isinstance(found, Shown):
        return waitlist.entered_reply(call, found)
    return granted_reply(call, found, created=True)


def listing(call: Call) -> Reply:
    """GET: a page of leases, oldest first."""
    page = call.page()
    found = list_leases(
        call.parts.store,
        call.caller,
        all_projects=call.flag("all_projects"),
        project_id=call.query.get("project_id"),
        name=call.query.get("name"),
        state=_state(call.query.get("state")),
        series_id=call.query.get("series"),
        page=page,
    )
    links = call.next_links("leases", [one.id for one in found], page)
    shown = [views_leases.lease_view(call, one) for one in found]
    now = views.instant(call.parts.store.now())
    assert now is not None
    return Reply(told.Leases(shown, links, now))


def show(call: Call) -> Reply:
    """GET: one lease."""
    store = call.parts.store
    lease = own_lease(store, call.caller, call.path["id"])
    view = views_leases.lease_view(call, lease, remaining(store, lease), displaced_by(store, lease))
    if lease.degraded:
        view = structs.replace(view, notified=notified(store, lease))
    return Reply(told.OneLease(view), generation=lease.generation)


def change(call: Call) -> Reply:
    """PATCH: extend, shrink, grow, move or rename, all in one step."""
    body: LeaseChangeBody = call.body.lease
    granted = change_lease(
        call.parts,
        call.caller,
        call.path["id"],
        changed(body, call.parts.store.now()),
        call.expected(body.generation),
        reading.naming(call, body, None),
        dry_run=call.dry_run,
    )
    return granted_reply(call, granted, created=False)


def cancel(call: Call) -> Reply:
    """DELETE: give it back; one that has started ends now."""
    cancel_lease(
        call.parts, call.caller, call.path["id"], call.expected(None), dry_run=call.dry_run
    )
    return Reply()


def events(call: Call) -> Reply:
    """GET: a page of what happens because of a lease, in the order of its writing."""
    page = call.page()
    lease = own_lease(call.parts.store, call.caller, call.path["id"])
    found = call.parts.store.effects(lease.id, page=page)
    links = call.next_links(f"leases/{lease.id}/events", [one.id for one in found], page)
    heard = audiences(call.parts.store, lease, found)
    shown = [views_leases.event_view(call, one, heard.get(one.id)) for one in found]
    return Reply(told.LeaseEvents(shown, links))


def granted_reply(call: Call, granted: Granted, *, created: bool) -> Reply:
    """A lease as it was granted, with its placement."""
    lease, dry = granted.lease, granted.dry_run
    return Reply(
        told.OneLease(
            lease=views_leases.lease_view(
                call,
                lease,
                None if dry else remaining_in(lease, granted.ensemble, granted.snapshot),
                granted.displaced,
            ),
            decision=views.decision_view(
                call,
                granted.decision,
                granted.ensemble,
                granted.snapshot,
                granted.claims,
                dry_run=dry,
                lease=lease,
            ),
            ensemble=views.ensemble_view(call, granted.ensemble),
            preempted=views_leases.preempted_view(call, granted.preempted),
            dry_run=dry,
            computed_at=views.instant(granted.snapshot.taken_at) or UNSET,
            revision=granted.snapshot.revision,
        ),
        status=200 if dry else None,
        generation=None if dry else lease.generation,
        location=f"{call.base}/leases/{lease.id}" if created and not dry else None,
    )


def asked(body: LeaseBody, now: Instant, *, any_priority: bool = False) -> LeaseAsk:
    """What a body asks for, at an instant; a template is not described yet.

    Args:
        body: what was written.
        now: when.
        any_priority: see `LeaseAsk`.

    Raises:
        InvalidDescription: it says several things where one is needed or none at all, or its
            times, durations, members or actions cannot be understood.
    """
    wanted = [body.ensemble_id, body.ensemble, body.template, body.amount]
    if sum(one is not None for one in wanted) != 1:
        raise InvalidDescription(
            "give one of ensemble_id, ensemble, template and amount, and not more", path="lease"
        )
    return LeaseAsk(
        name=body.name,
        terms=Terms(
            period=_period(body, now),
            lead=span(body.lead, "lease.lead") or 0,
            cleaning=span(body.cleaning, "lease.cleaning") or 0,
            expiry=span(body.expiry, "lease.expiry"),
            priority=body.priority,
            before_start=before_start(body.before_start),
        ),
        ensemble_id=body.ensemble_id,
        description=_description(body),
        actions=actions(body),
        objective=Objective(body.objective),
        seed=body.seed,
        time_limit=reading.duration(body.time_limit, "time_limit"),
        any_priority=any_priority,
    )


def changed(body: LeaseChangeBody, now: Instant) -> LeaseChange:
    """What a body changes, at an instant.

    Raises:
        InvalidDescription: its times cannot be understood, or say different things.
    """
    start = None if body.start is UNSET else _start(body.start, now)
    end = None if body.end is None else reading.instant(body.end, "lease.end")
    if body.duration is not None:
        if start is None or end is not None:
            raise InvalidDescription(
                "a duration goes with start and without end", path="lease.duration"
            )
        end = start + (reading.duration(body.duration, "lease.duration") or 0)
    return LeaseChange(name=body.name, start=start, end=end, counts=body.counts)


def before_start(words: list[Literal["bounded", "preemptible"]] | None) -> frozenset[Yielding]:
    """Who may use the capacity until the start; both where nothing is said."""
    return frozenset(Yielding if words is None else map(Yielding, words))


def actions(body: LeaseBody | OfferedTerms | SeriesBody) -> Mapping[str, tuple[str, ...]]:
    """What a body wants done at the edges, checked."""
    written: dict[str, object] = {edge.value: getattr(body, edge.value) for edge in Edge}
    try:
        return read_actions(written)
    except InvalidDescription as error:
        # In this body each edge is a field of its own.
        path = (error.path or "lease").replace("lease.actions.", "lease.")
        raise InvalidDescription(error.message, path=path) from None


def _description(body: LeaseBody) -> EnsembleDescription | None:
    if body.ensemble is not None:
        return described(body.ensemble, body.name)
    return None if body.amount is None else amounting(body.amount, body.name)


def described(body: LeasedBody, name: str) -> EnsembleDescription:
    """The ensemble that is described; called as what it is for if it has no name of its own."""
    return read_ensemble(reading.builtins(body) | {"name": body.name or name})


def amounting(body: AmountBody, name: str) -> EnsembleDescription:
    """So many servers as an ensemble of one role."""
    source = reading.builtins(body)
    role: dict[str, Any] = {"name": AMOUNT_ROLE} | {
        name: source[name]
        for name in ("count", "flavor", "resources", "required", "forbidden")
        if source[name]
    }
    return read_ensemble({"name": name, "members": [role], "policies": source["policies"]})


def instance(call: Call, template: ChosenTemplate) -> EnsembleDescription:
    """What a template makes of its parameters.

    Raises:
        NotFound: no such template for this caller.
    """
    return instantiate(call.parts.store, call.caller, template.name, template.parameters)


def _period(body: LeaseBody, now: Instant) -> Period:
    if (body.end is None) == (body.duration is None):
        raise InvalidDescription("give end or duration, and not both", path="lease.end")
    start = _start(body.start, now)
    if body.end is not None:
        end = reading.instant(body.end, "lease.end")
    else:
        end = start + (reading.duration(body.duration, "lease.duration") or 0)
    if end <= start:
        raise InvalidDescription("a lease ends after it starts", path="lease.end")
    return Period(start, end)


def _start(text: str | None, now: Instant) -> Instant:
    return now if text is None else reading.instant(text, "lease.start")


def span(text: str | None, path: str) -> Duration | None:
    """A duration that may be none at all, as a lead may."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=path) from None


def _state(text: str | None) -> LeaseState | None:
    if text is None:
        return None
    try:
        return GRANTED[text]
    except KeyError:
        known = ", ".join(GRANTED)
        raise InvalidDescription(f"a lease is {known}; not {text!r}", path="state") from None
