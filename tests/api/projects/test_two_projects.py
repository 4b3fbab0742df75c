"""No answer, explanation, event or delivery tells a project what is another's, or names a host."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.projects import requests
from tests.api.projects.two_projects import (
    ANY,
    HOSTS,
    MONDAY,
    PLACES,
    UUID,
    Answer,
    Doors,
    Owned,
    Person,
    amount,
    blazar,
    busy,
    hosts_of,
    opened,
    own_everything,
    role,
)

from moorage.api.compute.routes import ROUTES as COMPUTE_ROUTES
from moorage.api.leases.routes import ROUTES as LEASE_ROUTES
from moorage.api.native.routes import ROUTES as NATIVE_ROUTES
from moorage.api.placement.routes import TABLE as PLACEMENT_ROUTES
from moorage.domain.period import DAY
from moorage.usecases.effect_dispatch import OutwardActions, carry_out
from moorage.usecases.events.deliver import Delivery, OutgoingEvent, deliver

ANN, BOB = Person("zqproject-ann-6d1f"), Person("zqproject-bob-b7e2")
READS = {"GET", "HEAD"}


@pytest.fixture
def doors() -> Iterator[Doors]:
    yield from opened()


@pytest.fixture
def both(doors: Doors) -> tuple[Owned, Owned]:
    """What the two own; each was refused something because of the other."""
    ann, bob = own_everything(doors, ANN), own_everything(doors, BOB)
    assert not ann.marks & bob.marks, "nothing is both projects'"
    assert len(ann.marks) > 40
    return ann, bob


def test_every_route_has_its_requests() -> None:
    assert {(one.method, one.path) for one in NATIVE_ROUTES} == requests.NATIVE.keys()
    assert {(one.method, one.path) for one in LEASE_ROUTES} == requests.LEASES.keys()
    assert {(one.method, one.path) for one in COMPUTE_ROUTES} == requests.COMPUTE.keys()


def every_request() -> Iterator[tuple[str, str, str, Any]]:
    for mount, table in (
        ("/v1", requests.NATIVE),
        ("/reservation/v1", requests.LEASES),
        ("/compute/v2.1", requests.COMPUTE),
    ):
        for (method, _), some in table.items():
            for path, body in some:
                yield mount, method, path, body
    for method, path, *_ in PLACEMENT_ROUTES:
        yield "/placement", method, *requests.placement_request(method, path)


def filled(text: str, owned: Owned, provider: str) -> str:
    """With the ids of somebody's things."""
    known = {**owned.ids, "project": owned.who.project, "provider": provider}
    return re.sub(r"\{(\w+)\}", lambda found: known.get(found[1], found[0]), text)


def leaks(answer: Answer, hidden: set[str]) -> set[str]:
    """What of the hidden is in an answer, but for what who asked has written themselves."""
    return {one for one in hidden if one in answer.told and one not in answer.asked}


def test_no_answer_tells_what_is_anothers(doors: Doors, both: tuple[Owned, Owned]) -> None:
    ann, bob = both
    hosts, provider = hosts_of(doors.service), doors.service.store.snapshot().uuids[0]
    hidden = {*ann.marks, *hosts, *busy(doors, ANN)}
    refused = set()
    for mount, method, path, body in every_request():
        for whose in (ann, bob):
            source = json.dumps(body)
            asked = None if body is None else json.loads(filled(source, whose, provider))
            where = mount + filled(path, whose, provider)
            match = {} if method in READS or mount == "/placement" else ANY
            answer = doors.ask(BOB, method, where, asked, **match)
            # Blazar answers 500 where nothing fits.
            assert answer.status < 500 or mount == "/reservation/v1", (answer.asked, answer.told)
            refused |= {
                UUID.findall(one)[0] for one in re.findall(r"explanations/[0-9a-f-]+", answer.told)
            }
    assert len(refused) > 10, "requests are refused, and explained"
    for id_ in sorted(refused):
        for reader in (BOB, Person(BOB.project, "reader")):
            answer = doors.ask(reader, "GET", f"/v1/explanations/{id_}")
            assert answer.status == 200, answer.told
    found = [(leaks(one, hidden), one.asked, one.told) for one in doors.answers if one.who == BOB]
    assert len(found) > 300
    assert [one for one in found if one[0]] == []


