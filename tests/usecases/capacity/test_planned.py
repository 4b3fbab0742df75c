"""Hosts that are to be away: leases move, or it is refused with the earliest time; who stays."""

from typing import Any
from uuid import UUID

import pytest

from moorage.domain.audit import FindingKind
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    PutInventories,
    ReplaceAllocations,
    UpdateProvider,
)
from moorage.domain.consumers import Consumer
from moorage.domain.period import HOUR, MINUTE, parse_instant
from moorage.domain.providers import Inventory
from moorage.testing.service import NINE, OPERATOR, TENANT, Service
from moorage.usecases.capacity.planned import _hours
from moorage.usecases.effect_dispatch import Message, OutwardActions, carry_out
from moorage.usecases.ledger.audit import audit
from moorage.usecases.ports import Caller

FLEET = """
fleet: tiny
topology:
  location: {levels: [rack], domains: [{name: "r{n}", count: 2, level: rack}]}
hosts:
  - name: "h{n}"
    count: 4
    inventories: {VCPU: 8}
    place: {location: {name: "r{n}", count: 2}}
flavors:
  - {name: half, resources: {VCPU: 4}}
"""
APART = {"name": "one-per-host", "type": "anti-affinity", "members": ["s"]}
MONDAY = {"start": "2026-11-23T08:00:00Z", "end": "2026-11-27T18:00:00Z"}


def lease(service: Service, count: int, *policies: dict[str, Any], **more: Any) -> Any:
    members = [{"name": "s", "count": count, "flavor": "half"}]
    ensemble = {"name": "shop", "members": members, "policies": list(policies)}
    body = {"name": "L1", **MONDAY, "ensemble": ensemble, **more}
    answer = service.call("POST", "/leases", {"lease": body})
    assert answer.status_code == 201, answer.json
    return answer.json["lease"]


def plan(service: Service, *hosts: str, **window: Any) -> Any:
    dry_run, caller = window.pop("dry_run", False), window.pop("caller", OPERATOR)
    body = {"window": {"kind": "maintenance", "hosts": list(hosts), **window}}
    query = {"dry_run": "true"} if dry_run else {}
    return service.call("POST", "/capacity/planned", body, caller=caller, query=query)


DAY = {"start": "2026-11-25T06:00:00Z", "end": "2026-11-26T06:00:00Z"}


def on_hosts(service: Service) -> set[str]:
    """Names of hosts on which something is reserved."""
    snapshot = service.store.snapshot()
    return {snapshot.names[row] for row in snapshot.roots.tolist() if snapshot.bookings_of(row)}


@pytest.mark.parametrize("reason", ["a\nb", "\x1b[31mred", "a\tb", "\x7f"])
def test_a_reason_is_one_printable_line(service: Service, reason: str) -> None:
    answer = plan(service, "h1", reason=reason, **DAY)
    assert answer.status_code == 400, answer.text
    assert answer.json["errors"][0]["path"] == "window.reason"


def test_a_lease_that_has_not_started_moves(service: Service) -> None:
    mine = lease(service, 1)
    (host,) = on_hosts(service)
    tried = plan(service, host, dry_run=True, **DAY)
    assert (tried.status_code, tried.json["window"]["moved_leases"]) == (200, [mine["id"]])
    assert on_hosts(service) == {host}
    made = plan(service, host, **DAY)
    assert made.status_code == 201, made.json
    assert made.json["window"]["moved_leases"] == [mine["id"]]
    assert host not in on_hosts(service)
    again = service.call("GET", f"/leases/{mine['id']}").json["lease"]
    assert (again["status"], again["degraded"]) == ("pending", False)


def test_two_leases_make_room_for_each_other(service: Service) -> None:
    """Three hosts are full but for one half each: whoever moves needs the other to move too."""
    lease(service, 2, APART)
    lease(service, 4, {**APART, "max_per_domain": 2}, name="L2")
    for host in sorted(on_hosts(service)):
        assert plan(service, host, dry_run=True, **DAY).status_code == 200


