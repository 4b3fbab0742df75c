"""What is measured: one line per row of the table, each some requests against one fleet."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.placement.client import Client
from benchmarks.placement.shapes import PROJECT, USER, identity, zone

Work = Callable[[Client, random.Random, int], None]
"""One repetition: a connection, a source of chance, and how many hosts the fleet has."""

FLAVOR: Final = {"VCPU": 2, "MEMORY_MB": 2_048, "DISK_GB": 10}
RESOURCES: Final = "resources=VCPU:2,MEMORY_MB:2048,DISK_GB:10"
CANDIDATES: Final = "/allocation_candidates?"
SMALL: Final = "resources=VCPU:2,MEMORY_MB:2048"
NOVA: Final = (
    f"{CANDIDATES}{RESOURCES}&required=HW_CPU_X86_AVX2,!COMPUTE_STATUS_DISABLED"
    f"&member_of={zone(2)}&root_required=COMPUTE_NODE,!COMPUTE_STATUS_DISABLED"
)
NUMA: Final = (
    f"{CANDIDATES}resources=DISK_GB:10&resources_A=VCPU:2,MEMORY_MB:2048"
    "&resources_B=VCPU:2,MEMORY_MB:2048&group_policy=isolate"
)
SUBTREE: Final = (
    f"{CANDIDATES}resources=DISK_GB:10&resources_CPU={SMALL.removeprefix('resources=')}"
    "&resources_DEV=CUSTOM_FPGA:1&required_DEV=CUSTOM_FAST_CARD"
    "&required_CELL=HW_NUMA_ROOT&same_subtree=_CELL,_CPU,_DEV&group_policy=none"
)
PORTS: Final = (
    f"{CANDIDATES}{RESOURCES}&resources1=SRIOV_NET_VF:1&required1=CUSTOM_PHYSNET_0"
    "&resources2=SRIOV_NET_VF:1&required2=CUSTOM_PHYSNET_1&group_policy=isolate"
)


def devices(groups: int, policy: str, host: int) -> str:
    """Groups of one device each, on one of the two wide hosts."""
    wanted = "&".join(
        f"resources{n}=CUSTOM_GPU:1&in_tree{n}={identity(5, host)}" for n in range(1, groups + 1)
    )
    return f"{CANDIDATES}{wanted}&group_policy={policy}"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    key: str
    shape: str
    title: str
    work: Work
    target: float | None = None
    """The least ratio theirs:ours the issue asks for."""
    target_on_server: float | None = None
    """The same where the database is a server of its own, if it is another."""
    bound_ms: float | None = None
    """The most wall time ours may take."""
    same: str | None = None
    """A query without limit whose whole answers must agree."""
    clients: int = 1
    peer: bool = True
    """Whether the reference can do it at all in time; `same` is compared in any case."""


def reading(path: str) -> Work:
    """GET one path."""

    def work(client: Client, _chance: random.Random, _hosts: int) -> None:
        answer = client.get(path)
        _expect(answer.status, 200, answer.body)

    return work


def in_tree(path: str, kind: int) -> Work:
    """GET candidates inside some host's tree."""

    def work(client: Client, chance: random.Random, hosts: int) -> None:
        answer = client.get(f"{path}&in_tree={identity(kind, chance.randrange(hosts))}")
        _expect(answer.status, 200, answer.body)

    return work


def same_host_subtree(client: Client, chance: random.Random, hosts: int) -> None:
    """The same_subtree query held to one host, as for a move to a named host."""
    host = identity(2, chance.randrange(hosts))
    named = "".join(f"&in_tree{suffix}={host}" for suffix in ("", "_CPU", "_DEV", "_CELL"))
    answer = client.get(f"{SUBTREE}{named}")
    _expect(answer.status, 200, answer.body)
    if not answer.json["allocation_requests"]:
        raise RuntimeError("no candidate under same_subtree with in_tree")


