"""`/v1/waitlist` over a real ledger: who waits, in which order, and for how long."""

import uuid
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.domain.period import HOUR, parse_instant
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service
from moorage.usecases.shared.limits import Limits
from moorage.usecases.waitlist.rounds import WaitlistWorker

FLEET = """
fleet: edge
hosts:
  - {name: "n{n}", count: 4, inventories: {VCPU: 32}}
"""
LIMITS = Limits(quotas=QuotaDefaults({QuotaName.WAITLIST: 3}))
START = "2026-12-07T08:00:00Z"
LATER = "2026-12-07T12:00:00Z"


def body(hosts: int = 4, *, name: str = "l", start: str | None = START, **more: Any) -> Any:
    """A lease of whole hosts, for four hours."""
    amount = {"count": hosts, "resources": {"VCPU": 32}}
    return {"lease": {"name": name, "amount": amount, "start": start, "duration": "PT4H"} | more}


def ask(service: Service, status: int, lease: Any, **how: Any) -> Any:
    answer = service.call("POST", "/leases", lease, **how)
    assert answer.status_code == status, answer.text
    return answer.json


def waits(service: Service, hosts: int = 4, **more: Any) -> Any:
    caller = more.pop("caller", TENANT)
    return ask(service, 202, body(hosts, **({"wait": {}} | more)), caller=caller)["entry"]


def leased(service: Service, hosts: int = 4, **more: Any) -> Any:
    caller = more.pop("caller", TENANT)
    return ask(service, 201, body(hosts, **more), caller=caller)["lease"]


def cancel(service: Service, lease: Any) -> None:
    answer = service.call(
        "DELETE", f"/leases/{lease['id']}", caller=OPERATOR, headers={"If-Match": "*"}
    )
    assert answer.status_code == 204, answer.text


def entry(service: Service, one: Any, caller: Any = OPERATOR) -> Any:
    answer = service.call("GET", f"/waitlist/{one['id']}", caller=caller)
    assert answer.status_code == 200, answer.text
    return answer.json["entry"]


def told(service: Service, caller: Any = TENANT) -> list[str]:
    page = service.call("GET", "/events", caller=caller, query={"type": "waitlist.*"}).json
    return [one["type"] for one in page["events"]]


def test_what_is_freed_goes_to_the_first_who_waits(service: Service) -> None:
    first = leased(service)
    one = waits(service, 2, name="one")
    two = waits(service, 3, name="two", caller=OTHER)
    assert (one["status"], one["before"], one["places"]) == ("waiting", 0, 2)
    assert (two["before"], two["waits_for"]) == (1, "capacity")
    assert two["why"].startswith("no placement meets the request")
    assert one["estimate"] == {
        "start": LATER,
        "end": "2026-12-07T16:00:00Z",
        "proved": True,
        "in_range": False,
        "current": True,
    }
    # Both estimates hold together: the second has the hosts after those of the first.
    assert two["estimate"]["start"] == "2026-12-07T16:00:00Z"
    cancel(service, first)
    WaitlistWorker(service.env).run_round()
    assert entry(service, one)["status"] == "granted"
    assert entry(service, one)["lease_id"] == one["id"]
    assert service.call("GET", f"/leases/{one['id']}").json["lease"]["status"] == "pending"
    assert (entry(service, two)["status"], entry(service, two)["before"]) == ("waiting", 0)
    assert entry(service, two)["estimate"]["start"] == LATER
    assert told(service) == ["waitlist.waiting", "waitlist.estimate", "waitlist.granted"]


def test_nobody_overtakes_by_being_quick(service: Service) -> None:
    first = leased(service)
    one = waits(service, 3)
    cancel(service, first)
    # No worker has looked: the newcomer lets the list have its turn.
    refused(service.call("POST", "/leases", body(2), caller=OTHER), 409, "infeasible")
    assert entry(service, one)["status"] == "granted"
    leased(service, 1, caller=OTHER)


