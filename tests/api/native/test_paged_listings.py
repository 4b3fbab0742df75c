"""Every listing has pages: flavors, members, policies, claims, quotas and the fleet, too."""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl

import pytest

from moorage.api.native.routes import ROUTES
from moorage.client.lookup import whole
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.shared.limits import Limits

COUNT = 7
FLEET = """
fleet: seven
topology:
  location:
    levels: [zone, rack]
    domains:
      - {name: z, level: zone}
      - {name: "r{n}", count: 7, level: rack, parent: z}
hosts:
  - name: "n{n}"
    count: 7
    inventories: {VCPU: 8}
    place: {location: {name: "r{n}", count: 7}}
flavors:
""" + "\n".join(
    f"  - {{name: f{number}, resources: {{VCPU: 1}}}}" for number in reversed(range(COUNT))
)
SHOP = {
    "name": "shop",
    "members": [{"name": "web", "count": COUNT, "resources": {"VCPU": 1}}],
    "policies": [
        {"name": f"p{number}", "type": "anti-affinity", "members": ["web"]}
        for number in range(COUNT)
    ],
    "decide": {},
}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service(FLEET, limits=Limits(page_bytes=1_000_000))
    yield made
    made.close()


@pytest.fixture(scope="module")
def paths(service: Service) -> Mapping[str, str]:
    """Where the listings are, by what they list."""
    answer = service.call("POST", "/ensembles", {"ensemble": SHOP})
    assert answer.status_code == 201, answer.text
    ensemble, decision = answer.json["ensemble"]["id"], answer.json["decision"]["id"]
    for number in range(COUNT):
        claim = {"member": f"web[{number}]", "server": {"resources": {"VCPU": 1}}}
        made = service.call("POST", f"/decisions/{decision}/claims", {"claim": claim})
        assert made.status_code == 201, made.text
        body = {"quota": {"leases": number}}
        assert service.call("PATCH", f"/quotas/p{number}", body, caller=OPERATOR).status_code == 200
    return {
        "flavors": "/flavors",
        "members": f"/ensembles/{ensemble}/members",
        "policies": f"/ensembles/{ensemble}/policies",
        "claims": f"/decisions/{decision}/claims",
        "quotas": "/quotas",
        "hosts": "/fleet",
    }


NAMES = {"claims": "id", "quotas": "project_id"}


def pages(service: Service, path: str, key: str, **query: object) -> list[list[str]]:
    """The names of each page, by the links from one to the next."""
    found: list[list[str]] = []
    asked: dict[str, object] = dict(query)
    while True:
        answer = service.call("GET", path, caller=OPERATOR, query=asked)
        assert answer.status_code == 200, answer.text
        body = answer.json["fleet"] if path == "/fleet" else answer.json
        found.append([one[NAMES.get(key, "name")] for one in body[key]])
        links = body[f"{key}_links"]
        if not links:
            return found
        target, _, asked_next = links[0]["href"].partition("?")
        assert target == f"/v1{path}"
        asked = dict(parse_qsl(asked_next))


@pytest.mark.parametrize("key", ["flavors", "members", "policies", "claims", "quotas", "hosts"])
def test_pages_follow_one_another(service: Service, paths: Mapping[str, str], key: str) -> None:
    more = {"all_projects": "true"} if key == "quotas" else {}
    (every,) = pages(service, paths[key], key, **more)
    assert len(set(every)) == COUNT
    if key != "claims":
        assert every == sorted(every)
    some = pages(service, paths[key], key, limit=3, **more)
    assert ([len(page) for page in some], list(chain(*some))) == ([3, 3, 1], every)
    gone = service.call("GET", paths[key], caller=OPERATOR, query={"marker": "no", **more})
    # Projects without a quota of their own have a place in the order all the same.
    assert gone.status_code == (200 if key == "quotas" else 404)


