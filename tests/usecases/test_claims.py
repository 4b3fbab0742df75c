"""The second step, and everything that may happen to it."""

from typing import Any

import pytest

from moorage.domain.bookings import BookingState
from moorage.domain.period import HOUR, MINUTE
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.claims.outcome import expire

SERVER = "aaaaaaaa-0000-4000-8000-00000000000a"


def claim(service: Service, held: dict[str, Any], member: str, **server: object) -> Any:
    asked = {"claim": {"member": member, "server": server or {"flavorRef": "m1.xlarge"}}}
    return service.call("POST", f"/decisions/{held['decision']['id']}/claims", asked)


def end(service: Service, claim_id: str, **how: object) -> Any:
    return service.call("PATCH", f"/claims/{claim_id}", {"claim": how})


def bookings_of(service: Service, member: str, ensemble: str) -> list[Any]:
    path = f"/ensembles/{ensemble}/members/{member}"
    shown = service.call("GET", path, caller=OPERATOR).json["member"]
    consumer = shown["server_id"] or shown["uuid"]
    return [booking for _, booking in service.store.bookings(consumer=consumer)]


def test_an_active_claim_makes_the_hold_an_allocation(
    service: Service, held: dict[str, Any]
) -> None:
    made = claim(service, held, "db[0]").json["claim"]
    (before,) = bookings_of(service, "db[0]", held["ensemble"]["id"])
    assert before.state is BookingState.CLAIMED
    assert end(service, made["id"], status="active", server_id=SERVER).status_code == 200
    (after,) = bookings_of(service, "db[0]", held["ensemble"]["id"])
    assert (after.consumer, after.state) == (SERVER, BookingState.ALLOCATED)
    assert (after.provider, after.amounts) == (before.provider, before.amounts)
    told_again = end(service, made["id"], status="active", server_id=SERVER)
    assert told_again.status_code == 200
    contradicted = end(service, made["id"], status="failed")
    assert contradicted.json["errors"][0]["code"] == "ensemble.wrong_state"


def test_a_claim_outlives_the_decision_and_then_lapses(
    service: Service, held: dict[str, Any]
) -> None:
    made = claim(service, held, "db[0]").json["claim"]
    service.clock.pass_by(10 * MINUTE)
    for due in service.store.due(10):
        assert expire(service.env, due)
    decision = service.call("GET", f"/decisions/{held['decision']['id']}").json["decision"]
    assert decision["status"] == "expired"
    assert len(bookings_of(service, "db[0]", held["ensemble"]["id"])) == 1
    assert bookings_of(service, "db[1]", held["ensemble"]["id"]) == []
    service.clock.pass_by(HOUR)
    assert bookings_of(service, "db[0]", held["ensemble"]["id"]) == []
    late = end(service, made["id"], status="active", server_id=SERVER)
    assert late.json["errors"][0]["code"] == "ensemble.hold_expired"
    (due,) = service.store.due(10)
    assert expire(service.env, due)
    assert not expire(service.env, due), "twice changes nothing"
    assert service.call("GET", f"/claims/{made['id']}").json["claim"]["status"] == "expired"


def test_confirm_frees_what_is_unclaimed_and_waits_for_builds(
    service: Service, held: dict[str, Any]
) -> None:
    made = claim(service, held, "db[0]").json["claim"]
    path = f"/decisions/{held['decision']['id']}/confirm"
    answer = service.call("POST", path, {}).json
    assert (answer["claimed"], answer["building"], answer["released"]) == (1, 1, 8)
    assert answer["decision"]["status"] == "confirmed"
    assert bookings_of(service, "db[1]", held["ensemble"]["id"]) == []
    end(service, made["id"], status="active", server_id=SERVER)
    shown = service.call("GET", f"/decisions/{held['decision']['id']}").json["decision"]
    assert shown["status"] == "closed"
    again = service.call("POST", path, {}).json
    assert (again["claimed"], again["building"], again["released"]) == (1, 0, 0)
    assert again["decision"] == shown, "told again, it changes nothing"


