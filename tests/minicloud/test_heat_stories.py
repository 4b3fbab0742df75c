"""The stories of a shop and of a cluster that scales, by `openstack stack` alone.

The client is that of the cloud's own environment: nothing of Moorage's is in it.
"""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import ROOT, inside
from tests.minicloud.stacks import Stacks, group, places, server, template
from tests.minicloud.tenant import Json, Operator, Tenant, eventually
from tests.minicloud.test_heat_scaling import is_idle, policy
from tests.minicloud.test_story_a import racks

__all__ = ["racks"]


class Client:
    """The `openstack` client of a tenant."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self._cloud, self._folder = cloud, folder

    def run(self, *words: str) -> Json:
        """What it answers."""
        layout = self._cloud.layout
        own = {"OS_CLIENT_CONFIG_FILE": f"{layout.home}/clouds.yaml", "OS_CLOUD": "demo"}
        ran = subprocess.run(
            [inside("openstack"), *words],
            env=layout.environ | own,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def create(self, described: Json, *words: str) -> str:
        """The id of a stack that is complete."""
        (self._folder / "stack.yaml").write_text(yaml.safe_dump(described))
        self.run("stack", "create", "--wait", "-t", "stack.yaml", *words, "story")
        return str(self.run("stack", "show", "story", "-c", "id", "-f", "value")).strip()


@pytest.fixture
def client(cloud: Cloud, demo: Tenant, tmp_path: Path) -> Iterator[Client]:
    made = Client(cloud, tmp_path)
    try:
        yield made
    finally:
        made.run("stack", "delete", "--yes", "--wait", "story")


def test_the_shop_is_where_it_was_decided(
    operator: Operator, demo: Tenant, client: Client, racks: None
) -> None:
    """The template is the example, but for the features of processors that no compute here has."""
    shop = yaml.safe_load((ROOT / "examples" / "shop-hot.yaml").read_text(encoding="utf-8"))
    del shop["resources"]["db"]["properties"]["resource_def"]["metadata"]
    stack = client.create(shop, "--parameter", "network=shared", "--parameter", "image=tiny")
    stacks = Stacks(demo)
    servers, members = stacks.servers(stack), stacks.members(stack)
    assert set(servers) == {f"{tier}/{n}" for tier in ("web", "app", "db") for n in range(3)}
    assert {path: one["server_id"] for path, one in members.items()} == servers
    hosts = {path: operator.host(one) for path, one in servers.items()}
    decided = places(operator, stack)
    assert {path: decided[one["name"]] for path, one in members.items()} == hosts
    assert all(hosts[f"app/{n}"] == hosts[f"db/{n}"] for n in range(3)), "pair: one rack"
    assert all(len({hosts[f"{tier}/{n}"] for n in range(3)}) == 3 for tier in ("web", "db"))
    met = demo.native("GET", f"/ensembles/{stack}")["ensemble"]["decision"]["policies"]
    assert {one["satisfied"] for one in met} == {True}, met


def test_a_cluster_scales_by_signals(
    operator: Operator, demo: Tenant, client: Client, racks: None
) -> None:
    """Workers have hosts of their own, so that there are three at most."""
    survives = {"type": "survive", "level": "rack", "lose": 1, "keep": 1}
    alone = {"type": "anti-affinity", "level": "host"}
    workers = {
        "type": "OS::Heat::AutoScalingGroup",
        "metadata": {"moorage": {"policies": [alone]}},
        "properties": {"min_size": 1, "max_size": 9, "resource": server("m1.large")},
    }
    stack = client.create(
        template(
            master=group(2, server("m1.medium"), survives),
            workers=workers,
            up=policy(1),
            down=policy(-1),
        )
    )
    stacks = Stacks(demo)
    signal = ("stack", "resource", "signal", "story")
    for size in (2, 3):
        client.run(*signal, "up")
        eventually(partial(is_idle, stacks, stack, 2 + size, size - 1), f"{size} workers")
    client.run(*signal, "up")

    def told() -> bool:
        listed = json.loads(client.run("stack", "event", "list", "story", "-f", "json"))
        return any(str(one["resource_status_reason"]).startswith("Moorage: ") for one in listed)

    eventually(told, "a fourth is refused")
    hosts = {path: operator.host(one) for path, one in stacks.servers(stack).items()}
    assert len({host for path, host in hosts.items() if path.startswith("workers/")}) == 3
    assert len({host for path, host in hosts.items() if path.startswith("master/")}) == 2
    client.run(*signal, "down")
    eventually(lambda: is_idle(stacks, stack, 4), "one has left")
    assert "COMPLETE" in client.run("stack", "show", "story", "-c", "stack_status", "-f", "value")


def test_whose_value_a_parameter_has(client: Client, demo: Tenant, tmp_path: Path) -> None:
    """An environment file's value wins over the command line's, and that over a default."""
    described = template(web=group({"get_param": "count"}, server({"get_param": "flavor"})))
    described["parameters"] = {"count": {"type": "number"}, "flavor": {"type": "string"}}
    environment = {"parameters": {"count": 1}, "parameter_defaults": {"flavor": "m1.large"}}
    (tmp_path / "env.yaml").write_text(yaml.safe_dump(environment))
    given = ("--parameter", "count=2", "--parameter", "flavor=m1.tiny")
    stack = client.create(described, "-e", "env.yaml", *given)
    stacks = Stacks(demo)
    (one,) = stacks.servers(stack).values()
    assert demo.nova.get_server(one).flavor.name == "m1.tiny"
    assert {path: member["server_id"] for path, member in stacks.members(stack).items()} == {
        "web/0": one
    }
