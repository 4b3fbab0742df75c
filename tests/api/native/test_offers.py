"""`/v1/offers` over a real ledger: found, held, accepted, given up, expired."""

import uuid
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.domain.period import HOUR
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, READER, Service
from moorage.usecases.effect_dispatch import OutwardActions, carry_out
from moorage.usecases.shared.limits import Limits

FLEET = """
fleet: edge
topology:
  location:
    levels: [zone]
    domains: [{name: az1, level: zone}, {name: az2, level: zone}]
hosts:
  - {name: "n{n}", count: 4, inventories: {VCPU: 32}, place: {location: az1}}
  - {name: "m{n}", count: 1, inventories: {VCPU: 32}, place: {location: az2}}
"""
LIMITS = Limits(quotas=QuotaDefaults({QuotaName.OFFERS: 4}))
EARLIEST = "2026-12-07T08:00:00Z"
END = "2026-12-11T18:00:00Z"


def described(count: int = 4, **more: Any) -> dict[str, Any]:
    policies = [{"name": "one-per-host", "type": "anti-affinity", "members": ["server"]}]
    resources = {"VCPU": more.pop("vcpu", 20)}
    return {"amount": {"count": count, "resources": resources, "policies": policies}, **more}


def wanted(body: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    asked = {"earliest": EARLIEST, "duration": "P4DT10H", "hold": "PT1H"} | more
    return {"offer_request": asked | (body or described())}


def made(service: Service, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = service.call("POST", "/offers", body)
    assert answer.status_code == 201, answer.text
    found: list[dict[str, Any]] = answer.json["offers"]
    return found


def accept(service: Service, offer: dict[str, Any], **terms: Any) -> Any:
    return service.call("POST", f"/offers/{offer['id']}/accept", {"lease": terms})


def work(service: Service) -> None:
    """Do what is due, as a worker would."""
    while due := service.store.due_effects(1):
        carry_out(service.env, OutwardActions(), due[0])


def test_an_offer_is_held_and_accepted_on_its_terms(service: Service) -> None:
    (offer,) = made(service, wanted(described(5)))
    assert (offer["start"], offer["end"], offer["unit_hours"]) == (EARLIEST, END, 530.0)
    assert (offer["status"], offer["proved"], offer["score"]) == ("offered", True, 1.0)
    assert offer["expires_at"] == "2026-11-21T10:00:00Z"
    lease = {"start": EARLIEST, "end": END, "name": "other", **described(1)}
    refused(service.call("POST", "/leases", {"lease": lease}), 409, "infeasible")
    assert service.call("GET", "/leases").json["leases"] == []
    assert service.call("GET", "/ensembles").json["ensembles"] == []
    for path in (f"/leases/{offer['id']}",):
        refused(service.call("GET", path), 404, "not_found")
    answer = accept(service, offer, name="upf-dec", expiry="PT2H", lead="PT30M")
    assert answer.status_code == 201, answer.text
    granted = answer.json["lease"]
    assert (granted["id"], granted["name"], granted["status"]) == (
        offer["id"],
        "upf-dec",
        "pending",
    )
    assert (granted["lead"], granted["expiry"]) == ("PT30M", "PT2H")
    assert answer.json["decision"]["interval"]["start"] == "2026-12-07T07:30:00Z"
    shown = service.call("GET", f"/offers/{offer['id']}").json["offer"]
    assert (shown["status"], shown["lease_id"]) == ("accepted", offer["id"])
    refused(accept(service, offer), 409, "wrong_state")
    refused(service.call("DELETE", f"/offers/{offer['id']}"), 409, "wrong_state")
    service.clock.pass_by(2 * HOUR)
    work(service)
    assert service.call("GET", f"/leases/{offer['id']}").json["lease"]["status"] == "pending"
    assert len(service.call("GET", "/ensembles").json["ensembles"]) == 1
    assert service.call("GET", "/offers", query={"over": "true"}).json["offers"] == []


def test_alternatives_are_held_beside_each_other_and_go_with_the_accepted_one(
    service: Service,
) -> None:
    first, second = made(service, wanted(described(5), max_offers=2))
    assert second["start"] == first["end"], "the next start at which something ends"
    assert first["request_id"] == second["request_id"]
    assert second["score"] < 1.0
    assert accept(service, second).status_code == 201
    refused(accept(service, first), 410, "offer_over")
    listed = service.call("GET", "/offers", query={"over": "true"}).json["offers"]
    assert [(one["id"], one["status"]) for one in listed] == [(first["id"], "withdrawn")]
    assert made(service, wanted(described(5)))[0]["start"] == EARLIEST, "its places are free"


def test_an_offer_expires_and_leaves_nothing(service: Service) -> None:
    (offer,) = made(service, wanted(described(5)))
    service.clock.pass_by(HOUR)
    refused(accept(service, offer), 410, "offer_over")
    assert service.call("GET", f"/offers/{offer['id']}").json["offer"]["status"] == "expired"
    assert made(service, wanted(described(5)))[0]["start"] == EARLIEST
    work(service)
    listed = service.call("GET", "/offers", query={"over": "true"}).json["offers"]
    assert [one["status"] for one in listed] == ["expired", "offered"]
    refused(service.call("DELETE", f"/offers/{offer['id']}"), 410, "offer_over")


def test_an_ensemble_takes_the_places_of_the_offer_it_accepts(service: Service) -> None:
    body = {
        "name": "shop",
        "members": [{"name": "web", "count": 2, "resources": {"VCPU": 20}}],
        "policies": [{"name": "alone", "type": "exclusive", "members": ["web"]}],
    }
    ensemble = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    both = made(service, wanted({"ensemble_id": ensemble["id"]}, max_offers=2))
    assert [one["ensemble_id"] for one in both] == [ensemble["id"]] * 2
    answer = accept(service, both[0])
    assert answer.status_code == 201, answer.text
    assert answer.json["lease"]["ensemble_id"] == ensemble["id"]
    assert answer.json["lease"]["name"] == "shop"
    (only,) = service.call("GET", "/ensembles").json["ensembles"]
    assert only["id"] == ensemble["id"]
    consumers = {one.uuid for one in service.store.ensemble(ensemble["id"]).members}
    booked = service.call("GET", "/bookings", caller=OPERATOR).json["bookings"]
    assert {one["consumer"] for one in booked} == consumers
    answer = service.call("POST", "/offers", wanted({"ensemble_id": ensemble["id"]}))
    refused(answer, 409, "wrong_state")


def test_an_ensemble_that_changed_since_takes_none(service: Service) -> None:
    body = {"name": "shop", "members": [{"name": "web", "count": 2, "resources": {"VCPU": 20}}]}
    ensemble = service.call("POST", "/ensembles", {"ensemble": body}).json["ensemble"]
    (offer,) = made(service, wanted({"ensemble_id": ensemble["id"]}))
    more = {"ensemble": {"members": [{"name": "web", "count": 3}], "generation": 0}}
    assert service.call("PATCH", f"/ensembles/{ensemble['id']}", more).status_code == 200
    refused(accept(service, offer), 409, "wrong_state")


def test_it_is_the_callers_alone_and_bounded(service: Service) -> None:
    (offer,) = made(service, wanted())
    for caller in (OTHER, READER):
        answer = service.call("POST", f"/offers/{offer['id']}/accept", {"lease": {}}, caller=caller)
        refused(answer, *((404, "not_found") if caller is OTHER else (403, "forbidden")))
    assert service.call("GET", "/offers", caller=OTHER).json["offers"] == []
    refused(service.call("GET", f"/offers/{offer['id']}", caller=OTHER), 404, "not_found")
    refused(service.call("GET", f"/offers/{uuid.uuid4()}"), 404, "not_found")
    made(service, wanted(described(1, vcpu=1), max_offers=3))
    refused(service.call("POST", "/offers", wanted(described(1, vcpu=1))), 403, "quota_exceeded")
    assert service.call("DELETE", f"/offers/{offer['id']}").status_code == 204
    made(service, wanted(described(1, vcpu=1)))


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"hold": "P2D"}, 403, "quota_exceeded"),
        ({"earliest": "2026-11-01T00:00:00Z", "latest_start": "2026-11-02T00:00:00Z"},
         400, "invalid_description"),
        ({"latest_end": "2026-12-08T00:00:00Z"}, 400, "invalid_description"),
        ({"latest_start": EARLIEST, "latest_end": END}, 400, "invalid_description"),
        ({"duration": "P400D"}, 403, "quota_exceeded"),
        ({"template": {"name": "upf"}}, 400, "invalid_description"),
        ({"template": "upf", "ensemble": None}, 400, "invalid_description"),
    ],
)  # fmt: skip
def test_bad_input_is_told(service: Service, more: dict[str, Any], status: int, code: str) -> None:
    refused(service.call("POST", "/offers", wanted(**more)), status, code)


