"""Route by role, and project by project."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient

from moorage.api.native import create_app
from moorage.api.native.access import Access
from moorage.api.native.routes import FURTHER, ROUTES, simulation
from moorage.api.native.rules import KNOWN, access_by, by_default
from moorage.api.placement import rules as placement_rules
from moorage.domain.errors import InvalidDescription
from moorage.http.access_rules import RulesConfig
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, HandClock, Service
from moorage.usecases.ports import Caller

ALL = (*ROUTES, *simulation(HandClock()))
SERVICE = Caller("agent", "service", frozenset({"service"}))
MANAGER = Caller("max", "project-a", frozenset({"manager"}))
STRANGER = Caller("eve", "project-a", frozenset({"unrelated"}))
IN_SYSTEM = Caller("root", "", frozenset({"admin", "member"}), project_scoped=False)

MAY = {
    Access.ANYONE: {IN_SYSTEM, OPERATOR, SERVICE, MANAGER, TENANT, READER, STRANGER},
    Access.READER: {OPERATOR, SERVICE, MANAGER, TENANT, READER},
    Access.MEMBER: {OPERATOR, SERVICE, MANAGER, TENANT},
    Access.OPERATOR: {OPERATOR, SERVICE},
}
GUARDED = tuple(route for route in ALL if route.access is not Access.ANYONE)
ABSENT = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize("route", ALL, ids=lambda route: f"{route.method}{route.path}")
def test_roles_open_exactly_their_routes(service: Service, route: Any) -> None:
    path = re.sub(r"\{\w+(:\w+)?\}", ABSENT, route.path)
    for caller in MAY[Access.ANYONE]:
        # An empty body passes no struct: whoever may come in gets 400 or 404, nobody else does.
        answer = service.call(route.method, path, {}, caller=caller, headers={"If-Match": "*"})
        forbidden = answer.status_code == 403
        assert forbidden == (caller not in MAY[route.access]), (caller.roles, answer.text)
        assert answer.status_code != 500
        if forbidden and caller.project_scoped:
            has = ", ".join(sorted(caller.roles)) or "none"
            said = f"your roles ({has}) do not meet the rule {route.rule}: by default it takes "
            assert said in answer.json["errors"][0]["detail"]


def test_what_a_route_needs_is_what_the_design_says() -> None:
    operators = {(one.method, one.path) for one in ALL if one.access is Access.OPERATOR}
    assert operators == {
        ("POST", "/flavors"),
        ("POST", "/flavors/load"),
        ("DELETE", "/flavors/{name}"),
        ("PUT", "/topology/domains"),
        ("GET", "/fleet"),
        ("GET", "/fleet/map"),
        ("POST", "/fleet"),
        ("GET", "/hosts"),
        ("GET", "/hosts/{name}"),
        ("POST", "/hosts/{name}/close"),
        ("POST", "/hosts/{name}/open"),
        ("PUT", "/hosts/{name}/service"),
        ("GET", "/hosts/{name}/moves/{server_id}"),
        ("GET", "/plans"),
        ("POST", "/plans"),
        ("GET", "/plans/{id}"),
        ("POST", "/plans/{id}/apply"),
        ("POST", "/plans/{id}/pause"),
        ("POST", "/plans/{id}/cancel"),
        ("DELETE", "/plans/{id}"),
        ("GET", "/bookings"),
        ("POST", "/simulations"),
        ("GET", "/survivability"),
        ("GET", "/capacity/planned"),
        ("POST", "/capacity/planned"),
        ("GET", "/capacity/planned/{id}"),
        ("DELETE", "/capacity/planned/{id}"),
        ("PATCH", "/quotas/{project_id}"),
        ("DELETE", "/quotas/{project_id}"),
        ("GET", "/request-mix"),
        ("PUT", "/request-mix"),
        ("DELETE", "/request-mix"),
        ("PUT", "/simulation/clock"),
    }
    asks = {"/capacity/fit"}  # with a body, and writes nothing
    writes = [one for one in ALL if one.method != "GET" and one.path not in asks]
    assert all(one.access in {Access.MEMBER, Access.OPERATOR} for one in writes)
    assert {one.path for one in ALL if one.access is Access.ANYONE} == {"/", "/openapi.json"}


def test_every_route_has_a_rule_of_its_own_and_every_rule_a_route() -> None:
    names = [route.rule for route in GUARDED]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"moorage:[a-z_]+:[a-z_]+", name) for name in names), names
    assert {name for name in KNOWN if ":" in name} == {*names, *FURTHER}
    assert {route.rule for route in ALL if route.access is Access.ANYONE} == {""}


def named(caller: Caller) -> str:
    """The same in every process, unlike the order of a set."""
    return f"{caller.user_id}-{'-'.join(sorted(caller.roles))}-{caller.project_scoped}"


CALLERS = sorted(MAY[Access.ANYONE], key=named)


@pytest.mark.parametrize("caller", CALLERS, ids=named)
def test_the_quick_defaults_say_what_oslo_policy_says(caller: Caller, tmp_path: Path) -> None:
    # The same checks in other words make oslo.policy judge every rule.
    file = tmp_path / "policy.yaml"
    file.write_text("".join(f'"{name}": "({check})"\n' for name, check in KNOWN.items()))
    judge = access_by(RulesConfig(str(file)), {})
    for route in GUARDED:
        assert judge(route.rule, caller, "p") == by_default(route.rule, caller, "p"), route.rule


def guarded_by(service: Service, text: str, path: Path) -> TestClient:
    path.write_text(text)
    access = access_by(RulesConfig(str(path)), {})
    return TestClient(create_app(service.env, clock=service.clock, access=access))


def status(client: TestClient, route: Any, caller: Caller) -> int:
    path = re.sub(r"\{\w+(:\w+)?\}", ABSENT, route.path)
    answer = client.simulate_request(
        route.method,
        path,
        root_path="/v1",
        body="{}",
        headers={"If-Match": "*"},
        extras={"moorage.request_id": "req-x", "moorage.caller": caller},
    )
    assert answer.status_code != 500
    return answer.status_code


@pytest.mark.parametrize(("verbs", "seen"), [(("show", "update"), ["z", "r"]), (("show",), ["z"])])
def test_whoever_may_replace_the_topology_sees_all_of_it(
    service: Service, tmp_path: Path, verbs: tuple[str, ...], seen: list[str]
) -> None:
    """Else a role of a policy file would write back the trees without their hosts."""
    levels = {"location": ["zone", "rack"]}
    domains = [{"name": "z", "level": "zone"}, {"name": "r", "level": "rack", "parent": "z"}]
    body = {"topology": {"levels": levels, "domains": domains, "attachments": []}}
    made = service.call("PUT", "/topology/domains", body, caller=OPERATOR)
    assert made.status_code == 200, made.text
    text = "".join(f'"moorage:topology:{verb}": "role:unrelated"\n' for verb in verbs)
    found = guarded_by(service, text, tmp_path / "policy.yaml").simulate_get(
        "/topology/domains",
        root_path="/v1",
        extras={"moorage.request_id": "req-x", "moorage.caller": STRANGER},
    )
    assert [one["name"] for one in found.json["topology"]["domains"]] == seen


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: route.rule)
def test_a_policy_file_opens_and_closes_each_route(
    service: Service, route: Any, tmp_path: Path
) -> None:
    own = guarded_by(service, f'"{route.rule}": "role:unrelated"\n', tmp_path / "policy.yaml")
    assert status(own, route, STRANGER) != 403, "the file's role may, down to the use case"
    for caller in (OPERATOR, SERVICE, MANAGER, TENANT, READER, IN_SYSTEM):
        assert status(own, route, caller) == 403
    for other in GUARDED:
        if other.rule != route.rule:
            assert status(own, other, STRANGER) == 403, other.rule
            break


def test_the_rule_of_a_route_makes_nobody_an_operator_elsewhere(
    service: Service, held: dict[str, Any], tmp_path: Path
) -> None:
    text = "".join(f'"{route.rule}": "@"\n' for route in GUARDED)
    open_to_all = guarded_by(service, text, tmp_path / "policy.yaml")
    ensemble = next(one for one in GUARDED if one.rule == "moorage:ensembles:show")
    path = ensemble.path.replace("{id}", held["ensemble"]["id"])
    answer = open_to_all.simulate_get(
        path, root_path="/v1", extras={"moorage.request_id": "r", "moorage.caller": OTHER}
    )
    assert answer.status_code == 404, "another project's stay another project's"


def test_a_file_may_speak_of_both_apis_and_mistakes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        '"placement:usages": "rule:moorage_reader"\n"moorage:fleet:show": "rule:admin_api"\n'
    )
    others = placement_rules.defaults(new=False)
    ours = access_by(RulesConfig(str(file)), others)
    theirs = placement_rules.access_by(RulesConfig(str(file)), KNOWN)
    assert (
        ours("moorage:fleet:show", SERVICE, "p"),
        ours("moorage:fleet:show", OPERATOR, "p"),
    ) == (
        False,
        True,
    )
    assert theirs("placement:usages", READER, "q")
    file.write_text('"moorage:fleet:shwo": "@"\n')
    with pytest.raises(InvalidDescription, match="there is no rule moorage:fleet:shwo"):
        access_by(RulesConfig(str(file)), others)
    with pytest.raises(InvalidDescription, match="there is no rule moorage:fleet:shwo"):
        placement_rules.access_by(RulesConfig(str(file)), KNOWN)
    file.write_text('"morage:fleet:show": "@"\n')
    with pytest.raises(InvalidDescription, match="there is no rule morage:fleet:show"):
        access_by(RulesConfig(str(file)), others)


def test_a_file_may_have_aliases_of_any_name_that_it_refers_to(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text('"site:crew": "role:crew"\n"moorage:fleet:show": "rule:site:crew"\n')
    crew = replace(OPERATOR, roles=frozenset({"crew"}))
    access = access_by(RulesConfig(str(file)), placement_rules.defaults(new=False))
    assert access("moorage:fleet:show", crew, None)
    assert not access("moorage:fleet:show", OPERATOR, None)


def leased(service: Service) -> str:
    """A small lease of the tenant for the next day."""
    amount = {"flavor": "m1.small", "count": 1}
    when = {"start": "2026-11-22T08:00:00Z", "duration": "P1D"}
    answer = service.call("POST", "/leases", {"lease": {"name": "a", "amount": amount, **when}})
    assert answer.status_code == 201, answer.text
    found: str = answer.json["lease"]["id"]
    return found


def others(held: dict[str, Any], claim: str, lease: str) -> list[tuple[str, str, Any]]:
    ensemble, decision = held["ensemble"]["id"], held["decision"]["id"]
    mine = f"/ensembles/{ensemble}"
    return [
        ("GET", mine, None),
        ("PATCH", mine, {"ensemble": {"name": "stolen"}}),
        ("DELETE", mine, None),
        ("GET", f"{mine}/survivability", None),
        ("GET", f"{mine}/members", None),
        ("GET", f"{mine}/members/db[0]", None),
        ("POST", f"{mine}/members", {"member": {"role": {"name": "db", "count": 1}}}),
        ("DELETE", f"{mine}/members/db[0]", None),
        ("GET", f"{mine}/policies", None),
        ("GET", f"{mine}/policies/db-ha", None),
        (
            "PUT",
            f"{mine}/policies/db-ha",
            {"policy": {"type": "survive", "members": ["db"], "keep": 1}},
        ),
        ("DELETE", f"{mine}/policies/db-ha", None),
        ("POST", "/decisions", {"decision": {"ensemble_id": ensemble}}),
        ("GET", f"/decisions?ensemble_id={ensemble}", None),
        ("GET", f"/decisions/{decision}", None),
        ("PATCH", f"/decisions/{decision}", {"decision": {"hold": "PT1M"}}),
        ("DELETE", f"/decisions/{decision}", None),
        ("POST", f"/decisions/{decision}/confirm", {}),
        ("GET", f"/decisions/{decision}/claims", None),
        (
            "POST",
            f"/decisions/{decision}/claims",
            {"claim": {"member": "db[1]", "server": {"flavorRef": "m1.xlarge"}}},
        ),
        ("GET", f"/leases/{lease}", None),
        ("GET", f"/leases/{lease}/events", None),
        ("PATCH", f"/leases/{lease}", {"lease": {"name": "stolen"}}),
        ("DELETE", f"/leases/{lease}", None),
        (
            "POST",
            "/leases",
            {"lease": {"name": "a", "ensemble_id": ensemble, "duration": "P1D"}},
        ),
        ("GET", f"/leases?marker={lease}", None),
        ("GET", f"/claims/{claim}", None),
        ("PATCH", f"/claims/{claim}", {"claim": {"status": "failed"}}),
    ]


def test_another_projects_things_do_not_exist(service: Service, held: dict[str, Any]) -> None:
    claim = service.call(
        "POST",
        f"/decisions/{held['decision']['id']}/claims",
        {"claim": {"member": "db[0]", "server": {"flavorRef": "m1.xlarge"}}},
    ).json["claim"]["id"]
    lease = leased(service)
    before = service.store.snapshot().revision
    for method, path, body in others(held, claim, lease):
        bare, _, query = path.partition("?")
        asked = dict([query.split("=")]) if query else {}
        answer = service.call(
            method, bare, body, caller=OTHER, headers={"If-Match": "*"}, query=asked
        )
        assert answer.status_code == 404, (method, path, answer.text)
        assert answer.json["errors"][0]["code"] == "ensemble.not_found"
    assert service.store.snapshot().revision == before
    assert service.call("GET", f"/claims/{claim}", caller=OPERATOR).status_code == 200


def test_listings_are_of_ones_own_project(service: Service, held: dict[str, Any]) -> None:
    leased(service)
    for noun, many in (("ensembles", 2), ("decisions", 2), ("leases", 1)):
        assert len(service.call("GET", f"/{noun}").json[noun]) == many
        assert service.call("GET", f"/{noun}", caller=OTHER).json[noun] == []
        everything = service.call(
            "GET", f"/{noun}", caller=OPERATOR, query={"all_projects": "true"}
        )
        assert len(everything.json[noun]) == many
        curious = service.call("GET", f"/{noun}", caller=OTHER, query={"all_projects": "true"})
        assert curious.status_code == 403


def test_an_explanation_is_its_projects_own_and_its_instance_the_operators(
    service: Service, held: dict[str, Any]
) -> None:
    asked = {"explanation": {"members": [{"name": "db", "count": 2, "resources": {"VCPU": 400}}]}}
    why = service.call("POST", "/explanations", asked).json["explanation"]
    assert why["verdict"] == "infeasible"
    assert why["counts"]["considered"] == "8+"
    path = f"/explanations/{why['id']}"
    assert service.call("GET", path).status_code == 200
    assert service.call("GET", path, caller=OTHER).status_code == 404
    assert service.call("GET", path, query={"instance": "true"}).status_code == 403
    full = service.call("GET", path, caller=OPERATOR, query={"instance": "true"}).json[
        "explanation"
    ]
    assert full["counts"]["considered"] == 9
    assert full["instance"]["kind"] == "request"
