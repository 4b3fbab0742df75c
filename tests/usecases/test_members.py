"""Servers that join, members that leave, policies that change under them."""

import uuid
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.member_names import MemberName
from moorage.testing.service import OPERATOR, OTHER, TENANT, SeededIds, Service
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.ensembles.create import new_members
from moorage.usecases.ensembles.members import MemberAddition, add_members
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.shared.limits import Limits

ANY = {"If-Match": "*"}
SERVER = "cccccccc-0000-4000-8000-00000000000c"
REQUEST = "dddddddd-0000-4000-8000-00000000000d"
PAIR = {
    "name": "pair",
    "members": [{"name": "db", "count": 1, "resources": {"VCPU": 2}}],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "host"}],
    "decide": {},
}


def running(
    service: Service, host: str, project: str = TENANT.project_id, *, vcpu: int = 2
) -> None:
    """A server that Nova made: it has allocations, and Moorage knows nothing else of it."""
    snapshot = service.store.snapshot()
    provider = snapshot.uuids[snapshot.names.index(host)]
    consumer = Consumer(SERVER, project, "ann", "INSTANCE")
    amounts = MappingProxyType({provider: MappingProxyType({"VCPU": vcpu})})
    service.store.commit(Changeset((ReplaceAllocations(consumer, amounts, None),)))


def placed(service: Service) -> tuple[str, str]:
    """The ensemble's id, and the host its member stands on."""
    made = service.call("POST", "/ensembles", {"ensemble": PAIR}, caller=TENANT).json
    path = f"/ensembles/{made['ensemble']['id']}"
    member = service.call("GET", f"{path}/members/db[0]", caller=OPERATOR).json["member"]
    return path, member["host"]


def test_a_server_larger_than_its_role_is_refused_unless_that_is_wanted(service: Service) -> None:
    path, taken = placed(service)
    running(service, "h4" if taken != "h4" else "h5", vcpu=3)
    refused = joining(service, path).json["errors"][0]
    assert (refused["status"], refused["code"]) == (409, "ensemble.description_mismatch")
    assert refused["diff"] == [
        {"path": "resources.VCPU", "effect": "exceeds", "described": 2, "requested": 3}
    ]
    assert "remedies" not in refused
    accepted = joining(service, path, on_violation="accept_and_report")
    assert accepted.status_code == 201
    assert accepted.json["diff"] == refused["diff"]


def test_a_smaller_server_joins_and_the_difference_is_told(service: Service) -> None:
    path, taken = placed(service)
    running(service, "h4" if taken != "h4" else "h5", vcpu=1)
    [difference] = joining(service, path).json["diff"]
    assert (difference["effect"], difference["requested"]) == ("narrower", 1)


def joining(service: Service, path: str, **fields: object) -> Any:
    body = {"member": {"server_id": SERVER, "name": "db", **fields}}
    return service.call("POST", f"{path}/members", body)


def test_a_running_server_joins_where_it_stands(service: Service) -> None:
    path, taken = placed(service)
    running(service, "h4" if taken != "h4" else "h5")
    answer = joining(service, path)
    assert answer.status_code == 201, answer.text
    assert (answer.json["member"]["name"], answer.json["member"]["status"]) == ("db[1]", "active")
    assert answer.json["violations"] == []
    again = joining(service, path)
    assert again.json["errors"][0]["code"] == "ensemble.in_use"


def test_the_same_request_joins_once(service: Service) -> None:
    path, taken = placed(service)
    running(service, "h4" if taken != "h4" else "h5")
    first, again = (joining(service, path, id=REQUEST) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201), again.text
    assert again.json["member"] == first.json["member"]
    assert again.json["ensemble"] == first.json["ensemble"]
    other = joining(service, path, id=REQUEST, on_violation="accept_and_report")
    assert other.json["errors"][0]["code"] == "ensemble.duplicate_name"
    service.call("DELETE", f"{path}/members/db[1]", headers=ANY)
    assert joining(service, path, id=REQUEST).json["errors"][0]["code"] == "ensemble.wrong_state"


