"""Bodies from kept pieces say the same as bodies encoded whole."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.placement.candidate_texts import allocation_requests, batched_requests
from moorage.api.placement.fragments import Fragments
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.limit import first_candidates
from moorage.engine.candidates.query import CandidateQuery, Rules
from moorage.engine.state.chunks import SIZE
from moorage.engine.state.snapshot import ProviderState, Snapshot


def provider(name: str, parent: str | None = None, **has: int) -> ProviderState:
    root = parent or name
    stocks = tuple(Inventory(one, total) for one, total in has.items())
    return ProviderState(ResourceProvider(name, name, parent, root, inventories=stocks))


def fleet(hosts: int, devices: int) -> Snapshot:
    states = [provider(f"h{n}", VCPU=4, DISK=9) for n in range(hosts)]
    states += [
        provider(f"h{n}-d{d}", f"h{n}", VCPU=2, GPU=2)
        for n, d in product(range(hosts), range(devices))
    ]
    return Snapshot.empty().with_states(states, revision=1)


def normal(body: bytes) -> list[str]:
    def one(candidate: Any) -> str:
        maps = {suffix: sorted(of) for suffix, of in candidate["mappings"].items()}
        return json.dumps([candidate["allocations"], maps], sort_keys=True)

    return sorted(map(one, json.loads(body)))


GROUPS = st.lists(
    st.sampled_from(
        [
            RequestGroup("", {"VCPU": 1, "DISK": 2}),
            RequestGroup("", {"VCPU": 1}),
            RequestGroup("1", {"GPU": 1}),
            RequestGroup("_2", {"GPU": 1, "VCPU": 1}),
            RequestGroup("_X", {}),
        ]
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda group: group.suffix,
)


@given(st.sampled_from([1, 3, 21]), st.integers(0, 3), GROUPS, st.booleans())
def test_candidates_are_written_as_they_are(
    hosts: int,
    devices: int,
    groups: list[RequestGroup],
    isolate: bool,  # noqa: FBT001 - drawn
) -> None:
    compare(fleet(hosts, devices), CandidateQuery(tuple(groups), Rules(isolate)))


def test_many_candidates_of_one_tree_are_written_as_they_are() -> None:
    groups = (RequestGroup("", {"DISK": 1}), *(RequestGroup(f"{n}", {"GPU": 1}) for n in (1, 2)))
    compare(fleet(2, 9), CandidateQuery(groups, Rules(isolate=True)))


@pytest.mark.parametrize("name", ["{:03}", "{}", "hôte-{:03}"])
def test_names_of_all_sorts_are_written_as_they_are(name: str) -> None:
    states = [provider(name.format(n), VCPU=4, DISK=9) for n in range(120)]
    snapshot = Snapshot.empty().with_states(states, revision=1)
    query = CandidateQuery((RequestGroup("", {"VCPU": 1}),))
    compare(snapshot, query)
    compare(snapshot.with_states(removed=[name.format(50)], revision=2), query)


def compare(snapshot: Snapshot, query: CandidateQuery) -> None:
    found = list(candidates(snapshot, query))
    body, used = batched_requests(snapshot, query.shape.slots, first_candidates(snapshot, query))
    whole = allocation_requests(snapshot, found)
    assert normal(b"[%b]" % b"".join(body)) == normal(b"[%b]" % whole)
    assert set(used.tolist()) == {row for one in found for row, _ in one.allocations}


@pytest.mark.parametrize("hosts", [0, 1, SIZE, 2 * SIZE + 7])
def test_pieces_follow_every_change_of_a_provider(hosts: int) -> None:
    made: list[int] = []

    def encode(_snapshot: Snapshot, row: int, state: ProviderState) -> bytes:
        made.append(row)
        return state.provider.name.encode()

    def said(snapshot: Snapshot, rows: Any) -> list[str]:
        parts = fragments.of(snapshot, np.asarray(rows, dtype=np.int64))
        return b"".join(parts).decode().split(",") if len(rows) else []

    fragments = Fragments(encode)
    snapshot = fleet(hosts, 0)
    everyone = np.arange(hosts)
    assert said(snapshot, everyone) == list(snapshot.names)
    assert said(snapshot, everyone[1::2]) == list(snapshot.names[1::2])
    assert len(made) == hosts
    if hosts:
        renamed = ResourceProvider("h0", "new", None, "h0")
        changed = snapshot.with_states([ProviderState(renamed)])
        assert said(changed, everyone) == ["new", *snapshot.names[1:]]
        assert said(snapshot, everyone) == list(snapshot.names), "an older answer stays right"
        assert len(made) == hosts + 2
