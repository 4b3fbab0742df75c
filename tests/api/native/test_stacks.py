"""`/v1/stacks`: the ensemble of a Heat stack follows its template."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from tests.api.native.conftest import refused

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.period import MINUTE
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service
from moorage.usecases.claims.place_returns import commit_with_returns

STACK = "5a5a5a5a-0000-4000-8000-000000000001"
PATH = f"/stacks/{STACK}"
OTHER_PATH = f"{PATH[:-1]}2"
APART = {"type": "anti-affinity", "level": "host"}
RACKS = {"type": "spread", "level": "rack", "max_skew": 1}


def group(count: int, flavor: str = "m1.small", *policies: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "OS::Heat::ResourceGroup",
        "metadata": {"moorage": {"policies": list(policies)}},
        "properties": {"count": count, "resource_def": server(flavor)},
    }


def scaling(size: int, *policies: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "OS::Heat::AutoScalingGroup",
        "metadata": {"moorage": {"policies": list(policies)}},
        "properties": {
            "min_size": 0,
            "max_size": 9,
            "desired_capacity": size,
            "resource": server("m1.small"),
        },
    }


def server(flavor: str) -> dict[str, Any]:
    return {"type": "OS::Nova::Server", "properties": {"flavor": flavor, "image": "cirros"}}


def stack(resources: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    text = yaml.safe_dump({"heat_template_version": "2018-08-31", "resources": dict(resources)})
    return {"stack": {"name": "shop", "template": text, **others}}


def put(service: Service, resources: Mapping[str, Any], **others: Any) -> Any:
    """What the stack becomes."""
    answer = service.call("PUT", PATH, stack(resources, **others))
    assert answer.status_code == 200, answer.text
    return answer.json["stack"]


def members(service: Service) -> dict[str, Any]:
    answer = service.call("GET", f"/ensembles/{STACK}/members", caller=OPERATOR)
    return {one["name"]: one for one in answer.json["members"]}


def hosts(service: Service) -> dict[str, str]:
    return {name: one["host"] for name, one in members(service).items() if "host" in one}


def booked(service: Service) -> set[str]:
    """The project's consumers that have or hold anything."""
    bookings = service.call("GET", "/bookings", caller=OPERATOR).json["bookings"]
    return {one["consumer"] for one in bookings if one["project_id"] == TENANT.project_id}


def claimed(service: Service, names: Sequence[str]) -> dict[str, str]:
    """Each of these members gets a server at its place: member -> server."""
    found = {}
    decision = service.call("GET", PATH).json["stack"]["decision"]["id"]
    for name in names:
        claim = {"claim": {"member": name, "server": {"flavorRef": "m1.small"}}}
        made = service.call("POST", f"/decisions/{decision}/claims", claim)
        assert made.status_code == 201, made.text
        found[name] = service.ids.uuid()
        active = {"claim": {"status": "active", "server_id": found[name]}}
        done = service.call("PATCH", f"/claims/{made.json['claim']['id']}", active)
        assert done.status_code == 200, done.text
    return found


def running(service: Service, host: str, project: str = TENANT.project_id) -> str:
    """A server that Nova made without Moorage."""
    snapshot = service.store.snapshot()
    provider = snapshot.uuids[snapshot.names.index(host)]
    consumer = Consumer(service.ids.uuid(), project, "ann", "INSTANCE")
    amounts = MappingProxyType({provider: MappingProxyType({"VCPU": 1, "MEMORY_MB": 2048})})
    service.store.commit(Changeset((ReplaceAllocations(consumer, amounts, None),)))
    return consumer.uuid


def deleted(service: Service, server_id: str) -> None:
    """Nova deletes a server."""
    consumer = Consumer(server_id, TENANT.project_id, "ann", "INSTANCE")
    write = ReplaceAllocations(consumer, MappingProxyType({}), ANY_GENERATION)
    commit_with_returns(service.store, Changeset((write,)))


