"""How a plan goes on: what each report and each look at the fleet makes of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from moorage.domain.period import Instant
from moorage.domain.plans import Move, MoveState, Plan, PlanState
from moorage.domain.words import counted


class MoveProgress(StrEnum):
    """What whoever moves servers finds of a move."""

    IDLE = "idle"
    """The server is where it was, and nothing moves it."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    GONE = "gone"
    """The server is deleted."""


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What was found of a move, and a sentence about it for operators."""

    progress: MoveProgress
    text: str = ""


def begun(plan: Plan, number: int, at: Instant) -> Plan:
    """The plan with a move that is about to be asked for."""
    move = plan.moves[number]
    moving = replace(
        move, state=MoveState.MOVING, began_at=at, ended_at=None, error="", asked=False
    )
    return plan.with_move(number, moving, at)


def accepted(plan: Plan, number: int, at: Instant) -> Plan:
    """The plan with a move whose request was accepted."""
    move = plan.moves[number]
    asked = replace(move, asked=True, attempts=move.attempts + 1)
    return plan.with_move(number, asked, at)


def returned(plan: Plan, number: int, at: Instant) -> Plan:
    """The plan with a move that waits again: it was never asked for."""
    move = replace(plan.moves[number], state=MoveState.WAITING, began_at=None)
    return plan.with_move(number, move, at)


def ended(plan: Plan, number: int, state: MoveState, at: Instant, error: str = "") -> Plan:
    """The plan with a move that is over, and why if it is not done."""
    move = replace(plan.moves[number], state=state, ended_at=at, error=error)
    return plan.with_move(number, move, at)


def reported(plan: Plan, number: int, report: MoveReport, at: Instant) -> Plan:
    """The plan after a report of a move that was asked for; the same if nothing follows from it.

    A server that is where it was, though its move had been accepted: Nova has given it up.
    """
    match report.progress:
        case MoveProgress.DONE:
            return ended(plan, number, MoveState.DONE, at)
        case MoveProgress.FAILED:
            return ended(plan, number, MoveState.FAILED, at, report.text or "the move failed")
        case MoveProgress.GONE:
            return ended(plan, number, MoveState.SKIPPED, at, report.text or "it is deleted")
        case MoveProgress.IDLE if plan.moves[number].asked:
            text = report.text or "Nova has given up the move"
            return ended(plan, number, MoveState.FAILED, at, text)
        case _:
            return plan


def settled(plan: Plan, at: Instant) -> Plan:
    """The plan in the state that follows from its moves: done, or paused where it cannot go on."""
    if plan.state is not PlanState.RUNNING:
        return plan
    failed = [one for one in plan.moves if one.state is MoveState.FAILED]
    left = any(not one.state.over for one in plan.moves)
    if not left and not failed:
        return replace(plan, state=PlanState.DONE, changed_at=at)
    if len(failed) >= plan.limits.failures or not left:
        return paused(plan, at, f"{counted(len(failed), 'move')} failed: {_last(failed)}")
    if plan.under_way or plan.startable():
        return plan
    return paused(plan, at, f"the moves that are left wait for one that failed: {_last(failed)}")


def _last(failed: list[Move]) -> str:
    if not failed:
        return "none of them may begin"
    last = max(failed, key=lambda one: one.ended_at or 0)
    return f"{last.server} to {last.target_name}: {last.error}"


def paused(plan: Plan, at: Instant, note: str = "") -> Plan:
    """The plan, paused: no further move begins."""
    return replace(plan, state=PlanState.PAUSED, note=note, changed_at=at)


def canceled(plan: Plan, at: Instant) -> Plan:
    """The plan, canceled for good."""
    return replace(plan, state=PlanState.CANCELED, changed_at=at)


def applied(plan: Plan, at: Instant) -> Plan:
    """The plan, running; moves that failed before are tried again."""
    moves = tuple(
        replace(one, state=MoveState.WAITING, error="", asked=False, began_at=None, ended_at=None)
        if one.state is MoveState.FAILED
        else one
        for one in plan.moves
    )
    return replace(plan, moves=moves, state=PlanState.RUNNING, note="", changed_at=at)


def replanned(plan: Plan, fresh: Plan, at: Instant, why: str) -> Plan:
    """The plan with the moves of a new one for the same instead of those that have not begun.

    A move that failed is no failure any more where the new plan moves its server again.
    """
    again = {one.server for one in fresh.moves}
    stay = [
        number
        for number, one in enumerate(plan.moves)
        if one.state is not MoveState.WAITING
        and not (one.state is MoveState.FAILED and one.server in again)
    ]
    # What is kept is over, or waits for nothing of the new plan.
    places = {number: place for place, number in enumerate(stay)}
    kept = tuple(
        replace(
            plan.moves[number],
            after=tuple(places[each] for each in plan.moves[number].after if each in places),
        )
        for number in stay
    )
    added = tuple(
        replace(one, after=tuple(each + len(kept) for each in one.after)) for one in fresh.moves
    )
    count = int(plan.attributes.get(REPLANNED, "0")) + 1
    return replace(
        plan,
        moves=kept + added,
        unmoved=fresh.unmoved,
        note=f"planned again: {why}",
        changed_at=at,
        attributes=MappingProxyType({**plan.attributes, REPLANNED: str(count)}),
    )


REPLANNED = "replanned"
"""The attribute that counts how often a plan was made again while it ran."""