def test_the_same_request_again_gets_the_same_offers(service: Service) -> None:
    body = wanted(id=str(uuid.uuid4()))
    first = made(service, body)
    assert [one["id"] for one in made(service, body)] == [one["id"] for one in first]
    other = wanted(id=body["offer_request"]["id"], hold="PT2H")
    refused(service.call("POST", "/offers", other), 409, "duplicate_name")


def test_a_dry_run_holds_nothing(service: Service) -> None:
    answer = service.call("POST", "/offers", wanted(max_offers=2), query={"dry_run": "true"})
    assert answer.status_code == 200
    assert [one["start"] for one in answer.json["offers"]] == [EARLIEST]
    assert service.call("GET", "/offers").json["offers"] == []


def test_a_range_without_an_answer_says_why_and_when_after_it(service: Service) -> None:
    error = refused(service.call("POST", "/offers", wanted(described(6))), 409, "infeasible")
    why = error["explanation"]
    assert why["stage"] == "static"
    assert why["earliest_start"] is None
    fewer = {"member": "server", "count": [6, 5]}
    assert {one["result"] for one in why["relaxations"] if one["change"] == fewer} == {"fits then"}
    (offer,) = made(service, wanted(described(5)))
    assert accept(service, offer).status_code == 201
    error = refused(service.call("POST", "/offers", wanted(described(6))), 409, "infeasible")
    results = [
        one["result"] for one in error["explanation"]["relaxations"] if one["change"] == fewer
    ]
    assert results == ["fits the fleet when empty"], "the five hosts are taken then"
    body = wanted(described(2), latest_start="2026-12-08T00:00:00Z")
    why = refused(service.call("POST", "/offers", body), 409, "infeasible")["explanation"]
    assert why["stage"] == "time"
    assert (why["earliest_start"], why["earliest_proved"]) == (END, True)


