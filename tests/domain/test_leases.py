"""Leases as values: their life, what may change when, and the periods that follow from terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.errors import InvalidDescription, WrongState
from moorage.domain.leases import (
    CHANGEABLE,
    LEASE_TABLE,
    Aspect,
    LeaseState,
    LeaseStep,
    Terms,
    check_change,
    lease_after,
    reservation_class,
)
from moorage.domain.period import DAY, FOREVER, HOUR, Period
from moorage.domain.resources import is_custom_name

NINE = 1_800_000_000_000_000


def test_every_state_is_reached_and_only_closed_ends() -> None:
    reached, left = {LeaseState.OFFERED}, [LeaseState.OFFERED]
    while left:
        state = left.pop()
        after = {new for (old, _), new in LEASE_TABLE.items() if old is state}
        left += after - reached
        reached |= after
    assert reached == set(LeaseState)
    assert {old for old, _ in LEASE_TABLE} == set(LeaseState) - {LeaseState.CLOSED}


@pytest.mark.parametrize("state", LeaseState)
@pytest.mark.parametrize("step", LeaseStep)
def test_a_step_is_in_the_table_or_refused(state: LeaseState, step: LeaseStep) -> None:
    if (state, step) in LEASE_TABLE:
        assert lease_after(state, step) is LEASE_TABLE[state, step]
    else:
        with pytest.raises(WrongState, match=f"{step} a lease that is {state}"):
            lease_after(state, step)


def test_a_start_that_has_come_stays() -> None:
    check_change(LeaseState.PENDING, Aspect.START)
    for state in set(LeaseState) - {LeaseState.PENDING}:
        with pytest.raises(WrongState, match="the start of a lease"):
            check_change(state, Aspect.START)
    assert all(
        Aspect.NAME in aspects
        for state, aspects in CHANGEABLE.items()
        if state is not LeaseState.OFFERED
    )


@given(
    start=st.integers(NINE, NINE + 365 * DAY),
    length=st.integers(1, 90 * DAY),
    lead=st.integers(0, DAY),
    cleaning=st.integers(0, DAY),
)
def test_places_are_kept_before_and_after(
    start: int, length: int, lead: int, cleaning: int
) -> None:
    terms = Terms(Period(start, start + length), lead=lead, cleaning=cleaning)
    assert terms.occupied.start == start - lead
    assert terms.occupied.end == start + length + cleaning
    assert terms.expires_at == start + length
    assert terms.moved(Period(start + 1, start + length + 1)).occupied.start == start - lead + 1


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ({"period": Period(NINE, FOREVER)}, "lease.end"),
        ({"lead": -1}, "lease.lead"),
        ({"cleaning": -HOUR}, "lease.cleaning"),
        ({"expiry": 0}, "lease.expiry"),
        ({"expiry": DAY}, "lease.expiry"),
    ],
)
def test_terms_that_mean_nothing_are_refused(words: dict[str, int], path: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        Terms(**({"period": Period(NINE, NINE + DAY)} | words))  # type: ignore[arg-type]
    assert caught.value.path == path


def test_a_reservation_has_a_class_of_its_own() -> None:
    name = reservation_class("0b1e9d5c-3f1a-4a6e-8f5b-6f1d2c3b4a59")
    assert name == "CUSTOM_RESERVATION_0B1E9D5C_3F1A_4A6E_8F5B_6F1D2C3B4A59"
    assert is_custom_name(name)
