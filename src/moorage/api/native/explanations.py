"""`/v1/explanations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.native import answers, envelopes, reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.explaining import explanation_view
from moorage.domain.period import format_instant
from moorage.domain.requests import Objective
from moorage.usecases.access import for_operators, own_explanation, own_refusal
from moorage.usecases.ask_why import ask_why
from moorage.usecases.joint import Ask

if TYPE_CHECKING:
    from moorage.api.native.requests import ExplanationBody
    from moorage.domain import explain as domain


def show(call: Call) -> Reply:
    """GET: one explanation; with `instance` also the replayable problem, for operators."""
    return _shown(call, own_explanation(call.parts.store, call.caller, call.path["id"]))


def of_decision(call: Call) -> Reply:
    """GET: why a decision asked for under an id was refused."""
    return _shown(call, own_refusal(call.parts.store, call.caller, call.path["id"]))


def _shown(call: Call, found: tuple[domain.Explanation, str]) -> Reply:
    explanation, instance = found
    wanted = call.flag("instance")
    if wanted:
        for_operators(call.caller)
    view = explanation_view(call, explanation, instance if wanted else None)
    return Reply(envelopes.OneExplanation(view))


def create(call: Call) -> Reply:
    """POST: would it fit, and if not, why not; nothing but the explanation is stored."""
    body: ExplanationBody = call.body.explanation
    ask = Ask(objective=Objective(body.objective), seed=body.seed)
    judged = ask_why(call.parts, call.caller, reading.undeclared(body), ask)
    solve = judged.solve
    return Reply(
        envelopes.Explained(
            verdict=judged.verdict,
            computed_at=format_instant(judged.computed_at),
            revision=judged.revision,
            explanation=None
            if judged.explanation is None
            else explanation_view(call, judged.explanation),
            solve=None
            if solve is None
            else answers.Solve(
                solver=solve.solver,
                optimal=solve.proven,
                value=solve.value,
                bound=solve.bound,
                wall_ms=round(solve.wall_ms, 3),
                seed=solve.seed,
            ),
        )
    )