def test_what_no_fleet_could_hold_is_refused_alike_on_a_busy_one(service: Service) -> None:
    never = {"lease": {"start": EARLIEST, "end": END, "name": "never", **described(6)}}

    def why() -> dict[str, Any]:
        error = refused(service.call("POST", "/leases", never), 409, "infeasible")
        found: dict[str, Any] = error["explanation"]
        return found

    idle = why()
    (offer,) = made(service, wanted(described(5)))
    assert accept(service, offer).status_code == 201
    busy = why()
    assert busy["stage"] == "static"
    assert busy["conflict"] == idle["conflict"]
    fewer = [one["result"] for one in (idle["relaxations"][0], busy["relaxations"][0])]
    assert fewer == ["fits now", "fits the fleet when empty"]


def test_a_refused_lease_is_told_when_how_much_and_where_it_fits(service: Service) -> None:
    (offer,) = made(service, wanted(described(4)))
    assert accept(service, offer).status_code == 201
    lease = {"name": "late", "start": EARLIEST, "end": END, "lead": "PT30M", **described(3)}
    answer = service.call("POST", "/leases", {"lease": lease})
    why = refused(answer, 409, "infeasible")["explanation"]
    assert why["earliest_start"] == "2026-12-11T18:30:00Z", "after the lead"
    assert why["earliest_end"] == "2026-12-16T04:30:00Z"
    assert why["earliest_proved"]
    assert why["largest"] == {"role": "server", "count": 1, "of": 3}


