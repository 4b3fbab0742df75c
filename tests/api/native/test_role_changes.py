"""`PATCH /v1/ensembles/{id}`: a role gets another size, or other hosts, and a quorum."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from tests.api.native.conftest import refused

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import InUse
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.ensembles.change import ChangeRequest, change_flow

FLEET = """
fleet: two-racks
topology:
  location:
    levels: [rack]
    domains:
      - {name: "r{n}", count: 2, level: rack}
hosts:
  - name: "h{n}"
    count: 4
    inventories: {VCPU: 8, MEMORY_MB: 16384}
    traits: [HW_CPU_X86_AVX2]
    place:
      location: {name: "r{n}", count: 2}
flavors:
  - {name: small, resources: {VCPU: 2, MEMORY_MB: 2048}}
  - {name: large, resources: {VCPU: 6, MEMORY_MB: 8192}}
  - {name: fast, resources: {VCPU: 2, MEMORY_MB: 2048}, required: [HW_CPU_X86_AVX2]}
  - {name: vast, resources: {VCPU: 64, MEMORY_MB: 2048}}
"""
SHOP: dict[str, Any] = {
    "name": "shop",
    "members": [
        {"name": "db", "count": 3, "flavor": "small", "min_available": 2},
        {"name": "web", "count": 2, "flavor": "small"},
    ],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "host"}],
    "decide": {"hold": "PT1H"},
}


@pytest.fixture
def two_racks() -> Any:
    with_fleet = Service(FLEET)
    yield with_fleet
    with_fleet.close()


def created(service: Service, **changed: Any) -> str:
    answer = service.call("POST", "/ensembles", {"ensemble": {**SHOP, **changed}})
    assert answer.status_code == 201, answer.text
    return f"/ensembles/{answer.json['ensemble']['id']}"


@pytest.fixture
def path(two_racks: Service) -> str:
    return created(two_racks)


def change(service: Service, path: str, *roles: Any, dry: bool = False, **more: Any) -> Any:
    query = {"dry_run": "true"} if dry else None
    body = {"ensemble": {"members": list(roles), **more}}
    return service.call("PATCH", path, body, query=query, headers={"If-Match": "*"})


def changed(service: Service, path: str, *roles: Any, **more: Any) -> Any:
    answer = change(service, path, *roles, **more)
    assert answer.status_code == 200, answer.text
    return answer.json


def hosts(service: Service, path: str) -> Mapping[str, str]:
    answer = service.call("GET", f"{path}/members", caller=OPERATOR)
    return {one["name"]: one["host"] for one in answer.json["members"] if "host" in one}


def role(service: Service, path: str, name: str) -> Any:
    members = service.call("GET", path).json["ensemble"]["members"]
    return next(one for one in members if one["name"] == name)


def taken(service: Service, path: str, name: str) -> Any:
    answer = service.call("GET", f"{path}/members", caller=OPERATOR)
    (one,) = (one for one in answer.json["members"] if one["name"] == name)
    (amounts,) = one["allocations"].values()
    return amounts


def claimed(service: Service, made: Any, member: str, flavor: str = "small") -> str:
    body = {"claim": {"member": member, "server": {"flavorRef": flavor}}}
    answer = service.call("POST", f"/decisions/{made['id']}/claims", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json["claim"]["id"])


def with_server(service: Service, path: str, member: str, server: str) -> None:
    decision = service.call("GET", path).json["ensemble"]["decision"]
    claim = claimed(service, decision, member)
    body = {"claim": {"status": "active", "server_id": server}}
    answer = service.call("PATCH", f"/claims/{claim}", body)
    assert answer.status_code == 200, answer.text


SERVER = "00000000-0000-4000-8000-000000000001"


def test_members_keep_their_hosts_where_the_larger_flavor_fits(
    two_racks: Service, path: str
) -> None:
    before = hosts(two_racks, path)
    dry = changed(two_racks, path, {"name": "db", "flavor": "large"}, dry=True)
    assert dry["dry_run"]
    assert len(dry["decision"]["assignments"]) == 5
    assert role(two_racks, path, "db")["flavor"] == "small"
    made = changed(two_racks, path, {"name": "db", "flavor": "large"})
    assert "to_resize" not in made
    assert role(two_racks, path, "db")["flavor"] == "large"
    assert hosts(two_racks, path) == before
    assert taken(two_racks, path, "db[0]") == {"VCPU": 6, "MEMORY_MB": 8192}
    assert taken(two_racks, path, "web[0]") == {"VCPU": 2, "MEMORY_MB": 2048}
    again = changed(two_racks, path, {"name": "db", "flavor": "small"})
    assert again["decision"]["expires_at"] == made["decision"]["expires_at"]
    assert hosts(two_racks, path) == before


def test_only_those_move_that_have_no_room_where_they_are(two_racks: Service) -> None:
    packed = {"hold": "PT1H", "objective": "pack"}
    path = created(two_racks, policies=[], decide=packed)
    before = hosts(two_racks, path)
    assert len(set(before.values())) == 2, "four on one host, one on another"
    changed(two_racks, path, {"name": "db", "flavor": "large"})
    after = hosts(two_racks, path)
    moved = {name for name, host in after.items() if before[name] != host}
    assert moved < {"db[0]", "db[1]", "db[2]"}, "the others keep their places"
    of_db = [after[f"db[{i}]"] for i in range(3)]
    assert len(set(of_db)) == 3
    assert len(moved) == 1 or len(moved) == 2
    kept = {before[f"db[{i}]"] for i in range(3)} & set(of_db)
    assert kept, "a member stays where one of them fits"


def test_others_move_where_there_is_no_room_beside_them(two_racks: Service) -> None:
    path = created(
        two_racks,
        members=[
            {"name": "db", "count": 4, "flavor": "small"},
            {"name": "web", "count": 2, "resources": {"VCPU": 1}},
            {"name": "app", "count": 2, "resources": {"VCPU": 2}},
        ],
        policies=[
            {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "host"},
            {"name": "app-0", "type": "affinity", "members": ["app", "web"], "level": "host"},
        ],
    )
    refused_at = change(two_racks, path, {"name": "db", "resources": {"VCPU": 7}})
    assert refused_at.status_code == 409
    changed(two_racks, path, {"name": "web", "count": 0}, remove_policies=["app-0"])
    changed(two_racks, path, {"name": "db", "resources": {"VCPU": 6}})
    at = hosts(two_racks, path)
    assert len({at[f"db[{i}]"] for i in range(4)}) == 4
    assert at["app[0]"] != at["app[1]"], "one of them made room"


def test_what_fits_nowhere_is_refused_and_nothing_changes(two_racks: Service, path: str) -> None:
    before = hosts(two_racks, path)
    refused(change(two_racks, path, {"name": "db", "flavor": "vast"}), 409, "infeasible")
    assert role(two_racks, path, "db")["flavor"] == "small"
    assert hosts(two_racks, path) == before
    unknown = change(two_racks, path, {"name": "db", "flavor": "larg"})
    error = refused(unknown, 400, "unknown_name")
    assert "did you mean large?" in error["detail"]


def test_servers_keep_their_size_and_are_named(two_racks: Service, path: str) -> None:
    with_server(two_racks, path, "db[1]", SERVER)
    before = hosts(two_racks, path)
    made = changed(two_racks, path, {"name": "db", "flavor": "large"})
    assert made["to_resize"] == ["db[1]"]
    assert hosts(two_racks, path) == before
    assert taken(two_racks, path, "db[1]") == {"VCPU": 2, "MEMORY_MB": 2048}
    assert taken(two_racks, path, "db[0]") == {"VCPU": 6, "MEMORY_MB": 8192}
    back = changed(two_racks, path, {"name": "db", "flavor": "small"})
    assert "to_resize" not in back, "the server has that size"


@pytest.fixture
def service(three_racks: str) -> Any:
    with_fleet = Service(three_racks)
    yield with_fleet
    with_fleet.close()


def test_a_conflict_of_members_that_stay_is_none(service: Service) -> None:
    """Those in a rack that will be away may stay there, and none may be placed there."""
    members = [
        {"name": "web", "count": 3, "flavor": "m1.small"},
        {"name": "app", "count": 3, "flavor": "m1.medium"},
        {"name": "db", "count": 3, "flavor": "m1.xlarge", "required": ["HW_CPU_X86_AVX2"]},
    ]
    ha = {"name": "db-ha", "type": "survive", "members": ["db"], "level": "rack"}
    apart = {"name": "web-apart", "type": "anti-affinity", "members": ["web"], "level": "host"}
    even = {"name": "web-racks", "type": "spread", "members": ["web"], "level": "rack"}
    policies = [
        {**ha, "lose": 1, "keep": 2},
        {**apart, "max_per_domain": 1},
        {**even, "min_domains": 2, "max_skew": 1},
        {"name": "pair", "type": "proximity", "zip": ["app", "db"], "level": "rack"},
    ]
    made = {"name": "shop", "members": members, "policies": policies, "decide": {"hold": "PT2H"}}
    answer = service.call("POST", "/ensembles", {"ensemble": made})
    assert answer.status_code == 201, answer.text
    path = f"/ensembles/{answer.json['ensemble']['id']}"
    window = {"kind": "maintenance", "hosts": ["h4", "h5", "h6"]}
    window |= {"start": "2026-12-19T06:00:00Z", "end": "2026-12-20T06:00:00Z"}
    closed = service.call("POST", "/capacity/planned", {"window": window}, caller=OPERATOR)
    assert closed.status_code == 201, closed.text
    error = refused(
        change(service, path, {"name": "web", "flavor": "m1.medium"}, dry=True), 409, "infeasible"
    )
    why = error["explanation"]
    assert "db-ha" not in [one.get("policy") for one in why["conflict"]], why
    assert why["minimal"]
    relaxed = change(
        service,
        path,
        {"name": "web", "flavor": "m1.medium"},
        dry=True,
        policies=[{"name": "web-racks", "max_skew": 2}],
    )
    assert relaxed.status_code == 200, relaxed.text


def test_a_server_being_built_is_waited_for(two_racks: Service, path: str) -> None:
    decision = two_racks.call("GET", path).json["ensemble"]["decision"]
    claimed(two_racks, decision, "db[1]")
    error = refused(change(two_racks, path, {"name": "db", "flavor": "large"}), 409, "in_use")
    assert "db[1]" in error["detail"]
    assert error["detail"].endswith("; to see its claims: moorage claim list shop")
    changed(two_racks, path, {"name": "web", "flavor": "large"})


def test_a_claim_that_comes_while_a_role_changes_keeps_its_place(
    two_racks: Service, path: str
) -> None:
    env, ensemble_id = two_racks.env, path.rpartition("/")[2]
    wanted = ChangeRequest(members=({"name": "db", "flavor": "large"},))
    request = next(change_flow(env, TENANT, ensemble_id, wanted, None))
    decision = two_racks.call("GET", path).json["ensemble"]["decision"]
    claimed(two_racks, decision, "db[1]")
    places = locate_members(env.store.snapshot(), env.store.ensemble(ensemble_id))
    with pytest.raises(InUse, match=r"db\[1\]"):
        request.proposal.selections[0](places)


def test_headroom_of_the_former_size_is_given_back_first(two_racks: Service, path: str) -> None:
    body = {"headroom": {"role": "web", "count": 1}}
    answer = two_racks.call("PUT", f"{path}/headroom", body)
    assert answer.status_code == 200, answer.text
    error = refused(change(two_racks, path, {"name": "web", "flavor": "large"}), 409, "in_use")
    assert "moorage ensemble headroom shop --role web --count 0" in error["detail"]


def test_what_the_role_asks_for_beside_its_flavor_stays(two_racks: Service) -> None:
    path = created(
        two_racks,
        members=[
            {"name": "db", "flavor": "fast", "forbidden": ["HW_CPU_X86_SSE"]},
            {"name": "own", "flavor": "small", "required": ["HW_CPU_X86_AVX2"]},
        ],
        policies=[],
    )
    changed(two_racks, path, {"name": "db", "flavor": "large"}, {"name": "own", "flavor": "large"})
    db, own = role(two_racks, path, "db"), role(two_racks, path, "own")
    assert (db["required"], db["forbidden"]) == ([], ["HW_CPU_X86_SSE"])
    assert own["required"] == ["HW_CPU_X86_AVX2"]
    changed(two_racks, path, {"name": "own", "required": []})
    own = role(two_racks, path, "own")
    assert (own["flavor"], own["required"]) == ("large", [])
    changed(two_racks, path, {"name": "own", "resources": {"VCPU": 1}})
    own = role(two_racks, path, "own")
    assert (own["flavor"], own["resources"]) == (None, {"VCPU": 1})


def test_what_cannot_change_is_named(two_racks: Service, path: str) -> None:
    ports = {"name": "db", "ports": [{"name": "p", "resources": {"VCPU": 1}}]}
    error = refused(change(two_racks, path, ports), 400, "invalid_description")
    assert "of role db can change: boot_from_volume, count, flavor" in error["detail"]
    assert error["path"] == "members[0].ports"


def test_a_ticket_has_flavors_of_one_size(two_racks: Service, path: str) -> None:
    before = two_racks.store.decisions(project_id="project-a")[0]
    made = changed(two_racks, path, {"name": "db", "count": 4})
    assert two_racks.store.decision(made["decision"]["id"]).ticket == before.ticket
    made = changed(two_racks, path, {"name": "db", "flavor": "large"})
    assert two_racks.store.decision(made["decision"]["id"]).ticket == made["decision"]["id"]


# The quorum.


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (4, "members[0].min_available: role db has 3 members, so min_available is 0 to 3, not 4"),
        (-1, "min_available"),
        ("50%", "min_available"),
    ],
)
def test_a_quorum_is_a_number_of_the_members(two_racks: Service, said: Any, told: str) -> None:
    db = {"name": "db", "count": 3, "flavor": "small", "min_available": said}
    answer = two_racks.call("POST", "/ensembles", {"ensemble": {**SHOP, "members": [db]}})
    error = refused(answer, 400, "invalid_description")
    assert told in f"{error.get('path')}: {error['detail']}"


def test_a_quorum_is_shown_and_changed(two_racks: Service, path: str) -> None:
    assert role(two_racks, path, "db")["min_available"] == 2
    assert "min_available" not in role(two_racks, path, "web")
    decision = two_racks.call("GET", path).json["ensemble"]["decision"]["id"]
    answer = changed(two_racks, path, {"name": "web", "min_available": 1})
    assert answer["decision"] is None, "nothing is decided anew"
    assert role(two_racks, path, "web")["min_available"] == 1
    assert two_racks.call("GET", path).json["ensemble"]["decision"]["id"] == decision
    error = refused(
        change(two_racks, path, {"name": "web", "min_available": 3}), 400, "invalid_description"
    )
    assert error["path"] == "members[0].min_available"
    changed(two_racks, path, {"name": "web", "min_available": 0})
    assert "min_available" not in role(two_racks, path, "web")


REMEDY = "; to let fewer be up: moorage ensemble set shop --member db:min_available=1"


def test_no_change_goes_below_the_quorum(two_racks: Service, path: str) -> None:
    below = "below_min_available"
    error = refused(change(two_racks, path, {"name": "db", "count": 1}), 409, below)
    least = "min_available of role db is 2, and 1 of its 3 members would be left"
    assert error["detail"] == least + REMEDY
    shrunk = two_racks.call("POST", f"{path}/shrink", {"shrink": {"role": "db", "count": 2}})
    assert refused(shrunk, 409, below)["detail"] == least + REMEDY
    gone = two_racks.call("DELETE", f"{path}/members/db[0]")
    assert gone.status_code == 200
    for query in (None, {"dry_run": "true"}):
        last = two_racks.call("DELETE", f"{path}/members/db[1]", query=query)
        assert "1 of its 2 members would be left" in refused(last, 409, below)["detail"]
    changed(two_racks, path, {"name": "db", "count": 1, "min_available": 1})
    assert role(two_racks, path, "db")["count"] == 1


def test_a_lease_keeps_the_quorum(two_racks: Service) -> None:
    lease = {
        "name": "shop",
        "ensemble": {
            "members": [{"name": "db", "count": 3, "flavor": "small", "min_available": 2}],
        },
        "start": "2026-11-22T09:00:00Z",
        "end": "2026-11-23T09:00:00Z",
    }
    made = two_racks.call("POST", "/leases", {"lease": lease})
    assert made.status_code == 201, made.text
    path = f"/leases/{made.json['lease']['id']}"
    fewer, match = {"lease": {"counts": {"db": 1}}}, {"If-Match": "*"}
    answer = two_racks.call("PATCH", path, fewer, headers=match)
    assert REMEDY in refused(answer, 409, "below_min_available")["detail"]
    changed(two_racks, f"/ensembles/{made.json['lease']['ensemble_id']}", LEAST)
    assert two_racks.call("PATCH", path, fewer, headers=match).status_code == 200


LEAST = {"name": "db", "min_available": 1}


def test_survivability_needs_the_quorum(two_racks: Service, path: str) -> None:
    found = two_racks.call("GET", f"{path}/survivability").json["survivability"]
    needed = {one["level"]: {r["role"]: r["needed"] for r in one["roles"]} for one in found}
    assert needed == {"rack": {"db": 2, "web": 1}, "host": {"db": 2, "web": 1}}
    rack = next(one for one in found if one["level"] == "rack")
    assert [one["ok"] for one in rack["roles"] if one["role"] == "db"] == [False]


def test_a_refusal_proposes_no_fewer_than_must_be_up(two_racks: Service) -> None:
    db = {"name": "db", "count": 6, "flavor": "small", "min_available": 5}
    body = {"ensemble": {**SHOP, "members": [db]}}
    answer = two_racks.call("POST", "/ensembles", body, caller=OPERATOR)
    error = refused(answer, 409, "infeasible")
    counts = [one["change"].get("count") for one in error["explanation"]["relaxations"]]
    assert [6, 4] not in counts, "four hosts: four members fit, and five must be up"


def test_a_shared_role_keeps_its_size_while_it_is_placed(two_racks: Service) -> None:
    both = [{"name": "db", "count": 1, "flavor": "small", "project": "project-b"}]
    path = created(two_racks, members=both, policies=[], decide=None)
    changed(two_racks, path, {"name": "db", "flavor": "large"})
    assert role(two_racks, path, "db")["flavor"] == "large"


def test_allocations_of_others_are_respected(two_racks: Service, path: str) -> None:
    at = hosts(two_racks, path)["db[0]"]
    snapshot = two_racks.store.snapshot()
    provider = snapshot.uuids[snapshot.names.index(at)]
    stranger = Consumer(SERVER, "project-b", "bob", "INSTANCE")
    amounts = MappingProxyType({provider: MappingProxyType({"VCPU": 3})})
    two_racks.store.commit(Changeset((ReplaceAllocations(stranger, amounts, None),)))
    answer = change(two_racks, path, {"name": "db", "flavor": "large"})
    assert answer.status_code == 200, answer.text
    assert hosts(two_racks, path)["db[0]"] != at


# What the removal of a member does to later changes.


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            {"type": "survive", "level": "host", "keep": 3},
            "conflict (minimal): rule needs more than 3 x web to keep 3",
        ),
        (
            {"type": "affinity", "level": "rack", "members": ["web[3]", "web[0]"]},
            "policy rule: web[3] selects nothing here",
        ),
    ],
)
def test_a_removal_tells_which_changes_will_be_refused(
    two_racks: Service, policy: Mapping[str, Any], told: str
) -> None:
    rule = {"name": "rule", "members": ["web"], **policy}
    web = {"name": "web", "count": 4, "flavor": "small"}
    path = created(two_racks, members=[web], policies=[rule])
    remedy = "; to go without rule: moorage ensemble set shop --remove-policy rule, to change it:"
    for query in ({"dry_run": "true"}, None):
        answer = two_racks.call("DELETE", f"{path}/members/web[3]", query=query)
        further = answer.json["removed"]["further_changes"]
        assert further.startswith(told)
        assert remedy in further
    more = change(two_racks, path, {"name": "web", "count": 3, "min_available": 1})
    (error,) = more.json["errors"]
    assert (more.status_code, remedy in error["detail"]) == (400, True), error
    next_one = two_racks.call("DELETE", f"{path}/members/web[2]")
    assert "further_changes" not in next_one.json["removed"], "they were refused before"
    changed(two_racks, path, remove_policies=["rule"])


def test_a_claim_names_members_and_flavors_that_there_are(two_racks: Service, path: str) -> None:
    decision = two_racks.call("GET", path).json["ensemble"]["decision"]["id"]

    def claims(member: str, server: Mapping[str, Any]) -> Any:
        body = {"claim": {"member": member, "server": server}}
        return two_racks.call("POST", f"/decisions/{decision}/claims", body)

    nobody = refused(claims("db[7]", {}), 404, "not_found")
    assert nobody["detail"] == "no member db[7]: role db has 3 members, db[0] to db[2]"
    sizeless = refused(claims("db[0]", {}), 400, "invalid_description")
    assert sizeless["detail"] == (
        "the server's flavor is missing (flavorRef, --flavor); the flavor of role db is small"
    )
    both = refused(claims("db[0]", {"flavor": "small", "flavorRef": "small"}), 400, BAD)
    assert both["detail"] == "a server has one size, not flavor and flavorRef"


BAD = "invalid_description"


def test_names_that_there_are_not_are_answered_with_those_there_are(two_racks: Service) -> None:
    shown = refused(two_racks.call("GET", "/flavors/smal"), 404, "not_found")
    assert shown["detail"] == "no flavor smal; did you mean small?"
    shown = refused(two_racks.call("GET", "/flavors/xyz"), 404, "not_found")
    assert shown["detail"] == "no flavor xyz; there are: fast, large, small, vast"
    policies = [{"type": "anti-affinity", "members": ["db"], "level": "vm"}]
    answer = two_racks.call("POST", "/ensembles", {"ensemble": {**SHOP, "policies": policies}})
    detail = refused(answer, 400, "unknown_name")["detail"]
    assert detail == "no such level: vm; there are: rack, host, server"
    policies = [{"type": "isolate", "members": ["db"], "at": "vm"}]
    answer = two_racks.call("POST", "/ensembles", {"ensemble": {**SHOP, "policies": policies}})
    detail = refused(answer, 400, "unknown_name")["detail"]
    assert detail == "no such level: vm; there are: rack, host, server, vnic"
