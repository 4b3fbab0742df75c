"""The one table from error to status, code and title."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.api.native import protocol
from moorage.api.native.explanations import explanation_view
from moorage.api.native.formats import wall
from moorage.api.native.policies import violations_view
from moorage.domain import errors
from moorage.domain.errors import (
    Infeasible,
    MoorageError,
    QuotaExceeded,
    SeriesInfeasible,
    Undecided,
)
from moorage.domain.explain import Explanation
from moorage.domain.host_states import HostOutOfService
from moorage.domain.leases import LeadTooLong
from moorage.domain.period import format_duration, format_instant
from moorage.usecases.compliance.judgement import BreaksPolicies
from moorage.usecases.ensembles.members import ServerTooLarge
from moorage.usecases.ensembles.size_changes import BelowMinAvailable
from moorage.usecases.refusals.explanation import refused_because
from moorage.usecases.series.requests import OccurrenceRefusal, SeriesAlternative
from moorage.wire.claims import Difference
from moorage.wire.errors import BrokenLease, Error, Errors, InsteadOfSeries, RefusedOccurrence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.api.native.call import Call


@dataclass(frozen=True, slots=True)
class Rule:
    """Status, code and title of a class of errors."""

    status: int
    code: str
    title: str
    remedy: str
    """What the caller can do about it, in Markdown: for the reference page."""


TABLE: Final[Mapping[type[errors.MoorageError], Rule]] = MappingProxyType(
    {
        errors.InvalidDescription: Rule(
            400,
            "invalid_description",
            "The description is invalid",
            "Mend what `path` and `detail` name; `line` is the line of a template or file.",
        ),
        LeadTooLong: Rule(
            400,
            "lead_too_long",
            "The lead would begin in the past",
            "Ask for a shorter `lead` (`longest` is what fits before the start), or a later start.",
        ),
        errors.UnknownName: Rule(
            400,
            "unknown_name",
            "It names something that does not exist",
            "Use a name that exists; the detail suggests the most similar one.",
        ),
        errors.UnknownPolicy: Rule(
            400, "unknown_policy", "No such policy type", "Use a type of `moorage policy list`."
        ),
        errors.Contradiction: Rule(
            400,
            "contradiction",
            "The policies contradict one another",
            "No fleet can meet the `policies` named together: relax or remove one of them.",
        ),
        errors.Forbidden: Rule(
            403,
            "forbidden",
            "Not allowed",
            "Ask an operator for a role that meets the rule, or use a token that has it.",
        ),
        errors.CheckRefused: Rule(
            403,
            "check_refused",
            "The operator's check refuses it",
            "The operator's own check of leases refused; the detail is its reason.",
        ),
        errors.LimitExceeded: Rule(
            403,
            "quota_exceeded",
            "A limit was passed",
            "Free or ask for less (`used`, `limit`, `requested`), wait until `passes_at`, or "
            "ask an operator for more.",
        ),
        errors.NotFound: Rule(
            404,
            "not_found",
            "Not found",
            "Check the id; what belongs to another project is not found, either.",
        ),
        protocol.MethodNotAllowed: Rule(
            405, "method_not_allowed", "No such verb here", "Use one of the methods in `Allow`."
        ),
        protocol.UnsupportedVersion: Rule(
            406,
            "unsupported_version",
            "Version not served",
            "Ask for a version between those of `GET /v1/`, or for `latest`.",
        ),
        errors.Conflict: Rule(
            409,
            "conflict",
            "The present state does not allow it",
            "Read the present state, then decide whether the request still makes sense.",
        ),
        errors.ConcurrentUpdate: Rule(
            409,
            "concurrent_update",
            "It has changed meanwhile",
            "Read it again and repeat the request with the new generation.",
        ),
        errors.DuplicateName: Rule(
            409,
            "duplicate_name",
            "Already taken",
            "Use another name or id, or the thing that has it.",
        ),
        errors.NameTaken: Rule(
            409,
            "name_taken",
            "The name is taken",
            "Change or delete the thing of that name (`existing` is its id), or use another name.",
        ),
        errors.InUse: Rule(
            409,
            "in_use",
            "Still in use",
            "Remove what refers to it first, or repeat the request with a parameter of `remedies`.",
        ),
        errors.WouldBreakLease: Rule(
            409,
            "would_break_lease",
            "It would break a lease",
            "Choose another time (`earliest` would do) or move the `leases` named.",
        ),
        BreaksPolicies: Rule(
            409,
            "would_break_policy",
            "It would break a required policy",
            "Choose another server, or other members, or relax the policy first.",
        ),
        BelowMinAvailable: Rule(
            409,
            "below_min_available",
            "Fewer members would be left than must be up",
            "Keep more members, or lower the role's `min_available` first.",
        ),
        errors.CapacityExceeded: Rule(
            409,
            "capacity_exceeded",
            "It does not fit",
            "Something else took the room; ask again to be placed anew.",
        ),
        errors.ConstraintViolated: Rule(
            409,
            "constraint_violated",
            "A unit rule is broken",
            "Ask for amounts that the inventory's `min_unit`, `max_unit` and `step_size` allow.",
        ),
        errors.Infeasible: Rule(
            409,
            "infeasible",
            "No placement meets the request",
            "Read the explanation: its relaxations were each solved and fit. See "
            "[Refusals and explanations](../guide/refused.md).",
        ),
        errors.Undecided: Rule(
            409,
            "undecided",
            "Neither placed nor refused in time",
            "Ask with a longer `time_limit`, or for fewer members at once. Nothing was written but "
            "the explanation.",
        ),
        errors.SeriesInfeasible: Rule(
            409,
            "series_infeasible",
            "Not all occurrences of the series fit",
            "Leave out the `occurrences` named, or take one of the changes in `instead`.",
        ),
        errors.DescriptionMismatch: Rule(
            409,
            "description_mismatch",
            "The server differs from its description",
            "Create the server as described, or take a remedy of `remedies`.",
        ),
        errors.ConsentMissing: Rule(
            409,
            "consent_missing",
            "Another project has not accepted its role",
            "Let the `project` that the role belongs to accept its share; see "
            "[Ensembles across projects](../guide/across-projects.md).",
        ),
        errors.OtherQuotaExceeded: Rule(
            409,
            "other_quota_exceeded",
            "The quota of another project is too small",
            "Let the project free places, or ask for fewer members of its roles.",
        ),
        errors.OfferOver: Rule(410, "offer_over", "The offer is over", "Ask for a new offer."),
        errors.HoldExpired: Rule(
            409,
            "hold_expired",
            "The hold has lapsed",
            "Decide again; hold longer with `hold`, or renew in time.",
        ),
        HostOutOfService: Rule(
            409,
            "host_out_of_service",
            "The host is out of service",
            "Place the member anew: `moorage decision create`; its other members keep their places"
            " where they have servers. A lease gets other places by itself.",
        ),
        errors.WrongState: Rule(
            409,
            "wrong_state",
            "Not possible in this state",
            "Look at its state; the detail says which step is possible.",
        ),
        errors.InstanceOutdated: Rule(
            410,
            "instance_outdated",
            "The problem can no longer be made",
            "Of a large fleet the problem is made from the ledger while its hosts are unchanged:"
            " repeat the request, and ask for the instance at once.",
        ),
        errors.EventsLost: Rule(
            410,
            "events_lost",
            "Events were forgotten since",
            "Read again from `oldest`, and take what is missing from the listings.",
        ),
        protocol.PreconditionFailed: Rule(
            412,
            "precondition_failed",
            "Stale If-Match",
            "Read it again and send its new generation in `If-Match`.",
        ),
        protocol.UnsupportedMediaType: Rule(
            415, "unsupported_media_type", "Not JSON", "Send `Content-Type: application/json`."
        ),
        protocol.PreconditionRequired: Rule(
            428,
            "precondition_required",
            "If-Match is missing",
            "Send the generation that you have read in `If-Match`, or `*` for any.",
        ),
        errors.Busy: Rule(
            503,
            "busy",
            "Try again later",
            "Repeat after `Retry-After` seconds, with a longer `time_limit` if a search ran out "
            "of time.",
        ),
        errors.TooManyRequests: Rule(
            429,
            "too_many_requests",
            "Too many requests at once",
            "Repeat after `Retry-After` seconds. The detail says of what there are too many.",
        ),
        errors.Unavailable: Rule(
            503,
            "unavailable",
            "The ledger cannot be used now",
            "Repeat later; an operator has to look at the database or its disk.",
        ),
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


def operator_error(error: errors.MoorageError, request_id: str) -> Error:
    """The error on the wire; an explanation is added by the caller."""
    rule = rule_for(error)
    return Error(
        status=rule.status,
        code=f"ensemble.{rule.code}",
        title=rule.title,
        detail=error.message,
        request_id=request_id,
        **_details(error),
    )


def tenant_error(error: errors.MoorageError, request_id: str) -> Error:
    """As `operator_error`, without providers' UUIDs and free capacity."""
    return msgspec.structs.replace(
        operator_error(error, request_id), detail=_without_provider(error)
    )


