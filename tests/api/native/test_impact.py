"""What each verb says of the violations that it begins: in a dry run, in its answer, and then."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.api.native.shops import Shop
from tests.usecases.test_compliance_monitor import APART, HA, Watched, host_of, made
from tests.usecases.test_members import SERVER, running

from moorage.testing.service import OPERATOR, OTHER, TENANT, Service

PREFERRED = {**HA, "strength": {"preferred": 1}}
ANY = {"If-Match": "*"}


def near(service: Service) -> dict[str, Any]:
    """An ensemble `app` of one member, and one of the project that is to be in its rack."""
    found = made(service, count=1)
    close = {
        "name": "close",
        "type": "proximity",
        "between": [["db"], [f"ensemble:{found['ensemble']['id']}"]],
        "level": "rack",
    }
    made(service, close, count=1, name="near")
    return found


Asked = tuple[str, str, Any]
"""Method, path and body of a request."""


def removal(service: Service) -> Asked:
    return "DELETE", f"/ensembles/{made(service, HA)['ensemble']['id']}/members/db[2]", None


def smaller(service: Service) -> Asked:
    id_ = made(service, PREFERRED)["ensemble"]["id"]
    return "PATCH", f"/ensembles/{id_}", {"ensemble": {"members": [{"name": "db", "count": 2}]}}


def shrinking(service: Service) -> Asked:
    id_ = made(service, PREFERRED)["ensemble"]["id"]
    return "POST", f"/ensembles/{id_}/shrink", {"shrink": {"role": "db", "count": 1}}


def policy(service: Service) -> Asked:
    found = made(service, HA)
    snapshot = service.store.snapshot()
    host = snapshot.names[snapshot.row_of[host_of(service, found, "db[0]")]]
    ban = {"type": "ban", "members": ["db"], "domains": [host]}
    return "PUT", f"/ensembles/{found['ensemble']['id']}/policies/ha2", {"policy": ban}


def joining(service: Service) -> Asked:
    found = made(service, APART, count=1)
    snapshot = service.store.snapshot()
    running(service, snapshot.names[snapshot.row_of[host_of(service, found, "db[0]")]], vcpu=1)
    body = {"server_id": SERVER, "name": "db", "on_violation": "accept_and_report"}
    return "POST", f"/ensembles/{found['ensemble']['id']}/members", {"member": body}


def release(service: Service) -> Asked:
    return "DELETE", f"/decisions/{near(service)['decision']['id']}", None


def confirmation(service: Service) -> Asked:
    return "POST", f"/decisions/{near(service)['decision']['id']}/confirm", {}


def deletion(service: Service) -> Asked:
    return "DELETE", f"/ensembles/{near(service)['ensemble']['id']}", None


def service_down(service: Service) -> Asked:
    host = host_of(service, made(service, HA), "db[0]")
    body = {"service": {"status": "enabled", "state": "down", "forced_down": False}}
    return "PUT", f"/hosts/{host}/service", body


VERBS: dict[Callable[[Service], Asked], list[str]] = {
    removal: ["ha"],
    smaller: ["ha"],
    shrinking: ["ha"],
    policy: ["ha2"],
    joining: ["apart"],
    release: ["close"],
    confirmation: ["close"],
    deletion: ["close"],
    service_down: ["db[0]", "ha"],
}


@pytest.mark.parametrize("verb", VERBS, ids=lambda one: one.__name__)
def test_a_dry_run_and_the_answer_say_what_is_recorded_then(
    service: Service, verb: Callable[[Service], Asked]
) -> None:
    method, path, body = verb(service)
    watched = Watched(service)
    told = []
    for dry in ("true", "false"):
        assert service.call("GET", "/violations").json["violations"] == []
        answer = service.call(
            method, path, body, caller=OPERATOR, headers=ANY, query={"dry_run": dry}
        )
        assert answer.status_code in {200, 201}, answer.text
        told.append(answer.json["breaks"])
        if dry == "true":
            watched.look()
    assert told[0] == told[1]
    named = sorted(one["policy"] or one["members"][0] for one in told[1]["violations"])
    assert named == VERBS[verb]
    assert told[1]["found"] == len(named)
    watched.look()
    records = service.call("GET", "/violations").json["violations"]
    assert sorted(one["policy"] or one["members"][0] for one in records) == named
    keys = ("policy", "members", "amount")
    assert [[one[key] for key in keys] for one in told[1]["violations"]] == [
        [one[key] for key in keys]
        for one in sorted(records, key=lambda one: (one["policy"] is None, one["policy"]))
    ]


def test_what_was_broken_before_is_not_told_again(service: Service) -> None:
    path = f"/ensembles/{made(service, HA, count=4)['ensemble']['id']}"
    assert service.call("DELETE", f"{path}/members/db[3]").json["breaks"]["found"] == 0
    assert service.call("DELETE", f"{path}/members/db[2]").json["breaks"]["found"] == 1
    assert service.call("DELETE", f"{path}/members/db[1]").json["breaks"]["found"] == 0


def test_a_deletion_that_breaks_nothing_has_no_body(service: Service) -> None:
    found = made(service, HA)
    released = service.call("DELETE", f"/decisions/{found['decision']['id']}", headers=ANY)
    assert (released.status_code, released.text) == (204, "")
    deleted = service.call("DELETE", f"/ensembles/{found['ensemble']['id']}", headers=ANY)
    assert (deleted.status_code, deleted.text) == (204, "")


def test_each_project_reads_what_binds_its_members(service: Service) -> None:
    both = {
        "name": "both",
        "type": "survive",
        "members": ["web", "db"],
        "level": "host",
        "keep": 3,
    }
    shop = Shop(service, policies=[both])
    assert shop.accept().status_code == 200
    assert shop.decide().status_code == 201
    revoke = f"/shares/{shop.share}/revoke"
    for caller, members in ((TENANT, ["web[0]", "web[1]"]), (OTHER, None)):
        dry = service.call("POST", revoke, caller=caller, query={"dry_run": "true"})
        assert dry.status_code == 200, dry.text
        seen = [one["members"] for one in dry.json["breaks"]["violations"]]
        assert seen == ([members] if members else []), (caller, seen)


def test_a_description_that_changes_is_an_event(service: Service) -> None:
    id_ = made(service, HA, count=4)["ensemble"]["id"]
    path = f"/ensembles/{id_}"

    def told() -> list[dict[str, Any]]:
        events = service.call("GET", "/events", query={"type": "ensemble.changed"}).json["events"]
        assert all((one["subject"], one["user"]) == (id_, TENANT.user_id) for one in events)
        return [one["body"] for one in events]

    nothing: dict[str, object] = {
        "former_name": None,
        "counts": {},
        "roles": [],
        "policies": [],
        "metadata": [],
    }
    change = {"name": "shop", "members": [{"name": "db", "count": 5}], "metadata": {"a": "b"}}
    assert service.call("PATCH", path, {"ensemble": change}, headers=ANY).status_code == 200
    first = {"counts": {"db": [4, 5]}, "former_name": "app", "metadata": ["a"]}
    assert told() == [{"name": "shop", **nothing, **first}]
    # The same again changes nothing, and a decision alone describes nothing.
    assert service.call("PATCH", path, {"ensemble": change}, headers=ANY).status_code == 200
    again = service.call("POST", "/decisions", {"decision": {"ensemble_id": id_}})
    assert again.status_code == 201, again.text
    assert len(told()) == 1
    weaker = {"policies": [{"name": "ha", "keep": 1}]}
    flavor = {"members": [{"name": "db", "resources": {"VCPU": 2}}]}
    assert service.call("PATCH", path, {"ensemble": weaker}, headers=ANY).status_code == 200
    assert service.call("PATCH", path, {"ensemble": flavor}, headers=ANY).status_code == 200
    grown = {"extend": {"role": "db", "count": 1}}
    assert service.call("POST", f"{path}/extend", grown).status_code == 200
    less = {"shrink": {"role": "db", "count": 2}}
    assert service.call("POST", f"{path}/shrink", less).status_code == 200
    assert service.call("DELETE", f"{path}/policies/ha", headers=ANY).status_code == 204
    assert [
        {**nothing, "name": "shop", **more}
        for more in (
            {"policies": ["ha"]},
            {"roles": ["db"]},
            {"counts": {"db": [5, 6]}},
            {"counts": {"db": [6, 4]}},
            {"policies": ["ha"]},
        )
    ] == told()[1:]
