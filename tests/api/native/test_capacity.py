"""Capacity over the native API: what is told, to whom, and what is refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.testing.service import NINE, OPERATOR, TENANT, Service
from moorage.usecases.capacity import scope

FLEET = """
fleet: small
topology:
  location:
    levels: [zone, rack]
    domains:
      - {name: az1, level: zone}
      - {name: "r{n}", count: 2, level: rack, parent: az1}
hosts:
  - name: "h{n}"
    count: 4
    inventories: {VCPU: 16, MEMORY_MB: 32768}
    place: {location: {name: "r{n}", count: 2}}
flavors:
  - {name: m1.large, resources: {VCPU: 6, MEMORY_MB: 8192}}
"""
DAY = {"from": "2026-11-21T09:00:00Z", "to": "2026-11-22T09:00:00Z"}


@pytest.fixture(scope="module")
def idle() -> Iterator[Service]:
    """One that nothing is written to."""
    made = Service(FLEET)
    yield made
    made.close()


def asked(service: Service, path: str, *, caller: Any = OPERATOR, **query: str) -> Any:
    answer = service.call("GET", path, caller=caller, query=query)
    assert answer.status_code == 200, answer.json
    return answer.json


def leased(service: Service, count: int, start: str, end: str) -> None:
    body = {
        "name": "later",
        "start": start,
        "end": end,
        "ensemble": {
            "name": "later",
            "members": [{"name": "s", "count": count, "flavor": "m1.large"}],
        },
    }
    answer = service.call("POST", "/leases", {"lease": body})
    assert answer.status_code == 201, answer.json


def test_operators_see_totals_and_every_change(service: Service) -> None:
    leased(service, 2, "2026-11-21T12:00:00Z", "2026-11-21T18:00:00Z")
    found = asked(service, "/capacity", flavor="m1.large", **DAY)["capacity"]
    (part,) = found["parts"]
    assert found["exact"]
    assert part["hosts"] == 4
    rows = [
        (row["at"][11:16], row["total"], row["reserved"], row["allocated"], row["available"])
        for row in part["resources"]["VCPU"]
    ]
    assert rows == [("09:00", 64, 0, 0, 64), ("12:00", 64, 12, 0, 52), ("18:00", 64, 0, 0, 64)]
    counts = [(row["at"][11:16], row["count"]) for row in part["fit"]]
    assert counts == [("09:00", 8), ("12:00", 6), ("18:00", 8)]


def test_a_step_tells_the_worst_of_it(service: Service) -> None:
    leased(service, 2, "2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z")
    found = asked(service, "/capacity", flavor="m1.large", step="PT5H", by="rack", **DAY)
    parts = found["capacity"]["parts"]
    assert [one["domain"] for one in parts] == ["r1", "r2"]
    first = [sum(one["fit"][step]["count"] for one in parts) for step in range(5)]
    assert first == [6, 8, 8, 8, 8]
    assert [sum(one["resources"]["VCPU"][0][key] for one in parts) for key in ("reserved",)] == [12]


def test_busy_is_a_part_of_what_is_there(service: Service) -> None:
    leased(service, 2, "2026-11-21T12:00:00Z", "2026-11-21T18:00:00Z")
    down = {"start": "2026-11-21T14:00:00Z", "end": "2026-11-21T20:00:00Z"}
    window = {"kind": "maintenance", "hosts": ["h3", "h4"], **down}
    made = service.call("POST", "/capacity/planned", {"window": window}, caller=OPERATOR)
    assert made.status_code == 201, made.json
    (every,) = asked(service, "/capacity", by="zone", **DAY)["capacity"]["parts"]
    keys = ("total", "away", "reserved", "available", "busy")
    rows = [(row["at"][11:16], *(row[k] for k in keys)) for row in every["resources"]["VCPU"]]
    assert rows == [
        ("09:00", 64, 0, 0, 64, 0.0),
        ("12:00", 64, 0, 12, 52, 0.1875),
        ("14:00", 32, 32, 12, 20, 0.375),
        ("18:00", 32, 32, 0, 32, 0.0),
        ("20:00", 64, 0, 0, 64, 0.0),
    ]
    (step,) = asked(service, "/capacity", step="P1D", **DAY)["capacity"]["parts"]
    (row,) = step["resources"]["VCPU"]
    assert [row[k] for k in keys] == [32, 32, 12, 20, 0.375]
    parts = asked(service, "/capacity", by="host", zone="r2", **DAY)["capacity"]["parts"]
    assert {one["domain"] for one in parts} == {"h3", "h4"}
    gone = [part["resources"]["VCPU"][1] for part in parts]
    assert [(row["total"], row["away"], row["busy"]) for row in gone] == [(0, 16, 1.0)] * 2
    (rough,) = asked(service, "/capacity", caller=TENANT, **DAY)["capacity"]["parts"]
    assert [row["busy"] for row in rough["resources"]["VCPU"]] == [0, 0.25, 0.375, 0, 0]


def test_what_is_booked_on_hosts_that_are_away_is_no_part_of_the_total(service: Service) -> None:
    members = [{"name": "old", "count": 8, "flavor": "m1.large"}]
    body = {"name": "old", "members": members, "decide": {"hold": "PT4H"}}
    assert service.call("POST", "/ensembles", {"ensemble": body}).status_code == 201
    down = {"start": "2026-11-21T10:00:00Z", "end": "2026-11-21T20:00:00Z"}
    window = {"kind": "maintenance", "hosts": ["h3", "h4"], **down}
    made = service.call("POST", "/capacity/planned", {"window": window}, caller=OPERATOR)
    assert made.status_code == 201, made.json
    (part,) = asked(service, "/capacity", **DAY)["capacity"]["parts"]
    keys = ("total", "reserved", "allocated", "available", "away", "unbacked")
    rows = [tuple(row[key] for key in keys) for row in part["resources"]["VCPU"]]
    assert rows[:2] == [(64, 48, 0, 16, 0, 0), (32, 24, 0, 8, 32, 24)]
    assert all(row[0] == sum(row[1:4]) for row in rows)


def test_tenants_see_free_or_busy_and_rough_counts(service: Service) -> None:
    found = asked(service, "/capacity", caller=TENANT, flavor="m1.large", **DAY)["capacity"]
    (part,) = found["parts"]
    assert not found["exact"]
    assert set(part) == {"domain", "resources", "fit"}
    (row,) = part["resources"]["VCPU"]
    assert set(row) == {"at", "available", "busy"}
    assert (row["available"], row["busy"]) == (50, 0.0)
    assert part["fit"][0]["count"] == 8  # 8 to 9
    fit = {"fit": {"flavor": "m1.large"}}
    said = service.call("POST", "/capacity/fit", fit).json["fit"]
    assert (said["additional"], said["exact"]) == (8, False)
    assert "facts" not in str(said)
    said = service.call("POST", "/capacity/fit", fit, caller=OPERATOR).json["fit"]
    assert (said["additional"], said["exact"]) == (8, True)
    assert "h1" not in str(found)


OTHERS = ("2026-11-21T12:17:23Z", "2026-11-21T18:41:37Z")
"""When somebody has leased places."""


def test_tenants_see_no_instant_of_others(service: Service) -> None:
    leased(service, 8, *OTHERS)
    found = asked(service, "/capacity", caller=TENANT, flavor="m1.large", **DAY)["capacity"]
    (part,) = found["parts"]
    rows = [(row["at"][11:], row["available"], row["busy"]) for row in part["resources"]["VCPU"]]
    assert rows == [("09:00:00Z", 50, 0.0), ("12:00:00Z", 10, 0.75), ("19:00:00Z", 50, 0.0)]
    counts = [(row["at"][11:], row["count"]) for row in part["fit"]]
    assert counts == [("09:00:00Z", 8), ("12:00:00Z", 0), ("19:00:00Z", 8)]


@pytest.mark.parametrize(
    ("most", "step", "told"),
    [
        (10, None, "PT3H"),
        (24, None, "PT1H"),
        (23, None, "PT2H"),
        (2, "PT1H", "PT12H"),
        (100, "PT2H", "PT2H"),
        (1, None, "P1D"),
    ],
)
def test_steps_are_so_long_that_no_more_than_so_many_come(
    service: Service, most: int, step: str | None, told: str
) -> None:
    query = DAY | {"max_points": str(most)} | ({} if step is None else {"step": step})
    found = asked(service, "/capacity", **query)["capacity"]
    assert found["step"] == told
    assert found == asked(service, "/capacity", **DAY, step=told)["capacity"]
    for one in found["parts"]:
        assert all(0 < len(some) <= most for some in one["resources"].values())


@pytest.mark.parametrize(
    ("since", "until", "step", "fit"),
    [
        ("12:16:00", "12:18:00", "PT1M", [0, 0]),
        ("12:17:22", "12:17:23", None, [0]),
        ("18:41:37", "18:42:00", None, [0]),
        ("18:50:00", "19:20:00", "PT10M", [0, 8, 8]),
        ("18:50:00", "20:20:00", None, [0, 8]),
        ("11:50:00", "12:10:00", None, [8, 0]),
        ("11:30:00", "13:40:00", "PT1H", [0, 0, 0]),
        ("10:00:00", "12:30:00", "PT1H", [8, 8, 0]),
    ],
)
def test_no_step_is_short_enough_to_find_instants_of_others(
    service: Service, since: str, until: str, step: str | None, fit: list[int]
) -> None:
    leased(service, 8, *OTHERS)
    query = {"from": f"2026-11-21T{since}Z", "to": f"2026-11-21T{until}Z", "flavor": "m1.large"}
    query |= {} if step is None else {"step": step}
    found = asked(service, "/capacity", caller=TENANT, **query)["capacity"]
    (part,) = found["parts"]
    assert [row["count"] for row in part["fit"]] == fit
    assert [row["busy"] for row in part["resources"]["VCPU"]] == [0.0 if n else 0.75 for n in fit]


def test_windows_tell_tenants_no_instant_of_others(service: Service) -> None:
    leased(service, 8, *OTHERS)
    query = {**DAY, "flavor": "m1.large", "count": "5", "duration": "PT1H"}

    def windows(caller: Any) -> list[tuple[str, str]]:
        found = asked(service, "/capacity/windows", caller=caller, **query)
        return [(one["earliest"][11:19], one["latest"][11:19]) for one in found["windows"]]

    assert windows(OPERATOR) == [("09:00:00", "11:17:23"), ("18:41:37", "08:00:00")]
    assert windows(TENANT) == [("09:00:00", "11:00:00"), ("19:00:00", "08:00:00")]


def test_zones_are_for_tenants_racks_are_not(service: Service) -> None:
    asked(service, "/capacity", caller=TENANT, by="zone", **DAY)
    asked(service, "/capacity", caller=TENANT, zone="az1", **DAY)
    for query, code in ({"by": "rack"}, "forbidden"), ({"zone": "r1"}, "unknown_name"):
        answer = service.call("GET", "/capacity", query=query)
        assert answer.json["errors"][0]["code"] == f"ensemble.{code}"
    found = asked(service, "/capacity", zone="r1", **DAY)["capacity"]["parts"][0]
    assert found["hosts"] == 2


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"from": "2026-11-20T09:00:00Z", "to": "2026-11-21T00:00:00Z"}, "to"),
        ({"to": "2026-11-21T09:00:00Z"}, "to"),
        ({"from": "yesterday"}, "from"),
        ({"step": "PT1S"}, "step"),
        ({"max_points": "0"}, "max_points"),
        ({"max_points": "many"}, "max_points"),
        ({"step": "PT0S"}, "step"),
        ({"resources": "VCPU"}, "resources"),
        ({"resources": "VCPU:0"}, "resources.VCPU"),
        ({"required": "!A|B"}, "required"),
        ({"by": "shelf"}, "by"),
        ({"resources": "VCPUS:1"}, "resources"),
        ({"resources": "VCPU:1", "required": "CUSTOM_NOT_HERE"}, "required"),
        ({"resources": "VCPU:1", "required": "!CUSTOM_NOT_HERE"}, "required"),
    ],
)
def test_what_cannot_be_asked_is_refused(idle: Service, query: dict[str, str], path: str) -> None:
    answer = idle.call("GET", "/capacity", caller=OPERATOR, query=query)
    assert answer.status_code == 400
    assert answer.json["errors"][0]["path"] == path


def test_operators_see_each_host(idle: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(idle, "/capacity", by="host", zone="r1", **DAY)["capacity"]["parts"]
    assert [(one["domain"], one["hosts"]) for one in found] == [("h1", 1), ("h2", 1)]
    assert found[0]["resources"]["VCPU"][0]["total"] == 16
    refused = idle.call("GET", "/capacity", caller=TENANT, query={"by": "host"})
    assert refused.json["errors"][0]["code"] == "ensemble.forbidden"
    monkeypatch.setattr(scope, "MOST_HOSTS", 3)
    many = idle.call("GET", "/capacity", caller=OPERATOR, query={"by": "host"})
    assert (many.status_code, many.json["errors"][0]["path"]) == (400, "by")
    wrong = idle.call("GET", "/capacity", caller=OPERATOR, query={"by": "racks"})
    assert wrong.json["errors"][0]["detail"] == "no such level: racks; did you mean rack?"


def test_a_day_that_has_begun_begins_now(idle: Service) -> None:
    found = asked(idle, "/capacity", **{"from": "2026-11-21T00:00:00Z", "to": DAY["to"]})
    assert found["capacity"]["start"] == DAY["from"]


def test_a_name_nobody_knows_is_no_busy_fleet(idle: Service) -> None:
    for path, more in (("/capacity", {}), ("/capacity/windows", {"duration": "PT1H"})):
        query = {"resources": "MEMORY_MD:1", **more}
        error = idle.call("GET", path, query=query).json["errors"][0]
        assert error["code"] == "ensemble.unknown_name"
        assert error["detail"] == "no such resource class: MEMORY_MD; did you mean MEMORY_MB?"


def test_beyond_the_horizon_is_over_quota(service: Service) -> None:
    answer = service.call("GET", "/capacity", query={"to": "2036-11-21T09:00:00Z"})
    assert (answer.status_code, answer.json["errors"][0]["code"]) == (
        403,
        "ensemble.quota_exceeded",
    )


def test_windows_in_which_so_many_fit(service: Service) -> None:
    leased(service, 4, "2026-11-21T12:00:00Z", "2026-11-21T18:00:00Z")
    found = asked(
        service, "/capacity/windows", flavor="m1.large", count="5", duration="PT2H", **DAY
    )
    assert [(one["earliest"][11:], one["latest"][11:]) for one in found["windows"]] == [
        ("09:00:00Z", "10:00:00Z"),
        ("18:00:00Z", "07:00:00Z"),
    ]
    never = asked(service, "/capacity/windows", flavor="m1.large", count="9", duration="PT2H")
    assert never["windows"] == []


@pytest.mark.parametrize(
    "query",
    [
        {"duration": "PT1H"},
        {"flavor": "m1.large"},
        {"flavor": "m1.large", "duration": "P60D"},
        {"flavor": "m1.large", "duration": "PT1H", "count": "0"},
    ],
)
def test_windows_of_nothing_are_refused(idle: Service, query: dict[str, str]) -> None:
    assert idle.call("GET", "/capacity/windows", query=query).status_code == 400


@pytest.mark.parametrize(
    ("fit", "status"),
    [
        ({}, 400),
        ({"flavor": "m1.large", "template": {"name": "x"}}, 400),
        ({"flavor": "m1.large", "role": "x"}, 400),
        ({"flavor": "m1.large", "parameters": {"n": 1}}, 400),
        ({"flavor": "unknown"}, 404),
        ({"template": {"name": "unknown"}}, 404),
        ({"ensemble_id": "00000000-0000-4000-8000-000000000000"}, 404),
        ({"flavor": "m1.large", "window": {"end": "2026-11-20T09:00:00Z"}}, 400),
    ],
)
def test_what_cannot_be_counted_is_refused(idle: Service, fit: dict[str, Any], status: int) -> None:
    assert idle.call("POST", "/capacity/fit", {"fit": fit}).status_code == status
    assert idle.clock.now() == NINE


POOLS = """
fleet: pools
topology:
  location:
    levels: [zone, rack]
    domains:
      - {name: az1, level: zone}
      - {name: az2, level: zone}
      - {name: r1, level: rack, parent: az1}
      - {name: r2, level: rack, parent: az1}
      - {name: r3, level: rack, parent: az2}
