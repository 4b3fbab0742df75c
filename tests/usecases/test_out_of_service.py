"""Every view and every way to a place agrees on which hosts are in service, for each closing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from moorage.app import create_app
from moorage.cli.fleet import picture
from moorage.cli.host_text import state_and_why
from moorage.domain.audit import FindingKind
from moorage.domain.changes import Changeset, PutInventories, PutTraits, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.host_states import DISABLED_TRAIT
from moorage.domain.nova_hosts import NovaHost
from moorage.domain.providers import Inventory
from moorage.engine.state.host_states import host_states
from moorage.settings import configure, read
from moorage.testing import in_process
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.ledger.audit import audit
from moorage.usecases.ledger.host_states import sync_services

FLEET = """
fleet: room
topology:
  location: {levels: [rack], domains: [{name: "r{n}", count: 4, level: rack}]}
hosts:
  - name: "h{n}"
    count: 4
    inventories: {VCPU: 8, MEMORY_MB: 1024}
    place: {location: {name: "r{n}", count: 4}}
flavors:
  - {name: small, resources: {VCPU: 1, MEMORY_MB: 8}}
"""
ALONE = {"name": "apart", "type": "anti-affinity", "level": "host", "members": ["web"]}


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service(FLEET)
    yield made
    made.close()


def call(service: Service, method: str, path: str, body: Any = None, **more: Any) -> Any:
    answer = service.call(method, path, body, **more)
    assert answer.status_code < 300, answer.text
    return answer.json


def uuid_of(service: Service, host: str) -> str:
    snapshot = service.store.snapshot()
    return snapshot.uuids[snapshot.names.index(host)]


def trait(service: Service, host: str) -> None:
    change = PutTraits(uuid_of(service, host), frozenset({DISABLED_TRAIT}), None)
    service.store.commit(Changeset((change,)))


def nova(said: NovaHost) -> Callable[[Service, str], None]:
    def close(service: Service, host: str) -> None:
        sync_services(service.env, OPERATOR, (replace(said, name=host),))

    return close


def operator(service: Service, host: str) -> None:
    body = {"close": {"reason": "memory errors"}}
    call(service, "POST", f"/hosts/{host}/close", body, caller=OPERATOR)


def away(service: Service, host: str) -> None:
    window = {"kind": "maintenance", "hosts": [host], "reason": "firmware"}
    window |= {"start": "2026-11-21T09:00:00Z", "end": "2026-11-22T09:00:00Z"}
    call(service, "POST", "/capacity/planned", {"window": window}, caller=OPERATOR)


def reserved(service: Service, host: str) -> None:
    stock = (Inventory("VCPU", 8, reserved=8), Inventory("MEMORY_MB", 1024))
    change = PutInventories(uuid_of(service, host), stock, None, replace_all=True)
    service.store.commit(Changeset((change,)))


CLOSINGS: dict[str, tuple[Callable[[Service, str], None], str, str]] = {
    "trait": (trait, "closed", "disabled"),
    "nova disabled": (nova(NovaHost("", enabled=False)), "closed", "disabled"),
    "nova down": (nova(NovaHost("", up=False)), "down", "service down"),
    "nova forced down": (nova(NovaHost("", up=False, forced_down=True)), "down", "forced down"),
    "operator": (operator, "closed", "operator"),
    "absence": (away, "down", "away"),
    "reserved": (reserved, "closed", "no capacity"),
}


@dataclass(frozen=True)
class Lost:
    """An ensemble of three held members, of which the first one's host has been closed."""

    service: Service
    state: str
    why: str
    ensemble: str
    decision: str
    hosts: dict[str, str]
    """Member -> its host, as operators see it."""

    @property
    def host(self) -> str:
        return self.hosts["web[0]"]

    def get(self, path: str, *, operator: bool = False) -> Any:
        return call(self.service, "GET", path, **({"caller": OPERATOR} if operator else {}))

    def members(self, *, operator: bool = False) -> list[dict[str, Any]]:
        found = self.get(f"/ensembles/{self.ensemble}/members", operator=operator)
        return list(found["members"])

    def claim(self, member: str) -> Any:
        body = {"claim": {"member": member, "server": {"flavor": "small"}}}
        return self.service.call("POST", f"/decisions/{self.decision}/claims", body)


