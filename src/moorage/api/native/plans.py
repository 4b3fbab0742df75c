"""`/v1/plans`: ordered moves of servers, which operators make, apply, pause and cancel."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from moorage.api.native import reading
from moorage.api.native.call import Reply
from moorage.api.native.formats import view
from moorage.api.native.paging import listed
from moorage.domain.errors import InvalidDescription
from moorage.domain.plan_requests import PlanRequest
from moorage.domain.plans import MoveState, PlanKind, PlanLimits, PlanState
from moorage.domain.words import did_you_mean
from moorage.usecases.plans.lifecycle import (
    apply_plan,
    cancel_plan,
    create_plan,
    delete_plan,
    pause_plan,
)
from moorage.usecases.plans.queries import list_plans, show_plan
from moorage.wire import plans as wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import StrEnum

    from moorage.api.native.call import Call
    from moorage.domain.plans import Plan

    E = TypeVar("E", bound=StrEnum)


def create(call: Call) -> Reply:
    """POST: make a plan."""
    body: wire.PlanBody = call.body.plan
    made = call.perform(create_plan, _request(call, body), reading.identity(call, body, body.id))
    return call.made(
        wire.OnePlan(plan_view(call, made), call.dry_run),
        generation=made.generation,
        location=f"plans/{made.id}",
    )


def listing(call: Call) -> Reply:
    """GET: a page of plans, newest first."""
    read = partial(
        list_plans,
        call.env,
        call.caller,
        state=_word(call, "state", PlanState),
        kind=_word(call, "kind", PlanKind),
    )
    return listed(call, "plans", read, lambda one: view(wire.PlanSummary, one, **_counts(one)))


def show(call: Call) -> Reply:
    """GET: one plan."""
    return _one(call, call.perform(show_plan, call.path["id"]))


def apply(call: Call) -> Reply:
    """POST: let its moves begin."""
    return _changed(call, apply_plan)


def pause(call: Call) -> Reply:
    """POST: let no further move begin for now."""
    return _changed(call, pause_plan)


def cancel(call: Call) -> Reply:
    """POST: let no further move begin, for good."""
    return _changed(call, cancel_plan)


def delete(call: Call) -> Reply:
    """DELETE: delete one that was never applied or is over."""
    call.perform(delete_plan, call.path["id"], call.matched)
    return Reply()


def _changed(call: Call, use_case: Callable[..., Plan]) -> Reply:
    return _one(call, call.perform(use_case, call.path["id"], call.matched))


def _one(call: Call, plan: Plan) -> Reply:
    return Reply(wire.OnePlan(plan_view(call, plan)), generation=plan.generation)


def plan_view(call: Call, plan: Plan) -> wire.Plan:
    """A plan with its moves."""
    return view(
        wire.Plan,
        plan,
        plan.actor,
        links=[call.link("self", "plans", plan.id)],
        **_counts(plan),
    )


def _counts(plan: Plan) -> dict[str, Any]:
    states = [one.state for one in plan.moves]
    return {
        "move_count": len(states),
        "done": sum(one in {MoveState.DONE, MoveState.SKIPPED} for one in states),
        "failed": states.count(MoveState.FAILED),
        "unmoved_count": len(plan.unmoved),
    }


def _request(call: Call, body: wire.PlanBody) -> PlanRequest:
    defaults, said = call.env.limits.plans, body.limits
    try:
        return PlanRequest(
            kind=PlanKind(body.kind),
            hosts=tuple(dict.fromkeys(body.hosts)),
            domains=tuple(dict.fromkeys(body.domains)),
            ensemble=body.ensemble,
            description=None if body.description is None else reading.description(body.description),
            role=body.role,
            count=body.count,
            by=None if body.by is None else reading.instant(body.by, "by"),
            limits=PlanLimits(
                parallel=said.parallel or defaults.parallel,
                per_host=said.per_host or defaults.per_host,
                failures=said.failures or defaults.failures,
            ),
            cold=body.cold,
            gain=body.gain,
        )
    except InvalidDescription as error:
        raise InvalidDescription(error.message, path=f"plan.{error.path}") from error


def _word(call: Call, name: str, kind: type[E]) -> E | None:
    """A word of the query; None: it is not given.

    Raises:
        InvalidDescription: it is none of its kind.
    """
    text = call.query.get(name)
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        known = [one.value for one in kind]
        hint = did_you_mean(text, known)
        words = ", ".join(known)
        raise InvalidDescription(
            f"{name} is one of {words}, not {text!r}{hint}", path=name
        ) from None
