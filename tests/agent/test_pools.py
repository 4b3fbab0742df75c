"""Shared storage is one sharing provider, however many nodes see it."""

import uuid

import pytest
from tests.agent.machines import Machine, edge
from tests.agent.reporting import NodeAgent, Placement, codes, totals

SHARED = "shared_storage: [{mount: /var/lib/nova/instances, total_gb: 8000}]"


@pytest.fixture
def hosts() -> tuple[str, str]:
    some = uuid.uuid4().hex[:8]
    return f"a{some}", f"b{some}"


def storage(host: str, export: str) -> Machine:
    machine = Machine(host).cpus("0-7").cell(0, "0-7", 65_536).disk("sda", 100)
    machine.function("0000:00:00.0", 0x060400, "8086:2711", -1)
    return machine.mount(f"10.0.0.9:/{export}", "/var/lib/nova/instances", "nfs4")


def members(placement: Placement, pool: str) -> set[str]:
    """Roots of the trees that are in an aggregate of the pool."""
    own = placement.uuid(pool)
    aggregates = placement.call("GET", f"/resource_providers/{own}/aggregates")["aggregates"]
    found = placement.call("GET", f"/resource_providers?member_of=in:{','.join(aggregates)}")
    roots = {one["root_provider_uuid"] for one in found["resource_providers"]} - {own}
    return {placement.name(root) for root in roots}


def test_a_pool_is_counted_once_and_serves_every_node(
    placement: Placement, agent: NodeAgent, hosts: tuple[str, str]
) -> None:
    export = uuid.uuid4().hex
    pool = f"pool:10.0.0.9:/{export}"
    for host in hosts:
        placement.host(host, VCPU=8, MEMORY_MB=65_536)
        agent.run(storage(host, export), SHARED)
        assert agent.run(storage(host, export), SHARED).steps == ()
    assert members(placement, pool) == set(hosts)
    assert placement.stocks(pool) == {pool: {"DISK_GB": 8000}}
    own = totals(one for host in hosts for one in placement.stocks(host).values())
    assert "DISK_GB" not in own
    found = placement.call("GET", "/allocation_candidates?resources=VCPU:1,DISK_GB:100")
    served = [
        one["allocations"].keys()
        for one in found["allocation_requests"]
        if placement.uuid(pool) in one["allocations"]
    ]
    assert {placement.name(p) for some in served for p in some} == {*hosts, pool}


def test_a_node_leaves_when_nothing_of_its_is_in_the_pool(
    placement: Placement, agent: NodeAgent, hosts: tuple[str, str]
) -> None:
    export = uuid.uuid4().hex
    pool = f"pool:10.0.0.9:/{export}"
    for host in hosts:
        placement.host(host, VCPU=8)
        agent.run(storage(host, export), SHARED)
    first, second = hosts
    placement.allocate(first, (first, {"VCPU": 1}), (pool, {"DISK_GB": 10}))
    found = agent.run(storage(first, export), "")
    assert codes(found) == ["pool-in-use"]
    assert members(placement, pool) == set(hosts)
    placement.release(first)
    agent.run(storage(first, export), "")
    assert members(placement, pool) == {second}
    assert "CUSTOM_MOORAGE_VANISHED" in placement.tree(first)[f"{first}/storage"]["traits"]
    agent.run(storage(second, export), "")
    found = placement.call("GET", f"/resource_providers?name={pool}")
    assert found == {"resource_providers": []}, "the last has left"


def test_a_filesystem_that_is_not_mounted_is_not_left(
    placement: Placement, agent: NodeAgent, hosts: tuple[str, str]
) -> None:
    host, export = hosts[0], uuid.uuid4().hex
    placement.host(host, VCPU=8)
    agent.run(storage(host, export), SHARED)
    away = storage(host, export)
    away.files["proc/self/mounts"] = "/dev/sda1 / ext4 rw 0 0\n"
    found = agent.run(away, SHARED)
    assert codes(found) == ["not-mounted"]
    assert members(placement, f"pool:10.0.0.9:/{export}") == {host}


def test_a_measured_size_only_grows(
    placement: Placement, agent: NodeAgent, hosts: tuple[str, str]
) -> None:
    """A node that lies about a pool changes little: what it says less of stays."""
    first, second = hosts
    name = uuid.uuid4().hex
    for host in hosts:
        placement.host(host, VCPU=8)
    large = f"shared_storage: [{{name: {name}, total_gb: 8000}}]"
    agent.run(storage(first, "x"), large)
    pool = f"pool:{name}"
    mounted = f"shared_storage: [{{name: {name}, mount: /}}]"
    found = agent.run(storage(second, "x"), mounted)
    assert codes(found) == ["pool-differs"]
    assert placement.stocks(pool) == {pool: {"DISK_GB": 8000}}
    agent.run(storage(first, "x"), large.replace("8000", "6000"))
    assert placement.stocks(pool) == {pool: {"DISK_GB": 6000}}


def test_a_local_disk_is_not_shared(
    placement: Placement, agent: NodeAgent, hosts: tuple[str, str]
) -> None:
    placement.host(hosts[0], VCPU=8)
    found = agent.run(edge(hosts[0]), "shared_storage: [{mount: /, total_gb: 10}]")
    assert codes(found) == ["not-shared"]
    assert f"{hosts[0]}/storage" not in placement.tree(hosts[0])
