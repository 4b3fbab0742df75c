"""Questions on which a book of reservations beside the ledger goes wrong, answered right."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.usecases.leases.conftest import World

from moorage.domain.errors import Infeasible
from moorage.usecases.ledger.allocations import release

Make = Callable[..., World]


def roles(*members: tuple[str, int, int], **more: Any) -> dict[str, Any]:
    """Roles of name, count and VCPU."""
    return {
        "name": "e",
        "members": [
            {"name": name, "count": count, "resources": {"VCPU": vcpu}}
            for name, count, vcpu in members
        ],
        **more,
    }


def test_whole_hosts_back_to_back(world: Make) -> None:
    here = world(64)
    here.lease(10, 12, vcpu=64)
    here.lease(12, 14, vcpu=64)


def test_every_slot_of_a_reservation_counts(world: Make) -> None:
    here = world(64)
    here.lease(10, 12, vcpu=20, members=3)
    with pytest.raises(Infeasible):
        here.lease(10, 12, vcpu=20, members=2)


def test_two_reservations_of_one_lease_count_both(world: Make) -> None:
    here = world(64)
    with pytest.raises(Infeasible):
        here.lease(10, 12, body=roles(("a", 1, 40), ("b", 1, 40)))
    assert here.service.store.leases(project_id=None) == []


def test_a_reservation_over_several_hosts_leaves_what_it_does_not_take(world: Make) -> None:
    here = world(32, 32)
    here.lease(10, 12, members=40)
    here.lease(10, 12, members=10)
    here.lease(10, 12, members=14)
    with pytest.raises(Infeasible):
        here.lease(10, 12, members=1)


def test_a_lease_of_one_host_says_nothing_of_another(world: Make) -> None:
    here = world(64, 64)
    here.lease(10, 12, vcpu=64)
    here.lease(10, 12, members=3, vcpu=20)


def test_a_lease_that_has_not_started_moves_for_another(world: Make) -> None:
    here = world(64, 32)
    blocked = here.server(32, 1)  # so the first lease can only go to the large host
    first = here.lease(10, 12, vcpu=32)
    assert here.host_of(first) == here.hosts[0]
    release(here.service.store, blocked)
    here.lease(10, 12, vcpu=64)
    moved = here.service.store.lease(first.lease.id)
    (place,) = here.service.store.decision(moved.decision_id).places.values()
    assert place.host == here.hosts[1]


def test_a_neighbours_peak_outside_the_window_does_not_count(world: Make) -> None:
    here = world(64)
    here.lease(8, 10, vcpu=60)
    here.lease(11, 13, vcpu=10)
    here.lease(12, 13, vcpu=50)
    here.lease(10, 12, vcpu=54)
    with pytest.raises(Infeasible):
        here.lease(10, 12.5, vcpu=10)


def test_a_group_that_fails_in_part_leaves_nothing_behind(world: Make) -> None:
    here = world(16)
    with pytest.raises(Infeasible):
        here.lease(10, 12, body=roles(("a", 1, 8), ("b", 1, 16)))
    assert here.service.store.bookings() == []
    made = here.lease(10, 12, body=roles(("a", 1, 8), ("b", 1, 8)))
    with pytest.raises(Infeasible):
        here.change(made.lease.id, counts={"a": 3}, name="x")
    assert here.service.store.lease(made.lease.id) == made.lease
