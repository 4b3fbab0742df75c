"""The map of the fleet: what it says of each host is what the other routes say, one by one."""

import base64
import gzip
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.api.native.conftest import refused
from tests.seeds import cases

from moorage.domain.changes import Changeset, PutInventories, PutTraits, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import CapacityExceeded
from moorage.domain.period import DAY, HOUR, MINUTE, format_instant, parse_instant
from moorage.domain.providers import Inventory
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.compliance.monitor import ComplianceMonitor

ROOT = Path(__file__).parents[3]
FLEET = """
fleet: rooms
topology:
  location:
    levels: [zone, rack]
    domains:
      - {name: az1, level: zone}
      - {name: az2, level: zone}
      - {name: r1, level: rack, parent: az2}
      - {name: r2, level: rack, parent: az1}
      - {name: r10, level: rack, parent: az1}
  power:
    levels: [feed]
    domains: [{name: a, level: feed}, {name: b, level: feed}]
hosts:
  - {name: "h{n}", count: 12, inventories: {VCPU: 8, MEMORY_MB: 8192}, traits: [HW_CPU_X86_AVX2],
     place: {location: {in: [r10, r2, r1], order: turn}, power: {in: [a, b], order: turn}}}
  - {name: outside, inventories: {MEMORY_MB: 4096}}
flavors:
  - {name: small, resources: {VCPU: 1, MEMORY_MB: 1024}}
  - {name: large, resources: {VCPU: 3, MEMORY_MB: 2048}}
"""
CLOSED, DOWN, AWAY, OVER, BROKEN, FILTERED, UNSERVED, EXCLUSIVE = (1 << n for n in range(8))


@pytest.fixture
def rooms() -> Any:
    made = Service(FLEET)
    yield made
    made.close()


def got(service: Service, **query: object) -> Any:
    answer = service.call("GET", "/fleet/map", caller=OPERATOR, query=query)
    assert answer.status_code == 200, answer.text
    return answer.json["map"]


def numbers(text: str | None, kind: str = "u1") -> list[int]:
    assert text is not None
    found: list[int] = np.frombuffer(base64.b64decode(text), kind).tolist()
    return found


def by_host(found: Any) -> dict[str, tuple[int, int]]:
    hosts = found["hosts"]
    columns = zip(numbers(hosts["fill"]), numbers(hosts["flags"], "<u2"), strict=True)
    return dict(zip(hosts["name"], columns, strict=True))


def applied(old: Any, change: Any) -> dict[str, tuple[int, int]]:
    """The map before, with what has changed."""
    found, changed = by_host(old), change["changed"]
    columns = (numbers(changed["fill"]), numbers(changed["flags"], "<u2"))
    for index, fill, flags in zip(changed["index"], *columns, strict=True):
        found[old["hosts"]["name"][index]] = (fill, flags)
    return found


def allocate(service: Service, uuid: str, **resources: int) -> str:
    consumer = service.ids.uuid()
    owner = Consumer(consumer, "project-a", "ann", "INSTANCE")
    change = ReplaceAllocations(owner, {uuid: resources}, None)
    service.store.commit(Changeset((change,)))
    return consumer


def ensemble(service: Service, name: str, count: int, *policies: Any, **more: Any) -> Any:
    body = {
        "name": name,
        "members": [{"name": "web", "count": count, "flavor": more.pop("flavor", "small")}],
        "policies": [{"members": ["*"], **one} for one in policies],
        "decide": {"hold": "PT3H", **more},
    }
    return service.call("POST", "/ensembles", {"ensemble": body})


def percent(booked: int, capacity: int) -> int:
    """What a fill is: 0 is empty, 100 is full, more is too much, and nothing else is."""
    if not capacity:
        return 200 if booked else 0
    exact = 100 * booked / capacity
    nearest = round(exact)
    if booked in {0, capacity}:
        return int(exact)
    if booked > capacity:
        return min(max(nearest, 101), 200)
    return min(max(nearest, 1), 99)


