"""Slices: described, placed on servers of their project, and judged where these are."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
import pytest

from moorage.client.ensemble_difference import differences
from moorage.domain.changes import (
    Changeset,
    Committed,
    CreateTrait,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.compliance.monitor import ComplianceMonitor
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.ports import Caller
from moorage.wire.ensembles import Ensemble

from tests.api.native.conftest import refused  # isort: skip

FLEET = """\
fleet: racks
topology:
  location: {levels: [rack], domains: [{name: r1, level: rack}, {name: r2, level: rack}]}
hosts:
  - {name: h1, inventories: {VCPU: 8}, place: {location: r1}}
  - {name: h2, inventories: {VCPU: 8}, place: {location: r1}}
  - {name: h3, inventories: {VCPU: 8}, place: {location: r2}}
flavors:
  - {name: m1.small, resources: {VCPU: 1}}
"""
SESSION: dict[str, Any] = {"kind": "slice", "resources": {"CUSTOM_SESSION": 1}}
NUMBERS = count()
VMS = tuple(str(UUID(int=number, version=4)) for number in (1, 2, 3))


@pytest.fixture
def service() -> Iterator[Service]:
    """Servers of project-a on h1 and h2, and one of project-b on h3, that offer two sessions."""
    found = Service(FLEET)
    for vm, owner, host in zip(VMS, (TENANT, TENANT, OTHER), ("h1", "h2", "h3"), strict=True):
        put(found, vm, owner.project_id, host)
        offer(found, vm, owner)
    yield found
    found.close()


def offer(service: Service, vm: str, owner: Caller, shared_with: Any = "nobody") -> None:
    body = {"resources": {"CUSTOM_SESSION": 2}, "shared_with": shared_with}
    path = f"/server-providers/{vm}"
    answer = service.call("PUT", path, {"server_provider": body}, caller=owner)
    assert answer.status_code == 200, answer.text


def put(service: Service, vm: str, project: str, host: str) -> None:
    """A server comes to a host, or moves there."""
    snapshot = service.store.snapshot()
    there = {snapshot.uuids[snapshot.names.index(host)]: {"VCPU": 1}}
    who = Consumer(vm, project, "user")
    service.store.commit(Changeset((ReplaceAllocations(who, there, ANY_GENERATION),)))


def provider(service: Service, vm: str) -> str:
    snapshot = service.store.snapshot()
    return snapshot.uuids[snapshot.names.index(f"server:{vm}")]


def described(*policies: Any, **role: Any) -> dict[str, Any]:
    members = [{"name": "s", **SESSION, **role}]
    return {"name": f"e{next(NUMBERS)}", "members": members, "policies": list(policies)}


def ask(service: Service, body: Any, **more: Any) -> Any:
    return service.call("POST", "/ensembles", {"ensemble": {**body, "decide": {}}}, **more)


def made(service: Service, body: Any, **more: Any) -> Any:
    answer = ask(service, body, **more)
    assert answer.status_code == 201, answer.text
    return answer.json


def servers(found: Any) -> list[str]:
    return sorted(one["server_provider"] for one in found["decision"]["assignments"])


def test_slices_are_on_servers_of_their_project_only(service: Service) -> None:
    first, second, _ = (provider(service, vm) for vm in VMS)
    found = made(service, described(count=4))
    assert servers(found) == sorted([first, first, second, second])
    assert {one["kind"] for one in found["decision"]["assignments"]} == {"slice"}
    error = refused(ask(service, described(count=5)), 409, "infeasible")
    assert error["explanation"]["counts"]["considered"] == "2+"


def test_members_show_where_their_server_is(service: Service) -> None:
    found = made(service, described({"type": "anti-affinity", "members": ["s"]}, count=2))
    path = f"/ensembles/{found['ensemble']['id']}/members"
    seen = service.call("GET", path, caller=OPERATOR).json["members"]
    assert sorted(one["host"] for one in seen) == ["h1", "h2"]
    assert {one["domains"]["rack"] for one in seen} == {"r1"}
    assert {one["domains"]["server"] for one in seen} == {f"server:{vm}" for vm in VMS[:2]}
    put(service, VMS[0], "project-a", "h3")
    seen = service.call("GET", path, caller=OPERATOR).json["members"]
    assert sorted(one["host"] for one in seen) == ["h2", "h3"]
    told = service.call("GET", path).json["members"]
    assert all(one["domains"].keys() == {"server", "host", "rack"} for one in told)
    assert not {VMS[0], "h3", "r2"} & {name for one in told for name in one["domains"].values()}
    assert len({one["domains"]["rack"] for one in told}) == 2


def test_compliance_is_judged_after_a_move(service: Service) -> None:
    near = {"name": "near", "type": "affinity", "members": ["s"], "level": "rack"}
    found = made(service, described(near, {"type": "anti-affinity", "members": ["s"]}, count=2))
    path = f"/ensembles/{found['ensemble']['id']}"

    def broken() -> list[str]:
        answer = service.call("GET", path, query={"compliance": "true"})
        return [one["policy"] for one in answer.json["ensemble"]["compliance"]]

    assert broken() == []
    put(service, VMS[0], "project-a", "h3")
    assert broken() == ["near"]


def traits(service: Service, host: str, *names: str) -> None:
    snapshot = service.store.snapshot()
    uuid = snapshot.uuids[snapshot.names.index(host)]
    service.store.commit(Changeset((PutTraits(uuid, frozenset(names), None),)))


def test_no_slice_goes_to_a_server_on_a_disabled_host(service: Service) -> None:
    traits(service, "h1", "COMPUTE_STATUS_DISABLED")
    assert servers(made(service, described(count=2))) == [provider(service, VMS[1])] * 2
    error = refused(ask(service, described()), 409, "infeasible")
    assert error["explanation"]["counts"]["rejected"]["disabled"] == "1+"
    put(service, VMS[0], "project-a", "h3")
    assert servers(made(service, described())) == [provider(service, VMS[0])]


def test_no_slice_goes_to_a_server_whose_host_will_be_away(service: Service) -> None:
    window = {"kind": "maintenance", "hosts": ["h1"]}
    window |= {"start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}
    answer = service.call("POST", "/capacity/planned", {"window": window}, caller=OPERATOR)
    assert answer.status_code == 201, answer.text
    assert servers(made(service, described(count=2))) == [provider(service, VMS[1])] * 2
    error = refused(ask(service, described()), 409, "infeasible")
    assert error["explanation"]["counts"]["rejected"]["away"] == "1+"
    before = {**described(), "decide": {"until": "2026-11-30T00:00:00Z"}}
    held = service.call("POST", "/ensembles", {"ensemble": before})
    assert held.status_code == 201, held.text


def test_a_leased_slice_on_a_disabled_host_is_missing_or_placed_anew(service: Service) -> None:
    body = described(count=1, on_server=VMS[0])
    fixed = lease(service, body).json["lease"]["id"]
    free = lease(service, described(count=2)).json["lease"]["id"]
    traits(service, "h1", "COMPUTE_STATUS_DISABLED")
    LeaseSweeper(service.env).run_round()
    seen = {
        id_: service.call("GET", f"/leases/{id_}").json["lease"]["degraded"]
        for id_ in (fixed, free)
    }
    assert seen == {fixed: True, free: False}


def test_a_server_that_moves_meanwhile_takes_no_slice_along(service: Service) -> None:
    """The policy was judged where the server was."""
    ban = {"name": "ban", "type": "ban", "members": ["s"], "traits": ["CUSTOM_OLD"]}
    service.store.commit(Changeset((CreateTrait("CUSTOM_OLD"),)))
    traits(service, "h3", "CUSTOM_OLD")
    moved = False

    class Moving:
        """The ledger, in which a server moves just before the first commit."""

        def commit(self, changeset: Changeset) -> Committed:
            nonlocal moved
            if not moved:
                moved = True
                put(service, VMS[0], "project-a", "h3")
            return service.store.commit(changeset)

        def __getattr__(self, name: str) -> Any:
            return getattr(service.store, name)

    env = replace(service.env, store=Moving())
    body = read_ensemble(described(ban, on_server=VMS[0]))
    with pytest.raises(Infeasible):
        create_ensemble(env, TENANT, body, DecisionOptions(), RequestIdentity(env.ids.uuid()))
    assert moved


def test_a_move_that_breaks_policies_is_told(service: Service) -> None:
    near = {"name": "near", "type": "affinity", "members": ["s"], "level": "rack"}
    wish = {**near, "name": "wish", "strength": {"preferred": 1}}
    apart = {"type": "anti-affinity", "members": ["s"]}
    found = made(service, described(near, wish, apart, count=2))
    ids = (str(UUID(int=number, version=4)) for number in (8, 9))
    for member, id_ in zip(("s[0]", "s[1]"), ids, strict=True):
        path = f"/decisions/{found['decision']['id']}/claims"
        answer = service.call("POST", path, {"claim": {"member": member}})
        assert answer.status_code == 201, answer.text
        path = f"/claims/{answer.json['claim']['id']}"
        answer = service.call("PATCH", path, {"claim": {"server_id": id_, "status": "active"}})
        assert answer.status_code == 200, answer.text
    monitor = ComplianceMonitor(service.env)
    monitor.run_round()

    def told(word: str) -> list[tuple[str, str]]:
        monitor.run_round()
        events = service.call("GET", "/events", query={"type": f"policy.{word}"}).json["events"]
        return [(one["body"]["policy"], one["body"]["because"]) for one in events]

    put(service, VMS[0], "project-a", "h3")
    assert sorted(told("violated")) == [("near", "member_moved"), ("wish", "member_moved")]
    put(service, VMS[0], "project-a", "h1")
    assert sorted(told("restored")) == [("near", "member_moved"), ("wish", "member_moved")]


def test_a_slice_or_else_a_server(service: Service) -> None:
    role = {"name": "s", "count": 5, "alternatives": [SESSION, {"flavor": "m1.small"}]}
    found = made(service, {"name": "e", "members": [role]})
    kinds = sorted(one["kind"] for one in found["decision"]["assignments"])
    assert kinds == ["server", "slice", "slice", "slice", "slice"]
    members = service.call("GET", f"/ensembles/{found['ensemble']['id']}/members").json["members"]
    assert sorted(one["kind"] for one in members) == kinds


def test_isolated_slices_keep_others_off_their_server(service: Service) -> None:
    alone = {"type": "isolate", "members": ["s"], "at": "server", "against": "others"}
    mine = servers(made(service, described(alone)))
    for _ in range(2):
        assert servers(made(service, described())) != mine
    refused(ask(service, described()), 409, "infeasible")
    # Whoever has come is in the way of those who want to be alone.
    refused(ask(service, described(alone)), 409, "infeasible")


def test_isolation_at_the_host_is_against_servers_as_well(service: Service) -> None:
    alone = {"type": "isolate", "members": ["s"], "at": "host"}
    put(service, service.ids.uuid(), "project-b", "h1")
    assert servers(made(service, described(alone))) == [provider(service, VMS[1])]
    web = {"name": "w", "members": [{"name": "w", "count": 24, "flavor": "m1.small"}]}
    error = refused(ask(service, web, caller=OTHER), 409, "infeasible")
    assert error["explanation"]["counts"]["rejected"]["exclusive"] == "1+"


def test_two_projects_share_a_server_unless_one_wants_it_alone(service: Service) -> None:
    third = provider(service, VMS[2])
    offer(service, VMS[2], OTHER, ["project-a"])
    found = made(service, described(on_server=third))
    assert servers(found) == [third]
    alone = {"type": "isolate", "members": ["s"], "at": "server"}
    refused(ask(service, described(alone), caller=OTHER), 409, "infeasible")
    path = f"/ensembles/{found['ensemble']['id']}"
    assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    assert servers(made(service, described(alone), caller=OTHER)) == [third]
    error = refused(ask(service, described(on_server=third)), 409, "infeasible")
    assert error["explanation"]["counts"]["rejected"]["exclusive"] == "1+"


def test_what_is_shared_no_more_is_used_no_more(service: Service) -> None:
    third = provider(service, VMS[2])
    offer(service, VMS[2], OTHER, "everyone")
    path = f"/ensembles/{made(service, described(on_server=third))['ensemble']['id']}"
    offer(service, VMS[2], OTHER)
    refused(ask(service, described(on_server=third)), 409, "infeasible")
    [member] = service.call("GET", f"{path}/members").json["members"]
    assert (member["server_provider"], member["status"]) == (third, "held")


def test_who_refers_to_slices_means_the_hosts_of_their_servers(service: Service) -> None:
    first = made(service, described(on_server=VMS[0]))["ensemble"]
    between = [["w"], [f"ensemble:{first['id']}"]]
    apart = {"type": "separation", "between": between, "level": "host"}
    role = {"name": "w", "count": 9, "resources": {"VCPU": 1}}
    body = {"name": "beside", "members": [role], "policies": [apart]}
    found = made(service, body)
    path = f"/ensembles/{found['ensemble']['id']}/members"
    members = service.call("GET", path, caller=OPERATOR).json["members"]
    assert {one["host"] for one in members} == {"h2", "h3"}


def lease(service: Service, body: Any, caller: Caller = TENANT) -> Any:
    times = {"start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}
    body = {"name": body["name"], **times, "ensemble": body}
    return service.call("POST", "/leases", {"lease": body}, caller=caller)


def test_no_lease_moves_between_slices_and_servers(service: Service) -> None:
    """They have no places in common, so they are not decided together."""
    servers_ = {"name": "w", "members": [{"name": "w", "count": 20, "flavor": "m1.small"}]}
    for body, caller in ((described(count=3), TENANT), (described(), OTHER), (servers_, TENANT)):
        answer = lease(service, body, caller)
        assert answer.status_code == 201, answer.text
    for body in (described(count=2), servers_ | {"name": "more"}):
        refused(lease(service, body), 409, "infeasible")
    forever = {"name": "now", "members": servers_["members"]}
    refused(ask(service, forever), 409, "infeasible")
    refused(ask(service, described(count=2)), 409, "infeasible")


def test_a_port_is_always_its_own(service: Service) -> None:
    made(service, described({"type": "isolate", "members": ["s"], "at": "vnic"}, count=4))


def test_a_role_may_name_its_server(service: Service) -> None:
    second = provider(service, VMS[1])
    assert servers(made(service, described(on_server=VMS[1]))) == [second]
    assert servers(made(service, described(on_server=second))) == [second]
    error = refused(ask(service, described(on_server=VMS[2])), 409, "infeasible")
    assert error["explanation"]["counts"]["rejected"]["on-server"] == "2+"
    assert error["explanation"]["note"].startswith("no server that offers slices is open")


def test_another_projects_server_is_as_an_unknown_one(service: Service) -> None:
    plain = str(UUID(int=78, version=4))
    put(service, plain, "project-b", "h3")
    apart = {"type": "anti-affinity", "members": ["s"], "level": "server"}

    def answer(server: str) -> Any:
        error = refused(ask(service, described(apart, on_server=server)), 409, "infeasible")
        told = error["explanation"]
        keys = ("stage", "conflict", "relaxations", "note", "counts", "largest", "earliest_start")
        return error["detail"], {key: told[key] for key in keys}

    unknown = answer(str(UUID(int=77, version=4)))
    for server in (VMS[2], provider(service, VMS[2]), plain):
        assert answer(server) == unknown
    counts = unknown[1]["counts"]
    assert set(counts["rejected"].values()) == {counts["considered"]}


def test_what_is_stored_is_as_it_was_described(service: Service) -> None:
    role = {"name": "t", "count": 1, "alternatives": [SESSION, {"flavor": "m1.small"}]}
    body = described(on_server=VMS[1], forbidden=["HW_CPU_X86_AVX"])
    body["members"].append(role)
    answer = service.call("POST", "/ensembles", {"ensemble": body})
    assert answer.status_code == 201, answer.text
    stored = msgspec.convert(answer.json["ensemble"], Ensemble)
    assert stored.members[0].on_server == VMS[1]
    assert list(differences(stored, read_ensemble(body), {})) == []


@pytest.mark.parametrize(
    ("role", "path", "says"),
    [
        ({"kind": "tape"}, "kind", "tape"),
        ({**SESSION, "flavor": "m1.small"}, "flavor", "kind slice"),
        ({**SESSION, "ports": [{"name": "p"}]}, "ports", "kind slice"),
        ({**SESSION, "boot_from_volume": False}, "boot_from_volume", "kind slice"),
        ({"kind": "slice"}, "resources", "needs resources"),
        ({"kind": "slice", "resources": {"CUSTOM_SESSION": 0}}, "resources", ""),
        ({"kind": "slice", "resources": {"CUSTOM_NOTHING": 1}}, "resources", "CUSTOM_NOTHING"),
        ({**SESSION, "on_server": ""}, "on_server", ""),
        ({**SESSION, "servers_of": "project-b"}, "servers_of", ""),
        ({"flavor": "m1.small", "servers_of": ["project-b"]}, "servers_of", "kind server"),
        ({"flavor": "m1.small", "on_server": VMS[0]}, "on_server", "kind server"),
    ],
)
def test_bad_slices_are_refused_by_name(service: Service, role: Any, path: str, says: str) -> None:
    body = {"name": "e", "members": [{"name": "s", **role}]}
    answer = service.call("POST", "/ensembles", {"ensemble": body}, caller=TENANT)
    assert answer.status_code == 400, answer.text
    (error,) = answer.json["errors"]
    assert path in error["path"], error
    assert says in error["detail"], error


def test_slices_of_another_projects_role_are_on_its_servers(service: Service) -> None:
    """And each project sees the servers of its own slices only."""
    role = {"name": "t", **SESSION, "count": 2, "project": OTHER.project_id}
    body = {"ensemble": {"name": "both", "members": [{"name": "s", **SESSION}, role]}}
    made = service.call("POST", "/ensembles", body).json["ensemble"]["id"]
    (share,) = service.call("GET", "/shares", caller=OTHER).json["shares"]
    path = f"/shares/{share['id']}/accept"
    assert service.call("POST", path, caller=OTHER).status_code == 200
    decided = service.call("POST", "/decisions", {"decision": {"ensemble_id": made}})
    assert decided.status_code == 201, decided.text

    def seen(caller: Caller) -> dict[str, str | None]:
        path = f"/decisions/{decided.json['decision']['id']}"
        found = service.call("GET", path, caller=caller).json["decision"]["assignments"]
        return {one["member"]: one.get("server_provider") for one in found}

    theirs = provider(service, VMS[2])
    assert seen(OTHER) == {"s[0]": None, "t[0]": theirs, "t[1]": theirs}
    own = seen(TENANT)
    assert own["s[0]"] in {provider(service, one) for one in VMS[:2]}
    assert (own["t[0]"], own["t[1]"]) == (None, None)


def test_a_public_server_draws_no_slices_of_others(service: Service) -> None:
    offer(service, VMS[2], OTHER, "everyone")
    theirs, own = provider(service, VMS[2]), sorted(provider(service, vm) for vm in VMS[:2])
    found = servers(made(service, described(count=4)))
    assert found == sorted(own * 2)
    error = refused(ask(service, described()), 409, "infeasible")["explanation"]
    assert error["counts"]["rejected"]["unnamed-project"] == "1+"
    assert error["note"].endswith(
        "servers of other projects are to be named, by servers_of or on_server"
    )
    assert not {VMS[2], theirs, "project-b"} & set(str(error).replace("'", " ").split())
    for named in ({"servers_of": ["project-b"]}, {"on_server": theirs}):
        assert servers(made(service, described(**named))) == [theirs], named


def test_what_is_not_shared_is_not_told(service: Service) -> None:
    """A server that is open to others is as none; so is its project, if named."""
    made(service, described(count=4))
    answers = []
    for named in ([], ["project-b"], ["project-c"], ["operators"]):
        error = refused(ask(service, described(servers_of=named)), 409, "infeasible")
        told = error["explanation"]
        answers.append({key: told[key] for key in ("stage", "conflict", "note", "counts")})
    assert all(one == answers[0] for one in answers)
    assert "unnamed-project" not in answers[0]["counts"]["rejected"]


def test_operators_offer_by_saying_so(service: Service) -> None:
    """Whosever the server is; and no more once its owner has said it anew."""
    theirs = provider(service, VMS[2])
    made(service, described(count=4))
    role = described(servers_of=["operators"])
    offer(service, VMS[2], OTHER, "everyone")
    refused(ask(service, role), 409, "infeasible")
    offer(service, VMS[2], OPERATOR, "everyone")
    assert servers(made(service, role)) == [theirs]

    def offered_by(caller: Caller) -> dict[str, str]:
        every = service.call("GET", "/server-providers", caller=caller).json["server_providers"]
        return {one["id"]: one["offered_by"] for one in every}

    assert offered_by(TENANT)[theirs] == offered_by(OTHER)[theirs] == "operator"
    offer(service, VMS[2], OTHER, "everyone")
    assert (offered_by(TENANT)[theirs], offered_by(OTHER)[theirs]) == ("project", "own")
    refused(ask(service, described(servers_of=["operators"])), 409, "infeasible")


def test_alternatives_name_each_for_itself(service: Service) -> None:
    offer(service, VMS[2], OTHER, "everyone")
    made(service, described(count=4))
    first = {**SESSION}
    second = {**SESSION, "servers_of": ["project-b"]}
    body = {"name": "either", "members": [{"name": "s", "alternatives": [first, second]}]}
    assert servers(made(service, body)) == [provider(service, VMS[2])]
    stored = service.call("GET", "/ensembles", query={"name": "either"}).json["ensembles"]
    shown = service.call("GET", f"/ensembles/{stored[0]['id']}").json["ensemble"]["members"][0]
    assert [one["servers_of"] for one in shown["alternatives"]] == [[], ["project-b"]]


@pytest.mark.parametrize("more", [{}, {"CUSTOM_SESSION": 1}], ids=len)
def test_slices_are_sized_by_what_servers_offer(service: Service, more: dict[str, int]) -> None:
    role = {**SESSION, "name": "a", "resources": {**more, "VCPU": 1}}
    answer = service.call("POST", "/ensembles", {"ensemble": {"name": "e", "members": [role]}})
    assert answer.status_code == 400, answer.text
    assert "slices are sized by what servers offer" in answer.text
    assert answer.json["errors"][0]["path"] == "members[0].resources"
