"""`moorage ensemble boot` creates servers in their held places, whatever goes away meanwhile."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from typing import Any

import pytest
from tests.minicloud.layout import ours
from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.minicloud.test_ticket_flavors import APART, places

SERVER = {"image": "tiny", "networks": ["shared"], "user_data": "#!/bin/sh\n"}
DB = {"name": "db", "count": 3, "flavor": "m1.large", "server": SERVER}
WEB = {"name": "web", "count": 6, "flavor": "m1.small", "server": {**SERVER, "networks": ["none"]}}


def begin(tenant: Tenant, *words: str, program: str = "moorage") -> subprocess.Popen[str]:
    config = {"OS_CLIENT_CONFIG_FILE": str(tenant.cloud.layout.home / "clouds.yaml")}
    return subprocess.Popen(
        [ours(program), "--os-cloud", "demo", "ensemble", "boot", *words, "-f", "json"],
        env={**os.environ, **config},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def boot(tenant: Tenant, *words: str, program: str = "moorage") -> Any:
    """What a run answers, which did everything that was asked."""
    process = begin(tenant, *words, program=program)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    return json.loads(out)["boot"]


def check(tenant: Tenant, held: Any) -> None:
    """Every member has one server, and the decision is closed."""
    servers = list(tenant.nova.servers())
    assert Counter(one.status for one in servers) == {"ACTIVE": len(held["assignments"])}
    members = tenant.members(held["ensemble"])
    assert {one["server_id"] for one in members.values()} == {one.id for one in servers}
    now = tenant.native("GET", f"/ensembles/{held['ensemble']}")["ensemble"]["decision"]
    assert now["status"] == "closed"


@pytest.mark.parametrize("program", ["moorage", "openstack"])
def test_all_servers_get_exactly_the_decided_hosts(
    operator: Operator, demo: Tenant, program: str
) -> None:
    held = demo.hold(DB, WEB, policies=[APART])
    booted = boot(demo, held["name"], program=program)
    assert booted["confirmed"]
    servers = {one["member"]: one["server_id"] for one in booted["members"]}
    assert {one: operator.host(server) for one, server in servers.items()} == places(
        operator, held["id"]
    )
    check(demo, held)
    assert boot(demo, held["name"])["members"] == booted["members"]


def test_a_host_that_fails_builds_is_left(operator: Operator, demo: Tenant) -> None:
    two = {**DB, "count": 2}
    held = demo.hold(two, policies=[APART])
    bad = places(operator, held["id"])["db[0]"]
    mended = {**SERVER, "metadata": {"minicloud:fail": bad}}
    change = {"ensemble": {"members": [{"name": "db", "server": mended}]}}
    demo.native("PATCH", f"/ensembles/{held['ensemble']}", change, generation="*")
    booted = boot(demo, held["name"], "--on-failure", "delete")
    hosts = {one["member"]: operator.host(one["server_id"]) for one in booted["members"]}
    assert bad not in hosts.values()
    assert hosts["db[1]"] == places(operator, held["id"])["db[1]"]
    check(demo, held)


@pytest.mark.parametrize("seconds", [1.0, 4.0])
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_ends_at_any_time_is_taken_up(
    demo: Tenant, sign: signal.Signals, seconds: float
) -> None:
    held = demo.hold(WEB)
    process = begin(demo, held["name"], "--parallel", "3")
    time.sleep(seconds)
    process.send_signal(sign)
    process.communicate(timeout=60)
    boot(demo, held["name"])
    check(demo, held)


@pytest.mark.parametrize("program", ["nova", "keystone", "moorage"])
def test_a_service_that_is_away_for_a_while_costs_nothing(demo: Tenant, program: str) -> None:
    held = demo.hold(WEB)
    process = begin(demo, held["name"], "--parallel", "3")
    eventually(lambda: len(list(demo.nova.servers())) > 1, "the first servers are created")
    demo.cloud.program(program).kill()
    time.sleep(3)
    demo.cloud.start(program)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    check(demo, held)


def test_a_short_hold_is_renewed_while_servers_are_built(demo: Tenant) -> None:
    held = demo.hold({**WEB, "count": 10}, hold="PT18S")
    boot(demo, held["name"], "--parallel", "1")
    check(demo, held)
    renewed = demo.native("GET", f"/decisions/{held['id']}")["decision"]
    assert renewed["renewals"] > 0


def test_a_quota_stops_a_run_and_the_next_goes_on(operator: Operator, demo: Tenant) -> None:
    held = demo.hold(WEB)
    project = str(demo.connection.current_project_id)
    operator.nova.update_quota_set(project, instances=2)
    try:
        process = begin(demo, held["name"], "--parallel", "1")
        out, err = process.communicate(timeout=300)
    finally:
        operator.nova.revert_quota_set(project)
    assert process.returncode == 1, out + err
    told = Counter(one["message"].partition(":")[0] for one in json.loads(out)["boot"]["members"])
    assert told["not begun"] == 3
    assert "Quota exceeded" in out
    boot(demo, held["name"])
    check(demo, held)
