"""Whole hosts that are out of service: no lease is granted on them, and leases leave them."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.api.leases.conftest import Door, granted, instances, whole
from tests.api.leases.test_changes import put
from tests.api.leases.test_reservation_changes import begun, hosts, made, shown

from moorage.domain.changes import Changeset, CreateResourceClass, PutInventories, PutTraits
from moorage.domain.providers import Inventory
from moorage.testing.service import OPERATOR
from moorage.usecases.leases.lease_sweeper import LeaseSweeper

COMPUTE = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 100}
FLEET = """
fleet: two
hosts:
  - {name: "n{n}", count: 2, inventories: {VCPU: 8, MEMORY_MB: 16384, DISK_GB: 100}}
  - {name: "bm{n}", count: 2, inventories: {CUSTOM_METAL: 1}}
"""


def inventories(**more: Any) -> tuple[Inventory, ...]:
    """Those of a compute node, with other fields of some, and without those that are None."""
    found = {name: Inventory(name, total) for name, total in COMPUTE.items()}
    for name, fields in more.items():
        if fields is None:
            found.pop(name, None)
        else:
            found[name] = Inventory(name, **({"total": COMPUTE.get(name, 1)} | fields))
    return tuple(found.values())


FULL = {name: {"reserved": total} for name, total in COMPUTE.items()}
OUT = {
    "all processors reserved": inventories(VCPU=FULL["VCPU"]),
    "all memory reserved": inventories(MEMORY_MB=FULL["MEMORY_MB"]),
    "all reserved": inventories(**FULL),
    "no capacity by its ratio": inventories(VCPU={"allocation_ratio": 0.1}),
    "less than the smallest amount": inventories(VCPU={"reserved": 6, "min_unit": 4}),
    "more reserved than there is": inventories(VCPU={"reserved": 9}),
    "no inventory": (),
    "no processors": inventories(VCPU=None),
    "only memory": inventories(VCPU=None, DISK_GB=None),
    "only disk": inventories(VCPU=None, MEMORY_MB=None),
    "a device but no processors": inventories(VCPU=None, CUSTOM_FPGA={"total": 1}),
    "metal reserved": (Inventory("CUSTOM_METAL", 1, reserved=1),),
}
IN = {
    "some reserved": inventories(VCPU={"reserved": 7}),
    "no disk": inventories(DISK_GB=None),
    "disk reserved": inventories(DISK_GB=FULL["DISK_GB"]),
    "dedicated processors": inventories(VCPU=FULL["VCPU"], PCPU={"total": 4}),
    "a device reserved": inventories(CUSTOM_FPGA={"total": 1, "reserved": 1}),
    "metal": (Inventory("CUSTOM_METAL", 1),),
}


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door(FLEET)
    yield made
    made.service.close()


def provider(door: Door, name: str) -> str:
    snapshot = door.service.store.snapshot()
    (row,) = [row for row in snapshot.hosts.tolist() if snapshot.names[row] == name]
    return str(snapshot.uuids[row])


def puts(door: Door, name: str, some: tuple[Inventory, ...]) -> None:
    classes = (CreateResourceClass(one.resource_class, exist_ok=True) for one in some)
    custom = [one for one in classes if one.name.startswith("CUSTOM_")]
    change = PutInventories(provider(door, name), some, None, replace_all=True)
    door.service.store.commit(Changeset((*custom, change)))


def disable(door: Door, name: str, *, disabled: bool = True) -> None:
    traits = frozenset({"COMPUTE_STATUS_DISABLED"} if disabled else ())
    door.service.store.commit(Changeset((PutTraits(provider(door, name), traits, None),)))


def sweep(door: Door) -> None:
    """A round of the sweeper, as a worker that has just begun."""
    LeaseSweeper(door.service.env).run_round()


@pytest.mark.parametrize("some", OUT.values(), ids=OUT)
def test_a_host_out_of_service_is_not_leased(door: Door, some: tuple[Inventory, ...]) -> None:
    door.offer("n1", "n2")
    puts(door, "n1", some)
    assert not granted(door.lease("10:00", "12:00", whole(2, 2)))
    lease = made(door.lease("10:00", "12:00", whole(1, 2)))
    assert hosts(door, lease) == ["2"]
    reservable = [
        one["reservable"] for one in door.call("GET", "/os-hosts", caller=OPERATOR).json["hosts"]
    ]
    assert reservable == [False, True]


@pytest.mark.parametrize("some", IN.values(), ids=IN)
def test_a_host_in_service_is_leased(door: Door, some: tuple[Inventory, ...]) -> None:
    door.offer("n1")
    puts(door, "n1", some)
    assert hosts(door, made(door.lease("10:00", "12:00", whole()))) == ["1"]
    (told,) = door.call("GET", "/os-hosts", caller=OPERATOR).json["hosts"]
    assert told["reservable"] is True


def test_a_refusal_names_the_reason(door: Door) -> None:
    door.offer("bm1")
    puts(door, "bm1", OUT["metal reserved"])
    ours = {"OpenStack-API-Version": "reservation 1.1"}
    dates = {"start_date": "2026-12-07 10:00", "end_date": "2026-12-07 12:00"}
    body = {"name": "l", **dates, "reservations": [whole()]}
    answer = door.call("POST", "/leases", body, headers=ours)
    assert answer.status_code == 409
    found = door.service.store.explanation(answer.json["explanation_id"])[0].explanation
    assert found.rejected["out-of-service"] == 1
    assert "hosts that are out of service" in str(found.conflicts)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("way", [*OUT, "disabled"])
def test_a_lease_on_it_moves_or_is_degraded_until_it_is_back(
    door: Door,
    way: str,
    running: bool,  # noqa: FBT001 - a case
) -> None:
    door.offer("n1", "n2")
    lease = made(door.lease("10:00", "12:00", whole()))
    if running:
        begun(door, lease)
    (was,) = hosts(door, lease)
    other = {"1": "2", "2": "1"}[was]
    if way == "disabled":
        disable(door, f"n{was}")
    else:
        puts(door, f"n{was}", OUT[way])
    sweep(door)
    assert hosts(door, lease) == [other]
    told = shown(door, lease)
    assert told["reservations"][0]["missing_resources"] is False
    puts(door, f"n{other}", OUT["all reserved"])
    sweep(door)
    told = shown(door, lease)
    assert (told["degraded"], told["reservations"][0]["missing_resources"]) == (True, True)
    puts(door, f"n{other}", inventories())
    sweep(door)
    told = shown(door, lease)
    assert told["reservations"][0]["missing_resources"] is False
    assert hosts(door, lease) == [other]


def test_instances_are_not_placed_on_it(door: Door) -> None:
    door.offer("n1")
    puts(door, "n1", OUT["all memory reserved"])
    assert not granted(door.lease("10:00", "12:00", instances(2, 8)))
    puts(door, "n1", inventories())
    assert granted(door.lease("10:00", "12:00", instances(2, 8)))


def test_a_running_lease_is_not_extended_onto_it(door: Door) -> None:
    door.offer("n1", "n2")
    lease = made(door.lease("10:00", "12:00", whole()))
    begun(door, lease)
    (was,) = hosts(door, lease)
    other = {"1": "2", "2": "1"}[was]
    puts(door, f"n{other}", OUT["all reserved"])
    change = {"reservations": [{"id": lease["reservations"][0]["id"], "min": 2, "max": 2}]}
    assert put(door, lease, change).status_code == 500
    puts(door, f"n{other}", inventories())
    assert put(door, lease, change).status_code == 200


@pytest.mark.parametrize("seed", range(30))
def test_exactly_hosts_with_capacity_for_some_server_are_leased(door: Door, seed: int) -> None:
    dice = Random(seed)
    door.offer("n1")
    some = []
    for name in ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_METAL"):
        if dice.random() < 0.5:
            total = dice.randint(1, 4)
            one = Inventory(
                name, total, reserved=dice.randint(0, total), min_unit=dice.randint(1, 2)
            )
            some.append(one)
    puts(door, "n1", tuple(some))

    def usable(names: set[str]) -> bool | None:
        """Whether any of these can be had; None if there are none."""
        there = [one for one in some if one.resource_class in names]
        return any(one.capacity >= one.min_unit for one in there) if there else None

    processors, memory = usable({"VCPU", "PCPU"}), usable({"MEMORY_MB"})
    if {one.resource_class for one in some} <= {"CUSTOM_METAL"}:
        right = bool(usable({"CUSTOM_METAL"}))
    else:
        right = bool(processors) and memory is not False
    assert granted(door.lease("10:00", "12:00", whole())) == right
