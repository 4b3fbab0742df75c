"""Which candidates are kept where a limit cuts: every tree once before any twice."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.slow_candidates import Node, Slow, fleet

from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import Batch, candidates
from moorage.engine.candidates.limit import CandidateLimit, first_candidates
from moorage.engine.candidates.query import CandidateQuery, Rules
from moorage.engine.state.sharing import sharing
from moorage.engine.state.snapshot import Snapshot


def picked(found: Sequence[Batch]) -> list[tuple[int, ...]]:
    """Per candidate the row of each slot's provider."""
    return [
        tuple(tree[position] for position in picks)
        for batch in found
        for tree in batch.trees.tolist()
        for picks in batch.selections
    ]


def own_trees(snapshot: Snapshot, rows: tuple[int, ...]) -> frozenset[int]:
    """Roots of the providers of a candidate; not of sharing ones, if any serves another tree."""
    shares = snapshot.traits.get(SHARING_TRAIT)
    if shares is None or not len(sharing(snapshot)):
        return frozenset(int(snapshot.root[row]) for row in rows)
    return frozenset(int(snapshot.root[row]) for row in rows if not shares[row])


@st.composite
def device_fleets(draw: st.DrawFn) -> list[Node]:
    """Hosts with devices, some below a cell, and pools that share with some of them."""
    nodes: list[Node] = []
    pools: list[Node] = []
    some = st.frozensets(st.sampled_from(["a1", "a2"]), max_size=2)
    for number in range(draw(st.integers(1, 5))):
        host = f"h{number}"
        nodes.append(Node(host, None, draw(STOCKS), draw(TRAITS), draw(some)))
        for device in range(draw(st.integers(0, 3))):
            parents = [host, *(one.name for one in nodes if one.parent == host)]
            parent = draw(st.sampled_from(parents))
            nodes.append(Node(f"{host}d{device}", parent, draw(STOCKS), draw(TRAITS), draw(some)))
    for number in range(draw(st.integers(0, 2))):
        traits = draw(TRAITS) | {SHARING_TRAIT}
        pools.append(Node(f"s{number}", None, draw(STOCKS), traits, draw(some)))
    return [*pools, *nodes] if draw(st.booleans()) else [*nodes, *pools]


STOCKS = st.dictionaries(st.sampled_from(["VCPU", "GPU", "DISK_GB"]), st.integers(1, 2))
TRAITS = st.sampled_from([frozenset[str](), frozenset({"T"})])


@st.composite
def device_queries(draw: st.DrawFn) -> CandidateQuery:
    wanted = draw(st.sampled_from([{}, {"VCPU": 1}, {"DISK_GB": 1}, {"VCPU": 1, "DISK_GB": 1}]))
    suffixes = draw(st.sampled_from([(), ("1",), ("1", "2"), ("1", "2", "3")]))
    if not wanted and not suffixes:
        wanted = {"GPU": 1}
    traits = draw(st.sampled_from([(), (frozenset({"T"}),)]))
    plain = [RequestGroup("", wanted, traits)] if wanted else []
    granular = [RequestGroup(suffix, {"GPU": 1}) for suffix in suffixes]
    together = draw(st.booleans())
    subtrees = (frozenset(suffixes),) if together and suffixes else ()
    return CandidateQuery((*plain, *granular), Rules(draw(st.booleans()), subtrees))


services = st.builds(CandidateLimit, st.none(), st.booleans(), st.booleans())


@given(device_fleets(), device_queries(), services, st.data())
def test_a_cut_has_every_tree_once_before_any_twice(
    nodes: list[Node], query: CandidateQuery, service: CandidateLimit, data: st.DataObject
) -> None:
    snapshot = fleet(nodes)
    whole = picked(first_candidates(snapshot, query, None, service, data.draw(st.integers())))
    assert len(set(whole)) == len(whole) == len(Slow(nodes, query).found())
    limit = data.draw(st.integers(1, max(1, len(whole))))
    some = picked(first_candidates(snapshot, query, limit, service, data.draw(st.integers())))
    assert len(set(some)) == len(some) == min(limit, len(whole))
    assert set(some) <= set(whole)
    trees = [own_trees(snapshot, rows) for rows in some]
    able = {one for rows in whole if (one := own_trees(snapshot, rows))}
    count = min(limit, len(able))
    assert len(set(trees[:count])) == count
    assert all(trees[:count])


