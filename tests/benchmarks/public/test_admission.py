"""Applications of the trace's shape, admitted jointly and one at a time."""

import pytest
from benchmarks.public.admission import PEERS, Setting, better, measure, ordered, settings, single
from benchmarks.public.applications import Application, Shape, made, peak
from benchmarks.public.groups import Admitted

from moorage.domain.requests import Objective

ROWS = settings(loads=(90, 97), orders=("size", "random 1"))
SIZES = {"a": 100, "b": 60, "c": 8, "d": 5}


@pytest.mark.parametrize("seed", [1, 2])
def test_no_peer_admits_more_than_the_room_criterion(seed: int) -> None:
    asked = peak(made(seed))
    sums = dict.fromkeys((str(Objective.ROOM), *PEERS), (0, 0))
    for setting in ROWS:
        row = measure(asked, setting, [Objective.ROOM])
        assert row["better"] == {"room": []}, row
        assert row["broken"] == 0
        for way, (groups, members) in row["admitted"].items():
            sums[way] = sums[way][0] + groups, sums[way][1] + members
    best = max(sums[peer] for peer in PEERS)
    assert sums["room"][0] >= best[0], sums
    assert sums["room"][1] >= best[1], sums


def test_a_row_is_the_same_every_time() -> None:
    asked = peak(made(3, count=12))
    setting = Setting(97, "random 2", barred=True)
    first, again = measure(asked, setting), measure(asked, setting)
    assert first["admitted"] == again["admitted"]
    assert first["better"] == again["better"]


def test_orders_are_by_size_or_drawn_from_their_number() -> None:
    shape = Shape(gpu_host=False, vcpu=1, memory=1, gpus=0, most=0)
    asked = [Application(name, ((shape, size),)) for name, size in SIZES.items()]
    assert [one.name for one in ordered(asked[::-1], "size")] == ["a", "b", "c", "d"]
    drawn = [one.name for one in ordered(asked, "random 1")]
    assert drawn == [one.name for one in ordered(asked[::-1], "random 1")]
    assert sorted(drawn) == ["a", "b", "c", "d"]


def _found(mine: list[str], peer: list[str]) -> dict[str, Admitted]:
    found = {name: Admitted() for name in PEERS}
    for way, groups in (("room", mine), ("FGD", peer)):
        found[way] = Admitted(groups, sum(SIZES[name] for name in groups))
    return found


def test_a_peer_is_better_only_in_applications_and_members_alike() -> None:
    assert better(_found(["a"], ["a", "c"]), "room") == ["FGD"]
    assert better(_found(["a"], ["b", "c"]), "room") == []
    assert better(_found(["a", "b"], ["a", "b"]), "room") == []


def test_one_application_that_makes_the_difference_is_named() -> None:
    assert single(_found(["a", "c"], ["b", "c", "d"]), "room", SIZES) == "a"
    assert single(_found(["a", "b"], ["a", "b"]), "room", SIZES) is None
    # The peer lacks nothing but two small ones: neither is the whole difference.
    assert single(_found(["a", "b", "c", "d"], ["a", "b"]), "room", SIZES) is None
