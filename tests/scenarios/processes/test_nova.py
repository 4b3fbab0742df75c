"""Nova's requests over HTTP to two workers of a real service: a claim's place is taken once."""

import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from moorage.client.discovery import OPERATOR_TOKEN, Access
from moorage.client.moorage import connect
from moorage.testing.in_process import load

pytestmark = pytest.mark.process

FLEET = """
fleet: one-host
topology:
  location:
    levels: [rack]
    domains: [{name: r1, level: rack}]
hosts:
  - name: h1
    inventories: {VCPU: 8, MEMORY_MB: 65536}
    traits: [COMPUTE_NODE]
    place: {location: r1}
flavors:
  - {name: half, resources: {VCPU: 4, MEMORY_MB: 8192}}
"""
PAIR = {"name": "pair", "members": [{"name": "db", "count": 2, "flavor": "half"}]}
QUERY = (
    "limit=1000&resources=MEMORY_MB%3A8192%2CVCPU%3A4"
    "&root_required=COMPUTE_NODE%2C%21COMPUTE_STATUS_DISABLED"
)
NOVA = {
    "X-Auth-Token": "nova:service",
    "X-Roles": "service",
    "Accept": "application/json",
    "OpenStack-API-Version": "placement 1.36",
}
TENANT = {"X-Auth-Token": "ann:project-a", "X-Roles": "member"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[httpx.Client]:
    with serve(tmp_path_factory.mktemp("nova")) as start:
        url = f"http://127.0.0.1:{start('--workers', '2').port}"
        with connect(Access(url, OPERATOR_TOKEN)) as operator:
            load(operator, FLEET)
        with httpx.Client(base_url=url, timeout=100) as client:
            yield client


@pytest.fixture
def held(http: httpx.Client) -> Iterator[Any]:
    """Both halves of the only host, held."""
    body = {"ensemble": {**PAIR, "decide": {"hold": "PT10M"}}}
    made = http.post("/v1/ensembles", json=body, headers=TENANT)
    assert made.status_code == 201, made.text
    found = made.json()
    yield found
    path = f"/v1/ensembles/{found['ensemble']['id']}"
    assert http.delete(path, headers={**TENANT, "If-Match": "*"}).status_code == 204


def claim(http: httpx.Client, held: Any, member: str, **more: str) -> tuple[str, dict[str, str]]:
    """The claim's path, and Nova's headers for the server that presents it."""
    asked = {"claim": {"member": member, "server": {"flavorRef": "half"}, **more}}
    path = f"/v1/decisions/{held['decision']['id']}/claims"
    made = http.post(path, json=asked, headers=TENANT).json()["claim"]
    return f"/v1/claims/{made['id']}", {**NOVA, **made["present_as"]["header"]}


def candidates(http: httpx.Client, headers: Mapping[str, str]) -> Any:
    answer = http.get(f"/placement/allocation_candidates?{QUERY}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["allocation_requests"]


def build(http: httpx.Client, candidate: Any, headers: Mapping[str, str]) -> tuple[str, int]:
    """The new server and the status of its allocations' write."""
    server = str(uuid.uuid4())
    body = {
        **candidate,
        "project_id": "project-a",
        "user_id": "ann",
        "consumer_generation": None,
    }
    answer = http.put(f"/placement/allocations/{server}", json=body, headers=headers)
    return server, answer.status_code


def delete(http: httpx.Client, server: str) -> None:
    assert http.delete(f"/placement/allocations/{server}", headers=NOVA).status_code == 204


def test_two_servers_that_present_one_claim(http: httpx.Client, held: Any) -> None:
    claimed, presenting = claim(http, held, "db[0]")
    assert candidates(http, NOVA) == [], "all is held"
    (candidate,) = candidates(http, presenting)
    assert set(candidate) == {"allocations", "mappings"}
    with ThreadPoolExecutor(4) as threads:
        tries = list(threads.map(lambda _: build(http, candidate, presenting), range(4)))
    assert sorted(status for _, status in tries) == [204, 409, 409, 409]
    (won,) = (server for server, status in tries if status == 204)
    shown = http.get(claimed, headers=TENANT).json()["claim"]
    assert (shown["status"], shown["server_id"]) == ("active", won)
    assert candidates(http, presenting) == [], "the other half is held still"
    delete(http, won)


def test_confirmed_between_get_and_put(http: httpx.Client, held: Any) -> None:
    claimed, presenting = claim(http, held, "db[0]")
    (candidate,) = candidates(http, presenting)
    decision = f"/v1/decisions/{held['decision']['id']}"
    confirmed = http.post(f"{decision}/confirm", json={}, headers=TENANT)
    assert confirmed.json()["decision"]["status"] == "confirmed"
    server, status = build(http, candidate, presenting)
    assert status == 204
    assert http.get(claimed, headers=TENANT).json()["claim"]["server_id"] == server
    assert http.get(decision, headers=TENANT).json()["decision"]["status"] == "closed"
    assert len(candidates(http, NOVA)) == 1, "the half that nobody claimed is free"
    delete(http, server)


def test_lapsed_between_get_and_put(http: httpx.Client, held: Any) -> None:
    claimed, presenting = claim(http, held, "db[0]", lifetime="PT1S")
    (candidate,) = candidates(http, presenting)
    while not (found := candidates(http, NOVA)):
        pass  # another's request sees the place as soon as it has lapsed
    assert found == [candidate]
    first, status = build(http, candidate, NOVA)
    assert status == 204
    assert build(http, candidate, presenting)[1] == 409
    shown = http.get(claimed, headers=TENANT).json()["claim"]
    assert (shown["status"], shown["server_id"]) == ("expired", None)
    delete(http, first)
