"""Volumes, ports and bare metal: described, placed beside servers, claimed and refused."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import pytest
from tests.api.native.conftest import refused
from tests.api.native.test_slice_claims import claim, status, tell

from moorage.client.ensemble_difference import differences
from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.fleet_expansion import aggregate_uuid
from moorage.domain.leases import reservation_class
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.tickets.places import place_holders, presented_reservation
from moorage.wire.ensembles import Ensemble
from moorage.wire.flavors import FlavorValue

FLEET = """\
fleet: store
topology:
  location: {levels: [rack], domains: [{name: r1, level: rack}, {name: r2, level: rack}]}
hosts:
  - name: "n{n}"
    count: 4
    inventories: {VCPU: 8, DISK_GB: 500}
    aggregates: [all]
    place: {location: [r1, r2]}
    children:
      - {name: nic, inventories: {NET_BW_EGR_KILOBIT_PER_SEC: 10}, traits: [CUSTOM_A]}
      - {name: lvm, inventories: {CUSTOM_LOCAL_GB: 100}}
  - {name: "iron{n}", count: 2, inventories: {CUSTOM_GOLD: 1}, place: {location: [r1, r2]}}
sharing:
  - {name: fast, inventories: {DISK_GB: 300}, aggregates: [all], traits: [CUSTOM_SSD],
     place: {location: r1}}
  - {name: slow, inventories: {DISK_GB: 300}, aggregates: [all], place: {location: r2}}
  - {name: far, inventories: {CUSTOM_TAPE_GB: 300}, aggregates: [all]}
flavors:
  - {name: m1.small, resources: {VCPU: 1, DISK_GB: 20}}
  - {name: gold, resources: {CUSTOM_GOLD: 1}}
