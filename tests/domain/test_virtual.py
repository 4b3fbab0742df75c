"""Classes that no inventory has: what a flavor says by them."""

import pytest

from moorage.domain.leases import reservation_class
from moorage.domain.period import HOUR, LONGEST
from moorage.domain.virtual_classes import (
    HOURS,
    MOST,
    PREEMPTIBLE,
    RESERVATION,
    declared_terms,
    reservation_of,
)

ID = "0b1f3f8a-6a5d-4f0f-8d3a-6d3f4a0c9c11"


@pytest.mark.parametrize(
    "amounts", [{}, {"VCPU": 1}, {"CUSTOM_GPU": 1}, {"CUSTOM_MOORAGE_BERTH": 2}]
)
def test_nearly_everybody_wishes_nothing(amounts: dict[str, int]) -> None:
    assert declared_terms([amounts, {"DISK_GB": 5}]) is None


def test_a_wish_is_summed_over_groups() -> None:
    name = reservation_class(ID)
    found = declared_terms([{"VCPU": 1, HOURS: 2}, {HOURS: 1, PREEMPTIBLE: 1, name: 1}, {name: 1}])
    assert found is not None
    assert (found.hours, found.life, found.preemptible) == (3, 3 * HOUR, True)
    assert dict(found.tickets) == {name: 2}
    assert found.terms == (HOURS, PREEMPTIBLE)


def test_a_reservation_is_found_by_its_class() -> None:
    name = reservation_class(ID)
    assert name.startswith(RESERVATION)
    assert reservation_of(name) == ID


def test_the_longest_stay_can_be_said() -> None:
    assert MOST[HOURS] * HOUR == LONGEST
