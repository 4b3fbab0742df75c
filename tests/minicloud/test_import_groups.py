"""`moorage admin import nova` takes over the server groups of a running Nova."""

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from tests.minicloud.admin import admin
from tests.minicloud.cloud import Cloud
from tests.minicloud.tenant import Operator, Tenant


def imported(cloud: Cloud, *words: str) -> tuple[int, Any]:
    return admin(cloud, "import", "nova", "--from", "catalog", "--keystone", *words)


class Groups:
    """Nova's own groups of a tenant, and the ensembles that they became."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.made: list[str] = []

    def create(self, name: str, policy: str, **rules: int) -> str:
        found = self.tenant.nova.create_server_group(name=name, policy=policy, rules=rules)
        self.made.append(found.id)
        return str(found.id)

    def clear(self) -> None:
        for id_ in self.made:
            self.tenant.nova.delete_server_group(id_)
            url = self.tenant.cloud.layout.url("moorage", f"/v1/ensembles/{id_}")
            self.tenant.connection.session.delete(url, headers={"If-Match": "*"}, raise_exc=False)


@pytest.fixture
def groups(demo: Tenant) -> Iterator[Groups]:
    made = Groups(demo)
    yield made
    made.clear()


def servers_of(tenant: Tenant, id_: str) -> set[str]:
    return {one["server_id"] for one in tenant.members(id_).values()}


def test_groups_and_their_servers_come_over(
    cloud: Cloud, operator: Operator, demo: Tenant, groups: Groups
) -> None:
    apart = groups.create("apart", "anti-affinity", max_server_per_host=1)
    groups.create("empty", "soft-affinity")
    booted = [demo.boot("m1.small", hints={"group": apart})[0] for _ in range(2)]
    demo.built(*booted)
    before = operator.usages()
    status, trial = imported(cloud, "--dry-run")
    assert (status, trial["would_write"]) == (0, 2), trial
    status, told = imported(cloud)
    assert (status, told["written"], told["broken"]) == (0, 2, []), told
    assert imported(cloud)[1]["written"] == 0
    assert servers_of(demo, apart) == set(booted)
    assert operator.usages() == before
    shown = demo.native("GET", f"/ensembles/{apart}")["ensemble"]
    assert (shown["name"], shown["policies"][0]["type"]) == ("apart", "anti-affinity")
    # The filter in nova-api lets Nova's group pass, and the next import adds the server.
    [third] = demo.boot("m1.medium", hints={"group": apart})
    demo.built(third)
    assert len({operator.host(one) for one in (*booted, third)}) == 3
    assert imported(cloud)[1]["groups"][0]["added"] == [third]
    demo.nova.delete_server(booted[0])
    demo.nova.wait_for_delete(demo.nova.get_server(booted[0]), interval=0.5, wait=120)
    assert imported(cloud)[1]["groups"][0]["removed"] == [booted[0]]
    assert servers_of(demo, apart) == {booted[1], third}


def test_a_policy_that_is_broken_is_told(
    cloud: Cloud, operator: Operator, demo: Tenant, groups: Groups
) -> None:
    """Nova keeps to its groups, but for races and operators: here one changes the database."""
    together = groups.create("together", "affinity")
    booted = [demo.boot("m1.small", hints={"group": together})[0] for _ in range(2)]
    demo.built(*booted)
    assert len({operator.host(one) for one in booted}) == 1
    change = "UPDATE instance_group_policy SET policy = 'anti-affinity' WHERE policy = 'affinity'"
    connection = pymysql.connect(
        host="127.0.0.1", port=cloud.layout.ports["database"], user="root", database="nova_api"
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(change)
        connection.commit()
    status, told = imported(cloud)
    assert status == 0, told
    assert [one["policy"] for one in told["broken"]] == ["anti-affinity"]
    assert servers_of(demo, together) == set(booted)