def _without_provider(error: errors.MoorageError) -> str:  # noqa: PLR0911 - a table
    match error:
        case errors.CapacityExceeded():
            return f"{error.resource_class}: there is no longer room for {error.requested}"
        case errors.ConstraintViolated():
            return f"{error.resource_class}: {error.requested} breaks a rule of its host"
        case errors.ProviderConflict():
            return "the fleet changed meanwhile"
        case errors.NotFound(kind=kind) | errors.UnknownName(kind=kind) if kind in _PROVIDERS:
            return "its host is not there"
        case errors.ProviderInUse() | errors.ProviderHasChildren():
            return "it is in use"
        case errors.OfferCycle():
            return "its server would stand on itself"
        case _:
            return error.message


_PROVIDERS: Final = {"resource provider", "host"}


def _details(error: errors.MoorageError) -> dict[str, Any]:  # noqa: C901, PLR0911 - a table
    match error:
        case errors.Contradiction():
            return {"policies": list(error.policies)}
        case LeadTooLong():
            return {"path": error.path, "longest": format_duration(error.longest)}
        case errors.InvalidDescription():
            return {"path": error.path, "line": error.line}
        case errors.NameTaken():
            return {"existing": error.existing}
        case errors.EventsLost():
            return {"oldest": error.oldest, "before": format_instant(error.before)}
        case errors.LimitExceeded():
            known = {"limit": error.limit, "used": error.used, "requested": error.requested}
            return known | _of_quota(error)
        case errors.WouldBreakLease():
            return _broken(error)
        case ServerTooLarge():
            return {"diff": differences(error.diff)}
        case errors.DescriptionMismatch():
            return {"diff": differences(error.diff), "remedies": list(REMEDIES)}
        case errors.InUse():
            return {"remedies": list(error.remedies)}
        case _:
            return {}


