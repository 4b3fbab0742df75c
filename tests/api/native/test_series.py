"""`/v1/series` over a real ledger: granted together or not at all, extended, renamed, cancelled."""

import uuid
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.domain.idempotency import record_id
from moorage.domain.period import DAY, HOUR, MINUTE, parse_instant
from moorage.domain.quotas import QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service
from moorage.usecases.effect_dispatch import OutwardActions, carry_out
from moorage.usecases.shared.limits import Limits

FLEET = """
fleet: edge
hosts:
  - {name: "n{n}", count: 4, inventories: {VCPU: 32}}
"""
LIMITS = Limits(
    occurrences=12, quotas=QuotaDefaults({QuotaName.OFFERS: 1}), explanation_budget=MINUTE
)
DATES = ["2026-12-07", "2026-12-08", "2026-12-09", "2026-12-10", "2026-12-11"]


def amount(count: int = 4) -> dict[str, Any]:
    policies = [{"name": "one-per-host", "type": "anti-affinity", "members": ["server"]}]
    return {"amount": {"count": count, "resources": {"VCPU": 20}, "policies": policies}}


def wanted(count: int = 4, **more: Any) -> dict[str, Any]:
    asked = {
        "name": "shop",
        "start": "2026-12-07T08:00",
        "duration": "PT10H",
        "every": "weekdays",
        "times": 5,
        "zone": "Europe/Berlin",
    }
    said = asked | amount(count) | more
    return {"series": {name: value for name, value in said.items() if value is not None}}


def ask(service: Service, body: dict[str, Any], **more: Any) -> Any:
    return service.call("POST", "/series", body, **more)