def test_one_that_has_no_other_place_refuses_it_and_says_when(service: Service) -> None:
    mine = lease(service, 4, APART)
    answer = plan(service, "h4", **DAY)
    assert answer.status_code == 409
    (error,) = answer.json["errors"]
    assert error["code"] == "ensemble.would_break_lease"
    assert error["detail"] == (
        f"{mine['name']} {mine['id']} (needs 4 hosts one-per-host, 3 left)"
        "   earliest 24h window after 2026-11-24: 2026-11-27T18:00Z"
    )
    assert error["earliest"] == "2026-11-27T18:00:00Z"
    assert [one["id"] for one in error["leases"]] == [mine["id"]]
    own = Caller("op", TENANT.project_id, OPERATOR.roles)
    detail = plan(service, "h4", caller=own, **DAY).json["errors"][0]["detail"]
    assert detail.startswith("L1 (needs 4 hosts")
    today = {"start": "2026-11-21T10:00:00Z", "end": "2026-11-25T10:00:00Z"}
    detail = plan(service, "h4", **today).json["errors"][0]["detail"]
    assert "   earliest 96h window from now: 2026-11-27T18:00Z" in detail.replace("4d", "96h")
    assert service.store.capacity_windows() == []
    later = {"start": "2026-11-27T18:00:00Z", "end": "2026-11-28T18:00:00Z"}
    assert plan(service, "h4", **later).status_code == 201


def test_one_that_has_started_stays_where_it_is(service: Service) -> None:
    lease(service, 1, start="2026-11-21T09:00:00Z")
    (host,) = on_hosts(service)
    answer = plan(service, host, **DAY)
    assert answer.status_code == 409
    assert "its hosts are fixed" in answer.json["errors"][0]["detail"]
    gone = plan(service, host, kind="decommission", start=DAY["start"])
    assert gone.json["errors"][0]["detail"].endswith(
        "earliest time after 2026-11-24: 2026-11-27T18:00Z"
    )


def test_servers_stay_and_are_told_of(service: Service) -> None:
    body = {
        "name": "web",
        "members": [{"name": "s", "count": 1, "flavor": "half"}],
        "decide": {"hold": "PT1H"},
    }
    assert service.call("POST", "/ensembles", {"ensemble": body}).status_code == 201
    (host,) = on_hosts(service)
    made = plan(service, host, **DAY).json["window"]
    (who,) = made["staying"]
    assert (who["host"], who["project_id"], who["state"]) == (host, TENANT.project_id, "held")
    assert who["end"] == "2026-11-21T10:00:00Z", "a hold ends when it lapses"
    edges = [one.details["edge"] for one in service.store.effects(made["id"])]
    assert sorted(map(str, edges)) == ["begins", "ends", "soon"]
    gone = service.call("DELETE", f"/capacity/planned/{made['id']}", caller=OPERATOR)
    assert gone.status_code == 204
    assert service.store.effects(made["id"]) == []


