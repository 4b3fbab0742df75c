"""`/v1/hot`: Heat templates, placed jointly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.decisions import decision_view
from moorage.api.native.ensembles import ensemble_view
from moorage.api.native.formats import view
from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import Source
from moorage.heat.template_writer import Binding
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.heat_templates import (
    PlacedTemplate,
    TemplateRequest,
    match_template,
    place_template,
)
from moorage.wire import hot as wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.heat.expanded_template import UnplacedResource
    from moorage.wire.hot import HotBody


def place(call: Call) -> Reply:
    """POST: place a template's servers, or use the places of an ensemble decided before."""
    body: HotBody = call.body.hot
    source = Source(
        template=body.template,
        environment=body.environment,
        environment_files=tuple(body.environment_files),
        parameters=body.parameters,
        files=body.files,
        name=body.name,
    )
    request = TemplateRequest(source, Binding(body.bind) if body.emit else None)
    if body.ensemble_id is None:
        ask = (
            DecisionOptions()
            if body.decide is None
            else reading.decision_options(call, body.decide)
        )
        identity = reading.identity(call, body, body.id)
        placed = call.perform(place_template, request, ask, identity)
        return _reply(call, placed, status=200 if call.dry_run else None)
    if body.decide is not None or body.id is not None:
        raise InvalidDescription(
            "ensemble_id uses a decision that is there; decide and id make a new one", path="hot"
        )
    matched = call.perform(match_template, request, body.ensemble_id)
    return _reply(call, matched, status=200)


def not_placed(unplaced: Iterable[UnplacedResource]) -> list[wire.NotPlaced]:
    """The resources that are not placed."""
    return [view(wire.NotPlaced, one, path=str(one.path), why=one.reason) for one in unplaced]


def _reply(call: Call, placed: PlacedTemplate, *, status: int | None) -> Reply:
    store = call.env.store
    claims = () if call.dry_run else store.claims(decision_id=placed.decision.id)
    return Reply(
        view(
            wire.Hot,
            placed,
            ensemble=ensemble_view(call, placed.ensemble),
            decision=decision_view(
                call,
                placed.decision,
                placed.ensemble,
                store.snapshot(),
                claims,
                dry_run=call.dry_run,
            ),
            keys={str(member): key for member, key in placed.compiled.keys.items()},
            scaling={
                role: wire.ScalingGroup(str(one.path), one.least, one.most, one.desired)
                for role, one in placed.compiled.scaling.items()
            },
            not_placed=not_placed(placed.compiled.unplaced),
            dry_run=call.dry_run,
        ),
        status=status,
    )
