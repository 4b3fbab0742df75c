"""The checker of benchmarks/plans accepts plans of its instances, and no plan that is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.plans import instances
from benchmarks.plans.checker import Wrong, check, widest

from moorage.engine.moves.plan import order_moves, plan_moves
from moorage.engine.moves.problem import MovePlan, MoveProblem, Step


def swap() -> tuple[MoveProblem, MovePlan]:
    """Two units that change places by a third host."""
    problem, targets = instances.cycles(0, pairs=1)
    plan = order_moves(problem, targets)
    assert isinstance(plan, MovePlan)
    return problem, plan


def test_plans_of_small_instances_are_right() -> None:
    for instance in (
        instances.drain(1, hosts=800, leave=2, units=60),
        instances.lost_rack(1, hosts=400, ensembles=4, size=5),
        instances.broken(1, hosts=400, ensembles=4, size=5),
        instances.admit(1, hosts=60, newcomers=4),
        instances.admit(1, hosts=60, newcomers=4, tight=True),
    ):
        plan = plan_moves(instance.problem)
        assert isinstance(plan, MovePlan)
        check(instance.problem, plan)
        assert plan.lower_bound <= plan.cost <= instance.planted


def test_a_move_that_does_not_wait_for_the_room_it_needs_is_wrong() -> None:
    problem, plan = swap()
    check(problem, plan)
    assert widest(plan) == 1
    careless = tuple(Step(step.unit, step.source, step.target) for step in plan.steps)
    with pytest.raises(Wrong):
        check(problem, replace(plan, steps=careless))


def test_a_plan_with_another_end_is_wrong() -> None:
    problem, plan = swap()
    with pytest.raises(Wrong, match="do not lead"):
        check(problem, replace(plan, hosts=plan.hosts[::-1].copy()))


def test_a_target_that_is_not_permitted_is_wrong() -> None:
    problem, plan = swap()
    with pytest.raises(Wrong, match="not permitted"):
        check(replace(problem, masks=np.zeros_like(problem.masks)), plan)


def test_a_host_that_is_not_left_is_wrong() -> None:
    problem, plan = swap()
    leave = problem.leave.copy()
    leave[int(plan.hosts[plan.steps[0].unit])] = True
    with pytest.raises(Wrong, match=r"not permitted|not empty"):
        check(replace(problem, leave=leave), plan)


def test_a_broken_rule_is_found() -> None:
    instance = instances.broken(3, hosts=400, ensembles=2, size=5)
    nothing = MovePlan((), instance.problem.start, 0, 0)
    with pytest.raises(Wrong, match="at the end rule"):
        check(instance.problem, nothing)