def test_notices_name_the_servers_that_are_there_when_they_are_told(service: Service) -> None:
    server = "11111111-1111-4111-8111-111111111111"
    owner = Consumer(server, "shop", "sue", "INSTANCE")
    snapshot = service.store.snapshot()
    uuid = snapshot.uuids[snapshot.names.index("h1")]
    service.store.commit(Changeset((ReplaceAllocations(owner, {uuid: {"VCPU": 4}}, None),)))
    made = plan(service, "h1", reason="firmware", **DAY).json["window"]
    heard: list[Any] = []

    def tell(message: Message) -> str:
        heard.append(message.body["details"])
        return "heard"

    for at in (DAY["start"], DAY["end"]):
        service.clock.set(parse_instant(at))
        while due := service.store.due_effects(1):
            carry_out(service.env, OutwardActions(tell=tell), due[0])
    assert [one["edge"] for one in heard] == ["soon", "begins", "ends"]
    assert all(one["hosts"] == ["h1"] for one in heard)
    told = {"server": server, "project_id": "shop", "host": "h1", "ends": None}
    assert [one["servers"] for one in heard] == [[told]] * 3
    page = service.call("GET", "/events", caller=OPERATOR, query={"type": "capacity.*"}).json
    assert [one["type"] for one in page["events"]] == [
        f"capacity.{word}" for word in ("planned", "soon", "begins", "ends")
    ]
    assert page["events"][0]["body"] == {
        "kind": "maintenance",
        "hosts": 1,
        "reason": "firmware",
        **DAY,
    }
    assert {one["subject"] for one in page["events"]} == {made["id"]}
    service.call("DELETE", f"/capacity/planned/{made['id']}", caller=OPERATOR)
    page = service.call("GET", "/events", caller=OPERATOR, query={"type": "capacity.removed"}).json
    assert page["events"][0]["body"]["reason"] == "firmware"
    tenants = service.call("GET", "/events", query={"type": "capacity.*"}).json
    assert tenants["events"] == []


def test_a_device_is_away_with_the_host_that_it_is_below(service: Service) -> None:
    plan(service, "h1", **DAY)
    snapshot = service.store.snapshot()
    first, second = (snapshot.uuids[snapshot.names.index(name)] for name in ("h1", "h2"))
    kid = "99999999-9999-4999-8999-999999999999"
    service.store.commit(
        Changeset(
            (
                CreateProvider(kid, "kid", parent_uuid=first),
                PutInventories(kid, (Inventory("VGPU", 4),), None),
            )
        )
    )
    away = []
    for host in (None, second, first):
        if host is not None:
            moved = UpdateProvider(kid, "kid", parent_uuid=host, set_parent=True)
            service.store.commit(Changeset((moved,)))
        snapshot = service.store.snapshot()
        away.append(bool(snapshot.state(snapshot.row_of[kid]).down))
    assert away == [True, False, True]


@pytest.mark.parametrize("domain", ["r2", "rack/r2", "location:rack/r2"])
def test_a_domain_may_be_named_with_its_level(service: Service, domain: str) -> None:
    assert plan(service, domains=[domain], **DAY).json["window"]["hosts"] == ["h3", "h4"]


def test_nobody_gets_in_while_a_host_is_away_and_all_do_around_it(service: Service) -> None:
    assert plan(service, domains=["r1"], **DAY).json["window"]["hosts"] == ["h1", "h2"]
    apart = {"name": "e", "members": [{"name": "s", "count": 4, "flavor": "half"}]}
    refused = {"name": "x", **MONDAY, "ensemble": {**apart, "policies": [APART]}}
    assert service.call("POST", "/leases", {"lease": refused}).status_code == 409
    before = {"start": "2026-11-24T00:00:00Z", "end": DAY["start"]}
    after = {"start": DAY["end"], "end": "2026-11-28T00:00:00Z"}
    for period in (before, after):
        body = {**refused, **period}
        assert service.call("POST", "/leases", {"lease": body}).status_code == 201
    fit = {"fit": {"flavor": "half", "window": {"start": DAY["start"], "end": DAY["end"]}}}
    said = service.call("POST", "/capacity/fit", fit, caller=OPERATOR).json["fit"]
    assert said["additional"] == 4


def test_deliveries_and_what_is_gone(service: Service) -> None:
    there = plan(service, "h1", kind="delivery", end=DAY["start"]).json["window"]
    assert (there["status"], there["start"]) == ("begun", "2026-11-21T09:00:00Z")
    assert plan(service, "h2", kind="decommission", start=DAY["start"]).status_code == 201
    found = service.call("GET", "/capacity", caller=OPERATOR, query={"resources": "VCPU:8"})
    rows = found.json["capacity"]["parts"][0]["fit"]
    # One is delivered when the other goes: three there are at any time.
    assert [row["count"] for row in rows] == [3]
    listed = service.call("GET", "/capacity/planned", caller=OPERATOR).json["windows"]
    assert [one["kind"] for one in listed] == ["delivery", "decommission"]


