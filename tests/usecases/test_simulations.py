"""A simulation says what is then the case when the same is done for real, and writes nothing."""

from random import Random
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from tests.seeds import cases

from moorage.domain.changes import Changeset, DeleteAllocations, ReplaceAllocations
from moorage.domain.member_names import MemberName
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.decide.member_places import locate_members

DOWN = {"service": {"status": "enabled", "state": "down", "forced_down": True}}


def simulated(service: Service, *changes: Any, **fields: Any) -> Any:
    answer = service.call(
        "POST",
        "/simulations",
        {"simulation": {"changes": list(changes), **fields}},
        caller=OPERATOR,
    )
    assert answer.status_code == 200, answer.text
    return answer.json["simulation"]


def refused(service: Service, *changes: Any, **fields: Any) -> tuple[str, str | None, str]:
    """The code, the path and the sentence."""
    answer = service.call(
        "POST",
        "/simulations",
        {"simulation": {"changes": list(changes), **fields}},
        caller=OPERATOR,
    )
    assert 400 <= answer.status_code < 500, answer.text
    (error,) = answer.json["errors"]
    return error["code"], error.get("path"), error["detail"]


def created(service: Service, body: Any) -> Any:
    answer = service.call("POST", "/ensembles", {"ensemble": {**body, "decide": {"hold": "PT1H"}}})
    assert answer.status_code in {201, 409}, answer.text
    return answer.json if answer.status_code == 201 else None


def boot(service: Service, found: Any, ids: Random) -> None:
    """Give every member a server."""
    decision, ensemble = found["decision"]["id"], service.store.ensemble(found["ensemble"]["id"])
    for member in ensemble.members:
        size = dict(ensemble.role(member.name.role).resources)
        claim = service.call(
            "POST",
            f"/decisions/{decision}/claims",
            {"claim": {"member": str(member.name), "server": {"resources": size}}},
        )
        assert claim.status_code == 201, claim.text
        server = str(UUID(int=ids.getrandbits(128), version=4))
        done = service.call(
            "PATCH",
            f"/claims/{claim.json['claim']['id']}",
            {"claim": {"status": "active", "server_id": server}},
        )
        assert done.status_code == 200, done.text


def tables(service: Service) -> dict[str, list[str]]:
    """Every row of every table."""
    backend = service.store._backend

    def read(connection: Any) -> dict[str, list[str]]:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))
        return {
            name: sorted(map(str, connection.execute(text(f'SELECT * FROM "{name}"'))))
            for (name,) in list(names)
        }

    found: dict[str, list[str]] = backend.read(read)
    return found


def fleet(random: Random) -> str:
    racks, hosts = random.randint(2, 4), random.randint(1, 3)
    lines = ["fleet: drawn", "topology:", "  location:", "    levels: [rack]"]
    lines += ["    domains:", *(f"      - {{name: r{n}, level: rack}}" for n in range(racks))]
    lines.append("hosts:")
    for rack in range(racks):
        vcpu = random.choice((2, 4, 8))
        lines.append(
            f'  - {{name: "h{rack}-{{n}}", count: {hosts},'
            f" inventories: {{VCPU: {vcpu}}}, place: {{location: r{rack}}}}}"
        )
    lines += ["flavors:", "  - {name: small, resources: {VCPU: 1}}"]
    lines += ["  - {name: large, resources: {VCPU: 3}}"]
    return "\n".join(lines)


