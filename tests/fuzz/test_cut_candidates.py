"""Candidates cut by a limit, beside those of the reference in breadth-first mode.

There `max_allocation_candidates` stops the generation; its `limit` cuts a set in the order of its
hashes, which says nothing of trees.
"""

from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest
from tests.fuzz.agreement import Disagreement
from tests.fuzz.differences import name_of
from tests.fuzz.sides import Answer, Call, Reference, ours, send

# Warnings of the reference's own code are not ours to repair.
pytestmark = pytest.mark.filterwarnings("ignore")

SHARING = "MISC_SHARES_VIA_AGGREGATE"
SEEDS = range(1, 7)
QUERIES = 8


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    reference = Reference(tmp_path_factory.mktemp("reference"))
    yield reference
    reference.close()


class Fleet:
    """Hosts with cells and devices, and pools that share with some: as requests that make them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.calls = [Call("PUT", f"/resource_classes/CUSTOM_{name}") for name in ("GPU", "NIC")]
        self.pools: set[str] = set()
        groups = [self._uuid(), self._uuid()]
        for _ in range(random.randint(2, 6)):
            host = self._provider(None, {"VCPU": 8, "DISK_GB": 4}, groups)
            cells = [self._provider(host, {"VCPU": 4}, ()) for _ in range(random.randint(0, 2))]
            for _ in range(random.randint(1, 4)):
                parent = random.choice([host, *cells])
                self._provider(parent, {"CUSTOM_GPU": 2, "CUSTOM_NIC": 2}, ())
        for _ in range(random.randint(0, 2)):
            self.pools.add(self._provider(None, {"DISK_GB": 9}, groups, SHARING))

    def _uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _provider(self, parent: str | None, most: dict[str, int], groups: Any, *traits: str) -> str:
        uuid, path = self._uuid(), "/resource_providers"
        body: dict[str, Any] = {"uuid": uuid, "name": uuid, "parent_provider_uuid": parent}
        self.calls.append(Call("POST", path, body=body))
        own = [name for name in most if self._random.random() < 0.9]
        stocks = {name: {"total": self._random.randint(1, most[name])} for name in own}
        body = {"resource_provider_generation": 0, "inventories": stocks}
        self.calls.append(Call("PUT", f"{path}/{uuid}/inventories", body=body))
        if traits:
            body = {"resource_provider_generation": 1, "traits": traits}
            self.calls.append(Call("PUT", f"{path}/{uuid}/traits", body=body))
        member = [one for one in groups if self._random.random() < 0.6]
        if member:
            self.calls.append(Call("PUT", f"{path}/{uuid}/aggregates", "1.1", body=member))
        return uuid


def query(random: Random) -> str:
    """Resources of a host, and a group for each device."""
    plain = random.choice(["VCPU:1", "VCPU:2,DISK_GB:1", "DISK_GB:1", ""])
    groups = [
        f"resources{n}=CUSTOM_{random.choice(['GPU', 'GPU', 'NIC'])}:1"
        for n in range(1, random.choice([1, 2, 2, 3, 4]) + (not plain))
    ]
    parts = [f"resources={plain}"] * bool(plain) + groups
    parts.append(f"group_policy={random.choice(['none', 'isolate'])}")
    if len(groups) > 1 and random.random() < 0.2:
        parts.append("same_subtree=" + ",".join(str(n + 1) for n in range(len(groups))))
    return "/allocation_candidates?" + "&".join(parts)


def requests(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.json["allocation_requests"]
    for one in found:
        one["mappings"] = {suffix: sorted(of) for suffix, of in one["mappings"].items()}
    return found


def trees(answer: Answer, pools: set[str]) -> list[frozenset[str]]:
    """Per candidate the roots of its providers that do not share."""
    summaries = answer.json["provider_summaries"]
    return [
        frozenset(summaries[uuid]["root_provider_uuid"] for uuid in one["allocations"]) - pools
        for one in answer.json["allocation_requests"]
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_is_as_long_as_the_references_and_has_no_fewer_trees(
    seed: int, reference: Reference
) -> None:
    random = Random(seed)
    reference.empty()
    made = Fleet(random)
    cut = 0
    with ours() as app:
        for call in made.calls:
            assert send(app, call).status == send(reference.app, call).status < 300, call
        for _ in range(QUERIES):
            whole = Call("GET", query(random))
            reference.bound_candidates(-1)
            here, there = send(app, whole), send(reference.app, whole)
            every = requests(here)
            if len(every) != len(requests(there)):
                assert name_of(Disagreement(whole, here, there)), whole
                continue
            assert all(one in every for one in requests(there))
            able = {one for one in trees(here, made.pools) if one}
            for limit in {random.randint(1, max(1, len(every))) for _ in range(3)}:
                some = send(app, Call("GET", f"{whole.path}&limit={limit}"))
                reference.bound_candidates(limit)
                theirs = send(reference.app, whole)
                kept = requests(some)
                assert len(kept) == len(requests(theirs)) == min(limit, len(every))
                assert all(one in every for one in kept)
                first = trees(some, made.pools)[: min(limit, len(able))]
                assert len(set(first)) == min(limit, len(able))
                assert len(set(first)) >= len(set(trees(theirs, made.pools)) - {frozenset()})
                cut += len(kept) < len(every)
    assert cut > 0


@pytest.mark.parametrize("strategy", ["breadth-first", "depth-first"])
def test_a_bound_keeps_the_trees_that_the_references_strategy_keeps(
    strategy: str, reference: Reference
) -> None:
    """5 hosts with 4 devices, two for each server: 12 candidates a host; 26 are kept."""
    reference.empty()
    made = Fleet(Random(0))
    del made.calls[2:]
    for _ in range(5):
        host = made._provider(None, {}, ())
        for _ in range(4):
            body = {"resource_provider_generation": 0, "inventories": {"CUSTOM_GPU": {"total": 1}}}
            path = f"/resource_providers/{made._provider(host, {}, ())}/inventories"
            made.calls[-1] = Call("PUT", path, body=body)
    reference.bound_candidates(26, strategy)
    asked = "/allocation_candidates?resources1=CUSTOM_GPU:1&resources2=CUSTOM_GPU:1"
    call = Call("GET", f"{asked}&group_policy=isolate")
    bound = {
        "max_allocation_candidates": "26",
        "allocation_candidates_generation_strategy": strategy,
    }
    with ours(**bound) as app:
        for one in made.calls:
            assert send(app, one).status == send(reference.app, one).status < 300, one
        here, there = (send(side, call) for side in (app, reference.app))
        counts = [
            sorted(map(trees(one, set()).count, set(trees(one, set())))) for one in (here, there)
        ]
        assert counts[0] == counts[1] == ([5, 5, 5, 5, 6] if strategy[0] == "b" else [2, 12, 12])
        few = send(app, Call("GET", f"{call.path}&limit=3"))
        assert len(set(trees(few, set()))) == 3
