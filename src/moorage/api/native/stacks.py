"""`/v1/stacks`: Heat stacks, each an ensemble of the same id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import deleted, impact_view
from moorage.api.native.ensembles import decision_or_none, ensemble_view
from moorage.api.native.hot import not_placed
from moorage.heat.compile import Source
from moorage.usecases.ensembles.stacks import StackRequest, delete_stack, put_stack, show_stack
from moorage.wire import stacks as wire

if TYPE_CHECKING:
    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.ensembles.stacks import StackResult
    from moorage.wire.stacks import StackBody


def put(call: Call) -> Reply:
    """PUT: make the stack's ensemble equal to its template, decided and held."""
    body: StackBody = call.body.stack
    stack = StackRequest(
        reading.uuid(call.path["id"]),
        Source(
            template=body.template,
            environment=body.environment,
            environment_files=tuple(body.environment_files),
            parameters=body.parameters,
            files=body.files,
            name=body.name,
            removed={path: frozenset(names) for path, names in body.removed.items()},
            members={server: path for path, server in body.servers.items()},
        ),
        body.servers,
        None if body.decide is None else reading.decision_options(call, body.decide),
    )
    found, impact = call.perform_judged([stack.id], put_stack, stack)
    return _reply(call, stack.id, found, impact)


def show(call: Call) -> Reply:
    """GET: one stack with its current decision."""
    return _reply(call, call.path["id"], call.perform(show_stack, call.path["id"]))


def delete(call: Call) -> Reply:
    """DELETE: forget the stack; its holds end, its servers stay."""
    id_ = call.path["id"]
    _, impact = call.perform_judged([id_], delete_stack, id_)
    return deleted(impact)


def _reply(call: Call, stack_id: str, found: StackResult, impact: Impact | None = None) -> Reply:
    ensemble = found.ensemble
    decision = (
        None
        if ensemble is None
        else decision_or_none(call, ensemble, found.decision, dry_run=call.dry_run)
    )
    view = wire.Stack(
        id=stack_id,
        ensemble=None if ensemble is None else ensemble_view(call, ensemble),
        decision=decision,
        keys={str(member): path for member, path in found.keys.items()},
        not_placed=not_placed(found.unplaced),
        notes=list(found.notes),
        max_additional={} if decision is None else decision.max_additional,
        changed=found.changed,
        dry_run=call.dry_run,
    )
    return Reply(
        wire.OneStack(view, UNSET if impact is None else impact_view(impact)),
        generation=None if ensemble is None or call.dry_run else ensemble.generation,
    )