@pytest.mark.parametrize("kind", ["ensemble", "offer", "change"])
def test_nobody_overtakes_in_another_way(service: Service, kind: str) -> None:
    small = leased(service, 1, start=LATER, caller=OTHER)
    first = leased(service)
    one = waits(service, 4)
    cancel(service, first)
    roles = [{"name": "web", "resources": {"VCPU": 32}}]
    if kind == "ensemble":
        asked = {"ensemble": {"name": "e", "members": roles, "decide": {"hold": "PT10M"}}}
        answer = service.call("POST", "/ensembles", asked, caller=OTHER)
    elif kind == "offer":
        wanted = {
            "duration": "PT1H",
            "earliest": START,
            "latest_start": START,
            "ensemble": {"members": roles},
        }
        answer = service.call("POST", "/offers", {"offer_request": wanted}, caller=OTHER)
    else:
        change = {"lease": {"start": START, "end": "2026-12-07T16:00:00Z", "generation": 0}}
        answer = service.call("PATCH", f"/leases/{small['id']}", change, caller=OTHER)
    refused(answer, 409, "infeasible")
    assert entry(service, one)["status"] == "granted"


def test_priority_goes_before_time(service: Service) -> None:
    for project in ("project-a", "project-b"):
        said = {"quota": {"lease_priority": 9}}
        service.call("PATCH", f"/quotas/{project}", said, caller=OPERATOR)
    first = leased(service)
    one, two = waits(service, 3), waits(service, 3, priority=5, caller=OTHER)
    high = service.call("POST", "/leases", body(3, priority=10, wait={}))
    refused(high, 403, "quota_exceeded")
    assert (entry(service, one)["before"], two["before"]) == (1, 0)
    cancel(service, first)
    # Who asks with more than those who wait need not let them go first.
    leased(service, 1, priority=9, caller=OTHER)
    WaitlistWorker(service.env).run_round()
    assert entry(service, two)["status"] == "granted"
    assert entry(service, one)["status"] == "waiting"


def test_what_is_told_of_one_that_waits_is_of_the_ledger_as_it_is(service: Service) -> None:
    full = leased(service, name="full")
    one, two, three = (waits(service, hosts, name=f"w{hosts}") for hosts in (1, 2, 3))
    rounds = WaitlistWorker(service.env)
    rounds.run_round()
    assert full["handle"] in three["why"]
    assert entry(service, three) == three, "nothing has moved"
    cancel(service, full)
    found = entry(service, three)["estimate"]
    assert (found["start"], found["proved"], found["current"]) == (
        three["estimate"]["start"],
        *(False, False),
    )
    WaitlistWorker(service.env).run_round()
    assert [entry(service, each)["status"] for each in (one, two)] == ["granted", "granted"]
    found = entry(service, three)
    assert full["handle"] not in found["why"]
    for each in (one, two):
        path = f"/leases/{each['id']}"
        assert service.call("GET", path).json["lease"]["handle"] in found["why"]
    assert (found["estimate"]["start"], found["estimate"]["proved"]) == (LATER, True)


def test_a_later_one_that_keeps_nobody_waiting_is_granted(service: Service) -> None:
    leased(service, 2)
    one = waits(service, 3)
    leased(service, 2, caller=OTHER)
    assert entry(service, one)["status"] == "waiting"


def test_a_range_has_the_earliest_window_at_once(service: Service) -> None:
    leased(service)
    lease = ask(service, 201, body(2, wait={"latest_start": "2026-12-08T00:00:00Z"}))["lease"]
    assert lease["start"] == LATER
    floating = ask(service, 201, body(4, start=None, wait={}))["lease"]
    assert floating["start"] == "2026-11-21T09:00:00Z"


def test_a_range_waits_until_one_of_its_windows_is_free(service: Service) -> None:
    first = leased(service, start="2026-12-07T07:00:00Z", duration="PT12H")
    one = waits(service, 4, wait={"latest_start": LATER})
    assert one["estimate"]["start"] == "2026-12-07T19:00:00Z"
    shorter = {"lease": {"end": "2026-12-07T10:00:00Z", "generation": 0}}
    assert service.call("PATCH", f"/leases/{first['id']}", shorter).status_code == 200
    WaitlistWorker(service.env).run_round()
    lease = service.call("GET", f"/leases/{one['id']}").json["lease"]
    assert (lease["start"], lease["end"]) == ("2026-12-07T10:00:00Z", "2026-12-07T14:00:00Z")


