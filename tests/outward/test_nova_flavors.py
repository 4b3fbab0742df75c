"""Ticket flavors in a small real Nova: created when a decision is held, deleted when it is over."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.native.test_stacks import PATH, claimed, group, put, server
from tests.outward.conftest import Answer, Receiver, Request, receiving

from moorage.domain.effects import Effect, EffectKind, Lane
from moorage.domain.period import HOUR, MINUTE, SECOND
from moorage.outward.nova_flavors import NovaFlavors
from moorage.testing.service import NINE, Service
from moorage.usecases.effect_dispatch import (
    EffectResult,
    Message,
    OutwardActions,
    OutwardFailure,
    carry_out,
)
from moorage.usecases.shared.limits import Limits

ROOT = Path(__file__).parents[2]


@dataclass
class Nova:
    """A compute API that knows flavors, without Keystone before it."""

    flavors: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: list[Request] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        self.made.append(request)
        flavor_id, _, rest = request.path.removeprefix("/flavors").strip("/").partition("/")
        body = json.loads(request.body) if request.body else {}
        if request.method == "DELETE":
            return Answer(404 if self.flavors.pop(flavor_id, None) is None else 202)
        if not flavor_id:
            made = body["flavor"]
            if made["id"] in self.flavors:
                return Answer(409)
            self.flavors[made["id"]] = {**made, "specs": {}, "projects": set()}
            return Answer(200, json.dumps({"flavor": made}).encode())
        if rest == "os-extra_specs":
            self.flavors[flavor_id]["specs"] |= body["extra_specs"]
        else:
            self.flavors[flavor_id]["projects"].add(body["addTenantAccess"]["tenant"])
        return Answer(200, b"{}")


@pytest.fixture
def nova() -> Nova:
    return Nova()


@pytest.fixture
def receiver(nova: Nova) -> Iterator[Receiver]:
    with receiving(nova.answer) as found:
        yield found


def outward(receiver: Receiver, **more: Any) -> OutwardActions:
    section = {"auth_type": "none", "endpoint": receiver.url, "endpoint_override": receiver.url}
    return OutwardActions(flavors=NovaFlavors(section, 20.0), **more)


@pytest.fixture
def outside(receiver: Receiver) -> OutwardActions:
    return outward(receiver)


@pytest.fixture
def service() -> Iterator[Service]:
    fleet = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
    found = Service(fleet, limits=Limits(ticket_flavors=True))
    yield found
    found.close()


def held(service: Service) -> Any:
    """The shop, held for ten minutes."""
    shop = yaml.safe_load((ROOT / "examples/shop.yaml").read_text(encoding="utf-8"))
    answer = service.call("POST", "/ensembles", {"ensemble": {**shop, "decide": {"hold": "PT10M"}}})
    assert answer.status_code == 201, answer.text
    return answer.json["decision"]


def run(service: Service, outside: OutwardActions) -> list[EffectResult]:
    """Carry out what is due, each effect once."""
    due: list[Effect] = list(service.store.due_effects(10, Lane.FLAVOR))
    return [carry_out(service.env, outside, one) for one in due]


def test_they_are_made_with_the_decision_for_its_project_alone(
    service: Service, outside: OutwardActions, nova: Nova
) -> None:
    decision = held(service)
    assert run(service, outside) == [EffectResult.DONE]
    assert len(nova.flavors) == 3
    for shown in decision["ticket_flavors"]:
        made = nova.flavors[shown["id"]]
        assert made["os-flavor-access:is_public"] is False
        assert made["projects"] == {"project-a"}
        assert made["specs"] == shown["extra_specs"]
        assert {key: made[key] for key in ("name", "vcpus", "ram", "disk")} == {
            key: shown[key] for key in ("name", "vcpus", "ram", "disk")
        }


@pytest.mark.parametrize("failing", range(1, 10))
def test_a_failure_in_the_middle_is_made_good(service: Service, nova: Nova, failing: int) -> None:
    """Nova stops answering after any request; the effect is repeated as a whole."""
    held(service)
    answer, count = nova.answer, 0

    def late(request: Request) -> Answer:
        nonlocal count
        count += 1
        return Answer(503) if count == failing else answer(request)

    with receiving(late) as other:
        broken = outward(other)
        assert run(service, broken) == [EffectResult.AGAIN]
        service.clock.pass_by(MINUTE)
        assert run(service, broken) == [EffectResult.DONE]
    assert [one["projects"] for one in nova.flavors.values()] == [{"project-a"}] * 3
    assert all(one["specs"] for one in nova.flavors.values())


@pytest.mark.parametrize("how", ["confirm", "release", "delete", "lapse"])
def test_they_are_deleted_when_the_decision_is_over(
    service: Service, outside: OutwardActions, nova: Nova, how: str
) -> None:
    decision = held(service)
    run(service, outside)
    path = f"/decisions/{decision['id']}"
    if how == "confirm":
        assert service.call("POST", f"{path}/confirm").status_code == 200
    elif how == "release":
        assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    elif how == "delete":
        path = f"/ensembles/{decision['ensemble_id']}"
        assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    else:
        service.clock.pass_by(10 * MINUTE)
    assert run(service, outside) == [EffectResult.DONE]
    assert nova.flavors == {}
    service.clock.set(NINE + 11 * MINUTE)
    assert set(run(service, outside)) <= {EffectResult.DONE}, "gone is gone"


def test_a_stack_that_is_rolled_back_leaves_none(
    service: Service, outside: OutwardActions, nova: Nova
) -> None:
    """The update's decision is replaced by one that holds nothing: all its servers are there."""
    one, bad = {"web": group(1)}, {"web": group(1), "bad": server("m1.medium")}
    put(service, one)
    servers = {"web/0": claimed(service, ["web[0]"])["web[0]"]}
    put(service, bad, servers=servers)
    run(service, outside)
    assert len(nova.flavors) == 2
    put(service, one, servers=servers)
    while run(service, outside):
        pass
    assert nova.flavors == {}


