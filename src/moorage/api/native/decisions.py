"""`/v1/decisions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native import envelopes, reading, views
from moorage.api.native.call import Call, Reply
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.domain.period import parse_instant
from moorage.usecases.access import own_decision
from moorage.usecases.confirm import confirm as confirm_decision
from moorage.usecases.decide import decide
from moorage.usecases.hold import release as release_decision
from moorage.usecases.hold import renew as renew_decision
from moorage.usecases.listing import list_decisions

if TYPE_CHECKING:
    from moorage.api.native import answers
    from moorage.api.native.requests import DecisionBody, DecisionPatchBody
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Store


def create(call: Call) -> Reply:
    """POST: place all members jointly, and hold the places."""
    body: DecisionBody = call.body.decision
    made = decide(
        call.parts,
        call.caller,
        body.ensemble_id,
        reading.ask(call, body),
        reading.naming(call, body, body.id),
        dry_run=call.dry_run,
    )
    claims = () if made.dry_run else call.parts.store.claims(decision_id=made.decision.id)
    view = views.decision_view(
        call, made.decision, made.ensemble, made.snapshot, claims, dry_run=made.dry_run
    )
    return Reply(
        envelopes.OneDecision(view),
        status=200 if made.dry_run else None,
        generation=None if made.dry_run else made.decision.generation,
        location=None if made.dry_run else f"{call.base}/decisions/{made.decision.id}",
    )


def listing(call: Call) -> Reply:
    """GET: a page of decisions, newest first."""
    page = call.page()
    found = list_decisions(
        call.parts,
        call.caller,
        page,
        ensemble_id=call.query.get("ensemble_id"),
        all_projects=call.flag("all_projects"),
    )
    links = call.next_links("decisions", [one.id for one in found], page)
    return Reply(envelopes.Decisions([view_of(call, one) for one in found], links))


def show(call: Call) -> Reply:
    """GET: one decision."""
    decision = own_decision(call.parts.store, call.caller, call.path["id"])
    return Reply(envelopes.OneDecision(view_of(call, decision)), generation=decision.generation)


def renew(call: Call) -> Reply:
    """PATCH: hold longer."""
    body: DecisionPatchBody = call.body.decision
    renewed = renew_decision(
        call.parts,
        call.caller,
        call.path["id"],
        _until(call, body),
        call.expected(body.generation),
        dry_run=call.dry_run,
    )
    view = view_of(call, renewed, dry_run=call.dry_run)
    return Reply(envelopes.OneDecision(view), generation=renewed.generation)


def release(call: Call) -> Reply:
    """DELETE: give unclaimed places back."""
    release_decision(
        call.parts, call.caller, call.path["id"], call.expected(None), dry_run=call.dry_run
    )
    return Reply()


def confirm(call: Call) -> Reply:
    """POST: keep what is claimed, free the rest."""
    done = confirm_decision(
        call.parts, call.caller, call.path["id"], call.matched, dry_run=call.dry_run
    )
    return Reply(
        envelopes.Confirmed(
            decision=view_of(call, done.decision, dry_run=done.dry_run),
            claimed=done.claimed,
            building=done.building,
            released=len(done.released),
            released_members=[str(name) for name in done.released],
            members=len(done.ensemble.members),
        ),
        generation=done.decision.generation,
    )


def view_of(call: Call, decision: Decision, *, dry_run: bool = False) -> answers.Decision:
    """A stored decision."""
    store = call.parts.store
    return views.decision_view(
        call,
        decision,
        ensemble_of(store, decision),
        store.snapshot(),
        store.claims(decision_id=decision.id),
        dry_run=dry_run,
    )


def ensemble_of(store: Store, decision: Decision) -> Ensemble | None:
    """The decision's ensemble, or None when it is deleted: its labels are gone with it."""
    try:
        return store.ensemble(decision.ensemble_id)
    except NotFound:
        return None


def _until(call: Call, body: DecisionPatchBody) -> Instant:
    if (body.expires_at is None) == (body.hold is None):
        raise InvalidDescription("give expires_at or hold, and not both", path="decision")
    if body.expires_at is not None:
        return parse_instant(body.expires_at)
    hold = reading.duration(body.hold, "hold")
    assert hold is not None
    return call.parts.store.now() + hold