def test_a_lead_is_kept_and_must_begin_in_time(service: Service) -> None:
    leased(service)
    day = {"latest_start": "2026-12-08T00:00:00Z"}
    made = ask(service, 201, body(2, lead="PT1H", wait=day))["lease"]
    assert (made["start"], made["lead"]) == ("2026-12-07T13:00:00Z", "PT1H")
    one = waits(service, 3, lead="PT1H")
    assert one["until"] == "2026-12-07T07:00:00Z"
    service.clock.set(parse_instant("2026-12-07T07:30:00Z"))
    assert entry(service, one)["status"] == "expired"


def test_it_expires_with_its_last_start(service: Service) -> None:
    leased(service)
    one, two = waits(service), waits(service, wait={"until": "2026-11-21T10:00:00Z"})
    service.clock.pass_by(HOUR)
    assert (entry(service, one)["status"], entry(service, two)["status"]) == ("waiting", "expired")
    service.clock.set(parse_instant(START) + 1)
    WaitlistWorker(service.env).run_round()
    assert entry(service, one)["status"] == "expired"
    assert told(service).count("waitlist.expired") == 2
    refused(service.call("DELETE", f"/waitlist/{one['id']}"), 409, "wrong_state")


def test_no_estimate_where_somebody_stays_for_ever(service: Service) -> None:
    role = {"name": "web", "count": 4, "resources": {"VCPU": 32}}
    asked = {"ensemble": {"name": "e", "members": [role], "decide": {"hold": "PT4H"}}}
    assert service.call("POST", "/ensembles", asked).status_code == 201
    one = waits(service)
    assert one["estimate"] is None
    assert one["estimate_note"].startswith("nothing in the way ends early enough")
    service.clock.pass_by(5 * HOUR)  # the hold lapses by time alone
    WaitlistWorker(service.env).run_round()
    assert entry(service, one)["status"] == "granted"


def test_a_quota_that_is_raised_lets_it_pass(service: Service) -> None:
    def set_to(units: int) -> None:
        said = {"quota": {"lease_units": units}}
        answer = service.call("PATCH", "/quotas/project-a", said, caller=OPERATOR)
        assert answer.status_code == 200, answer.text

    set_to(1)
    one = waits(service, 2)
    assert one["waits_for"] == "quota"
    assert one["why"].startswith("lease-units limit 1 used 0 requested 2")
    assert (one["estimate"], one["estimate_note"]) == (None, one["why"])
    # What it may not have, it keeps from nobody.
    cancel(service, leased(service, 4, caller=OTHER))
    set_to(2)
    WaitlistWorker(service.env).run_round()
    assert entry(service, one)["status"] == "granted"


def test_what_cannot_be_granted_any_more_says_why(service: Service) -> None:
    first = leased(service)
    described = {"ensemble": {"name": "e", "members": [{"name": "w", "resources": {"VCPU": 1}}]}}
    made = service.call("POST", "/ensembles", described).json["ensemble"]
    lease = {"name": "l", "ensemble_id": made["id"], "start": START, "duration": "PT4H"}
    one = ask(service, 202, {"lease": lease | {"wait": {}}})["entry"]
    assert one["ensemble_id"] == made["id"]
    gone = service.call("DELETE", f"/ensembles/{made['id']}", headers={"If-Match": "*"})
    assert gone.status_code == 204
    cancel(service, first)
    WaitlistWorker(service.env).run_round()
    failed = entry(service, one)
    assert (failed["status"], failed["lease_id"]) == ("failed", None)
    assert "ensemble" in failed["why"]
    assert told(service)[-1] == "waitlist.failed"


def test_the_same_request_gets_the_same_entry_and_then_its_lease(service: Service) -> None:
    first = leased(service)
    again = body(3, id=str(uuid.uuid4()), wait={})
    one = ask(service, 202, again)["entry"]
    assert ask(service, 202, again)["entry"] == one
    assert ask(service, 202, again, caller=OTHER)["entry"]["id"] != one["id"]
    cancel(service, first)
    WaitlistWorker(service.env).run_round()
    assert ask(service, 201, again)["lease"]["id"] == one["id"]


