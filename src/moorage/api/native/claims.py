"""`/v1/decisions/{id}/claims` and `/v1/claims`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from moorage.api.native import envelopes, reading, views
from moorage.api.native.call import Call, Reply
from moorage.domain.errors import InvalidDescription
from moorage.usecases.access import own_claim
from moorage.usecases.claim import Second, comparison_of
from moorage.usecases.claim import claim as claim_place
from moorage.usecases.claim_outcome import activate, fail, fail_and_redecide
from moorage.usecases.listing import list_claims
from moorage.usecases.redecide import claim_or_redecide

if TYPE_CHECKING:
    from moorage.api.native import answers
    from moorage.api.native.requests import ClaimBody, ClaimPatchBody
    from moorage.domain.decisions import Claim
    from moorage.usecases.proposal import Settled


def create(call: Call) -> Reply:
    """POST: take a member's place for the server described."""
    body: ClaimBody = call.body.claim
    second = Second(
        member=reading.member_name(body.member),
        server=MappingProxyType(body.server),
        lifetime=reading.duration(body.lifetime, "lifetime"),
    )
    verb = claim_or_redecide if body.on_mismatch == "redecide_member" else claim_place
    naming = reading.naming(call, body, body.id)
    made = verb(call.parts, call.caller, call.path["id"], second, naming, dry_run=call.dry_run)
    view = views.claim_view(call, made.claim, made.comparison, dry_run=made.dry_run)
    return Reply(
        envelopes.OneClaim(view, _settled(call, made.settled)),
        status=200 if made.dry_run else None,
        location=None if made.dry_run else f"{call.base}/claims/{made.claim.id}",
    )


def listing(call: Call) -> Reply:
    """GET: the claims of a decision."""
    found = list_claims(call.parts, call.caller, call.path["id"])
    return Reply(envelopes.Claims([_view(call, one) for one in found]))


def show(call: Call) -> Reply:
    """GET: one claim."""
    claim = own_claim(call.parts.store, call.caller, call.path["id"])
    return Reply(envelopes.OneClaim(_view(call, claim)))


def change(call: Call) -> Reply:
    """PATCH: the server is active, or its build failed."""
    body: ClaimPatchBody = call.body.claim
    name = call.path["id"]
    if body.status == "active":
        if body.server_id is None:
            raise InvalidDescription("an active claim needs its server_id", path="claim.server_id")
        ended = activate(call.parts, call.caller, name, body.server_id, dry_run=call.dry_run)
    else:
        verb = fail_and_redecide if body.on_failure == "redecide" else fail
        ended = verb(call.parts, call.caller, name, dry_run=call.dry_run)
    return Reply(envelopes.OneClaim(_view(call, ended.claim), _settled(call, ended.settled)))


def _view(call: Call, claim: Claim) -> answers.Claim:
    return views.claim_view(call, claim, comparison_of(claim))


def _settled(call: Call, settled: Settled | None) -> answers.Decision | UnsetType:
    if settled is None:
        return UNSET
    claims = call.parts.store.claims(decision_id=settled.decision.id)
    return views.decision_view(
        call,
        settled.decision,
        settled.ensemble,
        settled.snapshot,
        claims,
        dry_run=settled.dry_run,
    )