def test_a_new_stack_is_decided_and_held_under_its_own_id(service: Service) -> None:
    made = put(service, {"web": group(3, "m1.small", APART), "db": server("m1.small")})
    assert (made["id"], made["ensemble"]["id"], made["changed"]) == (STACK, STACK, True)
    assert made["decision"]["status"] == "held"
    assert made["keys"] == {"db[0]": "db", "web[0]": "web/0", "web[1]": "web/1", "web[2]": "web/2"}
    assert len({host for name, host in hosts(service).items() if "web" in name}) == 3
    shown = service.call("GET", PATH).json["stack"]
    assert (shown["keys"], shown["decision"]["id"]) == (made["keys"], made["decision"]["id"])


def test_the_same_template_again_decides_nothing_and_renews_the_hold(service: Service) -> None:
    first = put(service, {"web": group(2)}, decide={"hold": "PT10M"})
    service.clock.pass_by(5 * MINUTE)
    again = put(service, {"web": group(2)})
    assert (again["changed"], again["decision"]) == (False, first["decision"])
    longer = put(service, {"web": group(2)}, decide={"hold": "PT10M"})
    assert longer["decision"]["id"] == first["decision"]["id"]
    assert longer["decision"]["expires_at"] > first["decision"]["expires_at"]
    assert longer["changed"] is False


def test_a_hold_that_was_renewed_too_often_is_left_and_said(service: Service) -> None:
    put(service, {"web": group(1)}, decide={"hold": "PT10M"})
    for _ in range(service.env.limits.renewals):
        service.clock.pass_by(MINUTE)
        assert not put(service, {"web": group(1)}, decide={"hold": "PT10M"})["notes"]
    service.clock.pass_by(MINUTE)
    last = put(service, {"web": group(1)}, decide={"hold": "PT10M"})
    assert "renewed" in last["notes"][0]


def test_an_update_is_one_decision_in_which_members_stay_leave_and_come(service: Service) -> None:
    put(service, {"web": group(3, "m1.small", APART), "old": server("m1.small")})
    servers = claimed(service, ["web[0]", "web[1]"])
    before = hosts(service)
    after = put(
        service,
        {"web": group(2, "m1.small", APART), "db": group(2, "m1.small", RACKS)},
        servers={"web/0": servers["web[0]"], "web/1": servers["web[1]"]},
    )
    assert sorted(after["keys"]) == ["db[0]", "db[1]", "web[0]", "web[1]"]
    now = members(service)
    assert {name: now[name]["server_id"] for name in servers} == servers
    assert {name: now[name]["host"] for name in servers} == {n: before[n] for n in servers}
    assert [now[name]["status"] for name in ("db[0]", "db[1]")] == ["held", "held"]
    assert len({now[name]["domains"]["rack"] for name in ("db[0]", "db[1]")}) == 2
    assert len(booked(service)) == 4, "nothing is held for who left"


def test_a_member_that_leaves_with_a_server_is_forgotten_and_the_server_stays(
    service: Service,
) -> None:
    put(service, {"web": group(2)})
    servers = claimed(service, ["web[0]", "web[1]"])
    after = put(service, {"web": group(1)}, servers={"web/0": servers["web[0]"]})
    assert list(after["keys"]) == ["web[0]"]
    assert service.store.consumer(servers["web[1]"]) is not None


def test_a_member_that_is_being_built_leaves_with_its_claim(service: Service) -> None:
    put(service, {"web": group(2)})
    decision = service.call("GET", PATH).json["stack"]["decision"]["id"]
    claim = {"claim": {"member": "web[1]", "server": {"flavorRef": "m1.small"}}}
    made = service.call("POST", f"/decisions/{decision}/claims", claim).json["claim"]
    after = put(service, {"web": group(1)})
    assert list(after["keys"]) == ["web[0]"]
    assert service.call("GET", f"/claims/{made['id']}").json["claim"]["status"] == "failed"


