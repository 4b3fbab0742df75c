"""The shop that survives the loss of a rack, with the `openstack` client alone.

No header anywhere: servers take their places by the flavor of their role, several in one request,
or by a scheduler hint.
"""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import ROOT, ours
from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.minicloud.test_ticket_flavors import places


@pytest.fixture
def racks(cloud: Cloud, operator: Operator) -> Iterator[None]:
    """Each compute is a rack of its own; after the test there is no topology."""
    names = {host: f"r{number}" for number, host in enumerate(cloud.layout.computes, 1)}
    topology = {
        "levels": {"location": ["rack"]},
        "domains": [{"name": rack, "level": "rack"} for rack in names.values()],
        "attachments": [{"host": host, "domain": rack} for host, rack in names.items()],
    }
    set_topology(cloud, operator, topology)
    yield
    set_topology(cloud, operator, {"levels": {}, "domains": [], "attachments": []})


def set_topology(cloud: Cloud, operator: Operator, topology: dict[str, Any]) -> None:
    url = cloud.layout.url("moorage", "/v1/topology/domains")
    answer = operator.connection.session.put(
        url, json={"topology": topology}, headers={"If-Match": "*"}, raise_exc=False
    )
    assert answer.status_code < 300, answer.text


def test_every_server_is_where_it_was_decided(
    cloud: Cloud, operator: Operator, demo: Tenant, racks: None, tmp_path: Path
) -> None:
    shop = yaml.safe_load((ROOT / "examples" / "shop.yaml").read_text(encoding="utf-8"))
    for role in shop["members"]:
        role.pop("required", None)  # the computes report no features of processors
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump(shop))

    def run(*words: str) -> str:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("OS_")}
        own = {"OS_CLIENT_CONFIG_FILE": f"{cloud.layout.home}/clouds.yaml", "OS_CLOUD": "demo"}
        ran = subprocess.run(
            [ours("openstack"), *words],
            env=kept | own,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    run("ensemble", "create", "-f", str(file), "--hold", "20m")
    shown = json.loads(run("ensemble", "show", "shop", "-f", "json"))["ensemble"]
    decision = shown["decision"]["id"]
    try:
        decided = places(operator, decision)
        listed = json.loads(run("decision", "flavors", "shop", "-f", "json"))
        flavors = {one["role"]: one["name"] for one in listed["ticket_flavors"]}
        eventually(
            lambda: set(flavors.values()) <= {one.name for one in demo.nova.flavors()}, "flavors"
        )
        create = ("server", "create", "--image", "tiny", "--nic", "none", "--wait")
        for role in ("web", "db"):
            several = ("--min", "3", "--max", "3", role)
            run(*create, "--flavor", flavors[role], *several)
        for number in range(3):
            hint = f"moorage=shop/app[{number}]"
            run(*create, "--flavor", "m1.medium", "--hint", hint, f"app-{number}")
        members = demo.members(shown["id"])
        found = {name: operator.host(one["server_id"]) for name, one in members.items()}
        assert Counter((name.partition("[")[0], host) for name, host in found.items()) == Counter(
            (name.partition("[")[0], host) for name, host in decided.items()
        )
        assert all(found[f"app[{n}]"] == found[f"db[{n}]"] for n in range(3)), "pair: one rack"
        run("ensemble", "confirm", "shop", "--yes")
        assert run("ensemble", "show", "shop").count(" yes") == 4, "policies met"
    finally:
        demo.native("DELETE", f"/ensembles/{shown['id']}", generation="*")