def _of_quota(error: errors.LimitExceeded) -> dict[str, Any]:
    """Further fields of a project quota's error."""
    if not isinstance(error, errors.QuotaExceeded):
        return {}
    operator_error: dict[str, Any] = {"quota": str(error.what), "left": error.left}
    if error.passes_at is not None:
        operator_error["passes_at"] = format_instant(error.passes_at)
        operator_error["passes"] = "asked" if error.when_asked else "start"
    if error.asked_from is not None:
        operator_error["asked_from"] = format_instant(error.asked_from)
    return operator_error


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


def refuse(error: MoorageError, request_id: str, call: Call | None) -> Errors:
    """The error document."""
    operator = call is not None and call.caller.operator
    found = (operator_error if operator else tenant_error)(error, request_id)
    if call is not None and isinstance(error, Infeasible):
        assert isinstance(error.explanation, Explanation)
        if operator:
            detail = refused_because(error.explanation, exact=True)
            found = msgspec.structs.replace(found, detail=detail)
        found = _explained(call, found, error.explanation, stored=error.stored)
    if call is not None and isinstance(error, Undecided):
        assert isinstance(error.explanation, Explanation)
        found = _explained(call, found, error.explanation, stored=error.stored)
    if call is not None and isinstance(error, QuotaExceeded) and error.explanation is not None:
        assert isinstance(error.explanation, Explanation)
        found = msgspec.structs.replace(found, remedies=list(error.remedies))
        found = _explained(call, found, error.explanation, stored=error.stored)
    if call is not None and isinstance(error, SeriesInfeasible):
        found = _of_series(call, found, error)
    if call is not None and isinstance(error, BreaksPolicies):
        violations = violations_view(call, error.violations)
        found = msgspec.structs.replace(found, violations=violations)
    return Errors([found])


def _explained(call: Call, found: Error, why: Explanation, *, stored: bool) -> Error:
    """The error with its explanation, and with a link to that if it is kept."""
    view = explanation_view(call, why)
    if not stored:
        return msgspec.structs.replace(found, explanation=msgspec.structs.replace(view, links=[]))
    link = call.link("explanation", "explanations", why.id)
    return msgspec.structs.replace(found, explanation=view, links=[link])


def _of_series(call: Call, found: Error, error: SeriesInfeasible) -> Error:
    """A series' error with the occurrences that do not fit, why the first does not, and changes."""
    refused = [one for one in error.refused if isinstance(one, OccurrenceRefusal)]
    first = next((one for one in refused if one.explanation is not None), None)
    explanation = None
    if first is not None and first.explanation is not None:
        explanation = explanation_view(call, first.explanation)
        if not first.stored:
            explanation = msgspec.structs.replace(explanation, links=[])
    return msgspec.structs.replace(
        found,
        explanation=explanation,
        occurrences=[_refused(one) for one in refused],
        instead=[_instead(one) for one in error.instead if isinstance(one, SeriesAlternative)],
    )


def _refused(one: OccurrenceRefusal) -> RefusedOccurrence:
    period = one.slot.period
    return RefusedOccurrence(
        index=one.slot.index,
        start=format_instant(period.start),
        end=format_instant(period.end),
        why=one.why,
        explanation_id=one.explanation.id if one.explanation and one.stored else None,
    )


def _instead(one: SeriesAlternative) -> InsteadOfSeries:
    return InsteadOfSeries(
        fits=one.fits,
        without=list(one.without) or None,
        start=None if one.start is None else wall(one.start),
    )