hosts:
  - {name: h1, inventories: {VCPU: 16}, aggregates: [all, one], place: {location: r1}}
  - {name: h2, inventories: {VCPU: 16}, aggregates: [all], place: {location: r2}}
sharing:
  - {name: here, inventories: {DISK_GB: 100}, aggregates: [all], place: {location: r1}}
  - {name: only, inventories: {DISK_GB: 200}, aggregates: [one]}
  - {name: both, inventories: {DISK_GB: 400}, aggregates: [all]}
  - {name: away, inventories: {DISK_GB: 800}, aggregates: [all], place: {location: r3}}
"""


def test_a_pool_counts_once_however_many_domains_use_it() -> None:
    service = Service(POOLS)

    def disks(caller: Any = OPERATOR, **query: str) -> dict[Any, int]:
        parts = asked(service, "/capacity", caller=caller, **query, **DAY)["capacity"]["parts"]
        names = (one["domain"] or tuple(one.get("shared_by", ())) for one in parts)
        free = (one["resources"].get("DISK_GB", [{"available": 0}]) for one in parts)
        return {name: rows[0]["available"] for name, rows in zip(names, free, strict=True)}

    assert disks() == {(): 1500}
    assert disks(by="rack") == {"r1": 300, "r2": 0, "r3": 800, ("r1", "r2"): 400}
    assert disks(by="zone") == {"az1": 700, "az2": 800}
    assert disks(by="host") == {"h1": 200, "h2": 0, ("h1", "h2"): 1300}
    assert disks(zone="r1") == {"r1": 700}
    assert disks(zone="az1", by="rack") == {"r1": 300, "r2": 0, ("r1", "r2"): 400}
    assert disks(TENANT, by="zone") == {"az1": 500, "az2": 500}
    flavored = asked(service, "/capacity", by="rack", resources="DISK_GB:10,VCPU:1", **DAY)
    fits = [one["fit"] and one["fit"][0]["count"] for one in flavored["capacity"]["parts"]]
    assert fits == [16, 16, 0, None]
    assert [one["hosts"] for one in flavored["capacity"]["parts"]] == [1, 1, 0, 0]
    service.close()
