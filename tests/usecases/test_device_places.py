"""Members with ports and volumes, from the request to the server that has them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.usecases.conftest import ROOT

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, PutTraits, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import Decision
from moorage.domain.describe import read_ensemble
from moorage.domain.fleet_expansion import provider_uuid
from moorage.domain.period import MINUTE
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.query import CandidateQuery
from moorage.engine.joint.instance import dumps_request, loads_request
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.claims.presented import candidates_for, presented_claim, take_place
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.environment import UseCaseEnvironment

SERVER = "aaaaaaaa-0000-4000-8000-00000000000a"


def port(name: str, physnet: str, count: int = 2, **more: object) -> dict[str, object]:
    return {
        "name": name,
        "vnic_type": "direct",
        "resources": {"SRIOV_NET_VF": count},
        "required": [f"CUSTOM_PHYSNET_{physnet}"],
        **more,
    }


def upf(count: int = 4, **more: object) -> dict[str, object]:
    """The packet function of an edge site: 8 processors, two functions on each network."""
    return {
        "name": "upf",
        "count": count,
        "resources": {"VCPU": 8, "MEMORY_MB": 8192},
        "ports": [port("a", "A", same_subtree=True), port("b", "B")],
        **more,
    }


FLEET = (ROOT / "fleets/edge-numa.yaml").read_text(encoding="utf-8")
APART = {"name": "one-per-host", "type": "anti-affinity", "members": ["upf"], "level": "host"}
EVEN = {"name": "even", "type": "spread", "members": ["upf"], "level": "rack", "max_skew": 1}


@pytest.fixture
def edge(service: Service) -> Service:
    return service


def body(*members: dict[str, object], policies: tuple[object, ...] = ()) -> dict[str, object]:
    return {"name": "site", "members": list(members), "policies": list(policies)}


def create(service: Service, *members: dict[str, object], policies: tuple[object, ...] = ()) -> Any:
    asked = {
        **body(*members, policies=policies),
        "name": service.ids.uuid(),
        "decide": {"hold": "PT10M"},
    }
    return service.call("POST", "/ensembles", {"ensemble": asked})


def decided(env: UseCaseEnvironment, *members: dict[str, object]) -> Decision:
    naming = RequestIdentity(env.ids.uuid())
    made = create_ensemble(env, TENANT, read_ensemble(body(*members)), DecisionOptions(), naming)
    assert made.decision is not None
    return made.decision


def held(service: Service, *members: dict[str, object], **more: Any) -> Any:
    answer = create(service, *members, **more)
    assert answer.status_code == 201, answer.text
    return answer.json


def why(service: Service, *members: dict[str, object]) -> Any:
    """The explanation of a refusal, as an operator reads it."""
    answer = create(service, *members)
    assert answer.status_code == 409, answer.text
    told = answer.json["errors"][0]["explanation"] if "errors" in answer.json else answer.json
    path = f"/explanations/{told['id']}"
    shown = service.call("GET", path, caller=OPERATOR, query={"instance": "true"})
    return shown.json["explanation"]


def places(service: Service, made: Any) -> dict[str, dict[str, dict[str, int]]]:
    """Member -> provider's name -> amounts, as the ledger's bookings have them."""
    shown = service.call("GET", f"/decisions/{made['decision']['id']}", caller=OPERATOR).json
    snapshot = service.store.snapshot()
    return {
        one["member"]: {
            snapshot.names[snapshot.row_of[uuid]]: amounts
            for uuid, amounts in one["allocations"].items()
        }
        for one in shown["decision"]["assignments"]
    }


def booked(service: Service, consumer: str) -> dict[str, dict[str, int]]:
    snapshot = service.store.snapshot()
    return {
        snapshot.names[snapshot.row_of[one.provider]]: dict(one.amounts)
        for _, one in service.store.bookings(consumer=consumer)
    }


def taken_by(service: Service, amounts: Mapping[str, dict[str, int]]) -> None:
    """A foreign server takes amounts of providers: name -> amounts."""
    foreign = Consumer(f"ffffffff-0000-4000-8000-{len(amounts):012}", "p", "u", "INSTANCE")
    allocations = {provider_uuid(name): some for name, some in amounts.items()}
    service.store.commit(Changeset((ReplaceAllocations(foreign, allocations, None),)))


def test_every_member_gets_its_devices_and_policies_hold(edge: Service) -> None:
    found = places(edge, held(edge, upf(), policies=(APART, EVEN)))
    hosts = {name: next(iter(some)).split("/")[0] for name, some in found.items()}
    assert sorted(hosts.values()) == ["n1", "n2", "n3", "n4"]
    for name, host in hosts.items():
        assert found[name] == {
            host: {"MEMORY_MB": 8192},
            f"{host}/numa0": {"VCPU": 8},
            f"{host}/numa0/pf0": {"SRIOV_NET_VF": 2},
            f"{host}/numa1/pf1": {"SRIOV_NET_VF": 2},
        }


def test_the_joint_answer_leaves_nodes_to_those_who_need_them(edge: Service) -> None:
    """Two members of any 16 processors fit beside those that need node 0 of a host each."""
    bound = {
        "name": "bound", "count": 4, "resources": {"VCPU": 16},
        "ports": [port("a", "A", same_subtree=True)],
    }  # fmt: skip
    free = {"name": "free", "count": 4, "resources": {"VCPU": 16}}
    found = places(edge, held(edge, free, bound))
    assert sorted(sorted(found[f"bound[{i}]"]) for i in range(4)) == [
        [f"n{n}/numa0", f"n{n}/numa0/pf0"] for n in (1, 2, 3, 4)
    ]
    assert sorted(name for i in range(4) for name in found[f"free[{i}]"]) == [
        f"n{n}/numa1" for n in (1, 2, 3, 4)
    ]
    assert create(edge, free | {"count": 1}).status_code == 409


def test_volumes_on_a_shared_store_count_once(edge: Service) -> None:
    """The store has 8,000 GB, whichever of the four hosts draw on it."""
    data = [{"name": "data", "size_gb": 1700}]
    one: dict[str, object] = {"name": "db", "resources": {"VCPU": 1}, "volumes": data}
    found = places(edge, held(edge, one | {"count": 4}))
    assert sum("store" in some for some in found.values()) == 4
    refused = create(edge, one | {"count": 1, "name": "late"})
    assert refused.status_code == 409
    relaxed = create(edge, one | {"volumes": [{"name": "data", "size_gb": 1200}]})
    assert relaxed.status_code == 201


def test_a_plain_role_finds_processors_below_its_host(edge: Service) -> None:
    found = places(edge, held(edge, {"name": "web", "count": 1, "flavor": "edge.small"}))
    (some,) = found.values()
    assert sorted(amount for one in some.values() for amount in one.items()) == [
        ("MEMORY_MB", 4096),
        ("VCPU", 2),
    ]


def test_subtrees_and_isolation_bind_groups(edge: Service) -> None:
    groups = [
        {"name": "cpus", "resources": {"VCPU": 4}},
        {"name": "card", "resources": {"FPGA": 1}, "required": ["CUSTOM_FPGA_XCU250"]},
        {"name": "net", "resources": {"SRIOV_NET_VF": 1}},
    ]
    together = {
        "name": "x", "count": 2, "groups": groups, "same_subtree": [["cpus", "card", "net"]],
        "group_policy": "isolate",
    }  # fmt: skip
    found = places(edge, held(edge, together))
    assert sorted(map(sorted, found.values())) == [
        [f"n{n}/numa1", f"n{n}/numa1/fpga0", f"n{n}/numa1/pf1"] for n in (2, 4)
    ]


def test_refusals_name_the_devices(edge: Service) -> None:
    too_many = why(edge, upf(count=1, ports=[port("a", "A", 9)]))
    assert too_many["stage"] == "static"
    assert too_many["conflict"] == [
        {"devices": "upf", "needs": "9 SRIOV_NET_VF with CUSTOM_PHYSNET_A for each of 1 x upf"},
        {
            "topology": "most SRIOV_NET_VF of one provider when empty,"
            " for 9 SRIOV_NET_VF with CUSTOM_PHYSNET_A",
            "have": 8,
            "needed": 9,
        },
    ]
    elsewhere = upf(count=1, ports=[port("c", "A", required=["HW_NIC_VMDQ"])])
    assert why(edge, elsewhere)["counts"]["rejected"] == {"devices:c": 4}
    # Each can be had on every host, but the functions of B are not beside node 0.
    apart = upf(
        count=1, ports=[port("a", "A", same_subtree=True), port("b", "B", same_subtree=True)]
    )
    refused = why(edge, apart)
    assert refused["counts"]["rejected"] == {"devices": 4}
    lacking = {"topology": "hosts that serve all of one upf", "have": 0, "needed": 1}
    assert lacking in refused["conflict"]
    assert {"member": "upf", "b same_subtree": [True, False]} in [
        one["change"] for one in refused["relaxations"]
    ]


def test_a_claim_books_every_provider_and_frees_what_it_does_not_ask_for(edge: Service) -> None:
    made = held(edge, upf(count=1))
    member = edge.call(
        "GET", f"/ensembles/{made['ensemble']['id']}/members/upf[0]", caller=OPERATOR
    ).json["member"]
    path = f"/decisions/{made['decision']['id']}/claims"
    server = {"resources": {"VCPU": 16, "MEMORY_MB": 8192}}
    wider = edge.call("POST", path, {"claim": {"member": "upf[0]", "server": server}})
    assert wider.status_code == 409
    more = server | {"resources": {"VCPU": 8, "MEMORY_MB": 8192}, "ports": [port("a", "A", 3)]}
    wider = edge.call("POST", path, {"claim": {"member": "upf[0]", "server": more}})
    assert [one["path"] for one in wider.json["errors"][0]["diff"]] == [
        "ports.a.SRIOV_NET_VF", "ports.a.same_subtree", "ports.b",
    ]  # fmt: skip
    narrower = {"resources": {"VCPU": 4, "MEMORY_MB": 8192}}
    claim = edge.call("POST", path, {"claim": {"member": "upf[0]", "server": narrower}})
    assert claim.status_code == 201, claim.text
    (host,) = {name.split("/")[0] for name in booked(edge, member["uuid"])}
    assert booked(edge, member["uuid"]) == {
        host: {"MEMORY_MB": 8192},
        f"{host}/numa0": {"VCPU": 4},
        f"{host}/numa0/pf0": {"SRIOV_NET_VF": 2},
        f"{host}/numa1/pf1": {"SRIOV_NET_VF": 2},
    }


def test_a_claim_without_one_of_its_ports_frees_that(edge: Service) -> None:
    made = held(edge, upf(count=1))
    server = {
        "resources": {"VCPU": 8, "MEMORY_MB": 8192},
        "ports": [port("a", "A", same_subtree=True)],
        "networks": [{"port": "of neutron's"}],
    }
    path = f"/decisions/{made['decision']['id']}/claims"
    claim = edge.call("POST", path, {"claim": {"member": "upf[0]", "server": server}}).json["claim"]
    done = edge.call(
        "PATCH", f"/claims/{claim['id']}", {"claim": {"status": "active", "server_id": SERVER}}
    )
    assert done.status_code == 200, done.text
    kept = booked(edge, SERVER)
    assert sorted(name.split("/")[-1] for name in kept if "/" in name) == ["numa0", "pf0"]


def test_a_server_with_devices_stays_while_its_ensemble_grows(edge: Service) -> None:
    made = held(edge, upf(count=2), policies=(APART,))
    server = {"resources": {"VCPU": 8, "MEMORY_MB": 8192}}
    path = f"/decisions/{made['decision']['id']}/claims"
    claim = edge.call("POST", path, {"claim": {"member": "upf[0]", "server": server}}).json["claim"]
    edge.call(
        "PATCH", f"/claims/{claim['id']}", {"claim": {"status": "active", "server_id": SERVER}}
    )
    before = booked(edge, SERVER)
    grown = edge.call(
        "PATCH",
        f"/ensembles/{made['ensemble']['id']}",
        {"ensemble": {"members": [{"name": "upf", "count": 4}], "decide": {"hold": "PT5M"}}},
        headers={"If-Match": "*"},
    )
    assert grown.status_code == 200, grown.text
    assert booked(edge, SERVER) == before
    found = places(edge, grown.json)
    assert found["upf[0]"] == before
    again = edge.call(
        "POST",
        f"/decisions/{grown.json['decision']['id']}/claims",
        {
            "claim": {
                "member": "upf[1]",
                "server": server | {"resources": {"VCPU": 2, "MEMORY_MB": 64}},
            }
        },
    )
    assert again.status_code == 201, again.text


def test_nova_is_shown_the_claim_on_exactly_its_providers(edge: Service) -> None:
    made = held(edge, upf(count=1, volumes=[{"name": "data", "size_gb": 100}]))
    server = {"resources": {"VCPU": 8, "MEMORY_MB": 8192}}
    path = f"/decisions/{made['decision']['id']}/claims"
    claim = edge.call("POST", path, {"claim": {"member": "upf[0]", "server": server}}).json["claim"]
    shown = presented_claim(edge.store, f"req-{claim['id']}")
    assert shown is not None
    query = CandidateQuery(
        (
            RequestGroup(resources={"VCPU": 8, "MEMORY_MB": 8192, "DISK_GB": 100}),
            RequestGroup("_a", {"SRIOV_NET_VF": 2}, (frozenset({"CUSTOM_PHYSNET_A"}),)),
            RequestGroup("_b", {"SRIOV_NET_VF": 2}, (frozenset({"CUSTOM_PHYSNET_B"}),)),
        )
    )
    snapshot = edge.store.snapshot()
    (only,) = candidates_for(snapshot, query, shown)
    asked = {snapshot.uuids[row]: dict(amounts) for row, amounts in only.allocations}
    assert set(asked) == shown.providers
    nova = Consumer(SERVER, "project-a", "ann", "INSTANCE")
    assert take_place(
        edge.store, f"req-{claim['id']}", [ReplaceAllocations(nova, asked, None)], MINUTE
    )
    assert {provider_uuid(name) for name in booked(edge, SERVER)} == shown.providers
    states = {one.state for _, one in edge.store.bookings(consumer=SERVER)}
    assert states == {BookingState.ALLOCATED}


def test_overtaken_on_a_device_it_is_looked_for_anew(
    edge: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    """Just before the commit somebody takes the functions of physnet A on three hosts."""
    busy = {f"n{n}/numa0/pf0": {"SRIOV_NET_VF": 8} for n in (1, 2, 4)}
    env = overtaken(lambda: taken_by(edge, busy))
    (place,) = decided(env, upf(count=1)).places.values()
    assert edge.store.snapshot().names[edge.store.snapshot().row_of[place.host]] == "n3"
    assert place.groups == {
        "a": provider_uuid("n3/numa0/pf0"), "b": provider_uuid("n3/numa1/pf1"),
    }  # fmt: skip


def test_a_device_that_changes_meanwhile_is_relied_on(
    edge: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    """The network of three physical functions changes: nobody books, yet the answer is wrong."""

    def moved() -> None:
        other = frozenset({"CUSTOM_PHYSNET_B"})
        changes = [PutTraits(provider_uuid(f"n{n}/numa0/pf0"), other, None) for n in (1, 2, 4)]
        edge.store.commit(Changeset(tuple(changes)))

    (place,) = decided(overtaken(moved), upf(count=1)).places.values()
    assert place.groups["a"] == provider_uuid("n3/numa0/pf0")


def test_a_saved_instance_says_the_same(edge: Service) -> None:
    refused = why(edge, upf(count=1, ports=[port("a", "A", 9)]))
    built = loads_request(json.dumps(refused["instance"]))
    assert built.problem.proof is not None
    outcome = solve(edge.env.solver, built.problem, time_limit=1_000_000, seed=0)
    assert outcome.verdict is Verdict.INFEASIBLE
    assert dumps_request(loads_request(dumps_request(built))) == dumps_request(built)


FORBIDDING = """
fleet: f
hosts:
  - name: old
    inventories: {VCPU: 8}
    traits: [CUSTOM_OLD]
    children: [{name: old-gpu, inventories: {PGPU: 4}}]
  - name: mixed
    inventories: {VCPU: 8}
    children: [{name: mixed-gpu, inventories: {PGPU: 4}, traits: [CUSTOM_OLD]}]
"""


@pytest.mark.parametrize("forbidden", [["CUSTOM_OLD"], []])
def test_what_a_role_without_resources_forbids_its_host_lacks(forbidden: list[str]) -> None:
    service = Service(FORBIDDING)
    role = {"name": "r", "count": 8, "groups": [{"name": "g", "resources": {"PGPU": 1}}]}
    try:
        answer = create(service, {**role, "forbidden": forbidden})
        assert answer.status_code == (201 if not forbidden else 409), answer.text
        some = held(service, {**role, "count": 4, "forbidden": forbidden}) if forbidden else None
        if some is not None:
            found = {name for of in places(service, some).values() for name in of}
            assert found == {"mixed/mixed-gpu"}, "its GPU may have the trait"
            group = {"name": "g", "resources": {"PGPU": 1}, "forbidden": ["CUSTOM_OLD"]}
            wrong = create(service, {**role, "count": 1, "forbidden": forbidden, "groups": [group]})
            assert wrong.status_code == 409, wrong.text
    finally:
        service.close()
