"""Several processes carry out the same plan: each move is asked for once."""

from collections import Counter
from pathlib import Path
from threading import Lock, Thread

from tests.usecases.plans.conftest import FLEET, SERVERS, Fleet

from moorage.domain.period import Instant
from moorage.domain.plan_progress import MoveReport
from moorage.domain.plans import Move, PlanLimits, PlanState
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import HandClock, Service
from moorage.usecases.plans.steps import PlanWorker


class Counting:
    """A mover that counts what it is asked for."""

    patience = 60_000_000

    def __init__(self, fleet: Fleet, asked: Counter[str], lock: Lock) -> None:
        self.mover, self.asked, self.lock = fleet.mover, asked, lock

    def begin(self, move: Move) -> None:
        with self.lock:
            self.asked[move.server] += 1
        self.mover.begin(move)

    def report(self, move: Move) -> MoveReport:
        return self.mover.report(move)

    def next_end(self, move: Move) -> Instant:
        return self.mover.next_end(move)


def test_each_move_is_asked_for_by_one_of_them(tmp_path: Path) -> None:
    url = new_database(tmp_path, HandClock(), FLEET)
    fleets = [Fleet(Service(database=url)) for _ in range(3)]
    first = fleets[0]
    try:
        for number in (1, 2, 3, 4):
            first.server(number, "h1")
        moves = [first.move(number, "h1", f"h{2 + number % 3}") for number in (1, 2, 3, 4)]
        plan = first.plan(*moves, limits=PlanLimits(parallel=4, per_host=4))
        first.apply(plan)
        asked: Counter[str] = Counter()
        lock = Lock()
        workers = [PlanWorker(one.env, Counting(one, asked, lock)) for one in fleets]
        for _ in range(4):
            rounds = [Thread(target=one.run_round) for one in workers]
            for one in rounds:
                one.start()
            for one in rounds:
                one.join()
            for each in fleets:
                each.service.clock.pass_by(20_000_000)
        assert asked == dict.fromkeys(SERVERS[1:5], 1)
        done = first.env.store.plans.plan(plan.id)
        assert done.state is PlanState.DONE
        assert [one.attempts for one in done.moves] == [1, 1, 1, 1]
    finally:
        for each in fleets:
            each.service.close()
