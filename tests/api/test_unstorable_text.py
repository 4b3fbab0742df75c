"""Text that no database keeps is refused by every dialect: NUL, half a pair of surrogates."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.servers.postgres import Databases

from moorage.testing import in_process

HEADERS = {
    "x-auth-token": "admin",
    "openstack-api-version": "placement 1.39",
    "content-type": "application/json",
}
UNSTORABLE = (r"\u0000", r"\ud800", r"\udc00", r"\ud800A", r"\uD800\uD800")
UUID = "7a9b4f0e-3f5c-4a0e-9d3e-3f1a2b4c5d6e"


@contextmanager
def served(url: str | None) -> Iterator[httpx.Client]:
    with (
        in_process.app(url) as application,
        httpx.Client(
            transport=httpx.WSGITransport(application, raise_app_exceptions=False),
            base_url="http://moorage.invalid",
            headers=HEADERS,
        ) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def on_sqlite() -> Iterator[httpx.Client]:
    with served(None) as client:
        yield client


@pytest.fixture(scope="module")
def on_postgresql(postgres_databases: Databases) -> Iterator[httpx.Client]:
    url = postgres_databases.migrated()
    with served(url) as client:
        yield client
    postgres_databases.release(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def wire(request: pytest.FixtureRequest) -> httpx.Client:
    """A service for all tests on its database: what is refused leaves nothing."""
    found: httpx.Client = request.getfixturevalue(f"on_{request.param}")
    return found


MEMBERS: Any = [{"name": "§", "count": 1, "flavor": "f"}]
HOT = """
heat_template_version: 2018-08-31
resources:
  a: {type: "OS::Nova::Server", properties: {name: "x\\0", flavor: f}}
"""
BODIES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/placement/resource_providers", {"name": "§"}),
    ("PUT", f"/placement/resource_providers/{UUID}", {"name": "§"}),
    (
        "PUT",
        f"/placement/allocations/{UUID}",
        {
            "allocations": {UUID: {"resources": {"VCPU": 1}}},
            "project_id": "§",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        },
    ),
    ("POST", "/v1/ensembles", {"ensemble": {"name": "§", "members": MEMBERS}}),
    ("POST", "/v1/ensembles", {"ensemble": {"name": "a", "metadata": {"§": "b"}, "members": []}}),
    ("POST", "/v1/flavors", {"flavor": {"id": "§", "name": "n"}}),
    (
        "POST",
        "/reservation/leases",
        {"name": "§", "start_date": "now", "end_date": "2099-01-01 00:00", "reservations": []},
    ),
    ("PUT", "/reservation/leases/x", {"name": "§"}),
)


@pytest.mark.parametrize(("method", "path", "body"), BODIES)
def test_a_body_is_refused(wire: httpx.Client, method: str, path: str, body: Any) -> None:
    for escape in UNSTORABLE:
        raw = json.dumps(body, ensure_ascii=False).replace("§", f"a{escape}b").encode()
        answer = wire.request(method, path, content=raw)
        assert answer.status_code == 400, (escape, answer.text)
        assert "cannot be stored" in answer.text


@pytest.mark.parametrize("name", [r"\\u0000", r"\ud83d\ude00", r"\\\\ud800", "é", r"\u00e9\n"])
def test_what_only_looks_like_it_is_kept(wire: httpx.Client, name: str) -> None:
    raw = f'{{"name": "{name}"}}'.encode()
    made = wire.post("/placement/resource_providers", content=raw)
    assert made.status_code == 200, made.text
    assert made.json()["name"] == json.loads(raw)["name"]


@pytest.mark.parametrize("quoted", ["%00", "a%00b", "%ED%A0%80", "%FF"])
@pytest.mark.parametrize(
    "path",
    [
        "/placement/resource_providers?name={}",
        "/placement/resource_providers/{}",
        "/placement/traits/CUSTOM_{}",
        "/placement/allocation_candidates?resources=VCPU:1&required={}",
        "/placement/usages?project_id={}",
        "/v1/ensembles?name={}",
        "/v1/ensembles/{}",
        "/v1/leases?status={}",
        "/reservation/leases/{}",
        "/reservation/os-hosts/{}",
    ],
)
def test_a_path_or_query_is_refused(wire: httpx.Client, path: str, quoted: str) -> None:
    answer = wire.get(path.format(quoted))
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("name", ["name", '"x\\0": y, name'])
def test_a_template_that_makes_one_is_refused(wire: httpx.Client, name: str) -> None:
    template = HOT.replace("name", name)
    given = {"template": {"name": "t", "format": "hot", "source": {"template": template}}}
    answer = wire.post("/v1/templates", json=given)
    assert answer.status_code == 400, answer.text
    assert "cannot be stored" in answer.text


def test_the_access_log_takes_any_path(
    wire: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """The path of a log line is quoted, whatever an application server made of its bytes."""
    with caplog.at_level("INFO", logger="moorage.access"):
        assert wire.get("/v1/ensembles/%FF").status_code == 400
    assert [one for one in caplog.records if one.name == "moorage.access"]
