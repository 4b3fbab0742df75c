"""`moorage admin sync nova` and the setting nova_sync against a running Nova."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.minicloud.admin import admin
from tests.minicloud.cloud import Cloud
from tests.minicloud.tenant import Operator, Tenant, eventually

RULES = """
topology: {location: {levels: [zone, rack]}}
rules:
  - {availability_zone: '(?P<zone>.+)'}
  - {metadata: {rack: '(?P<rack>.+)'}}
"""


def synced(cloud: Cloud, *words: str) -> tuple[int, Any]:
    status, told = admin(cloud, "sync", "nova", "--from", "catalog", "--keystone", *words)
    assert "errors" not in told, told
    return status, told


def flavors(tenant: Tenant) -> dict[str, dict[str, int]]:
    return {one["name"]: one["resources"] for one in tenant.native("GET", "/flavors")["flavors"]}


def test_flavors_follow_nova(cloud: Cloud, operator: Operator, demo: Tenant) -> None:
    nova, name = operator.nova, f"sync-{uuid4().hex[:6]}"
    assert synced(cloud)[0] == 0, "all flavors of this cloud can be placed"
    made = nova.create_flavor(name=name, ram=1024, vcpus=2, disk=5, is_public=False)
    try:
        status, told = synced(cloud)
        assert (status, told["flavors"]["created"]) == (0, [name]), told
        assert flavors(demo)[name] == {"DISK_GB": 5, "MEMORY_MB": 1024, "VCPU": 2}
        nova.create_flavor_extra_specs(made, {"hw:cpu_policy": "dedicated"})
        assert synced(cloud, "--dry-run")[1]["flavors"]["changed"] == [name]
        assert synced(cloud)[1]["flavors"]["changed"] == [name]
        assert flavors(demo)[name] == {"DISK_GB": 5, "MEMORY_MB": 1024, "PCPU": 2}
        assert synced(cloud)[1]["flavors"]["unchanged"] == len(list(nova.flavors()))
        nova.create_flavor_extra_specs(made, {"nonsense": "1"})
        status, told = synced(cloud)
        assert status == 4
        assert [one["name"] for one in told["flavors"]["refused"]] == [name]
        assert "nonsense" in told["flavors"]["refused"][0]["reason"]
        assert name not in flavors(demo)
        nova.delete_flavor_extra_specs_property(made, "nonsense")
        assert synced(cloud)[1]["flavors"]["created"] == [name]
    finally:
        nova.delete_flavor(made)
    assert synced(cloud)[1]["flavors"]["deleted"] == [name]
    assert name not in flavors(demo)


@pytest.fixture
def racks(cloud: Cloud, operator: Operator) -> Iterator[dict[str, Any]]:
    """A zone of the first two computes, and two racks of one each."""
    nova = operator.nova
    made = {
        "zone": nova.create_aggregate(name=f"z-{uuid4().hex[:6]}", availability_zone="az1"),
        "r1": nova.create_aggregate(name=f"r1-{uuid4().hex[:6]}"),
        "r2": nova.create_aggregate(name=f"r2-{uuid4().hex[:6]}"),
    }
    for rack in ("r1", "r2"):
        nova.set_aggregate_metadata(made[rack], {"rack": rack})
    for name, host in (("zone", 1), ("zone", 2), ("r1", 1), ("r2", 2)):
        nova.add_host_to_aggregate(made[name], f"compute{host}")
    try:
        yield made
    finally:
        for one in made.values():
            for host in nova.get_aggregate(one).hosts or ():
                nova.remove_host_from_aggregate(one, host)
            nova.delete_aggregate(one)


def places(operator: Operator) -> dict[str, str]:
    url = operator.cloud.layout.url("moorage", "/v1/topology/domains")
    shown = operator.connection.session.get(url).json()
    return {one["host"]: one["domain"] for one in shown["topology"]["attachments"]}


@pytest.fixture
def no_topology(cloud: Cloud, operator: Operator) -> Iterator[None]:
    """Whatever a test loads is gone after it."""
    yield
    url = cloud.layout.url("moorage", "/v1/topology/domains")
    empty: dict[str, Any] = {"topology": {"levels": {}, "domains": [], "attachments": []}}
    operator.connection.session.put(url, json=empty)


@pytest.mark.usefixtures("no_topology")
def test_hosts_are_placed_by_zones_and_aggregates(
    cloud: Cloud, operator: Operator, racks: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    rules = ("--topology", str(tmp_path / "rules.yaml"))
    assert len(synced(cloud, *rules, "--dry-run")[1]["topology"]["moves"]) == 3
    status, told = synced(cloud, *rules)
    assert (status, told["topology"]["unplaced"]) == (0, {}), told
    assert places(operator) == {"compute1": "r1", "compute2": "r2", "compute3": "nova"}
    assert not synced(cloud, *rules)[1]["topology"]["changed"]
    operator.nova.add_host_to_aggregate(racks["zone"], "compute3")
    operator.nova.add_host_to_aggregate(racks["r2"], "compute3")
    moves = synced(cloud, *rules)[1]["topology"]["moves"]
    assert [(one["host"], one["after"]) for one in moves] == [("compute3", "r2")]


@pytest.mark.usefixtures("no_topology")
def test_the_service_follows_by_itself(
    cloud: Cloud, operator: Operator, demo: Tenant, racks: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    config = cloud.layout.home / "moorage" / "moorage.conf"
    before = config.read_text()
    more = f"[DEFAULT]\nnova_sync = 1s\ntopology_rules = {tmp_path}/rules.yaml\n"
    config.write_text(before.replace("[DEFAULT]\n", more))
    name = f"sync-{uuid4().hex[:6]}"
    try:
        cloud.program("moorage").stop()
        cloud.start("moorage")
        eventually(lambda: places(operator).get("compute1") == "r1", "compute1 is in r1")
        operator.nova.remove_host_from_aggregate(racks["r1"], "compute1")
        operator.nova.add_host_to_aggregate(racks["r2"], "compute1")
        eventually(lambda: places(operator).get("compute1") == "r2", "compute1 is in r2")
        made = operator.nova.create_flavor(name=name, ram=512, vcpus=1, disk=1)
        eventually(lambda: name in flavors(demo), "the flavor is there")
        operator.nova.delete_flavor(made)
        eventually(lambda: name not in flavors(demo), "the flavor is gone")
    finally:
        cloud.program("moorage").stop()
        config.write_text(before)
        cloud.start("moorage")
