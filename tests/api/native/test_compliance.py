"""What each role reads of violations and of the compliance of an ensemble."""

from typing import Any

import pytest
from tests.api.native.conftest import refused
from tests.api.native.shops import STRANGER, Shop
from tests.usecases.test_compliance_monitor import APART, HA, Watched, host_of, made

from moorage.domain.topology import Topology
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service
from moorage.usecases.compliance.impact import newly_broken
from moorage.usecases.ports import Caller

ABSENT = "11111111-2222-4333-8444-555555555555"
HOSTS = {f"h{n}" for n in range(1, 10)}
RACKS = {"r1", "r2", "r3"}


@pytest.fixture
def watched(service: Service) -> Watched:
    return Watched(service)


def compliance(service: Service, id_: str, caller: Caller = TENANT, **query: object) -> Any:
    answer = service.call("GET", f"/ensembles/{id_}/compliance", caller=caller, query=query)
    assert answer.status_code == 200, answer.text
    return answer.json["compliance"]


def listed(service: Service, caller: Caller = TENANT, **query: object) -> list[Any]:
    answer = service.call("GET", "/violations", caller=caller, query=query)
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json["violations"]
    return found


def what(found: list[Any]) -> list[str]:
    return [one["policy"] or one["members"][0] for one in found]


def broken(watched: Watched, *policies: dict[str, Any]) -> dict[str, Any]:
    """An ensemble whose db[1] is on a disabled host."""
    found = made(watched.service, *policies)
    watched.look()
    watched.disable(host_of(watched.service, found, "db[1]"))
    return found


def test_a_violation_that_is_not_recorded_yet_has_no_beginning(watched: Watched) -> None:
    service = watched.service
    id_ = broken(watched, HA, APART)["ensemble"]["id"]
    now = compliance(service, id_)
    assert (now["compliant"], now["placed"], now["not_judged"]) == (False, 3, [])
    ha, apart = now["policies"]
    assert (ha["name"], ha["ok"], ha["since"], ha["because"]) == ("ha", False, None, None)
    assert (apart["name"], apart["ok"], apart["members"]) == ("apart", True, [])
    (member,) = now["out_of_service"]
    assert (member["member"], member["condition"], member["since"]) == ("db[1]", "at_risk", None)
    assert listed(service) == []
    watched.look()
    then = compliance(service, id_)
    assert then["policies"][0]["since"] == "2026-11-21T09:00:00Z"
    because = {"kind": "host", "user": "operator", "request_id": None, "by": None}
    assert then["policies"][0]["because"] == because
    assert then["out_of_service"][0]["since"] == "2026-11-21T09:00:00Z"
    assert "history" not in then


def test_tenants_read_no_names_and_operators_do(watched: Watched) -> None:
    service = watched.service
    found = broken(watched, {**APART, "max_per_domain": 1}, HA)
    watched.look()
    topology = service.store.snapshot().topology
    racks = {host: "r1" for _, host in topology.attachments}
    body = {
        "levels": {"location": ["zone", "rack"]},
        "domains": [
            {"name": "az1", "level": "zone"},
            {"name": "r1", "level": "rack", "parent": "az1"},
        ],
        "attachments": [{"host": host, "domain": rack} for host, rack in racks.items()],
    }
    assert (
        service.call("PUT", "/topology/domains", {"topology": body}, caller=OPERATOR).status_code
        == 200
    )
    watched.look()
    id_ = found["ensemble"]["id"]
    for caller in (TENANT, READER):
        told = [compliance(service, id_, caller), *listed(service, caller)]
        words = set(str(told).replace("'", " ").replace(",", " ").split())
        assert not words & (HOSTS | RACKS), told
    (apart,) = listed(service, type="anti-affinity")
    assert apart["text"] == "3 x db do not meet policy apart"
    ha = next(one for one in listed(service) if one["policy"] == "ha")
    assert ha["text"] == "losing one rack leaves 0 of 3", "it names none"
    because = {"kind": "topology", "user": "operator", "request_id": None, "by": None}
    assert apart["because"] == because
    operator = compliance(service, id_, OPERATOR)
    assert "r1" in operator["policies"][0]["text"]
    (host,) = operator["out_of_service"][0]["because"]["hosts"]
    assert host in HOSTS


