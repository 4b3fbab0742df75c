"""`/v1/explanations`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, structs

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.decisions import solve_view
from moorage.api.native.formats import view
from moorage.api.native.paging import listed
from moorage.domain import explain as domain
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import parse_instant
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.decide import judge_feasibility
from moorage.usecases.shared.access import (
    list_refusals,
    own_explanation,
    own_refusal,
    require_operator,
    sees,
)
from moorage.usecases.shared.instances import replayable_instance
from moorage.usecases.shared.lookup import if_stored
from moorage.wire import explanations as wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.wire.explanations import ExplanationBody


def show(call: Call) -> Reply:
    """GET: one explanation; with `instance` also the replayable problem, for operators."""
    return _shown(call, own_explanation(call.env.store, call.caller, call.path["id"]))


def listing(call: Call) -> Reply:
    """GET: a page of refusals, newest first."""
    since = call.query.get("since")
    read = partial(
        list_refusals,
        call.env,
        call.caller,
        ensemble=call.query.get("ensemble"),
        stage=_stage(call.query.get("stage")),
        since=None if since is None else parse_instant(since),
        project_id=call.query.get("project_id"),
        all_projects=call.flag("all_projects"),
    )
    return listed(call, "explanations", read, partial(_in_short, call))


def _stage(text: str | None) -> domain.Stage | None:
    if text is None:
        return None
    known = {one.value: one for one in domain.Stage}
    if text not in known:
        raise InvalidDescription(f"stage is one of {', '.join(known)}, not {text!r}", path="stage")
    return known[text]


def _in_short(call: Call, one: domain.Refusal) -> wire.Refusal:
    asked, why = one.asked, one.explanation
    return view(
        wire.Refusal,
        why,
        one,
        user_id=asked and asked.user_id,
        ensemble_id=(asked and asked.ensemble_id) or None,
        ensemble=(asked and asked.name) or None,
        why=why.in_words(exact=call.caller.operator),
        links=[call.link("self", "explanations", why.id)],
    )


def _stored_ensemble(call: Call, refusal: domain.Refusal) -> str | None:
    """The id of the ensemble that was refused a place, if it is there and the caller may see it."""
    if refusal.asked is None or not refusal.asked.ensemble_id:
        return None
    stored = if_stored(call.env.store.ensemble, refusal.asked.ensemble_id)
    return stored.id if stored is not None and sees(call.caller, stored.project_id) else None


def of_decision(call: Call) -> Reply:
    """GET: the explanation of the refused decision of an idempotency key."""
    return _shown(call, own_refusal(call.env.store, call.caller, call.path["id"]))


def _shown(call: Call, found: tuple[domain.Refusal, str]) -> Reply:
    refusal, instance = found
    explanation, asked = refusal.explanation, refusal.asked
    wanted = call.flag("instance")
    if wanted:
        require_operator(call.caller)
        instance = replayable_instance(call.env, explanation, instance)
    shown = explanation_view(call, explanation, instance if wanted else None)
    stored = _stored_ensemble(call, refusal)
    links = [] if stored is None else [call.link("ensemble", "ensembles", stored)]
    whole = structs.replace(
        shown,
        project_id=refusal.project_id,
        ensemble_id=(asked and asked.ensemble_id) or None,
        ensemble=(asked and asked.name) or None,
        links=[*shown.links, *links],
    )
    return Reply(wire.OneExplanation(whole))


def create(call: Call) -> Reply:
    """POST: judge an undeclared request; only the explanation is stored."""
    body: ExplanationBody = call.body.explanation
    ask = DecisionOptions(objective=reading.objective(call, body.objective), seed=body.seed)
    judged = call.perform(judge_feasibility, reading.undeclared(body), ask)
    return Reply(
        view(
            wire.Explained,
            judged,
            explanation=judged.explanation and explanation_view(call, judged.explanation),
            solve=judged.solve and solve_view(judged.solve, operator=False),
        )
    )


def refused_request(call: Call, path: str) -> domain.RefusedRequest:
    """The ensemble or lease that a request is about, by the path of its route or by its body."""
    said = None if call.body is None else getattr(call.body, call.body.__struct_fields__[0])
    named, of = (getattr(said, field, None) for field in ("name", "ensemble_id"))
    if path.startswith("/ensembles/{id}"):
        of = call.path["id"]
    if path.startswith("/leases/{id}"):
        lease = if_stored(call.env.store.lease, call.path["id"])
        if lease is not None and sees(call.caller, lease.project_id):
            of, named = lease.ensemble_id, named or lease.name
    if of and not named:
        stored = if_stored(call.env.store.ensemble, of)
        named = stored.name if stored and sees(call.caller, stored.project_id) else ""
    return domain.RefusedRequest(of or "", named or "", call.caller.user_id)


def explanation_view(
    call: Call, explanation: domain.Explanation, instance: str | None = None
) -> wire.Explanation:
    """An explanation, minimal conflicts first; numbers of the fleet are bucketed for tenants."""
    explanation = explanation.at(call.env.store.now())
    conflicts = sorted(explanation.conflicts, key=lambda one: not one.minimal)
    parts = [conflict_parts(call, one) for one in conflicts]
    minimal = [one.minimal for one in conflicts]
    if explanation.exact and not call.caller.operator:
        # Found for an operator, and as exact as the fleet is.
        explanation = replace(
            explanation, relaxations=(), earliest=None, largest=None, moves=None, note=""
        )
    window, most = explanation.earliest, explanation.largest
    return view(
        wire.Explanation,
        explanation,
        conflict=parts[0] if parts else [],
        minimal=minimal[0] if minimal else False,
        more_conflicts=[
            wire.Conflict(conflict, proved)
            for conflict, proved in zip(parts[1:], minimal[1:], strict=True)
        ],
        relaxations=[relaxation_view(one) for one in explanation.relaxations],
        pending=explanation.pending_until is not None,
        earliest_start=window and window.start,
        earliest_end=window and window.end,
        earliest_proved=window is not None and window.proved,
        earliest_beyond=window is not None and window.beyond,
        largest=most and wire.Largest(most.role, most.count, most.asked),
        other_zones=explanation.zones,
        counts=counts_view(call, explanation.considered, explanation.rejected),
        links=[call.link("self", "explanations", explanation.id)],
        instance=UNSET if instance is None else msgspec.Raw(instance.encode()),
    )


def counts_view(call: Call, considered: int, rejected: Mapping[str, int]) -> wire.Counts:
    """Hosts considered, and by which reasons they were rejected; rounded for tenants."""
    return wire.Counts(
        considered=_count(call, considered),
        rejected={name: _count(call, n) for name, n in sorted(rejected.items())},
    )


def conflict_parts(call: Call, conflict: domain.Conflict) -> list[wire.ConflictPart]:
    """Both sides of a conflict: what each element needs, and the facts it conflicts with."""
    needs = [
        structs.replace(_part(call, element), needs=need)
        for element, need in zip(conflict.elements, _needs(call, conflict), strict=True)
    ]
    # Those kept by an older version are pairs.
    facts = [_fact(call, domain.Fact(*one)) for one in conflict.facts]
    return [*needs, *facts]


def _needs(call: Call, conflict: domain.Conflict) -> tuple[str, ...]:
    return conflict.exact_needs if call.caller.operator and conflict.exact_needs else conflict.needs


def _part(call: Call, element: domain.Element) -> wire.ConflictPart:
    return msgspec.convert({element.kind: _named(call, element)}, wire.ConflictPart)


def _fact(call: Call, fact: domain.Fact) -> wire.ConflictPart:
    have = None if fact.have is None else _count(call, fact.have)
    text = fact.exact if call.caller.operator and fact.exact else fact.text
    return wire.ConflictPart(topology=text, have=have, needed=fact.needed)


def relaxation_view(relaxation: domain.Relaxation) -> wire.Relaxation:
    """A relaxation: `{"policy": "db-ha", "keep": [3, 2]}` with its cost and result."""
    change = relaxation.change
    written: dict[str, Any] = {
        change.subject: change.name,
        change.field: [change.before, change.after],
    }
    if change.alternative is not None:
        written["alternative"] = change.alternative
    return view(wire.Relaxation, relaxation, change=written)


def _named(call: Call, element: domain.Element) -> str:
    return element.exact if call.caller.operator and element.exact else element.name


def _count(call: Call, count: int) -> int | str:
    return count if call.caller.operator else call.env.limits.disclosure.count_text(count)
