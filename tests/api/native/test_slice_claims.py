"""Claims of slices: without Nova, from the hold to the end."""

from typing import Any

import pytest
from tests.api.native.conftest import refused
from tests.api.native.test_slices import FLEET, VMS, described, made, offer, provider, put, service

from moorage.domain.bookings import BookingState
from moorage.domain.period import HOUR
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service

__all__ = ["FLEET", "service"]
PORT = "bbbbbbbb-0000-4000-8000-00000000000b"


def claim(service: Service, held: Any, member: str = "s[0]", **body: Any) -> Any:
    path = f"/decisions/{held['decision']['id']}/claims"
    return service.call("POST", path, {"claim": {"member": member, **body}})


def tell(service: Service, one: Any, status: str, **more: Any) -> Any:
    return service.call("PATCH", f"/claims/{one['id']}", {"claim": {"status": status, **more}})


def status(service: Service, one: Any) -> str:
    return str(service.call("GET", f"/claims/{one['id']}").json["claim"]["status"])


@pytest.fixture
def held(service: Service) -> Any:
    return made(service, described(count=2))


def test_a_slice_is_claimed_and_taken_without_nova(service: Service, held: Any) -> None:
    one = claim(service, held).json["claim"]
    assert (one["present_as"], one["server_patch"]) == (None, None)
    assert one["comparison"] == {"verdict": "matches", "diff": []}
    active = tell(service, one, "active", server_id=PORT)
    assert active.json["claim"]["status"] == "active"
    ((who, there),) = service.store.bookings(consumer=PORT)
    assert (who.type, who.project_id) == ("SLICE", TENANT.project_id)
    assert (there.state, dict(there.amounts)) == (BookingState.ALLOCATED, {"CUSTOM_SESSION": 1})
    assert tell(service, one, "active", server_id=PORT).status_code == 200


def test_its_owner_says_that_it_is_gone(service: Service, held: Any) -> None:
    one = claim(service, held).json["claim"]
    refused(tell(service, one, "ended"), 409, "wrong_state")
    tell(service, one, "active", server_id=PORT)
    service.call("POST", f"/decisions/{held['decision']['id']}/confirm", headers={"If-Match": "*"})
    dry = service.call(
        "PATCH", f"/claims/{one['id']}", {"claim": {"status": "ended"}}, query={"dry_run": "true"}
    )
    assert (dry.json["claim"]["status"], status(service, one)) == ("ended", "active")
    for _ in range(2):
        assert tell(service, one, "ended").json["claim"]["status"] == "ended"
    assert service.store.consumer(PORT) is None
    refused(tell(service, one, "active", server_id=PORT), 409, "wrong_state")


def test_a_place_of_a_held_decision_returns(service: Service, held: Any) -> None:
    one = claim(service, held).json["claim"]
    tell(service, one, "active", server_id=PORT)
    tell(service, one, "ended")
    again = claim(service, held)
    assert again.status_code == 201, again.text


def test_places_stay_until_they_lapse_when_their_server_is_shared_no_more(
    service: Service,
) -> None:
    third = provider(service, VMS[2])
    offer(service, VMS[2], OTHER, "everyone")
    held = made(service, described(on_server=third))
    offer(service, VMS[2], OTHER)
    for _ in range(2):  # the place returns with the end of its slice, as the decision is held
        one = claim(service, held).json["claim"]
        assert tell(service, one, "active", server_id=PORT).status_code == 200
        assert tell(service, one, "ended").status_code == 200
    body = {"decision": {"ensemble_id": held["ensemble"]["id"]}}
    refused(service.call("POST", "/decisions", body), 409, "infeasible")
    service.clock.pass_by(HOUR)
    refused(claim(service, held), 409, "hold_expired")
    refused(service.call("POST", "/decisions", body), 409, "infeasible")


def test_the_claim_of_a_server_does_not_end_so(service: Service) -> None:
    body = described()
    body["members"] = [{"name": "s", "flavor": "m1.small"}]
    held = made(service, body)
    refused(claim(service, held), 400, "invalid_description")
    one = claim(service, held, server={"flavorRef": "m1.small"}).json["claim"]
    assert one["present_as"]["header"]
    tell(service, one, "active", server_id=PORT)
    error = refused(tell(service, one, "ended"), 409, "wrong_state")
    assert "Nova" in error["detail"]


