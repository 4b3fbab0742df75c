"""`/v1/ensembles`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from moorage.api.native import envelopes, reading, views
from moorage.api.native.call import Call, Reply
from moorage.domain.describe import read_metadata
from moorage.usecases.access import own_ensemble
from moorage.usecases.change_ensemble import Change, change_ensemble
from moorage.usecases.compliance import broken_policies
from moorage.usecases.create_ensemble import create_ensemble
from moorage.usecases.delete_ensemble import delete_ensemble
from moorage.usecases.listing import list_ensembles
from moorage.usecases.survivability import survivability
from moorage.usecases.writing import current_decision

if TYPE_CHECKING:
    from moorage.api.native.answers import Decision
    from moorage.api.native.requests import EnsembleBody, EnsembleChangeBody
    from moorage.domain import decisions
    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.create_ensemble import Made


def create(call: Call) -> Reply:
    """POST: describe, and with `decide` place and hold at once."""
    body: EnsembleBody = call.body.ensemble
    created = create_ensemble(
        call.parts,
        call.caller,
        reading.description(body),
        None if body.decide is None else reading.ask(call, body.decide),
        reading.naming(call, body, body.id),
        dry_run=call.dry_run,
    )
    return made(call, created, location=True)


def listing(call: Call) -> Reply:
    """GET: a page of ensembles."""
    page = call.page()
    found = list_ensembles(
        call.parts,
        call.caller,
        page,
        name=call.query.get("name"),
        project_id=call.query.get("project_id"),
        all_projects=call.flag("all_projects"),
    )
    links = call.next_links("ensembles", [one.id for one in found], page)
    return Reply(envelopes.Ensembles([views.ensemble_view(call, one) for one in found], links))


def show(call: Call) -> Reply:
    """GET: one ensemble with its current decision."""
    ensemble = own_ensemble(call.parts.store, call.caller, call.path["id"])
    decision = current_decision(call.parts.store, ensemble)
    compliance = (
        views.violations_view(call, broken_policies(call.parts.store.snapshot(), ensemble))
        if call.flag("compliance")
        else UNSET
    )
    view = views.ensemble_view(call, ensemble, _decision(call, ensemble, decision), compliance)
    return Reply(envelopes.OneEnsemble(view), generation=ensemble.generation)


def change(call: Call) -> Reply:
    """PATCH: counts, policies, metadata; placed in the same step where places are held."""
    body: EnsembleChangeBody = call.body.ensemble
    source = reading.builtins(body)
    changed = change_ensemble(
        call.parts,
        call.caller,
        call.path["id"],
        Change(
            name=body.name,
            metadata=None if body.metadata is None else read_metadata(body.metadata),
            members=source["members"],
            policies=source["policies"],
            remove_policies=frozenset(body.remove_policies),
            generation=call.expected(body.generation),
        ),
        None if body.decide is None else reading.ask(call, body.decide),
        dry_run=call.dry_run,
    )
    return made(call, changed, location=False)


def delete(call: Call) -> Reply:
    """DELETE: forget it; holds end, servers stay."""
    delete_ensemble(
        call.parts, call.caller, call.path["id"], call.expected(None), dry_run=call.dry_run
    )
    return Reply()


def survives(call: Call) -> Reply:
    """GET: who keeps what when any one domain is lost."""
    found = survivability(call.parts, call.caller, call.path["id"])
    return Reply(
        envelopes.Survivability(
            [
                envelopes.Survival(
                    level=str(loss.level),
                    lose=1,
                    roles=[
                        envelopes.Loss(one.role, one.total, one.keeps, one.needed, one.survives)
                        for one in loss.roles
                    ],
                )
                for loss in found
            ]
        )
    )


def made(call: Call, made: Made, *, location: bool) -> Reply:
    """The reply to who made or changed an ensemble."""
    decision = _decision(call, made.ensemble, made.decision, dry_run=made.dry_run)
    snapshot = call.parts.store.snapshot()
    return Reply(
        envelopes.OneEnsemble(
            ensemble=views.ensemble_view(call, made.ensemble),
            decision=decision,
            dry_run=made.dry_run,
            computed_at=views.instant(snapshot.taken_at) or UNSET,
            revision=snapshot.revision,
        ),
        status=200 if made.dry_run else None,
        generation=None if made.dry_run else made.ensemble.generation,
        location=f"{call.base}/ensembles/{made.ensemble.id}"
        if location and not made.dry_run
        else None,
    )


def _decision(
    call: Call, ensemble: Ensemble, decision: decisions.Decision | None, *, dry_run: bool = False
) -> Decision | None:
    if decision is None:
        return None
    store = call.parts.store
    claims = () if dry_run else store.claims(decision_id=decision.id)
    return views.decision_view(call, decision, ensemble, store.snapshot(), claims, dry_run=dry_run)
