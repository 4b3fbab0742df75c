"""Gangs on racks, as many and as large as in Kueue's performance test."""

from collections import Counter

import pytest
from benchmarks.joint.fleet import VCPU
from benchmarks.public.gangs import KINDS, Gang, Queue, fleet, gangs, measure, request_of, ways

REQUIRED, BALANCED = KINDS[3], KINDS[8]


def test_there_are_fifteen_thousand_gangs_that_take_nine_tenths() -> None:
    submitted, hosts = gangs(), fleet()
    assert len(submitted) == 15_000
    assert len(hosts.names) == 640
    sizes = Counter(gang.kind.name for gang in submitted)
    assert sizes == {"small": 10_500, "medium": 3_000, "large": 1_500}
    asked = sum(gang.kind.pods * gang.kind.cpu for gang in submitted)
    assert asked / hosts.capacity.sum() == pytest.approx(0.903, abs=0.001)
    # What is submitted first of each queue comes first.
    assert {gang.kind for gang in submitted[:270]} == set(KINDS)


def test_each_slice_stays_in_a_rack_and_all_pods_where_that_is_required() -> None:
    request = request_of(REQUIRED)
    assert [(one.name, one.weight) for one in request.policies] == [("slice0-together", None)]
    assert len(request.members) == 4
    assert request.roles[0].resources == {VCPU: 1250}
    request = request_of(BALANCED)
    assert [(one.name, one.weight) for one in request.policies] == [
        ("slice0-together", None),
        ("slice1-together", None),
        ("all-together", 1),
    ]


def test_every_gang_is_placed_on_a_small_cluster_of_the_same_load() -> None:
    hosts = fleet(racks=3, nodes=7)  # as many CPUs for one queue as 640 nodes have for thirty
    row = measure("room", gangs(queues=1), hosts)
    assert (row["placed"], row["refused that fit"], row["broken"]) == (500, 0, 0)


def test_a_refused_gang_that_fits_and_torn_slices_are_counted() -> None:
    hosts = fleet(racks=2, nodes=1)  # two nodes of 96 CPUs
    submitted = [Gang("a", REQUIRED), Gang("b", BALANCED), Gang("c", BALANCED)]
    queue = Queue(submitted, hosts)
    members = queue.request("b")[0].members
    queue.put("b", {member: number % 2 for number, member in enumerate(members)})
    assert queue.broken() == 1
    assert queue.in_several_racks() == 1
    assert queue.refused_that_fit() == 2
    full = Queue([Gang(str(number), BALANCED) for number in range(10)], hosts)
    for number in range(9):
        full.put(str(number), dict.fromkeys(members, number // 5))
    assert full.refused_that_fit() == 0  # 96 - 4 x 20 CPUs: two racks with 16 and -4 left
    assert set(ways()) == {"room", "spread", "packing", "spreading"}
