"""Candidates that use certain providers of their tree: those of all that do, found at once."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.slow_candidates import Node, fleet
from tests.engine.test_candidate_limit import asking, device_fleets, devices

from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery, Rules


@given(
    nodes=device_fleets(),
    groups=st.integers(0, 3),
    classes=st.lists(st.sampled_from(["VCPU", "DISK_GB"]), unique=True, min_size=1),
    data=st.data(),
)
def test_all_of_an_anchor_that_use_its_providers_are_found(
    nodes: list[Node], groups: int, classes: list[str], data: st.DataObject
) -> None:
    snapshot, isolate = fleet(nodes), data.draw(st.booleans())
    plain = RequestGroup("", dict.fromkeys(classes, 1))
    numbered = (RequestGroup(str(n), {"GPU": 1}) for n in range(1, groups + 1))
    roots = snapshot.roots.tolist()
    anchors = data.draw(st.frozensets(st.sampled_from(roots), min_size=1, max_size=3))
    rows = st.sampled_from(range(len(nodes)))
    used = frozenset(
        (anchor, row) for anchor in sorted(anchors) for row in data.draw(st.frozensets(rows))
    )
    for anchor in sorted(anchors):
        query = CandidateQuery(
            (plain, *numbered), Rules(isolate=isolate), anchors=frozenset({anchor})
        )
        needed = {row for of, row in used if of == anchor}
        wanted = [
            one
            for one in candidates(snapshot, query)
            if needed <= {row for row, _ in one.allocations}
        ]
        mine = frozenset(one for one in used if one[0] == anchor)
        asked = CandidateQuery(query.groups, query.rules, anchors=frozenset({anchor}), used=mine)
        found = list(candidates(snapshot, asked))
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))


@pytest.mark.parametrize("hosts", [1, 3])
def test_places_on_hosts_with_many_devices_are_found_without_trying_the_others(hosts: int) -> None:
    """Eight of 24 devices are 29 billion candidates a host, of which 8! use these."""
    snapshot = fleet(devices(hosts, 24))
    used = frozenset(
        (snapshot.row_of[f"h{host}"], snapshot.row_of[f"h{host}d{n}"])
        for host in range(hosts)
        for n in range(3, 24, 3)
    ) | {(snapshot.row_of[f"h{host}"], snapshot.row_of[f"h{host}d23"]) for host in range(hosts)}
    query = asking(8)
    anchors = frozenset(anchor for anchor, _ in used)
    began = time.monotonic()
    found = candidates(
        snapshot, CandidateQuery(query.groups, query.rules, anchors=anchors, used=used)
    )
    some = [next(found) for _ in range(100)]
    assert time.monotonic() - began < 5
    for one in some:
        rows = {row for row, _ in one.allocations}
        (anchor,) = rows & anchors
        assert {row for of, row in used if of == anchor} == rows - {anchor}
    assert len({min(row for row, _ in one.allocations) for one in some}) == hosts