def test_flavors_of_roles_that_have_left_are_deleted_too(
    service: Service, outside: OutwardActions, nova: Nova
) -> None:
    put(service, {"web": group(2), "db": server("m1.medium")})
    run(service, outside)
    assert len(nova.flavors) == 2
    put(service, {})
    assert service.call("DELETE", PATH).status_code == 204
    while run(service, outside):
        pass
    assert nova.flavors == {}


def until_over(service: Service, outside: OutwardActions) -> None:
    """Let a worker carry out everything that becomes due in the next minutes."""
    for _ in range(12):
        run(service, outside)
        service.clock.pass_by(MINUTE)
    assert run(service, outside) == []


def test_the_deletion_waits_for_a_creation_under_way(service: Service, nova: Nova) -> None:
    """The hold lapses between two requests of the creation, and another worker is quick."""
    held(service)
    service.clock.set(NINE + 10 * MINUTE - SECOND)
    answer = nova.answer
    results: list[EffectResult] = []

    def lapsing(request: Request) -> Answer:
        if request.path == "/flavors" and not results:
            service.clock.set(NINE + 10 * MINUTE)
            results.extend(run(service, other))
        return answer(request)

    with receiving(lapsing) as receiver:
        other = outward(receiver)
        assert run(service, other) == [EffectResult.DONE]
        assert results == [EffectResult.AGAIN]
        assert len(nova.flavors) == 3
        until_over(service, other)
    assert nova.flavors == {}


@pytest.mark.parametrize("error", [SystemExit(), OutwardFailure("no answer in time")])
def test_what_a_worker_created_that_died_or_was_cut_off_is_deleted(
    service: Service, outside: OutwardActions, nova: Nova, error: BaseException
) -> None:
    decision, sent = held(service), []

    def act(message: Message) -> str:
        sent.append(message.body["kind"])
        if message.body["kind"] == EffectKind.CREATE_FLAVORS:
            raise error
        assert outside.flavors is not None
        return outside.flavors(message)

    broken = OutwardActions(flavors=act)
    with suppress(SystemExit):
        assert run(service, broken) == [EffectResult.AGAIN]
    assert service.call("POST", f"/decisions/{decision['id']}/confirm").status_code == 200
    for _ in range(2):
        run(service, broken)
        service.clock.pass_by(20 * SECOND)
    assert sent == [EffectKind.CREATE_FLAVORS], "its last request may be on its way"
    flavor = decision["ticket_flavors"][0]
    nova.answer(Request("POST", "/flavors", {}, json.dumps({"flavor": flavor}).encode()))
    until_over(service, broken)
    assert nova.flavors == {}


