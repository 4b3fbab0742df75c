"""What each project sees of an ensemble that they share, route by route."""

import json
import re
from typing import Any, TypeAlias

import pytest
from tests.api.native.conftest import refused
from tests.api.native.shops import APART, SIZE, STRANGER, Shop, accepted, offered, placed

from moorage.api.native.routes import ROUTES
from moorage.domain.errors import NotFound
from moorage.domain.period import HOUR
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.claims.outcome import expire
from moorage.usecases.ensembles.server_groups import show_server_group
from moorage.usecases.ports import Caller

__all__ = ["accepted", "offered", "placed"]
RouteCall: TypeAlias = tuple[str, str, Any]
TIMES = {"name": "l", "start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}


def test_the_other_project_sees_its_own_and_no_more(placed: Shop) -> None:
    server = placed.boot("web[0]", TENANT)
    texts = [
        json.dumps(placed.seen(OTHER)),
        placed.service.call("GET", f"/ensembles/{placed.id}/members", caller=OTHER).text,
        placed.service.call("GET", f"/decisions/{placed.decision()}", caller=OTHER).text,
    ]
    for text in texts:
        assert "secret" not in text
        assert server not in text
    seen = placed.seen(OTHER)
    web, db = seen["members"]
    assert (web["name"], web["count"], web["resources"], web["flavor"]) == ("web", 2, {}, None)
    assert (db["resources"], db["project_id"]) == (SIZE, "project-b")
    assert [one["name"] for one in seen["policies"]] == ["db-apart", "pair"]
    assert [one["name"] for one in seen["decision"]["policies"]] == ["db-apart", "pair"]
    assert (seen["metadata"], seen["user_id"]) == ({}, "")
    mine = placed.members(TENANT)
    assert {name: one["domains"] for name, one in placed.members(OTHER).items()} == {
        name: one["domains"] for name, one in mine.items()
    }


def test_the_owner_sees_where_others_stand_but_not_their_servers(placed: Shop) -> None:
    server = placed.boot("db[0]")
    claim = placed.claim("db[1]").json["claim"]["id"]
    for path in ("", "/members"):
        text = placed.service.call("GET", f"/ensembles/{placed.id}{path}").text
        assert server not in text
        assert claim not in text
    members = placed.members(TENANT)
    assert (members["db[0]"]["status"], members["db[0]"]["server_id"]) == ("active", None)
    assert members["db[0]"]["domains"]
    assert placed.members(OTHER)["db[0]"]["server_id"] == server
    assert placed.members(OPERATOR)["db[0]"]["server_id"] == server


ENSEMBLE_ROUTES: list[RouteCall] = [
    ("GET", "/ensembles/{ensemble}", None),
    ("GET", "/ensembles/{ensemble}/compliance", None),
    ("GET", "/ensembles/{ensemble}/members", None),
    ("GET", "/ensembles/{ensemble}/members/db[0]", None),
    ("GET", "/ensembles/{ensemble}/members/web[0]", None),
    ("GET", "/ensembles/{ensemble}/policies", None),
    ("GET", "/ensembles/{ensemble}/policies/db-apart", None),
    ("GET", "/decisions?ensemble_id={ensemble}", None),
    ("GET", "/decisions/{decision}", None),
    ("GET", "/decisions/{decision}/claims", None),
    (
        *("POST", "/decisions/{decision}/claims"),
        {"claim": {"member": "db[0]", "server": {"resources": SIZE}}},
    ),
]
"""What a project that takes part may do."""
OWNERS_ROUTES: list[RouteCall] = [
    ("PATCH", "/ensembles/{ensemble}", {"ensemble": {"metadata": {}}}),
    ("DELETE", "/ensembles/{ensemble}", None),
    ("POST", "/ensembles/{ensemble}/extend", {"extend": {"role": "db", "count": 1}}),
    ("POST", "/ensembles/{ensemble}/shrink", {"shrink": {"role": "db", "count": 1}}),
    ("PUT", "/ensembles/{ensemble}/headroom", {"headroom": {"role": "db", "count": 1}}),
    ("GET", "/ensembles/{ensemble}/survivability", None),
    ("POST", "/ensembles/{ensemble}/members", {"member": {"role": {"name": "db", "count": 1}}}),
    ("DELETE", "/ensembles/{ensemble}/members/db[0]", None),
    ("PUT", "/ensembles/{ensemble}/policies/db-apart", {"policy": APART}),
    ("DELETE", "/ensembles/{ensemble}/policies/db-apart", None),
    ("POST", "/decisions", {"decision": {"ensemble_id": "{ensemble}"}}),
    ("GET", "/decisions/{decision}/record", None),
    ("PATCH", "/decisions/{decision}", {"decision": {"hold": "PT20M"}}),
    ("DELETE", "/decisions/{decision}", None),
    ("POST", "/decisions/{decision}/confirm", None),
    (
        *("POST", "/decisions/{decision}/claims"),
        {"claim": {"member": "web[0]", "server": {"resources": SIZE}}},
    ),
    ("POST", "/leases", {"lease": {"ensemble_id": "{ensemble}", **TIMES}}),
    ("POST", "/offers", {"offer_request": {"ensemble_id": "{ensemble}", "duration": "PT1H"}}),
    ("POST", "/capacity/fit", {"fit": {"ensemble_id": "{ensemble}"}}),
    ("POST", "/capacity/fit", {"fit": {"ensemble_id": "{ensemble}", "role": "db"}}),
]
"""What only the project of the ensemble, or of the member, may do: a project that takes part knows
of it and is told so."""
HIDDEN_ROUTES: list[RouteCall] = [
    ("GET", "/ensembles/{ensemble}/policies/secret-policy", None),
    ("GET", "/decisions/{decision}/explanation", None),
    ("GET", "/explanations/{decision}", None),
    ("GET", "/stacks/{ensemble}", None),
    ("DELETE", "/stacks/{ensemble}", None),
]
"""What no other project may know of."""
SHARE_ROUTES: list[RouteCall] = [("GET", "/shares/{share}", None)]


def answered(shop: Shop, share: str, decision: str, route: RouteCall, who: Caller) -> int:
    method, path, body = route
    names = {"ensemble": shop.id, "share": share, "decision": decision}
    filled = path.format(**names)
    sent = None if body is None else json.loads(json.dumps(body).replace("{ensemble}", shop.id))
    headers = {"If-Match": "*"}
    answer = shop.service.call(method, filled, sent, caller=who, headers=headers)
    assert answer.status_code == 404 or "secret" not in answer.text
    return answer.status_code


def test_no_route_of_an_ensemble_or_decision_is_left_out() -> None:
    of_one = re.compile(r"/(?:ensembles|decisions)/\{id\}")
    known = [one for one in ROUTES if of_one.match(one.path)]
    listed = {
        (method, path.replace("{ensemble}", "{id}").replace("{decision}", "{id}"))
        for method, path, _ in (*ENSEMBLE_ROUTES, *OWNERS_ROUTES, *HIDDEN_ROUTES)
    }
    named = re.compile(r"(members|policies)/\{name(:path)?\}")
    for one in known:
        form = re.escape(named.sub(r"\1/NAME", one.path)).replace("NAME", "[^/]+")
        assert any(method == one.method and re.fullmatch(form, path) for method, path in listed), (
            one.method,
            one.path,
        )


@pytest.mark.parametrize("state", ["joined", "offered", "revoked", "stranger"])
def test_every_route_is_scoped(placed: Shop, state: str) -> None:
    decision = placed.decision()
    who = STRANGER if state == "stranger" else OTHER
    if state == "offered":
        assert placed.revoke(TENANT).status_code == 200
        assert placed.change(members=[{"name": "db", "count": 1}]).status_code == 200
    elif state == "revoked":
        assert placed.revoke(TENANT).status_code == 200
    share = placed.share
    for route in ENSEMBLE_ROUTES:
        status = answered(placed, share, decision, route, who)
        assert (status < 300) == (state == "joined"), (route, status)
        assert state == "joined" or status == 404, (route, status)
    for route in OWNERS_ROUTES:
        status = answered(placed, share, decision, route, who)
        assert status == (403 if state == "joined" else 404), (route, status)
    for route in HIDDEN_ROUTES:
        assert answered(placed, share, decision, route, who) == 404, route
    for route in SHARE_ROUTES:
        assert answered(placed, share, decision, route, who) == (200, 404)[state == "stranger"]
    listed = placed.service.call("GET", "/shares", caller=who).json["shares"]
    assert [one["status"] for one in listed] == {
        "joined": ["accepted"],
        "stranger": [],
    }.get(state, [state])
    assert placed.service.call("GET", "/ensembles", caller=who).json["ensembles"] == []
    read = placed.service.call("GET", "/decisions", caller=who).json["decisions"]
    assert [one["id"] for one in read] == ([decision] if state == "joined" else [])


def test_decisions_about_shared_ensembles_are_listed_in_pages(service: Service) -> None:
    """Newest first, beside the project's own; without those about what it does not take part in."""
    own = {"members": [{"name": "a", "resources": SIZE}], "decide": {}}
    expected = []
    for number in range(2):
        shop = Shop(service, name=f"shop-{number}")
        assert shop.accept().status_code == 200
        expected.append(shop.decide().json["decision"]["id"])
        left = Shop(service, name=f"left-{number}")
        assert left.accept().status_code == 200
        assert left.decide().status_code == 201
        assert left.revoke().status_code == 200
        body = {"ensemble": {"name": f"own-{number}", **own}}
        made = service.call("POST", "/ensembles", body, caller=OTHER)
        assert made.status_code == 201, made.text
        expected.append(made.json["decision"]["id"])
    found: list[str] = []
    while True:
        query = {"limit": "1", **({"marker": found[-1]} if found else {})}
        page = service.call("GET", "/decisions", caller=OTHER, query=query).json["decisions"]
        if not page:
            break
        assert "secret" not in json.dumps(page)
        found += [one["id"] for one in page]
    assert found == expected[::-1]
    assert len(service.call("GET", "/decisions").json["decisions"]) == 4


def test_only_operators_list_every_share(placed: Shop) -> None:
    query = {"all_projects": "true"}
    seen = placed.service.call("GET", "/shares", caller=OPERATOR, query=query)
    assert len(seen.json["shares"]) == 1
    refused(placed.service.call("GET", "/shares", query=query), 403, "forbidden")


def test_shares_are_paged(service: Service) -> None:
    for number in range(3):
        Shop(service, name=f"shop-{number}")
    first = service.call("GET", "/shares", caller=OTHER, query={"limit": 2}).json
    marker = first["shares"][-1]["id"]
    rest = service.call("GET", "/shares", caller=OTHER, query={"marker": marker}).json
    names = [one["ensemble"] for one in (*first["shares"], *rest["shares"])]
    assert names == ["shop-0", "shop-1", "shop-2"]
    answer = service.call("GET", "/shares", caller=STRANGER, query={"marker": marker})
    refused(answer, 404, "not_found")


def test_the_server_group_of_an_ensemble_has_the_callers_servers(service: Service) -> None:
    policies = [{"name": "apart", "type": "anti-affinity", "members": ["*"], "level": "host"}]
    shop = Shop(service, policies=policies)
    assert shop.accept().status_code == 200
    assert shop.decide().status_code == 201
    own, theirs = shop.boot("web[0]", TENANT), shop.boot("db[0]")
    assert show_server_group(service.env, TENANT, shop.id).servers == (own,)
    assert set(show_server_group(service.env, OPERATOR, shop.id).servers) == {own, theirs}
    with pytest.raises(NotFound):
        show_server_group(service.env, OTHER, shop.id)


def test_each_project_is_told_of_a_decision_about_its_own_members(placed: Shop) -> None:
    service, decision = placed.service, placed.decision()
    (held,) = placed.events(OTHER, "decision.held")
    assert (held["ensemble"], held["members"], held["status"]) == (placed.id, 2, "held")
    assert [one["members"] for one in placed.events(TENANT, "decision.held")] == [4]
    assert not placed.events(STRANGER, "decision.held")
    release = service.call("DELETE", f"/decisions/{decision}", headers={"If-Match": "*"})
    assert release.status_code == 204
    assert [one["members"] for one in placed.events(OTHER, "decision.released")] == [2]
    again = placed.decide().json["decision"]["id"]
    service.clock.pass_by(HOUR)
    expire(service.env, service.store.decision(again))
    assert [one["members"] for one in placed.events(OTHER, "decision.expired")] == [2]
    query = {"type": "decision.*"}
    told = service.call("GET", "/events", caller=OTHER, query=query).json["events"]
    assert {one["subject"] for one in told} == {decision, again}
    assert "secret" not in json.dumps(told)


def test_a_project_that_has_left_is_told_of_no_decision(placed: Shop) -> None:
    assert placed.revoke().status_code == 200
    path = f"/decisions/{placed.decision()}"
    release = placed.service.call("DELETE", path, headers={"If-Match": "*"})
    assert release.status_code == 204
    assert placed.events(TENANT, "decision.released")
    assert not placed.events(OTHER, "decision.released")