def filled(service: Service) -> list[tuple[int, int]]:
    """VCPU booked, of how many, host by host."""
    hosts = service.call("GET", "/fleet", caller=OPERATOR).json["fleet"]["hosts"]
    some = [one["resources"]["VCPU"] for one in hosts]
    return [(one["booked"], one["capacity"]) for one in some]


def kinds(service: Service) -> list[FindingKind]:
    return [one.kind for one in audit(service.store, OPERATOR, None).findings]


def test_what_is_booked_on_a_host_that_is_away_is_shown_and_is_no_overage(service: Service) -> None:
    body = {
        "name": "web",
        "members": [{"name": "s", "count": 1, "flavor": "half"}],
        "decide": {"hold": "PT1H"},
    }
    assert service.call("POST", "/ensembles", {"ensemble": body}).status_code == 201
    before = filled(service)
    assert sorted(before) == [(0, 8), (0, 8), (0, 8), (4, 8)]
    for domain in ("r1", "r2"):
        soon = {"start": "2026-11-21T09:30:00Z", "end": "2026-11-21T12:00:00Z"}
        assert plan(service, domains=[domain], **soon).status_code == 201
    assert filled(service) == before
    assert kinds(service) == []
    service.clock.instant = NINE + 40 * MINUTE
    assert filled(service) == before
    assert kinds(service) == [FindingKind.CLOSED]
    service.clock.instant = NINE + 180 * MINUTE
    assert filled(service) == [(0, 8)] * 4


@pytest.mark.parametrize(
    ("window", "status"),
    [
        ({"hosts": ["h9"], **DAY}, 404),
        ({"hosts": [], **DAY}, 400),
        ({"domains": ["r9"], **DAY}, 400),
        ({"domains": ["rack/r9"], **DAY}, 400),
        ({"domains": ["zone/r1"], **DAY}, 400),
        ({"start": DAY["start"]}, 400),
        ({"start": DAY["end"], "end": DAY["start"]}, 400),
        ({"start": "2026-11-01T00:00:00Z", "end": "2026-11-02T00:00:00Z"}, 400),
        ({"kind": "decommission", **DAY}, 400),
        ({"kind": "delivery", **DAY}, 400),
        ({"kind": "holiday", **DAY}, 400),
    ],
)
def test_what_cannot_be_planned_is_refused(
    service: Service, window: dict[str, Any], status: int
) -> None:
    body = {"window": {"kind": "maintenance", "hosts": ["h1"], **window}}
    answer = service.call("POST", "/capacity/planned", body, caller=OPERATOR)
    assert answer.status_code == status, answer.json
    assert service.store.capacity_windows() == []


def test_the_same_request_makes_one_window_and_tenants_none(service: Service) -> None:
    own = {"id": "00000000-0000-4000-8000-000000000001", **DAY}
    first, second = (plan(service, "h1", **own) for _ in range(2))
    assert first.json["window"]["id"] == second.json["window"]["id"] != own["id"]
    assert plan(service, "h2", **own).status_code == 409
    assert len(service.store.capacity_windows()) == 1
    body = {"window": {"kind": "maintenance", "hosts": ["h1"], **DAY}}
    assert service.call("POST", "/capacity/planned", body).status_code == 403
    assert service.call("GET", "/capacity/planned").status_code == 403
    assert service.clock.now() == NINE


@pytest.mark.parametrize(
    ("hours", "told"), [(24, "24h"), (72, "72h"), (1743, "72d15h"), (96, "4d")]
)
def test_a_long_window_is_told_in_days(hours: int, told: str) -> None:
    assert _hours(hours * HOUR) == told


