"""Hosts that are renamed: in Placement, and by a nova-compute that comes back as another one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.minicloud import config_files
from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import Layout
from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.minicloud.test_crashes import audit
from tests.minicloud.test_story_a import racks
from tests.minicloud.test_ticket_flavors import places

__all__ = ["racks"]
APART = {"name": "apart", "type": "anti-affinity", "members": ["a"], "level": "rack"}
RENAMED = "node-in-r3"


def attached(cloud: Cloud, operator: Operator) -> dict[str, str]:
    url = cloud.layout.url("moorage", "/v1/topology/domains")
    shown = operator.connection.session.get(url).json()["topology"]
    return {one["host"]: one["domain"] for one in shown["attachments"]}


def provider(operator: Operator, name: str) -> Any:
    return next(
        one for one in operator.connection.placement.resource_providers() if one.name == name
    )


def rename(operator: Operator, old: str, new: str) -> None:
    uuid = provider(operator, old).id
    body = {"name": new}
    answer = operator.connection.placement.put(f"/resource_providers/{uuid}", json=body)
    assert answer.status_code == 200, answer.text


@pytest.mark.usefixtures("racks")
def test_a_provider_is_renamed_under_servers_and_holds(
    cloud: Cloud, operator: Operator, demo: Tenant
) -> None:
    """Servers, held places and the place in the topology stay, under either name.

    nova-compute itself looks for its provider by the hypervisor's name, with any Placement: builds
    and deletions on that host wait until it has that name again.
    """
    held = demo.hold({"name": "a", "count": 3, "flavor": "m1.small"}, policies=[APART])
    decided = places(operator, held["id"])
    assert sorted(decided.values()) == cloud.layout.computes
    member, other, last = sorted(decided, key=lambda one: decided[one] != "compute3")
    hints = {one: {"moorage": f"{held['name']}/{one}"} for one in decided}
    [first] = demo.boot("m1.small", hints=hints[member])
    demo.built(first)
    before = operator.allocations(first)["compute3"]
    rename(operator, "compute3", RENAMED)
    try:
        assert operator.allocations(first) == {RENAMED: before}
        assert attached(cloud, operator)[RENAMED] == "r3"
        assert places(operator, held["id"]) == decided | {member: RENAMED}
        [second] = demo.boot("m1.small", hints=hints[other])
        demo.built(second)
        assert operator.host(second) == decided[other]
        audit(operator)
    finally:
        rename(operator, RENAMED, "compute3")
        cloud.program("compute3").stop()
        cloud.start("compute3")
    assert operator.allocations(first) == {"compute3": before}
    assert attached(cloud, operator)["compute3"] == "r3"
    demo.nova.delete_server(first)
    eventually(lambda: not operator.usages()["compute3"], "its allocations are gone")
    # Its place, given back, is on the same host.
    [again] = demo.boot("m1.small", hints=hints[member])
    [third] = demo.boot("m1.small", hints=hints[last])
    demo.built(again, third)
    assert (operator.host(again), operator.host(third)) == ("compute3", decided[last])
    assert operator.allocations(again) == {"compute3": before}


@contextmanager
def named(cloud: Cloud, program: str, host: str) -> Iterator[None]:
    """The configuration of a nova-compute with another host name."""
    conf = cloud.layout.folder(program) / "nova.conf"
    kept = conf.read_text()
    other = config_files.compute(cloud.layout, host)
    folder = cloud.layout.folder(program)
    conf.write_text(other.read_text().replace(str(other.parent), str(folder)))
    shutil.rmtree(other.parent)
    try:
        yield
    finally:
        conf.write_text(kept)


def forget(layout: Layout, program: str) -> None:
    """As a machine that is installed anew: no identity and no servers."""
    for name in ("compute_id", "instances.json"):
        (layout.folder(program) / name).unlink(missing_ok=True)


def left(cloud: Cloud, operator: Operator, program: str, host: str) -> None:
    """End a nova-compute, and delete its service as an operator does."""
    cloud.program(program).stop()
    [service] = operator.nova.services(host=host, binary="nova-compute")
    operator.nova.delete_service(service)
    eventually(lambda: host not in operator.usages(), f"{host} has left Placement")
    forget(cloud.layout, program)


def test_a_compute_comes_back_under_another_name(
    cloud: Cloud, operator: Operator, demo: Tenant
) -> None:
    """Nova refuses that with its identity; anew it is another host, and places are decided anew."""
    apart = {**APART, "level": "host"}
    held = demo.hold({"name": "a", "count": 2, "flavor": "m1.small"}, policies=[apart])
    decided = places(operator, held["id"])
    program, other = decided.values()
    (third,) = {*cloud.layout.computes} - {program, other}
    new = f"{program}b"
    with named(cloud, program, new):
        cloud.program(program).stop()
        cloud.start(program)
        eventually(lambda: cloud.program(program).pid is None, "nova-compute refuses to start")
        assert "rename detected" in cloud.program(program).tail(20_000)
        assert places(operator, held["id"]) == decided, "nothing has changed"
        assert new not in operator.usages()
        for service in list(operator.nova.services(host=new)):
            operator.nova.delete_service(service)
        left(cloud, operator, program, program)
        eventually(lambda: now(operator, demo, held) == {third, other}, "decided anew")
        cloud.start(program)
        try:
            eventually(lambda: new in operator.usages(), f"{new} is in Placement", 180)
            more = demo.hold({"name": "a", "count": 3, "flavor": "m1.small"}, policies=[apart])
            assert set(places(operator, more["id"]).values()) == {new, other, third}
            servers = [
                server
                for one in (held, held, more, more, more)
                for server in demo.boot("m1.small", hints={"moorage": f"{one['name']}/a"})
            ]
            demo.built(*servers)
            assert sorted(map(operator.host, servers[2:])) == sorted((new, other, third))
            assert all(list(operator.allocations(one)) == [operator.host(one)] for one in servers)
            audit(operator)
            for one in servers:
                demo.nova.delete_server(one)
            eventually(lambda: not any(operator.usages().values()), "all is deleted", 180)
        finally:
            left(cloud, operator, program, new)
    cloud.start(program)
    eventually(lambda: program in operator.usages(), f"{program} is in Placement again", 180)


def now(operator: Operator, demo: Tenant, held: dict[str, Any]) -> set[str]:
    """The hosts of the ensemble's decision in force."""
    shown = demo.native("GET", f"/ensembles/{held['ensemble']}")["ensemble"]["decision"]
    return set(places(operator, shown["id"]).values())
