"""What servers offer: whose it is, who sees it, what is refused, and its end."""

import json
from dataclasses import replace
from typing import Any, Self, cast

import pytest
from tests.api.native.conftest import refused

from moorage.domain.actors import Actor
from moorage.domain.changes import (
    Changeset,
    Committed,
    CreateResourceClass,
    CreateTrait,
    DeleteAllocations,
    PutBookings,
    ReplaceAllocations,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.events import BEGINNING, EVERYTHING, Event
from moorage.store import Ledger
from moorage.testing.service import OPERATOR, OTHER, READER, TENANT, Service
from moorage.usecases.shared.limits import Limits

SERVER = "aaaaaaaa-0000-4000-8000-00000000000a"
SLICE = "bbbbbbbb-0000-4000-8000-00000000000b"
OFFER: dict[str, Any] = {"resources": {"CUSTOM_SESSION": 37}, "traits": ["CUSTOM_PROXY"]}


def allocate(service: Service, uuid: str, project: str, **on: dict[str, int]) -> None:
    snapshot = service.store.snapshot()
    rows = {name: snapshot.uuids[row] for row, name in enumerate(snapshot.names)}
    written = {rows.get(name, name): amounts for name, amounts in on.items()}
    who = Consumer(uuid, project, "user", "INSTANCE")
    service.store.commit(Changeset((ReplaceAllocations(who, written, ANY_GENERATION),)))


def put(service: Service, offer: Any = OFFER, *, server: str = SERVER, **call: Any) -> Any:
    path = f"/server-providers/{server}"
    return service.call("PUT", path, {"server_provider": offer}, **call)


def show(service: Service, **call: Any) -> Any:
    answer = service.call("GET", f"/server-providers/{SERVER}", **call)
    assert answer.status_code == 200, answer.text
    return answer.json["server_provider"]


def use(service: Service, uuid: str = SLICE, project: str = "project-b", amount: int = 5) -> None:
    provider = show(service)["id"]
    allocate(service, uuid, project, **{provider: {"CUSTOM_SESSION": amount}})


def events(service: Service, project: str, *types: str) -> list[Event]:
    page = service.store.event_log.page(project, BEGINNING, EVERYTHING, 100)
    return [one for one in page.events if one.type in types]


@pytest.fixture
def offered(service: Service) -> Service:
    """Ann's server on a host, and what it offers."""
    allocate(service, SERVER, TENANT.project_id, h1={"VCPU": 2})
    assert put(service).status_code == 200
    return service


def test_its_owner_sees_what_it_offers(offered: Service) -> None:
    use(offered)
    found = show(offered, caller=READER)
    assert found["resources"] == {"CUSTOM_SESSION": {"total": 37, "used": 5}}
    assert (found["server_id"], found["project_id"]) == (SERVER, "project-a")
    assert (found["status"], found["traits"]) == ("active", ["CUSTOM_PROXY"])
    assert (found["shared_with"], found["host"]) == ("nobody", None)
    assert show(offered, caller=OPERATOR)["host"] == "h1"


def test_it_follows_its_server_and_has_no_place_without(offered: Service) -> None:
    allocate(offered, SERVER, TENANT.project_id, h4={"VCPU": 2})
    assert show(offered, caller=OPERATOR)["host"] == "h4"
    offered.store.commit(Changeset((DeleteAllocations(SERVER),)))
    assert show(offered)["status"] == "suspended"
    assert put(offered, {"resources": {"CUSTOM_SESSION": 1}}).status_code == 200


def test_others_see_what_is_shared_with_them_and_not_whose_it_is(offered: Service) -> None:
    def listed(caller: Any) -> list[Any]:
        found: list[Any] = offered.call("GET", "/server-providers", caller=caller).json[
            "server_providers"
        ]
        return found

    assert [one["server_id"] for one in listed(TENANT)] == [SERVER]
    assert listed(OTHER) == []
    for shared in ("everyone", ["project-b"]):
        assert put(offered, {**OFFER, "shared_with": shared}).json["server_provider"][
            "shared_with"
        ] == (shared)
        (one,) = listed(OTHER)
        assert one["id"] == show(offered)["id"]
        assert one["resources"] == {"CUSTOM_SESSION": {"total": 20, "used": None}}
        assert one["traits"] == ["CUSTOM_PROXY"]
        assert {
            name: one[name] for name in ("server_id", "project_id", "shared_with", "host")
        } == dict.fromkeys(("server_id", "project_id", "shared_with", "host"))
    put(offered, {**OFFER, "shared_with": ["project-c"]})
    assert listed(OTHER) == []
    refused(offered.call("GET", "/server-providers?all_projects=true"), 403, "forbidden")


def test_a_page_of_them(offered: Service) -> None:
    servers = [SERVER]
    for digit in "123":
        servers.append(SERVER.replace("000a", f"001{digit}"))
        allocate(offered, servers[-1], TENANT.project_id, h2={"VCPU": 1})
        assert put(offered, server=servers[-1]).status_code == 200
    found, link = [], "/server-providers?limit=3"
    while link:
        page = offered.call("GET", link.removeprefix("/v1")).json
        found += [one["server_id"] for one in page["server_providers"]]
        link = next((one["href"] for one in page["server_providers_links"]), "")
    assert found == servers
    refused(offered.call("GET", f"/server-providers?marker={SLICE}"), 404, "not_found")


def test_only_servers_of_the_project_offer(offered: Service) -> None:
    refused(put(offered, server=SLICE), 404, "not_found")
    for call in ("GET", "DELETE"):
        path = f"/server-providers/{SERVER}"
        refused(offered.call(call, path, caller=OTHER), 404, "not_found")
    refused(put(offered, caller=OTHER), 404, "not_found")
    assert put(offered, caller=OPERATOR).status_code == 200
    refused(put(offered, server="no-uuid"), 400, "invalid_description")


@pytest.mark.parametrize(
    ("offer", "where"),
    [
        ({"resources": {}}, "resources"),
        ({"resources": {"CUSTOM_SESSION": 0}}, "resources"),
        ({"resources": {"CUSTOM_SESSION": -1}}, "resources"),
        ({"resources": {"CUSTOM_SESSION": 2**31}}, "resources"),
        ({"resources": {"VCPU": 1}}, "VCPU"),
        ({"resources": {"custom_session": 1}}, "custom_session"),
        ({"resources": {"CUSTOM_MOORAGE_PREEMPTIBLE": 1}}, "CUSTOM_MOORAGE_PREEMPTIBLE"),
        ({**OFFER, "traits": ["HW_NO_SUCH"]}, "HW_NO_SUCH"),
        ({**OFFER, "traits": ["MISC_SHARES_VIA_AGGREGATE"]}, "MISC_SHARES_VIA_AGGREGATE"),
        ({**OFFER, "shared_with": []}, "shared_with"),
        ({**OFFER, "shared_with": "somebody"}, "shared_with"),
        ({**OFFER, "shared": "everyone"}, "shared"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_lost(offered: Service, offer: Any, where: str) -> None:
    before = show(offered)
    answer = put(offered, offer)
    assert answer.status_code == 400
    assert where in answer.text
    assert show(offered) == before


def test_what_is_used_stays(offered: Service) -> None:
    use(offered, amount=5)
    error = refused(put(offered, {"resources": {"CUSTOM_SESSION": 4}}), 409, "in_use")
    assert error["detail"] == "inventory CUSTOM_SESSION is in use"
    refused(put(offered, {"resources": {"CUSTOM_OTHER": 4}}), 409, "in_use")
    assert put(offered, {"resources": {"CUSTOM_SESSION": 5}}).status_code == 200
    gone = f"/server-providers/{SERVER}"
    error = refused(offered.call("DELETE", gone), 409, "in_use")
    assert error["remedies"] == ["force"]
    assert error["detail"].endswith(f"moorage server provider delete {SERVER} --force")
    assert show(offered)["resources"] == {"CUSTOM_SESSION": {"total": 5, "used": 5}}


SECOND = f"{SERVER[:-1]}9"
THIRD = f"{SERVER[:-1]}8"


def custom(service: Service) -> set[str]:
    """The custom classes and traits of the ledger."""
    every = (*service.store.resource_classes(), *service.store.traits())
    return {one.name for one in every if one.name.startswith("CUSTOM_")}


def test_the_servers_of_a_project_bring_in_few_names(service: Service) -> None:
    service.env = replace(service.env, limits=Limits(offered_names=4))
    allocate(service, SERVER, TENANT.project_id, h1={"VCPU": 2})
    allocate(service, SECOND, TENANT.project_id, h1={"VCPU": 2})
    allocate(service, THIRD, OTHER.project_id, h1={"VCPU": 2})
    assert put(service).status_code == 200  # CUSTOM_SESSION and CUSTOM_PROXY are two
    two = {"resources": {"CUSTOM_SESSION": 37, "CUSTOM_A": 1}, "traits": ["CUSTOM_B"]}
    assert put(service, two, server=SECOND).status_code == 200
    before = custom(service)
    for more in (
        {**OFFER, "resources": {**OFFER["resources"], "CUSTOM_C": 1}},
        {**OFFER, "traits": [*OFFER["traits"], "CUSTOM_C"]},
        {**OFFER, "traits": [*OFFER["traits"], "CUSTOM_SESSION"]},
    ):
        error = refused(put(service, more), 403, "quota_exceeded")
        assert (error["limit"], error["used"], error["requested"]) == (4, 4, 1)
        assert "offered_names" in error["detail"]
        refused(put(service, more, query={"dry_run": "true"}), 403, "quota_exceeded")
    assert custom(service) == before
    # Another project has its own; what it takes of names that are there counts for it, too.
    own = {"resources": {"CUSTOM_A": 1, "CUSTOM_X": 1, "CUSTOM_Y": 1}, "traits": ["CUSTOM_Z"]}
    assert put(service, own, server=THIRD, caller=OTHER).status_code == 200
    fifth = {**own, "traits": ["CUSTOM_Z", "CUSTOM_B"]}
    refused(put(service, fifth, server=THIRD, caller=OTHER), 403, "quota_exceeded")
    # What is offered no more makes room at once.
    assert put(service, {"resources": {"CUSTOM_A": 1}}, server=SECOND).status_code == 200
    assert put(service, {**OFFER, "traits": [*OFFER["traits"], "CUSTOM_C"]}).status_code == 200


def test_names_that_two_servers_bring_in_at_once_are_bounded_together(service: Service) -> None:
    """Each of them was judged before the other's commit."""
    store = service.store
    for server in (SERVER, SECOND):
        allocate(service, server, TENANT.project_id, h1={"VCPU": 2})
    own = {"resources": {"CUSTOM_A": 1, "CUSTOM_B": 1}, "traits": ["CUSTOM_C"]}

    first = [True]

    class Overtaken:
        """The store, in which the other server is the first to commit."""

        def commit(self, changeset: Changeset) -> Committed:
            if first:
                first.clear()
                assert put(service, own, server=SECOND).status_code == 200
            return store.commit(changeset)

        def by(self, actor: Actor) -> Self:
            """This one, whoever acts."""
            del actor
            return self

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

    limits = Limits(offered_names=4)
    service.env = replace(service.env, store=cast("Ledger", Overtaken()), limits=limits)
    error = refused(put(service), 403, "quota_exceeded")
    assert (error["limit"], error["used"], error["requested"]) == (4, 3, 2)
    assert custom(service) == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C"}


def test_names_are_given_back_when_nothing_has_them(service: Service) -> None:
    service.store.commit(Changeset((CreateTrait("CUSTOM_OLD"), CreateTrait("CUSTOM_B"))))
    for server, project in ((SERVER, TENANT), (THIRD, OTHER)):
        allocate(service, server, project.project_id, h1={"VCPU": 2})
    offer = {"resources": {"CUSTOM_A": 1}, "traits": ["CUSTOM_B", "CUSTOM_C"]}
    assert put(service, offer).status_code == 200
    assert put(service, offer, server=THIRD, caller=OTHER).status_code == 200
    assert custom(service) == {"CUSTOM_OLD", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"}
    assert service.call("DELETE", f"/server-providers/{SERVER}").status_code == 204
    assert {"CUSTOM_A", "CUSTOM_C"} <= custom(service), "the other server has them"
    less = {"resources": {"CUSTOM_A": 1}, "traits": ["CUSTOM_D"]}
    assert put(service, less, server=THIRD, caller=OTHER).status_code == 200
    assert custom(service) == {"CUSTOM_OLD", "CUSTOM_A", "CUSTOM_B", "CUSTOM_D"}
    # An operator who creates one that is there keeps it.
    kept = (CreateResourceClass("CUSTOM_A", exist_ok=True), CreateTrait("CUSTOM_D"))
    service.store.commit(Changeset(kept))
    path = f"/server-providers/{THIRD}"
    assert service.call("DELETE", path, caller=OTHER).status_code == 204
    assert custom(service) == {"CUSTOM_OLD", "CUSTOM_A", "CUSTOM_B", "CUSTOM_D"}
    assert put(service, {"resources": {"CUSTOM_E": 1}}).status_code == 200
    assert service.call("DELETE", f"/server-providers/{SERVER}").status_code == 204
    assert custom(service) == {"CUSTOM_OLD", "CUSTOM_A", "CUSTOM_B", "CUSTOM_D"}


def test_a_dry_run_writes_nothing(offered: Service) -> None:
    before = show(offered)
    answer = put(offered, {"resources": {"CUSTOM_OTHER": 3}}, query={"dry_run": "true"})
    assert answer.json["dry_run"]
    assert answer.json["server_provider"]["resources"] == {"CUSTOM_OTHER": {"total": 3, "used": 0}}
    path = f"/server-providers/{SERVER}"
    assert offered.call("DELETE", path, query={"dry_run": "true"}).status_code == 204
    assert show(offered) == before


def test_a_forced_end_tells_everybody(offered: Service) -> None:
    provider = show(offered)["id"]
    use(offered)
    both = SLICE.replace("000b", "000c")
    allocate(offered, both, "project-a", h1={"VCPU": 1}, **{provider: {"CUSTOM_SESSION": 2}})
    path = f"/server-providers/{SERVER}"
    assert offered.call("DELETE", path, query={"force": "true"}).status_code == 204
    refused(offered.call("GET", path), 404, "not_found")
    assert offered.store.consumer(SLICE) is None
    _, rest = offered.store.consumer(both) or (None, ())
    assert [dict(one.amounts) for one in rest] == [{"VCPU": 1}]
    (lost,) = events(offered, "project-b", "slice.lost")
    assert (lost.subject, lost.body["server_provider"]) == (SLICE, provider)
    assert (lost.body["resources"], lost.body["because"]) == ({"CUSTOM_SESSION": 5}, "deleted")
    mine = events(offered, "project-a", "slice.lost", "server_provider.ended")
    assert [(one.type, one.subject) for one in mine] == [
        ("slice.lost", both),
        ("server_provider.ended", provider),
    ]
    assert put(offered).json["server_provider"]["id"] != provider


def test_a_forced_end_takes_the_places_of_members(offered: Service, held: dict[str, Any]) -> None:
    """One that is held, and one whose claim is active: no claim stays active without a place."""
    store, provider = offered.store, show(offered)["id"]
    ensemble = store.ensemble(held["ensemble"]["id"])
    names = (one.name for one in ensemble.members if one.name.role == "db")
    first, second = (ensemble.member(name) for name in (next(names), next(names)))
    body = {"claim": {"member": str(first.name), "server": {"flavorRef": "m1.xlarge"}}}
    made = offered.call("POST", f"/decisions/{held['decision']['id']}/claims", body).json["claim"]
    for one in (first, second):
        ((who, there),) = store.bookings(consumer=one.uuid)
        there = replace(there, provider=provider, amounts={"CUSTOM_SESSION": 1})
        store.commit(Changeset((PutBookings(who, (there,)),)))
    active = {"claim": {"status": "active", "server_id": SLICE}}
    assert offered.call("PATCH", f"/claims/{made['id']}", active).status_code == 200
    path = f"/server-providers/{SERVER}"
    assert offered.call("DELETE", path, query={"force": "true"}).status_code == 204
    assert offered.call("GET", f"/claims/{made['id']}").json["claim"]["status"] == "ended"
    after = store.ensemble(ensemble.id)
    assert after.member(first.name).server_id is None
    told = events(offered, "project-a", "slice.lost", "claim.ended", "decision.unplaced")
    assert sorted(one.type for one in told) == [
        *("claim.ended", "decision.unplaced"),
        *("slice.lost", "slice.lost"),
    ]
    assert {one.subject for one in told if one.type == "slice.lost"} == {SLICE, second.uuid}


@pytest.mark.parametrize("caller", [OTHER, OPERATOR])
def test_it_is_no_part_of_the_fleets_capacity(offered: Service, caller: Any) -> None:
    """Nobody but its owner knows how busy it is, and no host has more room by it."""
    assert put(offered, {**OFFER, "shared_with": "everyone"}).status_code == 200
    whole = offered.call("GET", "/capacity", caller=caller).json["capacity"]["parts"]
    assert "VCPU" in whole[0]["resources"]
    assert "CUSTOM_SESSION" not in whole[0]["resources"]
    for query in (
        {"resources": "CUSTOM_SESSION:1"},
        {"resources": "CUSTOM_SESSION:1", "by": "zone"},
    ):
        for amount in (5, 37):
            use(offered, amount=amount)
            found = offered.call("GET", "/capacity", caller=caller, query=query).json["capacity"]
            for part in found["parts"]:
                rows = part["resources"]["CUSTOM_SESSION"]
                assert {(one["available"], one["busy"]) for one in rows} == {(0, 1.0)}
                assert {one["count"] for one in part["fit"]} == {0}
                assert not any(one.get("total") for one in rows)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/ensembles", {"ensemble": {"members": [{"resources": {"@CLASS": 1}}]}}),
        ("POST", "/ensembles", {"ensemble": {"members": [{"required": ["@TRAIT"]}]}}),
        ("POST", "/ensembles", {"ensemble": {"members": [{"forbidden": ["@TRAIT"]}]}}),
        ("POST", "/ensembles", {"ensemble": {"members": [{}], "policies": ["ban"]}}),
        ("POST", "/explanations", {"explanation": {"members": [{"resources": {"@CLASS": 1}}]}}),
        ("GET", "/capacity?resources=@CLASS:1", None),
    ],
)
def test_what_only_servers_of_others_offer_is_as_if_it_were_not(
    offered: Service, method: str, path: str, body: Any
) -> None:
    def answer(caller: Any, name: str, trait: str) -> tuple[int, str]:
        sent = None if body is None else {kind: dict(one) for kind, one in body.items()}
        for one in (sent or {}).values():
            one.update({"name": "e", "decide": {}} if "ensemble" in (sent or {}) else {})
            plain = {"name": "a", "resources": {"VCPU": 1}}
            one["members"] = [{**plain, **member} for member in one["members"]]
            if "policies" in one:
                named = {"name": "p", "type": "ban", "members": ["a"], "traits": [trait]}
                one["policies"] = [named]
        text = json.dumps(sent).replace("@CLASS", name).replace("@TRAIT", trait)
        address, _, asked = path.replace("@CLASS", name).partition("?")
        query = dict([asked.split("=")]) if asked else None
        raw = None if sent is None else text.encode()
        found = offered.call(method, address, caller=caller, raw=raw, query=query)
        told = found.text.replace(name, "CLASS").replace(trait, "TRAIT")
        return found.status_code, told if found.status_code >= 400 else ""

    names, unknown = ("CUSTOM_SESSION", "CUSTOM_PROXY"), ("CUSTOM_NOTHING", "CUSTOM_NEITHER")
    assert answer(OTHER, *names) == answer(OTHER, *unknown)
    assert answer(OTHER, *names)[0] == 400
    assert answer(TENANT, *names)[0] != 400, "its own project knows it"
    assert put(offered, {**OFFER, "shared_with": "everyone"}).status_code == 200
    assert answer(OTHER, *names)[0] != 400, "who may use it knows it"