def test_no_more_is_claimed_than_was_placed(service: Service, held: Any) -> None:
    more = {"resources": {"CUSTOM_SESSION": 2}}
    refused(claim(service, held, server=more), 409, "description_mismatch")
    refused(tell(service, claim(service, held).json["claim"], "active"), 400, "invalid_description")


def test_an_active_slice_follows_and_ends_with_its_server(service: Service) -> None:
    held = made(service, described())
    one = claim(service, held).json["claim"]
    tell(service, one, "active", server_id=PORT)
    ensemble = held["ensemble"]["id"]
    shown = service.call("GET", f"/ensembles/{ensemble}/members/s[0]", caller=OPERATOR).json
    before = shown["member"]["host"]
    (vm,) = (vm for vm, host in zip(VMS, ("h1", "h2"), strict=False) if host == before)
    put(service, vm, TENANT.project_id, "h3")
    shown = service.call("GET", f"/ensembles/{ensemble}/members/s[0]", caller=OPERATOR).json
    assert shown["member"]["host"] == "h3"
    path = f"/server-providers/{vm}"
    assert service.call("DELETE", path, query={"force": "true"}).status_code == 204
    assert status(service, one) == "ended"
    told = service.call("GET", "/events", query={"type": "slice.lost"}).json["events"]
    assert [(one["type"], one["subject"]) for one in told] == [("slice.lost", PORT)]


def test_a_guest_is_told_when_the_owner_ends_it(service: Service) -> None:
    offer(service, VMS[0], TENANT, ["project-b"])
    body = described(on_server=VMS[0])
    provider = service.call("GET", f"/server-providers/{VMS[0]}").json["server_provider"]["id"]
    body["members"][0]["on_server"] = provider
    held = made(service, body, caller=OTHER)
    path = f"/decisions/{held['decision']['id']}/claims"
    one = service.call("POST", path, {"claim": {"member": "s[0]"}}, caller=OTHER).json["claim"]
    active = {"claim": {"status": "active", "server_id": PORT}}
    assert service.call("PATCH", f"/claims/{one['id']}", active, caller=OTHER).status_code == 200
    gone = f"/server-providers/{VMS[0]}"
    refused(service.call("DELETE", gone), 409, "in_use")
    assert service.call("DELETE", gone, query={"force": "true"}).status_code == 204
    told = service.call("GET", "/events", caller=OTHER).json["events"]
    assert {"slice.lost", "claim.ended"} <= {event["type"] for event in told}
    assert VMS[0] not in str(told)
    last = slices_told(service, TENANT)[-1]
    assert (last[0], last[1]["slice"], last[1]["status"]) == ("gone", PORT, "ended")


def slices_told(service: Service, caller: Any) -> list[tuple[str, Any]]:
    found = service.call("GET", "/events", query={"type": "slice.*"}, caller=caller).json["events"]
    return [(one["type"].removeprefix("slice."), one["body"]) for one in found]


@pytest.mark.parametrize(("shared", "project"), [(["project-b"], "project-b"), ("everyone", None)])
def test_the_owner_is_told_of_every_claim(service: Service, shared: Any, project: Any) -> None:
    """So a subscription can make and remove what the slice stands for."""
    offer(service, VMS[0], TENANT, shared)
    shown = service.call("GET", f"/server-providers/{VMS[0]}").json["server_provider"]
    held = made(service, described(on_server=shown["id"], count=2), caller=OTHER)
    path = f"/decisions/{held['decision']['id']}/claims"
    for member, steps in (
        ("s[0]", ({"status": "active", "server_id": PORT}, {"status": "ended"})),
        ("s[1]", ({"status": "failed"},)),
    ):
        one = service.call("POST", path, {"claim": {"member": member}}, caller=OTHER).json["claim"]
        for step in steps:
            answer = service.call("PATCH", f"/claims/{one['id']}", {"claim": step}, caller=OTHER)
            assert answer.status_code == 200, answer.text
    told = slices_told(service, TENANT)
    assert [(word, body["status"], body["slice"]) for word, body in told] == [
        ("claimed", "building", None),
        ("active", "active", PORT),
        ("gone", "ended", PORT),
        ("claimed", "building", None),
        ("gone", "failed", None),
    ]
    for _, body in told:
        assert (body["server_provider"], body["server"]) == (shown["id"], VMS[0])
        assert (body["resources"], body["project"]) == ({"CUSTOM_SESSION": 1}, project)
    assert slices_told(service, OTHER) == []
