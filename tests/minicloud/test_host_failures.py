"""Compute services that are disabled, forced down or stopped: the tenant of a member learns of it.

By stock means: the events of its project, a webhook, and `openstack ensemble compliance`.
"""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from tests.minicloud.admin import admin
from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import ours
from tests.minicloud.tenant import Operator, Tenant, eventually

AT_ONCE = 2.0
"""Seconds until a notification is recorded."""
HA = {"name": "ha", "type": "survive", "members": ["web"], "level": "host", "keep": 1}


class Watched:
    """Two servers of an ensemble on two computes, and what its tenant is told."""

    def __init__(self, operator: Operator, demo: Tenant) -> None:
        self.operator, self.demo = operator, demo
        role = {"name": "web", "flavor": "m1.small", "count": 2}
        held = demo.hold(role, policies=[HA])
        self.name, self.ensemble = held["name"], held["ensemble"]
        self.servers = {
            f"web[{n}]": demo.boot("m1.small", hints={"moorage": f"{self.name}/web[{n}]"})[0]
            for n in (0, 1)
        }
        demo.built(*self.servers.values())
        self.cursor = demo.native("GET", f"/events?subject={self.ensemble}")["cursor"]

    def service(self, member: str) -> Any:
        """The compute service of a member's host."""
        name = self.operator.nova.get_server(self.servers[member]).compute_host
        found = self.operator.nova.services(binary="nova-compute", host=name)
        return next(iter(found))

    def is_told(self, word: str) -> Callable[[], bool]:
        """Whether an event `member.*` of web[0] has come since it was asked last."""

        def came() -> bool:
            path = f"/events?subject={self.ensemble}&after={self.cursor}"
            page = self.demo.native("GET", path)
            found = [
                one
                for one in page["events"]
                if one["type"] == f"member.{word}" and one["body"]["member"] == "web[0]"
            ]
            if found:
                self.cursor = page["cursor"]
            return bool(found)

        return came

    def compliance(self) -> tuple[int, Any]:
        """Status and answer of `openstack ensemble compliance`."""
        home = self.demo.cloud.layout.home
        done = subprocess.run(
            [ours("openstack"), "ensemble", "compliance", self.name, "-f", "json"],
            env={
                **os.environ,
                "OS_CLIENT_CONFIG_FILE": str(home / "clouds.yaml"),
                "OS_CLOUD": "demo",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def watched(operator: Operator, demo: Tenant) -> Watched:
    return Watched(operator, demo)


@pytest.fixture
def webhook(watched: Watched) -> Iterator[list[str]]:
    """The types of the events that a subscription of the tenant delivers."""
    heard: list[str] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.extend(one["type"] for one in body.get("events", [body]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    body = {"subscription": {"name": "hook", "url": url, "events": ["member.*", "policy.*"]}}
    made = watched.demo.native("POST", "/subscriptions", body)["subscription"]
    yield heard
    watched.demo.native("DELETE", f"/subscriptions/{made['id']}")
    server.shutdown()
    server.server_close()


def synced(cloud: Cloud) -> None:
    """`moorage admin sync nova`: the states of compute services are read."""
    _, told = admin(cloud, "sync", "nova", "--from", "catalog", "--keystone")
    assert "errors" not in told, told


def check_tenants_words(watched: Watched) -> None:
    """A tenant is told, and no name of a host."""
    status, answer = watched.compliance()
    assert status == 4, answer
    (out,) = answer["compliance"]["out_of_service"]
    assert out["member"] == "web[0]"
    names = {one.name for one in watched.operator.nova.hypervisors()}
    assert not any(name in json.dumps(answer) for name in names if name)


def test_a_disabled_service_is_told(watched: Watched, webhook: list[str]) -> None:
    service, nova = watched.service("web[0]"), watched.operator.nova
    nova.disable_service(service.id, disabled_reason="new memory")
    try:
        eventually(watched.is_told("at_risk"), "its tenant is told")
        eventually(lambda: "member.at_risk" in webhook, "its webhook is told")
        check_tenants_words(watched)
    finally:
        nova.enable_service(service.id)
    eventually(watched.is_told("recovered"), "its tenant is told of the end")
    assert watched.compliance()[0] == 0


def closings(operator: Operator, host: str) -> list[str]:
    """Why a host is closed, as operators read it."""
    url = operator.cloud.layout.url("moorage", f"/v1/hosts/{host}")
    answer = operator.connection.session.get(url)
    return [one["why"] for one in answer.json()["host"]["closed"]]


def test_notifications_are_recorded_at_once(cloud: Cloud, operator: Operator) -> None:
    """Without a sync. The log says by whom, as a compute that is up sets a trait, too."""
    nova, host = operator.nova, cloud.layout.computes[-1]
    service = next(iter(nova.services(binary="nova-compute", host=host)))
    log = cloud.program("moorage").log
    read = len(log.read_text())

    def is_logged(change: str) -> Callable[[], bool]:
        return lambda: f"host {host} by Nova: {change}" in log.read_text()[read:]

    assert closings(operator, host) == []
    nova.update_service_forced_down(service.id, forced=True)
    try:
        eventually(lambda: closings(operator, host) == ["forced down"], "forced down", AT_ONCE)
    finally:
        nova.update_service_forced_down(service.id, forced=False)
    eventually(lambda: closings(operator, host) == [], "no longer forced down", AT_ONCE)
    nova.disable_service(service.id, disabled_reason="new memory")
    try:
        eventually(is_logged("in service -> disabled"), "disabled", AT_ONCE)
        assert "disabled" in closings(operator, host)
    finally:
        nova.enable_service(service.id)
    eventually(is_logged("disabled -> in service"), "enabled", AT_ONCE)
    eventually(lambda: closings(operator, host) == [], "its trait is gone")


def test_a_service_that_is_forced_down_is_told(cloud: Cloud, watched: Watched) -> None:
    service, nova = watched.service("web[0]"), watched.operator.nova
    nova.update_service_forced_down(service.id, forced=True)
    try:
        synced(cloud)
        eventually(watched.is_told("lost"), "its tenant is told")
        check_tenants_words(watched)
    finally:
        nova.update_service_forced_down(service.id, forced=False)
    synced(cloud)
    eventually(watched.is_told("recovered"), "its tenant is told of the end")


def test_a_compute_that_is_stopped_is_told(cloud: Cloud, watched: Watched) -> None:
    service, nova = watched.service("web[0]"), watched.operator.nova
    cloud.program(service.host).stop()
    try:

        def is_down() -> bool:
            return bool(next(iter(nova.services(host=service.host))).state == "down")

        eventually(is_down, "Nova notices it")
        synced(cloud)
        eventually(watched.is_told("lost"), "its tenant is told")
        check_tenants_words(watched)
    finally:
        cloud.start(service.host)
    eventually(lambda: not is_down(), "Nova sees it again")
    synced(cloud)
    eventually(watched.is_told("recovered"), "its tenant is told of the end")