@pytest.fixture(params=CLOSINGS)
def lost(service: Service, request: pytest.FixtureRequest) -> Lost:
    close, state, why = CLOSINGS[request.param]
    roles = [{"name": "web", "count": 3, "flavor": "small"}]
    body = {"name": "shop", "members": roles, "policies": [ALONE], "decide": {"hold": "PT1H"}}
    made = call(service, "POST", "/ensembles", {"ensemble": body})
    found = Lost(service, state, why, made["ensemble"]["id"], made["decision"]["id"], {})
    found.hosts.update({one["name"]: one["host"] for one in found.members(operator=True)})
    close(service, found.host)
    return found


def test_operators_see_one_state(lost: Lost) -> None:
    hosts = {one["name"]: one for one in lost.get("/hosts", operator=True)["hosts"]}
    fleet = {one["name"]: one for one in lost.get("/fleet", operator=True)["fleet"]["hosts"]}
    shown = lost.get(f"/hosts/{lost.host}", operator=True)["host"]
    for one in (hosts[lost.host], fleet[lost.host], shown):
        assert (one["state"], [each["why"] for each in one["closed"]]) == (lost.state, [lost.why])
    for every in (hosts, fleet):
        assert {name for name, one in every.items() if one["state"] != "open"} == {lost.host}
    snapshot = lost.service.store.snapshot()
    off = ~host_states(snapshot).in_service & snapshot.alive
    assert [snapshot.names[row] for row in off.nonzero()[0]] == [lost.host]
    drawn = picture(lost.get("/fleet", operator=True)["fleet"], None, {})
    console = Console(file=StringIO(), width=120)
    console.print(drawn)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "(1 out of service)" in text
    word = "closed by op" if lost.why == "operator" else lost.why
    assert state_and_why(lost.state, word) in text


def test_no_more_fit_there(lost: Lost) -> None:
    found = lost.get("/capacity?flavor=small&by=rack", operator=True)["capacity"]["parts"]
    counts = {part["domain"]: part["fit"][0]["count"] for part in found}
    assert counts.pop(f"r{lost.host[1:]}", 0) == 0
    assert all(counts.values())
    fit = {"fit": {"ensemble_id": lost.ensemble, "role": "web"}}
    assert call(lost.service, "POST", "/capacity/fit", fit)["fit"]["additional"] == 1


def test_its_members_say_so(lost: Lost) -> None:
    members = lost.members()
    assert [one.get("out_of_service", False) for one in members] == [True, False, False]
    assert all("host" not in one and "closed" not in one for one in members)
    placed = lost.get(f"/decisions/{lost.decision}")["decision"]["assignments"]
    assert {one["member"] for one in placed if one.get("out_of_service")} == {"web[0]"}
    first, *others = lost.members(operator=True)
    assert [one["why"] for one in first["closed"]] == [lost.why]
    assert all("closed" not in one for one in others)
    for level in lost.get(f"/ensembles/{lost.ensemble}/survivability")["survivability"]:
        (role,) = level["roles"]
        assert (role["total"], role["keeps"]) == (3, 1)


def test_the_audit_names_it(lost: Lost) -> None:
    found = audit(lost.service.store, OPERATOR, None).findings
    subject = uuid_of(lost.service, lost.host)
    (closed,) = (one for one in found if one.kind is FindingKind.CLOSED)
    assert closed.subject == subject
    assert closed.detail.startswith(f"{lost.host} is {lost.state} ({lost.why}), and 1 place")


