"""Candidates ordered by the room that they leave: the same ones, and only their order differs."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.slow_candidates import Node, fleet
from tests.engine.test_candidate_limit import device_fleets, picked, roots
from tests.engine.test_device_room import gpus
from tests.engine.test_room import NOW, provider, snapshot

from moorage.domain.request_mix import StatedMix, StatedShape, shape
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.candidate_room import asked_shape, least_harm_first
from moorage.engine.candidates.limit import ANY_NUMBER, CandidateLimit, first_candidates
from moorage.engine.candidates.query import CandidateQuery
from moorage.engine.joint.fleet_room import harm_of_one
from moorage.engine.state.snapshot import Snapshot


def stating(seen: Snapshot, *shapes: StatedShape) -> Snapshot:
    return seen.with_stated_mix(StatedMix.of(shapes, now=NOW))


@given(device_fleets(), st.integers(1, 2), st.booleans())
def test_the_candidates_are_the_same(nodes: list[Node], amount: int, grouped: bool) -> None:  # noqa: FBT001 - drawn
    mix = StatedShape(shape({"VCPU": 1}), 1), StatedShape(shape({"GPU": 1}), 5)
    seen = stating(fleet(nodes), *mix)
    groups = [RequestGroup("", {"VCPU": amount})]
    if grouped:
        groups.append(RequestGroup("1", {"GPU": 1}))
    query = CandidateQuery(tuple(groups))
    found = first_candidates(seen, query)
    ordered = least_harm_first(seen, query, found, tuple)
    assert Counter(picked(ordered)) == Counter(picked(found))
    assert len(set(picked(ordered))) == len(picked(found))


def test_hosts_that_lose_least_come_first() -> None:
    """Each host once before any a second time, and the scarce GPUs last."""
    seen = stating(
        snapshot(
            *gpus("a", 10, 10),
            provider("b", {"VCPU": 64}, used={"x": {"VCPU": 60}}),
            provider("c", {"VCPU": 64}),
        ),
        StatedShape(shape({"VCPU": 8}), 1),
        StatedShape(shape({"VCPU": 1}, groups=[shape({"SHARE": 10})]), 1),
    )
    query = CandidateQuery((RequestGroup("", {"VCPU": 4}),))
    found = first_candidates(seen, query)
    ordered = least_harm_first(seen, query, found, tuple)
    names = [seen.names[row] for row in roots(seen, ordered)]
    assert names[0] == "b"  # its rest is too small for any of the mix
    assert sorted(names) == ["a", "b", "c"]
    harm = harm_of_one(seen, asked_shape(query), tuple)
    told = [harm[seen.row(name)] for name in names]
    assert told == sorted(told)
    assert told[0] == 0 < told[1]


def test_a_share_of_a_device_is_counted_on_one_device() -> None:
    seen = stating(
        snapshot(*gpus("a", 9, 9), *gpus("b", 8, 10)),
        StatedShape(shape({}, groups=[shape({"SHARE": 9})]), 1),
    )
    query = CandidateQuery((RequestGroup("", {"VCPU": 1}), RequestGroup("1", {"SHARE": 4})))
    found = first_candidates(seen, query)
    ordered = roots(seen, least_harm_first(seen, query, found, tuple))
    assert [seen.names[row] for row in ordered] == ["b", "a", "b", "a"]


def test_what_a_query_asks_for() -> None:
    some, other = frozenset({"A", "B"}), frozenset({"C"})
    query = CandidateQuery(
        (
            RequestGroup("", {"VCPU": 2}, (some,), other),
            RequestGroup("_gpu", {"VGPU": 1}, (other,)),
            RequestGroup("_none", {}),
        ),
        root_required=(frozenset({"R"}),),
    )
    gpu = shape({"VGPU": 1}, [other])
    assert asked_shape(query) == shape({"VCPU": 2}, [some, ["R"]], other, [gpu])


def test_an_answer_that_may_be_cut_is_known() -> None:
    seen = snapshot(*(provider(f"h{n}", {"VCPU": 4}) for n in range(3)))
    query = CandidateQuery((RequestGroup("", {"VCPU": 1}),))

    def cuts(limit: int | None, service: CandidateLimit = ANY_NUMBER) -> bool:
        return service.cuts(seen, limit, first_candidates(seen, query, limit, service))

    assert not cuts(None)
    assert not cuts(4)
    assert cuts(3)
    assert cuts(2)
    assert cuts(None, CandidateLimit(2))
    assert cuts(None, CandidateLimit(2, every_tree=True))
    assert not cuts(None, CandidateLimit(4, every_tree=True))