def test_servers_that_are_there_join_where_they_stand(service: Service) -> None:
    found = {f"web/{n}": running(service, f"h{n + 1}") for n in range(2)}
    made = put(service, {"web": group(3, "m1.small", APART)}, servers=found)
    now = members(service)
    assert [now[f"web[{n}]"]["status"] for n in range(3)] == ["active", "active", "held"]
    assert [now[f"web[{n}]"]["host"] for n in range(2)] == ["h1", "h2"]
    assert now["web[2]"]["host"] not in {"h1", "h2"}
    assert made["notes"] == []


def test_a_server_joins_the_member_that_held_a_place_for_it(service: Service) -> None:
    put(service, {"web": group(2)})
    server_id = running(service, "h9")
    put(service, {"web": group(2)}, servers={"web/1": server_id})
    now = members(service)
    assert (now["web[1]"]["server_id"], now["web[1]"]["host"]) == (server_id, "h9")
    assert len(booked(service)) == 2, "its former place is free"
    assert put(service, {"web": group(2)}, servers={"web/1": server_id})["changed"] is False


def test_servers_without_allocations_and_of_others_have_no_place(service: Service) -> None:
    foreign = running(service, "h1", OTHER.project_id)
    nowhere = service.ids.uuid()
    made = put(service, {"web": group(2)}, servers={"web/0": foreign, "web/1": nowhere})
    assert [one["status"] for one in members(service).values()] == ["held", "held"]
    assert len(made["notes"]) == 2
    assert all("no allocations" in note for note in made["notes"])


def test_servers_of_an_autoscaling_group_become_any_members(service: Service) -> None:
    put(service, {"asg": scaling(3, APART)})
    servers = claimed(service, ["asg[0]", "asg[1]", "asg[2]"])
    names = {f"asg/random{name[4]}": one for name, one in servers.items()}
    unchanged = put(service, {"asg": scaling(3, APART)}, servers=names)
    assert unchanged["changed"] is False
    names.pop("asg/random0")
    smaller = put(service, {"asg": scaling(2, APART)}, servers=names)
    assert smaller["keys"] == {"asg[1]": "asg/1", "asg[2]": "asg/2"}
    larger = put(service, {"asg": scaling(4, APART)}, servers=names)
    assert sorted(larger["keys"]) == ["asg[0]", "asg[1]", "asg[2]", "asg[3]"]
    added = running(service, hosts(service)["asg[3]"])
    put(service, {"asg": scaling(4, APART)}, servers={**names, "asg/another": added})
    assert members(service)["asg[3]"]["server_id"] == added, "the one held on its host"


def test_a_role_that_is_described_otherwise_is_decided_anew_but_for_its_servers(
    service: Service,
) -> None:
    put(service, {"web": group(2)})
    servers = claimed(service, ["web[0]"])
    named = {"web/0": servers["web[0]"]}
    after = put(service, {"web": group(2, "m1.medium")}, servers=named)
    assert "web[0]" in after["notes"][-1]
    amounts = {
        name: sum(one["VCPU"] for one in member["allocations"].values())
        for name, member in members(service).items()
    }
    assert amounts == {"web[0]": 1, "web[1]": 2}
    assert put(service, {"web": group(2, "m1.medium")}, servers=named)["changed"] is False


def test_a_changed_policy_holds_for_everybody_or_is_refused(service: Service) -> None:
    found = {f"web/{n}": running(service, "h1") for n in range(2)}
    put(service, {"web": group(2)}, servers=found)
    body = stack({"web": group(2, "m1.small", APART)}, servers=found)
    refused(service.call("PUT", PATH, body), 409, "infeasible")
    assert put(service, {"web": group(2)}, servers=found)["changed"] is False


def test_what_cannot_be_placed_changes_nothing(service: Service) -> None:
    put(service, {"web": group(2, "m1.small", APART)})
    before = service.call("GET", PATH).json
    error = refused(
        service.call("PUT", PATH, stack({"web": group(20, "m1.small", APART)})), 409, "infeasible"
    )
    assert error["detail"]
    assert service.call("GET", PATH).json == before
    refused(
        service.call(
            "PUT",
            OTHER_PATH,
            {"stack": {**stack({"web": group(20, "m1.small", APART)})["stack"], "name": "b"}},
        ),
        409,
        "infeasible",
    )
    assert service.call("GET", OTHER_PATH).status_code == 404


