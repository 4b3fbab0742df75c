"""`/v1/violations` and `/v1/ensembles/{id}/compliance`."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from moorage.api.native.call import Reply
from moorage.api.native.formats import view
from moorage.api.native.paging import listed
from moorage.domain.ensembles import ROLE_NAME
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import parse_instant
from moorage.usecases.compliance.queries import ViolationQuery, compliance_of, list_violations
from moorage.wire import compliance as wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.api.native.call import Call
    from moorage.domain.ensembles import PolicyStatement
    from moorage.domain.period import Instant
    from moorage.domain.violations import Cause, Violation
    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.paging import Page
    from moorage.wire.fields import Link

STATES: Final[Mapping[str, bool | None]] = MappingProxyType(
    {"open": True, "ended": False, "all": None}
)
"""Which violations are listed, by `state` -> whether they last."""


def listing(call: Call) -> Reply:
    """GET: a page of violations, newest first."""
    since, state = call.query.get("since"), call.query.get("state", "open")
    if state not in STATES:
        known = ", ".join(STATES)
        raise InvalidDescription(f"state is one of {known}, not {state!r}", path="state")
    query = ViolationQuery(
        ensemble_id=call.query.get("ensemble"),
        host=call.query.get("host"),
        types=_types(call.query.get("type")),
        required=call.flag("required") if "required" in call.query else None,
        open=STATES[state],
        since=None if since is None else parse_instant(since),
        project_id=call.query.get("project_id"),
        all_projects=call.flag("all_projects"),
    )

    def read(page: Page) -> Sequence[Violation]:
        return call.perform(list_violations, page, query)

    return listed(call, "violations", read, partial(_record, call))


def show(call: Call) -> Reply:
    """GET: how an ensemble complies now; with `history` also what has ended."""
    history = call.page() if call.flag("history") else None
    found = call.perform(compliance_of, call.path["id"], history)
    ensemble = found.ensemble
    ended: list[wire.ViolationRecord] | UnsetType = UNSET
    links: list[Link] | UnsetType = UNSET
    if history is not None:
        ended = [_record(call, one) for one in found.history]
        ids = [one.id for one in found.history]
        links = call.next_links(f"ensembles/{ensemble.id}/compliance", ids, history)
    shown = view(
        wire.Compliance,
        found,
        ensemble_id=ensemble.id,
        ensemble=ensemble.name,
        policies=[_policy(call, *one) for one in found.policies],
        out_of_service=[_member(call, one) for one in found.out_of_service],
        history=ended,
        history_links=links,
    )
    return Reply(wire.OneCompliance(shown), generation=ensemble.generation)


def impact_view(found: Impact) -> wire.Impact:
    """What a change newly breaks."""
    broken = [view(wire.NewlyBroken, one) for one in found.violations]
    return view(wire.Impact, found, violations=broken)


def deleted(impact: Impact) -> Reply:
    """The reply to a deletion: nothing, or which violations begin by it."""
    return Reply(wire.Broken(impact_view(impact)), status=200) if impact.found else Reply()


def _types(text: str | None) -> frozenset[str]:
    """The types in a query, with commas between.

    A type that is not known may be that of a plug-in which is gone, whose violations are kept.

    Raises:
        InvalidDescription: one is no name of a policy type.
    """
    given = frozenset(text.split(",")) if text is not None else frozenset()
    for one in sorted(given):
        if ROLE_NAME.fullmatch(one) is None:
            raise InvalidDescription(f"not a type of violations: {one!r}", path="type")
    return given


def _record(call: Call, one: Violation) -> wire.ViolationRecord:
    return view(
        wire.ViolationRecord,
        one,
        because=_cause(call, one.cause),
        ended_by=one.ended_by and _cause(call, one.ended_by),
    )


def _cause(call: Call, one: Cause) -> wire.Cause:
    operator = call.caller.operator
    return view(wire.Cause, one, one.actor, operator=operator, user=one.actor.user_id)


def _policy(call: Call, policy: PolicyStatement, found: Violation | None) -> wire.PolicyCompliance:
    if found is None:
        return wire.PolicyCompliance(policy.name, policy.type, policy.required, ok=True)
    since, because = _beginning(call, found)
    return view(
        wire.PolicyCompliance,
        found,
        name=policy.name,
        ok=False,
        since=since,
        because=because,
    )


def _member(call: Call, one: Violation) -> wire.MemberOutOfService:
    since, because = _beginning(call, one)
    (member,) = one.members
    return view(
        wire.MemberOutOfService,
        one,
        member=str(member),
        condition=one.type,
        server=one.servers.get(str(member)),
        since=since,
        because=because,
    )


def _beginning(call: Call, found: Violation) -> tuple[Instant | None, wire.Cause | None]:
    """When and why it began; None of one that is not recorded yet."""
    return (found.since, _cause(call, found.cause)) if found.id else (None, None)
