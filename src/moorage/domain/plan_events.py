"""What the events of a plan say: of the plan as a whole, and of each of its moves."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.events import DerivedEvent
from moorage.domain.plan_progress import REPLANNED
from moorage.domain.plans import MoveState, PlanState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.plans import Move, Plan

_OF_STATE: Final = MappingProxyType(
    {
        PlanState.RUNNING: "plan.started",
        PlanState.PAUSED: "plan.paused",
        PlanState.DONE: "plan.done",
        PlanState.CANCELED: "plan.canceled",
    }
)
_OF_MOVE: Final = MappingProxyType(
    {
        MoveState.MOVING: "plan.move_begun",
        MoveState.DONE: "plan.move_done",
        MoveState.FAILED: "plan.move_failed",
        MoveState.SKIPPED: "plan.move_skipped",
    }
)


def plan_events(plan: Plan, before: Plan | None) -> Iterator[DerivedEvent]:
    """The events of a plan that is written over another state of it; None: it is new."""
    if before is None:
        yield _event(plan, "plan.created", _of_plan(plan))
    moves = {} if before is None else {one.id: one.state for one in before.moves}
    for move in plan.moves:
        word = _OF_MOVE.get(move.state)
        if word is not None and move.state is not moves.get(move.id, MoveState.WAITING):
            yield _event(plan, word, _of_move(move))
            if move.state is MoveState.DONE and move.member is not None:
                yield _moved(plan, move)
    if before is not None and plan.attributes.get(REPLANNED) != before.attributes.get(REPLANNED):
        yield _event(plan, "plan.replanned", _of_plan(plan))
    word = _OF_STATE.get(plan.state)
    if word is not None and plan.state is not (PlanState.READY if before is None else before.state):
        yield _event(plan, word, _of_plan(plan))


def _event(plan: Plan, type_: str, body: dict[str, object]) -> DerivedEvent:
    project = plan.actor.project_id or ""
    return DerivedEvent(type_, project, plan.id, plan.generation, MappingProxyType(body))


def _moved(plan: Plan, move: Move) -> DerivedEvent:
    """What the project of a member reads: that its server was moved and why, and no host."""
    body = {
        "name": move.ensemble,
        "member": str(move.member),
        "server": move.server,
        "how": move.kind.value,
        "because": plan.kind.value,
    }
    return DerivedEvent(
        "member.moved", move.project_id, str(move.ensemble_id), 0, MappingProxyType(body)
    )


def _of_plan(plan: Plan) -> dict[str, object]:
    states = [one.state for one in plan.moves]
    return {
        "kind": plan.kind.value,
        "of": plan.subject,
        "status": plan.state.value,
        "moves": len(states),
        "done": sum(one in {MoveState.DONE, MoveState.SKIPPED} for one in states),
        "failed": states.count(MoveState.FAILED),
        "note": plan.note,
    }


def _of_move(move: Move) -> dict[str, object]:
    return {
        "server": move.server,
        "project": move.project_id,
        "kind": move.kind.value,
        "source": move.source_name,
        "target": move.target_name,
        "ensemble": move.ensemble_id,
        "member": None if move.member is None else str(move.member),
        "error": move.error,
    }
