"""Topologies that somebody else loads between the look at the ledger and the commit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.conftest import Between

from moorage.client.fleet_file import read_places
from moorage.domain.changes import Changeset, PutTopology, UpdateProvider
from moorage.domain.errors import ProviderConflict
from moorage.domain.fleet_parts import FleetPart
from moorage.domain.nova_hosts import NovaHost
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.ledger.fleet_loading import load_fleet
from moorage.usecases.ledger.nova_sync import sync_topology

FLEET = "fleet: f\nhosts:\n  - {name: 'n{n}', count: 2, inventories: {VCPU: 8}}\n"
RULES = "topology: {location: {levels: [zone]}}\nrules: [{availability_zone: '(?P<zone>.+)'}]\n"
N1 = NovaHost("n1", "az1", {}, enabled=True, up=True)
POWER = Topology.build(
    {"power": ("pdu",)}, [Domain("p1", "pdu", "power")], [Attachment("n1", "p1", "power")]
)
RACKS = Topology.build({"location": ("rack",)}, [Domain("r1", "rack")], [Attachment("n1", "r1")])


@pytest.fixture
def two_hosts() -> Iterator[Service]:
    found = Service(FLEET)
    yield found
    found.close()


def meanwhile(service: Service) -> Any:
    """The store; just before the next commit somebody loads the power tree."""
    return Between(service.store, lambda: service.store.commit(Changeset((PutTopology(POWER),))))


def test_a_tree_that_is_loaded_while_hosts_are_placed_stays(two_hosts: Service) -> None:
    env = replace(two_hosts.env, store=meanwhile(two_hosts))
    done = sync_topology(env, OPERATOR, read_places(RULES), [N1])
    assert [(one.host, one.after) for one in done.moves] == [("n1", "az1")]
    there = two_hosts.store.snapshot().topology.attachments
    assert dict(there) == {("power", "n1"): "p1", ("location", "n1"): "az1"}


def test_a_fleet_does_not_replace_a_topology_that_is_loaded_meanwhile(two_hosts: Service) -> None:
    with pytest.raises(ProviderConflict, match="topology"):
        load_fleet(meanwhile(two_hosts), OPERATOR, FleetPart(topology=RACKS))
    assert dict(two_hosts.store.snapshot().topology.attachments) == {("power", "n1"): "p1"}


def test_a_host_that_is_renamed_in_placement_keeps_its_zone(two_hosts: Service) -> None:
    snapshot = two_hosts.store.snapshot()
    uuid = next(
        snapshot.uuids[row] for row in snapshot.roots.tolist() if snapshot.names[row] == "n1"
    )
    two_hosts.store.commit(Changeset((UpdateProvider(uuid, "renamed"),)))
    rules = read_places(RULES)
    assert sync_topology(two_hosts.env.in_dry_run(), OPERATOR, rules, [N1]).moves == ()
    done = sync_topology(two_hosts.env, OPERATOR, rules, [replace(N1, uuid=uuid)])
    assert [(one.host, one.after) for one in done.moves] == [("renamed", "az1")]
