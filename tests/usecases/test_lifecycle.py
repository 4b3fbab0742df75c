"""Lapses, and changes that overtake each other: nobody loses a place, nothing is left behind."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, PutInventories
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import HoldExpired, InUse, NotFound, WrongState
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, MINUTE
from moorage.domain.providers import Inventory
from moorage.testing.service import NINE, OPERATOR, OTHER, TENANT, Service
from moorage.usecases.claims.hold import confirm, release, renew
from moorage.usecases.claims.outcome import activate, expire, fail
from moorage.usecases.ensembles.members import leave
from moorage.usecases.environment import UseCaseEnvironment
from moorage.workers.expiry import Swept, sweep

SERVER = "aaaaaaaa-0000-4000-8000-00000000000a"
Held: TypeAlias = dict[str, Any]
Overtaken: TypeAlias = Callable[[Callable[[], object]], UseCaseEnvironment]


def claim(service: Service, decision: str, member: str, flavor: str = "", **more: object) -> Any:
    flavor = flavor or {"db": "m1.xlarge", "app": "m1.medium", "web": "m1.small"}[member[:-3]]
    asked = {"claim": {"member": member, "server": {"flavorRef": flavor}, **more}}
    return service.call("POST", f"/decisions/{decision}/claims", asked)


def made(answer: Any) -> str:
    assert answer.status_code in {200, 201}, answer.text
    return str(answer.json["claim"]["id"])


def end(service: Service, claim_id: str, **how: object) -> Any:
    return service.call("PATCH", f"/claims/{claim_id}", {"claim": how})


def code(answer: Any) -> str:
    return str(answer.json["errors"][0]["code"]).removeprefix("ensemble.")


def statuses(service: Service, held: Held) -> dict[str, str]:
    shown = service.call("GET", f"/ensembles/{held['ensemble']['id']}/members").json["members"]
    return {one["name"]: one["status"] for one in shown}


def decide_again(service: Service, held: Held) -> str:
    body = {"decision": {"ensemble_id": held["ensemble"]["id"], "hold": "PT1H"}}
    answer = service.call("POST", "/decisions", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json["decision"]["id"])


def shrink(service: Service, held: Held) -> None:
    path = f"/ensembles/{held['ensemble']['id']}"
    generation = service.call("GET", path).json["ensemble"]["generation"]
    change = {"members": [{"name": "web", "count": 2}], "generation": generation}
    answer = service.call("PATCH", path, {"ensemble": change})
    assert answer.status_code == 200, answer.text


def remove(service: Service, held: Held, member: str) -> None:
    path = f"/ensembles/{held['ensemble']['id']}/members/{member}"
    assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 200


def sweep_all(service: Service) -> Swept:
    return sweep(service.store, partial(expire, service.env))


# --- a lapsed claim takes nothing from whoever comes next -------------------------------------


def test_the_end_of_a_lapsed_claim_leaves_the_next_hold_alone(service: Service, held: Held) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]", lifetime="PT1M"))
    service.clock.pass_by(2 * MINUTE)
    fresh = decide_again(service, held)
    assert service.store.claim(first).state is ClaimState.EXPIRED, "it ends with its decision"
    assert service.store.claim(first).decision_id == held["decision"]["id"]
    sweep_all(service)
    assert set(statuses(service, held).values()) == {"held"}
    second = made(claim(service, fresh, "db[0]"))
    assert code(end(service, first, status="failed")) == "wrong_state"
    assert end(service, second, status="active", server_id=SERVER).status_code == 200


def test_a_lapsed_claim_cannot_fail_though_nobody_noted_the_lapse(
    service: Service, held: Held
) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]", lifetime="PT1M"))
    service.clock.pass_by(2 * MINUTE)
    for how in ({}, {"on_failure": "redecide"}):
        assert code(end(service, first, status="failed", **how)) == "wrong_state"
    assert statuses(service, held)["db[1]"] == "held"


def test_a_claim_that_is_building_goes_on_under_the_next_decision(
    service: Service, held: Held
) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]"))
    fresh = decide_again(service, held)
    assert service.store.claim(first).decision_id == fresh
    assert end(service, first, status="failed").status_code == 200
    assert statuses(service, held)["db[0]"] == "held"


# --- the clock moves while one thinks ---------------------------------------------------------


def test_a_hold_that_lapses_while_it_is_renewed_stays_lapsed(
    service: Service, held: Held, ticking: Callable[[int], None]
) -> None:
    ticking(NINE + 10 * MINUTE - 1)
    with pytest.raises(HoldExpired):
        renew(service.env, TENANT, held["decision"]["id"], NINE + 30 * MINUTE, None)
    assert service.store.held("project-a") == 0


def test_a_hold_that_lapses_while_it_is_confirmed_confirms_nothing(
    service: Service, held: Held, ticking: Callable[[int], None]
) -> None:
    ticking(NINE + 10 * MINUTE - 1)
    with pytest.raises(HoldExpired):
        confirm(service.env, TENANT, held["decision"]["id"], None)
    assert service.store.decision(held["decision"]["id"]).state is DecisionState.HELD


def test_a_step_that_comes_too_late_names_the_next(service: Service, held: Held) -> None:
    decision, ensemble = held["decision"]["id"], held["ensemble"]["id"]
    later = decide_again(service, held)
    places = f"a decision that is superseded; to see its places: moorage ensemble show {ensemble}"
    with pytest.raises(WrongState, match=f"cannot confirm {places}"):
        confirm(service.env, TENANT, decision, None)
    release(service.env, TENANT, later, None)
    command = f"moorage decision create {ensemble} --hold 10m"
    anew = f"a decision that is released; to place its members anew: {command}"
    with pytest.raises(WrongState, match=f"cannot release {anew}"):
        release(service.env, TENANT, later, None)
    with pytest.raises(WrongState, match=f"cannot renew {anew}"):
        renew(service.env, TENANT, later, NINE + 5 * MINUTE, None)


def test_a_hold_that_lapses_while_a_place_is_claimed_is_no_claim(
    service: Service, held: Held, ticking: Callable[[int], None]
) -> None:
    ticking(NINE + 10 * MINUTE - 1)
    assert code(claim(service, held["decision"]["id"], "db[0]")) == "hold_expired"


@pytest.mark.parametrize("how", [{"status": "active", "server_id": SERVER}, {"status": "failed"}])
def test_a_claim_that_lapses_while_it_ends_has_lapsed(
    service: Service, held: Held, ticking: Callable[[int], None], how: dict[str, Any]
) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]", lifetime="PT1M"))
    ticking(NINE + MINUTE - 1)
    answer = end(service, first, **how)
    assert (answer.status_code, code(answer)) == (409, "hold_expired")
    assert service.store.claim(first).state is ClaimState.BUILDING


# --- members change while decisions do --------------------------------------------------------


def test_a_member_that_leaves_during_a_renewal_is_held_no_longer(
    service: Service, held: Held, overtaken: Overtaken
) -> None:
    env = overtaken(lambda: remove(service, held, "web[2]"))
    renew(env, TENANT, held["decision"]["id"], NINE + HOUR, None)
    assert service.store.held("project-a") == len(statuses(service, held)) == 8
    release(service.env, TENANT, held["decision"]["id"], None)
    assert service.store.held("project-a") == 0


def test_a_member_that_leaves_while_it_is_claimed_is_not_claimed(
    service: Service, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, acts = service.store.commit, [lambda: remove(service, held, "web[2]")]

    def overtaken(changeset: Any) -> Any:
        if acts:
            acts.pop()()
        return commit(changeset)

    monkeypatch.setattr(service.store, "commit", overtaken)
    assert code(claim(service, held["decision"]["id"], "web[2]")) == "not_found"
    assert service.store.claims(decision_id=held["decision"]["id"]) == []
    assert service.store.held("project-a") == 8


def test_a_member_claimed_while_it_leaves_keeps_its_resources_if_so_asked(
    service: Service, held: Held, overtaken: Overtaken
) -> None:
    env = overtaken(lambda: claim(service, held["decision"]["id"], "web[2]"))
    eid = held["ensemble"]["id"]
    with pytest.raises(InUse):
        leave(env, TENANT, eid, MemberName("web", 2), keep_resources=True)
    assert statuses(service, held)["web[2]"] == "building"
    leave(service.env, TENANT, eid, MemberName("web", 2), keep_resources=False)
    (ended,) = service.store.claims(decision_id=held["decision"]["id"])
    assert ended.state is ClaimState.FAILED
    assert MemberName("web", 2) not in service.store.decision(ended.decision_id).places


def test_a_lapsed_claim_ends_with_its_member(service: Service, held: Held) -> None:
    first = made(claim(service, held["decision"]["id"], "web[2]", lifetime="PT1M"))
    service.clock.pass_by(2 * MINUTE)
    shrink(service, held)
    assert service.store.claim(first).state is ClaimState.EXPIRED
    assert sweep_all(service).due == 0


def test_a_lapsed_claim_ends_with_its_member_where_nothing_is_placed(
    service: Service, held: Held
) -> None:
    first = made(claim(service, held["decision"]["id"], "web[2]", lifetime="PT20M"))
    service.clock.pass_by(HOUR)
    shrink(service, held)
    assert service.store.claim(first).state is ClaimState.EXPIRED


def test_a_lapse_is_noted_though_the_ensemble_is_gone(service: Service, held: Held) -> None:
    first = made(claim(service, held["decision"]["id"], "web[2]", lifetime="PT20M"))
    building = service.store.claim(first)
    service.clock.pass_by(HOUR)
    service.call("DELETE", f"/ensembles/{held['ensemble']['id']}", headers={"If-Match": "*"})
    assert service.store.claim(first).state is ClaimState.EXPIRED
    assert not expire(service.env, building)
    assert service.store.decision(building.decision_id).state is DecisionState.EXPIRED


# --- confirm and the ends of claims -----------------------------------------------------------


def test_a_failed_member_is_not_claimed(service: Service, held: Held) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]"))
    assert end(service, first, status="failed").status_code == 200
    answer = service.call("POST", f"/decisions/{held['decision']['id']}/confirm").json
    assert (answer["claimed"], answer["building"], answer["released"]) == (0, 0, 9)
    assert (answer["decision"]["status"], answer["decision"]["assignments"]) == ("closed", [])


@pytest.mark.parametrize("outcome", [ClaimState.ACTIVE, ClaimState.FAILED])
def test_a_claim_that_ends_during_the_confirmation_is_not_waited_for(
    service: Service, held: Held, overtaken: Overtaken, outcome: ClaimState
) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]"))
    tell = {
        ClaimState.ACTIVE: lambda: activate(service.env, TENANT, first, SERVER),
        ClaimState.FAILED: lambda: fail(service.env, TENANT, first),
    }
    done = confirm(overtaken(tell[outcome]), TENANT, held["decision"]["id"], None)
    assert (done.building, done.decision.state) == (0, DecisionState.CLOSED)
    assert done.claimed == (outcome is ClaimState.ACTIVE)


def test_the_last_of_two_claims_that_end_at_once_closes_the_decision(
    service: Service, held: Held, overtaken: Overtaken
) -> None:
    first, second = (made(claim(service, held["decision"]["id"], f"db[{i}]")) for i in (0, 1))
    service.call("POST", f"/decisions/{held['decision']['id']}/confirm")
    fail(overtaken(lambda: fail(service.env, TENANT, second)), TENANT, first)
    assert service.store.decision(held["decision"]["id"]).state is DecisionState.CLOSED


def test_a_lapse_closes_a_confirmed_decision(service: Service, held: Held) -> None:
    made(claim(service, held["decision"]["id"], "db[0]"))
    service.call("POST", f"/decisions/{held['decision']['id']}/confirm")
    service.clock.pass_by(30 * HOUR)
    assert sweep_all(service).due == 1
    assert service.store.decision(held["decision"]["id"]).state is DecisionState.CLOSED


def test_an_outcome_told_again_changes_nothing(service: Service, held: Held) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]"))
    service.clock.pass_by(MINUTE)
    answers = [end(service, first, status="failed") for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].json == answers[1].json
    assert code(end(service, first, status="failed", on_failure="redecide")) == "wrong_state"


def test_a_failure_with_a_new_place_told_again_finds_no_other(service: Service, held: Held) -> None:
    first = made(claim(service, held["decision"]["id"], "db[0]"))
    moved, again = (end(service, first, status="failed", on_failure="redecide") for _ in range(2))
    assert (moved.status_code, again.status_code) == (200, 200), again.text
    assert again.json["claim"] == moved.json["claim"]


# --- rules that change under a hold -----------------------------------------------------------


def test_smaller_units_do_not_break_what_is_held(service: Service, held: Held) -> None:
    decision = service.store.decision(held["decision"]["id"])
    (host,) = decision.places[MemberName("db", 0)].allocations
    service.store.commit(
        Changeset((PutInventories(host, (Inventory("VCPU", 16, max_unit=4),), None),))
    )
    renew(service.env, TENANT, decision.id, NINE + HOUR, None)
    path = f"/ensembles/{held['ensemble']['id']}/members"
    more = {"member": {"role": {"name": "web", "count": 1}}}
    answer = service.call("POST", path, more)
    assert answer.status_code == 201, answer.text
    made(claim(service, answer.json["decision"]["id"], "db[0]"))


# --- whose server it is -----------------------------------------------------------------------


def test_a_claim_is_active_only_with_a_server_of_its_own_project(
    service: Service, held: Held
) -> None:
    body = {"name": "o", "members": [{"name": "a", "resources": {"VCPU": 1}}], "decide": {}}
    other = service.call("POST", "/ensembles", {"ensemble": body}, caller=OTHER).json
    path = f"/ensembles/{other['ensemble']['id']}/members"
    member = service.call("GET", path, caller=OPERATOR).json["members"][0]["uuid"]
    load = next(
        owner.uuid
        for owner, booking in service.store.bookings()
        if booking.state is BookingState.ALLOCATED and owner.project_id != "project-a"
    )
    first = made(claim(service, held["decision"]["id"], "db[0]"))
    for foreign in (member, load):
        before = service.store.bookings(consumer=foreign)
        answer = end(service, first, status="active", server_id=foreign)
        assert (answer.status_code, code(answer)) == (404, "not_found")
        assert "generation" not in answer.text
        assert service.store.bookings(consumer=foreign) == before
    assert service.store.claim(first).state is ClaimState.BUILDING
    with pytest.raises(NotFound):
        activate(service.env, OTHER, first, SERVER)


# --- decisions made on the way ----------------------------------------------------------------


@pytest.mark.parametrize("how", ["add a member", "fail elsewhere", "claim a different server"])
def test_a_decision_made_on_the_way_keeps_the_terms_of_the_present_one(
    service: Service, shop: dict[str, Any], how: str
) -> None:
    terms = {"hold": "PT2H", "objective": "pack", "seed": 7}
    answer = service.call("POST", "/ensembles", {"ensemble": {**shop, "decide": terms}}).json
    before = service.store.decision(answer["decision"]["id"])
    service.clock.pass_by(MINUTE)
    path = f"/ensembles/{answer['ensemble']['id']}/members"
    if how == "add a member":
        service.call("POST", path, {"member": {"role": {"name": "web", "count": 1}}})
    elif how == "fail elsewhere":
        first = made(claim(service, before.id, "web[0]"))
        end(service, first, status="failed", on_failure="redecide")
    else:
        claim(service, before.id, "web[0]", "m1.medium", on_mismatch="redecide_member")
    (after, *_) = service.store.decisions(project_id="project-a")
    assert after.id != before.id
    assert after.expires_at == before.expires_at == NINE + 2 * HOUR
    assert (after.objective, after.solve.seed) == (before.objective, before.solve.seed)
    assert after.solve.seed == 7


def test_after_a_lapse_the_next_decision_is_held_as_by_default(
    service: Service, held: Held
) -> None:
    made(claim(service, held["decision"]["id"], "web[0]", lifetime="PT2H"))
    service.clock.pass_by(HOUR)
    path = f"/ensembles/{held['ensemble']['id']}/members"
    answer = service.call("POST", path, {"member": {"role": {"name": "app", "count": 0}}})
    assert answer.status_code == 201, answer.text
    fresh = service.store.decision(answer.json["decision"]["id"])
    assert fresh.expires_at == NINE + HOUR + service.env.limits.default_hold
