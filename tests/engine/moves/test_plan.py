"""Plans of moves by example: drains, groups, cycles, newcomers, repairs, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest
from tests.engine.moves.brute_force import BruteForce
from tests.engine.moves.rules import DomainRule

from moorage.domain import deadline
from moorage.engine.moves import exhaustive
from moorage.engine.moves.plan import order_moves, plan_moves
from moorage.engine.moves.problem import MovePlan, MoveProblem, NoPlan, Rule, Stuck, StuckCode


def problem(
    free: Sequence[int],
    units: Sequence[tuple[int, int]],
    *,
    leave: Sequence[int] = (),
    pinned: Sequence[int] = (),
    rules: Sequence[Rule] = (),
    shut: Sequence[int] = (),
) -> MoveProblem:
    """Hosts with so much room; units as (host, amount)."""
    hosts = len(free)
    return MoveProblem(
        free=np.array(free, dtype=np.int64).reshape(hosts, 1),
        amounts=np.array([amount for _, amount in units], dtype=np.int64).reshape(-1, 1),
        start=np.array([host for host, _ in units], dtype=np.int32),
        cost=np.ones(len(units), dtype=np.int64),
        movable=np.array([unit not in pinned for unit in range(len(units))]),
        mask_of=np.zeros(len(units), dtype=np.int32),
        masks=np.array([[host not in shut for host in range(hosts)]]),
        leave=np.array([host in leave for host in range(hosts)]),
        rules=tuple(rules),
    )


def planned(one: MoveProblem) -> MovePlan:
    found = plan_moves(one)
    assert isinstance(found, MovePlan)
    return found


def refused(one: MoveProblem) -> NoPlan:
    found = plan_moves(one)
    assert isinstance(found, NoPlan)
    return found


@pytest.fixture
def only_heuristics(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a large problem: without the search of every state."""
    monkeypatch.setattr(exhaustive, "_LARGEST", 0)


def test_nothing_to_do_is_an_empty_plan() -> None:
    found = planned(problem([1, 1], [(0, 1)]))
    assert found.steps == ()
    assert found.optimal


def test_a_host_is_left_with_one_move_for_each_unit(only_heuristics: None) -> None:
    one = problem([0, 5, 4], [(0, 2), (0, 3), (0, 4)], leave=[0])
    found = planned(one)
    BruteForce(one).check(found)
    assert found.cost == found.lower_bound == 3
    assert {step.after for step in found.steps} == {()}


def test_units_of_one_rule_move_to_one_rack(only_heuristics: None) -> None:
    racks = (0, 0, 1, 1, 2, 2)
    near = DomainRule("near", "together", (0, 1, 2), racks)
    # Rack 1 has the host with the most room, but only rack 2 has room for all.
    one = problem([0, 0, 2, 0, 1, 2], [(0, 1), (0, 1), (1, 1)], leave=[0, 1], rules=[near])
    found = planned(one)
    assert {racks[host] for host in found.hosts.tolist()} == {2}


def test_a_rule_that_holds_meanwhile_too_makes_moves_wait() -> None:
    apart = DomainRule("apart", "apart", (0, 1), (0, 1, 2), meanwhile=0)
    one = problem([0, 0, 1], [(0, 1), (1, 1)], leave=[0], shut=[0], rules=[apart])
    # Unit 1 makes the place for unit 0.
    found = order_moves(one, [1, 2])
    assert isinstance(found, MovePlan)
    assert [(step.unit, step.after) for step in found.steps] == [(1, ()), (0, (0,))]


def test_two_units_change_places_by_a_temporary_host() -> None:
    one = problem([0, 0, 2], [(0, 2), (1, 2)])
    found = order_moves(one, [1, 0])
    assert isinstance(found, MovePlan)
    BruteForce(one).check(found)
    assert len(found.steps) == 3
    assert found.hosts.tolist() == [1, 0]


def test_without_a_temporary_host_there_is_no_order() -> None:
    found = order_moves(problem([0, 0, 1], [(0, 2), (1, 2)]), [1, 0])
    assert isinstance(found, NoPlan)
    assert {one.code for one in found.stuck} == {StuckCode.NO_ORDER}


