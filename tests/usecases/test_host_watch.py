"""Events of hosts: one for each change of a host's state, whatever has changed it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.test_compliance_monitor import Watched

from moorage.domain.actors import Actor
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    DeleteProvider,
    PutHostService,
    PutInventories,
)
from moorage.domain.host_states import ServiceReport
from moorage.domain.period import MINUTE
from moorage.testing.service import OPERATOR, Service

DOWN = ServiceReport(enabled=True, up=False, forced_down=False, since=0)
OPS = Actor(user_id="ops", project_id="admin", operator=True)


@pytest.fixture
def watched(service: Service) -> Watched:
    return Watched(service)


def events(watched: Watched) -> list[dict[str, Any]]:
    """The events of hosts, in their order."""
    query = {"type": "host.*", "all_projects": "true"}
    answer = watched.service.call("GET", "/events", caller=OPERATOR, query=query)
    found: list[dict[str, Any]] = answer.json["events"]
    return found


def told(watched: Watched) -> list[tuple[str, str, str, list[str]]]:
    """Of each event, after a look: the host, its state before and after, and what closes it."""
    watched.look()
    return [
        (
            one["body"]["host"],
            one["body"]["former_state"],
            one["body"]["state"],
            one["body"]["closed"],
        )
        for one in events(watched)
    ]


def host(service: Service, name: str = "h1") -> str:
    snapshot = service.store.snapshot()
    return snapshot.uuids[snapshot.names.index(name)]


def report(service: Service, word: ServiceReport | None, name: str = "h1") -> None:
    service.store.by(OPS).commit(Changeset((PutHostService(host(service, name), word),)))


def test_the_trait_of_a_disabled_host_is_told_with_its_actor(watched: Watched) -> None:
    service = watched.service
    watched.disable(host(service))
    assert told(watched) == [("h1", "open", "closed", ["disabled"])]
    (one,) = events(watched)
    assert (one["type"], one["subject"], one["user"]) == ("host.closed", host(service), "ops")
    watched.disable(host(service), there=False)
    assert told(watched)[1:] == [("h1", "closed", "open", [])]
    assert [one["type"] for one in events(watched)] == ["host.closed", "host.opened"]
    assert service.call("GET", "/events", query={"type": "host.*"}).json["events"] == []


def test_inventories_that_go_and_come_back_are_told(watched: Watched) -> None:
    service, store = watched.service, watched.service.store
    before = store.provider(host(service))
    spent = tuple(replace(one, reserved=one.total) for one in before.inventories)
    store.commit(Changeset((PutInventories(before.uuid, spent, before.generation),)))
    assert told(watched) == [("h1", "open", "closed", ["no capacity"])]
    now = store.provider(before.uuid)
    store.commit(Changeset((PutInventories(now.uuid, (), now.generation, replace_all=True),)))
    assert told(watched)[1:] == [("h1", "closed", "down", ["no inventory"])]
    now = store.provider(before.uuid)
    store.commit(Changeset((PutInventories(now.uuid, before.inventories, now.generation),)))
    assert told(watched)[2:] == [("h1", "down", "open", [])]


def test_a_reason_more_is_no_event_but_an_operators_closing_is(watched: Watched) -> None:
    service = watched.service
    report(service, DOWN)
    watched.disable(host(service))
    close = {"close": {"reason": "memory errors"}}
    assert told(watched) == [("h1", "open", "down", ["disabled", "service down"])]
    watched.disable(host(service), there=False)
    assert len(told(watched)) == 1, "it is down as before"
    assert service.call("POST", "/hosts/h1/close", close, caller=OPERATOR).status_code == 200
    assert told(watched)[1:] == [("h1", "down", "down", ["operator", "service down"])]
    assert events(watched)[1]["body"]["reason"] == "memory errors"
    assert events(watched)[1]["user"] == OPERATOR.user_id
    report(service, None)
    assert told(watched)[2:] == [("h1", "down", "closed", ["operator"])]
    assert service.call("POST", "/hosts/h1/open", caller=OPERATOR).status_code == 200
    assert told(watched)[3:] == [("h1", "closed", "open", [])]


def test_a_host_is_away_by_the_clock(watched: Watched) -> None:
    service = watched.service
    body = {
        "window": {
            "hosts": ["h1"],
            "start": "2026-11-21T09:10:00Z",
            "end": "2026-11-21T09:20:00Z",
            "kind": "maintenance",
            "reason": "new memory",
        }
    }
    made = service.call("POST", "/capacity/planned", body, caller=OPERATOR)
    assert made.status_code == 201, made.text
    assert told(watched) == []
    service.clock.pass_by(10 * MINUTE)
    assert told(watched) == [("h1", "open", "down", ["away"])]
    assert events(watched)[0]["by"] is None, "the clock is nobody"
    service.clock.pass_by(10 * MINUTE)
    assert told(watched)[1:] == [("h1", "down", "open", [])]


def test_a_host_that_flaps_is_told_once(service: Service) -> None:
    watched = Watched(service, settle=10_000_000)
    for _ in range(10):
        report(service, DOWN)
        watched.look()
        watched.seconds += 3
        report(service, None)
        watched.look()
        watched.seconds += 3
    assert told(watched) == [("h1", "open", "down", ["service down"])]
    watched.seconds += 11
    assert told(watched)[1:] == [("h1", "down", "open", [])]
    assert events(watched)[1]["user"] == "ops"


def test_several_processes_tell_once(watched: Watched) -> None:
    service = watched.service
    other = watched.another()
    watched.look(other)
    for word in (DOWN, None, DOWN):
        report(service, word)
        watched.look()
        watched.look(other)
    report(service, None)
    watched.look(other)
    assert [one[2] for one in told(watched)] == ["down", "open", "down", "open"]


def test_what_happened_while_no_process_ran_is_told_after_the_start(watched: Watched) -> None:
    service = watched.service
    report(service, DOWN)
    watched.look()
    report(service, None)
    report(service, DOWN, "h2")
    started = watched.another()
    watched.look(started)
    watched.look(watched.another())
    assert [one[:3] for one in told(watched)] == [
        ("h1", "open", "down"),
        ("h1", "down", "open"),
        ("h2", "open", "down"),
    ]


def test_a_host_that_is_deleted_is_told_no_more(watched: Watched) -> None:
    store = watched.service.store
    new = "00000000-0000-4000-8000-00000000000a"
    store.commit(Changeset((CreateProvider(new, "new", None),)))
    watched.look()
    assert told(watched) == [], "it has had no inventory yet"
    report(watched.service, DOWN, "new")
    assert told(watched) == [("new", "open", "down", ["no inventory", "service down"])]
    store.commit(Changeset((DeleteProvider(new),)))
    assert len(told(watched)) == 1
    assert store.compliance.told_hosts() == {}
