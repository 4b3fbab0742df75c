"""Ensembles across projects: consent, and the places and claims of each project."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.api.native.conftest import refused
from tests.api.native.shops import (
    DB,
    DESCRIPTION,
    READS_B,
    SIZE,
    STRANGER,
    WEB,
    Shop,
    accepted,
    offered,
    placed,
)

from moorage.domain.errors import ConsentMissing, NotFound
from moorage.domain.member_names import MemberName
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.claims.claim import SecondDescription
from moorage.usecases.claims.claim import claim as claim_place
from moorage.usecases.claims.outcome import activate
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.decide import decide_ensemble
from moorage.usecases.ensembles.shares import revoke_share
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.ports import Caller
from moorage.usecases.shared.limits import Limits

__all__ = ["accepted", "offered", "placed"]
LIMITS = Limits(ticket_flavors=True)


# --- consent ---------------------------------------------------------------------------------


def test_a_role_of_another_project_is_offered_to_it(offered: Shop) -> None:
    for caller in (TENANT, OTHER, READS_B):
        (share,) = offered.service.call("GET", "/shares", caller=caller).json["shares"]
        assert share["status"] == "offered"
        assert (share["owner_project_id"], share["project_id"]) == ("project-a", "project-b")
        assert (share["ensemble"], share["role"]["name"], share["role"]["count"]) == (
            *("shop", "db", 2),
        )
    (event,) = offered.events(OTHER, "share.offered")
    assert (event["roles"], event["owner"], event["ensemble"]) == (["db"], "project-a", offered.id)
    assert event["shares"] == [offered.share]
    assert not offered.events(TENANT, "share.offered")


def test_nothing_is_decided_before_it_has_accepted(offered: Shop) -> None:
    error = refused(offered.decide(), 409, "consent_missing")
    for said in ("role db", "project-b", f"moorage share accept {offered.share}"):
        assert said in error["detail"]
    refused(offered.decide(max_additional=["web"]), 409, "consent_missing")
    at_once = {"ensemble": {**DESCRIPTION, "name": "other", "decide": {}}}
    refused(offered.post("/ensembles", at_once), 409, "consent_missing")
    refused(
        offered.post(f"/ensembles/{offered.id}/extend", {"extend": {"role": "web", "count": 1}}),
        *(409, "consent_missing"),
    )
    assert offered.service.call("GET", "/decisions").json["decisions"] == []
    assert len(offered.service.call("GET", "/ensembles").json["ensembles"]) == 1


def test_a_decision_follows_the_consent(placed: Shop) -> None:
    assert {one["status"] for one in placed.members().values()} == {"held"}
    (event,) = placed.events(TENANT, "share.accepted")
    assert event["projects"] == ["project-b"]
    assert not placed.events(OTHER, "share.accepted")


def test_whoever_may_not_accept_is_told_so(offered: Shop) -> None:
    refused(offered.accept(TENANT), 403, "forbidden")
    refused(offered.accept(READS_B), 403, "forbidden")
    refused(offered.accept(STRANGER), 404, "not_found")
    assert offered.accept().status_code == 200
    refused(offered.accept(), 409, "wrong_state")
    assert offered.revoke().status_code == 200
    refused(offered.revoke(), 409, "wrong_state")
    refused(offered.accept(), 409, "wrong_state")


def test_a_dry_run_writes_nothing(accepted: Shop) -> None:
    share = accepted.share
    told = accepted.service.call(
        "POST", f"/shares/{share}/revoke", caller=OTHER, query={"dry_run": "true"}
    )
    assert told.json["share"]["status"] == "revoked"
    assert told.json["share"]["dry_run"]
    assert accepted.service.call("GET", f"/shares/{share}").json["share"]["status"] == "accepted"


def test_a_revoke_that_races_with_a_decision_wins(
    accepted: Shop, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    share = accepted.share
    env = overtaken(lambda: revoke_share(accepted.service.env, OTHER, share))
    identity = RequestIdentity(env.ids.uuid())
    decided = decide_ensemble(env, TENANT, accepted.id, DecisionOptions(), identity)
    assert {name.role for name in decided.decision.places} == {"web"}
    assert accepted.service.store.held("project-b") == 0


def test_a_revoke_that_races_with_a_server_ends_nothing_of_it(
    placed: Shop, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    claim = placed.claim("db[0]").json["claim"]["id"]
    server = "8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b"
    env = overtaken(lambda: activate(placed.service.env, OTHER, claim, server))
    revoke_share(env, TENANT, placed.share)
    assert placed.booked(server) == {("project-b", "allocated")}
    assert placed.service.store.claim(claim).state.value == "active"
    assert set(placed.members()) == {"web[0]", "web[1]"}


def test_a_claim_that_races_with_a_revoke_gets_no_place(
    placed: Shop, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    share, decision = placed.share, placed.decision()
    env = overtaken(lambda: revoke_share(placed.service.env, TENANT, share))
    second = SecondDescription(MemberName("db", 0), {"resources": SIZE})
    with pytest.raises(NotFound):
        claim_place(env, OTHER, decision, second, RequestIdentity(env.ids.uuid()))
    assert placed.service.store.held("project-b") == 0


def test_a_change_that_races_with_a_decision_is_not_decided(
    accepted: Shop, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    env = overtaken(lambda: accepted.change(members=[{"name": "db", "count": 3}]))
    identity = RequestIdentity(env.ids.uuid())
    with pytest.raises(ConsentMissing):
        decide_ensemble(env, TENANT, accepted.id, DecisionOptions(), identity)


def test_the_own_project_needs_no_consent(service: Service) -> None:
    members = [{**DB, "project": TENANT.project_id}]
    body = {"ensemble": {**DESCRIPTION, "members": members, "policies": []}}
    error = refused(service.call("POST", "/ensembles", body), 400, "invalid_description")
    assert error["path"] == "members[0].project"


def test_a_role_in_a_group_may_be_another_projects(service: Service) -> None:
    group = {"name": "east", "kind": "ensemble", "count": 2, "members": [WEB, DB]}
    shop = Shop(service, members=[group], policies=[])
    shares = service.call("GET", "/shares", caller=OTHER).json["shares"]
    assert [one["role"]["name"] for one in shares] == ["east/0/db", "east/1/db"]
    for share in shares:
        refused(shop.decide(), 409, "consent_missing")
        assert shop.post(f"/shares/{share['id']}/accept", caller=OTHER).status_code == 200
    assert shop.decide().status_code == 201
    assert shop.service.store.held("project-b") == 4


def test_a_role_with_alternatives_may_be_another_projects(service: Service) -> None:
    either = [{"resources": {"VCPU": 99}}, {"resources": SIZE}]
    shop = Shop(
        service,
        members=[WEB, {"name": "db", "count": 2, "alternatives": either, "project": "project-b"}],
    )
    assert shop.accept().status_code == 200
    assert shop.decide().status_code == 201
    assert shop.boot("db[0]")
    assert shop.service.store.held("project-b") == 1
    assert shop.members(TENANT)["db[1]"]["alternative"] == 1


@pytest.mark.parametrize("project", ["", " ", "a" * 256, 7, "line\nbreak"])
def test_a_project_is_an_id(service: Service, project: object) -> None:
    body = {"ensemble": {**DESCRIPTION, "members": [WEB, {**DB, "project": project}]}}
    refused(service.call("POST", "/ensembles", body), 400, "invalid_description")


# --- what changes ----------------------------------------------------------------------------


def test_a_changed_role_is_offered_anew(placed: Shop) -> None:
    before = placed.share
    changed = placed.change(members=[{"name": "db", "count": 3}])
    assert changed.status_code == 200, changed.text
    assert placed.share != before
    refused(placed.post(f"/shares/{before}/accept", caller=OTHER), 404, "not_found")
    refused(placed.decide(), 409, "consent_missing")
    refused(placed.change(members=[{"name": "web", "count": 3}]), 409, "consent_missing")
    assert placed.members()["db[2]"]["status"] == "unplaced"
    # What it had accepted, it has: its places, and their claims.
    assert placed.boot("db[0]")
    assert placed.accept().status_code == 200
    assert placed.decide().status_code == 201
    assert placed.members()["db[2]"]["status"] == "held"


def test_no_change_is_no_offer(placed: Shop) -> None:
    before = placed.share
    assert placed.change(members=[{"name": "db", "count": 2}]).status_code == 200
    assert placed.share == before


def test_a_smaller_role_frees_places_at_once(placed: Shop) -> None:
    assert placed.change(members=[{"name": "db", "count": 1}]).status_code == 200
    assert set(placed.members()) == {"web[0]", "web[1]", "db[0]"}
    assert placed.service.store.held("project-b") == 1


def test_a_role_is_added_to_a_placed_ensemble(placed: Shop) -> None:
    added = {"name": "cache", "count": 1, "resources": SIZE, "project": "project-c"}
    made = placed.post(f"/ensembles/{placed.id}/members", {"member": {"role": added}})
    assert made.status_code == 201, made.text
    (share,) = placed.service.call("GET", "/shares", caller=STRANGER).json["shares"]
    assert share["role"]["name"] == "cache"
    assert len(placed.service.call("GET", "/shares").json["shares"]) == 2


def test_a_revoked_role_may_be_offered_again(placed: Shop) -> None:
    assert placed.revoke(TENANT).status_code == 200
    assert placed.change(members=[{"name": "db", "count": 1}]).status_code == 200
    assert placed.accept().status_code == 200
    assert placed.decide().status_code == 201
    assert placed.members()["db[0]"]["status"] == "held"


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/extend", {"extend": {"role": "db", "count": 1}}, "wrong_state"),
        ("POST", "/shrink", {"shrink": {"role": "db", "count": 1}}, "wrong_state"),
        ("PUT", "/headroom", {"headroom": {"role": "db", "count": 1}}, "wrong_state"),
        ("DELETE", "/members/db[0]", None, "wrong_state"),
        (
            *("POST", "/members"),
            {"member": {"server_id": "8d0a7a8e-5ad0-4c5e-9b0e-4f3d6a1d2c3b", "name": "db"}},
            "wrong_state",
        ),
    ],
)
def test_a_role_of_another_project_changes_only_by_its_count(
    placed: Shop, method: str, path: str, body: Any, code: str
) -> None:
    headers = {"If-Match": "*"}
    answer = placed.service.call(method, f"/ensembles/{placed.id}{path}", body, headers=headers)
    error = refused(answer, 409, code)
    assert "role db belongs to project project-b" in error["detail"]
    assert "moorage ensemble set shop --member db:count=N" in error["detail"]


WINDOW = {"start": "2026-11-22T09:00:00Z", "duration": "PT1H"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/leases", {"lease": {"name": "night", "ensemble_id": "ID", **WINDOW}}),
        ("/leases", {"lease": {"name": "night", "ensemble": DESCRIPTION, **WINDOW}}),
        ("/leases", {"lease": {"name": "night", "ensemble_id": "ID", **WINDOW, "wait": {}}}),
        ("/offers", {"offer_request": {"ensemble_id": "ID", "duration": "PT1H"}}),
        (
            "/series",
            {
                "series": {
                    "name": "nights",
                    "ensemble": DESCRIPTION,
                    "times": 2,
                    "every": "daily",
                    "start": "2026-11-22T09:00",
                    "duration": "PT1H",
                }
            },
        ),
    ],
)
def test_leases_are_of_one_project(offered: Shop, path: str, body: Any) -> None:
    named = json.loads(json.dumps(body).replace("ID", offered.id))
    error = refused(offered.post(path, named), 400, "invalid_description")
    assert "role db belongs to project project-b" in error["detail"]


# --- places, claims and quotas -----------------------------------------------------------------


def test_places_are_booked_for_the_roles_project(placed: Shop) -> None:
    members = placed.members()
    assert placed.booked(members["db[0]"]["uuid"]) == {("project-b", "held")}
    assert placed.booked(members["web[0]"]["uuid"]) == {("project-a", "held")}
    held = placed.service.store.held
    assert (held("project-a"), held("project-b")) == (2, 2)


def test_each_project_claims_its_own_members(placed: Shop) -> None:
    refused(placed.claim("db[0]", TENANT), 403, "forbidden")
    refused(placed.claim("web[0]", OTHER), 403, "forbidden")
    refused(placed.claim("db[0]", STRANGER), 404, "not_found")
    refused(placed.claim("cache[0]", OTHER), 404, "not_found")
    server = placed.boot("db[0]")
    assert placed.booked(server) == {("project-b", "allocated")}
    (consumer, _), *_ = placed.service.store.bookings(consumer=server)
    assert consumer.user_id == OTHER.user_id
    assert {one["member"] for one in placed.events(OTHER, "claim.active")} == {"db[0]"}
    assert not placed.events(TENANT, "claim.*")


def test_claims_are_listed_for_their_project(placed: Shop) -> None:
    claims = {placed.claim(one).json["claim"]["id"] for one in ("db[0]", "db[1]")}
    mine = placed.claim("web[0]", TENANT).json["claim"]["id"]
    path = f"/decisions/{placed.decision()}/claims"

    def listed(caller: Caller) -> set[str]:
        found = placed.service.call("GET", path, caller=caller, query={"limit": 1}).json
        ids = {one["id"] for one in found["claims"]}
        while found["claims_links"]:
            marker = {"limit": 1, "marker": found["claims"][-1]["id"]}
            found = placed.service.call("GET", path, caller=caller, query=marker).json
            ids |= {one["id"] for one in found["claims"]}
        return ids

    assert listed(TENANT) == {mine}
    assert listed(OTHER) == claims
    assert listed(OPERATOR) == claims | {mine}
    assert placed.service.call("GET", path, caller=STRANGER).status_code == 404
    for claim in claims:
        assert placed.service.call("GET", f"/claims/{claim}").status_code == 404


def test_a_place_is_not_decided_anew_for_another_size(placed: Shop) -> None:
    body = {
        "claim": {
            "member": "db[0]",
            "server": {"resources": {"VCPU": 2, "MEMORY_MB": 1024}},
            "on_mismatch": "redecide_member",
        }
    }
    path = f"/decisions/{placed.decision()}/claims"
    refused(placed.post(path, body, OTHER), 409, "wrong_state")
    claim = placed.claim("db[0]").json["claim"]["id"]
    failed = {"claim": {"status": "failed", "on_failure": "redecide"}}
    answer = placed.service.call("PATCH", f"/claims/{claim}", failed, caller=OTHER)
    refused(answer, 409, "wrong_state")
    failed = {"claim": {"status": "failed"}}
    answer = placed.service.call("PATCH", f"/claims/{claim}", failed, caller=OTHER)
    assert answer.json["claim"]["status"] == "failed"
    assert placed.members()["db[0]"]["status"] == "held"


def test_each_project_pays_from_its_quota(accepted: Shop) -> None:
    def limit(project: str, places: int) -> None:
        body = {"quota": {"held_units": places}}
        answer = accepted.service.call("PATCH", f"/quotas/{project}", body, caller=OPERATOR)
        assert answer.status_code == 200, answer.text

    limit("project-b", 1)
    error = refused(accepted.decide(), 409, "other_quota_exceeded")
    assert "project-b" in error["detail"]
    assert not {"limit", "used"} & error.keys(), "its numbers are its own affair"
    limit("project-b", 2)
    limit("project-a", 1)
    assert refused(accepted.decide(), 403, "quota_exceeded")["limit"] == 1
    limit("project-a", 2)
    assert accepted.decide().status_code == 201
    assert accepted.decide().status_code == 201, "what is held is not counted twice"


def test_ticket_flavors_are_of_the_roles_project(placed: Shop) -> None:
    def flavors(caller: Caller) -> set[str]:
        return {one["role"] for one in placed.seen(caller)["decision"]["ticket_flavors"]}

    assert (flavors(TENANT), flavors(OTHER), flavors(OPERATOR)) == ({"web"}, {"db"}, {"web", "db"})
    effects = placed.service.store.effects(placed.decision())
    created = [one for one in effects if one.kind.value == "create flavors"]
    assert {one.project_id for one in created} == {"project-a", "project-b"}


# --- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [TENANT, OTHER])
def test_servers_outlive_a_revoked_share(placed: Shop, who: Caller) -> None:
    running = placed.boot("db[0]")
    building = placed.claim("db[1]").json["claim"]["id"]
    decision = placed.decision()
    assert placed.revoke(who).json["share"]["status"] == "revoked"
    assert placed.booked(running) == {("project-b", "allocated")}
    assert placed.service.store.held("project-b") == 0
    assert set(placed.members()) == {"web[0]", "web[1]"}
    claim = placed.service.call("GET", f"/claims/{building}", caller=OTHER)
    assert claim.json["claim"]["status"] == "failed"
    for caller in (TENANT, OTHER):
        (event,) = placed.events(caller, "share.revoked")
        assert event["roles"] == ["db"]
    assert placed.service.call("GET", f"/ensembles/{placed.id}", caller=OTHER).status_code == 404
    assert placed.service.call("GET", f"/decisions/{decision}", caller=OTHER).status_code == 404
    # The rest of the ensemble goes on.
    assert placed.boot("web[0]", TENANT)
    assert placed.decide().status_code == 201


def test_servers_outlive_the_ensemble(placed: Shop) -> None:
    running, share = placed.boot("db[0]"), placed.share
    headers = {"If-Match": "*"}
    gone = placed.service.call("DELETE", f"/ensembles/{placed.id}", headers=headers)
    assert gone.status_code == 204
    assert placed.booked(running) == {("project-b", "allocated")}
    held = placed.service.store.held
    assert (held("project-a"), held("project-b")) == (0, 0)
    (event,) = placed.events(OTHER, "share.revoked")
    assert event["name"] == "shop"
    for caller in (TENANT, OTHER):
        answer = placed.service.call("GET", f"/shares/{share}", caller=caller)
        assert answer.status_code == 404
        assert placed.service.call("GET", "/shares", caller=caller).json["shares"] == []


def test_an_offer_may_be_declined(offered: Shop) -> None:
    assert offered.revoke().status_code == 200
    assert offered.decide().status_code == 201, "without the members that were declined"
    assert set(offered.members()) == {"web[0]", "web[1]"}


def test_how_many_fit_of_a_role_of_another_project_tells_nothing_of_quotas(placed: Shop) -> None:
    fits = {}
    for role in ("web", "db"):
        body = {"fit": {"ensemble_id": placed.id, "role": role}}
        fits[role] = placed.service.call("POST", "/capacity/fit", body).json["fit"]
    assert fits["web"]["quota_allows"] > 0
    assert fits["db"]["quota_allows"] is None
