"""Server groups of Nova's and of Moorage's at one endpoint."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.nova_filter.test_hints import TOKEN, Cloud, cloud

from moorage.domain.server_groups import IMPORTED
from moorage.nova_filter import filter_factory
from moorage.nova_filter.server_groups import _PATH

__all__ = ["cloud"]

GROUPS = "/v2.1/os-server-groups"
AWAY = "http://127.0.0.1:9"
PROJECT = "0123456789abcdef"


@dataclass
class NovaGroups:
    """A nova-api that has server groups."""

    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    page: int = 1000
    creations: int = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        status, body = self.answer(environ)
        start_response(status, [("Content-Type", "application/json"), ("Vary", "x")])
        yield b"" if body is None else json.dumps(body).encode()

    def answer(self, environ: dict[str, Any]) -> tuple[str, Any]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        group = path.removeprefix(GROUPS).strip("/")
        if not path.startswith(GROUPS):
            return "200 OK", {"else": path}
        if method == "POST":
            self.creations += 1
            return "500 Internal Server Error", None
        if not group:
            return self.listed(parse_qs(environ["QUERY_STRING"]))
        if group not in self.groups:
            return "404 Not Found", {"itemNotFound": {"message": "Nova has none"}}
        if method == "DELETE":
            del self.groups[group]
            return "204 No Content", None
        return "200 OK", {"server_group": self.groups[group]}

    def listed(self, query: dict[str, list[str]]) -> tuple[str, Any]:
        if "x" in query:
            return "400 Bad Request", {"badRequest": {"message": "x"}}
        offset = int(query.get("offset", ["0"])[-1])
        limit = min(int(query.get("limit", [str(self.page)])[-1]), self.page)
        return "200 OK", {"server_groups": list(self.groups.values())[offset:][:limit]}

    def has(self, *numbers: int) -> None:
        for number in numbers:
            group = f"99999999-9999-4999-8999-{number:012d}"
            self.groups[group] = {"id": group, "name": f"nova-{number}", "members": []}


@dataclass
class Api:
    """Nova-api with the filter before it."""

    endpoint: str
    nova: NovaGroups = field(default_factory=NovaGroups)
    options: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str = "", body: Any = None, query: str = "") -> Any:
        """Status and JSON."""
        door = self.endpoint.replace("/v1", "/compute/v2.1")
        options = {"endpoint": self.endpoint, "server_groups": door, **self.options}
        text = b"" if body is None else json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path if path.startswith("/v2.1") else f"{GROUPS}{path}",
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(text)),
            "CONTENT_TYPE": "application/json",
            "HTTP_X_AUTH_TOKEN": TOKEN,
            "HTTP_X_ROLES": "member",
            "HTTP_X_PROJECT_ID": PROJECT,
            "HTTP_OPENSTACK_API_VERSION": "compute 2.64",
            "wsgi.input": io.BytesIO(text),
        }
        said: list[Any] = []
        application = filter_factory({}, **options)(self.nova)
        parts = application(environ, lambda *some: said.append(some))
        answer = b"".join(parts)
        return int(said[-1][0].split(maxsplit=1)[0]), json.loads(answer or b"null")

    def names(self, query: str = "") -> list[str]:
        status, body = self.ask("GET", query=query)
        assert status == 200, body
        return [one["name"] for one in body["server_groups"]]

    def create(self, name: str) -> str:
        body = {"server_group": {"name": name, "policy": "anti-affinity"}}
        status, made = self.ask("POST", body=body)
        assert status == 200, made
        return str(made["server_group"]["id"])


@pytest.fixture
def api(cloud: Cloud) -> Api:
    return Api(cloud.endpoint)


def test_new_groups_are_moorages_and_old_ones_stay_novas(cloud: Cloud, api: Api) -> None:
    api.nova.has(1)
    [old] = api.nova.groups
    new = api.create("web")
    assert api.nova.creations == 0
    assert api.names() == ["nova-1", "web"]
    for group, name in ((old, "nova-1"), (new, "web")):
        status, shown = api.ask("GET", f"/{group}")
        assert (status, shown["server_group"]["name"]) == (200, name)
    assert cloud.call("GET", f"/ensembles/{new}")["ensemble"]["name"] == "web"
    for group in (old, new):
        assert api.ask("DELETE", f"/{group}") == (204, None)
        assert api.ask("GET", f"/{group}")[0] == 404
    assert api.names() == []


def test_pages_go_over_both(api: Api) -> None:
    api.nova.has(*range(7))
    api.nova.page = 3
    for number in range(2):
        api.create(f"web-{number}")
    every = [*(f"nova-{number}" for number in range(7)), "web-0", "web-1"]
    assert api.names() == every
    assert api.names("limit=3&offset=5") == every[5:8]
    assert api.names("offset=8") == every[8:]
    assert api.ask("GET", query="x=1")[0] == 400


def test_an_imported_group_is_one(cloud: Cloud, api: Api) -> None:
    key, value = IMPORTED
    body = {"ensemble": {"name": "old", "metadata": {key: value}, "policies": ["affinity"]}}
    group = cloud.call("POST", "/ensembles", body)["ensemble"]["id"]
    api.nova.groups[group] = {"id": group, "name": "old", "members": []}
    assert api.names() == ["old"]
    assert api.ask("DELETE", f"/{group}")[0] == 204
    assert api.names() == []


def test_novas_own_never_depend_on_moorage(api: Api) -> None:
    api.nova.has(1)
    [old] = api.nova.groups
    api.options = {"server_groups": f"{AWAY}/compute/v2.1"}
    assert api.ask("GET", f"/{old}")[0] == 200
    status, fault = api.ask("GET")
    assert (status, "does not answer" in fault["serviceUnavailable"]["message"]) == (503, True)
    assert api.ask("GET", "/99999999-9999-4999-8999-000000000009")[0] == 503
    assert api.ask("DELETE", f"/{old}")[0] == 204
    api.nova.has(2)
    api.options["failure_mode"] = "ordinary"
    assert api.names() == ["nova-2"]


@pytest.mark.parametrize("prefix", ["", "/v2.1", "/v2", "/v2.1/0123456789abcdef"])
def test_groups_are_found_with_and_without_version_and_project(prefix: str) -> None:
    path = f"{prefix}/os-server-groups"
    for text, group in ((path, None), (f"{path}.json", None), (f"{path}/x/", "x")):
        found = _PATH.fullmatch(text)
        assert found is not None
        assert found["id"] == group


def test_refusals_of_the_door_and_all_other_requests_pass(api: Api) -> None:
    body = {"server_group": {"name": "web", "policy": "nonesuch"}}
    assert api.ask("POST", body=body)[0] == 400
    assert api.ask("GET", "/v2.1/os-keypairs") == (200, {"else": "/v2.1/os-keypairs"})
    for path in (
        "/v2.1/servers/aaaaaaaa-0000-4000-8000-000000000001/metadata/os-server-groups",
        "/v2.1/flavors/1/os-extra_specs/os-server-groups",
        "/v2.1/word/os-server-groups",
        "/v2.1/fedcba9876543210/os-server-groups",
    ):
        for method in ("GET", "POST", "DELETE"):
            assert api.ask(method, path) == (200, {"else": path}), "no project id, or another's"
    for path in (GROUPS, f"/v2.1/{PROJECT}/os-server-groups"):
        group = {"server_group": {"name": "web", "policy": "affinity"}}
        assert api.ask("POST", path, group)[0] == 200
    with pytest.raises(ValueError, match="server_groups must be the URL"):
        filter_factory({}, endpoint=f"{AWAY}/v1", server_groups="controller")