def test_the_place_of_a_failed_build_is_held_again(service: Service, held: dict[str, Any]) -> None:
    before = bookings_of(service, "db[0]", held["ensemble"]["id"])
    made = claim(service, held, "db[0]").json["claim"]
    assert end(service, made["id"], status="failed").json["claim"]["status"] == "failed"
    assert bookings_of(service, "db[0]", held["ensemble"]["id"]) == before
    again = claim(service, held, "db[0]").json["claim"]
    assert again["status"] == "building"


def test_a_failed_build_of_a_confirmed_decision_frees_the_place(
    service: Service, held: dict[str, Any]
) -> None:
    made = claim(service, held, "db[0]").json["claim"]
    service.call("POST", f"/decisions/{held['decision']['id']}/confirm")
    assert end(service, made["id"], status="failed").json["claim"]["status"] == "failed"
    assert bookings_of(service, "db[0]", held["ensemble"]["id"]) == []


def test_a_failed_build_is_placed_elsewhere_with_all_others_fixed(
    service: Service, held: dict[str, Any]
) -> None:
    first = held["decision"]["assignments"]
    made = claim(service, held, "db[0]").json["claim"]
    answer = end(service, made["id"], status="failed", on_failure="redecide")
    assert answer.status_code == 200, answer.text
    fresh = answer.json["decision"]
    before = {one["member"]: one["domains"] for one in first}
    after = {one["member"]: one["domains"] for one in fresh["assignments"]}
    assert {m for m in after if after[m]["host"] != before[m]["host"]} == {"db[0]"}
    assert after["db[0]"]["rack"] == before["db[0]"]["rack"], "db-ha leaves it this rack only"
    old = service.call("GET", f"/decisions/{held['decision']['id']}").json["decision"]
    assert (old["status"], fresh["status"]) == ("superseded", "held")
    (booking,) = bookings_of(service, "db[0]", held["ensemble"]["id"])
    assert (booking.state, booking.decision) == (BookingState.HELD, fresh["id"])


def test_a_narrower_server_books_what_it_asks_for(service: Service, held: dict[str, Any]) -> None:
    answer = claim(service, held, "db[0]", flavorRef="m1.medium")
    assert answer.json["claim"]["comparison"]["verdict"] == "narrower"
    (booking,) = bookings_of(service, "db[0]", held["ensemble"]["id"])
    assert booking.amounts["VCPU"] == 2


def test_a_different_server_is_placed_again_if_asked(
    service: Service, held: dict[str, Any]
) -> None:
    asked = {
        "claim": {
            "member": "web[0]",
            "server": {"flavorRef": "m1.medium"},
            "on_mismatch": "redecide_member",
        }
    }
    path = f"/decisions/{held['decision']['id']}/claims"
    answer = service.call("POST", path, asked)
    assert answer.status_code == 201, answer.text
    assert answer.json["claim"]["comparison"]["verdict"] == "redecided"
    assert answer.json["claim"]["decision_id"] == answer.json["decision"]["id"]
    (booking,) = bookings_of(service, "web[0]", held["ensemble"]["id"])
    assert (booking.state, booking.amounts["VCPU"]) == (BookingState.CLAIMED, 2)


@pytest.mark.parametrize(
    ("server", "status", "code"),
    [
        ({"flavorRef": "nope"}, 400, "unknown_name"),
        ({}, 409, "wrong_state"),
        ({"flavorRef": "m1.xlarge", "host": "h1"}, 400, "invalid_description"),
        ({"imageRef": "x"}, 400, "invalid_description"),
        ({"resources": {"VCPU": "8"}}, 400, "invalid_description"),
        ({"flavorRef": "m1.xlarge", "availability_zone": "az9"}, 409, "description_mismatch"),
        (
            {"flavorRef": "m1.xlarge", "required": ["HW_GPU_API_VULKAN"]},
            409,
            "description_mismatch",
        ),
    ],
)
def test_what_cannot_be_claimed(
    service: Service, held: dict[str, Any], server: dict[str, object], status: int, code: str
) -> None:
    if not server:
        assert claim(service, held, "db[0]").status_code == 201
    answer = claim(service, held, "db[0]", **server)
    assert answer.status_code == status, answer.text
    assert answer.json["errors"][0]["code"] == f"ensemble.{code}"


