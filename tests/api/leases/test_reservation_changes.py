"""What becomes of reservations that change: before the lease begins, and while it runs."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from tests.api.leases.conftest import FLAVOR, TWO, Door, granted, instances, whole
from tests.api.leases.test_changes import now_is, part, put, work
from tests.api.leases.test_wire import late

from moorage.domain.leases import LeaseState
from moorage.testing.service import OPERATOR, TENANT

NETWORK = "c2b0e4b1-7d4a-4f5e-9d0b-0a8f8c1d2e3f"


def shown(door: Door, lease: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = door.call("GET", f"/leases/{lease['id']}").json["lease"]
    return found


def hosts(door: Door, lease: dict[str, Any]) -> list[str]:
    """The ids of the hosts on which the lease has places."""
    rows = door.call("GET", "/os-hosts/allocations", caller=OPERATOR).json["allocations"]
    return [
        row["resource_id"]
        for row in rows
        if any(one["lease_id"] == lease["id"] for one in row["reservations"])
    ]


def made(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json["lease"]
    return found


def begun(door: Door, lease: dict[str, Any]) -> None:
    now_is(door, "10:00")
    work(door)
    assert door.service.store.lease(lease["id"]).state is LeaseState.ACTIVE


@pytest.mark.parametrize(
    ("key", "value"), [("vcpus", 64), ("memory_mb", 65536), ("disk_gb", 1000), ("vcpus", "64")]
)
def test_a_pending_instance_takes_its_new_size(one: Door, key: str, value: Any) -> None:
    lease = made(one.lease("10:00", "12:00", instances(1, 2)))
    assert put(one, lease, part(lease, **{key: value})).status_code == 200
    told = shown(one, lease)["reservations"][0]
    assert told[key] == int(value)
    assert told["id"] == lease["reservations"][0]["id"]
    beside = {"vcpus": 1, "memory_mb": 1, "disk_gb": 1}
    assert not granted(one.lease("11:00", "13:00", instances(1, 1) | beside)), "it has all"
    assert granted(one.lease("12:00", "13:00", instances(1, 1) | beside))


def test_a_smaller_size_gives_room_back(one: Door) -> None:
    lease = made(one.lease("10:00", "12:00", instances(2, 30)))
    assert not granted(one.lease("10:00", "12:00", instances(1, 40)))
    assert put(one, lease, part(lease, vcpus=10)).status_code == 200
    assert granted(one.lease("10:00", "12:00", instances(1, 40)))


@pytest.mark.parametrize(("affinity", "count"), [(True, 1), (False, 2)])
def test_a_pending_instance_takes_another_affinity(
    two: Door,
    affinity: bool,  # noqa: FBT001 - a value of the wire
    count: int,
) -> None:
    two.offer("n1", "n2")
    lease = made(two.lease("10:00", "12:00", instances(2, 10, affinity=not affinity)))
    assert len(hosts(two, lease)) == 3 - count
    assert put(two, lease, part(lease, affinity=affinity)).status_code == 200
    assert shown(two, lease)["reservations"][0]["affinity"] is affinity
    assert len(hosts(two, lease)) == count
    assert put(two, lease, part(lease, affinity="None")).status_code == 200
    ensemble = two.service.store.ensemble(two.service.store.lease(lease["id"]).ensemble_id)
    assert ensemble.policies == ()


@pytest.mark.parametrize("reservation", [whole(), instances(1, 1)], ids=["host", "instance"])
def test_a_pending_reservation_takes_another_requirement(
    two: Door, reservation: dict[str, Any]
) -> None:
    two.offer("n1", kind="x")
    two.offer("n2", kind="y")
    wish = reservation | {"resource_properties": '["==", "$kind", "x"]'}
    lease = made(two.lease("10:00", "12:00", wish))
    assert hosts(two, lease) == ["1"]
    changed = put(two, lease, part(lease, resource_properties='["==", "$kind", "y"]'))
    assert changed.status_code == 200, changed.text
    assert hosts(two, lease) == ["2"]
    other = part(lease, resource_properties='["==", "$kind", "z"]')
    assert "Not enough hosts" in late(put(two, lease, other), 500)
    assert hosts(two, lease) == ["2"]
    told = shown(two, lease)["reservations"][0]
    assert told["resource_properties"] == '["==", "$kind", "y"]'


def test_hypervisor_properties_change_as_well(two: Door) -> None:
    two.offer("n1", kind="x")
    two.offer("n2", kind="y")
    lease = made(two.lease("10:00", "12:00", whole(resource_properties='["==", "$kind", "x"]')))
    wish = '["==", "$kind", "y"]'
    clash = part(lease, hypervisor_properties=wish)
    assert "Not enough hosts" in late(put(two, lease, clash), 500)
    both = part(lease, hypervisor_properties=wish, resource_properties="")
    assert put(two, lease, both).status_code == 200
    assert hosts(two, lease) == ["2"]


def test_instances_leave_hosts_that_their_lease_now_has_whole(two: Door) -> None:
    two.offer("n1", kind="x")
    two.offer("n2", kind="y")
    wishes = (whole(resource_properties='["==", "$kind", "x"]'), instances(1, 1))
    lease = made(two.lease("10:00", "12:00", *wishes))
    change = part(lease, resource_properties='["==", "$kind", "y"]')
    assert put(two, lease, change).status_code == 200
    rows = two.call("GET", "/os-hosts/allocations", caller=OPERATOR).json["allocations"]
    found = {row["resource_id"]: [one["id"] for one in row["reservations"]] for row in rows}
    first, second = (one["id"] for one in lease["reservations"])
    assert found == {"2": [first], "1": [second]}


def test_several_values_and_dates_change_together_or_not_at_all(one: Door) -> None:
    lease = made(one.lease("10:00", "12:00", instances(1, 2)))
    wish = {"end_date": "2026-12-07 14:00", "name": "m", **part(lease, vcpus=8, amount=8)}
    assert put(one, lease, wish).status_code == 200
    after = shown(one, lease)
    assert (after["name"], after["end_date"][11:16]) == ("m", "14:00")
    assert (after["reservations"][0]["vcpus"], after["reservations"][0]["amount"]) == (8, 8)
    assert put(one, lease, wish | {"name": "n", **part(lease, vcpus=9)}).status_code == 500
    assert shown(one, lease) == after


# --- while it runs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"vcpus": 3},
        {"memory_mb": 1},
        {"disk_gb": 1},
        {"affinity": True},
        {"resource_properties": '["==", "$vcpus", "64"]'},
    ],
    ids=str,
)
def test_of_running_instances_only_the_amount_changes(one: Door, change: dict[str, Any]) -> None:
    one.offer("n1")
    lease = made(one.lease("10:00", "12:00", instances(1, 2)))
    begun(one, lease)
    (key,) = change
    assert key in late(put(one, lease, part(lease, **change)), 409)
    assert put(one, lease, part(lease, vcpus="2", amount=2)).status_code == 200
    assert shown(one, lease)["reservations"][0]["amount"] == 2


def test_running_hosts_stay_and_their_requirement_may_change_if_they_meet_it(two: Door) -> None:
    two.offer("n1", kind="x", disk="fast")
    two.offer("n2", kind="y", disk="fast")
    lease = made(two.lease("10:00", "12:00", whole(resource_properties='["==", "$kind", "x"]')))
    begun(two, lease)
    other = part(lease, resource_properties='["==", "$kind", "y"]')
    assert "Not enough hosts" in late(put(two, lease, other), 500)
    assert hosts(two, lease) == ["1"]
    wider = part(lease, resource_properties='["==", "$disk", "fast"]', max=2)
    assert put(two, lease, wider).status_code == 200
    assert hosts(two, lease) == ["1", "2"]
    assert "keeps its hosts" in late(put(two, lease, part(lease, max=1)), 409)


def test_a_running_lease_gets_as_many_hosts_as_there_are(two: Door) -> None:
    two.offer("n1", "n2")
    lease = made(two.lease("10:00", "12:00", whole()))
    begun(two, lease)
    assert put(two, lease, part(lease, max=7)).status_code == 200
    assert hosts(two, lease) == ["1", "2"]
    assert put(two, lease, part(lease, min=3)).status_code == 500


def test_an_extended_lease_gets_hosts_that_it_lacked(two: Door) -> None:
    two.offer("n1")
    lease = made(two.lease("10:00", "12:00", whole(1, 2)))
    assert hosts(two, lease) == ["1"]
    two.offer("n2")
    assert put(two, lease, {"end_date": "2026-12-07 11:00"}).status_code == 200
    assert hosts(two, lease) == ["1"], "shorter"
    assert put(two, lease, {"end_date": "2026-12-07 13:00"}).status_code == 200
    wider = part(lease, max=2)
    assert put(two, lease, wider).status_code == 200
    assert hosts(two, lease) == ["1", "2"]


def test_a_reservation_of_which_no_value_is_given_does_not_grow(two: Door) -> None:
    two.offer("n1")
    lease = made(two.lease("10:00", "12:00", whole(1, 2)))
    two.offer("n2")
    for change in ({}, {"before_end": "default"}, {"unknown": 7}):
        assert put(two, lease, part(lease, **change)).status_code == 200
        assert hosts(two, lease) == ["1"]
    assert put(two, lease, part(lease, min=1)).status_code == 200
    assert hosts(two, lease) == ["1", "2"], "as many as there are, up to max"


# --- requirements of others -----------------------------------------------------------------------


def test_a_tenant_keeps_a_requirement_that_it_could_not_name(two: Door) -> None:
    two.offer("n1", "n2")
    by_name = whole(resource_properties='["==", "$hypervisor_hostname", "n2"]')
    dates = {"start_date": "2026-12-07 10:00", "end_date": "2026-12-07 12:00"}
    body = {"name": "l", **dates, "reservations": [by_name]}
    own = replace(OPERATOR, project_id=TENANT.project_id, user_id=TENANT.user_id)
    lease = made(two.call("POST", "/leases", body, caller=own))
    for change in (
        {"name": "m"},
        {"end_date": "2026-12-07 13:00"},
        part(lease, max=1),
        part(lease, hypervisor_properties='["==", "$vcpus", "64"]'),
    ):
        assert put(two, lease, change).status_code == 200, change
        assert hosts(two, lease) == ["2"]
    for wish in ('["==", "$hypervisor_hostname", "n1"]', '["!=", "$service_name", "n2"]'):
        assert "may not name" in late(put(two, lease, part(lease, resource_properties=wish)), 403)
    begun(two, lease)
    assert put(two, lease, part(lease, resource_properties="")).status_code == 200
    assert "may not name" in late(put(two, lease, part(lease, **by_name)), 403)


def test_a_tenant_keeps_a_requirement_whose_property_became_private(two: Door) -> None:
    two.offer("n1", "n2", kind="x")
    lease = made(two.lease("10:00", "12:00", whole(resource_properties='["==", "$kind", "x"]')))
    private = {"private": True}
    path = "/os-hosts/properties/kind"
    assert two.call("PATCH", path, private, caller=OPERATOR).status_code == 200
    wider = part(lease, max=2, hypervisor_properties='["==", "$vcpus", "64"]')
    assert put(two, lease, wider).status_code == 200
    assert hosts(two, lease) == ["1", "2"]
    other = part(lease, resource_properties='["!=", "$kind", "y"]')
    assert "Not enough hosts" in late(put(two, lease, other), 500)


# --- what never changes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reservation", "change", "status"),
    [
        (whole(), {"before_end": "snapshot"}, 409),
        (whole(), {"resource_type": "virtual:instance"}, 409),
        (FLAVOR | {"amount": 1}, {"flavor_id": "large"}, 409),
        (FLAVOR | {"amount": 1}, {"affinity": True}, 409),
    ],
    ids=range(4),
)
def test_what_never_changes_is_refused(
    one: Door, reservation: dict[str, Any], change: dict[str, Any], status: int
) -> None:
    one.offer("n1")
    lease = made(one.lease("10:00", "12:00", reservation))
    assert late(put(one, lease, part(lease, **change)), status)
    assert shown(one, lease) == lease
    assert put(one, lease, part(lease, amount=1, unknown="x")).status_code == 200


def test_addresses_may_be_required_no_more(one: Door) -> None:
    for last in range(3):
        body = {"floating_network_id": NETWORK, "floating_ip_address": f"10.0.0.{last}"}
        assert one.call("POST", "/floatingips", body, caller=OPERATOR).status_code == 201
    wish = {
        "resource_type": "virtual:floatingip",
        "network_id": NETWORK,
        "amount": 2,
        "required_floatingips": ["10.0.0.1", "10.0.0.2"],
    }
    lease = made(one.lease("10:00", "12:00", wish))
    for change, words in (
        ({"required_floatingips": ["10.0.0.0"]}, "can only become an empty list"),
        ({"required_floatingips": ["10.0.0.2"]}, "can only become an empty list"),
        ({"required_floatingips": ["10.0.0.9"]}, "can only become an empty list"),
        ({"network_id": "another"}, "network_id of a reservation cannot be changed"),
        ({"network_id": None}, "network_id of a reservation cannot be changed"),
        ({"amount": 1}, "more required_floatingips than amount"),
        ({"amount": 4}, "Not enough floating IPs available"),
    ):
        assert words in late(put(one, lease, part(lease, **change)), 400)
        assert shown(one, lease) == lease
    assert put(one, lease, part(lease, amount=3)).status_code == 200
    assert put(one, lease, part(lease, required_floatingips=[], amount=1)).status_code == 200
    told = shown(one, lease)["reservations"][0]
    assert (told["amount"], told["required_floatingips"]) == (1, [])
    again = wish | {"amount": 1, "required_floatingips": ["10.0.0.0"]}
    assert granted(one.lease("10:00", "12:00", again | {"amount": 2})), "two are free"


def test_reservations_of_another_api_are_changed_there(one: Door) -> None:
    role = {"name": "web", "resources": {"VCPU": 1}}
    body = {"name": "n", "duration": "PT1H", "ensemble": {"name": "n", "members": [role]}}
    assert one.service.call("POST", "/leases", {"lease": body}).status_code == 201
    (told,) = one.call("GET", "/leases").json["leases"]
    assert put(one, told, part(told, amount=3)).status_code == 409
    assert put(one, told, {"name": "n", **part(told)}).status_code == 200


# --- ended now ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["now", "2026-12-07 10:30"])
def test_a_running_lease_that_ends_now_is_free_at_once(one: Door, end: str) -> None:
    one.offer("n1")
    lease = made(one.lease("10:00", "12:00", whole()))
    begun(one, lease)
    now_is(one, "10:30")
    ended = put(one, lease, {"end_date": end, "name": "over"})
    assert ended.status_code == 200, ended.text
    assert ended.json["lease"]["status"] == "UPDATING"
    after = shown(one, lease)
    assert (after["status"], after["name"]) == ("TERMINATED", "over")
    assert after["end_date"] == "2026-12-07T10:30:00.000000"
    assert hosts(one, lease) == []
    assert granted(one.lease("10:30", "12:00", whole()))


@pytest.mark.parametrize("end", ["now", "2026-12-07 10:00"])
@pytest.mark.parametrize("active", [True, False], ids=["active", "not yet active"])
@pytest.mark.parametrize("reminder", [{}, {"before_end_date": "2026-12-07 11:30"}], ids=len)
def test_a_lease_that_ends_as_it_begins_ends_at_its_start(
    one: Door,
    end: str,
    reminder: dict[str, str],
    active: bool,  # noqa: FBT001 - a case
) -> None:
    one.offer("n1")
    lease = made(one.lease("10:00", "12:00", whole()))
    assert put(one, lease, reminder).status_code == 200
    now_is(one, "10:00")
    if active:
        work(one)
    assert put(one, lease, {"end_date": end}).status_code == 200
    work(one)
    after = shown(one, lease)
    assert (after["status"], after["end_date"]) == ("TERMINATED", "2026-12-07T10:00:00.000000")
    events = {(one["event_type"], one["time"][11:], one["status"]) for one in after["events"]}
    kinds = ("start_lease", "end_lease", "before_end_lease")
    assert events == {(kind, "10:00:00.000000", "DONE") for kind in kinds}
    assert granted(one.lease("10:00", "12:00", whole()))


def test_a_lease_whose_start_is_overdue_ends_now(one: Door) -> None:
    lease = made(one.lease("10:00", "12:00", instances(1, 1)))
    now_is(one, "10:05")
    assert one.service.store.lease(lease["id"]).state is LeaseState.PENDING
    assert put(one, lease, {"end_date": "now"}).status_code == 200
    after = shown(one, lease)
    assert (after["status"], after["end_date"]) == ("TERMINATED", "2026-12-07T10:05:00.000000")


def test_a_lease_that_has_not_begun_cannot_end_now(one: Door) -> None:
    lease = made(one.lease("10:00", "12:00", instances(1, 1)))
    assert "End date" in late(put(one, lease, {"end_date": "now"}), 400)
    begun(one, lease)
    now_is(one, "10:30")
    assert "End date" in late(put(one, lease, {"end_date": "2026-12-07 10:29"}), 400)
    wrong = {"end_date": "now", **part(lease, vcpus=9)}
    assert put(one, lease, wrong).status_code == 409
    assert shown(one, lease)["status"] == "ACTIVE", "all or nothing"


# --- compared with a new lease --------------------------------------------------------------------


def _random(dice: Random) -> dict[str, Any]:
    """A reservation of one of two kinds."""
    wish = dice.choice(["", '["==", "$kind", "x"]', '["==", "$kind", "y"]'])
    if dice.random() < 0.4:
        least = dice.randint(1, 2)
        return whole(least, dice.randint(least, 3), resource_properties=wish)
    size = {"memory_mb": dice.choice([0, 1000, 40000])}
    some = instances(dice.randint(1, 3), dice.choice([1, 20, 33, 64]), resource_properties=wish)
    return some | size | {"affinity": dice.choice(["None", True, False])}


@pytest.mark.parametrize("seed", range(25))
def test_a_change_is_granted_exactly_if_a_new_lease_would_be(seed: int) -> None:
    dice = Random(seed)
    others, before, after = [_random(dice) for _ in range(2)], _random(dice), _random(dice)
    after |= {"resource_type": before["resource_type"]}
    kept = before | {key: value for key, value in after.items() if key in before}
    changed, fresh = Door(TWO), Door(TWO)
    try:
        for door in (changed, fresh):
            door.offer("n1", kind="x")
            door.offer("n2", kind="y")
        lease = changed.lease("10:00", "12:00", before)
        fresh.lease("10:00", "12:00", before)
        for one in others:
            assert granted(changed.lease("10:00", "12:00", one)) == granted(
                fresh.lease("10:00", "12:00", one)
            )
        if not granted(lease):
            return
        values = {key: value for key, value in kept.items() if key != "resource_type"}
        answer = put(changed, lease.json["lease"], part(lease.json["lease"], **values))
        (old,) = (
            one
            for one in fresh.call("GET", "/leases").json["leases"]
            if one["id"] == lease.json["lease"]["id"]
        )
        assert fresh.call("DELETE", f"/leases/{old['id']}").status_code == 204
        again = fresh.lease("10:00", "12:00", kept)
        assert answer.status_code == (200 if granted(again) else 500), answer.text
        if granted(again):
            sizes = [
                len(door.service.store.ensemble(door.service.store.lease(id_).ensemble_id).members)
                for door, id_ in (
                    (changed, lease.json["lease"]["id"]),
                    (fresh, again.json["lease"]["id"]),
                )
            ]
            assert sizes[0] == sizes[1]
    finally:
        changed.service.close()
        fresh.service.close()
