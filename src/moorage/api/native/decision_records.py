"""`/v1/decisions/{id}/record`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from moorage.api.native.call import Call, Reply
from moorage.api.native.decisions import ensemble_of, solve_view
from moorage.api.native.ensembles import role_view
from moorage.api.native.explanations import counts_view
from moorage.api.native.formats import view
from moorage.api.native.policies import statement_view
from moorage.domain.disclosure import actor_seen_by
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.instances import asked_request, replayable_decision
from moorage.usecases.shared.role_access import own_decision
from moorage.wire import decision_records as wire

if TYPE_CHECKING:
    from moorage.domain.decisions import Decision
    from moorage.domain.requests import EnsembleRequest


def show(call: Call) -> Reply:
    """GET: a decision's record; with `instance` also the replayable problem, for operators."""
    store, operator = call.env.store, call.caller.operator
    decision = own_decision(store, call.caller, call.path["id"])
    record, actor = store.decision_record(decision.id)
    if not operator:
        actor = actor_seen_by(actor, decision.project_id)
    instance: Raw | None = None
    if call.flag("instance"):
        require_operator(call.caller)
        stored = "" if record is None else record.instance
        instance = Raw(replayable_decision(call.env, decision, stored).encode())
    asked = None if record is None else asked_request(record.instance)
    made = view(
        wire.DecisionRecord,
        *(() if record is None else (record,)),
        actor,
        decision,
        operator=operator,
        decision_id=decision.id,
        project_id=decision.project_id,
        computed_at=decision.created_at,
        user=actor.user_id,
        user_project_id=actor.project_id,
        interval=decision.period,
        taken_at=record and record.taken_at,
        inputs=record
        and view(
            wire.RecordInputs,
            record,
            decision,
            seed=decision.solve.seed,
            max_additional=record.additional,
        ),
        roles=asked and _roles(asked),
        policies=asked and _policies(call, decision, asked),
        counts=record and counts_view(call, record.considered, record.rejected),
        strategy=record and record.strategy,
        attempts=record and record.attempts,
        placed=record and record.placed,
        solve=solve_view(decision.solve, operator=operator),
        met=decision.policies,
        replayable=record is not None and bool(record.instance),
        places=record and record.places,
        scatter=record and record.scatter,
        displaced=record and record.displaced,
        instance=UNSET if instance is None else instance,
        links=[
            call.link("self", "decisions", decision.id, "record"),
            call.link("decision", "decisions", decision.id),
        ],
    )
    return Reply(wire.OneDecisionRecord(made))


def _roles(asked: EnsembleRequest) -> list[Any]:
    counts = Counter(one.role for one in asked.members)
    return [role_view(role, counts[role.name]) for role in asked.roles]


def _policies(call: Call, decision: Decision, asked: EnsembleRequest) -> list[dict[str, Any]]:
    ensemble = ensemble_of(call.env.store, decision)
    if ensemble is None:  # and with it the labels of places that its policies name
        return [{"name": one.name, "type": one.type} for one in asked.policies]
    return [statement_view(call, ensemble, one) for one in asked.policies]
