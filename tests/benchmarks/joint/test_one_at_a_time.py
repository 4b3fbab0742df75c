"""Schedulers that place one member at a time, and streams of groups."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.joint.checker import faults
from benchmarks.joint.families import FAMILIES, SETS, make
from benchmarks.joint.fleet import make_fleet
from benchmarks.joint.one_at_a_time import SCHEDULERS, Scheduler
from benchmarks.joint.stream import admitted, groups, with_group
from benchmarks.joint.weighers import BestFit, FirstFit, Packing, Spreading, Weigher

FLEET = make_fleet(600, load=0.75, seed=3)
IDEAL = [one for one in SCHEDULERS if one.ideal]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "scheduler", [one for one in SCHEDULERS if one.ideal], ids=lambda one: one.name
)
def test_what_has_every_filter_breaks_nothing(family: str, scheduler: Scheduler) -> None:
    placed = 0
    for number in range(4):
        instance = make(family, FLEET, 40, SETS["tune"] + number)
        hosts = scheduler.place(FLEET, instance.request)
        placed += hosts is not None
        assert hosts is None or faults(FLEET, instance.request, hosts) == []
    if family == "high-availability":
        assert placed


def test_nova_knows_hosts_but_no_racks() -> None:
    instance = make("nested", FLEET, 40, SETS["tune"])
    hosts = Scheduler(ideal=False, weigher=Spreading, name="native").place(FLEET, instance.request)
    assert hosts is not None
    found = faults(FLEET, instance.request, hosts)
    assert any(fault.startswith("near") for fault in found)
    assert not any(fault.startswith("apart") for fault in found)


def test_spreading_takes_the_emptiest_packing_the_fullest_and_first_fit_the_first() -> None:
    instance = make("mixed", FLEET, 20, SETS["tune"])
    first, demand = instance.request.members[0], instance.request.roles[0].resources
    room = (FLEET.free / FLEET.capacity.max(axis=0)).sum(axis=1)
    fits = (FLEET.free >= [demand[name] for name in FLEET.classes]).all(axis=1)
    taken = {}
    for weigher in (Spreading, Packing, FirstFit):
        hosts = Scheduler(ideal=False, weigher=weigher, name=weigher.name).place(
            FLEET, instance.request
        )
        assert hosts is not None
        taken[weigher.name] = hosts[first]
    assert room[taken["spreading"]] == room[fits].max()
    assert room[taken["packing"]] == room[fits].min()
    assert taken["first"] == fits.argmax()


def test_best_fit_goes_by_shares_of_the_host_and_packing_by_those_of_the_largest() -> None:
    fleet = replace(
        make_fleet(3, load=0.5, seed=1),
        classes=("VCPU", "MEMORY_MB", "PGPU"),
        capacity=np.array([[8, 64, 0], [16, 32, 8], [32, 64, 0]], dtype=np.int64),
        used=np.array([[0, 0, 0], [8, 16, 8], [24, 0, 0]], dtype=np.int64),
    )
    demand = np.array([4, 16, 0], dtype=np.int64)
    assert BestFit(fleet).costs(demand).tolist() == [4 / 8 + 48 / 64, 4 / 16, 4 / 32 + 48 / 64]
    packed = [8 / 32 + 1, 8 / 32 + 16 / 64, 8 / 32 + 1]
    assert Packing(fleet).costs(demand).tolist() == packed


@pytest.mark.parametrize("weigher", [Spreading, Packing, FirstFit, BestFit])
def test_kept_costs_are_those_that_would_be_computed_anew(weigher: type[Weigher]) -> None:
    sizes = [np.array(size, dtype=np.int64) for size in ((1, 4), (3, 0), (2, 9))]
    kept, used = weigher(FLEET), FLEET.used.copy()
    for number in range(60):
        kept.costs(sizes[number % 3])
        row = (number * 37) % 50
        kept.place(row, sizes[number % 2])
        used[row] += sizes[number % 2]
    anew = weigher(replace(FLEET, used=used))
    for size in sizes:
        assert kept.costs(size).tolist() == anew.costs(size).tolist()


def test_fixed_members_stay_and_count_for_the_policies() -> None:
    instance = make("high-availability", FLEET, 40, SETS["tune"])
    assert instance.planted is not None
    kept = dict(list(instance.planted.items())[:10])
    fixed = {member: FLEET.names[row] for member, row in kept.items()}
    used = with_group(FLEET, instance.request, kept)
    grown = replace(instance.request, fixed=fixed)
    hosts = IDEAL[0].place(replace(FLEET, used=used.used), grown)
    assert hosts is not None
    assert kept.items() <= hosts.items()
    assert faults(FLEET, instance.request, hosts) == []


def test_a_placed_group_takes_its_room_and_closes_its_exclusive_domains() -> None:
    instance = make("exclusive", FLEET, 20, SETS["tune"])
    assert instance.planted is not None
    after = with_group(FLEET, instance.request, instance.planted)
    quiet = {row for member, row in instance.planted.items() if member.role == "quiet"}
    others = {row for member, row in instance.planted.items() if member.role != "quiet"}
    assert after.closed[list(quiet)].all()
    assert not after.closed[list(others)].any()
    assert after.strangers[list(quiet | others)].all()
    assert after.used.sum() > FLEET.used.sum()


def test_a_stream_is_admitted_until_the_fleet_is_full() -> None:
    fleet, asked = make_fleet(200, load=0.6, seed=SETS["tune"]), groups(0.6, SETS["tune"])[:12]
    count, wrong = admitted(
        Scheduler(ideal=True, weigher=Packing, name="ideal").place, fleet, asked
    )
    assert 0 < count < len(asked)
    assert wrong == 0
    _, wrong = admitted(Scheduler(ideal=False, weigher=Packing, name="native").place, fleet, asked)
    assert wrong > 0