def made(service: Service, body: dict[str, Any]) -> dict[str, Any]:
    answer = ask(service, body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json["series"]
    return found


def shown(service: Service, series: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = service.call("GET", f"/series/{series['id']}").json["series"]
    return found


def leases(service: Service, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.call("GET", "/leases", query=query).json["leases"]
    return found


def busy(service: Service, *starts: str, count: int = 1) -> None:
    """Lease four hours of one host more at each of these times."""
    for start in starts:
        lease = {"name": "other", "start": start, "duration": "PT4H", **amount(count)}
        assert service.call("POST", "/leases", {"lease": lease}).status_code == 201


def work(service: Service) -> None:
    """Do what is due, as a worker would."""
    while due := service.store.due_effects(1):
        carry_out(service.env, OutwardActions(), due[0])


def test_each_occurrence_is_a_lease_of_its_own(service: Service) -> None:
    refused(ask(service, wanted(priority=7)), 403, "quota_exceeded")
    quota(service, lease_priority=7)
    answer = ask(service, wanted(lead="PT30M", on_end=["notify"], priority=7))
    assert answer.status_code == 201, answer.text
    series = answer.json["series"]
    assert answer.headers["Location"].endswith(f"/series/{series['id']}")
    assert (series["status"], series["times"], series["granted"]) == ("pending", 5, 5)
    assert (series["every"], series["start"]) == ("weekdays", "2026-12-07T08:00")
    found = series["occurrences"]
    assert [one["start"] for one in found] == [f"{day}T07:00:00Z" for day in DATES]
    assert [one["end"] for one in found] == [f"{day}T17:00:00Z" for day in DATES]
    assert [one["name"] for one in found] == [f"shop-{n}" for n in range(1, 6)]
    assert {one.priority for _, one in service.store.bookings()} == {7}
    listed = leases(service, series=series["id"])
    assert [one["id"] for one in listed] == [one["lease_id"] for one in found]
    assert {one["lead"] for one in listed} == {"PT30M"}
    assert {one["priority"] for one in listed} == {7}
    assert [one["occurrence"]["index"] for one in listed] == [1, 2, 3, 4, 5]
    assert len({one["ensemble_id"] for one in listed}) == 5
    assert leases(service, series=str(uuid.UUID(int=1))) == []
    # Nothing is left of how it was made, and its places are everybody's obstacle.
    assert service.call("GET", "/offers", query={"over": "true"}).json["offers"] == []
    other = {"name": "x", "start": "2026-12-09T16:30:00Z", "duration": "PT1H", **amount(1)}
    refused(service.call("POST", "/leases", {"lease": other}), 409, "infeasible")
    service.clock.pass_by(HOUR)
    work(service)
    assert shown(service, series)["granted"] == 5, "what was kept for a while is kept for good"
    refused(service.call("POST", "/leases", {"lease": other}), 409, "infeasible")


def test_its_leases_begin_and_end_and_close_it(service: Service) -> None:
    series = made(service, wanted(2, times=2))
    service.clock.set(parse_instant("2026-12-07T07:30:00Z"))
    work(service)
    now = shown(service, series)
    assert now["status"] == "active"
    assert [one["status"] for one in now["occurrences"]] == ["active", "pending"]
    first = leases(service)[0]
    claim = {"member": "server[0]", "server": {"resources": {"VCPU": 20}}}
    answer = service.call("POST", f"/decisions/{first['decision_id']}/claims", {"claim": claim})
    assert answer.status_code == 201, answer.text
    service.clock.pass_by(2 * DAY)
    work(service)
    now = shown(service, series)
    assert (now["status"], now["closed"]) == ("closed", 2)
    refused(extended(service, now, times=1), 409, "wrong_state")


def test_a_refusal_says_which_do_not_fit_and_what_would(service: Service) -> None:
    busy(service, "2026-12-08T08:00:00Z", "2026-12-10T13:00:00Z")
    error = refused(ask(service, wanted()), 409, "series_infeasible")
    assert error["detail"] == "2 of 5 occurrences do not fit"
    assert [one["index"] for one in error["occurrences"]] == [2, 4]
    assert error["explanation"]["stage"] == "time"
    for one in error["occurrences"]:
        known = service.call("GET", f"/explanations/{one['explanation_id']}")
        assert known.json["explanation"]["verdict"] == "infeasible"
    without, clock, later = error["instead"]
    assert without == {"fits": 3, "without": [2, 4], "start": None}
    # 18:00 in Berlin is 17:00: the lease of the 10th ends at that very instant.
    assert clock == {"fits": 5, "without": None, "start": "2026-12-07T18:00"}
    assert later == {"fits": 5, "without": None, "start": "2026-12-11T08:00"}
    assert leases(service, name="shop-1") == []
    assert service.call("GET", "/series").json["series"] == []
    # Nothing is kept of what was refused, and each change is one that fits.
    for start in (clock["start"], later["start"]):
        assert ask(service, wanted(start=start), query={"dry_run": "true"}).status_code == 200
    partly = made(service, wanted(as_many_as_fit=True))
    assert [one["index"] for one in partly["occurrences"]] == [1, 3, 5]
    assert [one["index"] for one in partly["left_out"]] == [2, 4]
    assert partly["left_out"][0]["why"].startswith("time: lease L1 from")
    assert shown(service, partly)["left_out"] == partly["left_out"]


def test_what_never_fits_is_refused_even_partly(service: Service) -> None:
    body = wanted(5, times=2, as_many_as_fit=True)
    error = refused(ask(service, body), 409, "series_infeasible")
    assert len(error["occurrences"]) == 2
    assert "instead" not in error


def test_a_dry_run_shows_every_window_and_writes_nothing(service: Service) -> None:
    answer = ask(service, wanted(), query={"dry_run": "true"})
    assert answer.status_code == 200, answer.text
    assert answer.json["dry_run"] is True
    found = answer.json["series"]["occurrences"]
    assert [one["start"][:10] for one in found] == DATES
    assert {one["lease_id"] for one in found} == {None}
    busy(service, "2026-12-08T08:00:00Z")
    before = service.store.snapshot().revision
    error = refused(ask(service, wanted(), query={"dry_run": "true"}), 409, "series_infeasible")
    assert error["occurrences"][0]["explanation_id"] is None
    assert service.store.snapshot().revision == before


def extended(service: Service, series: dict[str, Any], **more: Any) -> Any:
    body = {"series": {"generation": series["generation"], **more}}
    return service.call("POST", f"/series/{series['id']}/extend", body)


def test_it_is_extended_at_its_end_all_or_none(service: Service) -> None:
    series = made(service, wanted())
    busy(service, "2026-12-15T08:00:00Z")
    error = refused(extended(service, series, times=2), 409, "series_infeasible")
    assert [one["index"] for one in error["occurrences"]] == [7]
    assert error["instead"] == [{"fits": 1, "without": [7], "start": None}]
    answer = extended(service, series, until_date="2026-12-16", as_many_as_fit=True)
    assert answer.status_code == 200, answer.text
    after = answer.json["series"]
    assert [one["index"] for one in after["occurrences"]] == [1, 2, 3, 4, 5, 6, 8]
    assert (after["times"], after["granted"]) == (8, 7)
    refused(extended(service, series, times=1), 409, "concurrent_update")
    error = refused(extended(service, after, times=5), 403, "quota_exceeded")
    assert (error["limit"], error["used"], error["requested"]) == (12, 8, 5)


def test_who_extends_it_to_a_date_that_it_reaches_hears_until_when_it_is_there(
    service: Service,
) -> None:
    series = made(service, wanted())
    for date, said in (
        (
            DATES[2],
            f"exist already: the series is there until number 5, which starts on {DATES[4]}",
        ),
        ("2026-12-13", f"which starts on {DATES[4]}; the next would start on 2026-12-14"),
    ):
        answer = extended(service, series, until_date=date)
        assert refused(answer, 400, "invalid_description")["detail"].endswith(said)


def test_what_has_started_is_not_cancelled_though_no_worker_has_looked(service: Service) -> None:
    series = made(service, wanted())
    path = f"/series/{series['id']}"
    service.clock.set(parse_instant("2026-12-07T09:00:00Z"))
    assert shown(service, series)["occurrences"][0]["status"] != "active"
    error = refused(service.call("DELETE", path, query={"only": 1}), 409, "wrong_state")
    assert "occurrence 1 is started" in error["detail"]
    answer = service.call("DELETE", path)
    assert [one["index"] for one in answer.json["cancelled"]] == [2, 3, 4, 5]


def test_what_has_not_started_is_cancelled(service: Service) -> None:
    series = made(service, wanted())
    path = f"/series/{series['id']}"
    service.clock.set(parse_instant("2026-12-08T09:00:00Z"))
    work(service)
    refused(service.call("DELETE", path, query={"only": 2}), 409, "wrong_state")
    refused(service.call("DELETE", path, query={"only": 9}), 404, "not_found")
    refused(service.call("DELETE", path, query={"only": 3, "from": 3}), 400, "invalid_description")
    refused(service.call("DELETE", path, query={"from": "x"}), 400, "invalid_description")
    answer = service.call("DELETE", path, query={"only": 4, "dry_run": "true"})
    assert [one["index"] for one in answer.json["cancelled"]] == [4]
    for query, gone in (({"only": 4}, [4]), ({"from": 5}, [5]), ({}, [3])):
        answer = service.call("DELETE", path, query=query)
        assert answer.status_code == 200, answer.text
        assert [one["index"] for one in answer.json["cancelled"]] == gone
    states = [one["status"] for one in shown(service, series)["occurrences"]]
    assert states == ["closed", "active", "closed", "closed", "closed"]
    refused(service.call("DELETE", path), 409, "wrong_state")


def test_it_is_renamed_with_its_leases(service: Service) -> None:
    series = made(service, wanted(2, times=3))
    own = series["occurrences"][1]["lease_id"]
    lease = service.call("GET", f"/leases/{own}").json["lease"]
    change = {"lease": {"name": "mine", "generation": lease["generation"]}}
    assert service.call("PATCH", f"/leases/{own}", change).status_code == 200
    body = {"series": {"name": "store", "generation": series["generation"]}}
    answer = service.call("PATCH", f"/series/{series['id']}", body)
    assert answer.status_code == 200, answer.text
    names = [one["name"] for one in answer.json["series"]["occurrences"]]
    assert names == ["store-1", "mine", "store-3"]
    refused(service.call("PATCH", f"/series/{series['id']}", body), 409, "concurrent_update")


def quota(service: Service, **limits: Any) -> None:
    answer = service.call("PATCH", "/quotas/project-a", {"quota": limits}, caller=OPERATOR)
    assert answer.status_code == 200, answer.text


def test_quotas_count_all_of_it(service: Service) -> None:
    quota(service, leases=3)
    error = refused(ask(service, wanted()), 403, "quota_exceeded")
    assert "(occurrence 4, 2026-12-10T07:00:00Z)" in error["detail"]
    assert error["quota"] == "leases"
    assert service.call("GET", "/series").json["series"] == []
    partly = made(service, wanted(as_many_as_fit=True))
    assert [one["index"] for one in partly["occurrences"]] == [1, 2, 3]
    assert partly["left_out"][0]["why"].startswith("leases limit 3 used 3")


def test_unit_hours_are_those_of_the_whole_series(service: Service) -> None:
    quota(service, lease_unit_hours=150)
    refused(ask(service, wanted()), 403, "quota_exceeded")
    assert made(service, wanted(3))["granted"] == 5, "five times ten hours of three places"


def test_the_same_request_gets_the_same_series(service: Service) -> None:
    body: dict[str, Any] = wanted(id=str(uuid.UUID(int=5, version=4)))
    first = made(service, body)
    assert made(service, body) == first
    assert len(leases(service)) == 5
    body["series"]["times"] = 4
    refused(ask(service, body), 409, "duplicate_name")
    refused(ask(service, body, caller=OTHER), 409, "series_infeasible")


def test_it_is_its_projects_alone(service: Service) -> None:
    series = made(service, wanted())
    path = f"/series/{series['id']}"
    for method, more, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("PATCH", "", {"series": {"name": "x", "generation": 0}}),
        ("POST", "/extend", {"series": {"times": 1, "generation": 0}}),
    ):
        refused(service.call(method, path + more, body, caller=OTHER), 404, "not_found")
    assert service.call("GET", "/series", caller=OTHER).json["series"] == []
    listed = service.call("GET", "/series", caller=OPERATOR, query={"all_projects": "true"})
    assert [one["id"] for one in listed.json["series"]] == [series["id"]]
    refused(service.call("DELETE", path, caller=READER), 403, "forbidden")
    assert service.call("GET", path, caller=READER).status_code == 200


def test_pages_of_series(service: Service) -> None:
    made_ = [made(service, wanted(1, times=1, name=f"s{n}"))["id"] for n in range(3)]
    first = service.call("GET", "/series", query={"limit": 2}).json
    assert [one["id"] for one in first["series"]] == made_[:2]
    rest = service.call("GET", "/series", query={"limit": 2, "marker": made_[1]}).json
    assert [one["id"] for one in rest["series"]] == made_[2:]
    named = service.call("GET", "/series", query={"name": "s1"}).json
    assert [one["id"] for one in named["series"]] == made_[1:2]


def test_events_tell_of_its_leases_and_not_of_how_it_was_made(service: Service) -> None:
    busy(service, "2026-12-11T08:00:00Z")
    refused(ask(service, wanted()), 409, "series_infeasible")
    series = made(service, wanted(times=2))
    query = {"type": "lease.*"}
    found = service.call("GET", "/events", query=query).json["events"]
    told = [(one["type"], one["body"].get("series"), one["body"].get("index")) for one in found]
    assert told == [
        ("lease.pending", None, None),
        ("lease.pending", series["id"], 1),
        ("lease.pending", series["id"], 2),
    ]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"every": "often"}, "series.every"),
        ({"zone": "Mars/Olympus"}, "series.zone"),
        ({"zone": "../../etc/localtime"}, "series.zone"),
        ({"start": "tomorrow"}, "series.start"),
        ({"start": "2026-11-20T08:00"}, "series.start"),
        ({"start": "0001-01-01T00:00"}, "series.start"),
        ({"duration": "PT0S"}, "series.duration"),
        ({"duration": "P2D"}, "series.duration"),
        ({"duration": "PT20H", "lead": "PT3H", "cleaning": "PT2H"}, "series.duration"),
        ({"times": None}, "series.times"),
        ({"until_date": "2026-12-24"}, "series.times"),
        ({"times": None, "until_date": "24.12."}, "series.until_date"),
        ({"times": None, "until_date": "2026-12-06"}, "series.until_date"),
        ({"template": {"name": "shop"}}, "series"),
        ({"expiry": "PT11H"}, "lease.expiry"),
        ({"name": "x" * 255}, "series.name"),
    ],
)
def test_bad_input_is_named(service: Service, change: dict[str, Any], path: str) -> None:
    error = refused(ask(service, wanted(**change)), 400, "invalid_description")
    assert error["path"] == path


