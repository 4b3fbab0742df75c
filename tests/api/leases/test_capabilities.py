"""Properties of hosts that leases require: kept while they do, and followed where leases move."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from tests.api.leases.conftest import TWO, Door, granted, instances, whole
from tests.api.leases.test_changes import put
from tests.api.leases.test_out_of_service import disable, sweep
from tests.api.leases.test_reservation_changes import begun, hosts, made, shown
from tests.api.leases.test_wire import late

from moorage.domain.changes import Changeset, PutReservable
from moorage.domain.reservables import ReservableKind
from moorage.testing.service import OPERATOR

GPU = '["==", "$gpu", "a100"]'


@pytest.fixture
def three() -> Any:
    door = Door(TWO.replace("count: 2", "count: 3"))
    yield door
    door.service.close()


def describe(door: Door, host: str, **properties: Any) -> Any:
    return door.call("PUT", f"/os-hosts/{host}", properties, caller=OPERATOR)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("key", ["resource_properties", "hypervisor_properties"])
@pytest.mark.parametrize("reservation", [whole(), instances(1, 1)], ids=["host", "instance"])
def test_what_a_lease_requires_is_not_taken_from_its_host(
    two: Door,
    reservation: dict[str, Any],
    key: str,
    running: bool,  # noqa: FBT001 - a case
) -> None:
    if reservation["resource_type"] == "virtual:instance":
        key = "resource_properties"
    two.offer("n1", gpu="a100", rank="1")
    lease = made(two.lease("10:00", "12:00", reservation | {key: GPU}))
    if running:
        begun(two, lease)
    for value in (None, "h100"):
        assert lease["id"] in late(describe(two, "1", gpu=value, rank="2"), 409)
    (kept,) = two.call("GET", "/os-hosts", caller=OPERATOR).json["hosts"]
    assert (kept["gpu"], kept["rank"]) == ("a100", "1"), "all or nothing"
    assert describe(two, "1", rank=None, gpu="a100", more="x").status_code == 200
    assert hosts(two, lease) == ["1"]
    assert two.call("DELETE", f"/leases/{lease['id']}").status_code == 204
    assert describe(two, "1", gpu=None).status_code == 200


def test_a_value_may_change_to_one_that_is_enough(two: Door) -> None:
    two.offer("n1", disks="4")
    made(two.lease("10:00", "12:00", whole(resource_properties='[">=", "$disks", "4"]')))
    assert describe(two, "1", disks="8").status_code == 200
    assert describe(two, "1", disks="3").status_code == 409


@pytest.mark.parametrize("running", [False, True])
def test_a_lease_does_not_move_to_a_host_that_has_lost_it(
    three: Door,
    running: bool,  # noqa: FBT001 - a case
) -> None:
    three.offer("n1", "n2", gpu="a100")
    lease = made(three.lease("10:00", "12:00", whole(resource_properties=GPU)))
    if running:
        begun(three, lease)
    (was,) = hosts(three, lease)
    other = {"1": "2", "2": "1"}[was]
    assert describe(three, other, gpu=None).status_code == 200
    disable(three, f"n{was}")
    sweep(three)
    assert shown(three, lease)["reservations"][0]["missing_resources"] is True
    three.offer("n3", gpu="a100")
    sweep(three)
    told = shown(three, lease)
    assert told["reservations"][0]["missing_resources"] is False
    assert hosts(three, lease) == ["3"]


def test_a_host_that_is_withdrawn_is_no_more_for_instances_with_a_requirement(two: Door) -> None:
    two.offer("n1", "n2", gpu="a100")
    lease = made(two.lease("10:00", "12:00", instances(1, 1, resource_properties=GPU)))
    (was,) = hosts(two, lease)
    other = {"1": "2", "2": "1"}[was]
    assert two.call("DELETE", f"/os-hosts/{other}", caller=OPERATOR).status_code == 204
    disable(two, f"n{was}")
    sweep(two)
    assert shown(two, lease)["reservations"][0]["missing_resources"] is True


def test_a_host_with_instances_of_a_lease_is_not_one_that_it_may_have_whole(two: Door) -> None:
    two.offer("n1", gpu="a100")
    wishes = (whole(1, 2, resource_properties=GPU), instances(1, 1))
    lease = made(two.lease("10:00", "12:00", *wishes))
    two.offer("n2", gpu="a100")
    assert put(two, lease, {"end_date": "2026-12-07 13:00"}).status_code == 200
    rows = two.call("GET", "/os-hosts/allocations", caller=OPERATOR).json["allocations"]
    found = {row["resource_id"]: [one["id"] for one in row["reservations"]] for row in rows}
    first, second = (one["id"] for one in lease["reservations"])
    assert found == {"1": [first], "2": [second]}


@pytest.mark.parametrize(
    ("fleet", "name", "kind"),
    [
        ("{CUSTOM_METAL: 1}", "n1", "ironic"),
        ("{VCPU: 4, MEMORY_MB: 1024}", "n1", "QEMU"),
        ("{CUSTOM_METAL: 1, VCPU: 1}", "n1", "QEMU"),
    ],
)
def test_the_hypervisor_type_of_bare_metal_is_ironic(fleet: str, name: str, kind: str) -> None:
    door = Door(f"fleet: f\nhosts:\n  - {{name: {name}, inventories: {fleet}}}\n")
    try:
        door.offer(name)
        (told,) = door.call("GET", "/os-hosts", caller=OPERATOR).json["hosts"]
        assert told["hypervisor_type"] == kind
        for value in ("ironic", "QEMU"):
            wish = whole(hypervisor_properties=f'["==", "$hypervisor_type", "{value}"]')
            answer = door.lease("10:00", "12:00", wish)
            assert answer.status_code == (201 if value == kind else 500), answer.text
    finally:
        door.service.close()


def test_what_the_service_tells_of_a_host_cannot_be_told_otherwise(two: Door) -> None:
    said = {"id": "77", "vcpus": "4", "hypervisor_type": "ironic", "reservable": "false"}
    two.offer("n1", gpu="a100", **said)
    (told,) = two.call("GET", "/os-hosts", caller=OPERATOR).json["hosts"]
    assert (told["id"], told["vcpus"], told["gpu"]) == ("1", 64, "a100"), "as Blazar: ignored"
    assert (told["hypervisor_type"], told["reservable"]) == ("QEMU", True)
    for key, value in {**said, "service_name": "n9", "created_at": "x"}.items():
        assert key in late(describe(two, "1", **{key: value, "rank": "2"}), 400)
    assert describe(two, "1", vcpus=None, rank="3").status_code == 200
    found = two.call("GET", "/os-hosts/properties", caller=OPERATOR).json["resource_properties"]
    assert found == [{"property": "gpu"}, {"property": "rank"}]
    assert granted(two.lease("10:00", "12:00", whole(resource_properties='["==", "$vcpus", "64"]')))


def test_stored_properties_that_hide_what_a_host_is_do_so_no_more(two: Door) -> None:
    two.offer("n1")
    (before,) = two.service.store.reservables(ReservableKind.HOST)
    told = two.call("GET", "/os-hosts/1", caller=OPERATOR).json
    old = replace(before, properties=MappingProxyType({"id": "9", "vcpus": "1"}))
    two.service.store.commit(Changeset((PutReservable(old, new=False),)))
    assert two.call("GET", "/os-hosts/1", caller=OPERATOR).json == told
    assert describe(two, "1", id=None, vcpus=None).json == told