def test_its_places_cannot_be_claimed(lost: Lost) -> None:
    refused = lost.claim("web[0]")
    assert refused.status_code == 409
    (error,) = refused.json["errors"]
    assert error["code"] == "ensemble.host_out_of_service"
    assert "moorage decision create shop" in error["detail"]
    assert lost.host not in refused.text
    assert lost.claim("web[1]").status_code == 201


def test_a_new_decision_moves_who_has_no_server(lost: Lost) -> None:
    assert lost.claim("web[1]").status_code == 201
    call(lost.service, "POST", "/decisions", {"decision": {"ensemble_id": lost.ensemble}})
    hosts = {one["name"]: one["host"] for one in lost.members(operator=True)}
    assert hosts["web[1]"] == lost.hosts["web[1]"]
    assert lost.host not in hosts.values()
    assert not any(one.get("out_of_service") for one in lost.members())


def test_headroom_there_is_placed_anew(service: Service) -> None:
    roles = [{"name": "web", "count": 1, "flavor": "small"}]
    body = {"name": "shop", "members": roles, "policies": [ALONE], "decide": {"hold": "PT1H"}}
    ensemble = call(service, "POST", "/ensembles", {"ensemble": body})["ensemble"]["id"]
    headroom = {"headroom": {"role": "web", "count": 1}}
    call(service, "PUT", f"/ensembles/{ensemble}/headroom", headroom)
    (spare,) = service.store.ensemble(ensemble).headroom
    snapshot = service.store.snapshot()
    (row,) = snapshot.rows_of_consumer(spare.uuid)
    operator(service, snapshot.names[row])
    extend = {"extend": {"role": "web", "count": 1}}
    call(service, "POST", f"/ensembles/{ensemble}/extend", extend)
    members = call(service, "GET", f"/ensembles/{ensemble}/members")["members"]
    assert [one.get("out_of_service", False) for one in members] == [False, False]


@pytest.mark.parametrize("closing", CLOSINGS.keys() - {"trait", "nova disabled"})
def test_it_is_no_candidate_of_placement(closing: str) -> None:
    service = Service(FLEET)
    CLOSINGS[closing][0](service, "h2")
    settings = configure(read({"database": "sqlite://"}, {}, files=()))
    application = create_app(settings, store=service.store, clock=service.clock)
    with in_process.client(application) as client:
        query = {"resources": "VCPU:1"}
        reply = client.placement._call("GET", "/placement/allocation_candidates", params=query)
        found = {one for each in reply.body["allocation_requests"] for one in each["allocations"]}
        consumer = "44444444-4444-4444-8444-444444444444"
        uuid = uuid_of(service, "h2")
        written = ReplaceAllocations(Consumer(consumer, "p", "u"), {uuid: {"MEMORY_MB": 8}}, None)
    assert found == {uuid_of(service, name) for name in ("h1", "h3", "h4")}
    if closing != "absence":  # without capacity
        service.store.commit(Changeset((written,)))
    service.close()


@pytest.mark.parametrize("closing", CLOSINGS)
def test_a_lease_leaves_it(service: Service, closing: str) -> None:
    roles = [{"name": "web", "count": 2, "flavor": "small"}]
    body = {"name": "shop", "members": roles, "policies": [ALONE]}
    ensemble = call(service, "POST", "/ensembles", {"ensemble": body})["ensemble"]["id"]
    window = {"start": "2026-11-21T10:00:00Z", "end": "2026-11-21T12:00:00Z"}
    lease = {"name": "l", "ensemble_id": ensemble, **window}
    call(service, "POST", "/leases", {"lease": lease})
    path = f"/ensembles/{ensemble}/members"
    before = call(service, "GET", path, caller=OPERATOR)["members"]
    CLOSINGS[closing][0](service, before[0]["host"])
    LeaseSweeper(service.env).run_round()
    after = call(service, "GET", path, caller=OPERATOR)["members"]
    assert before[0]["host"] not in {one["host"] for one in after}
    (found,) = call(service, "GET", "/leases")["leases"]
    assert not found["degraded"]
