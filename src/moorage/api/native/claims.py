"""`/v1/decisions/{id}/claims` and `/v1/claims`."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.decisions import decision_view
from moorage.api.native.formats import plain, view
from moorage.api.native.paging import listed
from moorage.domain.ensembles import OF_NOVA
from moorage.domain.errors import InvalidDescription
from moorage.domain.nova_servers import server_metadata
from moorage.usecases.claims.claim import SecondDescription, comparison_of
from moorage.usecases.claims.claim import claim as claim_place
from moorage.usecases.claims.outcome import activate, end, fail, fail_and_redecide
from moorage.usecases.claims.redecide import claim_or_redecide
from moorage.usecases.shared.access import own_claim
from moorage.usecases.shared.role_access import list_claims
from moorage.wire import claims as wire
from moorage.wire import decisions as decisions_wire

if TYPE_CHECKING:
    from moorage.domain.decisions import Claim
    from moorage.usecases.claims.comparison import Comparison
    from moorage.usecases.decide.loop import DecisionResult
    from moorage.wire.claims import ClaimBody, ClaimPatchBody


def create(call: Call) -> Reply:
    """POST: take a member's place for the server described."""
    body: ClaimBody = call.body.claim
    second = SecondDescription(
        member=reading.member_name(body.member),
        server=MappingProxyType(body.server),
        lifetime=reading.duration(body.lifetime, "lifetime"),
    )
    decision, identity = call.path["id"], reading.identity(call, body, body.id)
    if body.on_mismatch == "redecide_member":
        made = call.perform(claim_or_redecide, decision, second, identity)
    else:
        made = call.perform(claim_place, decision, second, identity)
    view = claim_view(call, made.claim, made.comparison, dry_run=call.dry_run)
    return call.made(
        wire.OneClaim(view, _settled(call, made.settled)),
        location=f"claims/{made.claim.id}",
    )


def listing(call: Call) -> Reply:
    """GET: a page of the claims of a decision."""
    read = partial(list_claims, call.env, call.caller, call.path["id"])
    path = f"decisions/{call.path['id']}/claims"
    return listed(call, "claims", read, partial(_view, call), path=path)


def show(call: Call) -> Reply:
    """GET: one claim."""
    claim = own_claim(call.env.store, call.caller, call.path["id"])
    return Reply(wire.OneClaim(_view(call, claim)))


def change(call: Call) -> Reply:
    """PATCH: the server is active, or its build failed."""
    body: ClaimPatchBody = call.body.claim
    name = call.path["id"]
    if (body.server_id is not None) != (body.status == "active"):
        raise InvalidDescription(
            "an active claim has its server_id, and no other has one", path="claim.server_id"
        )
    if body.status != "failed" and (body.reason is not None or body.on_failure == "redecide"):
        raise InvalidDescription(
            "only a failed claim has a reason, or its member another place", path="claim.status"
        )
    if body.server_id is not None:
        ended = call.perform(activate, name, body.server_id)
    elif body.status == "ended":
        ended = call.perform(end, name)
    elif body.on_failure == "redecide":
        ended = call.perform(fail_and_redecide, name, body.reason or "")
    else:
        ended = call.perform(fail, name, body.reason or "")
    return Reply(wire.OneClaim(_view(call, ended.claim), _settled(call, ended.settled)))


def _view(call: Call, claim: Claim) -> wire.Claim:
    return claim_view(call, claim, comparison_of(claim))


def _settled(call: Call, settled: DecisionResult | None) -> decisions_wire.Decision | UnsetType:
    if settled is None:
        return UNSET
    claims = call.env.store.claims(decision_id=settled.decision.id)
    return decision_view(
        call, settled.decision, settled.ensemble, settled.snapshot, claims, dry_run=call.dry_run
    )


def claim_view(
    call: Call, claim: Claim, comparison: Comparison, *, dry_run: bool = False
) -> wire.Claim:
    """A claim, with the server request's scheduler hints."""
    member, by_nova = str(claim.member), claim.kind in OF_NOVA
    presented = wire.PresentAs({"X-Openstack-Request-Id": f"req-{claim.id}"})
    patch = wire.ServerPatch(server_metadata(claim.ensemble_id, member))
    return view(
        wire.Claim,
        claim,
        status=claim.state_at(call.env.store.now()),
        expires_at=claim.lapses_at,
        comparison=wire.Comparison(
            comparison.verdict, [wire.Difference(**plain(one)) for one in comparison.diff]
        ),
        present_as=presented if by_nova else None,
        server_patch=patch if by_nova else None,
        reason=claim.reason or None,
        idempotency_key=claim.description.get("key"),
        links=[call.link("self", "claims", claim.id)],
        dry_run=dry_run,
    )
