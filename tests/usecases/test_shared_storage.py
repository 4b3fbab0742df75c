"""Servers that also take from a sharing provider: they stand on their host, not there."""

from collections.abc import Iterator

import pytest

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    PutAggregates,
    PutInventories,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.providers import Inventory
from moorage.testing.service import OPERATOR, Service

NFS = "11111111-1111-4111-8111-111111111111"
AGGREGATE = "22222222-2222-4222-8222-222222222222"
HOST = "33333333-3333-4333-8333-333333333333"
SERVER = "44444444-4444-4444-8444-444444444444"
VOLUME = "55555555-5555-4555-8555-555555555555"


@pytest.fixture
def shared() -> Iterator[Service]:
    """A host whose disks are a store shared by aggregate, and a server that takes from both."""
    service = Service()
    shares = frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    aggregate = frozenset({AGGREGATE})
    changes = (
        CreateProvider(NFS, "nfs"),
        PutInventories(NFS, (Inventory("DISK_GB", 1_000),), None),
        PutTraits(NFS, shares, None),
        PutAggregates(NFS, aggregate, None),
        CreateProvider(HOST, "n1"),
        PutInventories(HOST, (Inventory("VCPU", 16),), None),
        PutAggregates(HOST, aggregate, None),
        ReplaceAllocations(
            Consumer(SERVER, "project-a", "ann", "INSTANCE"),
            {NFS: {"DISK_GB": 10}, HOST: {"VCPU": 1}},
            None,
        ),
        ReplaceAllocations(
            Consumer(VOLUME, "project-a", "ann", "VOLUME"), {NFS: {"DISK_GB": 10}}, None
        ),
    )
    service.store.commit(Changeset(changes))
    yield service
    service.close()


@pytest.fixture
def ensemble(shared: Service) -> str:
    body = {"name": "e", "members": [{"name": "web", "count": 0, "resources": {"VCPU": 1}}]}
    return str(shared.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]["id"])


def test_capacity_counts_what_hosts_share(shared: Service) -> None:
    asked = {"resources": "DISK_GB:10"}
    found = shared.call("GET", "/capacity", caller=OPERATOR, query=asked).json["capacity"]
    (part,) = found["parts"]
    (row,) = part["resources"]["DISK_GB"]
    assert (row["total"], row["allocated"], row["available"]) == (1_000, 20, 980)
    assert {one["count"] for one in part["fit"]} == {98}
    assert part["hosts"] == 1
    every = shared.call("GET", "/capacity", caller=OPERATOR).json["capacity"]["parts"][0]
    assert set(every["resources"]) == {"VCPU", "DISK_GB"}


def test_a_store_that_serves_no_host_asked_about_is_not_counted(shared: Service) -> None:
    far = "66666666-6666-4666-8666-666666666666"
    vcpus = PutInventories(far, (Inventory("VCPU", 16),), None)
    shared.store.commit(
        Changeset(
            (
                CreateProvider(far, "n2"),
                vcpus,
                PutTraits(far, frozenset({"HW_CPU_X86_AVX2"}), None),
            )
        )
    )
    asked = {"resources": "DISK_GB:10", "required": "HW_CPU_X86_AVX2"}
    (part,) = shared.call("GET", "/capacity", caller=OPERATOR, query=asked).json["capacity"][
        "parts"
    ]
    assert [row["total"] for row in part["resources"]["DISK_GB"]] == [0]
    assert [one["count"] for one in part["fit"]] == [0]


def test_the_store_is_no_host_in_the_fleet(shared: Service) -> None:
    hosts = shared.call("GET", "/fleet", caller=OPERATOR).json["fleet"]["hosts"]
    assert {one["name"]: one["shares"] for one in hosts} == {"n1": False, "nfs": True}


def test_it_stands_on_its_host(shared: Service, ensemble: str) -> None:
    path = f"/ensembles/{ensemble}/members"
    server = {"server_id": SERVER, "name": "web"}
    refused = shared.call("POST", path, {"member": server})
    assert refused.json["errors"][0]["diff"] == [
        {"path": "resources.DISK_GB", "effect": "exceeds", "described": 0, "requested": 10}
    ]
    joined = shared.call("POST", path, {"member": server | {"on_violation": "accept_and_report"}})
    assert joined.status_code == 201, joined.text
    (member,) = shared.call("GET", path, caller=OPERATOR).json["members"]
    assert member["host"] == "n1"
    more = shared.call("POST", path, {"member": {"role": {"name": "web", "count": 1}}})
    assert more.status_code == 201, more.text


def test_what_stands_on_no_host_is_refused_without_naming_providers(
    shared: Service, ensemble: str
) -> None:
    path = f"/ensembles/{ensemble}/members"
    refused = shared.call("POST", path, {"member": {"server_id": VOLUME, "name": "web"}})
    assert refused.status_code == 400, refused.text
    assert refused.json["errors"][0]["detail"] == "web[0] stands on no host"
    assert NFS not in refused.text
