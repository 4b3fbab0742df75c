"""Creates, applies, pauses, cancels and deletes plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DeletePlan, PutPlan
from moorage.domain.errors import CapacityExceeded, ConcurrentUpdate, StaleGeneration, WrongState
from moorage.domain.plan_progress import applied, canceled, paused, settled
from moorage.domain.plans import PlanState
from moorage.usecases.ledger.plan_targets import freed, held
from moorage.usecases.plans.plan_maker import make_plan
from moorage.usecases.shared.access import made_by_request, require_operator
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.changes import Change
    from moorage.domain.plan_requests import PlanRequest
    from moorage.domain.plans import Plan
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


def create_plan(
    env: UseCaseEnvironment, caller: Caller, request: PlanRequest, identity: RequestIdentity
) -> Plan:
    """Make a plan and store it. A repeat of the request with the same id returns its plan.

    Raises:
        Forbidden: the caller is no operator.
        DuplicateName: another request used the same id.
        MoorageError: as `make_plan`.
    """
    require_operator(caller)
    made = made_by_request("plan", identity, env.store.plans.plan)
    if made is not None:
        return made
    plan = replace(make_plan(env, caller, request, identity), digest=identity.digest)
    env.store.commit(Changeset((PutPlan(plan, None),)))
    return plan


def apply_plan(
    env: UseCaseEnvironment, caller: Caller, id_: str, generation: int | None = None
) -> Plan:
    """Let the moves of a plan begin, and hold their targets as far as there is room now.

    One that is paused goes on, and its failed moves are tried again; one that runs stays as it is.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: there is no such plan.
        StaleGeneration: it has another generation.
        WrongState: it is over, or has no moves while servers cannot be moved; or a plan that runs
            or is paused moves one of its servers; or nothing moves servers here.
        Busy: too many conflicting commits.
    """
    require_operator(caller)

    def attempt() -> Plan:
        plan = _expected(env, id_, generation)
        if plan.state is PlanState.RUNNING:
            return plan
        _refuse_over(plan, "applied")
        if not env.moves_servers:
            raise WrongState(
                "nothing moves servers here: set move_servers, or run the commands of"
                f" `moorage plan show {id_} -f commands`"
            )
        # In this order: what another plan holds after the snapshot makes the commit conflict.
        snapshot = env.store.snapshot()
        refuse_moved_elsewhere(env, plan)
        after = settled(applied(plan, snapshot.taken_at), snapshot.taken_at)
        holds = tuple(held(snapshot, after)) if after.state is PlanState.RUNNING else ()
        return committed(env, plan, after, holds, exclusive_revision=snapshot.exclusive_revision)

    return retry(env, attempt)


def pause_plan(
    env: UseCaseEnvironment, caller: Caller, id_: str, generation: int | None = None
) -> Plan:
    """Let no further move of a plan begin until it is applied again.

    Moves under way go on. Its targets stay held for an hour at most.

    Raises:
        Forbidden, NotFound, StaleGeneration: see `apply_plan`.
        WrongState: it is over, or was never applied.
    """
    require_operator(caller)

    def attempt() -> Plan:
        plan = _expected(env, id_, generation)
        if plan.state is PlanState.PAUSED:
            return plan
        _refuse_over(plan, "paused")
        if plan.state is PlanState.READY:
            raise WrongState(f"plan {id_} is not applied: there is nothing to pause")
        note = f"paused by {caller.user_id}"
        return committed(env, plan, paused(plan, env.store.now(), note))

    return retry(env, attempt)


def cancel_plan(
    env: UseCaseEnvironment, caller: Caller, id_: str, generation: int | None = None
) -> Plan:
    """Let no further move of a plan begin, for good; what was moved stays where it is.

    Moves under way go on, and are recorded. Its holds end but for theirs.

    Raises:
        Forbidden, NotFound, StaleGeneration: see `apply_plan`.
        WrongState: it is done.
    """
    require_operator(caller)

    def attempt() -> Plan:
        plan = _expected(env, id_, generation)
        if plan.state is PlanState.CANCELED:
            return plan
        _refuse_over(plan, "canceled")
        return committed(env, plan, canceled(plan, env.store.now()), (freed(plan),))

    return retry(env, attempt)


def delete_plan(
    env: UseCaseEnvironment, caller: Caller, id_: str, generation: int | None = None
) -> None:
    """Delete a plan that was never applied or is over.

    Raises:
        Forbidden, NotFound, StaleGeneration: see `apply_plan`.
        WrongState: it runs or is paused, or a server of it still moves.
    """
    require_operator(caller)

    def attempt() -> None:
        plan = _expected(env, id_, generation)
        if plan.under_way or plan.state in {PlanState.RUNNING, PlanState.PAUSED}:
            moving = "has moves under way" if plan.state.over else f"is {plan.state}"
            raise WrongState(f"plan {id_} {moving}: cancel it, or wait until it is done")
        env.store.commit(Changeset((DeletePlan(id_, plan.generation),)))

    retry(env, attempt)


def committed(
    env: UseCaseEnvironment,
    before: Plan,
    after: Plan,
    more: Iterable[Change] = (),
    exclusive_revision: int | None = None,
) -> Plan:
    """Write a plan over its former state, with further changes; the plan as it is stored.

    Raises:
        ConcurrentUpdate: somebody else has changed it, or has taken room that it would hold.
    """
    held_before, held_after = _targets(before), _targets(after)
    # One less is no news: its hold is gone, and whoever still knows of it finds nothing.
    news = not held_after <= held_before or bool(held_before and not held_after)
    put = PutPlan(after, before.generation, targets=news)
    try:
        env.store.commit(Changeset((put, *more), exclusive_revision=exclusive_revision))
    except CapacityExceeded as overtaken:
        raise ConcurrentUpdate(overtaken.message, subject=after.id) from overtaken
    return put.stored


def _targets(plan: Plan) -> frozenset[str]:
    """Ids of the moves whose targets are held while a plan is in its state."""
    return frozenset(one.id for one in plan.holding)


def _expected(env: UseCaseEnvironment, id_: str, generation: int | None) -> Plan:
    plan = env.store.plans.plan(id_)
    if generation is not None and plan.generation != generation:
        raise StaleGeneration("plan", id_, expected=generation, actual=plan.generation)
    return plan


def _refuse_over(plan: Plan, verb: str) -> None:
    if plan.state.over:
        raise WrongState(f"plan {plan.id} is {plan.state} and cannot be {verb}")


def refuse_moved_elsewhere(env: UseCaseEnvironment, plan: Plan) -> None:
    """Refuse to apply a plan of whose servers another applied one moves some.

    Raises:
        WrongState: it is so.
    """
    servers = {one.server for one in plan.moves if not one.state.over}
    for other in env.store.plans.unfinished():
        shared = {one.server for one in other.moves if not one.state.over} & servers
        if other.id != plan.id and shared:
            raise WrongState(
                f"server {min(shared)} is moved by plan {other.id}, too, which is {other.state}:"
                " wait until it is done, or cancel it"
            )