def test_a_refused_lease_is_told_the_other_zones_in_which_it_fits(service: Service) -> None:
    def fenced(count: int) -> dict[str, Any]:
        body = described(count)
        fence = {"name": "in", "type": "fence", "members": ["server"], "domains": ["az1"]}
        body["amount"]["policies"].append(fence)
        return {"lease": {"name": "l", "start": EARLIEST, "end": END, **body}}

    assert service.call("POST", "/leases", fenced(4)).status_code == 201
    why = refused(service.call("POST", "/leases", fenced(1)), 409, "infeasible")["explanation"]
    assert (why["other_zones"], why["earliest_start"]) == (["az2"], END)


def test_whoever_yields_to_an_offer_is_told_once_it_is_accepted(service: Service) -> None:
    members = [{"name": "b", "count": 5, "resources": {"VCPU": 30}}]
    decide = {"preemptible": True, "hold": "PT4H"}
    body = {"ensemble": {"name": "batch", "members": members, "decide": decide}}
    assert service.call("POST", "/ensembles", body).status_code == 201
    soon = wanted(
        described(5), earliest="2026-11-21T09:05:00Z", latest_start="2026-11-21T09:30:00Z"
    )
    refused(service.call("POST", "/offers", soon), 409, "infeasible")
    (offer,) = made(service, wanted(described(5), earliest="2026-11-21T12:00:00Z"))
    assert offer["start"] == "2026-11-21T12:00:00Z"
    batch = [one.uuid for one in service.store.ensembles(project_id=None)[0].members]
    assert not any(service.store.effects(one) for one in batch), "nobody is told yet"
    assert accept(service, offer).status_code == 201
    assert all(service.store.effects(one) for one in batch)


def test_whoever_yielded_to_an_offer_that_is_over_gets_the_end_back(service: Service) -> None:
    members = [{"name": "b", "count": 5, "resources": {"VCPU": 30}}]
    decide = {"preemptible": True, "hold": "PT4H"}
    body = {"ensemble": {"name": "batch", "members": members, "decide": decide}}
    assert service.call("POST", "/ensembles", body).status_code == 201
    made(service, wanted(described(5)))
    ends = {one["end"] for one in _batch(service)}
    assert ends == {"2026-12-07T07:55:00Z"}
    service.clock.pass_by(HOUR)
    work(service)
    assert {one["end"] for one in _batch(service)} == {None}


def _batch(service: Service) -> list[dict[str, Any]]:
    booked = service.call("GET", "/bookings", caller=OPERATOR).json["bookings"]
    return [one for one in booked if one["amounts"]["VCPU"] == 30]


@pytest.mark.parametrize(
    ("more", "start"),
    [
        ({}, "2026-12-07T13:00:00Z"),
        ({"lead": "PT10M"}, "2026-12-07T13:10:00Z"),
        ({"latest_start": "2026-12-07T12:50:00Z"}, "2026-12-07T12:50:00Z"),
        ({"earliest": "2026-12-07T12:40:00Z"}, "2026-12-07T12:40:00Z"),
    ],
)
def test_an_offer_tells_no_end_of_others(
    service: Service, more: dict[str, Any], start: str
) -> None:
    lease = {"name": "theirs", "start": EARLIEST, "end": "2026-12-07T12:37:11Z", **described(5)}
    answer = service.call("POST", "/leases", {"lease": lease}, caller=OTHER)
    assert answer.status_code == 201, answer.text
    asked = wanted(described(5), duration="PT1H", **more)
    (offer,) = made(service, asked)
    assert offer["start"] == start
    assert offer["proved"]


def test_an_operators_offer_begins_where_others_end(service: Service) -> None:
    lease = {"name": "theirs", "start": EARLIEST, "end": "2026-12-07T12:37:11Z", **described(5)}
    assert service.call("POST", "/leases", {"lease": lease}, caller=OTHER).status_code == 201
    asked = wanted(described(5), duration="PT1H")
    (offer,) = service.call("POST", "/offers", asked, caller=OPERATOR).json["offers"]
    assert offer["start"] == "2026-12-07T12:37:11Z"