def said_one_by_one(service: Service, at: int) -> dict[str, tuple[int, int]]:
    """Fill of VCPU and flags of every host, from what its bookings and closings are."""
    fleet = service.call("GET", "/fleet", caller=OPERATOR).json["fleet"]["hosts"]
    found = {}
    for host in fleet:
        shown = service.call("GET", f"/hosts/{host['name']}", caller=OPERATOR).json["host"]
        now = service.clock.now()
        live = [
            one
            for one in shown["bookings"]
            if parse_instant(one["start"]) <= at
            and (one["end"] is None or at < parse_instant(one["end"]) or _overrun(one, now))
        ]
        booked = {
            name: sum(one["amounts"].get(name, 0) for one in live) for name in ("VCPU", "MEMORY_MB")
        }
        capacity = {name: fill["capacity"] for name, fill in host["resources"].items()}
        away = any(
            one["why"] in {"away", "planned"}
            and parse_instant(one["start"]) <= at
            and (one["end"] is None or at < parse_instant(one["end"]))
            for one in host["closed"]
        )
        lasting = {one["why"] for one in host["closed"]} - {"away", "planned"}
        down = away or bool(lasting & {"service down", "forced down", "no inventory"})
        flags = DOWN if down else CLOSED if lasting else 0
        flags |= AWAY if away else 0
        flags |= OVER if any(booked[name] > capacity.get(name, 0) for name in booked) else 0
        servers = [one for one in live if one["state"] in {"allocated", "claimed"}]
        flags |= UNSERVED if live and not servers else 0
        fill = percent(booked["VCPU"], capacity["VCPU"]) if "VCPU" in capacity else 255
        found[host["name"]] = (fill, flags)
    return found


def _overrun(booking: Any, now: int) -> bool:
    return booking["state"] == "allocated" and parse_instant(booking["end"]) <= now


def random_change(service: Service, random: Random, number: int) -> None:
    """Something that happens in a cloud; what is refused has not happened."""
    uuids = {one["name"]: one["uuid"] for one in hosts_of(service)}
    name, now = random.choice([*uuids]), service.clock.now()
    start = now + random.randrange(0, 48) * HOUR
    period = {
        "start": format_instant(start),
        "end": format_instant(start + random.randrange(1, 30) * HOUR),
    }
    match random.randrange(8):
        case 0 | 1:
            if name != "outside":
                with suppress(CapacityExceeded):
                    allocate(service, uuids[name], VCPU=random.randrange(1, 6))
        case 2:
            ensemble(service, f"shop-{number}", random.randrange(1, 6))
        case 3:
            body = {
                "name": f"lease-{number}",
                **period,
                "amount": {"count": random.randrange(1, 8), "flavor": "small"},
            }
            service.call("POST", "/leases", {"lease": body})
        case 4:
            window = {"kind": "maintenance", "hosts": [name], "reason": "fans", **period}
            service.call("POST", "/capacity/planned", {"window": window}, caller=OPERATOR)
        case 5:
            service.call(
                "POST", f"/hosts/{name}/close", {"close": {"reason": "x"}}, caller=OPERATOR
            )
        case 6:
            up = {"service": {"status": "enabled", "state": random.choice(["up", "down"])}}
            service.call("PUT", f"/hosts/{name}/service", up, caller=OPERATOR)
        case _:
            service.clock.pass_by(random.randrange(1, 300) * MINUTE)


@pytest.mark.parametrize("seed", range(cases(push=6, night=60)))
def test_it_says_what_the_other_routes_say(rooms: Service, seed: int) -> None:
    random = Random(seed)
    before = got(rooms)
    for number in range(14):
        random_change(rooms, random, number)
        now = rooms.clock.now()
        found = got(rooms)
        assert by_host(found) == said_one_by_one(rooms, now), number
        change = got(rooms, since=before["tag"])
        assert applied(before, change) == by_host(found)
        assert change["tag"] == found["tag"]
        assert change["changed_blocks"] == {
            name: found["blocks"][name] for name in ("free", "capacity", "fits")
        }
        before = found
    later = rooms.clock.now() + random.randrange(1, 72) * HOUR
    ahead = got(rooms, at=format_instant(later))
    assert by_host(ahead) == said_one_by_one(rooms, later)