def test_a_dry_run_writes_nothing(service: Service) -> None:
    body = stack({"web": group(2)})
    dry = service.call("PUT", PATH, body, query={"dry_run": "true"}).json["stack"]
    assert (dry["dry_run"], dry["changed"], dry["decision"]["dry_run"]) == (True, True, True)
    assert service.call("GET", PATH).status_code == 404
    put(service, {"web": group(2)})
    before = service.call("GET", PATH).json
    body = stack({"web": group(4)})
    service.call("PUT", PATH, body, query={"dry_run": "true"})
    assert service.call("GET", PATH).json == before


def test_a_stack_without_servers_needs_no_ensemble_and_may_lose_its_own(service: Service) -> None:
    nothing = {"net": {"type": "OS::Neutron::Net"}}
    made = put(service, nothing)
    assert (made["ensemble"], made["decision"], made["changed"]) == (None, None, False)
    assert service.call("GET", PATH).status_code == 404
    put(service, {"web": group(2)})
    emptied = put(service, nothing)
    assert (emptied["keys"], emptied["changed"]) == ({}, True)
    assert booked(service) == set()
    assert put(service, {"web": group(1)})["decision"]["status"] == "held"


def test_a_stack_with_a_lease_does_not_lose_its_servers(service: Service) -> None:
    made = put(service, {"web": group(2)})
    released = service.call(
        "DELETE", f"/decisions/{made['decision']['id']}", headers={"If-Match": "*"}
    )
    assert released.status_code < 300, released.text
    lease = {
        "lease": {
            "name": "later",
            "ensemble_id": STACK,
            "start": "2026-11-22T09:00:00Z",
            "end": "2026-11-23T09:00:00Z",
        }
    }
    leased = service.call("POST", "/leases", lease)
    assert leased.status_code == 201, leased.text
    body = stack({"net": {"type": "OS::Neutron::Net"}})
    for query in ({"dry_run": "true"}, {}):
        error = refused(service.call("PUT", PATH, body, query=query), 409, "wrong_state")
        assert leased.json["lease"]["id"] in error["detail"]
    assert len(members(service)) == 2


def test_places_that_lapsed_are_decided_again(service: Service) -> None:
    first = put(service, {"web": group(2)}, decide={"hold": "PT10M"})
    service.clock.pass_by(20 * MINUTE)
    again = put(service, {"web": group(2)})
    assert again["decision"]["id"] != first["decision"]["id"]
    assert again["changed"] is True


def test_a_deleted_stack_holds_nothing_and_its_servers_stay(service: Service) -> None:
    put(service, {"web": group(2)})
    servers = claimed(service, ["web[0]"])
    assert service.call("DELETE", PATH).status_code == 204
    assert service.call("GET", PATH).status_code == 404
    refused(service.call("DELETE", PATH), 404, "not_found")
    assert booked(service) == {servers["web[0]"]}


def test_stacks_are_their_projects(service: Service) -> None:
    put(service, {"web": group(1)})
    for method in ("GET", "DELETE"):
        refused(service.call(method, PATH, caller=OTHER), 404, "not_found")
    theirs = service.call("PUT", PATH, stack({"web": group(1)}), caller=OTHER)
    refused(theirs, 404, "not_found")
    refused(service.call("PUT", PATH, stack({"web": group(2)}), caller=READER), 403, "forbidden")
    assert service.call("GET", PATH, caller=READER).status_code == 200


