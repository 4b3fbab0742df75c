import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.decisions import (
    CLAIM_TABLE,
    DECISION_TABLE,
    Claim,
    ClaimState,
    ClaimStep,
    Decision,
    DecisionState,
    DecisionStep,
    Solve,
    claim_after,
    decision_after,
)
from moorage.domain.errors import WrongState
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.domain.requests import Objective

TERMINAL_DECISIONS = {DecisionState.EXPIRED, DecisionState.RELEASED, DecisionState.SUPERSEDED}
TERMINAL_CLAIMS = {ClaimState.ENDED, ClaimState.FAILED, ClaimState.EXPIRED}


@pytest.mark.parametrize("state", DecisionState)
@pytest.mark.parametrize("step", DecisionStep)
def test_a_decision_moves_only_by_the_table(state: DecisionState, step: DecisionStep) -> None:
    if (state, step) in DECISION_TABLE:
        assert decision_after(state, step) is DECISION_TABLE[state, step]
    else:
        with pytest.raises(WrongState, match=f"cannot {step} a decision that is {state}"):
            decision_after(state, step)


@pytest.mark.parametrize("state", ClaimState)
@pytest.mark.parametrize("step", ClaimStep)
def test_a_claim_moves_only_by_the_table(state: ClaimState, step: ClaimStep) -> None:
    if (state, step) in CLAIM_TABLE:
        assert claim_after(state, step) is CLAIM_TABLE[state, step]
    else:
        with pytest.raises(WrongState):
            claim_after(state, step)


def test_nothing_leaves_a_terminal_state_and_everything_else_has_a_way_out() -> None:
    assert not {s for s, _ in DECISION_TABLE} & TERMINAL_DECISIONS
    assert {s for s, _ in DECISION_TABLE} | TERMINAL_DECISIONS == set(DecisionState)
    assert not {s for s, _ in CLAIM_TABLE} & TERMINAL_CLAIMS
    assert {s for s, _ in CLAIM_TABLE} | TERMINAL_CLAIMS == set(ClaimState)


def booking(state: BookingState, *, end: int = FOREVER, lapses_at: int = FOREVER) -> Booking:
    return Booking("c", "p", {"VCPU": 1}, Period(10, end), state=state, lapses_at=lapses_at)


def test_a_hold_is_gone_at_the_instant_it_lapses() -> None:
    held = booking(BookingState.HELD, lapses_at=20)
    assert held.live(19)
    assert not held.live(20)


def test_an_end_does_not_stop_a_server() -> None:
    overrun = booking(BookingState.ALLOCATED, end=20)
    assert overrun.live(25)
    assert overrun.occupies_until(15) == 20
    assert overrun.occupies_until(20) == FOREVER
    assert not booking(BookingState.RESERVED, end=20).live(20)


@pytest.mark.parametrize(
    ("total", "reserved", "ratio", "capacity"),
    [(16, 0, 1.0, 16), (16, 2, 16.0, 224), (3, 0, 1.5, 4), (5, 5, 1.0, 0), (7, 0, 0.5, 3)],
)
def test_capacity_is_what_placement_makes_of_it(
    total: int, reserved: int, ratio: float, capacity: int
) -> None:
    assert Inventory("VCPU", total, reserved, allocation_ratio=ratio).capacity == capacity


@pytest.mark.parametrize(
    ("amount", "rule"), [(4, None), (1, "min_unit 2"), (10, "max_unit 8"), (5, "step_size 2")]
)
def test_the_broken_unit_rule_is_named(amount: int, rule: str | None) -> None:
    inventory = Inventory("VCPU", 16, min_unit=2, max_unit=8, step_size=2)
    assert inventory.rule_broken_by(amount) == rule


SOLVE = Solve("greedy", value=0, bound=0, proven=True, wall_ms=0.0, seed=0)


def decision(state: DecisionState) -> Decision:
    return Decision(
        id="d",
        ensemble_id="e",
        project_id="p",
        ensemble_generation=0,
        state=state,
        period=Period(0),
        expires_at=20,
        hold=10,
        objective=Objective.SPREAD,
        solve=SOLVE,
        places={},
        policies=(),
        revision=1,
    )


@pytest.mark.parametrize("state", DecisionState)
def test_a_hold_reads_as_expired_from_its_last_instant_on(state: DecisionState) -> None:
    assert decision(state).state_at(19) is state
    lapsed = DecisionState.EXPIRED if state is DecisionState.HELD else state
    assert decision(state).state_at(20) is lapsed


@pytest.mark.parametrize("state", ClaimState)
def test_a_claim_reads_as_expired_from_its_last_instant_on(state: ClaimState) -> None:
    claim = Claim("c", "d", "e", "p", MemberName("db", 0), state, lapses_at=20)
    assert claim.state_at(19) is state
    lapsed = ClaimState.EXPIRED if state is ClaimState.BUILDING else state
    assert claim.state_at(20) is lapsed