def test_its_own_zone_may_be_asked_for(service: Service, held: dict[str, Any]) -> None:
    answer = claim(service, held, "db[0]", flavorRef="m1.xlarge", availability_zone="az1")
    assert answer.status_code == 201


def test_the_same_claim_twice_is_one(service: Service, held: dict[str, Any]) -> None:
    body = {
        "claim": {
            "id": "bbbbbbbb-0000-4000-8000-000000000001",
            "member": "db[0]",
            "server": {"flavorRef": "m1.xlarge"},
        }
    }
    path = f"/decisions/{held['decision']['id']}/claims"
    answers = [service.call("POST", path, body) for _ in range(2)]
    assert [one.status_code for one in answers] == [201, 201]
    assert answers[0].json == answers[1].json
    other = {"claim": {**body["claim"], "member": "db[1]"}}
    assert service.call("POST", path, other).status_code == 409


def test_a_refusal_ends_with_what_to_do_by_hand(service: Service, held: dict[str, Any]) -> None:
    name = held["ensemble"]["name"]
    place = f"moorage decision create {name} --hold 10m"

    def refused(answer: Any, code: str) -> str:
        (error,) = answer.json["errors"]
        assert (answer.status_code, error["code"]) == (409, f"ensemble.{code}")
        return str(error["detail"]).rpartition("; to ")[2]

    made = claim(service, held, "db[0]").json["claim"]
    taken = refused(claim(service, held, "db[0]"), "wrong_state")
    assert taken == f"see its claims: moorage claim list {name}"
    service.clock.pass_by(10 * MINUTE)
    lapsed = refused(claim(service, held, "db[1]"), "hold_expired")
    assert lapsed == f"place its members anew: {place}"
    service.clock.pass_by(HOUR)
    late = refused(end(service, made["id"], status="active", server_id=SERVER), "hold_expired")
    assert late == f"place db[0] anew: {place}"
    for due in service.store.due(10):
        assert expire(service.env, due)
    over = refused(end(service, made["id"], status="failed"), "wrong_state")
    assert over == f"see it: moorage claim show {made['id']}"


def test_a_released_decision_says_how_to_get_places(service: Service, held: dict[str, Any]) -> None:
    path = f"/decisions/{held['decision']['id']}"
    assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code < 300
    (error,) = claim(service, held, "db[0]").json["errors"]
    place = f"moorage decision create {held['ensemble']['name']} --hold 10m"
    assert error["detail"].endswith(f"; to place its members anew: {place}")


def test_the_uuid_of_another_server_is_refused(service: Service, held: dict[str, Any]) -> None:
    first, second = (claim(service, held, f"db[{n}]").json["claim"]["id"] for n in (0, 1))
    assert end(service, first, status="active", server_id=SERVER).status_code == 200
    answer = end(service, second, status="active", server_id=SERVER)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"]) == (409, "ensemble.duplicate_name")
    name = held["ensemble"]["name"]
    assert error["detail"] == (
        f"UUID {SERVER} is another consumer's already; report that of the server built for db[1];"
        f" to let that server join where it is: moorage member add {name} --role db"
        f" --server {SERVER}"
    )
    assert service.store.claim(second).server_id is None


@pytest.mark.parametrize(
    ("how", "path"),
    [
        ({"status": "active"}, "claim.server_id"),
        ({"status": "failed", "server_id": SERVER}, "claim.server_id"),
        ({"status": "ended", "server_id": SERVER}, "claim.server_id"),
        ({"status": "active", "server_id": SERVER, "reason": "why"}, "claim.status"),
        ({"status": "active", "server_id": SERVER, "on_failure": "redecide"}, "claim.status"),
        ({"status": "ended", "reason": "why"}, "claim.status"),
    ],
)
def test_an_outcome_says_nothing_of_another_one(
    service: Service, held: dict[str, Any], how: dict[str, str], path: str
) -> None:
    made = claim(service, held, "db[0]").json["claim"]["id"]
    answer = end(service, made, **how)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["path"]) == (400, path), error
    assert service.call("GET", f"/claims/{made}").json["claim"]["status"] == "building"
