"""Plans are carried out move by move, each checked against the ledger as it is then."""

from dataclasses import replace
from typing import Never

import pytest
from tests.usecases.plans.conftest import MOVES, SERVERS, SIZE, Fleet

from moorage.domain.changes import Changeset, CloseHost, PutPlan
from moorage.domain.errors import StaleGeneration, WrongState
from moorage.domain.host_states import OperatorClosing
from moorage.domain.period import Instant
from moorage.domain.plan_progress import MoveProgress, MoveReport, accepted, begun, replanned
from moorage.domain.plans import Move, MoveKind, MoveState, Plan, PlanLimits, PlanState
from moorage.testing.service import OPERATOR
from moorage.usecases.ledger.allocations import release
from moorage.usecases.plan_ports import MoveRefused, MoverUnreachable
from moorage.usecases.plans.lifecycle import cancel_plan, delete_plan, pause_plan
from moorage.usecases.plans.steps import PlanWorker, advance_plan


def states(plan: Plan) -> list[str]:
    return [one.state.value for one in plan.moves]


def report(fleet: Fleet, host: str, state: str) -> None:
    body = {"service": {"status": "enabled", "state": state}}
    answer = fleet.service.call("PUT", f"/hosts/{host}/service", body, caller=OPERATOR)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("kind", list(MoveKind))
def test_servers_go_where_the_plan_says_and_nothing_stays_held(
    fleet: Fleet, kind: MoveKind
) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    if kind is MoveKind.EVACUATE:
        report(fleet, "h1", "down")
    plan = fleet.plan(fleet.move(1, "h1", "h2", kind=kind), fleet.move(2, "h1", "h3", kind=kind))
    assert fleet.advance(plan) == plan, "nothing happens before it is applied"
    fleet.apply(plan)
    assert fleet.held() == {MOVES[1]: {"h2"}, MOVES[2]: {"h3"}}
    begun = fleet.advance(plan)
    assert (begun.state, states(begun)) == (PlanState.RUNNING, ["moving", "moving"])
    assert fleet.held() == {}, "what was held is taken by the servers"
    assert (fleet.where(1), fleet.where(2)) == ("h2", "h3")
    done = fleet.finish(plan)
    assert (done.state, states(done)) == (PlanState.DONE, ["done", "done"])
    assert fleet.env.store.idle_consumers() == []
    used = fleet.env.store.snapshot().classes["VCPU"].used.tolist()
    assert sorted(used) == [0, 0, 2, 2], "the migrations gave up their part"
    assert fleet.advance(done) == done


def test_a_move_begins_once_those_before_it_are_done(fleet: Fleet) -> None:
    whole = {"VCPU": 8, "MEMORY_MB": 8192}
    fleet.server(1, "h1", whole)
    fleet.server(2, "h2", whole)
    plan = fleet.plan(
        fleet.move(2, "h2", "h3", allocations={fleet.uuid("h3"): whole}),
        fleet.move(1, "h1", "h2", allocations={fleet.uuid("h2"): whole}, after=(0,)),
    )
    fleet.apply(plan)
    # The second target is full until the first move is done.
    assert fleet.held() == {MOVES[2]: {"h3"}}
    assert states(fleet.advance(plan)) == ["moving", "waiting"]
    fleet.service.clock.pass_by(20_000_000)
    assert states(fleet.advance(plan)) == ["done", "moving"]
    assert fleet.finish(plan).state is PlanState.DONE
    assert (fleet.where(1), fleet.where(2)) == ("h2", "h3")


def test_so_many_move_at_a_time(fleet: Fleet) -> None:
    for number in (1, 2, 3, 4):
        fleet.server(number, "h1")
    moves = [fleet.move(number, "h1", f"h{2 + number % 3}") for number in (1, 2, 3, 4)]
    plan = fleet.plan(*moves, limits=PlanLimits(parallel=3, per_host=2))
    fleet.apply(plan)
    assert states(fleet.advance(plan)).count("moving") == 2
    assert fleet.finish(plan).state is PlanState.DONE


