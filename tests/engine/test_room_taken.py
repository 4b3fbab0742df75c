"""What a placement took from the room for others, as its decision records it."""

from tests.engine.test_device_room import gpus, of_group, request
from tests.engine.test_room import NOW, asked, provider, snapshot

from moorage.domain.request_mix import (
    MOST_RECORDED,
    RequestMix,
    RoomTaken,
    ShapeTaken,
    StatedMix,
    StatedShape,
    shape,
)
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_fleet_room, with_room
from moorage.engine.joint.room_taken import room_taken


def test_the_share_is_the_mean_over_the_mix() -> None:
    fleet = snapshot(provider("a", {"VCPU": 16}), provider("b", {"VCPU": 8}))
    small, large, none = shape({"VCPU": 2}), shape({"VCPU": 8}), shape({"VGPU": 1})
    mix = RequestMix.of({small: 3, large: 1, none: 9})
    problem = with_room(build(asked({"web": (3, {"VCPU": 2})}), fleet), fleet, mix).problem
    # Two on `a`, one on `b`: of 12 small ones 3 are gone, of 3 large ones 2.
    assert room_taken(problem, [(0, 0), (0, 0), (0, 1)]) == RoomTaken(
        round((3 * 3 / 12 + 2 / 3) / 4, 6),
        stated=False,
        weighed=3,
        most=(ShapeTaken(small, 3, 12, 3), ShapeTaken(large, 1, 3, 2)),
    )
    assert room_taken(problem, []) is None
    assert room_taken(build(asked({"web": (1, {"VCPU": 2})}), fleet).problem, [(0, 0)]) is None


def test_devices_are_counted_one_by_one() -> None:
    fleet = snapshot(*gpus("a", 9, 9))
    half, nine = shape({}, groups=[shape({"SHARE": 5})]), shape({}, groups=[shape({"SHARE": 9})])
    mix = RequestMix.of({half: 1, nine: 1})
    problem = with_room(build(request(of_group(4), members=2), fleet), fleet, mix).problem
    # The first two members take 8 of the first device; what is left there is too little.
    taken = room_taken(problem, [(0, 0), (0, 0)])
    assert taken is not None
    assert {(one.shape, one.fits, one.taken) for one in taken.most} == {(half, 2, 1), (nine, 2, 1)}


def test_few_shapes_are_kept() -> None:
    fleet = snapshot(provider("a", {"VCPU": 64}))
    stated = StatedMix.of((StatedShape(shape({"VCPU": n}), n) for n in range(1, 12)), now=NOW)
    built = build(asked({"web": (1, {"VCPU": 64})}), fleet)
    problem = with_fleet_room(built, fleet.with_stated_mix(stated), tuple).problem
    taken = room_taken(problem, [(0, 0)])
    assert taken is not None
    assert (taken.share, taken.stated, taken.weighed) == (1.0, True, 11)
    assert [one.weight for one in taken.most] == [11, 10, 9, 8, 7]
    assert len(taken.most) == MOST_RECORDED
