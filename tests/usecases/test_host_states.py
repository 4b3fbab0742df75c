"""Operators close and open hosts, and Nova's word of their services counts."""

from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutTraits
from moorage.domain.host_states import DISABLED_TRAIT
from moorage.domain.nova_hosts import NovaHost
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.ledger.host_states import ServiceChange, sync_services

FLEET = """
fleet: room
hosts:
  - {name: "h{n}", count: 3, inventories: {VCPU: 16}}
flavors:
  - {name: small, resources: {VCPU: 1}}
"""


@pytest.fixture
def service() -> Any:
    made = Service(FLEET)
    yield made
    made.close()


def asked(service: Service, method: str, path: str, body: Any = None, **query: object) -> Any:
    answer = service.call(method, f"/hosts/{path}", body, caller=OPERATOR, query=query)
    assert answer.status_code == 200, answer.text
    return answer.json["host"]


def close(service: Service, host: str = "h1", reason: str = "memory", **query: object) -> Any:
    return asked(service, "POST", f"{host}/close", {"close": {"reason": reason}}, **query)


def why(host: Any) -> list[str]:
    return [one["why"] for one in host["closed"]]


def revision(service: Service) -> int:
    return service.store.snapshot().revision


def test_closing_is_told_and_may_be_repeated(service: Service) -> None:
    assert close(service, dry_run=True)["state"] == "closed"
    assert asked(service, "GET", "h1")["state"] == "open"
    closed = close(service)
    assert (closed["state"], closed["open"]) == ("closed", False)
    (one,) = closed["closed"]
    assert (one["why"], one["reason"], one["user_id"]) == ("operator", "memory", OPERATOR.user_id)
    before = revision(service)
    service.clock.pass_by(1_000_000)
    assert close(service)["closed"] == closed["closed"]
    assert revision(service) == before
    other = close(service, reason="disk")["closed"]
    assert other == [one | {"reason": "disk"}]
    assert asked(service, "GET", "h1")["closed"] == other
    assert asked(service, "POST", "h1/open", dry_run=True)["state"] == "open"
    assert asked(service, "GET", "h1")["state"] == "closed"
    assert asked(service, "POST", "h1/open")["state"] == "open"
    before = revision(service)
    assert asked(service, "POST", "h1/open")["state"] == "open"
    assert revision(service) == before


def test_opening_says_what_still_closes_it(service: Service) -> None:
    uuid = asked(service, "GET", "h1")["uuid"]
    service.store.commit(Changeset((PutTraits(uuid, frozenset({DISABLED_TRAIT}), None),)))
    assert why(close(service)) == ["disabled", "operator"]
    opened = asked(service, "POST", "h1/open")
    assert (opened["state"], why(opened)) == ("closed", ["disabled"])


def test_a_slice_and_an_unknown_host_cannot_be_closed(service: Service) -> None:
    body = {"close": {"reason": "memory"}}
    answer = service.call("POST", "/hosts/h9/close", body, caller=OPERATOR)
    assert answer.status_code == 404
    assert service.call("POST", "/hosts/h1/close", body, caller=TENANT).status_code == 403


@pytest.mark.parametrize(
    ("service_body", "state", "reasons"),
    [
        ({"status": "disabled"}, "closed", ["disabled"]),
        ({"state": "down"}, "down", ["service down"]),
        ({"state": "down", "forced_down": True}, "down", ["forced down"]),
        (
            {"status": "disabled", "state": "down"},
            "down",
            ["disabled", "service down"],
        ),
    ],
)
def test_what_nova_says_of_a_service_counts(
    service: Service, service_body: dict[str, object], state: str, reasons: list[str]
) -> None:
    service_body = {"status": "enabled", "state": "up"} | service_body
    told = asked(service, "PUT", "h2/service", {"service": service_body})
    assert (told["state"], why(told)) == (state, reasons)
    assert asked(service, "GET", "h2")["state"] == state
    before = revision(service)
    asked(service, "PUT", "h2/service", {"service": service_body})
    assert revision(service) == before
    well = {"service": {"status": "enabled", "state": "up"}}
    assert asked(service, "PUT", "h2/service", well)["state"] == "open"


def test_a_synchronisation_writes_what_has_changed(service: Service) -> None:
    hosts = (
        NovaHost("h1"),
        NovaHost("h2", up=False),
        NovaHost("h3", enabled=False, up=False, forced_down=True),
        NovaHost("h4", up=False),
    )
    down = ("service down",)
    assert sync_services(service.env, OPERATOR, hosts) == (
        ServiceChange("h2", (), down),
        ServiceChange("h3", (), ("disabled", "forced down")),
    )
    before = revision(service)
    assert sync_services(service.env, OPERATOR, hosts) == ()
    assert sync_services(service.env, OPERATOR, ()) == ()
    assert revision(service) == before
    back = (NovaHost("h2"), NovaHost("h3", up=False))
    assert sync_services(service.env, OPERATOR, back) == (
        ServiceChange("h2", down, ()),
        ServiceChange("h3", ("disabled", "forced down"), down),
    )
    assert revision(service) == before + 1
    assert asked(service, "GET", "h3")["state"] == "down"
