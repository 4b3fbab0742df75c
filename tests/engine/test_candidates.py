"""Allocation candidates against a slow reading of the same rules, and single rules by hand."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.slow_candidates import (
    CLASSES,
    Node,
    Slow,
    any_of_sets,
    few_aggregates,
    few_traits,
    fleet,
    fleets,
    queries,
    shown,
    stocks,
)

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.period import HOUR, Period
from moorage.domain.providers import SHARING_TRAIT
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import (
    candidates,
    summary_rows,
)
from moorage.engine.candidates.query import CandidateQuery, Rules
from moorage.engine.state.snapshot import ProviderState, Snapshot


@given(st.data())
def test_candidates_are_exactly_what_a_slow_reading_finds(data: st.DataObject) -> None:
    nodes = data.draw(fleets())
    query = data.draw(queries(nodes))
    found = shown(fleet(nodes), query)
    assert len(found) == len(set(found)), "a candidate was yielded twice"
    assert set(found) == Slow(nodes, query).found()


CHANGES = {"has": stocks, "traits": few_traits, "aggregates": few_aggregates, "used": st.just({})}


@given(st.data())
def test_a_query_asked_again_sees_what_has_changed_since(data: st.DataObject) -> None:
    """What is kept from query to query must not outlive what it was made from."""
    nodes = data.draw(fleets())
    query = data.draw(queries(nodes))
    snapshot = fleet(nodes)
    for _ in range(data.draw(st.integers(1, 3))):
        shown(snapshot, query)
        number = data.draw(st.integers(0, len(nodes) - 1))
        change: dict[str, Any] = data.draw(st.fixed_dictionaries({}, optional=CHANGES))
        nodes = [*nodes[:number], replace(nodes[number], **change), *nodes[number + 1 :]]
        if data.draw(st.booleans()):
            nodes.append(Node(f"n{len(nodes)}", None, {"VCPU": 3, "DISK_GB": 3}))
        snapshot = fleet(nodes, snapshot)
        assert set(shown(snapshot, query)) == Slow(nodes, query).found()


@given(st.data())
def test_candidates_of_simple_queries_agree_too(data: st.DataObject) -> None:
    """Random queries with many rules rarely have an answer; these mostly do."""
    nodes = data.draw(fleets())
    wanted = data.draw(
        st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2), min_size=1, max_size=2)
    )
    required = data.draw(any_of_sets)
    query = CandidateQuery((RequestGroup("", wanted, required),))
    found = shown(fleet(nodes), query)
    assert len(found) == len(set(found))
    assert set(found) == Slow(nodes, query).found()


# --- single rules -------------------------------------------------------------------------------


def of(**wanted: int) -> CandidateQuery:
    return CandidateQuery((RequestGroup("", wanted),))


def test_a_hold_and_a_future_booking_reduce_candidates() -> None:
    nodes = [Node("h1", has={"VCPU": 4}), Node("h2", has={"VCPU": 4})]
    snapshot = fleet(nodes)
    first = snapshot.state(0)
    hold = Booking("m", "h1", {"VCPU": 2}, Period(0), BookingState.HELD, lapses_at=HOUR)
    later = Booking("l", "h2", {"VCPU": 3}, Period(HOUR), BookingState.RESERVED)
    held = snapshot.with_states(
        [
            ProviderState(first.provider, (hold,)),
            ProviderState(snapshot.state(1).provider, (later,)),
        ]
    )
    assert [givers for givers, _ in shown(held, of(VCPU=2))] == [frozenset({("h1", "VCPU", 2)})]
    assert len(shown(held, of(VCPU=1))) == 2
    assert len(shown(held.at(HOUR), of(VCPU=4))) == 1, "the hold has lapsed"


def test_candidates_are_made_lazily() -> None:
    snapshot = fleet([Node(f"h{n}", has={"VCPU": 4}) for n in range(1000)])
    found = candidates(snapshot, of(VCPU=1))
    assert next(found).allocations[0][0] == 0
    assert next(found).allocations[0][0] == 1


def test_summaries_cover_whole_trees_of_the_providers_used() -> None:
    nodes = [
        Node("cn", aggregates=frozenset({"a"})),
        Node("numa", "cn", {"VCPU": 4}),
        Node("nic", "cn"),
        Node("ss", None, {"DISK_GB": 9}, frozenset({SHARING_TRAIT}), frozenset({"a"})),
        Node("other", None, {"VCPU": 1}),
    ]
    snapshot = fleet(nodes)
    found = candidates(snapshot, of(VCPU=2, DISK_GB=1))
    used = np.array([row for one in found for row, _ in one.allocations])
    names = [snapshot.uuids[row] for row in summary_rows(snapshot, used, whole_trees=True).tolist()]
    assert names == ["cn", "numa", "nic", "ss"]
    names = [
        snapshot.uuids[row] for row in summary_rows(snapshot, used, whole_trees=False).tolist()
    ]
    assert names == ["numa", "ss"]


@pytest.mark.parametrize(
    ("policy", "expected"), [(Rules(), 4), (Rules(isolate=True), 2)], ids=["none", "isolate"]
)
def test_isolate_keeps_suffixed_groups_apart(policy: Rules, expected: int) -> None:
    nodes = [Node("cn"), Node("pf1", "cn", {"VF": 2}), Node("pf2", "cn", {"VF": 2})]
    groups = (RequestGroup("1", {"VF": 1}), RequestGroup("2", {"VF": 1}))
    assert len(shown(fleet(nodes), CandidateQuery(groups, policy))) == expected


def test_amounts_of_groups_on_one_provider_are_summed_per_combination() -> None:
    """The reference lets them pile up from one combination to the next (placement-api, Bugs)."""
    nodes = [Node("cn", has={"VCPU": 8}), Node("numa", "cn", {"VCPU": 8})]
    groups = (RequestGroup("", {"VCPU": 3}), RequestGroup("1", {"VCPU": 5}))
    found = shown(fleet(nodes), CandidateQuery(groups, Rules(isolate=True)))
    assert {frozenset(amount for _, _, amount in givers) for givers, _ in found} == {
        frozenset({8}),
        frozenset({3, 5}),
    }
    assert len(found) == 4


def test_a_resourceless_group_shows_in_mappings_only() -> None:
    nodes = [
        Node("cn"),
        Node("agent", "cn", traits=frozenset({"T1"})),
        Node("br", "agent", {"BW": 10}),
        Node("stray", "cn", {"BW": 10}),
    ]
    groups = (
        RequestGroup("_PORT", {"BW": 5}),
        RequestGroup("_AGENT", {}, (frozenset({"T1"}),)),
    )
    rules = Rules(same_subtrees=(frozenset({"_PORT", "_AGENT"}),))
    found = shown(fleet(nodes), CandidateQuery(groups, rules))
    assert found == [
        (
            frozenset({("br", "BW", 5)}),
            frozenset({("_PORT", frozenset({"br"})), ("_AGENT", frozenset({"agent"}))}),
        )
    ]


def test_devices_that_cannot_share_a_subtree_are_cut_off_early() -> None:
    """Without cutting, 12 groups over 12 children would be 12**12 combinations."""
    nodes = [Node("cn"), *(Node(f"pf{n}", "cn", {"VF": 100}) for n in range(12))]
    suffixes = [str(n) for n in range(1, 13)]
    groups = tuple(RequestGroup(suffix, {"VF": 1}) for suffix in suffixes)
    rules = Rules(same_subtrees=(frozenset(suffixes),))
    assert len(shown(fleet(nodes), CandidateQuery(groups, rules))) == 12


def test_no_providers_no_candidates() -> None:
    assert shown(Snapshot.empty(), of(VCPU=1)) == []


@pytest.mark.parametrize("isolate", [True, False])
def test_too_much_for_many_equal_devices_is_seen_at_once(isolate: bool) -> None:  # noqa: FBT001 - a table
    """Walked through, 17 groups over 16 children with room for one each are 16! ways to fail."""
    nodes = [Node("cn"), *(Node(f"pf{n}", "cn", {"VF": 1}) for n in range(16))]

    def ask(count: int) -> CandidateQuery:
        groups = tuple(RequestGroup(str(n), {"VF": 1}) for n in range(1, count + 1))
        return CandidateQuery(groups, Rules(isolate))

    assert shown(fleet(nodes), ask(17)) == []
    assert next(candidates(fleet(nodes), ask(16)), None) is not None


# --- equal devices and equal trees ---------------------------------------------------------------


def gpus(count: int, **shape: int) -> list[Node]:
    return [Node("cn"), *(Node(f"g{n}", "cn", dict(shape)) for n in range(count))]


def asking(count: int, **wanted: int) -> tuple[RequestGroup, ...]:
    return tuple(RequestGroup(str(n), dict(wanted)) for n in range(1, count + 1))


def test_equal_devices_are_not_tried_in_every_order_to_fail_in_each() -> None:
    """15 devices with room for one 5 of 8 each: the sums fit 16 groups, no distribution does."""
    query = CandidateQuery(asking(16, GPU=5))
    assert shown(fleet(gpus(15, GPU=8)), query) == []
    assert next(candidates(fleet(gpus(16, GPU=8)), query), None) is not None


def test_failing_together_in_one_subtree_is_seen_without_walking_all() -> None:
    """Under each of two cells 8 devices; a group needs a ninth there, for nobody else."""
    cells = [Node("cn"), Node("c0", "cn"), Node("c1", "cn")]
    devices = [Node(f"d{n}", f"c{n % 2}", {"GPU": 1}) for n in range(16)]
    suffixes = [str(n) for n in range(1, 10)]
    names = frozenset([*suffixes, "CELL"])
    groups = (
        *(RequestGroup(suffix, {"GPU": 1}) for suffix in suffixes),
        RequestGroup("CELL", {}, (frozenset({"CELL"}),)),
    )
    marked = [cells[0], *(replace(cell, traits=frozenset({"CELL"})) for cell in cells[1:])]
    query = CandidateQuery(groups, Rules(same_subtrees=(names,)))
    assert shown(fleet([*marked, *devices]), query) == []


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_many_selections_of_equal_trees_are_each_found_once(count: int) -> None:
    """More than are kept per pattern, in two trees that are equal."""
    nodes = [
        node
        for host in ("a", "b")
        for node in (Node(host), *(Node(f"{host}{n}", host, {"GPU": 2}) for n in range(5)))
    ]
    found = shown(fleet(nodes), CandidateQuery(asking(count, GPU=1)))
    per_tree = sum(
        all(picked.count(device) <= 2 for device in picked)
        for picked in product(range(5), repeat=count)
    )
    assert len(found) == len(set(found)) == 2 * per_tree