def test_a_server_that_is_deleted_or_elsewhere_is_skipped(fleet: Fleet) -> None:
    for number in (1, 2, 3):
        fleet.server(number, "h1")
    plan = fleet.plan(
        fleet.move(1, "h1", "h2"),
        fleet.move(2, "h1", "h3"),
        fleet.move(3, "h1", "h3", after=(0, 1)),
    )
    fleet.apply(plan)
    release(fleet.env.store, SERVERS[1])
    fleet.server(2, "h4")
    done = fleet.finish(plan)
    assert states(done) == ["skipped", "skipped", "done"]
    assert [one.error for one in done.moves] == [
        "the server is deleted",
        "the server is on h4 by now",
        "",
    ]
    assert fleet.held() == {}


def test_a_server_deleted_in_the_middle_of_its_move_is_skipped(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"))
    fleet.apply(plan)
    fleet.advance(plan)
    release(fleet.env.store, SERVERS[1])
    migration = next(
        one.consumer
        for one in fleet.env.store.snapshot().bookings_of(
            fleet.env.store.snapshot().row_of[fleet.uuid("h1")]
        )
    )
    release(fleet.env.store, migration)
    assert states(fleet.finish(plan)) == ["skipped"]


class Refusing:
    """A mover that refuses moves of some servers, as Nova may."""

    patience = 60_000_000

    def __init__(self, fleet: Fleet, *servers: str) -> None:
        self.fleet = fleet
        self.servers = set(servers)
        self.asked: list[str] = []

    def begin(self, move: Move) -> None:
        self.asked.append(move.server)
        if move.server in self.servers:
            raise MoveRefused("Compute host h2 could not be found")
        self.fleet.mover.begin(move)

    def report(self, move: Move) -> MoveReport:
        return self.fleet.mover.report(move)

    def next_end(self, move: Move) -> Instant:
        return self.fleet.mover.next_end(move)


def run(fleet: Fleet, mover: Refusing, plan: Plan, rounds: int = 10) -> Plan:
    for _ in range(rounds):
        plan = advance_plan(fleet.env, mover, plan.id)
        fleet.service.clock.pass_by(20_000_000)
    return plan


def test_a_plan_pauses_at_the_second_failure_and_tries_again_when_applied(fleet: Fleet) -> None:
    for number in (1, 2, 3, 4):
        fleet.server(number, "h1")
    moves = [fleet.move(number, "h1", f"h{1 + number % 3 + 1}") for number in (1, 2, 3, 4)]
    plan = fleet.plan(*moves, limits=PlanLimits(parallel=1, per_host=1))
    fleet.apply(plan)
    mover = Refusing(fleet, SERVERS[1], SERVERS[3])
    after = run(fleet, mover, plan)
    assert after.state is PlanState.PAUSED
    assert states(after) == ["failed", "done", "failed", "waiting"]
    assert after.note == (
        f"2 moves failed: {SERVERS[3]} to {moves[2].target_name}:"
        " Compute host h2 could not be found"
    )
    assert run(fleet, mover, plan).generation == after.generation, "it waits"
    mover.servers.clear()
    fleet.apply(plan)
    assert run(fleet, mover, plan).state is PlanState.DONE
    assert mover.asked == [SERVERS[number] for number in (1, 2, 3, 1, 3, 4)]


def test_what_waits_for_a_failed_move_makes_the_plan_pause(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"), fleet.move(2, "h1", "h3", after=(0,)))
    fleet.apply(plan)
    after = run(fleet, Refusing(fleet, SERVERS[1]), plan)
    assert (after.state, states(after)) == (PlanState.PAUSED, ["failed", "waiting"])
    assert "wait for one that failed" in after.note


def test_a_paused_plan_begins_nothing_and_sees_what_moves_to_its_end(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"), fleet.move(2, "h1", "h3"), limits=PlanLimits(1, 1))
    fleet.apply(plan)
    fleet.advance(plan)
    paused = pause_plan(fleet.env, OPERATOR, plan.id)
    assert (paused.state, paused.note) == (PlanState.PAUSED, "paused by op")
    after = fleet.finish(plan)
    assert (after.state, states(after)) == (PlanState.PAUSED, ["done", "waiting"])
    fleet.apply(plan)
    assert fleet.finish(plan).state is PlanState.DONE


def test_a_canceled_plan_leaves_what_it_moved_and_holds_nothing(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"), fleet.move(2, "h1", "h3"), limits=PlanLimits(1, 1))
    fleet.apply(plan)
    fleet.advance(plan)
    cancel_plan(fleet.env, OPERATOR, plan.id)
    assert fleet.held() == {}
    with pytest.raises(WrongState, match="has moves under way"):
        delete_plan(fleet.env, OPERATOR, plan.id)
    after = fleet.finish(plan)
    assert (after.state, states(after)) == (PlanState.CANCELED, ["done", "waiting"])
    assert (fleet.where(1), fleet.where(2)) == ("h2", "h1")
    assert fleet.env.store.plans.unfinished() == []
    with pytest.raises(WrongState, match="is canceled and cannot be applied"):
        fleet.apply(plan)
    delete_plan(fleet.env, OPERATOR, plan.id)
    assert fleet.env.store.plans.counts() == {}


def test_a_target_that_is_closed_meanwhile_pauses_the_plan(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"))
    fleet.apply(plan)
    closing = OperatorClosing("broken", "op", 0)
    fleet.env.store.commit(Changeset((CloseHost(fleet.uuid("h2"), closing),)))
    after = fleet.advance(plan)
    assert (after.state, after.note) == (PlanState.PAUSED, "h2 is not open any more")
    assert fleet.where(1) == "h1"


def test_a_plan_is_made_again_where_its_ground_has_moved(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h3"), fleet.move(2, "h1", "h2"), limits=PlanLimits(1, 1))
    fleet.apply(plan)
    fleet.advance(plan)
    closing = OperatorClosing("broken", "op", 0)
    fleet.env.store.commit(Changeset((CloseHost(fleet.uuid("h2"), closing),)))
    fleet.service.clock.pass_by(20_000_000)

    def again(env: object, plan: Plan) -> Plan:
        fresh = fleet.move(2, "h1", "h4", id=MOVES[5])
        return replace(plan, moves=(fresh,))

    worker = PlanWorker(fleet.env, fleet.mover, again)
    for _ in range(4):
        worker.run_round()
        fleet.service.clock.pass_by(20_000_000)
    after = fleet.env.store.plans.plan(plan.id)
    assert (after.state, states(after)) == (PlanState.DONE, ["done", "done"])
    assert [one.target_name for one in after.moves] == ["h3", "h4"]
    assert after.note == "planned again: h2 is not open any more"
    assert fleet.held() == {}


def test_room_that_others_have_taken_before_is_no_target(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"))
    fleet.server(2, "h2", {"VCPU": 7})
    fleet.apply(plan)
    assert fleet.held() == {}
    after = fleet.advance(plan)
    assert after.state is PlanState.PAUSED
    assert after.note == f"h2 has no room any more for server {SERVERS[1]}"


def test_holds_lapse_unless_the_plan_goes_on(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"), fleet.move(2, "h1", "h3"), limits=PlanLimits(1, 1))
    fleet.apply(plan)
    fleet.advance(plan)
    fleet.service.clock.pass_by(45 * 60_000_000)
    assert fleet.held() == {MOVES[2]: {"h3"}}
    pause_plan(fleet.env, OPERATOR, plan.id)
    fleet.service.clock.pass_by(16 * 60_000_000)
    assert fleet.held() == {}, "no place is held for ever"
    fleet.apply(plan)
    assert fleet.held() == {MOVES[2]: {"h3"}}
    assert fleet.finish(plan).state is PlanState.DONE


def test_a_process_that_died_before_it_asked_is_followed_by_one_that_does(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.apply(fleet.plan(fleet.move(1, "h1", "h2")))
    died = begun(plan, 0, fleet.env.store.now())
    fleet.env.store.commit(Changeset((PutPlan(died, plan.generation),)))
    mover = Refusing(fleet)
    advance_plan(fleet.env, mover, plan.id)
    assert mover.asked == [], "its request may be on its way"
    fleet.service.clock.pass_by(61_000_000)
    after = run(fleet, mover, plan)
    assert (after.state, mover.asked) == (PlanState.DONE, [SERVERS[1]])


def test_a_move_that_was_accepted_and_left_no_trace_has_failed(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.apply(fleet.plan(fleet.move(1, "h1", "h2")))
    asked = accepted(begun(plan, 0, 1), 0, 1)
    fleet.env.store.commit(Changeset((PutPlan(asked, plan.generation),)))
    after = advance_plan(fleet.env, Refusing(fleet), plan.id)
    assert states(after) == ["failed"]
    assert after.moves[0].error == "Nova has given up the move"


class Unreachable(Refusing):
    """A mover that cannot be reached."""

    def begin(self, move: Move) -> Never:
        raise MoverUnreachable("Nova did not answer in 10 s")

    def report(self, move: Move) -> Never:
        raise MoverUnreachable("Nova did not answer in 10 s")


def test_what_cannot_be_read_is_looked_at_again(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.apply(fleet.plan(fleet.move(1, "h1", "h2")))
    after = run(fleet, Unreachable(fleet), plan, rounds=3)
    assert (after.state, states(after)) == (PlanState.RUNNING, ["moving"])
    after = run(fleet, Refusing(fleet), plan)
    assert (after.state, states(after)) == (PlanState.DONE, ["done"])


def test_a_plan_cannot_be_applied_here_or_twice_for_one_server(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    first, second = (
        fleet.plan(fleet.move(1, "h1", "h2")),
        fleet.plan(fleet.move(1, "h1", "h3", id=MOVES[2])),
    )
    here = fleet.env
    fleet.env = replace(here, moves_servers=False)
    with pytest.raises(WrongState, match="nothing moves servers here"):
        fleet.apply(first)
    fleet.env = here
    with pytest.raises(WrongState, match="is not applied"):
        pause_plan(fleet.env, OPERATOR, first.id)
    with pytest.raises(StaleGeneration):
        cancel_plan(fleet.env, OPERATOR, first.id, 7)
    fleet.apply(first)
    with pytest.raises(WrongState, match=f"is moved by plan {first.id}, too"):
        fleet.apply(second)
    with pytest.raises(WrongState, match="is running: cancel it"):
        delete_plan(fleet.env, OPERATOR, first.id)
    assert fleet.apply(first).state is PlanState.RUNNING, "applying it again changes nothing"
    assert fleet.finish(first).state is PlanState.DONE


def test_a_plan_without_moves_is_done_at_once(fleet: Fleet) -> None:
    assert fleet.apply(fleet.plan()).state is PlanState.DONE


def test_the_simulator_goes_on_between_its_two_writes(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    move = fleet.move(1, "h1", "h2", began_at=fleet.env.store.now())
    found = fleet.env.store.consumer(move.server)
    assert found is not None
    fleet.mover._give_to_migration(move, *found)
    assert fleet.where(1) is None
    assert fleet.mover.report(move) == MoveReport(MoveProgress.RUNNING)
    assert fleet.where(1) == "h2"
    fleet.service.clock.pass_by(20_000_000)
    assert fleet.mover.report(move) == MoveReport(MoveProgress.DONE)


def test_a_refused_simulated_move_leaves_everything_as_it_was(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    fleet.server(2, "h2", {"VCPU": 7})
    move = fleet.move(1, "h1", "h2", began_at=fleet.env.store.now())
    with pytest.raises(MoveRefused):
        fleet.mover.begin(move)
    assert fleet.where(1) == "h1"
    found = fleet.env.store.consumer(SERVERS[1])
    assert found is not None
    assert dict(found[1][0].amounts) == SIZE
    assert fleet.mover.report(move).progress is MoveProgress.IDLE
    assert fleet.env.store.idle_consumers() == []


def test_servers_of_a_host_that_runs_again_are_not_evacuated(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    report(fleet, "h1", "down")
    moves = [fleet.move(n, "h1", f"h{n + 1}", kind=MoveKind.EVACUATE) for n in (1, 2)]
    plan = fleet.plan(*moves, limits=PlanLimits(parallel=1))
    fleet.apply(plan)
    assert states(fleet.advance(plan)) == ["moving", "waiting"]
    report(fleet, "h1", "up")
    fleet.service.clock.pass_by(60_000_000)
    done = fleet.finish(plan)
    assert (done.state, states(done)) == (PlanState.DONE, ["done", "skipped"])
    assert "runs again" in done.moves[1].error
    assert fleet.where(2) == "h1"
    assert fleet.held() == {}


def test_a_server_that_was_resized_is_not_moved_as_it_was_planned(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"))
    fleet.server(1, "h1", {"VCPU": 4, "MEMORY_MB": 4096})
    fleet.apply(plan)
    after = fleet.advance(plan)
    assert (after.state, states(after)) == (PlanState.PAUSED, ["waiting"])
    assert "other resources" in after.note
    assert fleet.where(1) == "h1"


def test_the_place_of_a_move_under_way_is_kept_when_its_plan_is_canceled(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"), fleet.move(2, "h1", "h3"))
    fleet.apply(plan)
    under_way = replace(
        fleet.env.store.plans.plan(plan.id),
        moves=tuple(
            replace(begun(fleet.env.store.plans.plan(plan.id), 0, 0).moves[0])
            if number == 0
            else move
            for number, move in enumerate(fleet.env.store.plans.plan(plan.id).moves)
        ),
    )
    fleet.env.store.commit(Changeset((PutPlan(under_way, under_way.generation),)))
    canceled = cancel_plan(fleet.env, OPERATOR, plan.id)
    assert canceled.under_way
    assert fleet.held() == {MOVES[1]: {"h2"}}
    targets = fleet.env.store.exclusive_ensembles(fleet.env.store.snapshot()).targets
    assert set(targets) == {SERVERS[1]}
    release(fleet.env.store, SERVERS[1])
    after = fleet.advance(canceled)
    assert states(after) == ["skipped", "waiting"]
    assert fleet.held() == {}, "nothing stays held for a server that is deleted"
    delete_plan(fleet.env, OPERATOR, plan.id)


def test_a_failed_move_that_is_tried_again_has_its_place_again(fleet: Fleet) -> None:
    fleet.server(1, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"), limits=PlanLimits(failures=1))
    fleet.apply(plan)
    running = fleet.env.store.plans.plan(plan.id)
    failed = replace(
        running,
        state=PlanState.PAUSED,
        moves=(replace(running.moves[0], state=MoveState.FAILED, error="no"),),
    )
    fleet.env.store.commit(Changeset((PutPlan(failed, running.generation),)))
    store = fleet.env.store
    assert store.exclusive_ensembles(store.snapshot()).targets.keys() <= {SERVERS[1]}
    fleet.apply(plan)
    targets = store.exclusive_ensembles(store.snapshot()).targets
    assert [one.id for one in targets[SERVERS[1]]] == [MOVES[1]]
    done = fleet.finish(plan)
    assert (done.state, fleet.where(1)) == (PlanState.DONE, "h2")


def test_a_failed_move_is_none_any_more_where_its_server_is_moved_otherwise(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.server(number, "h1")
    plan = fleet.plan(fleet.move(1, "h1", "h2"), fleet.move(2, "h1", "h3", after=(0,)))
    failed = replace(plan, moves=(replace(plan.moves[0], state=MoveState.FAILED), plan.moves[1]))
    fresh = replace(plan, moves=(fleet.move(1, "h1", "h4"), fleet.move(2, "h1", "h3", after=(0,))))
    after = replanned(failed, fresh, 5, "h2 is full")
    assert states(after) == ["waiting", "waiting"]
    assert [one.after for one in after.moves] == [(), (0,)]