@pytest.fixture
def edge() -> Any:
    """Processors below NUMA nodes, and a store that hosts share."""
    made = Service((ROOT / "fleets/edge-numa.yaml").read_text(encoding="utf-8"))
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(cases(push=3, night=30)))
def test_it_sums_over_what_is_inside_hosts(edge: Service, seed: int) -> None:
    random = Random(seed)
    before = got(edge)
    assert set(before["classes"]) == {"VCPU", "MEMORY_MB", "SRIOV_NET_VF", "FPGA"}  # no store
    for number in range(8):
        flavor = random.choice(["edge.small", "edge.upf", "edge.large"])
        ensemble(edge, f"e{number}", random.randrange(1, 4), flavor=flavor)
        if random.random() < 0.4:
            edge.clock.pass_by(random.randrange(1, 4) * HOUR)
        found = got(edge)
        said = said_one_by_one(edge, edge.clock.now())
        del said["store"]  # it is no host
        assert by_host(found) == said
        assert applied(before, got(edge, since=before["tag"])) == by_host(found)
        before = found
    for flavor in ("edge.small", "edge.upf", "edge.large"):
        found = got(edge, flavor=flavor)
        fit = edge.call("POST", "/capacity/fit", {"fit": {"flavor": flavor}}, caller=OPERATOR)
        most = numbers(found["hosts"]["fits"])
        assert sum(most) == sum(found["blocks"]["fits"]) == fit.json["fit"]["additional"]


def test_hosts_are_in_the_order_of_blocks_and_names(rooms: Service) -> None:
    found = got(rooms)
    assert (found["tree"], found["level"], found["class"]) == ("location", "rack", "VCPU")
    assert found["parents"] == {"level": "zone", "name": ["az1", "az2"]}
    blocks = found["blocks"]
    assert blocks["name"] == ["r2", "r10", "r1", ""]
    assert blocks["parent"] == [0, 0, 1, -1]
    assert blocks["count"] == [4, 4, 4, 1]
    assert blocks["first"] == [0, 4, 8, 12]
    assert found["hosts"]["name"][:8] == ["h2", "h5", "h8", "h11", "h1", "h4", "h7", "h10"]
    assert numbers(found["hosts"]["fill"]) == [0] * 12 + [255]
    assert blocks["capacity"] == blocks["free"] == [32, 32, 32, 0]
    feeds = got(rooms, tree="power")
    assert (feeds["level"], feeds["parents"]["level"]) == ("feed", None)
    assert feeds["blocks"]["parent"] == [-1, -1, -1]
    zones = got(rooms, level="zone", **{"class": "MEMORY_MB"})
    assert zones["blocks"]["name"] == ["az1", "az2", ""]
    assert zones["blocks"]["capacity"] == [65536, 32768, 4096]


def test_what_fits_is_what_capacity_says(rooms: Service) -> None:
    random = Random(7)
    for number in range(20):
        random_change(rooms, random, number)
    for flavor in ("small", "large"):
        found = got(rooms, flavor=flavor)
        fit = rooms.call("POST", "/capacity/fit", {"fit": {"flavor": flavor}}, caller=OPERATOR)
        most = fit.json["fit"]["additional"]
        hosts = numbers(found["hosts"]["fits"])
        assert sum(hosts) == sum(found["blocks"]["fits"]) == most
        flags = numbers(found["hosts"]["flags"], "<u2")
        closed = [n for n, flag in enumerate(flags) if flag & (CLOSED | DOWN)]
        assert all(hosts[n] == 0 for n in closed)


def test_a_host_that_is_kept_for_others_takes_none(rooms: Service) -> None:
    alone = {"name": "alone", "type": "exclusive", "against": "others"}
    made = ensemble(rooms, "mine", 2, alone)
    assert made.status_code == 201
    found = got(rooms, flavor="small")
    marked = {name for name, (_, flag) in by_host(found).items() if flag & EXCLUSIVE}
    assert marked == {one["host"] for one in members(rooms, made.json)}
    fits = dict(zip(found["hosts"]["name"], numbers(found["hosts"]["fits"]), strict=True))
    assert all(fits[name] == 0 for name in marked)
    # Later the hold may have ended, but nobody has said so.
    ahead = by_host(got(rooms, at=format_instant(rooms.clock.now() + HOUR)))
    assert {name for name, (_, flag) in ahead.items() if flag & EXCLUSIVE} == marked