def test_a_listing_is_filtered(watched: Watched) -> None:
    service = watched.service
    found = broken(watched, HA)
    id_ = found["ensemble"]["id"]
    watched.look()
    assert what(listed(service)) == ["db[1]", "ha"]
    assert what(listed(service, type="at_risk")) == ["db[1]"]
    assert what(listed(service, type="survive,lost")) == ["ha"]
    assert what(listed(service, type="of-a-plugin-that-is-gone")) == []
    assert what(listed(service, required="false")) == []
    assert what(listed(service, ensemble=id_, state="all")) == ["db[1]", "ha"]
    assert what(listed(service, state="ended")) == []
    first = service.call("GET", "/violations", query={"limit": 1}).json
    assert what(first["violations"]) == ["db[1]"]
    marker = first["violations"][0]["id"]
    assert what(listed(service, marker=marker)) == ["ha"]
    watched.disable(host_of(service, found, "db[1]"), there=False)
    watched.look()
    assert listed(service) == []
    ended = listed(service, state="ended", since="2026-11-21T08:00:00Z")
    assert what(ended) == ["db[1]", "ha"]
    assert ended[0]["until"] == "2026-11-21T09:00:00Z"
    assert listed(service, state="ended", since="2026-11-21T10:00:00Z") == []
    now = compliance(service, id_, history="true", limit=1)
    assert now["compliant"]
    assert what(now["history"]) == ["db[1]"]
    assert "marker=" in now["history_links"][0]["href"]


def test_operators_ask_by_host(watched: Watched) -> None:
    service = watched.service
    found = broken(watched, HA)
    watched.look()
    names = service.store.snapshot()
    there = names.names[names.row_of[host_of(service, found, "db[1]")]]
    other = names.names[names.row_of[host_of(service, found, "db[0]")]]
    empty = min(HOSTS - {there, other, names.names[names.row_of[host_of(service, found, "db[2]")]]})
    ask = {"all_projects": "true"}
    assert what(listed(service, OPERATOR, host=there, **ask)) == ["db[1]", "ha"]
    assert what(listed(service, OPERATOR, host=other, **ask)) == ["ha"]
    assert listed(service, OPERATOR, host=empty, **ask) == []
    assert what(listed(service, OPERATOR, host=there, project_id="project-a")) == ["db[1]", "ha"]
    assert listed(service, OPERATOR, host=there, project_id="project-b") == []


def test_others_see_nothing(watched: Watched) -> None:
    service = watched.service
    id_ = broken(watched, HA)["ensemble"]["id"]
    watched.look()
    assert listed(service, OTHER) == []
    path = f"/ensembles/{id_}/compliance"
    refused(service.call("GET", path, caller=OTHER), 404, "not_found")
    refused(
        service.call("GET", "/violations", caller=OTHER, query={"ensemble": id_}), 404, "not_found"
    )
    own = listed(service)[0]["id"]
    refused(
        service.call("GET", "/violations", caller=OTHER, query={"marker": own}), 404, "not_found"
    )


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"state": "broken"}, 400, "invalid_description"),
        ({"type": "anti afinity"}, 400, "invalid_description"),
        ({"required": "perhaps"}, 400, "invalid_description"),
        ({"since": "yesterday"}, 400, "invalid_description"),
        ({"colour": "red"}, 400, "invalid_description"),
        ({"ensemble": ABSENT}, 404, "not_found"),
        ({"marker": ABSENT}, 404, "not_found"),
        ({"host": "h1"}, 403, "forbidden"),
        ({"all_projects": "true"}, 403, "forbidden"),
        ({"project_id": "project-b"}, 403, "forbidden"),
    ],
)
def test_what_cannot_be_listed_is_refused(
    service: Service, query: dict[str, str], status: int, code: str
) -> None:
    refused(service.call("GET", "/violations", query=query), status, code)


def test_there_must_be_such_a_host_and_ensemble(service: Service) -> None:
    query = {"host": "h99"}
    refused(service.call("GET", "/violations", caller=OPERATOR, query=query), 404, "not_found")
    refused(service.call("GET", f"/ensembles/{ABSENT}/compliance"), 404, "not_found")


def test_a_listing_of_ensembles_counts_what_is_broken(watched: Watched) -> None:
    service = watched.service
    broken(watched, HA)
    watched.look()
    body = {"name": "quiet", "members": [{"name": "web", "count": 1, "resources": {"VCPU": 1}}]}
    assert service.call("POST", "/ensembles", {"ensemble": body}).status_code == 201
    found = service.call("GET", "/ensembles").json["ensembles"]
    assert {one["name"]: one["broken"] for one in found} == {"app": 2, "quiet": 0}