def test_an_ensemble_that_is_no_stacks_is_left_alone(service: Service) -> None:
    role = {"name": "db", "resources": {"VCPU": 1}}
    body = {"ensemble": {"name": "own", "id": STACK, "members": [role]}}
    made = service.call("POST", "/ensembles", body)
    assert made.status_code == 201
    path = f"/stacks/{made.json['ensemble']['id']}"
    refused(service.call("PUT", path, stack({"web": group(1)})), 409, "in_use")
    refused(service.call("GET", path), 404, "not_found")
    refused(service.call("DELETE", path), 404, "not_found")
    assert service.call("PUT", PATH, stack({"web": group(1)})).status_code == 200


def test_a_stacks_name_is_its_own(service: Service) -> None:
    body = {"ensemble": {"name": "shop", "members": [{"name": "db", "resources": {"VCPU": 1}}]}}
    assert service.call("POST", "/ensembles", body).status_code == 201
    refused(service.call("PUT", PATH, stack({"web": group(1)})), 409, "name_taken")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"servers": {"web/0": "no-uuid"}}, "stack.servers[...]"),
        ({"servers": {"web/0": STACK, "web/1": STACK}}, "servers"),
        ({"template": "resources: ["}, ""),
        ({"parameters": {"absent": 1}}, "parameters.absent"),
        ({"decide": {"hold": "soon"}}, "hold"),
        ({"surprise": 1}, "stack"),
    ],
)
def test_wrong_stacks_are_refused_by_their_place(
    service: Service, body: dict[str, Any], path: str
) -> None:
    sent = stack({"web": group(1)})
    sent["stack"].update(body)
    error = refused(service.call("PUT", PATH, sent), 400, "invalid_description")
    assert error.get("path", "") == path
    assert service.call("GET", PATH).status_code == 404


def test_an_id_is_a_uuid(service: Service) -> None:
    answer = service.call("PUT", "/stacks/shop", stack({"web": group(1)}))
    assert refused(answer, 400, "invalid_description")["path"] == "id"


def test_headroom_of_a_scaling_group_is_kept_and_its_growth_is_counted(service: Service) -> None:
    asg = scaling(2, APART)
    asg["metadata"]["moorage"]["headroom"] = 3
    made = put(service, {"asg": asg})
    assert made["ensemble"]["headroom"] == {"asg": 3}
    assert made["max_additional"]["asg"]["count"] >= 3
    assert put(service, {"asg": asg})["changed"] is False
    grown = service.call(
        "POST", f"/ensembles/{STACK}/extend", {"extend": {"role": "asg", "size": 4}}
    )
    assert grown.json["extend"]["from_headroom"] == 2
    asg["properties"]["desired_capacity"] = 4
    again = put(service, {"asg": asg})
    assert (sorted(again["keys"]), again["ensemble"]["headroom"]) == (
        [f"asg[{n}]" for n in range(4)],
        {"asg": 3},
    )


def test_a_group_that_an_update_grows_takes_its_headroom_first(service: Service) -> None:
    asg = scaling(2, APART)
    asg["metadata"]["moorage"]["headroom"] = 4
    full = group(3, "m1.2xlarge")
    put(service, {"asg": asg, "full": full})
    before, where = booked(service), hosts(service)
    asg["properties"]["desired_capacity"] = 5
    grown = put(service, {"asg": asg, "full": full})
    assert booked(service) == before
    assert len({host for name, host in hosts(service).items() if "asg" in name}) == 5
    assert where.items() <= hosts(service).items()
    assert grown["ensemble"]["headroom"] == {"asg": 1}
    assert "no headroom for 4 more of asg" in grown["notes"][-1]


def test_headroom_that_breaks_a_new_policy_gets_other_places(service: Service) -> None:
    asg = scaling(1, {**APART, "type": "affinity"})
    asg["metadata"]["moorage"]["headroom"] = 2
    put(service, {"asg": asg})
    asg["properties"]["desired_capacity"] = 3
    asg["metadata"]["moorage"]["policies"] = [APART]
    put(service, {"asg": asg})
    assert len(set(hosts(service).values())) == 3


