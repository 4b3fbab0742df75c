"""Hosts as operators see them: who is on them until when, and why one is closed."""

from typing import Any

from moorage.domain.changes import Changeset, CreateProvider, PutTraits, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.testing.service import OPERATOR, READER, TENANT, Service

FLEET = """
fleet: room
hosts:
  - {name: "h{n}", count: 4, inventories: {VCPU: 16}}
flavors:
  - {name: small, resources: {VCPU: 1}}
"""
SERVER = "44444444-4444-4444-8444-444444444444"
BARE = "33333333-3333-4333-8333-333333333333"


def listed(service: Service) -> dict[str, Any]:
    answer = service.call("GET", "/hosts", caller=OPERATOR)
    assert answer.status_code == 200, answer.text
    return {one["name"]: one for one in answer.json["hosts"]}


def shown(service: Service, name: str, **query: object) -> Any:
    answer = service.call("GET", f"/hosts/{name}", caller=OPERATOR, query=query)
    assert answer.status_code == 200, answer.text
    return answer.json["host"]


def closed(host: Any) -> list[tuple[str, str | None]]:
    return [(one["why"], one["end"]) for one in host["closed"]]


def plan(service: Service, host: str, **period: str) -> None:
    window = {"kind": "maintenance", "hosts": [host], "reason": "firmware", **period}
    answer = service.call("POST", "/capacity/planned", {"window": window}, caller=OPERATOR)
    assert answer.status_code == 201, answer.text


def test_a_list_says_why_hosts_are_closed(service: Service) -> None:
    hosts = listed(service)
    assert all(one["open"] and not one["closed"] for one in hosts.values())
    disabled = PutTraits(hosts["h1"]["uuid"], frozenset({"COMPUTE_STATUS_DISABLED"}), None)
    service.store.commit(Changeset((disabled, CreateProvider(BARE, "h9"))))
    plan(service, "h2", start="2026-11-21T09:00:00Z", end="2026-11-22T09:00:00Z")
    plan(service, "h3", start="2026-11-23T09:00:00Z", end="2026-11-24T09:00:00Z")
    hosts = listed(service)
    assert closed(hosts["h1"]) == [("disabled", None)]
    assert closed(hosts["h2"]) == [("away", "2026-11-22T09:00:00Z")]
    assert closed(hosts["h3"]) == [("planned", "2026-11-24T09:00:00Z")]
    assert closed(hosts["h9"]) == [("no inventory", None)]
    assert hosts["h2"]["closed"][0]["reason"] == "firmware"
    assert {name: one["open"] for name, one in hosts.items()} == {
        "h1": False,
        "h2": False,
        "h3": True,
        "h4": True,
        "h9": False,
    }


def test_a_host_says_what_it_has_as_the_fleet_does(service: Service) -> None:
    body = {
        "name": "shop",
        "members": [{"name": "web", "count": 6, "flavor": "small"}],
        "decide": {"hold": "PT1H"},
    }
    assert service.call("POST", "/ensembles", {"ensemble": body}).status_code == 201
    fleet = service.call("GET", "/fleet", caller=OPERATOR).json["fleet"]["hosts"]
    for host in fleet:
        seen = shown(service, host["name"])
        assert {name: seen[name] for name in ("resources", "traits")} == {
            name: host[name] for name in ("resources", "traits")
        }
    assert sum(host["resources"]["VCPU"]["booked"] for host in fleet) == 6


def test_a_host_says_who_is_on_it_until_when(service: Service) -> None:
    body = {
        "name": "shop",
        "members": [{"name": "web", "count": 1, "flavor": "small"}],
        "decide": {"hold": "PT1H", "until": "2026-11-22T09:00:00Z"},
    }
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 201, answer.text
    made = answer.json
    (name,) = (name for name, one in listed(service).items() if one["consumers"])
    assert listed(service)[name]["until"] == "2026-11-22T09:00:00Z"
    (held,) = shown(service, name)["bookings"]
    assert (held["state"], held["amounts"]) == ("held", {"VCPU": 1})
    assert (held["end"], held["lapses_at"]) == ("2026-11-22T09:00:00Z", "2026-11-21T10:00:00Z")
    assert (held["ensemble"], held["ensemble_name"]) == (made["ensemble"]["id"], "shop")
    assert (held["member"], held["project_id"]) == ("web[0]", TENANT.project_id)
    uuid = listed(service)[name]["uuid"]
    server = Consumer(SERVER, "project-b", "bob", "INSTANCE")
    service.store.commit(Changeset((ReplaceAllocations(server, {uuid: {"VCPU": 2}}, None),)))
    host = shown(service, uuid)
    assert (host["consumers"], host["until"]) == (2, None)
    assert {one["state"]: one["end"] for one in host["bookings"]} == {
        "held": "2026-11-22T09:00:00Z",
        "allocated": None,
    }


def test_both_are_paged(service: Service) -> None:
    host = listed(service)["h1"]["uuid"]
    servers = [Consumer(f"{n}{SERVER[1:]}", "p", "u", "INSTANCE") for n in range(5)]
    service.store.commit(
        Changeset(tuple(ReplaceAllocations(one, {host: {"VCPU": 1}}, None) for one in servers))
    )
    found: list[str] = []
    query: dict[str, object] = {"limit": 2}
    while True:
        body = service.call("GET", "/hosts/h1", caller=OPERATOR, query=query).json["host"]
        found += [one["consumer"] for one in body["bookings"]]
        assert body["consumers"] == 5
        if not body["bookings_links"]:
            break
        query = {"limit": 2, "marker": found[-1]}
    assert found == [one.uuid for one in servers]
    first = service.call("GET", "/hosts", caller=OPERATOR, query={"limit": 3}).json
    assert "marker=" in first["hosts_links"][0]["href"]
    marker = first["hosts"][-1]["uuid"]
    rest = service.call("GET", "/hosts", caller=OPERATOR, query={"marker": marker}).json
    assert len(first["hosts"]) + len(rest["hosts"]) == 4
    assert rest["hosts_links"] == []


def test_only_operators_see_hosts_and_an_unknown_one_is_not_found(service: Service) -> None:
    for caller in (TENANT, READER):
        for path in ("/hosts", "/hosts/h1"):
            assert service.call("GET", path, caller=caller).status_code == 403
    for path in ("/hosts/h77", "/hosts?marker=h77"):
        answer = service.call("GET", path, caller=OPERATOR)
        assert answer.status_code == 404, answer.text
