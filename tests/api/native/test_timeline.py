"""The timeline: what lasts in a period, in rows and lanes, for who may see it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.domain.errors import TooManyRequests
from moorage.domain.period import HOUR, SECOND, parse_instant
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service

FLEET = """
fleet: rooms
topology:
  location:
    levels: [zone, rack]
    domains:
      - {name: az1, level: zone}
      - {name: r1, level: rack, parent: az1}
      - {name: r2, level: rack, parent: az1}
hosts:
  - {name: "h{n}", count: 4, inventories: {VCPU: 8}, place: {location: {in: [r1, r2], order: turn}}}
"""
DAYS = {"from": "2026-12-01T00:00:00Z", "to": "2026-12-31T00:00:00Z"}


def leased(
    service: Service, name: str, start: str, end: str, count: int = 1, **more: Any
) -> dict[str, Any]:
    caller = more.pop("caller", TENANT)
    status = more.pop("status", 201)
    amount = {"count": count, "resources": {"VCPU": 8}}
    body = {"name": name, "start": start, "end": end, "amount": amount} | more
    answer = service.call("POST", "/leases", {"lease": body}, caller=caller)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json["entry" if status == 202 else "lease"]
    return found


def offered(service: Service) -> dict[str, Any]:
    asked = {
        "earliest": "2026-12-20T00:00:00Z",
        "duration": "P1D",
        "hold": "PT2H",
        "name": "maybe",
        "amount": {"count": 1, "resources": {"VCPU": 8}},
    }
    answer = service.call("POST", "/offers", {"offer_request": asked})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json["offers"][0]
    return found


def away(service: Service, host: str, start: str | None, end: str | None, **more: Any) -> Any:
    window = {"kind": "maintenance", "hosts": [host], "start": start, "end": end} | more
    answer = service.call("POST", "/capacity/planned", {"window": window}, caller=OPERATOR)
    assert answer.status_code == 201, answer.text
    return answer.json["window"]


def got(service: Service, caller: Any = TENANT, **query: object) -> Any:
    answer = service.call("GET", "/timeline", caller=caller, query=DAYS | query)
    assert answer.status_code == 200, answer.text
    return answer.json


def rows(found: Any) -> dict[str, list[dict[str, Any]]]:
    """Label of each row -> its bars, each with its columns."""
    line = found["timeline"]
    bars = [
        dict(zip(line["bars"], values, strict=True))
        for values in zip(*line["bars"].values(), strict=True)
    ]
    names = line["rows"]["label"]
    assert len(set(line["rows"]["id"])) == len(names)
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for bar in bars:
        made[names[bar["row"]]].append(bar)
    for name, lanes in zip(names, line["rows"]["lanes"], strict=True):
        assert {bar["lane"] for bar in made[name]} == set(range(lanes))
    return made


def labels(some: list[dict[str, Any]]) -> list[str]:
    return [bar["label"] for bar in some]


def seconds(text: str) -> int:
    return parse_instant(text) // SECOND


def test_each_thing_of_the_project_has_a_row(service: Service) -> None:
    one = leased(service, "one", "2026-12-02T00:00:00Z", "2026-12-04T00:00:00Z", 4, lead="PT1H")
    leased(service, "theirs", "2026-12-05T00:00:00Z", "2026-12-06T00:00:00Z", caller=OTHER)
    away(service, "h1", "2026-12-10T00:00:00Z", "2026-12-11T00:00:00Z", reason="fans")
    offer = offered(service)
    entry = leased(
        service, "later", "2026-12-03T00:00:00Z", "2026-12-05T00:00:00Z", wait={}, status=202
    )
    found = got(service)
    assert found["timeline"]["from"] == DAYS["from"]
    assert found["timeline"]["rows_by"] == "lease"
    made = rows(found)
    assert list(made) == ["one", "later", "maybe"]
    assert made["one"] == [
        {
            "row": 0,
            "lane": 0,
            "kind": "lease",
            "id": one["id"],
            "label": "one",
            "start": seconds("2026-12-02T00:00:00Z"),
            "end": seconds("2026-12-04T00:00:00Z"),
            "lead": 3600,
            "cleaning": 0,
            "state": "pending",
            "project": "project-a",
            "series": None,
        }
    ]
    (waiting,) = made["later"]
    assert (waiting["id"], waiting["kind"], waiting["state"]) == (entry["id"], "waiting", "proved")
    assert waiting["start"] == seconds(entry["estimate"]["start"])
    assert waiting["end"] == seconds(entry["estimate"]["end"])
    assert (made["maybe"][0]["id"], made["maybe"][0]["kind"]) == (offer["id"], "offer")
    # Another decision may have made it untrue, which is not known before it is made anew.
    leased(service, "small", "2026-12-25T00:00:00Z", "2026-12-26T00:00:00Z")
    assert rows(got(service))["later"][0]["state"] == "estimated"
    shown = service.call("GET", f"/waitlist/{entry['id']}").json["entry"]["estimate"]
    assert (shown["proved"], shown["current"]) == (False, False)
    made = rows(got(service))
    assert rows(got(service, READER)) == made
    assert set(rows(got(service, OTHER))) == {"theirs"}
    everyone = rows(got(service, OPERATOR, all_projects="true"))
    assert set(everyone) == {"one", "theirs", "later", "maybe", "small", "fans"}
    assert (everyone["fans"][0]["kind"], everyone["fans"][0]["state"]) == ("absence", "planned")


def test_what_waits_without_an_estimate_may_be_anywhere_in_its_range(service: Service) -> None:
    away(service, "h1", "2026-12-01T00:00:00Z", None, kind="decommission")
    entry = leased(
        service,
        "later",
        "2026-12-03T00:00:00Z",
        "2026-12-04T00:00:00Z",
        4,
        wait={"latest_start": "2026-12-08T00:00:00Z"},
        status=202,
    )
    assert entry["estimate"] is None
    (bar,) = rows(got(service))["later"]
    assert bar["state"] == "waiting"
    assert bar["start"] == seconds("2026-12-03T00:00:00Z")
    assert bar["end"] == seconds("2026-12-09T00:00:00Z")


def test_only_what_overlaps_the_period_is_there(service: Service) -> None:
    leased(service, "early", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z")
    leased(service, "late", "2026-12-05T00:00:00Z", "2026-12-06T00:00:00Z")
    day = {"from": "2026-12-02T00:00:00Z", "to": "2026-12-05T00:00:00Z"}
    assert rows(got(service, **day)) == {}
    assert set(rows(got(service, **(day | {"to": "2026-12-05T00:00:01Z"})))) == {"late"}
    assert set(rows(got(service, **(day | {"from": "2026-12-01T23:59:59Z"})))) == {"early"}
    for path, key in (("/leases", "leases"), ("/offers", "offers")):
        answer = service.call("GET", path, query=day)
        assert answer.json[key] == []
    listed = service.call("GET", "/leases", query={"from": "2026-12-02T00:00:00Z"}).json["leases"]
    assert [one["name"] for one in listed] == ["late"]
    listed = service.call("GET", "/leases", query={"to": "2026-12-05T00:00:00Z"}).json["leases"]
    assert [one["name"] for one in listed] == ["early"]


def test_offers_are_filtered_by_their_period(service: Service) -> None:
    offer = offered(service)
    for query, there in (
        ({"from": "2026-12-20T12:00:00Z"}, True),
        ({"from": "2026-12-21T00:00:00Z"}, False),
        ({"to": "2026-12-20T00:00:00Z"}, False),
        ({"to": "2026-12-20T00:00:01Z"}, True),
    ):
        found = service.call("GET", "/offers", query=query).json["offers"]
        assert [one["id"] for one in found] == ([offer["id"]] if there else [])
    service.clock.pass_by(3 * HOUR)
    assert rows(got(service)) == {}  # it has expired, whether that is recorded or not


def test_without_a_period_it_is_that_of_the_next_thirty_days(service: Service) -> None:
    leased(service, "soon", "2026-12-20T00:00:00Z", "2026-12-22T00:00:00Z")
    leased(service, "later", "2026-12-22T00:00:00Z", "2026-12-23T00:00:00Z")
    line = service.call("GET", "/timeline").json["timeline"]
    assert (line["from"], line["to"]) == ("2026-11-21T09:00:00Z", "2026-12-21T09:00:00Z")
    assert line["rows"]["label"] == ["soon"]


def test_closed_leases_are_there_when_asked_for(service: Service) -> None:
    one = leased(service, "one", "2026-12-02T00:00:00Z", "2026-12-04T00:00:00Z")
    gone = service.call("DELETE", f"/leases/{one['id']}", headers={"If-Match": "*"})
    assert gone.status_code == 204
    assert rows(got(service)) == {}
    assert rows(got(service, closed="true"))["one"][0]["state"] == "closed"


def test_rows_of_projects_have_lanes(service: Service) -> None:
    for name, first, last in (("a", 1, 5), ("b", 3, 7), ("c", 5, 6), ("d", 7, 8)):
        days = f"2026-12-0{first}T00:00:00Z", f"2026-12-0{last}T00:00:00Z"
        leased(service, name, *days)
    leased(service, "theirs", "2026-12-02T00:00:00Z", "2026-12-06T00:00:00Z", caller=OTHER)
    made = rows(got(service, OPERATOR, rows="project", all_projects="true"))
    assert list(made) == ["project-a", "project-b"]
    assert {bar["label"]: bar["lane"] for bar in made["project-a"]} == {
        "a": 0,
        "b": 1,
        "c": 0,
        "d": 0,
    }
    assert labels(made["project-b"]) == ["theirs"]


def test_rows_of_hosts_and_racks_are_where_members_are(service: Service) -> None:
    pair = leased(service, "pair", "2026-12-02T00:00:00Z", "2026-12-04T00:00:00Z", 2)
    four = leased(service, "four", "2026-12-05T00:00:00Z", "2026-12-06T00:00:00Z", 4)
    absence = away(service, "h3", "2026-12-10T00:00:00Z", None, kind="decommission")
    by_host = got(service, OPERATOR, rows="host", all_projects="true")
    places = {
        one["id"]: {member["domains"]["host"] for member in members(service, one["ensemble_id"])}
        for one in (pair, four)
    }
    assert all(places.values())
    made = rows(by_host)
    assert list(made) == ["h1", "h2", "h3", "h4"]
    for host, bars in made.items():
        expected = {one for one, hosts in places.items() if host in hosts}
        assert {bar["id"] for bar in bars if bar["kind"] == "lease"} == expected
    assert [bar["end"] for bar in made["h3"] if bar["id"] == absence["id"]] == [None]
    uuids = {one["name"]: one["uuid"] for one in hosts(service)}
    names = by_host["timeline"]["rows"]
    assert dict(zip(names["label"], names["id"], strict=True)) == uuids
    racks = rows(got(service, OPERATOR, rows="rack", all_projects="true"))
    assert list(racks) == ["r1", "r2"]
    rack_of = {one["name"]: one["domains"]["rack"] for one in hosts(service)}
    for rack, bars in racks.items():
        there = [host for host in made if rack_of[host] == rack]
        assert {bar["id"] for bar in bars} == {bar["id"] for host in there for bar in made[host]}
        assert len(bars) == len({bar["id"] for bar in bars})


def hosts(service: Service) -> Any:
    return service.call("GET", "/hosts", caller=OPERATOR).json["hosts"]


def members(service: Service, ensemble: str) -> Any:
    return service.call("GET", f"/ensembles/{ensemble}/members", caller=OPERATOR).json["members"]


def test_a_tenant_sees_no_places(service: Service) -> None:
    leased(service, "one", "2026-12-02T00:00:00Z", "2026-12-04T00:00:00Z", 4)
    away(service, "h2", "2026-12-10T00:00:00Z", "2026-12-11T00:00:00Z")
    for by in ("host", "rack"):
        refused(service.call("GET", "/timeline", query={"rows": by}), 403, "forbidden")
    refused(service.call("GET", "/timeline", query={"all_projects": "true"}), 403, "forbidden")
    for by in ("lease", "project"):
        text = service.call("GET", "/timeline", query=DAYS | {"rows": by}).text
        assert not any(f'"{name}"' in text for name in ("h1", "h2", "r1", "r2", "az1"))
        assert "absence" not in text


def test_occurrences_name_their_series(service: Service) -> None:
    body = {
        "name": "weekly",
        "start": "2026-12-01T08:00",
        "every": "weekly",
        "times": 3,
        "zone": "UTC",
        "duration": "PT4H",
        "amount": {"count": 1, "resources": {"VCPU": 8}},
    }
    answer = service.call("POST", "/series", {"series": body})
    assert answer.status_code == 201, answer.text
    made = rows(got(service))
    assert list(made) == ["weekly-1", "weekly-2", "weekly-3"]
    assert {bar["series"] for some in made.values() for bar in some} == {
        answer.json["series"]["id"]
    }


def test_pages_together_are_the_whole(service: Service) -> None:
    for n in range(1, 8):
        leased(service, f"l{n}", f"2026-12-0{n}T00:00:00Z", f"2026-12-0{n}T12:00:00Z")
    whole, found = got(service), []
    assert whole["timeline_links"] == []
    query: dict[str, object] = {"limit": 3}
    while True:
        page = got(service, **query)
        found += page["timeline"]["rows"]["id"]
        if not page["timeline_links"]:
            break
        (link,) = page["timeline_links"]
        assert link["rel"] == "next"
        query = dict(one.split("=") for one in link["href"].partition("?")[2].split("&"))
        query = {name: query[name] for name in ("limit", "marker")}
    assert found == whole["timeline"]["rows"]["id"]
    assert len(found) == 7


def test_it_is_not_sent_again_to_who_has_it(service: Service) -> None:
    leased(service, "one", "2026-12-02T00:00:00Z", "2026-12-04T00:00:00Z")
    first = service.call("GET", "/timeline", query=DAYS)
    known = {"If-None-Match": first.headers["etag"]}
    assert service.call("GET", "/timeline", query=DAYS, headers=known).status_code == 304
    leased(service, "two", "2026-12-02T00:00:00Z", "2026-12-04T00:00:00Z")
    assert service.call("GET", "/timeline", query=DAYS, headers=known).status_code == 200
    packed = service.call("GET", "/timeline", query=DAYS, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"rows": "room"}, 400, "invalid_description"),
        ({"from": "x"}, 400, "invalid_description"),
        ({"to": "2020-01-01T00:00:00Z"}, 400, "invalid_description"),
        ({"closed": "maybe"}, 400, "invalid_description"),
        ({"marker": "none"}, 404, "not_found"),
        ({"limit": "0"}, 400, "invalid_description"),
    ],
)
def test_what_cannot_be_understood_is_refused(
    service: Service, query: dict[str, str], status: int, code: str
) -> None:
    refused(service.call("GET", "/timeline", query=query), status, code)
    if query.keys() & {"from", "to"}:
        for path in ("/leases", "/offers"):
            both = {"from": "2026-01-01T00:00:00Z"} | query
            refused(service.call("GET", path, query=both), status, code)


def test_a_fleet_without_racks_has_no_such_rows(service: Service) -> None:
    body: dict[str, Any] = {"levels": {}, "domains": [], "attachments": []}
    put = service.call("PUT", "/topology/domains", {"topology": body}, caller=OPERATOR)
    assert put.status_code == 200
    answer = service.call("GET", "/timeline", caller=OPERATOR, query={"rows": "rack"})
    refused(answer, 400, "invalid_description")


def test_it_is_made_once_and_made_anew_when_something_has_changed(service: Service) -> None:
    def shown(caller: Any = TENANT) -> list[str]:
        return list(got(service, caller)["timeline"]["rows"]["label"])

    offered(service)
    assert shown() == ["maybe"]
    with all_under_way(service):
        assert shown() == ["maybe"], "it is kept: nothing has to be made"
        other = service.call("GET", "/timeline", query={**DAYS, "rows": "project"})
        assert other.status_code == 429, "this one is not"
    leased(service, "new", "2026-12-05T00:00:00Z", "2026-12-06T00:00:00Z")
    assert shown() == ["new", "maybe"]
    service.clock.pass_by(2 * HOUR)
    assert shown() == ["new"], "the offer has lapsed, although nothing was written"
    assert shown(OTHER) == []


@contextmanager
def all_under_way(service: Service) -> Iterator[None]:
    """While the tenant's project has as many expensive requests under way as it may."""
    admission = service.env.admission
    with ExitStack() as under_way:
        with suppress(TooManyRequests):
            while True:
                under_way.enter_context(admission.turn(TENANT))
        yield