def test_violations_are_marked_where_their_members_are(rooms: Service) -> None:
    apart = {"name": "apart", "type": "anti-affinity"}
    made = ensemble(rooms, "pair", 2, apart).json
    ensemble(rooms, "other", 1)
    judge(monitor := ComplianceMonitor(replace(rooms.env, stopwatch=lambda: 0.0)))
    assert all(not flag & BROKEN for _, flag in by_host(got(rooms)).values())
    places = {one["member"]: one["host"] for one in members(rooms, made)}
    close = rooms.call(
        "PUT",
        f"/hosts/{places['web[0]']}/service",
        {"service": {"status": "enabled", "state": "down"}},
        caller=OPERATOR,
    )
    assert close.status_code == 200
    judge(monitor)
    marked = {name for name, (_, flag) in by_host(got(rooms)).items() if flag & BROKEN}
    assert marked == {one["name"] for one in hosts_of(rooms) if violations(rooms, one["name"])}
    assert places["web[0]"] in marked


def hosts_of(service: Service) -> Any:
    return service.call("GET", "/hosts", caller=OPERATOR).json["hosts"]


def violations(service: Service, host: str) -> Any:
    query = {"host": host, "all_projects": "true"}
    return service.call("GET", "/violations", caller=OPERATOR, query=query).json["violations"]


def judge(monitor: ComplianceMonitor) -> None:
    while monitor.run_round() or not monitor.idle:
        pass


def members(service: Service, made: Any) -> list[dict[str, str]]:
    path = f"/ensembles/{made['ensemble']['id']}/members"
    found = service.call("GET", path, caller=OPERATOR).json["members"]
    return [{"member": one["name"], "host": one["domains"]["host"]} for one in found]


def test_filters_mark_hosts_that_fail_them(rooms: Service) -> None:
    made = ensemble(rooms, "shop", 3).json
    there = {one["host"] for one in members(rooms, made)}
    fails = by_host(got(rooms, ensemble=made["ensemble"]["id"]))
    assert {name for name, (_, flag) in fails.items() if not flag & FILTERED} == there
    with_trait = by_host(got(rooms, trait="HW_CPU_X86_AVX2"))
    assert {name for name, (_, flag) in with_trait.items() if flag & FILTERED} == {"outside"}
    without = by_host(got(rooms, trait="!HW_CPU_X86_AVX2"))
    assert {name for name, (_, flag) in without.items() if not flag & FILTERED} == {"outside"}


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"class": "VGPU"}, 400, "unknown_name"),
        ({"tree": "network"}, 400, "unknown_name"),
        ({"level": "row"}, 400, "unknown_name"),
        ({"tree": "power", "level": "rack"}, 400, "unknown_name"),
        ({"level": "host"}, 400, "unknown_name"),
        ({"trait": "CUSTOM_NONE"}, 400, "unknown_name"),
        ({"trait": "A|!B"}, 400, "invalid_description"),
        ({"at": "tomorrow"}, 400, "invalid_description"),
        ({"flavor": "none"}, 404, "not_found"),
        ({"ensemble": "none"}, 404, "not_found"),
        ({"colour": "red"}, 400, "invalid_description"),
    ],
)
def test_what_is_not_there_is_refused(
    rooms: Service, query: dict[str, str], status: int, code: str
) -> None:
    refused(rooms.call("GET", "/fleet/map", caller=OPERATOR, query=query), status, code)


def test_it_is_for_operators(rooms: Service) -> None:
    refused(rooms.call("GET", "/fleet/map", caller=TENANT), 403, "forbidden")


