"""Leases that python-blazarclient makes, and servers that the ordinary client creates in them."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import ours
from tests.minicloud.tenant import Operator, Refused, Tenant, eventually


def blazar(cloud: Cloud, user: str, *words: str) -> Any:
    """The real client, which finds the service in the catalogue."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("OS_")}
    ran = subprocess.run(
        [ours("openstack"), "reservation", *words, "-f", "json"],
        env=kept | {"OS_CLIENT_CONFIG_FILE": f"{cloud.layout.home}/clouds.yaml", "OS_CLOUD": user},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout[ran.stdout.index("{") if "{" in ran.stdout else 0 :])


@contextmanager
def leased(cloud: Cloud, *words: str) -> Iterator[dict[str, Any]]:
    """A lease from now on, once it is active; cancelled afterwards."""
    made = blazar(cloud, "demo", "lease", "create", "week", *words)
    lease = str(made["id"])
    tenant = Tenant(cloud)
    try:
        eventually(lambda: _of(tenant, lease)["status"] == "ACTIVE", "the lease is active")
        yield _of(tenant, lease)
    finally:
        url = cloud.layout.url("moorage", f"/reservation/v1/leases/{lease}")
        tenant.connection.session.delete(url)


def _of(tenant: Tenant, lease: str) -> dict[str, Any]:
    url = tenant.cloud.layout.url("moorage", f"/reservation/v1/leases/{lease}")
    found: dict[str, Any] = tenant.connection.session.get(url).json()["lease"]
    return found


def test_instances_are_created_by_the_flavor_that_blazar_names(
    cloud: Cloud, operator: Operator, demo: Tenant, neighbour: Tenant
) -> None:
    wanted = (
        "resource_type=virtual:instance,vcpus=2,memory_mb=4096,disk_gb=40,amount=3,affinity=False"
    )
    with leased(cloud, "--reservation", wanted) as lease:
        [reservation] = lease["reservations"]
        assert reservation["status"] == "active"
        assert reservation["flavor_id"] in {one.id for one in demo.nova.flavors()}
        servers = demo.boot(f"reservation:{reservation['id']}", min_count=3, max_count=3)
        demo.built(*servers)
        assert sorted(map(operator.host, servers)) == cloud.layout.computes
        [more] = demo.boot(reservation["flavor_id"])
        demo.built(more, expected="ERROR")
        assert reservation["flavor_id"] not in {one.id for one in neighbour.nova.flavors()}
    eventually(
        lambda: (
            reservation["flavor_id"]
            not in {one.id for one in operator.nova.flavors(is_public=None)}
        ),
        "the flavor is gone with the lease",
    )


def test_a_lease_is_not_active_while_nova_cannot_be_given_its_flavor(
    cloud: Cloud, demo: Tenant
) -> None:
    wanted = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=1,affinity=None"
    nova, url = cloud.program("nova"), cloud.layout.url("moorage", "/reservation/v1/leases")
    nova.stop()
    lease = ""
    try:
        lease = blazar(cloud, "demo", "lease", "create", "week", "--reservation", wanted)["id"]
        eventually(lambda: _of(demo, lease)["status"] == "STARTING", "it has begun")
        eventually(lambda: _of(demo, lease)["status"] == "ERROR", "attempts have failed")
        assert [one["status"] for one in _of(demo, lease)["reservations"]] == ["error"]
    finally:
        cloud.start("nova")
    eventually(lambda: _of(demo, lease)["status"] == "ACTIVE", "it is tried again")
    [reservation] = _of(demo, lease)["reservations"]
    demo.built(*demo.boot(reservation["flavor_id"]))
    demo.connection.session.delete(f"{url}/{lease}")


@pytest.fixture
def offered(cloud: Cloud) -> Iterator[str]:
    """One host that tenants may lease whole."""
    made = blazar(cloud, "admin", "host", "create", "compute2")
    yield "compute2"
    url = cloud.layout.url("moorage", f"/reservation/v1/os-hosts/{made['id']}")
    Operator(cloud).connection.session.delete(url)


def test_a_whole_host_is_the_lessees_alone(
    cloud: Cloud, operator: Operator, demo: Tenant, neighbour: Tenant, offered: str
) -> None:
    wanted = "resource_type=physical:host,min=1,max=1,hypervisor_properties=,resource_properties="
    with leased(cloud, "--reservation", wanted) as lease:
        [reservation] = lease["reservations"]
        strangers = [one for n in range(4) for one in neighbour.boot("m1.small", f"stranger{n}")]
        neighbour.built(*strangers)
        assert offered not in set(map(operator.host, strangers))
        own = demo.boot(
            "m1.small", hints={"reservation": reservation["id"]}, min_count=2, max_count=2
        )
        own += demo.boot("m1.large", hints={"reservation": reservation["id"]})
        demo.built(*own)
        assert set(map(operator.host, own)) == {offered}
        [without] = demo.boot("m1.small")
        demo.built(without)
        assert operator.host(without) != offered
        with pytest.raises(Refused) as refused:
            neighbour.boot("m1.small", hints={"reservation": reservation["id"]})
        assert (refused.value.status, reservation["id"] in refused.value.message) == (404, True)
        for one in own:
            demo.nova.delete_server(one)
        eventually(lambda: not operator.usages()[offered].get("VCPU"), "the host is empty")