@pytest.mark.parametrize("key", ["flavors", "members", "policies", "claims", "quotas", "hosts"])
def test_pages_end_at_their_bytes_and_the_client_follows_them(
    paths: Mapping[str, str], service: Service, key: str
) -> None:
    small = copy(service)
    small.env = replace(service.env, limits=replace(service.env.limits, page_bytes=300))
    small.__dict__.pop("app", None)
    small.__dict__.pop("_client", None)
    more: dict[str, str | int] = {"all_projects": "true"} if key == "quotas" else {}
    found = pages(small, paths[key], key, **more)
    assert len(found) > 1
    assert len(list(chain(*found))) == COUNT
    asked: list[str] = []

    def call(method: str, path: str, *, params: dict[str, Any]) -> Any:
        asked.append(path)
        return _Reply(small.call(method, path, caller=OPERATOR, query=params).json)

    within = "fleet" if key == "hosts" else None
    reply = whole(call, paths[key], key, more, within=within)
    body = reply.body if within is None else reply.body[within]
    assert [one[NAMES.get(key, "name")] for one in body[key]] == list(chain(*found))
    assert body[f"{key}_links"] == []
    assert len(asked) == len(found)


class _Reply:
    def __init__(self, body: Any) -> None:
        self.body = body


def test_a_tenants_own_quota_is_a_page(service: Service) -> None:
    mine = service.call("GET", "/quotas").json
    assert ([one["project_id"] for one in mine["quotas"]], mine["quotas_links"]) == (
        [TENANT.project_id],
        [],
    )


def test_a_tenant_sees_levels_and_the_domains_that_policies_may_name(service: Service) -> None:
    """Never hosts, nor how many; which levels, a setting says."""
    whole = service.call("GET", "/topology/domains", caller=OPERATOR).json["topology"]
    assert whole["attachments"]
    seen = service.call("GET", "/topology/domains").json["topology"]
    assert (seen["levels"], seen["attachments"]) == (whole["levels"], [])
    assert {one["level"] for one in seen["domains"]} == {"zone"}
    assert seen["domains"] == [one for one in whole["domains"] if one["level"] == "zone"]


def test_the_topology_is_whole_and_can_be_put_back(service: Service) -> None:
    found = service.call("GET", "/topology/domains", caller=OPERATOR).json["topology"]
    assert [len(found[key]) for key in ("domains", "attachments")] == [COUNT + 1, COUNT]
    body = {"topology": {key: found[key] for key in ("levels", "domains", "attachments")}}
    again = service.call("PUT", "/topology/domains", body, caller=OPERATOR)
    assert again.status_code == 200, again.text
    assert {**again.json["topology"], "revision": 0} == {**found, "revision": 0}

    def put(tag: str, **query: str) -> tuple[int, int]:
        headers = {"If-Match": tag}
        path = "/topology/domains"
        answer = service.call("PUT", path, body, caller=OPERATOR, headers=headers, query=query)
        shown = service.call("GET", path, caller=OPERATOR).json["topology"]
        return answer.status_code, shown["revision"]

    seen = again.json["topology"]["revision"]
    assert put(f'"{found["revision"]}"') == (412, seen)
    assert put(f'"{found["revision"]}"', dry_run="true") == (412, seen)
    assert put(f'"{seen}"', dry_run="true") == (200, seen)
    status, newer = put(f'"{seen}"')
    assert (status, newer > seen) == (200, True)
    assert put(f'"{seen}"') == (412, newer)
    assert put("seven") == (400, newer)
    assert put("*")[0] == 200


def test_every_listing_takes_a_limit_and_a_marker() -> None:
    listings = {
        one.path for one in ROUTES if one.method == "GET" and (one.rule or "").endswith(":list")
    }
    paged = {one.path for one in ROUTES if one.method == "GET" and "limit" in one.query}
    # Policy types are the program's own; a bounded number.
    assert listings - paged == {"/policy-types"}