def test_a_lead_that_would_begin_before_now_is_refused(service: Service) -> None:
    soon = wanted(start="2026-11-22T08:00", lead="PT24H", every="weekly")
    refused(ask(service, soon), 400, "lead_too_long")


def test_it_is_bounded(service: Service) -> None:
    error = refused(ask(service, wanted(times=13)), 403, "quota_exceeded")
    assert (error["limit"], error["requested"]) == (12, 13)
    refused(ask(service, wanted(times=None, until_date="2030-01-01")), 403, "quota_exceeded")
    far = refused(ask(service, wanted(every="6 months", times=12)), 403, "quota_exceeded")
    assert "ahead of now: 1095d at most (lease_horizon), not " in far["detail"]


def test_a_start_with_an_offset_is_an_instant_and_none_is_now(service: Service) -> None:
    series = made(service, wanted(1, start="2026-12-07T00:30:00+01:00", zone="America/New_York"))
    assert series["start"] == "2026-12-06T18:30"
    assert series["occurrences"][0]["start"] == "2026-12-07T23:30:00Z", "Sunday is no weekday"
    now = made(service, wanted(1, start=None, zone=None, every="daily", times=2, name="now"))
    assert [one["start"] for one in now["occurrences"]] == [
        "2026-11-21T09:00:00Z",
        "2026-11-22T09:00:00Z",
    ]


def test_what_is_kept_for_it_is_nobodys_offer(service: Service) -> None:
    """Whoever finds out the id of what is kept can neither see nor take nor drop it."""
    seen: list[int] = []
    commit = service.store.commit

    def looking(changeset: Any) -> Any:
        found = commit(changeset)
        for one in service.store.offers(project_id=None, series_id=SERIES):
            for method, path in (("GET", ""), ("POST", "/accept"), ("DELETE", "")):
                body: dict[str, Any] | None = {"lease": {}} if path else None
                answer = service.call(method, f"/offers/{one.id}{path}", body)
                seen.append(answer.status_code)
        return found

    service.store.commit = looking  # type: ignore[method-assign]  # to look in between
    made(service, wanted(times=2, id=KEY))
    assert seen
    assert set(seen) == {404}
    service.clock.pass_by(10 * MINUTE)


KEY = str(uuid.UUID(int=77, version=4))
SERIES = record_id(KEY, TENANT.project_id)
