"""Carries plans out: looks at the moves under way, and begins those that may begin.

Every step is written before it is taken, under the plan's generation, so that one process takes
it. A process that ends in between leaves a move of which it is not known whether it was asked for;
who goes on looks, and asks again if nothing moves the server. A `ServerMover` makes the moves.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.errors import ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.host_states import HostState
from moorage.domain.plan_progress import (
    REPLANNED,
    MoveProgress,
    accepted,
    begun,
    ended,
    paused,
    replanned,
    reported,
    returned,
    settled,
)
from moorage.domain.plans import MoveKind, MoveState, PlanState
from moorage.domain.resources import total
from moorage.engine.state.host_states import host_states
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.ledger.member_moves import refused_move
from moorage.usecases.ledger.plan_targets import freed, held, host_of, is_held
from moorage.usecases.plan_ports import MoveRefused, MoverUnreachable
from moorage.usecases.plans.lifecycle import committed, refuse_moved_elsewhere
from moorage.usecases.shared.access import ITSELF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.domain.period import Instant
    from moorage.domain.plans import Move, Plan
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.plan_ports import ServerMover

_log = logging.getLogger(__name__)
_AT_ONCE: Final = 5
"""Moves that are written together, before they are asked for and after: so few that all of them are
asked for within the patience of whoever moves servers."""
MOST_REPLANS: Final = 5
"""How often a plan is made again while it runs, before it pauses instead."""


class Replans(Protocol):
    """Makes a plan for the same as another one, from the ledger as it is now."""

    def __call__(self, env: UseCaseEnvironment, plan: Plan) -> Plan | None:
        """The new plan; None: it cannot be made again."""


def never(env: UseCaseEnvironment, plan: Plan) -> Plan | None:  # noqa: ARG001 - a `Replans`
    """Make no plan again."""
    return None


@dataclass(frozen=True, slots=True)
class PlanWorker:
    """Rounds over all plans that are applied. Any number of processes may run them."""

    env: UseCaseEnvironment
    mover: ServerMover
    replan: Replans = never
    counted: Callable[[Move], object] = lambda _move: None
    """Hears of each move that is over."""

    def run_round(self) -> bool:
        """Bring every plan as far as it goes now; whether anything was done.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        done = False
        for plan in self.env.store.plans.unfinished():
            try:
                after = advance_plan(self.env, self.mover, plan.id, self.replan)
            except (ConcurrentUpdate, NotFound):
                continue  # somebody else was quicker
            except Exception:  # noqa: BLE001 - one plan's fault keeps no other plan waiting
                _log.exception("plan %s cannot go on", plan.id)
                continue
            done |= after.generation != plan.generation
            over = {one.id for one in plan.moves if one.state.over}
            for move in after.moves:
                if move.state.over and move.id not in over:
                    self.counted(move)
        return done

    def ends(self) -> list[Instant]:
        """When moves that are under way end, as far as whoever makes them knows.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        return [
            self.mover.next_end(move)
            for plan in self.env.store.plans.unfinished()
            for move in plan.moves
            if move.state is MoveState.MOVING
        ]


def advance_plan(
    env: UseCaseEnvironment, mover: ServerMover, id_: str, replan: Replans = never
) -> Plan:
    """One round of a plan: look at moves under way, begin those that may begin, and finish.

    Raises:
        NotFound: there is no such plan.
        ConcurrentUpdate: somebody else has changed it meanwhile.
    """
    plan = _with_reports(env, mover, env.store.plans.plan(id_))
    if plan.state is PlanState.RUNNING:
        plan = _renewed(env, plan)
        planned = plan.attributes.get(REPLANNED)
        for numbers in _batches(plan.startable()):
            plan = _started(env, mover, plan, numbers, replan)
            if plan.state is not PlanState.RUNNING or plan.attributes.get(REPLANNED) != planned:
                break
    return _settled(env, plan)


def _batches(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(numbers), _AT_ONCE):
        yield numbers[first : first + _AT_ONCE]


def _with_reports(env: UseCaseEnvironment, mover: ServerMover, plan: Plan) -> Plan:
    """The plan after a look at each move under way."""
    after = plan
    for number, move in enumerate(plan.moves):
        if move.state is not MoveState.MOVING:
            continue
        try:
            report = mover.report(move)
        except MoverUnreachable as error:
            _log.warning("plan %s: %s: %s", plan.id, move.server, error.message)
            continue
        now, before = env.store.now(), after
        after = reported(before, number, report, now)
        # After a while the request is not on its way any more.
        late = now >= (move.began_at or 0) + mover.patience
        if after is before and report.progress is MoveProgress.IDLE and late:
            after = returned(before, number, now)
    if after is plan:
        return plan
    return committed(env, plan, after, (freed(after),) if after.state.over else ())


def _renewed(env: UseCaseEnvironment, plan: Plan) -> Plan:
    """The plan, with targets held that were not, or will not be for long."""
    snapshot = env.store.snapshot()
    holds = tuple(held(snapshot, plan))
    return committed(env, plan, plan, holds) if holds else plan


def _started(
    env: UseCaseEnvironment,
    mover: ServerMover,
    plan: Plan,
    numbers: Sequence[int],
    replan: Replans,
) -> Plan:
    """The plan with moves begun, or skipped, or with other moves where one cannot begin."""
    snapshot = env.store.snapshot()
    now, after = snapshot.taken_at, plan
    begins: list[int] = []
    obstacle: str | None = None
    for number in numbers:
        move = plan.moves[number]
        stands = host_of(snapshot, move.server)
        if stands == move.source and _runs_again(snapshot, move):
            why = f"{move.source_name} runs again"
            after = ended(after, number, MoveState.SKIPPED, now, why)
        elif stands == move.source:
            obstacle = _obstacle(env, snapshot, move)
            if obstacle is not None:
                break
            begins.append(number)
            after = begun(after, number, now)
        else:
            where = None if stands is None else snapshot.names[snapshot.row_of[stands]]
            why = "the server is deleted" if where is None else f"the server is on {where} by now"
            after = ended(after, number, MoveState.SKIPPED, now, why)
    if after is not plan:
        plan = committed(env, plan, after)
    after = plan
    for number in begins:
        after = _asked(env, mover, after, number)
    if after is not plan:
        plan = committed(env, plan, after)
    return plan if obstacle is None else _otherwise(env, plan, obstacle, replan)


def _asked(env: UseCaseEnvironment, mover: ServerMover, plan: Plan, number: int) -> Plan:
    """The plan, not written yet, after a move that has begun was asked for."""
    try:
        mover.begin(plan.moves[number])
    except MoveRefused as error:
        return ended(plan, number, MoveState.FAILED, env.store.now(), error.message)
    except MoverUnreachable as error:
        _log.warning("plan %s: %s: %s", plan.id, plan.moves[number].server, error.message)
        return plan
    return accepted(plan, number, env.store.now())


def _obstacle(env: UseCaseEnvironment, snapshot: Snapshot, move: Move) -> str | None:
    """Why a move cannot begin as it was planned; None: it can."""
    row = snapshot.row_of.get(move.target)
    if row is None:
        return f"{move.target_name} is gone"
    if host_states(snapshot).state(row) is not HostState.OPEN:
        return f"{move.target_name} is not open any more"
    if _state(snapshot, move.source) is HostState.DOWN and move.kind is not MoveKind.EVACUATE:
        return f"{move.source_name} is down: its servers can be evacuated only"
    taken = total(one.amounts for one in bookings_of(snapshot, move.server))
    if dict(taken) != dict(total(move.allocations.values())):
        return f"server {move.server} has other resources than when the plan was made"
    if not is_held(snapshot, move):
        return f"{move.target_name} has no room any more for server {move.server}"
    reason = refused_move(env, ITSELF, move.target, move.server, planned=True)
    return None if reason is None else f"server {move.server}: {reason}"


def _runs_again(snapshot: Snapshot, move: Move) -> bool:
    """Whether an evacuation is needless: its host is not down any more."""
    down = _state(snapshot, move.source) is HostState.DOWN
    return move.kind is MoveKind.EVACUATE and not down


def _state(snapshot: Snapshot, host: str) -> HostState:
    row = snapshot.row_of.get(host)
    return HostState.DOWN if row is None else host_states(snapshot).state(row)


def _otherwise(env: UseCaseEnvironment, plan: Plan, why: str, replan: Replans) -> Plan:
    """The plan with other moves for the same; paused, if there are none. Once nothing moves."""
    if plan.under_way:
        return plan
    now = env.store.now()
    times = int(plan.attributes.get(REPLANNED, "0"))
    plan = committed(env, plan, plan, (freed(plan),))  # another plan may need what it holds
    fresh = None
    if times < MOST_REPLANS:
        try:
            fresh = replan(env, plan)
            if fresh is not None:
                refuse_moved_elsewhere(env, fresh)
        except MoorageError as error:
            fresh, why = None, f"{why}, and no other plan was found: {error.message}"
    if fresh is None:
        return committed(env, plan, paused(plan, now, why))
    plan = committed(env, plan, replanned(plan, fresh, now, why))
    return _renewed(env, plan)


def _settled(env: UseCaseEnvironment, plan: Plan) -> Plan:
    """The plan in the state that follows from its moves; without holds once it is over."""
    after = settled(plan, env.store.now())
    if after is plan:
        return plan
    return committed(env, plan, after, (freed(after),) if after.state.over else ())
