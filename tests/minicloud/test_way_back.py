"""The way back: another Placement moves the servers that Moorage's flavors have made."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql
import pytest
from openstack.exceptions import HttpException
from tests.minicloud import moves
from tests.minicloud.admin import admin
from tests.minicloud.cloud import Cloud
from tests.minicloud.config_files import account
from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.minicloud.test_leases import leased
from tests.minicloud.test_shadow import CONF
from tests.minicloud.test_ticket_flavors import flavor_of, has_flavor
from tests.servers.reference import Placement, reference

NAME = "placement_back"
SMALL = {"VCPU": 1, "MEMORY_MB": 2_048, "DISK_GB": 20}
SPECS = {"resources:CUSTOM_MOORAGE_HOURS": "48", "resources:CUSTOM_MOORAGE_PREEMPTIBLE": "1"}
NOVA = ("--nova", "catalog", "--keystone")
LEASE = "resource_type=virtual:instance,vcpus=1,memory_mb=2048,disk_gb=20,amount=1,affinity=None"


@contextmanager
def database(cloud: Cloud) -> Iterator[str]:
    """An empty database on the cloud's own server."""
    access = {"host": "127.0.0.1", "port": cloud.layout.ports["database"], "user": "root"}
    with pymysql.connect(**access) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {NAME}")
        try:
            yield cloud.layout.database(NAME)
        finally:
            cursor.execute(f"DROP DATABASE {NAME}")


@contextmanager
def handed_back(cloud: Cloud, folder: Path) -> Iterator[Placement]:
    """As the guide has it: the ledger is exported, and the reference is the cloud's Placement.

    In the end it is imported again, so that the next test finds the cloud as it was.
    """
    section = account(cloud.layout, "moorage") | {"www_authenticate_uri": cloud.layout.identity}
    del section["region_name"]
    conf = CONF.format(section="\n".join(f"{key} = {text}" for key, text in section.items()))
    with database(cloud) as url:
        cloud.program("moorage").stop()
        try:
            # Where no nova-compute finds it before all is there.
            with reference(folder / "reference", url, conf) as found:
                status, told = admin(cloud, "export", "--to", found.url, "--keystone")
                assert (status, told.get("differences")) == (0, []), told
            at = (cloud.layout.ports["moorage"], "/placement")
            with reference(folder / "reference", url, conf, at) as found:
                yield found
            source = url.replace("mysql+pymysql", "mysql")
            status, told = admin(cloud, "import", "placement", "--from", source, "--mirror")
            assert (status, told.get("differences")) == (0, []), told
        finally:
            cloud.start("moorage")


@pytest.fixture
def terms(operator: Operator) -> Iterator[str]:
    """A flavor whose servers end, and make way."""
    made = operator.nova.create_flavor(name="short", vcpus=1, ram=2_048, disk=20)
    operator.nova.create_flavor_extra_specs(made, SPECS)
    yield str(made.id)
    operator.nova.delete_flavor(made)


def test_servers_of_flavors_of_moorage_move_on(
    cloud: Cloud, operator: Operator, demo: Tenant, terms: str, tmp_path: Path
) -> None:
    held = demo.hold({"name": "one", "count": 1, "flavor": "m1.small"})
    flavor = flavor_of(demo, held)
    with leased(cloud, "--reservation", LEASE) as lease:
        servers = [
            one
            for name in (flavor, terms, lease["reservations"][0]["flavor_id"])
            for one in demo.boot(name)
        ]
        demo.built(*servers)
        demo.native("POST", f"/decisions/{held['id']}/confirm")
        has_flavor(demo, flavor, expected=False)
        with handed_back(cloud, tmp_path) as placement:
            _move_on(operator, demo, servers, placement)
            demo.nova.delete_server(servers[0])
            eventually(lambda: not operator.allocations(servers[0]), "it is gone")
            status, told = admin(cloud, "sync", "classes", *NOVA, "--to", "catalog")
            assert (status, len(told["removed"]), told["changed"]) == (0, 1, 3), told
            for one in servers[1:]:
                demo.nova.delete_server(one)
            eventually(lambda: not any(operator.usages().values()), "all are gone", 180)
            status, told = admin(cloud, "sync", "classes", *NOVA, "--to", "catalog")
            assert (status, len(told["removed"]), told["deleted"]) == (0, 3, 3), told


def _move_on(operator: Operator, demo: Tenant, servers: list[str], placement: Placement) -> None:
    """No server moves before the classes are known; then each moves in every way."""
    ticket = servers[0]
    with suppress(HttpException):
        operator.nova.migrate_server(ticket)
    eventually(lambda: "No such resource class" in _faults(operator, ticket), "it cannot move")
    demo.built(ticket)
    status, told = admin(operator.cloud, "sync", "classes", *NOVA, "--to", "catalog")
    assert (status, len(told["added"]), told["created"]) == (0, 4, 3), told
    assert sorted(one["id"] for one in told["servers"]) == sorted(servers)
    for server in servers:
        for move in (moves.live_migrate, moves.cold_migrate, moves.resize_and_revert, moves.shelve):
            move(operator, demo, server)
            assert operator.allocations(server)[operator.host(server)] == SMALL, move.__name__
        _to_a_named_host(operator, demo, server)
    moves.evacuate(operator, demo, ticket)
    host = operator.host(ticket)
    assert operator.allocations(ticket)[host] == SMALL
    assert len(operator.allocations(ticket)) == 2


def _faults(operator: Operator, server: str) -> str:
    """What Nova says of the last actions on a server."""
    log = operator.cloud.layout.folder("scheduler") / "nova.log"
    return log.read_text()


def _to_a_named_host(operator: Operator, demo: Tenant, server: str) -> None:
    """Cold, and live."""
    here = operator.host(server)
    first, second = [one for one in operator.cloud.layout.computes if one != here]
    operator.nova.migrate_server(server, host=first)
    demo.built(server, expected="VERIFY_RESIZE")
    demo.nova.confirm_server_resize(server)
    demo.built(server)
    assert operator.host(server) == first
    operator.nova.live_migrate_server(server, host=second, block_migration="auto")
    demo.built(server)
    assert operator.host(server) == second
