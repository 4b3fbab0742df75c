"""The owner of a server sees the slices on it, whosever they are, and reports on them."""

from typing import Any

import pytest
from tests.api.native.conftest import refused
from tests.api.native.test_slice_claims import PORT
from tests.api.native.test_slices import FLEET, VMS, described, made, offer, provider, service

from moorage.domain.decisions import ClaimState
from moorage.domain.period import HOUR
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service

__all__ = ["FLEET", "service"]
SLICES = f"/server-providers/{VMS[0]}/slices"


def claimed(service: Service, name: str = "first") -> str:
    """The id of a claim of project-b on the server of project-a."""
    body = described(on_server=provider(service, VMS[0])) | {"name": name}
    held = made(service, body, caller=OTHER)
    path = f"/decisions/{held['decision']['id']}/claims"
    answer = service.call("POST", path, {"claim": {"member": "s[0]"}}, caller=OTHER)
    assert answer.status_code == 201, answer.text
    return str(answer.json["claim"]["id"])


@pytest.fixture
def guest(service: Service) -> str:
    offer(service, VMS[0], TENANT, ["project-b"])
    return claimed(service)


def report(service: Service, one: str, status: str, **more: Any) -> Any:
    caller, query = more.pop("caller", TENANT), more.pop("query", {})
    body = {"slice": {"status": status, **more}}
    return service.call("PATCH", f"{SLICES}/{one}", body, caller=caller, query=query)


def listed(service: Service, **call: Any) -> Any:
    answer = service.call("GET", SLICES, **call)
    assert answer.status_code == 200, answer.text
    return answer.json["slices"]


def test_it_is_listed_reported_and_gone(service: Service, guest: str) -> None:
    shown = {"id": guest, "resources": {"CUSTOM_SESSION": 1}, "project_id": "project-b"}
    for caller in (TENANT, READER, OPERATOR):
        assert listed(service, caller=caller) == [shown | {"status": "building", "slice_id": None}]
    dry = report(service, guest, "active", slice_id=PORT, query={"dry_run": "true"}).json
    active = shown | {"status": "active", "slice_id": PORT}
    assert dry["dry_run"]
    assert dry["slice"] == active
    for _ in range(2):
        assert report(service, guest, "active", slice_id=PORT).json == {"slice": active}
    assert listed(service) == [active]
    ((who, _),) = service.store.bookings(consumer=PORT)
    assert (who.type, who.project_id, who.user_id) == ("SLICE", "project-b", OTHER.user_id)
    assert report(service, guest, "ended").json == {"slice": active | {"status": "ended"}}
    assert listed(service) == []
    assert service.store.consumer(PORT) is None


def test_the_guest_is_told_why_it_failed(service: Service, guest: str) -> None:
    reason = "Quota exceeded for resources: ['port']."
    assert report(service, guest, "failed", reason=reason).json["slice"]["status"] == "failed"
    shown = service.call("GET", f"/claims/{guest}", caller=OTHER).json["claim"]
    assert (shown["status"], shown["reason"]) == ("failed", reason)
    (told,) = service.call("GET", "/events", query={"type": "claim.failed"}, caller=OTHER).json[
        "events"
    ]
    assert told["body"]["reason"] == reason
    assert listed(service) == []
    refused(report(service, guest, "active", slice_id=PORT), 409, "wrong_state")


@pytest.mark.parametrize("verb", [{}, {"on_failure": "redecide"}])
def test_its_own_project_may_say_why_as_well(service: Service, verb: Any) -> None:
    offer(service, VMS[1], TENANT, ["project-b"])
    offer(service, VMS[0], TENANT, ["project-b"])
    held = made(service, described(servers_of=["project-a"]), caller=OTHER)
    path = f"/decisions/{held['decision']['id']}/claims"
    one = service.call("POST", path, {"claim": {"member": "s[0]"}}, caller=OTHER).json["claim"]
    assert one["reason"] is None
    change = {"claim": {"status": "failed", "reason": "no proxy", **verb}}
    answer = service.call("PATCH", f"/claims/{one['id']}", change, caller=OTHER)
    assert (answer.status_code, answer.json["claim"]["reason"]) == (200, "no proxy")


def test_what_is_shared_with_everybody_shows_no_project(service: Service) -> None:
    offer(service, VMS[0], TENANT, "everyone")
    guest = claimed(service)
    assert [one["project_id"] for one in listed(service)] == [None]
    shown = report(service, guest, "active", slice_id=PORT).json["slice"]
    assert shown["project_id"] is None
    assert "project-b" not in str(listed(service))


def test_nobody_else_sees_or_reports_it(service: Service, guest: str) -> None:
    refused(service.call("GET", SLICES, caller=OTHER), 404, "not_found")
    refused(report(service, guest, "ended", caller=OTHER), 404, "not_found")
    refused(report(service, guest, "failed", caller=READER), 403, "forbidden")
    elsewhere = service.call(
        "PATCH", f"/server-providers/{VMS[1]}/slices/{guest}", {"slice": {"status": "failed"}}
    )
    refused(elsewhere, 404, "not_found")
    refused(report(service, PORT, "failed"), 404, "not_found")
    for method, body in (("GET", None), ("PATCH", {"claim": {"status": "failed"}})):
        refused(service.call(method, f"/claims/{guest}", body), 404, "not_found")
    assert [one["status"] for one in listed(service)] == ["building"]