def test_headroom_that_the_template_does_not_ask_for_any_more_is_free(service: Service) -> None:
    def asking(**entries: int) -> dict[str, Any]:
        return {"asg": {**scaling(2), "metadata": {"moorage": entries}}, "web": group(1)}

    put(service, asking(headroom=4))
    own = {"headroom": {"role": "web", "count": 1}}
    assert service.call("PUT", f"/ensembles/{STACK}/headroom", own).status_code == 200
    assert len(booked(service)) == 8
    fewer = put(service, asking(headroom=1))
    assert (fewer["ensemble"]["headroom"], len(booked(service))) == ({"asg": 1, "web": 1}, 5)
    none = put(service, asking())
    assert (none["ensemble"]["headroom"], len(booked(service))) == ({"web": 1}, 4)
    assert (none["changed"], put(service, asking())["changed"]) == (True, False)


def test_a_stack_is_made_though_there_is_no_room_for_its_headroom(service: Service) -> None:
    asg = scaling(6, APART)
    asg["metadata"]["moorage"]["headroom"] = 3
    body = stack({"asg": asg, "full": group(3, "m1.2xlarge")})
    made = service.call("PUT", PATH, body)
    assert made.status_code == 200, made.text
    assert made.json["stack"]["ensemble"]["headroom"] == {}
    assert "no headroom for 3 more of asg" in made.json["stack"]["notes"][-1]


def test_a_scaling_group_shrinks_to_the_servers_that_heat_has(service: Service) -> None:
    put(service, {"asg": scaling(4)})
    servers = claimed(service, [f"asg[{n}]" for n in range(4)])
    names = {"asg/777": servers["asg[0]"], "asg/q2w3": servers["asg[2]"]}
    made = put(service, {"asg": scaling(2)}, servers=names)
    assert sorted(made["keys"]) == ["asg[0]", "asg[2]"]


def test_a_scaling_group_may_begin_empty(service: Service) -> None:
    made = put(
        service,
        {"asg": scaling(0, APART), "web": group(0, "m1.small", RACKS), "db": server("m1.small")},
    )
    assert made["keys"] == {"db[0]": "db"}
    found = {one["name"]: one["count"] for one in made["ensemble"]["members"]}
    assert found == {"asg": 0, "web": 0, "db": 1}
    body = {"extend": {"role": "asg", "count": 2}}
    grown = service.call("POST", f"/ensembles/{STACK}/extend", body)
    assert grown.status_code == 200, grown.text
    assert len({hosts(service)[f"asg[{n}]"] for n in range(2)}) == 2


def test_a_scaling_group_keeps_the_size_to_which_it_was_scaled(service: Service) -> None:
    put(service, {"asg": scaling(2, APART)})
    body = {"extend": {"role": "asg", "count": 2}}
    assert service.call("POST", f"/ensembles/{STACK}/extend", body).status_code == 200
    other = put(service, {"asg": scaling(2, APART), "db": server("m1.small")})
    assert len(other["keys"]) == 5, "an update of something else"
    wished = put(service, {"asg": scaling(3, APART)})
    assert len(wished["keys"]) == 3, "an update that says how many"
    named = {f"asg/x{n}": running(service, f"h{n + 1}") for n in range(4)}
    more = put(service, {"asg": scaling(3)}, servers=named)
    assert len(more["keys"]) == 4, "it has grown without asking"


def test_a_changed_flavor_has_a_ticket_of_its_own(service: Service) -> None:
    put(service, {"web": group(2, "m1.small"), "db": server("m1.small")})
    first = service.call("GET", PATH).json["stack"]["decision"]["id"]
    put(service, {"web": group(3, "m1.small"), "db": server("m1.small")})
    grown = service.call("GET", PATH).json["stack"]["decision"]["id"]
    assert service.store.decision(grown).ticket == first
    put(service, {"web": group(3, "m1.medium"), "db": server("m1.small")})
    changed = service.call("GET", PATH).json["stack"]["decision"]["id"]
    assert service.store.decision(changed).ticket == changed