def offer(service: Service, count: int) -> Any:
    """An offer of so many halves on different hosts, for the day."""
    members = [{"name": "s", "count": count, "flavor": "half"}]
    asked = {
        "ensemble": {"name": "offered", "members": members, "policies": [APART]},
        "duration": "PT24H",
        "earliest": DAY["start"],
        "latest_start": DAY["start"],
        "max_offers": 1,
    }
    answer = service.call("POST", "/offers", {"offer_request": asked})
    assert answer.status_code == 201, answer.json
    (made,) = answer.json["offers"]
    return made


def accepted(service: Service, one: Any) -> Any:
    answer = service.call("POST", f"/offers/{one['id']}/accept", {"lease": {"name": "l"}})
    assert answer.status_code == 201, answer.json
    return answer.json["lease"]


def test_an_offer_moves_and_is_kept(service: Service) -> None:
    one = offer(service, 1)
    (host,) = on_hosts(service)
    made = plan(service, host, **DAY)
    assert made.status_code == 201, made.json
    assert made.json["window"]["moved_leases"] == [one["id"]]
    assert host not in on_hosts(service)
    assert accepted(service, one)["degraded"] is False
    assert host not in on_hosts(service)


def test_an_offer_and_a_lease_make_room_for_each_other(service: Service) -> None:
    lease(service, 2, APART)
    offer(service, 3)
    lease(service, 1, name="L2")
    for host in sorted(on_hosts(service)):
        assert plan(service, host, dry_run=True, **DAY).status_code == 200


def test_an_offer_makes_room_for_a_lease(service: Service) -> None:
    """It is on one host; each of two halves that are left elsewhere is too small."""
    one = offer(service, 1)
    (host,) = on_hosts(service)
    others = sorted({"h1", "h2", "h3", "h4"} - {host})
    fence = {"name": "here", "type": "fence", "members": ["s"], "domains": [host]}
    whole = {"name": "s", "count": 2, "flavor": "half"}
    body = {
        "name": "L",
        **MONDAY,
        "ensemble": {"name": "e", "members": [whole], "policies": [fence]},
    }
    answer = service.call("POST", "/leases", {"lease": body}, caller=OPERATOR)
    assert answer.status_code == 201, answer.json
    assert len(others) == 3
    assert accepted(service, one)["degraded"] is False


def test_an_offer_that_has_no_other_place_refuses_it(service: Service) -> None:
    one = offer(service, 4)
    answer = plan(service, "h1", **DAY)
    assert answer.status_code == 409
    assert [each["id"] for each in answer.json["errors"][0]["leases"]] == [one["id"]]


def test_it_says_what_breaks_when_it_begins(service: Service) -> None:
    keep = {"name": "ha", "type": "survive", "members": ["s"], "level": "host", "keep": 1}
    members = [{"name": "s", "count": 2, "flavor": "half"}]
    body = {"name": "app", "members": members, "policies": [keep], "decide": {}}
    made = service.call("POST", "/ensembles", {"ensemble": body}).json
    decision = f"/decisions/{made['decision']['id']}"
    for number in (0, 1):
        taken = {"member": f"s[{number}]", "server": {"flavorRef": "half"}}
        claim = service.call("POST", f"{decision}/claims", {"claim": taken})
        id_ = claim.json["claim"]["id"]
        server = str(UUID(int=number + 1, version=4))
        told = {"claim": {"status": "active", "server_id": server}}
        assert service.call("PATCH", f"/claims/{id_}", told).status_code == 200
    shown = service.call("GET", decision, caller=OPERATOR).json["decision"]["assignments"]
    host = next(one["host"] for one in shown if one["member"] == "s[0]")
    for dry_run in (True, False):
        answer = plan(service, host, dry_run=dry_run, **DAY).json
        breaks = answer["breaks"]
        assert (breaks["found"], breaks["judged"], breaks["ensembles"]) == (2, 1, 1)
        assert {(one["policy"], one["type"]) for one in breaks["violations"]} == {
            ("ha", "survive"),
            (None, "lost"),
        }