def allocation(host: str, generation: int | None = None) -> dict[str, Any]:
    """A body for PUT /allocations."""
    return {
        "allocations": {host: {"resources": FLAVOR}},
        "project_id": PROJECT,
        "user_id": USER,
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def put(client: Client, chance: random.Random, hosts: int) -> None:
    """Write one new consumer's allocation on some host."""
    consumer, host = uuid.UUID(int=chance.getrandbits(128), version=4), chance.randrange(hosts)
    answer = client.send("PUT", f"/allocations/{consumer}", allocation(identity(1, host)))
    _expect(answer.status, 204, answer.body)


def put_and_delete(client: Client, chance: random.Random, hosts: int) -> None:
    """Write and drop one allocation."""
    consumer, host = uuid.UUID(int=chance.getrandbits(128), version=4), chance.randrange(hosts)
    answer = client.send("PUT", f"/allocations/{consumer}", allocation(identity(1, host)))
    _expect(answer.status, 204, answer.body)
    answer = client.send("DELETE", f"/allocations/{consumer}")
    _expect(answer.status, 204, answer.body)


def claim(client: Client, chance: random.Random, _hosts: int) -> None:
    """What Nova does for one server: candidates, then a claim of one of them."""
    answer = client.get(f"{CANDIDATES}{RESOURCES}&limit=1000")
    _expect(answer.status, 200, answer.body)
    found = answer.json["allocation_requests"]
    for _ in range(20):
        body = {**allocation(""), "allocations": chance.choice(found)["allocations"]}
        consumer = uuid.UUID(int=chance.getrandbits(128), version=4)
        answer = client.send("PUT", f"/allocations/{consumer}", body)
        # SQLite under the reference answers 500 "database is locked"; Nova would try again.
        if answer.status not in {409, 500}:
            break
    _expect(answer.status, 204, answer.body)


def load(client: Client, chance: random.Random, _hosts: int) -> None:
    """One host as a compute service reports it: four requests."""
    own = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    base = f"/resource_providers/{own}"
    answer = client.send("POST", "/resource_providers", {"uuid": own, "name": f"new-{own}"})
    _expect(answer.status, 200, answer.body)
    stocks = {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 262_144}, "DISK_GB": {"total": 2_000}}
    steps = (
        ("inventories", {"resource_provider_generation": 0, "inventories": stocks}),
        ("traits", {"resource_provider_generation": 1, "traits": ["COMPUTE_NODE"]}),
        ("aggregates", {"resource_provider_generation": 2, "aggregates": [zone(99)]}),
    )
    for part, body in steps:
        answer = client.send("PUT", f"{base}/{part}", body)
        _expect(answer.status, 200, answer.body)


def _expect(status: int, wanted: int, body: bytes) -> None:
    if status != wanted:
        raise RuntimeError(f"status {status} instead of {wanted}: {body[:500]!r}")


_ALL: Final = f"{CANDIDATES}{RESOURCES}"
_RARE: Final = f"{_ALL}&required=CUSTOM_RARE"

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    # ruff: noqa: E501 - one line per row, or it is no table

    Row("floor", "flat", "GET / (nothing but HTTP)", reading("/"), None),
    Row("limit", "flat", "candidates, limit=1000", reading(f"{_ALL}&limit=1000"), 200, same=_ALL),
    Row("all", "flat", "candidates, unlimited", reading(_ALL), 100),
    Row("nova", "flat", "Nova-like query (traits, zone), limit=1000", reading(f"{NOVA}&limit=1000"), 200, same=NOVA),
    Row("one", "flat", "candidates, limit=1", reading(f"{_ALL}&limit=1"), 300),
    Row("rare", "flat", "rare trait (1 %), limit=1000", reading(f"{_RARE}&limit=1000"), 300, same=_RARE),
    Row("in_tree", "flat", "in_tree", in_tree(_ALL, 1), 50),
    Row("list", "flat", "GET resource_providers", reading("/resource_providers"), 20, same="/resource_providers"),
    Row("fits", "flat", "GET resource_providers?resources=", reading(f"/resource_providers?{RESOURCES}"), 100, same=f"/resource_providers?{RESOURCES}"),
    Row("numa", "numa", "NUMA, limit=1000", reading(f"{CANDIDATES}{RESOURCES}&limit=1000"), 200, same=f"{CANDIDATES}{RESOURCES}"),
    Row("cells", "numa", "NUMA, two groups isolated, limit=1000", reading(f"{NUMA}&limit=1000"), 200, same=NUMA),
    Row("subtree", "numa", "NUMA, same_subtree, limit=1000", reading(f"{SUBTREE}&limit=1000"), 200, same=SUBTREE),
    Row("subtree_in", "numa", "NUMA, same_subtree with in_tree", same_host_subtree, 300),
    Row("ports", "sriov", "SR-IOV, two ports, limit=1000", reading(f"{PORTS}&limit=1000"), 200),
    Row("sriov", "sriov", "SR-IOV fleet, no port, limit=1000", reading(f"{_ALL}&limit=1000"), 200, same=_ALL),
    Row("shared", "shared", "shared storage, limit=1000", reading(f"{_ALL}&limit=1000"), 200, same=_ALL),
    Row("wide8", "wide", "8 equal children x 6 groups isolated, limit=1000", reading(f"{devices(6, 'isolate', 0)}&limit=1000"), bound_ms=50, peer=False, same=devices(3, "none", 0)),
    Row("wide8n", "wide", "8 equal children x 6 groups, limit=1000", reading(f"{devices(6, 'none', 0)}&limit=1000"), bound_ms=50, peer=False),
    Row("wide64", "wide", "64 equal children x 16 groups, limit=1000", reading(f"{devices(16, 'isolate', 1)}&limit=1000"), bound_ms=50, peer=False),
    Row("put", "flat", "PUT allocation", put, 20, target_on_server=12),
    Row("delete", "flat", "PUT allocation + DELETE", put_and_delete, None),
    Row("claim", "flat", "claim cycle (GET 1000 + PUT), 16 clients", claim, 50, clients=16),
    Row("load", "flat", "loading a host (4 requests)", load, 7),
)
# fmt: on