def test_it_can_be_given_up(service: Service) -> None:
    first = leased(service)
    one = waits(service)
    path = f"/waitlist/{one['id']}"
    refused(service.call("DELETE", path, caller=OTHER), 404, "not_found")
    refused(service.call("GET", path, caller=OTHER), 404, "not_found")
    refused(service.call("DELETE", path, caller=READER), 403, "forbidden")
    stale = {"If-Match": '"99"'}
    refused(service.call("DELETE", path, headers=stale), 412, "precondition_failed")
    assert service.call("DELETE", path, query={"dry_run": "true"}).status_code == 204
    assert service.call("DELETE", path).status_code == 204
    cancel(service, first)
    WaitlistWorker(service.env).run_round()
    assert entry(service, one, READER)["status"] == "cancelled"
    listed = service.call("GET", "/waitlist", query={"status": "cancelled"}).json
    assert [found["id"] for found in listed["entries"]] == [one["id"]]
    assert service.call("GET", "/waitlist", query={"status": "waiting"}).json["entries"] == []
    assert service.call("GET", "/waitlist", caller=OTHER).json["entries"] == []
    refused(service.call("GET", "/waitlist", query={"status": "x"}), 400, "invalid_description")


def test_bounds_and_bad_input(service: Service) -> None:
    leased(service)
    dry = service.call("POST", "/leases", body(wait={}), query={"dry_run": "true"})
    assert (dry.status_code, dry.json["dry_run"]) == (202, True)
    assert service.call("GET", "/waitlist").json["entries"] == []
    # What not even an empty fleet could hold is not waited for.
    static = refused(service.call("POST", "/leases", body(5, wait={})), 409, "infeasible")
    assert static["explanation"]["stage"] == "static"
    for wrong, path in (
        ({"latest_start": "2026-12-07T07:00:00Z"}, "lease.wait.latest_start"),
        ({"until": "2026-11-21T08:00:00Z"}, "lease.wait.until"),
        ({"until": "soon"}, "lease.wait.until"),
        ({"sometime": True}, "lease.wait"),
    ):
        answer = service.call("POST", "/leases", body(wait=wrong))
        assert refused(answer, 400, "invalid_description")["path"] == path
    for _ in range(3):
        waits(service)
    full = refused(service.call("POST", "/leases", body(wait={})), 403, "quota_exceeded")
    assert (full["limit"], full["used"]) == (3, 3)
    waits(service, caller=OTHER)


def test_an_estimate_tells_no_end_of_others(service: Service) -> None:
    theirs: dict[str, Any] = {"start": START, "duration": "PT4H37M11S"}
    ask(service, 201, body(**theirs), caller=OTHER)
    one = waits(service, start=START)
    assert entry(service, one, TENANT)["estimate"]["start"] == "2026-12-07T13:00:00Z"


@pytest.mark.parametrize(
    ("latest", "tenants", "operators"),
    [
        ("2026-12-07T20:00:00Z", "2026-12-07T13:00:00Z", "2026-12-07T12:37:11Z"),
        ("2026-12-07T12:50:00Z", "2026-12-07T12:50:00Z", "2026-12-07T12:37:11Z"),
    ],
    ids=["on the grid", "at the last start"],
)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "granted later"])
def test_a_granted_lease_tells_no_end_of_others(
    service: Service, latest: str, tenants: str, operators: str, *, at_once: bool
) -> None:
    theirs: dict[str, Any] = {"start": START, "duration": "PT4H37M11S"}
    for caller, start in ((TENANT, tenants), (OPERATOR, operators)):
        taken = ask(service, 201, body(**theirs), caller=OTHER)["lease"]
        wait = {"latest_start": latest}
        if at_once:
            mine = ask(service, 201, body(wait=wait), caller=caller)["lease"]
        else:
            more = ask(service, 201, body(start="2026-12-07T12:37:11Z", duration="PT9H"))["lease"]
            waiting = waits(service, wait=wait, caller=caller)
            cancel(service, more)
            WaitlistWorker(service.env).run_round()
            assert entry(service, waiting)["status"] == "granted"
            mine = service.call("GET", f"/leases/{waiting['id']}", caller=OPERATOR).json["lease"]
        assert mine["start"] == start
        cancel(service, mine)
        cancel(service, taken)
