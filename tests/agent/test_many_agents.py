"""Many agents at once, beside Nova's compute services, and two on one node."""

import random
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.agent.machines import two_sockets
from tests.agent.reporting import NodeAgent, Placement, WithRoles, placement_over, totals

from moorage.client.placement_wire import within
from moorage.testing import in_process
from moorage.testing.ledger_copy import new_database

AGENTS = 100
CARDS = "networks: [{address: '*', physnet: A}]\nshared_storage: [{name: ceph, total_gb: 9000}]"


@pytest.fixture
def placement(tmp_path: Path) -> Iterator[Placement]:
    """Moorage over a database in a file, as several processes would have it."""
    with in_process.app(new_database(tmp_path)) as application:
        transport = WithRoles(within(application))
        with placement_over(transport, "http://moorage.invalid/placement") as found:
            yield found


def nova_reports(placement: Placement, host: str, dice: random.Random) -> None:
    """What Nova's compute does now and then; the agent never makes its generation stale."""
    for _ in range(3):
        placement.stock(placement.uuid(host), VCPU=32, MEMORY_MB=131_072, DISK_GB=480)
        placement.allocate(f"{host} {dice.random()}", (host, {"VCPU": 1, "MEMORY_MB": 512}))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_fleet_of_agents_converges_beside_nova(placement: Placement, tmp_path: Path) -> None:
    hosts = [f"n{number}" for number in range(AGENTS)]
    for host in hosts:
        placement.host(host, VCPU=32, MEMORY_MB=131_072, DISK_GB=480)
    agents = {host: NodeAgent(placement, tmp_path / host, CARDS) for host in hosts}

    with ThreadPoolExecutor(8) as pool:
        reports = [pool.submit(agents[host].run, two_sockets(host)) for host in hosts]
        novas = [
            pool.submit(nova_reports, placement, host, random.Random(host))
            for host in random.Random(0).sample(hosts, AGENTS)
        ]
        for report in reports:
            report.result()
        for nova in novas:
            nova.result()
    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(lambda host: agents[host].run(two_sockets(host)).steps, hosts))
    for host in hosts[::20]:
        own = totals(placement.stocks(host).values())
        assert own["SRIOV_NET_VF"] == 16
        assert own["VCPU"] == 32
    assert placement.stocks("pool:ceph") == {"pool:ceph": {"DISK_GB": 9000}}
    pools = placement.call("GET", "/resource_providers?required=MISC_SHARES_VIA_AGGREGATE")
    assert len(pools["resource_providers"]) == 1


def test_two_agents_of_one_node_at_once(placement: Placement, tmp_path: Path) -> None:
    for number in range(5):
        host = f"n{uuid.uuid4().hex[:8]}"
        placement.host(host, VCPU=8)
        agents = [NodeAgent(placement, tmp_path / f"{number}-{n}", CARDS) for n in range(4)]
        with ThreadPoolExecutor(4) as pool:
            runs = [
                pool.submit(one.run, two_sockets(host), sleep=time.sleep, chance=random.random)
                for one in agents
            ]
            for run in runs:
                run.result()
        assert agents[0].run(two_sockets(host)).steps == ()
        names = placement.tree(host)
        assert len(names) == 6
        assert not any("~" in name for name in names)