def adding(service: Service, path: str, count: int) -> Any:
    body = {"member": {"id": REQUEST, "role": {"name": "db", "count": count}}}
    return service.call("POST", f"{path}/members", body)


@pytest.mark.parametrize("decided", [True, False])
def test_the_same_request_adds_its_members_once(service: Service, *, decided: bool) -> None:
    body = {name: value for name, value in PAIR.items() if decided or name != "decide"}
    made = service.call("POST", "/ensembles", {"ensemble": body}).json
    path = f"/ensembles/{made['ensemble']['id']}"
    first, again = (adding(service, path, 2) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201), again.text
    assert again.json["ensemble"] == first.json["ensemble"]
    assert again.json.get("decision", {}).get("id") == first.json.get("decision", {}).get("id")
    assert len(service.call("GET", f"{path}/members").json["members"]) == 3
    other = adding(service, path, 1)
    assert other.json["errors"][0]["code"] == "ensemble.duplicate_name"


def test_the_same_request_on_two_connections_adds_its_members_once(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    path, _ = placed(service)
    naming = RequestIdentity(REQUEST, "fingerprint")
    ensemble = path.removeprefix("/ensembles/")
    more = MemberAddition({"name": "db", "count": 4})
    quick = partial(add_members, service.env, TENANT, ensemble, more, naming)
    slow = add_members(overtaken(quick), TENANT, ensemble, more, naming)
    assert len(slow.ensemble.members) == len(service.store.ensemble(ensemble).members) == 5


def test_a_server_that_would_break_a_policy_is_refused_or_reported(service: Service) -> None:
    path, taken = placed(service)
    running(service, taken)
    refused = joining(service, path)
    assert refused.status_code == 409, refused.text
    error = refused.json["errors"][0]
    assert [one["policy"] for one in error["violations"]] == ["apart"]
    assert taken not in str(error["violations"])
    assert error["violations"][0]["text"] == "2 x db do not meet policy apart"
    dry = service.call(
        "POST",
        f"{path}/members",
        {"member": {"server_id": SERVER, "name": "db", "on_violation": "accept_and_report"}},
        query={"dry_run": "true"},
    )
    assert [one["policy"] for one in dry.json["violations"]] == ["apart"]
    accepted = joining(service, path, on_violation="accept_and_report")
    assert accepted.status_code == 201
    shown = service.call("GET", path, query={"compliance": "true"}).json["ensemble"]
    assert [one["policy"] for one in shown["compliance"]] == ["apart"]


def test_a_server_joins_only_an_ensemble_that_has_room(three_racks: str) -> None:
    service = Service(three_racks, limits=Limits(members=1))
    path, taken = placed(service)
    running(service, "h4" if taken != "h4" else "h5")
    refused = joining(service, path)
    assert refused.status_code == 403
    assert refused.json["errors"][0]["limit"] == 1
    service.close()


def test_only_servers_of_the_project_join(service: Service) -> None:
    path, _ = placed(service)
    assert joining(service, path).status_code == 404
    running(service, "h4", project=OTHER.project_id)
    assert joining(service, path).status_code == 404


def test_a_member_that_leaves_frees_its_hold_but_not_its_server(service: Service) -> None:
    path, taken = placed(service)
    running(service, "h4" if taken != "h4" else "h5")
    joining(service, path)
    assert service.call("DELETE", f"{path}/members/db[1]").status_code == 200
    assert len(service.store.bookings(consumer=SERVER)) == 1
    assert service.call("DELETE", f"{path}/members/db[0]").status_code == 200
    assert service.call("GET", f"{path}/members").json["members"] == []
    left = service.call("GET", "/bookings", caller=OPERATOR).json["bookings"]
    assert "held" not in {one["state"] for one in left}


def test_members_added_by_description_are_placed_at_once(service: Service) -> None:
    path, _ = placed(service)
    answer = service.call("POST", f"{path}/members", {"member": {"role": {"name": "db"}}})
    assert answer.status_code == 201, answer.text
    assert len(answer.json["decision"]["assignments"]) == 2
    cache = {"name": "cache", "count": 2, "flavor": "m1.small"}
    more = service.call("POST", f"{path}/members", {"member": {"role": cache}})
    assert len(more.json["decision"]["assignments"]) == 4


def test_a_policy_put_tells_its_effect_on_those_present(service: Service) -> None:
    path, taken = placed(service)
    ban = {"policy": {"type": "ban", "members": ["db"], "domains": [taken]}}
    dry = service.call(
        "PUT",
        f"{path}/policies/away",
        ban,
        caller=OPERATOR,
        headers=ANY,
        query={"dry_run": "true"},
    )
    assert [one["members"] for one in dry.json["violations"]] == [["db[0]"]]
    assert len(service.call("GET", f"{path}/policies").json["policies"]) == 1
    put = service.call("PUT", f"{path}/policies/away", ban, caller=OPERATOR, headers=ANY)
    assert put.status_code == 200
    assert len(service.call("GET", f"{path}/policies").json["policies"]) == 2
    assert service.call("DELETE", f"{path}/policies/away", headers=ANY).status_code == 204
    assert service.call("DELETE", f"{path}/policies/away", headers=ANY).status_code == 404


def test_policy_types_say_their_parameters(service: Service) -> None:
    types = service.call("GET", "/policy-types").json["policy_types"]
    names = [one["type"] for one in types]
    assert {"affinity", "anti-affinity", "spread", "proximity", "separation"} <= set(names)
    assert {"survive", "exclusive", "fence", "ban"} <= set(names)
    for one in types:
        assert service.call("GET", f"/policy-types/{one['type']}").json["policy_type"] == one
        assert one["schema"]["additionalProperties"] is False
        assert one["examples"]


def test_uuids_of_an_ensembles_new_members_share_their_first_half() -> None:
    ids, names = SeededIds(), [MemberName("db", index) for index in range(50)]
    members = new_members(ids, names)
    assert [one.name for one in members] == names
    uuids = [uuid.UUID(one.uuid) for one in members]
    assert len(set(uuids)) == 50
    assert {one.version for one in uuids} == {4}
    assert len({str(one)[:18] for one in uuids}) == 1
    [other] = new_members(ids, names[:1])
    assert other.uuid[:18] != members[0].uuid[:18]


def test_a_removal_says_which_policies_break_by_it(service: Service) -> None:
    role = {"name": "db", "count": 3, "flavor": "m1.small"}
    keep = {
        "name": "ha",
        "type": "survive",
        "members": ["db"],
        "level": "rack",
        "lose": 1,
        "keep": 2,
    }
    body = {"name": "quorum", "members": [role], "policies": [keep], "decide": {}}
    made = service.call("POST", "/ensembles", {"ensemble": body})
    assert made.status_code == 201, made.json
    path = f"/ensembles/{made.json['ensemble']['id']}"
    asked = service.call("DELETE", f"{path}/members/db[2]", query={"dry_run": "true"})
    assert asked.status_code == 200, asked.json
    would = asked.json["removed"]
    assert (would["member"], would["freed"], would["dry_run"]) == ("db[2]", True, True)
    assert [one["policy"] for one in asked.json["breaks"]["violations"]] == ["ha"]
    assert len(service.call("GET", f"{path}/members").json["members"]) == 3
    done = service.call("DELETE", f"{path}/members/db[2]").json["removed"]
    assert done == {**would, "dry_run": False}
    told = service.call("GET", "/events", query={"type": "member.removed"}).json["events"]
    assert [one["body"]["policies"] for one in told] == [["ha"]]
    assert (told[0]["body"]["member"], told[0]["body"]["name"]) == ("db[2]", "quorum")
    # What is broken already is not told again.
    again = service.call("DELETE", f"{path}/members/db[1]").json["breaks"]
    assert again["violations"] == []
