"""What the use cases of a process are given: its ledger, solver, clock, ids and strategies."""

from __future__ import annotations

import secrets
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.period import SECOND
from moorage.outward.outgoing_calls import lease_check
from moorage.solver.portfolio import Portfolio
from moorage.solver.strategies import in_order
from moorage.store import Ledger, open_store
from moorage.store.settable_clock import SettableClock
from moorage.usecases.decide.environment import Strategies
from moorage.usecases.decide.search_plan import PlaceUnaided
from moorage.usecases.decide.search_queue import SearchQueue, SolverBetweenTurns
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.plans.plan_search import moves_to_admit
from moorage.usecases.preemption.displacement import EndPreemptible
from moorage.usecases.preemption.lease_preemption import PreemptLeases
from moorage.usecases.preemption.restoration import ends_restored_by
from moorage.usecases.preemption.short_stay import ShortenStay
from moorage.usecases.refusals.earliest_window import next_window
from moorage.usecases.refusals.reasons import explain_refusal
from moorage.usecases.refusals.time_limit import undecided
from moorage.usecases.relocation.moved_leases import MoveLeases, MoveLeasesAndEndPreemptible
from moorage.usecases.shared.admission import Admission, ProjectTurns
from moorage.usecases.shared.environment import Environment
from moorage.usecases.waitlist.attempt import try_entry

if TYPE_CHECKING:
    from moorage.settings import Settings
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock, Solver, Store


@dataclass(frozen=True, slots=True)
class RandomIds:
    """Random identifiers."""

    def uuid(self) -> str:
        """See `Ids`."""
        return str(uuid.uuid4())

    def salt(self) -> str:
        """See `Ids`."""
        return secrets.token_hex(16)


def with_strategies(environment: Environment) -> UseCaseEnvironment:
    """What the use cases are given over these ports: with the strategies of decisions.

    A request that does not fit asks them in this order: those that cost others least come first.
    """
    strategies = Strategies(
        room_makers=(
            PlaceUnaided(),
            EndPreemptible(),
            ShortenStay(),
            MoveLeases(),
            MoveLeasesAndEndPreemptible(),
            PreemptLeases(next_window),
        ),
        restore=ends_restored_by,
        explain=explain_refusal,
        undecided=undecided,
        count_moves=moves_to_admit,
    )
    return UseCaseEnvironment(
        store=environment.store,
        solver=environment.solver,
        ids=environment.ids,
        limits=environment.limits,
        stopwatch=environment.stopwatch,
        pause=environment.pause,
        strategies=strategies,
        searches=SearchQueue(environment.stopwatch),
        try_entry=try_entry,
    )


def make_environment(settings: Settings, *, store: Store, solver: Solver) -> UseCaseEnvironment:
    """What the use cases are given."""
    at_once = settings.limits.expensive_at_once
    environment = Environment(
        store=store,
        solver=solver,
        ids=RandomIds(),
        limits=settings.limits,
        stopwatch=time.monotonic,
        pause=time.sleep,
    )
    return replace(
        with_strategies(environment),
        admission=Admission(
            of_one_project=settings.limits.expensive,
            in_all=settings.limits.expensive_in_all,
            waiting=settings.limits.waiting,
            turns=None
            if at_once is None
            else ProjectTurns(at_once, time.monotonic, settings.limits.time_limit / SECOND),
        ),
        check=lease_check(settings.outward),
        moves_servers=settings.outward.move_servers != "none",
    )


def plain_environment(settings: Settings, store: Store) -> UseCaseEnvironment:
    """What the use cases are given where no service runs: a solver that works in this process."""
    solver = solver_in_this_process(settings.pool.strategies)
    return make_environment(settings, store=store, solver=solver)


def solver_in_this_process(strategies: tuple[str, ...]) -> Solver:
    """A solver without a process of its own, with the strategies of these names.

    Raises:
        BadPlugin: one cannot be made.
    """
    return Portfolio(SolverBetweenTurns(in_order(strategies)))


def open_ledger(settings: Settings, watch: Watch, clock: Clock | None = None) -> Ledger:
    """The ledger the settings name, with somebody who looks on.

    Raises:
        MoorageError: the database cannot be opened.
    """
    if clock is None and settings.clock_file is not None:
        clock = SettableClock(settings.clock_file)
    if settings.database_directory is not None:
        settings.database_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_store(settings.database, clock=clock, watch=watch)
