"""Questions to which the reference answers 500, or wrongly, on one database or on all."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.store import open_store
from moorage.usecases.ports import Store

HOST_TRAITS = ["COMPUTE_NODE"]
FORBIDDEN = "HW_CPU_X86_AVX2"


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    on_file = request.param == "sqlite"
    ledger = open_store("sqlite://" if on_file else request.getfixturevalue("postgres_url"))
    yield ledger
    ledger.close()


def carry(wire: Any, provider: str, *traits: str) -> None:
    body = {"traits": traits, "resource_provider_generation": wire.generation(provider)}
    assert wire("PUT", f"/resource_providers/{provider}/traits", body).status == 200


def join(wire: Any, aggregate: str, *providers: str) -> None:
    for provider in providers:
        path = f"/resource_providers/{provider}/aggregates"
        assert wire("PUT", path, [aggregate], version="1.1").status == 200


def allocations(answer: Any) -> list[dict[str, dict[str, int]]]:
    assert answer.status == 200, answer.raw
    return [
        {provider: one["resources"] for provider, one in found["allocations"].items()}
        for found in answer.json["allocation_requests"]
    ]


@pytest.mark.parametrize("version", ["1.38", "1.39"])
def test_usages_by_type(wire: Any, version: str) -> None:
    """500 on PostgreSQL."""
    host = wire.provider("host", VCPU=9, MEMORY_MB=64)
    for consumer_type, amount in (("INSTANCE", 1), ("INSTANCE", 2), ("MIGRATION", 4)):
        body = {
            "allocations": {host: {"resources": {"VCPU": amount, "MEMORY_MB": amount}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": consumer_type,
        }
        assert wire("PUT", f"/allocations/{uuid.uuid4()}", body).status == 204
    assert wire("GET", "/usages?project_id=p", version=version).json["usages"] == {
        "INSTANCE": {"VCPU": 3, "MEMORY_MB": 3, "consumer_count": 2},
        "MIGRATION": {"VCPU": 4, "MEMORY_MB": 4, "consumer_count": 1},
    }


def test_a_forbidden_trait_over_nested_trees(wire: Any) -> None:
    """500 on PostgreSQL; Nova forbids a trait in every request."""
    trees = []
    for name in ("good", "bad"):
        host = wire.provider(name, MEMORY_MB=64)
        trees.append((host, wire.provider(f"{name}-numa", host, VCPU=8)))
        carry(wire, host, *HOST_TRAITS)
    carry(wire, trees[1][1], FORBIDDEN)
    query = f"resources=VCPU:1,MEMORY_MB:1&required=COMPUTE_NODE,!{FORBIDDEN}"
    found = allocations(wire("GET", f"/allocation_candidates?{query}"))
    assert found == [{trees[0][0]: {"MEMORY_MB": 1}, trees[0][1]: {"VCPU": 1}}]


def test_sums_of_a_suffixed_and_the_unsuffixed_group(wire: Any) -> None:
    """Amounts pile up between combinations, and candidates are lost."""
    host = wire.provider("host", VCPU=8)
    numa = wire.provider("numa", host, VCPU=5)
    query = "resources=VCPU:3&resources1=VCPU:5"
    found = allocations(wire("GET", f"/allocation_candidates?{query}"))
    expected = [
        {host: {"VCPU": 8}},
        {host: {"VCPU": 5}, numa: {"VCPU": 3}},
        {host: {"VCPU": 3}, numa: {"VCPU": 5}},
    ]
    assert len(found) == len(expected)
    assert all(one in found for one in expected)


@pytest.mark.parametrize("version", ["1.10", "1.28", "1.39"])
def test_one_who_shares_from_within_a_tree(wire: Any, version: str) -> None:
    """500 on every database."""
    host, aggregate = wire.provider("host", VCPU=8), str(uuid.uuid4())
    storage = wire.provider("storage", wire.provider("cabinet"), DISK_GB=100)
    carry(wire, storage, "MISC_SHARES_VIA_AGGREGATE")
    join(wire, aggregate, host, storage)
    answer = wire("GET", "/allocation_candidates?resources=VCPU:1,DISK_GB:1", version=version)
    assert answer.status == 200
    assert len(answer.json["allocation_requests"]) == 1
    assert answer.json["provider_summaries"].keys() >= {host, storage}