"""
DB: dict[str, Any] = {"name": "db", "flavor": "m1.small"}
DATA: dict[str, Any] = {"name": "data", "kind": "volume", "resources": {"DISK_GB": 100}}
LINK: dict[str, Any] = {
    "name": "link",
    "kind": "port",
    "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 4},
    "required": ["CUSTOM_A"],
}
NODE: dict[str, Any] = {"name": "node", "kind": "baremetal", "flavor": "gold"}
NUMBERS = count()
ID = "bbbbbbbb-0000-4000-8000-00000000000c"


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service(FLEET)
    yield found
    found.close()


def described(*roles: Any, policies: Any = ()) -> dict[str, Any]:
    return {"name": f"k{next(NUMBERS)}", "members": list(roles), "policies": list(policies)}


def ask(service: Service, body: Any, **more: Any) -> Any:
    return service.call("POST", "/ensembles", {"ensemble": {**body, "decide": {}}}, **more)


def made(service: Service, body: Any, **more: Any) -> Any:
    answer = ask(service, body, **more)
    assert answer.status_code == 201, answer.text
    return answer.json


def hosts(found: Any) -> dict[str, str]:
    return {one["member"]: one["host"] for one in found["decision"]["assignments"]}


def near(level: str, *members: str, **more: Any) -> dict[str, Any]:
    return {"name": level, "type": "affinity", "members": list(members), "level": level, **more}


def test_one_policy_joins_all_kinds(service: Service) -> None:
    together = [
        near("rack", "*"),
        {"name": "home", "type": "affinity", "zip": ["db", "link"], "level": "host"},
        {"name": "apart", "type": "anti-affinity", "members": ["db"]},
    ]
    roles = ({**DB, "count": 2}, {**DATA, "count": 2}, {**LINK, "count": 2}, NODE)
    found = made(service, described(*roles, policies=together), caller=OPERATOR)
    at = hosts(found)
    assert (at["link[0]"], at["link[1]"]) == (at["db[0]"], at["db[1]"])
    assert at["db[0]"] != at["db[1]"]
    racks = {one["domains"]["rack"] for one in found["decision"]["assignments"]}
    assert len(racks) == 1
    pool = {"r1": "fast", "r2": "slow"}[racks.pop()]
    assert at["data[0]"] == at["data[1]"] == pool
    kinds = {one["member"]: one["kind"] for one in found["decision"]["assignments"]}
    assert (kinds["data[0]"], kinds["link[1]"], kinds["node[0]"]) == ("volume", "port", "baremetal")
    snapshot = service.store.snapshot()
    links = [one for one in found["decision"]["assignments"] if one["member"].startswith("link")]
    givers = {snapshot.names[snapshot.row_of[one]] for each in links for one in each["allocations"]}
    assert givers == {f"{at[name]}/nic" for name in ("db[0]", "db[1]")}


def test_a_volume_is_of_one_pool_and_of_no_compute_node(service: Service) -> None:
    """Hosts have 500 GB each, which servers take from; each pool has 300."""
    found = made(service, described({**DATA, "count": 6}), caller=OPERATOR)
    assert sorted(hosts(found).values()) == ["fast"] * 3 + ["slow"] * 3
    error = refused(ask(service, described(DATA), caller=OPERATOR), 409, "infeasible")
    assert error["explanation"]["counts"] == {
        "considered": 9,
        "rejected": {"unit:DISK_GB": 2, "devices:volume": 7, "capacity:DISK_GB": 2},
    }


def test_a_local_pool_of_a_host_gives_volumes(service: Service) -> None:
    local = {**DATA, "resources": {"CUSTOM_LOCAL_GB": 60}}
    found = made(service, described(local, DB, policies=[near("host", "*")]), caller=OPERATOR)
    assert len(set(hosts(found).values())) == 1


def test_pools_have_the_traits_themselves_and_serve_no_servers(service: Service) -> None:
    found = made(service, described({**DATA, "required": ["CUSTOM_SSD"]}, DB), caller=OPERATOR)
    at = hosts(found)
    assert at["data[0]"] == "fast"
    assert at["db[0]"].startswith("n")
    diskless = {"name": "a", "resources": {"DISK_GB": 10}, "required": ["CUSTOM_SSD"]}
    at = hosts(made(service, described(diskless), caller=OPERATOR))
    assert at["a[0]"].startswith("n")


def test_a_pool_without_a_rack_is_in_no_rack(service: Service) -> None:
    tape = {**DATA, "resources": {"CUSTOM_TAPE_GB": 10}}
    assert hosts(made(service, described(tape), caller=OPERATOR)) == {"data[0]": "far"}
    refused(ask(service, described(tape, DB, policies=[near("rack", "*")])), 409, "infeasible")


def test_a_refusal_names_what_is_scarce(service: Service) -> None:
    many = {**DATA, "count": 4, "required": ["CUSTOM_SSD"]}
    error = refused(ask(service, described(many), caller=OPERATOR), 409, "infeasible")
    assert error["explanation"]["conflict"] == [
        {"resources": "data", "needs": "100 DISK_GB for each of 4 x data"},
        {"traits": "data", "needs": "providers with CUSTOM_SSD for 4 x data"},
        {"topology": "DISK_GB of providers usable for data when empty", "have": 300, "needed": 400},
    ]
    changes = [one["change"] for one in error["explanation"]["relaxations"]]
    assert {"member": "data", "count": [4, 3]} in changes


@pytest.mark.parametrize(
    ("role", "what"),
    [
        ({**DATA, "resources": {"VCPU": 1}}, "pool that gives such volumes"),
        ({**LINK, "resources": {"FPGA": 1}, "required": []}, "provider that gives such ports"),
    ],
)
def test_a_refusal_names_what_nothing_gives(service: Service, role: Any, what: str) -> None:
    error = refused(ask(service, described(role)), 409, "infeasible")
    assert error["explanation"]["conflict"] == []
    assert error["explanation"]["note"].startswith(f"no {what}")
    assert f"is open to role {role['name']}" in error["explanation"]["note"]


@pytest.mark.parametrize(("role", "word"), [(DATA, "VOLUME"), (LINK, "PORT")])
def test_what_is_no_server_is_claimed_without_nova(
    service: Service, role: dict[str, Any], word: str
) -> None:
    held = made(service, described(role))
    one = claim(service, held, f"{role['name']}[0]").json["claim"]
    assert (one["present_as"], one["server_patch"]) == (None, None)
    assert one["comparison"] == {"verdict": "matches", "diff": []}
    assert tell(service, one, "active", server_id=ID).status_code == 200
    ((who, there),) = service.store.bookings(consumer=ID)
    assert (who.type, who.project_id) == (word, TENANT.project_id)
    assert (there.state, dict(there.amounts)) == (BookingState.ALLOCATED, role["resources"])
    assert tell(service, one, "ended").json["claim"]["status"] == "ended"
    assert service.store.consumer(ID) is None
    again = claim(service, held, f"{role['name']}[0]").json["claim"]
    assert tell(service, again, "failed").json["claim"]["status"] == "failed"
    assert status(service, one) == "ended"
    told = service.call("GET", "/events", query={"type": "slice.*"}).json["events"]
    assert not told


@pytest.mark.parametrize(
    ("field", "word"),
    [("flavorRef", "flavor"), ("imageRef", "image"), ("image_properties", "image")],
)
@pytest.mark.parametrize("on_mismatch", ["refuse", "redecide_member"])
def test_what_is_no_server_has_no_flavor_and_no_image(
    service: Service, field: str, word: str, on_mismatch: str
) -> None:
    held = made(service, described(DATA))
    request = {"server": {field: "m1.small"}, "on_mismatch": on_mismatch}
    error = refused(claim(service, held, "data[0]", **request), 400, "invalid_description")
    assert error["path"] == f"server.{field}"
    assert error["detail"] == f"role data is of kind volume, which has no {word}; leave it out"
    one = claim(service, held, "data[0]", server={"networks": "none"}).json["claim"]
    diff = [{"path": "networks", "effect": "ignored"}]
    assert one["comparison"] == {"verdict": "matches", "diff": diff}


def test_no_more_is_claimed_than_was_placed(service: Service) -> None:
    held = made(service, described(DATA))
    more = {"resources": {"DISK_GB": 200}}
    refused(claim(service, held, "data[0]", server=more), 409, "description_mismatch")
    less = claim(service, held, "data[0]", server={"resources": {"DISK_GB": 50}}).json["claim"]
    assert less["comparison"]["verdict"] == "narrower"
    tell(service, less, "active", server_id=ID)
    ((_, there),) = service.store.bookings(consumer=ID)
    assert dict(there.amounts) == {"DISK_GB": 50}


def test_what_is_left_of_a_deleted_ensemble_can_end(service: Service) -> None:
    held = made(service, described(DATA))
    one = claim(service, held, "data[0]").json["claim"]
    assert tell(service, one, "active", server_id=ID).status_code == 200
    path = f"/ensembles/{held['ensemble']['id']}"
    assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    assert status(service, one) == "active"
    for _ in range(2):
        assert tell(service, one, "ended").json["claim"]["status"] == "ended"
    assert service.store.consumer(ID) is None


def test_a_whole_node_is_claimed_with_nova(service: Service) -> None:
    held = made(service, described({**NODE, "count": 2}), caller=OPERATOR)
    assert sorted(hosts(held).values()) == ["iron1", "iron2"]
    path = f"/decisions/{held['decision']['id']}/claims"
    body = {"claim": {"member": "node[0]", "server": {"flavorRef": "gold"}}}
    one = service.call("POST", path, body, caller=OPERATOR).json["claim"]
    assert one["present_as"]["header"]
    refused(ask(service, described(NODE)), 409, "infeasible")


def test_slice_else_server_else_whole_node(service: Service) -> None:
    """No server offers slices, and one server has room: the rest takes nodes."""
    choices = [
        {"kind": "slice", "resources": {"CUSTOM_LOCAL_GB": 1}},
        {"resources": {"VCPU": 8, "DISK_GB": 100}},
        {"kind": "baremetal", "flavor": "gold"},
    ]
    role = {"name": "gate", "count": 5, "alternatives": choices}
    apart = {"name": "apart", "type": "anti-affinity", "members": ["gate"]}
    found = made(service, described(role, policies=[apart]), caller=OPERATOR)
    kinds = sorted(one["kind"] for one in found["decision"]["assignments"])
    assert kinds == ["baremetal", "server", "server", "server", "server"]
    again = {"name": "more", "count": 1, "alternatives": choices}
    found = made(service, described(again), caller=OPERATOR)
    assert [one["kind"] for one in found["decision"]["assignments"]] == ["baremetal"]


def test_what_is_stored_is_as_it_was_described(service: Service) -> None:
    choice = {"kind": "volume", "resources": {"DISK_GB": 1}, "forbidden": ["CUSTOM_SSD"]}
    roles = (
        {**DATA, "member_of": [aggregate_uuid("all")], "required": [["CUSTOM_SSD", "CUSTOM_A"]]},
        *(LINK, NODE, DB),
        {"name": "any", "count": 1, "alternatives": [choice, {"flavor": "m1.small"}]},
    )
    body = described(*roles)
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 201, answer.text
    flavors = service.call("GET", "/flavors").json["flavors"]
    known = {one["name"]: msgspec.convert(one, FlavorValue) for one in flavors}
    stored = msgspec.convert(answer.json["ensemble"], Ensemble)
    assert list(differences(stored, read_ensemble(body), known)) == []


def test_an_exclusive_volume_keeps_others_out_of_its_pool(service: Service) -> None:
    alone = {"name": "alone", "type": "exclusive", "members": ["data"]}
    fast = {**DATA, "required": ["CUSTOM_SSD"]}
    made(service, described(fast, policies=[alone]))
    refused(ask(service, described(fast), caller=OTHER), 409, "infeasible")
    assert ask(service, described(DATA), caller=OTHER).status_code == 201


@pytest.mark.parametrize(
    "kind", [{"type": "exclusive", "level": "rack"}, {"type": "isolate", "at": "rack"}]
)
def test_a_rack_with_a_volume_of_others_is_not_kept_to_servers(service: Service, kind: Any) -> None:
    alone = {"name": "alone", "members": ["db"], **kind}

    def dry_run() -> Any:
        body, query = described(DB, policies=[alone]), {"dry_run": "true"}
        return ask(service, body, caller=OPERATOR, query=query)

    made(service, described({**DATA, "forbidden": ["CUSTOM_SSD"]}), caller=OTHER)
    (place,) = dry_run().json["decision"]["assignments"]
    assert place["domains"]["rack"] == "r1"
    made(service, described({**DATA, "required": ["CUSTOM_SSD"]}), caller=OTHER)
    refused(dry_run(), 409, "infeasible")


def test_who_borrows_from_a_pool_of_a_kept_rack_is_seen_there(service: Service) -> None:
    alone = {"name": "alone", "type": "exclusive", "members": ["db"], "level": "rack"}
    found = made(service, described(DB, policies=[alone]), caller=OPERATOR)
    pool = {"r1": "fast", "r2": "slow"}[found["decision"]["assignments"][0]["domains"]["rack"]]

    def broken() -> list[str]:
        path, asked = f"/ensembles/{found['ensemble']['id']}", {"compliance": "true"}
        shown = service.call("GET", path, caller=OPERATOR, query=asked).json["ensemble"]
        return [one["policy"] for one in shown["compliance"]]

    assert broken() == []
    snapshot = service.store.snapshot()
    there = {snapshot.uuids[snapshot.names.index(pool)]: {"DISK_GB": 1}}
    stranger = Consumer(ID, OTHER.project_id, "user")
    service.store.commit(Changeset((ReplaceAllocations(stranger, there, ANY_GENERATION),)))
    assert broken() == ["alone"]


def test_volumes_are_leased_beside_what_is_held_before(service: Service) -> None:
    body = described({**DATA, "count": 4})
    lease = {"name": "later", "start": "2026-11-22T09:00:00Z", "end": "2026-11-22T18:00:00Z"}
    answer = service.call("POST", "/leases", {"lease": {**lease, "ensemble": body}})
    assert answer.status_code == 201, answer.text
    again = {**lease, "name": "again", "ensemble": described({**DATA, "count": 3})}
    error = refused(service.call("POST", "/leases", {"lease": again}), 409, "infeasible")
    assert error["explanation"]["earliest_start"] == "2026-11-22T18:00:00Z"
    until = {**described({**DATA, "count": 6}), "decide": {"until": lease["start"]}}
    held = service.call("POST", "/ensembles", {"ensemble": until})
    assert held.status_code == 201, held.text


def test_of_a_lease_only_servers_and_nodes_are_offered_to_nova(service: Service) -> None:
    body = described(DB, DATA, LINK, NODE)
    lease = {"name": "now", "duration": "PT1H", "ensemble": body}
    answer = service.call("POST", "/leases", {"lease": lease})
    assert answer.status_code == 201, answer.text
    every = answer.json["lease"]["reservations"]
    classes = {one["role"]: reservation_class(one["id"]) for one in every}
    offered = {one["role"]: one["resource_class"] for one in every}
    assert offered == {**classes, "data": None, "link": None}
    assert {one["kind"] for one in every} == {"server", "volume", "port", "baremetal"}
    (listed,) = service.call("GET", "/leases").json["leases"]
    assert {one["role"]: one["resource_class"] for one in listed["reservations"]} == offered
    assert set(place_holders(service.store, classes.values())) == {classes["db"], classes["node"]}
    presented = {
        one["role"]: presented_reservation(service.store, f"req-{one['id']}") for one in every
    }
    assert presented == offered


def test_copies_are_not_said_to_be_all_where_more_may_fit(service: Service) -> None:
    """The first copy is packed on the fast pool, which each of them needs for the other volume."""
    wanted = {**DATA, "name": "log", "required": ["CUSTOM_SSD"]}
    two: dict[str, Any] = {"name": "two", "type": "anti-affinity", "members": ["*"]}
    two |= {"strength": "preferred", "max_per_domain": 2}
    body = {"ensemble": described(DATA, wanted, policies=[two])}
    made = service.call("POST", "/ensembles", body).json["ensemble"]["id"]
    asked = {"fit": {"ensemble_id": made}}
    said = service.call("POST", "/capacity/fit", asked, caller=OPERATOR).json["fit"]
    assert said["additional"] <= 3
    assert not (said["exact"] and said["additional"] < 3)


@pytest.mark.parametrize(
    ("role", "path", "says"),
    [
        ({"kind": "tape", "resources": {"DISK_GB": 1}}, "kind", "tape"),
        ({"kind": "volume"}, "resources", "needs resources"),
        ({**DATA, "flavor": "m1.small"}, "flavor", "kind volume"),
        ({**DATA, "on_server": ID}, "on_server", "kind volume"),
        ({**DATA, "server": {"key_name": "ann"}}, "server", "kind volume, which has no server"),
        ({**LINK, "ports": [{"name": "p"}]}, "ports", "kind port"),
        ({**LINK, "same_subtree": []}, "same_subtree", "kind port"),
        ({**DATA, "resources": {"DISK_GB": 0}}, "resources", ""),
        ({**DATA, "resources": {"CUSTOM_NOTHING": 1}}, "resources", "CUSTOM_NOTHING"),
        ({**NODE, "volumes": [{"name": "v", "size_gb": 1}]}, "volumes", "kind baremetal"),
        ({**NODE, "flavor": "m1.small"}, "flavor", "DISK_GB=20 VCPU=1"),
        ({"kind": "baremetal"}, "flavor", "needs a flavor or resources"),
        ({"kind": "baremetal", "resources": {"CUSTOM_GOLD": 2}}, "resources", "CUSTOM_GOLD=2"),
        ({"kind": "baremetal", "resources": {"VCPU": 1}}, "resources", "a whole node"),
        (
            {"kind": "baremetal", "resources": {"CUSTOM_GOLD": 1, "CUSTOM_LOCAL_GB": 1}},
            "resources",
            "nothing else",
        ),
        (
            {"alternatives": [{"kind": "baremetal", "flavor": "m1.small"}, {"flavor": "m1.small"}]},
            "alternatives[0].flavor",
            "a whole node",
        ),
    ],
)
def test_bad_roles_are_refused_by_name(service: Service, role: Any, path: str, says: str) -> None:
    body = {"name": "e", "members": [{**role, "name": "s"}]}
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 400, answer.text
    (error,) = answer.json["errors"]
    assert path in error["path"], error
    assert says in error["detail"], error
