"""A plan's events: what has changed since it was written before, and nothing twice."""

from dataclasses import replace

from tests.contract.test_store_plans import plan

from moorage.domain.events import EVENT_TYPES
from moorage.domain.plan_events import plan_events
from moorage.domain.plan_progress import applied, begun, canceled, ended, paused, replanned, settled
from moorage.domain.plans import MoveState, Plan

BODIES = {one.name: set(one.body) for one in EVENT_TYPES}


def told(after: Plan, before: Plan | None) -> list[str]:
    found = list(plan_events(after, before))
    for one in found:
        assert set(one.body) == BODIES[one.type]
        if not one.type.startswith("member."):
            assert (one.project_id, one.subject) == ("p", after.id)
    return [one.type for one in found]


def test_each_step_has_its_events() -> None:
    one = plan("a")
    assert told(one, None) == ["plan.created"]
    assert told(one, one) == []
    running = applied(one, 1)
    assert told(running, one) == ["plan.started"]
    moving = begun(running, 0, 2)
    assert told(moving, running) == ["plan.move_begun"]
    done = ended(moving, 0, MoveState.DONE, 3)
    assert told(done, moving) == ["plan.move_done", "member.moved"]
    failed = paused(ended(begun(done, 1, 4), 1, MoveState.FAILED, 5, "no"), 5, "1 failed")
    assert told(failed, done) == ["plan.move_failed", "plan.paused"]
    again = applied(failed, 6)
    assert told(again, failed) == ["plan.started"]
    assert told(canceled(again, 7), again) == ["plan.canceled"]
    other = replanned(again, replace(one, moves=(replace(one.moves[0], id="m9"),)), 8, "closed")
    assert told(other, again) == ["plan.replanned"]
    over = settled(ended(ended(other, 1, MoveState.SKIPPED, 9, "gone"), 0, MoveState.DONE, 9), 9)
    assert told(over, other) == ["plan.move_skipped", "plan.done"]


def test_the_project_of_a_member_reads_why_it_was_moved_and_no_host() -> None:
    one = plan("a")
    done = ended(begun(one, 0, 2), 0, MoveState.DONE, 3)
    (found,) = (each for each in plan_events(done, one) if each.type == "member.moved")
    move = one.moves[0]
    assert (found.project_id, found.subject) == (move.project_id, move.ensemble_id)
    assert (found.body["because"], found.body["member"]) == (one.kind, str(move.member))
    written = repr(found.body)
    assert move.source_name not in written
    assert move.target_name not in written
