"""The one table from error to status, code and title."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.api.native import protocol
from moorage.api.native.answers import BrokenLease, Difference, Error
from moorage.domain import errors
from moorage.domain.leases import LeadTooLong
from moorage.domain.period import format_duration, format_instant
from moorage.usecases.members import Oversized, Violated

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rule:
    """How an error is told."""

    status: int
    code: str
    title: str


TABLE: Final[Mapping[type[errors.MoorageError], Rule]] = MappingProxyType(
    {
        errors.InvalidDescription: Rule(400, "invalid_description", "The description is invalid"),
        LeadTooLong: Rule(400, "lead_too_long", "The lead would begin in the past"),
        errors.UnknownName: Rule(400, "unknown_name", "It names something that does not exist"),
        errors.UnknownPolicy: Rule(400, "unknown_policy", "No such policy type"),
        errors.Contradiction: Rule(400, "contradiction", "The policies contradict one another"),
        errors.Forbidden: Rule(403, "forbidden", "Not allowed"),
        errors.CheckRefused: Rule(403, "check_refused", "The operator's check refuses it"),
        errors.LimitExceeded: Rule(403, "quota_exceeded", "A limit was passed"),
        errors.NotFound: Rule(404, "not_found", "Not found"),
        protocol.MethodNotAllowed: Rule(405, "method_not_allowed", "No such verb here"),
        protocol.UnsupportedVersion: Rule(406, "unsupported_version", "Version not served"),
        errors.Conflict: Rule(409, "conflict", "The present state does not allow it"),
        errors.ConcurrentUpdate: Rule(409, "concurrent_update", "It has changed meanwhile"),
        errors.DuplicateName: Rule(409, "duplicate_name", "Already taken"),
        errors.InUse: Rule(409, "in_use", "Still in use"),
        errors.WouldBreakLease: Rule(409, "would_break_lease", "It would break a lease"),
        Violated: Rule(409, "would_break_policy", "It would break a required policy"),
        errors.CapacityExceeded: Rule(409, "capacity_exceeded", "It does not fit"),
        errors.ConstraintViolated: Rule(409, "constraint_violated", "A unit rule is broken"),
        errors.Infeasible: Rule(409, "infeasible", "No placement meets the request"),
        errors.SeriesInfeasible: Rule(
            409, "series_infeasible", "Not all occurrences of the series fit"
        ),
        errors.DescriptionMismatch: Rule(
            409, "description_mismatch", "The server differs from its description"
        ),
        errors.OfferOver: Rule(410, "offer_over", "The offer is over"),
        errors.HoldExpired: Rule(409, "hold_expired", "The hold has lapsed"),
        errors.WrongState: Rule(409, "wrong_state", "Not possible in this state"),
        errors.EventsLost: Rule(410, "events_lost", "Events were forgotten since"),
        protocol.PreconditionFailed: Rule(412, "precondition_failed", "Stale If-Match"),
        protocol.UnsupportedMediaType: Rule(415, "unsupported_media_type", "Not JSON"),
        protocol.PreconditionRequired: Rule(428, "precondition_required", "If-Match is missing"),
        errors.Busy: Rule(503, "busy", "Try again later"),
        errors.Unavailable: Rule(503, "unavailable", "The ledger cannot be used now"),
    }
)
"""Looked up by the error's class, then its bases. Every code is prefixed `ensemble.`."""

REMEDIES: Final = ("resubmit_as_described", "redecide_member", "supersede_decision")
"""What helps after a mismatch: the described size, `on_mismatch`, or a changed ensemble."""


def rule_for(error: errors.MoorageError) -> Rule:
    """The rule of the nearest class in the table.

    Raises:
        LookupError: an error without a rule, which is a mistake of ours (500).
    """
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind]
    raise LookupError(f"no rule for {type(error).__name__}")


def told(error: errors.MoorageError, request_id: str) -> Error:
    """The error as it goes over the wire; an explanation is added by who can show it."""
    rule = rule_for(error)
    return Error(
        status=rule.status,
        code=f"ensemble.{rule.code}",
        title=rule.title,
        detail=error.message,
        request_id=request_id,
        **_details(error),
    )


def told_to_tenant(error: errors.MoorageError, request_id: str) -> Error:
    """As `told`, without providers: neither their UUIDs nor how full they are."""
    return msgspec.structs.replace(told(error, request_id), detail=_without_provider(error))


def _without_provider(error: errors.MoorageError) -> str:
    match error:
        case errors.CapacityExceeded():
            return f"{error.resource_class}: there is no longer room for {error.requested}"
        case errors.ConstraintViolated():
            return f"{error.resource_class}: {error.requested} breaks a rule of its host"
        case errors.ProviderConflict():
            return "the fleet changed meanwhile"
        case errors.NotFound(kind=kind) | errors.UnknownName(kind=kind) if kind in _PROVIDERS:
            return "its host is not there"
        case errors.InventoryInUse() | errors.ProviderInUse() | errors.ProviderHasChildren():
            return "it is in use"
        case _:
            return error.message


_PROVIDERS: Final = {"resource provider", "host"}


def _details(error: errors.MoorageError) -> dict[str, Any]:  # noqa: PLR0911 - a table
    match error:
        case errors.Contradiction():
            return {"policies": list(error.policies)}
        case LeadTooLong():
            return {"path": error.path, "longest": format_duration(error.longest)}
        case errors.InvalidDescription():
            return {"path": error.path, "line": error.line}
        case errors.EventsLost():
            return {"oldest": error.oldest, "before": format_instant(error.before)}
        case errors.LimitExceeded():
            known = {"limit": error.limit, "used": error.used, "requested": error.requested}
            return known | _of_quota(error)
        case errors.WouldBreakLease():
            return _broken(error)
        case Oversized():
            return {"diff": differences(error.diff)}
        case errors.DescriptionMismatch():
            return {"diff": differences(error.diff), "remedies": list(REMEDIES)}
        case _:
            return {}


def _of_quota(error: errors.LimitExceeded) -> dict[str, Any]:
    """What is told besides where the limit is a project's."""
    if not isinstance(error, errors.QuotaExceeded):
        return {}
    told: dict[str, Any] = {"quota": str(error.what), "left": error.left}
    if error.passes_at is not None:
        told["passes_at"] = format_instant(error.passes_at)
        told["passes"] = "asked" if error.when_asked else "start"
    if error.asked_from is not None:
        told["asked_from"] = format_instant(error.asked_from)
    return told


def _broken(error: errors.WouldBreakLease) -> dict[str, Any]:
    at = error.earliest
    return {
        "leases": [BrokenLease(id_, name, why) for id_, _, name, why in error.leases],
        "earliest": None if at is None else format_instant(at),
    }


def differences(diff: tuple[Mapping[str, Any], ...]) -> list[Difference]:
    """The fields of a comparison, on the wire."""
    return [Difference(**one) for one in diff]


BUSY: Final = 503
NOT_ACCEPTABLE: Final = 406
