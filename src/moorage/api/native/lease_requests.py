"""Requests for leases, offers and series, read from their bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from moorage.api.native import reading
from moorage.domain.describe import EnsembleDescription, read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.domain.lease_actions import Edge, read_actions
from moorage.domain.leases import Terms, Yielding
from moorage.domain.period import Period, parse_duration
from moorage.usecases.ensembles.templates import instantiate
from moorage.usecases.leases.change import LeaseChange
from moorage.usecases.leases.create import LeaseRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.api.native.call import Call
    from moorage.domain.period import Duration, Instant
    from moorage.domain.requests import Objective
    from moorage.wire.leases import AmountBody, LeaseBody, LeaseChangeBody, LeasedBody
    from moorage.wire.offers import OfferedTerms
    from moorage.wire.series import SeriesBody
    from moorage.wire.templates import ChosenTemplate

AMOUNT_ROLE = "server"
"""The one role of a lease of an amount of a flavor."""


def lease_request(
    body: LeaseBody, now: Instant, objective: Objective, *, any_priority: bool = False
) -> LeaseRequest:
    """The request of a body, at an instant; a template is not described yet.

    Args:
        body: what was written.
        now: when.
        objective: the body's, or the operator's default.
        any_priority: see `LeaseRequest`.

    Raises:
        InvalidDescription: it says several things where one is needed or none at all, or its
            times, durations, members or actions cannot be understood.
    """
    wanted = [body.ensemble_id, body.ensemble, body.template, body.amount]
    if sum(one is not None for one in wanted) != 1:
        raise InvalidDescription(
            "give one of ensemble_id, ensemble, template and amount, and not more", path="lease"
        )
    return LeaseRequest(
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
        objective=objective,
        seed=body.seed,
        time_limit=reading.duration(body.time_limit, "time_limit"),
        any_priority=any_priority,
    )


def lease_change(body: LeaseChangeBody, now: Instant) -> LeaseChange:
    """The changes of a body, at an instant.

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
    """The consumers that may use the capacity until the start; both kinds by default."""
    return frozenset(Yielding if words is None else map(Yielding, words))


def actions(body: LeaseBody | OfferedTerms | SeriesBody) -> Mapping[str, tuple[str, ...]]:
    """The actions of a body at each edge, checked."""
    written: dict[str, object] = {edge.value: getattr(body, edge.value) for edge in Edge}
    try:
        return read_actions(written)
    except InvalidDescription as error:
        # In this body each edge is a field of its own.
        path = (error.path or "lease").replace("lease.actions.", "lease.")
        raise InvalidDescription(error.message, path=path) from None


def _description(body: LeaseBody) -> EnsembleDescription | None:
    if body.ensemble is not None:
        return described_ensemble(body.ensemble, body.name)
    return None if body.amount is None else flavor_ensemble(body.amount, body.name)


def described_ensemble(body: LeasedBody, name: str) -> EnsembleDescription:
    """The described ensemble; without a name of its own it gets the given one."""
    return read_ensemble(reading.builtins(body) | {"name": body.name or name})


def flavor_ensemble(body: AmountBody, name: str) -> EnsembleDescription:
    """An ensemble with one role of so many servers."""
    source = reading.builtins(body)
    role: dict[str, Any] = {"name": AMOUNT_ROLE} | {
        name: source[name]
        for name in ("count", "flavor", "resources", "required", "forbidden")
        if source[name]
    }
    return read_ensemble({"name": name, "members": [role], "policies": source["policies"]})


def template_ensemble(call: Call, template: ChosenTemplate) -> EnsembleDescription:
    """The ensemble description that a template makes of its parameters.

    Raises:
        NotFound: no such template for this caller.
    """
    return instantiate(call.env.store, call.caller, template.name, template.parameters)


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
    """A duration that may be absent, such as a lead."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=path) from None
