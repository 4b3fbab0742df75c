"""`openstack server group` against nova-api and against Moorage: the same answers."""

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import ours
from tests.minicloud.tenant import Operator, Refused, Tenant, eventually
from tests.minicloud.test_hints import restarted

GROUPS = "/os-server-groups"
APIS = ("nova", "moorage")
V = "2.64"


class Api:
    """Server groups of one tenant, of one of the two services."""

    def __init__(self, tenant: Tenant, name: str, folder: Path) -> None:
        layout = tenant.cloud.layout
        path = "/v2.1" if name == "nova" else "/compute/v2.1"
        self.url = layout.url(name, path)
        self.tenant = tenant
        clouds = yaml.safe_load((layout.home / "clouds.yaml").read_text())
        clouds["clouds"]["demo"]["compute_endpoint_override"] = self.url
        self._clouds = folder / f"{name}.yaml"
        self._clouds.write_text(yaml.safe_dump(clouds))

    def run(self, *words: str) -> tuple[int, Any]:
        """Status and JSON of `openstack server group ...` with this endpoint."""
        done = subprocess.run(
            [ours("openstack"), "--os-compute-api-version", "2.64", "server", "group", *words],
            env={
                **os.environ,
                "OS_CLIENT_CONFIG_FILE": str(self._clouds),
                "OS_CLOUD": "demo",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, json.loads(done.stdout or "null") if "json" in words else None

    def ask(self, method: str, path: str, body: object = None, version: str | None = None) -> Any:
        """Status and JSON of a request."""
        headers = {} if version is None else {"OpenStack-API-Version": f"compute {version}"}
        answer = self.tenant.connection.session.request(
            self.url + path, method, json=body, headers=headers, raise_exc=False
        )
        kind = answer.headers.get("Content-Type", "")
        return answer.status_code, answer.json() if answer.content and "json" in kind else None

    def clear(self) -> None:
        for one in self.ask("GET", GROUPS)[1]["server_groups"]:
            self.ask("DELETE", f"{GROUPS}/{one['id']}")


@pytest.fixture
def both(demo: Tenant, tmp_path: Path) -> Iterator[list[Api]]:
    apis = [Api(demo, name, tmp_path) for name in APIS]
    yield apis
    for one in apis:
        one.clear()


def without_ids(shown: Any) -> Any:
    if isinstance(shown, list):
        return [without_ids(one) for one in shown]
    return {name: value for name, value in shown.items() if name.lower() != "id"}


def test_both_have_the_same_versions(both: list[Api]) -> None:
    documents = [api.ask("GET", "/")[1]["version"] for api in both]
    nova, moorage = [(one["min_version"], one["version"]) for one in documents]
    assert nova == moorage
    newer = f"2.{int(nova[1].split('.')[1]) + 1}"
    assert [api.ask("GET", GROUPS, version=newer)[0] for api in both] == [406, 406]


def test_the_same_commands_have_the_same_answers(both: list[Api]) -> None:
    told = []
    for api in both:
        said = [
            api.run("create", "--policy", "anti-affinity", "web", "-f", "json"),
            api.run(
                *("create", "--policy", "anti-affinity", "--rule", "max_server_per_host=2"),
                *("db", "-f", "json"),
            ),
            api.run("create", "--policy", "soft-affinity", "batch", "-f", "json"),
            api.run("show", "db", "-f", "json"),
            api.run("list", "--long", "-f", "json"),
        ]
        said.append(api.run("delete", "web", "batch"))
        said.append(api.run("list", "-f", "json"))
        said.append(api.run("delete", "nothing"))
        told.append([(status, shown and without_ids(shown)) for status, shown in said])
    assert told[0] == told[1]
    assert [status for status, _ in told[1]] == [0, 0, 0, 0, 0, 0, 0, 1], told


BODIES = [
    ("2.1", {"name": "a", "policies": ["affinity"]}),
    ("2.14", {"name": "b", "policies": ["soft-affinity"]}),
    ("2.15", {"name": "c", "policies": ["soft-affinity"]}),
    ("2.15", {"name": "d", "policies": ["soft-anti-affinity", "affinity"]}),
    ("2.15", {"name": "d", "policies": []}),
    ("2.63", {"name": "d", "policy": "affinity"}),
    ("2.64", {"name": "e", "policy": "anti-affinity", "rules": {"max_server_per_host": "3"}}),
    ("2.64", {"name": "f", "policy": "anti-affinity", "rules": {}}),
    ("2.64", {"name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": 0}}),
    ("2.64", {"name": "g", "policy": "anti-affinity", "rules": {"x": 1}}),
    ("2.64", {"name": "g", "policy": "affinity", "rules": {"max_server_per_host": 1}}),
    ("2.64", {"name": "g", "policy": "soft-anti-affinity", "rules": {"max_server_per_host": 2}}),
    ("2.64", {"name": "g", "policy": "legacy"}),
    ("2.64", {"name": " g", "policy": "affinity"}),
    ("2.64", {"name": "g\t", "policy": "affinity"}),
    ("2.64", {"name": "", "policy": "affinity"}),
    ("2.64", {"name": "x" * 255, "policy": "affinity"}),
    ("2.64", {"name": "x" * 256, "policy": "affinity"}),
    ("2.64", {"name": "g", "policy": "affinity", "metadata": {}}),
    ("2.64", None),
]
QUERIES = ["", "?limit=1", "?limit=1&offset=2", "?limit=0", "?offset=99", "?color=red"]
WRONG = ["?limit=-1", "?limit=a", "?limit=", "?offset=-1", "/nothing"]
VERSIONS = ["2.1", "2.12", "2.13", "2.15", "2.63", "2.64"]


def test_bodies_queries_and_versions_are_judged_alike(both: list[Api]) -> None:
    told = []
    for api in both:
        said: list[Any] = []
        for version, body in BODIES:
            status, answer = api.ask("POST", GROUPS, {"server_group": body}, version)
            said.append((version, body, status, shape(answer)))
        for version in VERSIONS:
            said += [(one, version, *listed(api, one, version)) for one in ("", *QUERIES)]
            [first, *_] = api.ask("GET", GROUPS, None, version)[1]["server_groups"]
            said.append(shape(api.ask("GET", f"{GROUPS}/{first['id']}", None, version)[1]))
        for query in WRONG:
            status, answer = api.ask("GET", f"{GROUPS}{query}", None, "2.64")
            said.append((query, status, list(answer)))
        for version in ("2.9999", "x"):
            status, answer = api.ask("GET", GROUPS, None, version)
            said.append((version, status, list(answer)))
        told.append(said)
    assert told[0] == told[1]


def shape(answer: Any) -> Any:
    """A group without what differs; of an error its name, as sentences are everybody's own."""
    if answer is None or "server_group" in answer:
        return answer and without_ids(answer["server_group"])
    [(name, told)] = answer.items()
    return name, told["code"]


def listed(api: Api, query: str, version: str) -> tuple[int, Any]:
    status, answer = api.ask("GET", f"{GROUPS}{query}", None, version)
    return status, [without_ids(one) for one in answer["server_groups"]]


def test_servers_of_a_group_are_its_members(
    operator: Operator, demo: Tenant, both: list[Api]
) -> None:
    _, ours_ = both
    _, made = ours_.run("create", "--policy", "anti-affinity", "apart", "-f", "json")
    role = {"name": "web", "flavor": "m1.small", "count": 2}
    added = {"member": {"role": role, "decide": {"hold": "PT10M"}}}
    demo.native("POST", f"/ensembles/{made['id']}/members", added)
    servers = [demo.boot("m1.small", hints={"group": made["id"]})[0] for _ in range(2)]
    demo.built(*servers)
    assert len({operator.host(one) for one in servers}) == 2
    _, shown = ours_.run("show", "apart", "-f", "json")
    assert set(shown["members"]) == set(servers)
    status, _ = ours_.run("delete", "apart")
    assert status == 0
    assert operator.allocations(servers[1]), "a group is deleted without its servers"


def test_a_neighbours_group_is_not_found(
    cloud: Cloud, neighbour: Tenant, both: list[Api], tmp_path: Path
) -> None:
    _, made = both[1].ask("POST", GROUPS, {"server_group": {"name": "a", "policies": ["affinity"]}})
    theirs = Api(neighbour, "moorage", tmp_path)
    path = f"{GROUPS}/{made['server_group']['id']}"
    assert [theirs.ask(method, path)[0] for method in ("GET", "DELETE")] == [404, 404]
    assert theirs.ask("GET", f"{GROUPS}?all_projects=1")[1] == {"server_groups": []}
    operators = Operator(cloud).connection.session
    found = operators.request(both[1].url + GROUPS + "?all_projects=1", "GET").json()
    assert [one["name"] for one in found["server_groups"]] == ["a"]


def test_servers_join_as_they_come(operator: Operator, demo: Tenant, both: list[Api]) -> None:
    """The stock flow: a group without members, and each server names it."""
    _, moorage = both
    body = {"server_group": {"name": "joined", "policy": "anti-affinity"}}
    status, made = moorage.ask("POST", GROUPS, body, "2.64")
    assert status == 200
    group = made["server_group"]["id"]
    [first] = demo.boot("m1.small", "one", hints={"group": group})
    demo.built(first)

    def boot(number: int) -> str:
        [server] = demo.boot("m1.medium", f"more-{number}", hints={"group": group})
        return server

    with ThreadPoolExecutor(2) as pool:
        others = list(pool.map(boot, range(2)))
    demo.built(*others)
    servers = [first, *others]
    assert sorted(map(operator.host, servers)) == operator.cloud.layout.computes
    shown = moorage.ask("GET", f"{GROUPS}/{group}", version="2.64")[1]["server_group"]
    assert sorted(shown["members"]) == sorted(servers)
    with pytest.raises(Refused) as refused:
        demo.boot("m1.small", hints={"group": group})
    assert (refused.value.status, "anti-affinity" in refused.value.message) == (409, True)
    demo.nova.delete_server(first)
    eventually(lambda: not operator.allocations(first), "the first is gone")
    [again] = demo.boot("m1.small", hints={"group": group})
    demo.built(again)
    assert operator.host(again) not in set(map(operator.host, others))
    # Moves keep the policy: no third host is free.
    operator.nova.migrate_server(others[0])
    eventually(lambda: demo.status(others[0]) == "ACTIVE", "it stays")
    assert len(set(map(operator.host, [again, *others]))) == 3


def test_one_endpoint_has_the_groups_of_both(
    cloud: Cloud, operator: Operator, demo: Tenant, both: list[Api]
) -> None:
    """With the option `server_groups` of the filter in nova-api."""
    nova, moorage = both
    _, made = nova.ask("POST", GROUPS, {"server_group": {"name": "own", "policy": "affinity"}}, V)
    paste = cloud.layout.folder("nova") / "api-paste.ini"
    kept = paste.read_text()
    door = f"server_groups = {cloud.layout.url('moorage', '/compute/v2.1')}\n"
    try:
        paste.write_text(kept + door)
        restarted(cloud)
        assert nova.run("create", "--policy", "anti-affinity", "web")[0] == 0
        status, listed = nova.run("list", "-f", "json")
        assert (status, sorted(one["Name"] for one in listed)) == (0, ["own", "web"])
        assert [one["Name"] for one in moorage.run("list", "-f", "json")[1]] == ["web"]
        _, shown = nova.run("show", "web", "-f", "json")
        servers = [demo.boot("m1.small", hints={"group": shown["id"]})[0] for _ in range(2)]
        servers += demo.boot("m1.small", hints={"group": made["server_group"]["id"]})
        demo.built(*servers)
        assert operator.host(servers[0]) != operator.host(servers[1])
        _, shown = nova.run("show", "web", "-f", "json")
        assert sorted(shown["members"]) == sorted(servers[:2])
        assert nova.run("delete", "web", "own")[0] == 0
        assert nova.run("list", "-f", "json") == (0, [])
    finally:
        paste.write_text(kept)
        restarted(cloud)
