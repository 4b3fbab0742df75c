"""The mix of requests: order, bound, and what is merged."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.flavors import Flavor
from moorage.domain.request_groups import Group
from moorage.domain.request_mix import (
    MOST_SHAPES,
    RequestMix,
    Shape,
    StatedMix,
    StatedShape,
    shape,
    shape_of,
)

SHAPES = st.builds(
    lambda amounts, traits: Shape(
        tuple(sorted(amounts.items())), tuple((one,) for one in sorted(traits))
    ),
    st.dictionaries(st.sampled_from(["VCPU", "MEMORY_MB", "VGPU"]), st.integers(1, 20)),
    st.frozensets(st.sampled_from(["T", "U"])),
)


@given(st.dictionaries(SHAPES, st.integers(0, 50), max_size=60))
def test_a_mix_is_bounded_and_ordered(counts: dict[Shape, int]) -> None:
    mix = RequestMix.of(counts)
    asked = {shape: n for shape, n in counts.items() if n and shape.resources}
    numbers = [n for _, n in mix.shapes]
    assert numbers == sorted(numbers, reverse=True)
    assert len({shape for shape, _ in mix.shapes}) == len(mix.shapes) <= MOST_SHAPES
    assert mix.merged == len(asked) - len(mix.shapes)
    assert (mix.merged == 0) == (len(asked) <= MOST_SHAPES)
    assert {shape.kind for shape, _ in mix.shapes} <= {shape.kind for shape in asked}
    assert sum(numbers) <= sum(asked.values())
    if not mix.merged:
        assert dict(mix.shapes) == asked


def test_rare_shapes_of_one_kind_become_their_mean() -> None:
    counts = {Shape((("VCPU", n),)): 1000 - n for n in range(1, 9)}
    rare = {Shape((("VCPU", 100 + n),)): 3 for n in range(9)}
    mix = RequestMix.of(counts | rare)
    assert dict(mix.shapes) == counts | {Shape((("VCPU", 104),)): 27}
    assert mix.merged == 8


def test_counts_are_joined() -> None:
    one, other = Shape((("VCPU", 1),)), Shape((("VCPU", 2),))
    mix = RequestMix.of({one: 2}).joined(Counter({one: 1, other: 5}))
    assert mix.shapes == ((other, 5), (one, 3))


def test_the_mean_of_groups_is_that_of_each() -> None:
    def with_gpu(vcpus: int, gpus: int) -> Shape:
        return shape({"VCPU": vcpus}, groups=[shape({"VGPU": gpus}, [["T"]]), shape({"NIC": 1})])

    rare = {with_gpu(2 + n, 1 + n): 1 for n in range(9)}
    mix = RequestMix.of({Shape((("VCPU", n),)): 99 for n in range(1, 9)} | rare)
    assert mix.shapes[-1] == (with_gpu(6, 5), 9)


def test_a_flavor_has_a_shape() -> None:
    flavor = Flavor(
        "1", "gpu", {"VCPU": 8, "DISK_GB": 0}, (frozenset({"B", "A"}),), frozenset({"OLD"}),
        root_required=frozenset({"ROOT"}),
        groups=(
            Group("g", {"VGPU": 1}, required=(frozenset({"T"}),)),
            Group("subtree", {}),
        ),
    )  # fmt: skip
    gpu = Shape((("VGPU", 1),), (("T",),))
    assert shape_of(flavor) == Shape((("VCPU", 8),), (("A", "B"), ("ROOT",)), ("OLD",), (gpu,))
    assert shape_of(flavor).whole == {"VCPU": 8, "VGPU": 1}


def test_equal_shapes_of_a_stated_mix_are_one() -> None:
    one, other = shape({"VCPU": 1}), shape({"VCPU": 2})
    stated = [StatedShape(one, 2, ("b",)), StatedShape(other, 4), StatedShape(one, 3, ("a",))]
    mix = StatedMix.of(stated, now=7)
    assert mix.shapes == (StatedShape(one, 5, ("a", "b")), StatedShape(other, 4))
    assert (mix.merged, mix.updated_at) == (0, 7)
    assert mix.weighed == RequestMix(((one, 5), (other, 4)), stated=True)