def test_each_project_sees_its_own_members(watched: Watched) -> None:
    service = watched.service
    shop = Shop(service)
    assert shop.accept().status_code == 200
    assert shop.decide().status_code == 201
    watched.look()
    watched.disable(host_of(service, {"ensemble": {"id": shop.id}}, "db[0]"))
    web = host_of(service, {"ensemble": {"id": shop.id}}, "web[0]")
    watched.disable(web)
    watched.look()
    everyone = [one["member"] for one in compliance(service, shop.id, OPERATOR)["out_of_service"]]
    assert {"db[0]", "web[0]"} <= set(everyone)
    owner, guest = (compliance(service, shop.id, one) for one in (TENANT, OTHER))
    assert all(one["member"].startswith("web") for one in owner["out_of_service"])
    assert all(one["member"].startswith("db") for one in guest["out_of_service"])
    assert [one["name"] for one in guest["policies"]] == ["db-apart", "pair"]
    for one in guest["policies"]:
        assert all(name.startswith("db") for name in one["members"])
    assert all(one["members"][0].startswith("db") for one in listed(service, OTHER))
    about = listed(service, OTHER, ensemble=shop.id)
    assert all(name.startswith("db") for one in about for name in one["members"])
    path = f"/ensembles/{shop.id}/compliance"
    refused(service.call("GET", path, caller=STRANGER), 404, "not_found")


def test_an_ensemble_without_places_complies(service: Service) -> None:
    body = {
        "name": "idle",
        "members": [{"name": "db", "count": 3, "resources": {"VCPU": 1}}],
        "policies": [HA],
    }
    made_ = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    now = compliance(service, made_["id"])
    assert (now["compliant"], now["placed"]) == (True, 0)


def one_rack(service: Service) -> dict[str, Any]:
    """A topology in which all hosts are in one rack."""
    hosts = [host for _, host in service.store.snapshot().topology.attachments]
    return {
        "levels": {"location": ["zone", "rack"]},
        "domains": [
            {"name": "az1", "level": "zone"},
            {"name": "r1", "level": "rack", "parent": "az1"},
        ],
        "attachments": [{"host": host, "domain": "r1"} for host in hosts],
    }


@pytest.mark.parametrize("dry", ["true", "false"])
def test_a_topology_says_what_it_breaks(service: Service, dry: str) -> None:
    made(service, HA, APART)
    body, query = {"topology": one_rack(service)}, {"dry_run": dry}
    answer = service.call("PUT", "/topology/domains", body, caller=OPERATOR, query=query)
    assert answer.status_code == 200, answer.text
    breaks = answer.json["breaks"]
    assert (breaks["found"], breaks["judged"], breaks["ensembles"]) == (2, 1, 1)
    assert sorted(one["policy"] for one in breaks["violations"]) == ["apart", "ha"]
    racks = {one["name"] for one in answer.json["topology"]["domains"] if one["level"] == "rack"}
    assert racks == (RACKS if dry == "true" else {"r1"})
    again = service.call("PUT", "/topology/domains", body, caller=OPERATOR, query=query)
    assert again.json["breaks"]["found"] == (2 if dry == "true" else 0)


def test_what_is_found_is_counted_where_it_is_not_named(service: Service) -> None:
    for number in range(3):
        made(service, APART, name=f"app-{number}")
    before = service.store.snapshot()
    flat = Topology(
        before.topology.levels,
        before.topology.domains,
        dict.fromkeys(before.topology.attachments, "r1"),
    )
    after = before.with_states(topology=flat)
    found = newly_broken(service.env, before, after, seconds=0)
    assert (found.found, len(found.violations), found.judged, found.ensembles) == (3, 3, 3, 3)
    assert newly_broken(service.env, after, before).found == 0


@pytest.mark.parametrize("dry", ["true", "false"])
def test_closing_a_host_says_what_begins_by_it(service: Service, dry: str) -> None:
    found = made(service, HA)
    made(service, count=1, name="other")
    path = f"/hosts/{host_of(service, found, 'db[1]')}/close"
    body, query = {"close": {"reason": "memory"}}, {"dry_run": dry}
    answer = service.call("POST", path, body, caller=OPERATOR, query=query)
    assert answer.status_code == 200, answer.text
    begun = [one for one in answer.json["breaks"]["violations"] if one["ensemble"] == "app"]
    assert [(one["policy"], one["type"]) for one in begun] == [("ha", "survive"), (None, "at_risk")]
    again = service.call("POST", path, body, caller=OPERATOR, query=query).json["breaks"]["found"]
    assert again == (answer.json["breaks"]["found"] if dry == "true" else 0)


def test_a_new_topology_is_an_event_for_operators(service: Service) -> None:
    body = {"topology": one_rack(service)}
    for query in ({"dry_run": "true"}, {}):
        answer = service.call("PUT", "/topology/domains", body, caller=OPERATOR, query=query)
        assert answer.status_code == 200, answer.text
    wanted = {"type": "topology.changed"}
    (event,) = service.call("GET", "/events", caller=OPERATOR, query=wanted).json["events"]
    assert event["body"]["hosts"] == len(HOSTS)
    assert event["user"] == OPERATOR.user_id
    assert service.call("GET", "/events", query=wanted).json["events"] == []