@pytest.mark.parametrize(
    ("targets", "code"),
    [
        ([2, 1], StuckCode.NO_ROOM),  # a full host
        ([3, 1], StuckCode.NO_ROOM),  # one that the mask excludes
        ([0, 0], StuckCode.PINNED),
    ],
)
def test_targets_that_are_none_are_refused(targets: list[int], code: StuckCode) -> None:
    one = problem([2, 2, 0, 2], [(0, 1), (1, 1)], pinned=[1], shut=[3])
    found = order_moves(one, targets)
    assert isinstance(found, NoPlan)
    assert found.proved
    assert [stuck.code for stuck in found.stuck] == [code]


def test_units_make_room_for_a_newcomer(only_heuristics: None) -> None:
    # Five do not fit anywhere, until the unit of two goes where two are free.
    one = problem([3, 2, 1], [(0, 2), (1, 4), (2, 4), (-1, 5)])
    found = planned(one)
    BruteForce(one).check(found)
    assert [(step.unit, step.target) for step in found.steps] == [(0, 1)]
    assert found.optimal


def test_a_chain_of_units_makes_room(only_heuristics: None) -> None:
    # 4 goes to host 0; for it 3 goes to host 1, and for that 2 to host 2.
    one = problem([1, 1, 2], [(0, 3), (1, 2), (2, 9), (-1, 4)], pinned=[2])
    found = planned(one)
    BruteForce(one).check(found)
    assert len(found.steps) == 2


def test_a_broken_rule_is_mended_with_the_fewest_moves(only_heuristics: None) -> None:
    apart = DomainRule("apart", "apart", (0, 1, 2, 3), (0, 1, 2, 3))
    one = problem([9, 9, 9, 9], [(0, 1), (0, 1), (0, 1), (1, 1)], rules=[apart])
    found = planned(one)
    assert found.cost == found.lower_bound == 2
    assert sorted(found.hosts.tolist()) == [0, 1, 2, 3]


def test_room_that_is_lacking_stays_as_it_is() -> None:
    one = problem([0, -3, 2], [(0, 2), (1, 1)], leave=[0])
    assert planned(one).hosts.tolist() == [2, 1]


def test_a_pinned_unit_is_said_and_the_others_leave() -> None:
    one = problem([0, 9], [(0, 1), (0, 2)], leave=[0], pinned=[1])
    found = refused(one)
    assert found.proved
    assert found.stuck == (Stuck(1, StuckCode.PINNED),)
    assert found.partial is not None
    assert [step.unit for step in found.partial.steps] == [0]


def test_a_rule_that_excludes_each_host_is_named() -> None:
    apart = DomainRule("apart", "apart", (0, 1), (0, 1))
    found = refused(problem([0, 9], [(0, 1), (1, 1)], leave=[0], rules=[apart]))
    assert found.proved
    assert found.stuck == (Stuck(0, StuckCode.POLICY, ("apart",)),)


def test_what_fits_alone_but_not_together_is_undecided_or_without_room() -> None:
    found = refused(problem([0, 3], [(0, 2), (0, 2)], leave=[0]))
    assert found.proved
    assert len(found.stuck) == 1
    assert found.stuck[0].code is StuckCode.UNDECIDED
    assert found.partial is not None


def test_the_search_ends_with_the_deadline() -> None:
    ticks = count()
    one = problem([0, *([1] * 30)], [(0, 1)] * 30, leave=[0])
    with deadline.within(lambda: float(next(ticks)), 3):
        found = plan_moves(one)
    assert isinstance(found, NoPlan)
    assert not found.proved
    assert found.stuck


def test_more_units_than_fit_anywhere_are_proved_not_to_fit(only_heuristics: None) -> None:
    found = refused(problem([0, 2, 3], [(0, 2)] * 3, leave=[0]))
    assert found.proved
    assert len(found.stuck) == 1
    assert found.partial is not None
    assert len(found.partial.steps) == 2


def test_units_beside_one_that_can_go_nowhere_have_their_reasons(only_heuristics: None) -> None:
    found = refused(problem([0, 2], [(0, 5), (0, 2), (0, 1)], leave=[0]))
    assert found.proved
    assert found.stuck[0] == Stuck(0, StuckCode.NO_ROOM)
    assert {stuck.unit for stuck in found.stuck} | {
        step.unit for step in (found.partial.steps if found.partial else ())
    } == {0, 1, 2}
