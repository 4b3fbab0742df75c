"""Applications that grow and shrink in time, granted jointly and one member at a time."""

import pytest
from benchmarks.public.admission import PEERS
from benchmarks.public.applications import Instance, Shape, fleet_for, made, peak
from benchmarks.public.growth import BEFORE, HOUR, Alone, Change, history, measure, replay, ways

from moorage.domain.member_names import MemberName

PLAIN = Shape(gpu_host=False, vcpu=96, memory=1024, gpus=0, most=1)
ENDLESS, BEGINNING = float("inf"), float("-inf")


def _instance(application: str, since: float, until: float = ENDLESS) -> Instance:
    return Instance(application, PLAIN, since, until)


def test_a_history_has_who_is_there_first_and_then_ends_before_beginnings() -> None:
    told = history(
        [
            _instance("a", BEGINNING, 2 * HOUR + 5),
            _instance("b", BEGINNING),
            _instance("b", BEGINNING),
            _instance("a", 2 * HOUR + 1),
            _instance("a", 2 * HOUR + 2, 2 * HOUR + 3),
        ],
        barred=True,
    )
    name = [MemberName("shape0", number) for number in range(3)]
    assert told.changes == (
        Change(BEFORE, joins=True, application="b", members=(name[0], name[1])),
        Change(BEFORE, joins=True, application="a", members=(name[0],)),
        Change(2, joins=False, application="a", members=(name[0],)),
        Change(2, joins=True, application="a", members=(name[1], name[2])),
        Change(3, joins=False, application="a", members=(name[2],)),
    )
    assert len(told.requests["a"].members) == 3


@pytest.mark.parametrize("way", ["room", "spread", "packing", "FGD"])
def test_what_ends_gives_room_and_standing_members_count(way: str) -> None:
    """Two hosts of 192 VCPU: four instances at once, one of an application on each host."""
    instances = [
        _instance("a", BEGINNING, 10 * HOUR),
        _instance("a", HOUR),  # beside the first: on the other host
        _instance("b", HOUR),
        _instance("a", 3 * HOUR),  # no third host: refused
        _instance("a", 12 * HOUR),  # the first has ended
    ]
    told = history(instances, barred=True)
    fleet = fleet_for(peak(instances[:3]), 0.75)
    assert len(fleet.names) == 2
    found = replay(told, fleet, ways(instances)[way](fleet))
    assert (found.first, found.requests, found.members, found.overfull) == (1, 3, 3, 0)
    assert len(found.seconds) == 4


@pytest.mark.parametrize("where", ["on hosts with GPUs, too", "barred from them"])
def test_no_peer_grants_more_growth_than_the_room_criterion(where: str) -> None:
    row = measure(made(1, count=16), 97, barred=where == "barred from them", objectives=["room"])
    assert row["overfull"] == 0
    mine = row["granted"]["room"]
    assert mine[1] >= max(row["granted"][peer][1] for peer in PEERS), row
    assert mine[0] <= row["requests"]


def test_peers_keep_nothing_and_objectives_can_be_chosen() -> None:
    instances = made(2, count=3)
    fleet = fleet_for(peak(instances), 0.9)
    assert isinstance(ways(instances)["FGD"](fleet), Alone)
    row = measure(instances, 90, barred=True, objectives=["spread"])
    assert list(row["granted"]) == ["spread", *PEERS]
