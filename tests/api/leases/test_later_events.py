"""What a lease tells after hosts have failed: resources that are missing, or have changed."""

from typing import Any

import pytest
from tests.api.leases.conftest import TWO, Door, instances, whole
from tests.api.leases.test_changes import now_is, put
from tests.api.leases.test_out_of_service import disable, sweep
from tests.api.leases.test_reservation_changes import begun, hosts, made, shown

METAL = '["==", "$kind", "metal"]'


def flags(told: dict[str, Any]) -> list[tuple[bool, bool]]:
    """Missing and changed, of each reservation."""
    return [(one["missing_resources"], one["resources_changed"]) for one in told["reservations"]]


@pytest.fixture
def four() -> Any:
    door = Door(TWO.replace("count: 2", "count: 4"))
    door.offer("n1", "n2", kind="metal")
    yield door
    door.service.close()


def test_a_running_lease_that_gets_another_host_says_so_for_good(four: Door) -> None:
    lease = made(four.lease("10:00", "12:00", whole(resource_properties=METAL), instances(1, 64)))
    begun(four, lease)
    assert shown(four, lease)["degraded"] is False
    (was,) = [one for one in hosts(four, lease) if one in {"1", "2"}]
    disable(four, f"n{was}")
    sweep(four)
    told = shown(four, lease)
    assert flags(told) == [(False, True), (False, False)]
    assert told["degraded"] is True, "as Blazar: resources are missing or have changed"
    disable(four, f"n{was}", disabled=False)
    sweep(four)
    assert shown(four, lease) == told
    assert put(four, lease, {"name": "n", "end_date": "2026-12-07 13:00"}).status_code == 200
    assert flags(shown(four, lease)) == flags(told)


def test_a_lease_that_has_not_begun_has_just_other_hosts(four: Door) -> None:
    lease = made(four.lease("10:00", "12:00", whole(resource_properties=METAL)))
    (was,) = hosts(four, lease)
    disable(four, f"n{was}")
    sweep(four)
    told = shown(four, lease)
    assert (hosts(four, lease) != [was], flags(told), told["degraded"]) == (
        True,
        [(False, False)],
        False,
    )


def test_of_several_reservations_only_the_one_concerned_misses_something(four: Door) -> None:
    wishes = (whole(2, 2, resource_properties=METAL), instances(1, 1))
    lease = made(four.lease("10:00", "12:00", *wishes))
    begun(four, lease)
    disable(four, "n1")
    sweep(four)
    told = shown(four, lease)
    assert (flags(told), told["degraded"]) == ([(True, False), (False, False)], True)
    disable(four, "n1", disabled=False)
    sweep(four)
    told = shown(four, lease)
    assert (flags(told), told["degraded"]) == ([(False, False), (False, False)], False)


def test_the_event_before_the_end_is_done_once_it_has_come(four: Door) -> None:
    lease = made(four.lease("10:00", "12:00", instances(1, 1)))
    begun(four, lease)

    def status() -> str:
        (one,) = [
            one for one in shown(four, lease)["events"] if one["event_type"] == "before_end_lease"
        ]
        return str(one["status"])

    assert status() == "UNDONE"
    now_is(four, "11:00")
    assert status() == "DONE"
    assert put(four, lease, {"end_date": "2026-12-07 13:00"}).status_code == 200
    assert status() == "UNDONE", "it comes again"