def test_what_happens_tells_nothing_of_another(doors: Doors, both: tuple[Owned, Owned]) -> None:
    """Events, also where one's server gives way to another's lease, and what is delivered."""
    ann, bob = both
    hidden = {*ann.marks, *hosts_of(doors.service)}
    own = {
        "name": "yields",
        "members": [role("web", 3, 12)],
        "decide": {"hold": "PT4H", "preemptible": True},
    }
    given = doors.made(BOB, "/v1/ensembles", {"ensemble": own})
    lease = {"name": ann.name("taking"), "start": "2026-11-21T11:00:00Z", "duration": "PT2H"}
    taken = doors.made(ANN, "/v1/leases", {"lease": lease | amount(4, 11)})
    hidden |= {lease["name"], *UUID.findall(json.dumps(taken))}
    doors.made(ANN, "/reservation/v1/leases", blazar(ann.name("more"), 1))
    hidden |= busy(doors, ANN)
    for name, latest in (("grid", "2026-12-10T00:00:00Z"), ("last", "2026-12-09T17:55:00Z")):
        after = {"name": name, "start": "2026-12-09T09:00:00Z", "duration": "PT1H"}
        doors.made(
            BOB, "/v1/leases", {"lease": after | amount(2, 12) | {"wait": {"latest_start": latest}}}
        )
    _pass_by(doors, DAY)
    seen: list[str] = []
    for who in (BOB, Person(BOB.project, "reader")):
        cursor, more = "", True
        while more:
            query = f"&after={cursor}" if cursor else ""
            answer = doors.ask(who, "GET", f"/v1/events?limit=100{query}")
            assert answer.status == 200, answer.told
            assert not leaks(answer, hidden), answer.told
            cursor, more = answer.json["cursor"], bool(answer.json["events"])
            seen += [one["type"] for one in answer.json["events"]]
        shown = doors.ask(who, "GET", f"/v1/ensembles/{given['ensemble']['id']}/members")
        assert not leaks(shown, hidden), shown.told
    assert {"ensemble.created", "decision.held", "lease.closed"} <= set(seen), set(seen)
    sent: list[str] = []

    def send(sending: OutgoingEvent) -> str:
        sent.append(sending.body.decode())
        return "heard"

    subscription = doors.service.store.event_log.subscription(bob.ids["subscription"])
    deliver(doors.service.env, Delivery(send), subscription)
    assert sent
    assert [(one, text) for text in sent for one in hidden if one in text] == []


def test_what_an_operator_asked_is_read_as_a_tenant(
    doors: Doors, both: tuple[Owned, Owned]
) -> None:
    ann, _ = both
    hidden = {*ann.marks, *hosts_of(doors.service)}
    there = Person(BOB.project, "admin")
    fenced = {"name": "in", "type": "fence", "members": ["*"], "domains": [HOSTS[0], PLACES[0]]}
    crowd = {"members": [role("web", 4, 16)], "policies": [fenced]}
    answers = [
        doors.ask(there, "POST", "/v1/explanations", {"explanation": crowd}),
        doors.ask(
            there, "POST", "/v1/leases", {"lease": {"name": "x", **MONDAY, "ensemble": crowd}}
        ),
        doors.ask(there, "POST", "/v1/leases", {"lease": {"name": "x", **MONDAY, **amount(4, 16)}}),
    ]
    ids = {
        one
        for answer in answers
        for one in re.findall(r"explanations/([0-9a-f-]{36})", answer.told)
    }
    assert len(ids) == len(answers)
    for id_ in ids:
        answer = doors.ask(BOB, "GET", f"/v1/explanations/{id_}")
        assert answer.status == 200, answer.told
        assert not leaks(answer, hidden), answer.told


def _pass_by(doors: Doors, duration: int) -> None:
    """Let time pass, and do what is due, as a worker would."""
    doors.service.clock.pass_by(duration)
    while due := doors.service.store.due_effects(1):
        carry_out(doors.service.env, OutwardActions(), due[0])