def described(random: Random, name: str) -> Any:
    count = random.randint(1, 4)
    role: dict[str, Any] = {
        "name": "db",
        "count": count,
        "resources": {"VCPU": random.randint(1, 2)},
    }
    if random.random() < 0.5:
        role["min_available"] = random.randint(1, count)
    policies: list[Any] = []
    level = random.choice(("host", "rack"))
    if random.random() < 0.6:
        policies.append(
            {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": level}
        )
    elif random.random() < 0.5:
        policies.append({"name": "near", "type": "affinity", "members": ["db"], "level": "rack"})
    if count > 1 and random.random() < 0.4 and "near" not in {one["name"] for one in policies}:
        keep = random.randint(1, count - 1)
        ha = {"name": "ha", "type": "survive", "members": ["db"], "level": "rack", "keep": keep}
        policies.append(ha)
    return {"name": name, "members": [role], "policies": policies}


def violations(service: Service) -> set[tuple[str, str | None, tuple[str, ...]]]:
    """What every ensemble breaks now, judged for each."""
    found = set()
    for one in service.call("GET", "/ensembles", caller=OPERATOR, query={"all_projects": 1}).json[
        "ensembles"
    ]:
        judged = service.call("GET", f"/ensembles/{one['id']}/compliance", caller=OPERATOR).json[
            "compliance"
        ]
        for policy in judged["policies"]:
            if not policy["ok"]:
                found.add((one["id"], policy["name"], tuple(policy["members"])))
        for member in judged["out_of_service"]:
            found.add((one["id"], None, (member["member"],)))
    return found


@pytest.mark.parametrize("seed", range(cases(25, 300)))
def test_it_says_what_happens_then(seed: int) -> None:
    random = Random(seed)
    service = Service(fleet(random))
    try:
        for number in range(random.randint(1, 4)):
            found = created(service, described(random, f"e{number}"))
            if found is not None:
                boot(service, found, random)
        names = [service.store.snapshot().names[row] for row in service.store.snapshot().hosts]
        host = random.choice(sorted(names))
        rack = f"rack/r{host[1]}"
        lost = random.choice((host, rack))
        more = described(random, "more")
        before, rows = violations(service), tables(service)
        revision = service.store.snapshot().revision
        told = simulated(service, {"lose": lost}, {"admit": more}, flavors=["small", "large"])
        assert tables(service) == rows
        assert service.store.snapshot().revision == revision

        for name in told["down"]:
            answer = service.call("PUT", f"/hosts/{name}/service", DOWN, caller=OPERATOR)
            assert answer.status_code == 200
        made = created_by_operator(service, more)
        (admitted,) = told["admitted"]
        assert (admitted["verdict"] == "placed") == (made is not None)
        then = violations(service) - before
        assert {
            (one["ensemble_id"], one["policy"], tuple(one["members"]))
            for one in told["breaks"]["violations"]
        } == then
        assert told["breaks"]["found"] == len(then)
        assert {one["flavor"]: one["after"] for one in told["capacity"]} == fits(service)

        for one in told["losses"]:
            evacuated(service, one)
        assert {one["flavor"]: one["left"] for one in told["capacity"]} == fits(service)
    finally:
        service.close()


def created_by_operator(service: Service, body: Any) -> Any:
    answer = service.call(
        "POST", "/ensembles", {"ensemble": {**body, "decide": {}}}, caller=OPERATOR
    )
    assert answer.status_code in {201, 409}, answer.text
    return answer.json if answer.status_code == 201 else None


def evacuated(service: Service, told: Any) -> None:
    """Build the lost servers of an ensemble again, if they can be placed."""
    ensemble = service.store.ensemble(told["ensemble_id"])
    lost = [ensemble.member(MemberName.parse(name)) for name in told["lost"]]
    places = locate_members(service.store.snapshot(), ensemble).places
    left = {role["role"]: role["left"] for role in told["roles"]}
    assert left["db"] == len(places) - len(lost)
    gone = tuple(DeleteAllocations(str(one.server_id)) for one in lost)
    if told["again"]["verdict"] == "refused":
        assert told["again"]["why"]
        with pytest.raises(AssertionError):
            decided(service, told, gone)
        return
    assert told["again"]["verdict"] == "placed"
    decided(service, told, gone)
    assert sorted(told["again"]["hosts"]) == told["lost"]


def decided(service: Service, told: Any, gone: tuple[DeleteAllocations, ...]) -> None:
    """Free the places of lost servers, and decide the ensemble anew; else all is as it was."""
    owner = {one.consumer: service.store.consumer(one.consumer) for one in gone}
    service.store.commit(Changeset(gone, releases_places=True))
    answer = service.call(
        "POST", "/decisions", {"decision": {"ensemble_id": told["ensemble_id"]}}, caller=OPERATOR
    )
    if answer.status_code != 201:
        restore(service, owner)
    assert answer.status_code == 201, answer.text


def restore(service: Service, owner: Any) -> None:
    """Allocations of servers where they were."""
    for known in owner.values():
        consumer, bookings = known
        amounts = {one.provider: one.amounts for one in bookings}
        service.store.commit(Changeset((ReplaceAllocations(consumer, amounts, None),)))


def fits(service: Service) -> dict[str, int]:
    """How many servers of each flavor fit, each host taken by itself."""
    found = {}
    for flavor in ("small", "large"):
        shown = service.call(
            "GET", "/fleet/map", caller=OPERATOR, query={"flavor": flavor, "class": "VCPU"}
        )
        assert shown.status_code == 200, shown.text
        found[flavor] = sum(shown.json["map"]["blocks"]["fits"])
    return found


TWO_RACKS = """
fleet: two-racks
topology:
  location:
    levels: [rack]
    domains: [{name: r1, level: rack}, {name: r2, level: rack}, {name: r3, level: rack}]
  power:
    levels: [feed]
    domains: [{name: f1, level: feed}, {name: r2, level: feed}]
hosts:
  - {name: "h{n}", count: 2, inventories: {VCPU: 4}, place: {location: r1, power: f1}}
  - {name: "g{n}", count: 1, inventories: {VCPU: 4}, place: {location: r2}}
flavors:
  - {name: small, resources: {VCPU: 1}}
"""


@pytest.fixture
def racks() -> Any:
    made = Service(TWO_RACKS)
    yield made
    made.close()


def one(name: str, count: int, vcpu: int, *policies: Any, **role: Any) -> Any:
    member = {"name": "db", "count": count, "resources": {"VCPU": vcpu}, **role}
    return {"name": name, "members": [member], "policies": list(policies)}


def test_what_one_ensemble_is_given_the_next_one_finds_taken(racks: Service) -> None:
    for name in ("a", "b"):
        assert created(racks, one(name, 1, 4, min_available=1))
    told = simulated(racks, {"lose": "rack/r1"})
    assert told["down"] == ["h1", "h2"]
    counts = told["counts"]
    assert counts["ensembles"] == counts["without_quorum"]
    assert (counts["placed"], counts["refused"]) in {(1, 1), (1, 0)}
    verdicts = {loss["again"]["verdict"] for loss in told["losses"]}
    more = simulated(racks, {"lose": "rack/r1"}, {"add": {"count": 2, "like": "h1"}})
    assert more["counts"]["refused"] == 0
    assert more["added"] == ["new-1", "new-2"]
    assert "placed" in verdicts


def test_added_hosts_are_in_the_domains_that_are_named(racks: Service) -> None:
    apart = {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "rack"}
    three = one("three", 3, 1, apart)
    assert simulated(racks, {"admit": three})["admitted"][0]["verdict"] == "refused"
    add = {"add": {"count": 1, "like": "h1", "domains": ["rack/r3"]}}
    told = simulated(racks, add, {"admit": three}, flavors=["small"])
    (admitted,) = told["admitted"]
    assert admitted["verdict"] == "placed"
    assert "new-1" in admitted["hosts"].values()
    assert told["capacity"] == [{"flavor": "small", "before": 12, "after": 13, "left": 13}]
    # In the other order it is placed before the host is there.
    assert simulated(racks, {"admit": three}, add)["admitted"][0]["verdict"] == "refused"


def test_a_closed_host_takes_nothing_and_loses_nothing(racks: Service) -> None:
    assert created(racks, one("a", 3, 4))
    told = simulated(racks, {"close": "g1"}, flavors=["small"])
    assert (told["closed"], told["down"], told["losses"]) == (["g1"], [], [])
    assert [broken["type"] for broken in told["breaks"]["violations"]] == ["at_risk"]


def test_a_policy_that_would_be_broken(racks: Service) -> None:
    made = created(racks, one("a", 3, 1))
    id_ = made["ensemble"]["id"]
    fields = {"type": "anti-affinity", "members": ["db"], "level": "rack"}
    told = simulated(racks, {"policy": {"ensemble_id": id_, "name": "apart", "fields": fields}})
    (broken,) = told["breaks"]["violations"]
    assert (broken["ensemble_id"], broken["policy"]) == (id_, "apart")
    assert racks.store.ensemble(id_).policies == ()
    code, _, detail = refused(
        racks, {"policy": {"ensemble_id": id_, "name": "apart", "fields": {}}}
    )
    assert code == "ensemble.not_found"
    assert "type" in detail


def test_holds_have_lapsed_at_a_later_instant(racks: Service) -> None:
    assert created(racks, one("a", 3, 4))
    fit = simulated(racks, {"close": "g1"}, flavors=["small"])["capacity"][0]
    assert (fit["before"], fit["after"]) == (0, 0)
    later = simulated(racks, {"close": "g1"}, flavors=["small"], at="2026-11-21T11:00:00Z")
    assert later["at"] == "2026-11-21T11:00:00Z"
    assert later["capacity"] == [{"flavor": "small", "before": 12, "after": 8, "left": 8}]


def test_an_ensemble_may_be_admitted_twice(racks: Service) -> None:
    body = one("a", 1, 4)
    assert created(racks, body)
    told = simulated(racks, *({"admit": body} for _ in range(3)))
    verdicts = [admitted["verdict"] for admitted in told["admitted"]]
    assert verdicts == ["placed", "placed", "refused"]
    assert [admitted["ensemble"] for admitted in told["admitted"]] == ["a", "a", "a"]
    assert told["admitted"][2]["explanation"]["conflict"]


REFUSED: dict[str, tuple[Any, str, str | None]] = {
    "host": ({"lose": "h9"}, "unknown_name", "simulation.changes[0].lose"),
    "domain": ({"lose": "rack/r9"}, "unknown_name", "simulation.changes[0].lose"),
    "level": ({"close": "room/r1"}, "unknown_name", "simulation.changes[0].close"),
    "tree": ({"lose": "water:pipe/p1"}, "unknown_name", "simulation.changes[0].lose"),
    "empty": ({"lose": "rack/r3"}, "invalid_description", "simulation.changes[0].lose"),
    "like": ({"add": {"count": 1, "like": "h9"}}, "not_found", None),
    "place": (
        {"add": {"count": 1, "like": "h1", "domains": ["r9"]}},
        "unknown_name",
        "simulation.changes[0].add.domains",
    ),
    "several": (
        {"add": {"count": 1, "like": "h1", "domains": ["r2"]}},
        "invalid_description",
        "simulation.changes[0].add.domains",
    ),
    "places": (
        {"add": {"count": 1, "like": "h1", "domains": ["r1", "rack/r2"]}},
        "invalid_description",
        "simulation.changes[0].add.domains",
    ),
    "ensemble": (
        {"policy": {"ensemble_id": "none", "name": "x", "fields": {}}},
        "not_found",
        None,
    ),
    "nothing": ({}, "invalid_description", "simulation.changes[0]"),
    "both": ({"lose": "h1", "close": "h2"}, "invalid_description", "simulation.changes[0]"),
    "decide": (
        {"admit": {**one("a", 1, 1), "decide": {}}},
        "invalid_description",
        "simulation.changes[0].admit.decide",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_with_its_place(racks: Service, case: str) -> None:
    change, code, path = REFUSED[case]
    assert refused(racks, change)[:2] == (f"ensemble.{code}", path)


def test_past_instants_and_unknown_flavors_are_refused(racks: Service) -> None:
    code, path, detail = refused(racks, {"lose": "h1"}, at="2026-11-21T08:00:00Z")
    assert (code, path) == ("ensemble.invalid_description", "simulation.at")
    assert "past" in detail
    assert refused(racks, {"lose": "h1"}, flavors=["none"])[0] == "ensemble.not_found"
    many = [f"f{number}" for number in range(21)]
    assert refused(racks, {"lose": "h1"}, flavors=many)[0].startswith("ensemble.invalid")
    assert refused(racks, {"lose": "h1"}, time_limit="PT10H")[0] == "ensemble.quota_exceeded"


def test_tenants_may_not_simulate(racks: Service) -> None:
    body = {"simulation": {"changes": [{"lose": "h1"}]}}
    assert racks.call("POST", "/simulations", body, caller=TENANT).status_code == 403