def test_it_is_sent_gzipped_and_only_to_who_does_not_have_it(rooms: Service) -> None:
    plain = rooms.call("GET", "/fleet/map", caller=OPERATOR)
    asked = {"Accept-Encoding": "br, gzip;q=0.5"}
    packed = rooms.call("GET", "/fleet/map", caller=OPERATOR, headers=asked)
    assert packed.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.content)) == plain.json
    assert "content-encoding" not in plain.headers
    assert "Accept-Encoding" in plain.headers["vary"]
    none = rooms.call("GET", "/fleet/map", caller=OPERATOR, headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in none.headers
    tag = packed.headers["etag"]
    assert tag == plain.headers["etag"] == f'W/"{plain.json["map"]["tag"]}"'
    for known in (tag, f'"other", {tag}', "*"):
        again = rooms.call("GET", "/fleet/map", caller=OPERATOR, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    host = plain.json["map"]["hosts"]["name"][0]
    rooms.call("POST", f"/hosts/{host}/close", {"close": {"reason": "x"}}, caller=OPERATOR)
    changed = rooms.call("GET", "/fleet/map", caller=OPERATOR, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_a_lapse_changes_it_though_nothing_is_written(rooms: Service) -> None:
    ensemble(rooms, "brief", 1)
    held = got(rooms)
    rooms.clock.pass_by(4 * HOUR)
    lapsed = got(rooms)
    assert lapsed["revision"] == held["revision"]
    assert lapsed["tag"] != held["tag"]
    assert sum(fill for fill, _ in by_host(lapsed).values() if fill != 255) == 0
    assert applied(held, got(rooms, since=held["tag"])) == by_host(lapsed)


def test_a_map_that_is_not_known_is_sent_whole(rooms: Service) -> None:
    first = got(rooms)
    assert "hosts" in got(rooms, since="1-unknown")
    uuid = next(one["uuid"] for one in hosts_of(rooms))
    traits = PutTraits(uuid, frozenset({"COMPUTE_STATUS_DISABLED"}), None)
    rooms.store.commit(Changeset((traits,)))
    assert len(got(rooms, since=first["tag"])["changed"]["index"]) == 1
    for number in range(8):
        allocate(rooms, uuid, MEMORY_MB=number + 1)
        got(rooms)
    assert "hosts" in got(rooms, since=first["tag"])  # too long ago
    # Another order of hosts makes another map.
    topology = rooms.call("GET", "/topology/domains", caller=OPERATOR).json["topology"]
    known = got(rooms)
    body = {name: topology[name] for name in ("levels", "domains", "attachments")}
    body["attachments"] = body["attachments"][3:]
    put = rooms.call("PUT", "/topology/domains", {"topology": body}, caller=OPERATOR)
    assert put.status_code == 200, put.text
    assert "hosts" in got(rooms, since=known["tag"])


def test_without_a_topology_all_hosts_are_in_one_block(service: Service) -> None:
    body: dict[str, Any] = {"levels": {}, "domains": [], "attachments": []}
    put = service.call("PUT", "/topology/domains", {"topology": body}, caller=OPERATOR)
    assert put.status_code == 200, put.text
    found = got(service)
    assert (found["trees"], found["level"], found["parents"]["level"]) == ({}, None, None)
    assert found["blocks"]["name"] == [""]
    assert found["blocks"]["count"] == [len(found["hosts"]["name"])]


def test_an_inventory_below_its_use_is_over(rooms: Service) -> None:
    hosts = hosts_of(rooms)
    uuid = next(one["uuid"] for one in hosts if one["name"] == "h1")
    allocate(rooms, uuid, VCPU=8)
    assert by_host(got(rooms))["h1"] == (100, 0)
    fewer = Inventory("VCPU", 5)
    rooms.store.commit(Changeset((PutInventories(uuid, (fewer,), None),)))
    assert by_host(got(rooms))["h1"] == (160, OVER)
    assert by_host(got(rooms, **{"class": "MEMORY_MB"}))["h1"] == (0, OVER)


def test_a_later_instant_sees_what_begins_then(rooms: Service) -> None:
    now = rooms.clock.now()
    body = {
        "name": "later",
        "start": format_instant(now + DAY),
        "end": format_instant(now + 2 * DAY),
        "amount": {"count": 12, "flavor": "small"},
    }
    assert rooms.call("POST", "/leases", {"lease": body}).status_code == 201
    assert all(flag == 0 for _, flag in by_host(got(rooms)).values())
    ahead = by_host(got(rooms, at=format_instant(now + DAY)))
    assert sum(1 for fill, flag in ahead.values() if fill and flag == UNSERVED) > 0
    ended = by_host(got(rooms, at=format_instant(now + 2 * DAY)))
    assert all(flag == 0 for _, flag in ended.values())
    refused_past = by_host(got(rooms, at=format_instant(now - DAY)))
    assert refused_past == by_host(got(rooms))
