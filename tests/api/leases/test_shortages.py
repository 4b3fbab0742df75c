"""What a refusal says is short: hosts or floating IPs."""

from typing import Any

import pytest
from tests.api.leases.conftest import FLAVOR, TWO, Door, instances, whole
from tests.api.leases.test_changes import part, put
from tests.api.leases.test_reservation_changes import NETWORK, made
from tests.api.leases.test_wire import late

from moorage.testing.service import OPERATOR

HOSTS, ADDRESSES = "Not enough hosts available", "Not enough floating IPs available"
OURS = {"OpenStack-API-Version": "reservation 1.1"}
FITS = {"host": whole(), "instance": instances(1, 1), "flavor": FLAVOR | {"amount": 1}}
FITS_NOT = {
    "host": whole(3, 3),
    "no such host": whole(resource_properties='["==", "$kind", "z"]'),
    "instance": instances(1, 65),
    "flavor": FLAVOR | {"amount": 65},
}


def ips(amount: int, network: str = NETWORK, *required: str) -> dict[str, Any]:
    return {
        "resource_type": "virtual:floatingip",
        "network_id": network,
        "amount": amount,
        "required_floatingips": list(required),
    }


IPS_SHORT = {"amount": ips(5), "network": ips(1, "unknown")}


@pytest.fixture
def door() -> Any:
    door = Door(TWO)
    for last in range(4):
        body = {"floating_network_id": NETWORK, "floating_ip_address": f"10.0.0.{last}"}
        assert door.call("POST", "/floatingips", body, caller=OPERATOR).status_code == 201
    door.offer("n1", "n2")
    yield door
    door.service.close()


def refused(door: Door, *wishes: dict[str, Any]) -> tuple[int, str]:
    answer = door.lease("10:00", "12:00", *wishes)
    assert door.call("GET", "/leases").json["leases"] == []
    return answer.status_code, late(answer, answer.status_code)


@pytest.mark.parametrize("short", IPS_SHORT.values(), ids=IPS_SHORT)
@pytest.mark.parametrize("beside", [None, *FITS.values()], ids=["alone", *FITS])
def test_short_addresses_are_an_invalid_input(
    door: Door, short: dict[str, Any], beside: dict[str, Any] | None
) -> None:
    wishes = (short,) if beside is None else (beside, short)
    assert refused(door, *wishes) == (400, ADDRESSES)
    assert refused(door, *wishes[::-1]) == (400, ADDRESSES)


def test_reservations_of_addresses_share_a_network(door: Door) -> None:
    assert refused(door, ips(3), ips(2)) == (400, ADDRESSES)


@pytest.mark.parametrize("short", FITS_NOT.values(), ids=FITS_NOT)
def test_of_other_types_hosts_are_short(door: Door, short: dict[str, Any]) -> None:
    assert refused(door, short) == (500, HOSTS)
    assert refused(door, short, ips(4)) == (500, HOSTS)
    assert refused(door, ips(4), short) == (500, HOSTS)


@pytest.mark.parametrize("short", FITS_NOT.values(), ids=FITS_NOT)
def test_of_several_that_are_short_the_first_is_named(door: Door, short: dict[str, Any]) -> None:
    assert refused(door, short, ips(5)) == (500, HOSTS)
    assert refused(door, ips(5), short) == (400, ADDRESSES)


def test_addresses_that_others_have_are_short(door: Door) -> None:
    lease = made(door.lease("10:00", "12:00", ips(1, NETWORK, "10.0.0.1"), instances(1, 1)))
    other = made(door.lease("10:00", "12:00", ips(1)))
    for wish in (ips(3), ips(1, NETWORK, "10.0.0.1")):
        assert late(door.lease("11:00", "13:00", wish), 400) == ADDRESSES
        assert late(door.lease("11:00", "13:00", instances(1, 1), wish), 400) == ADDRESSES
    assert late(put(door, other, part(other, amount=4)), 400) == ADDRESSES
    assert late(put(door, lease, part(lease, amount=4)), 400) == ADDRESSES
    second = {"id": lease["reservations"][1]["id"], "vcpus": 65}
    assert late(put(door, lease, {"reservations": [second]}), 500) == HOSTS
    made(door.lease("12:00", "13:00", ips(4)))
    assert late(put(door, lease, {"end_date": "2026-12-07 12:30"}), 400) == ADDRESSES


def test_ours_is_a_conflict_with_the_same_words(door: Door) -> None:
    dates = {"start_date": "2026-12-07 10:00", "end_date": "2026-12-07 12:00"}
    body = {"name": "l", **dates, "reservations": [ips(5)]}
    answer = door.call("POST", "/leases", body, headers=OURS)
    assert answer.status_code == 409
    assert answer.json["error_message"].startswith(f"{ADDRESSES}: ")
    assert door.service.store.explanation(answer.json["explanation_id"])
