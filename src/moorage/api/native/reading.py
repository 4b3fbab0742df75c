"""From request structs to the values that use cases take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.domain.describe import EnsembleDescription, read_ensemble
from moorage.domain.ensembles import MemberName
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import parse_duration, parse_instant
from moorage.domain.requests import Objective
from moorage.usecases.digest import digest
from moorage.usecases.joint import Ask
from moorage.usecases.proposal import Naming

if TYPE_CHECKING:
    from moorage.api.native.call import Call
    from moorage.api.native.requests import DecideBody, DecisionBody, EnsembleBody, ExplanationBody
    from moorage.domain.period import Duration, Instant


PRIORITY: Final = "moorage:leases:priority"
"""Who meets it may ask for any priority; others for what the quota of the project allows."""


def builtins(body: object) -> dict[str, Any]:
    """A struct as plain JSON values, unset fields left out."""
    found: dict[str, Any] = msgspec.to_builtins(body)
    return found


def naming(call: Call, body: msgspec.Struct, given: str | None) -> Naming:
    """The client's own id with the fingerprint of its request, or a new id without one."""
    if given is None:
        return Naming(call.parts.ids.uuid())
    return Naming(given, digest(builtins(body)))


def description(body: EnsembleBody) -> EnsembleDescription:
    """The ensemble as described."""
    source = builtins(body)
    return read_ensemble(
        {name: source[name] for name in ("name", "members", "policies", "metadata")}
    )


def undeclared(body: ExplanationBody) -> EnsembleDescription:
    """Members and policies of a request that is only asked about."""
    source = builtins(body)
    return read_ensemble(
        {"name": "undeclared", "members": source["members"], "policies": source["policies"]}
    )


def ask(call: Call, body: DecideBody | DecisionBody) -> Ask:
    """How to decide.

    Raises:
        InvalidDescription: its durations or times cannot be understood, or it gives a priority to
            what never yields.
    """
    if body.priority and not body.preemptible:
        raise InvalidDescription("only what is preemptible has a priority", path="priority")
    return Ask(
        hold=duration(body.hold, "hold"),
        time_limit=duration(body.time_limit, "time_limit"),
        objective=Objective(body.objective),
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
