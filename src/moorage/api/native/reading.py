"""Converts request structs to the arguments of use cases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.domain.describe import EnsembleDescription, read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.domain.idempotency import record_id
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period, parse_duration, parse_instant
from moorage.domain.requests import Objective
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.shared.access import digest

if TYPE_CHECKING:
    from moorage.api.native.call import Call
    from moorage.domain.period import Duration, Instant
    from moorage.wire.decisions import DecideBody, DecisionBody
    from moorage.wire.ensembles import EnsembleBody
    from moorage.wire.explanations import ExplanationBody

PRIORITY: Final = "moorage:leases:priority"
"""Callers who meet it may request any priority; others up to the project's quota."""


def builtins(body: object) -> dict[str, Any]:
    """A struct as plain JSON values, unset fields left out."""
    found: dict[str, Any] = msgspec.to_builtins(body)
    return found


def identity(call: Call, body: msgspec.Struct, given: str | None) -> RequestIdentity:
    """The id of the record to create: derived from the idempotency key, if the client sent one.

    Every key passes through here; no use case takes one as the id of a record.
    """
    if given is None:
        return RequestIdentity(call.env.ids.uuid())
    own = record_id(given, call.caller.project_id)
    return RequestIdentity(own, digest(builtins(body)), key=given)


def description(body: EnsembleBody) -> EnsembleDescription:
    """The ensemble description of a body."""
    source = builtins(body)
    return read_ensemble(
        {name: source[name] for name in ("name", "members", "policies", "metadata")}
    )


def undeclared(body: ExplanationBody) -> EnsembleDescription:
    """The members and policies of a request to explain."""
    source = builtins(body)
    return read_ensemble(
        {"name": "undeclared", "members": source["members"], "policies": source["policies"]}
    )


def objective(call: Call, name: str | None) -> Objective:
    """The objective of this name, or the operator's default."""
    return call.env.limits.objective if name is None else Objective(name)


def decision_options(call: Call, body: DecideBody | DecisionBody) -> DecisionOptions:
    """The options of a decision.

    Raises:
        InvalidDescription: its durations or times cannot be understood, or it gives a priority to
            what never yields.
    """
    if body.priority and not body.preemptible:
        raise InvalidDescription("only what is preemptible has a priority", path="priority")
    return DecisionOptions(
        hold=duration(body.hold, "hold"),
        time_limit=duration(body.time_limit, "time_limit"),
        objective=objective(call, body.objective),
        first_choices=body.alternatives == "first",
        seed=body.seed,
        additional=tuple(dict.fromkeys(body.max_additional)),
        until=None if body.until is None else instant(body.until, "until"),
        preemptible=body.preemptible,
        priority=body.priority,
        any_priority=call.may(PRIORITY),
    )


def instant(text: str, path: str) -> Instant:
    """A time in the body.

    Raises:
        InvalidDescription: not a time, or one without an offset.
    """
    try:
        return parse_instant(text)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=path) from None


def overlapped(call: Call) -> Period | None:
    """The period from `from` to `to` in the query, one of which may be left open; None: neither.

    Raises:
        InvalidDescription: not times, or it ends before it begins.
    """
    since, until = call.query.get("from"), call.query.get("to")
    if since is None and until is None:
        return None
    start = 0 if since is None else instant(since, "from")
    end = FOREVER if until is None else instant(until, "to")
    if end <= start:
        raise InvalidDescription("the period must end after its start", path="to")
    return Period(start, end)


def duration(text: str | None, path: str) -> Duration | None:
    """A duration in the body.

    Raises:
        InvalidDescription: not a duration, or none at all.
    """
    if text is None:
        return None
    try:
        found = parse_duration(text)
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=path) from None
    if found <= 0:
        raise InvalidDescription(f"{path} must be longer than nothing", path=path)
    return found


def member_name(text: str) -> MemberName:
    """A member's name in a path or body.

    Raises:
        InvalidDescription: not of the form `role[index]`.
    """
    return MemberName.parse(text)


def uuid(text: str) -> str:
    """A UUID in a path.

    Raises:
        InvalidDescription: it is none, or not written as usual.
    """
    if _UUID.fullmatch(text) is None:
        raise InvalidDescription(f"not a UUID: {text!r}", path="id")
    return text


_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
