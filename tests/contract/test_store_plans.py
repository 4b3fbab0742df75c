"""The store contract: plans, how far they are, and who changes one at the same time."""

from dataclasses import replace

import pytest
from tests.contract.conftest import SetClock, how_many_pass
from tests.contract.test_store_bookings import write
from tests.contract.test_store_records import sweep

from moorage.domain.actors import Actor
from moorage.domain.changes import Changeset, DeletePlan, PutPlan
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, NotFound
from moorage.domain.member_names import MemberName
from moorage.domain.plans import (
    Move,
    MoveKind,
    MoveState,
    Plan,
    PlanKind,
    PlanLimits,
    PlanState,
    Unmoved,
)
from moorage.domain.records import RecordKind
from moorage.store import Ledger
from moorage.usecases.paging import Page

WHOLE = Page()


def move(number: int, **more: object) -> Move:
    made = Move(
        id=f"m{number}",
        server=f"s{number}",
        project_id="p",
        source="a",
        source_name="h1",
        target="b",
        target_name="h2",
        allocations={"b": {"VCPU": 2, "MEMORY_MB": 512}},
        memory_mb=512,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def plan(id_: str, **more: object) -> Plan:
    made = Plan(
        id=id_,
        kind=PlanKind.DRAIN,
        subject="h1",
        created_at=5,
        moves=(
            move(1, member=MemberName("web", 3), ensemble_id="e", ensemble="shop"),
            move(2, after=(0,), kind=MoveKind.COLD),
        ),
        unmoved=(Unmoved("s3", "p", "a", "h1", "no host has room", "no-room"),),
        hosts=("a",),
        limits=PlanLimits(parallel=3, per_host=2),
        actor=Actor("ann", "p", "req-1"),
        attributes={"gain": "3"},
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_plan_is_read_as_it_was_written(store: Ledger) -> None:
    one = plan("a")
    write(store, PutPlan(one, None))
    assert store.plans.plan("a") == one
    with pytest.raises(NotFound):
        store.plans.plan("b")
    with pytest.raises(DuplicateName):
        write(store, PutPlan(one, None))


def test_a_change_names_the_generation_that_it_replaces(store: Ledger) -> None:
    one = plan("a")
    write(store, PutPlan(one, None))
    begun = replace(one.moves[0], state=MoveState.MOVING, began_at=9, attempts=1)
    after = replace(one.with_move(0, begun, 9), state=PlanState.RUNNING)
    write(store, PutPlan(after, 0))
    assert store.plans.plan("a") == replace(after, generation=1)
    with pytest.raises(ConcurrentUpdate):
        write(store, PutPlan(one, 0))
    with pytest.raises(ConcurrentUpdate):
        write(store, DeletePlan("a", 0))
    with pytest.raises(NotFound):
        write(store, PutPlan(plan("b"), 0))
    write(store, DeletePlan("a", 1))
    with pytest.raises(NotFound):
        write(store, DeletePlan("a", 1))
    assert store.plans.page(WHOLE) == []


def test_one_of_several_who_change_a_plan_at_once_wins(store: Ledger) -> None:
    write(store, PutPlan(plan("a"), None))
    commits = [Changeset((PutPlan(plan("a", note=f"{number}"), 0),)) for number in range(8)]
    assert how_many_pass(store, commits, ConcurrentUpdate) == 1
    assert store.plans.plan("a").generation == 1


def test_plans_are_listed_newest_first_by_state_and_kind(store: Ledger) -> None:
    running = plan("b", state=PlanState.RUNNING)
    repair = plan("c", kind=PlanKind.REPAIR, state=PlanState.RUNNING, ensemble_id="e")
    for one in (plan("a"), running, repair, plan("d", state=PlanState.CANCELED)):
        write(store, PutPlan(one, None))

    def ids(page: Page = WHOLE, **wanted: object) -> list[str]:
        return [one.id for one in store.plans.page(page, **wanted)]  # type: ignore[arg-type]

    assert ids() == ["d", "c", "b", "a"]
    assert ids(Page(2)) == ["d", "c"]
    assert ids(Page(2, "c")) == ["b", "a"]
    assert ids(state=PlanState.RUNNING) == ["c", "b"]
    assert ids(kind=PlanKind.DRAIN) == ["d", "b", "a"]
    assert ids(kind=PlanKind.DRAIN, state=PlanState.RUNNING) == ["b"]
    with pytest.raises(NotFound):
        ids(Page(2, "x"))
    assert store.plans.unfinished() == [running, repair]
    assert store.plans.counts() == {
        PlanState.READY: 1,
        PlanState.RUNNING: 2,
        PlanState.CANCELED: 1,
    }


def test_plans_that_are_over_are_records(store: Ledger, clock: SetClock) -> None:
    write(store, PutPlan(plan("a"), None), PutPlan(plan("b", state=PlanState.RUNNING), None))
    clock.instant = 1_000
    write(store, PutPlan(plan("b", state=PlanState.DONE), 0))
    assert sweep(store, 1_000) == {}
    assert sweep(store, 1_001) == {RecordKind.PLAN: 1}
    assert [one.id for one in store.plans.page(WHOLE)] == ["a"]