def test_the_owner_reports_no_servers_and_no_slices_elsewhere(service: Service) -> None:
    body = described()
    body["members"] = [{"name": "s", "flavor": "m1.small"}]
    held = made(service, body)
    path = f"/decisions/{held['decision']['id']}/claims"
    claim = {"claim": {"member": "s[0]", "server": {"flavorRef": "m1.small"}}}
    one = service.call("POST", path, claim).json["claim"]["id"]
    refused(report(service, one, "failed"), 404, "not_found")


@pytest.mark.parametrize(
    "body",
    [
        {"status": "active"},
        {"status": "active", "slice_id": "no-uuid"},
        {"status": "active", "slice_id": PORT, "reason": "why"},
        {"status": "ended", "reason": "why"},
        {"status": "ended", "slice_id": PORT},
        {"status": "failed", "slice_id": PORT},
        {"status": "failed", "reason": ""},
        {"status": "failed", "reason": "x" * 1025},
        {"status": "building"},
        {"status": "failed", "on_failure": "redecide"},
    ],
)
def test_nonsense_is_refused(service: Service, guest: str, body: Any) -> None:
    error = refused(report(service, guest, **body), 400, "invalid_description")
    if body.get("slice_id") == "no-uuid":
        assert error["detail"] == "slice.slice_id must be a UUID in lower case"
    assert [one["status"] for one in listed(service)] == ["building"]


def forget(service: Service, guest: str, member: str = "") -> None:
    """Delete the guest's ensemble, or only take the member out of it."""
    path = f"/ensembles/{service.store.claim(guest).ensemble_id}"
    gone = service.call("DELETE", path + member, caller=OTHER, headers={"If-Match": "*"})
    assert gone.status_code == (200 if member else 204), gone.text


@pytest.mark.parametrize("member", ["", "/members/s[0]"])
def test_a_slice_without_its_ensemble_is_still_there_and_can_end(
    service: Service, guest: str, member: str
) -> None:
    report(service, guest, "active", slice_id=PORT)
    forget(service, guest, member)
    (still,) = listed(service)
    assert (still["id"], still["slice_id"], still["status"]) == (guest, PORT, "active")
    assert (still["resources"], still["project_id"]) == ({"CUSTOM_SESSION": 1}, "project-b")
    assert report(service, guest, "ended").json == {"slice": still | {"status": "ended"}}
    assert (listed(service), service.store.consumer(PORT)) == ([], None)


@pytest.mark.parametrize("member", ["", "/members/s[0]"])
def test_a_slice_without_its_ensemble_ends_with_what_its_server_offers(
    service: Service, guest: str, member: str
) -> None:
    report(service, guest, "active", slice_id=PORT)
    forget(service, guest, member)
    gone = service.call("DELETE", f"/server-providers/{VMS[0]}", query={"force": "true"})
    assert gone.status_code == 204, gone.text
    assert service.store.claim(guest).state is ClaimState.ENDED
    told = service.call("GET", "/events", query={"type": "slice.gone"}).json["events"]
    assert [one["subject"] for one in told] == [guest]


def test_a_slice_whose_ensemble_went_before_it_was_made_is_none(
    service: Service, guest: str
) -> None:
    forget(service, guest)
    for claim in (guest, PORT):
        error = refused(report(service, claim, "active", slice_id=PORT), 404, "not_found")
        assert error["detail"] == f"no slice {claim}"


def test_a_refusal_tells_the_owner_nothing_of_the_ensemble(service: Service, guest: str) -> None:
    early = refused(report(service, guest, "ended"), 409, "wrong_state")
    service.clock.pass_by(HOUR)
    late = refused(report(service, guest, "active", slice_id=PORT), 409, "hold_expired")
    for detail in (early["detail"], late["detail"]):
        assert "first" not in detail
        assert detail.endswith(f"moorage server provider slice list {VMS[0]}")


def test_a_page_of_them(service: Service, guest: str) -> None:
    found, link = [], f"{SLICES}?limit=1"
    report(service, guest, "active", slice_id=PORT)
    every = sorted([guest, claimed(service, "second")])
    while link:
        page = service.call("GET", link.removeprefix("/v1")).json
        found += [one["id"] for one in page["slices"]]
        link = next((one["href"] for one in page["slices_links"]), "")
    assert found == every


def test_a_page_begins_after_a_slice_that_is_or_was_there(service: Service, guest: str) -> None:
    first, second = sorted([guest, claimed(service, "second")])
    report(service, first, "failed")
    assert [one["id"] for one in listed(service, query={"marker": first})] == [second]
    offer(service, VMS[1], TENANT, ["project-b"])
    for unknown in ("zzz", PORT):
        answer = service.call("GET", SLICES, query={"marker": unknown})
        assert refused(answer, 404, "not_found")["detail"] == f"no marker {unknown}"
    elsewhere = service.call("GET", f"/server-providers/{VMS[1]}/slices", query={"marker": second})
    refused(elsewhere, 404, "not_found")


def test_the_uuid_of_another_consumer_is_refused(service: Service, guest: str) -> None:
    report(service, guest, "active", slice_id=PORT)
    other = claimed(service, "second")
    error = refused(report(service, other, "active", slice_id=PORT), 409, "duplicate_name")
    told = f"UUID {PORT} is another consumer's already; report that of the slice itself"
    assert error["detail"] == told
    assert [one["status"] for one in listed(service) if one["id"] == other] == ["building"]