def test_a_renewed_hold_keeps_them(service: Service, outside: OutwardActions, nova: Nova) -> None:
    decision = held(service)
    run(service, outside)
    service.clock.pass_by(9 * MINUTE)
    body = {"decision": {"hold": "PT20M"}}
    renewed = service.call("PATCH", f"/decisions/{decision['id']}", body, headers={"If-Match": "*"})
    assert renewed.status_code == 200, renewed.text
    service.clock.pass_by(2 * MINUTE)
    assert run(service, outside) == [EffectResult.AGAIN]
    assert len(nova.flavors) == 3
    assert run(service, outside) == [], "not before the new end"
    service.clock.pass_by(19 * MINUTE)
    assert run(service, outside) == [EffectResult.DONE]
    assert nova.flavors == {}


def test_none_are_made_for_a_decision_that_is_over(
    service: Service, outside: OutwardActions, nova: Nova
) -> None:
    decision = held(service)
    assert service.call("POST", f"/decisions/{decision['id']}/confirm").status_code == 200
    assert run(service, outside) == [EffectResult.DONE] * 2
    assert nova.flavors == {}
    assert not [one for one in nova.made if one.method == "POST"]


# --- leases -------------------------------------------------------------------------------------


def leased(service: Service) -> dict[str, Any]:
    """A lease of two roles, from an hour from now on, for an hour."""
    ensemble = {
        "name": "week",
        "members": [
            {"name": "db", "count": 2, "flavor": "m1.xlarge"},
            {"name": "web", "count": 1, "resources": {"VCPU": 1, "MEMORY_MB": 512}},
        ],
    }
    body = {"name": "week", "start": "2026-11-21T10:00:00Z", "duration": "PT1H"}
    answer = service.call("POST", "/leases", {"lease": {**body, "ensemble": ensemble}})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json["lease"]
    return found


def work(service: Service, outside: OutwardActions) -> None:
    """Carry out everything that is due."""
    for _ in range(2):
        for lane in Lane:
            for one in service.store.due_effects(10, lane):
                carry_out(service.env, outside, one)


@pytest.mark.parametrize("ends", ["by itself", "by cancelling it"])
def test_a_leases_flavors_are_there_while_it_lasts(
    service: Service, outside: OutwardActions, nova: Nova, ends: str
) -> None:
    lease = leased(service)
    work(service, outside)
    assert not nova.flavors, "it has not begun"
    service.clock.pass_by(HOUR)
    work(service, outside)
    classes = {one["id"]: one["resource_class"] for one in lease["reservations"]}
    assert nova.flavors.keys() == classes.keys()
    for flavor_id, made in nova.flavors.items():
        assert made["name"] == f"reservation:{flavor_id}", "as Blazar names them"
        assert made["specs"][f"resources:{classes[flavor_id]}"] == "1"
        assert made["projects"] == {"project-a"}
    sizes = {(one["vcpus"], one["ram"], one["disk"]) for one in nova.flavors.values()}
    assert sizes == {(8, 16384, 160), (1, 512, 0)}
    if ends == "by itself":
        service.clock.pass_by(HOUR)
    else:
        path = f"/leases/{lease['id']}"
        assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    work(service, outside)
    assert not nova.flavors


def test_a_lease_that_is_cancelled_before_it_begins_has_none(
    service: Service, outside: OutwardActions, nova: Nova
) -> None:
    lease = leased(service)
    path = f"/leases/{lease['id']}"
    assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    service.clock.pass_by(HOUR)
    work(service, outside)
    assert not nova.made