@given(device_fleets(), device_queries(), st.integers(1, 12), services, st.data())
def test_the_services_bound_is_a_bound_and_a_limit_takes_of_what_it_keeps(
    nodes: list[Node],
    query: CandidateQuery,
    most: int,
    service: CandidateLimit,
    data: st.DataObject,
) -> None:
    snapshot = fleet(nodes)
    whole = picked(first_candidates(snapshot, query))
    service = replace(service, most=most)
    kept = picked(first_candidates(snapshot, query, None, service))
    assert len(set(kept)) == len(kept) == min(most, len(whole))
    assert set(kept) <= set(whole)
    limit = data.draw(st.none() | st.integers(1, 12))
    some = picked(first_candidates(snapshot, query, limit, service))
    assert len(some) == min(len(kept), limit or most)
    assert set(some) <= set(kept if service.depth_first or not service.randomize else whole)


def devices(hosts: int, count: int) -> list[Node]:
    return [
        node
        for host in range(hosts)
        for node in (
            Node(f"h{host}", has={"VCPU": 8}),
            *(Node(f"h{host}d{n}", f"h{host}", {"GPU": 1}) for n in range(count)),
        )
    ]


def asking(count: int) -> CandidateQuery:
    groups = (RequestGroup(str(n), {"GPU": 1}) for n in range(1, count + 1))
    return CandidateQuery((RequestGroup("", {"VCPU": 1}), *groups), Rules(isolate=True))


def roots(snapshot: Snapshot, found: Sequence[Batch]) -> list[int]:
    return [int(snapshot.root[rows[0]]) for rows in picked(found)]


def test_depth_first_keeps_the_first_trees_whole_and_a_limit_takes_turns_in_them() -> None:
    snapshot = fleet(devices(4, 3))
    service = CandidateLimit(12, depth_first=True)
    kept = first_candidates(snapshot, asking(2), None, service)
    assert sorted(set(roots(snapshot, kept))) == [0, 4]
    some = first_candidates(snapshot, asking(2), 2, service)
    assert roots(snapshot, some) == [0, 4]
    balanced = first_candidates(snapshot, asking(2), None, CandidateLimit(12))
    assert sorted(roots(snapshot, balanced)) == sorted([0, 4, 8, 12] * 3)


@pytest.mark.parametrize("count", [1, 4])
def test_random_answers_differ_in_hosts_and_devices_and_repeat_by_seed(count: int) -> None:
    snapshot = fleet(devices(6, 8))
    service = CandidateLimit(randomize=True)

    def sample(seed: int) -> list[tuple[int, ...]]:
        return picked(first_candidates(snapshot, asking(count), 1, service, seed))

    found = [sample(seed)[0] for seed in range(40)]
    assert found == [sample(seed)[0] for seed in range(40)]
    assert len({rows[0] for rows in found}) == 6
    assert len({rows[1] for rows in found}) > 12


def test_depth_first_keeps_the_first_trees_also_where_answers_are_random() -> None:
    snapshot = fleet(devices(6, 3))
    service = CandidateLimit(12, depth_first=True, randomize=True)
    found = [
        tuple(roots(snapshot, first_candidates(snapshot, asking(2), 2, service, seed)))
        for seed in range(20)
    ]
    assert set(found) == {(0, 4), (4, 0)}


@pytest.mark.parametrize(("hosts", "kept"), [(3, 8), (8, 8), (20, 20)])
def test_a_bound_of_every_tree_leaves_out_no_host(hosts: int, kept: int) -> None:
    snapshot = fleet(devices(hosts, 6))
    service = CandidateLimit(8, every_tree=True)
    found = roots(snapshot, first_candidates(snapshot, asking(3), None, service))
    assert (len(found), len(set(found))) == (kept, hosts)
    found = roots(snapshot, first_candidates(snapshot, asking(3), 2, service))
    assert len(found) == 2


def test_many_candidates_of_a_tree_are_not_made_for_one_each() -> None:
    """12 hosts with 16!/4! candidates each; unlimited there would be an answer next year."""
    snapshot = fleet(devices(12, 16))
    some = first_candidates(snapshot, asking(12), 1000)
    assert sum(map(len, some)) == 1000
    assert len(set(roots(snapshot, some))) == 12


def test_candidates_of_use_cases_take_turns_too() -> None:
    snapshot = fleet(devices(5, 4))
    found = candidates(snapshot, asking(3))
    assert [next(found).allocations[0][0] for _ in range(6)] == [0, 5, 10, 15, 20, 0]
