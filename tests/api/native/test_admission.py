"""Only so many expensive requests at once: of one project, and in all."""

import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from moorage.api.native.routes import ROUTES
from moorage.domain import deadline
from moorage.domain.errors import Busy, TooManyRequests
from moorage.testing.service import OPERATOR, OTHER, TENANT, Service
from moorage.usecases.shared.admission import Admission, ProjectTurns

DECIDE = {
    "ensemble": {
        "name": "one",
        "members": [{"name": "web", "count": 1, "flavor": "m1.small"}],
        "decide": {},
    }
}


@pytest.fixture
def two(service: Service) -> Service:
    service.env = replace(service.env, admission=Admission(of_one_project=2, in_all=3))
    return service


def test_a_project_with_its_number_under_way_is_told_when_to_come_again(two: Service) -> None:
    with ExitStack() as under_way:
        for _ in range(2):
            under_way.enter_context(two.env.admission.turn(TENANT))
        answer = two.call("POST", "/ensembles", DECIDE)
        assert answer.status_code == 429
        assert answer.headers["Retry-After"] == "1"
        error = answer.json["errors"][0]
        assert (error["status"], error["code"]) == (429, "ensemble.too_many_requests")
        assert two.call("GET", "/ensembles").status_code == 200, "reads are not counted"
        other = two.call("POST", "/ensembles", DECIDE, caller=OTHER)
        assert other.status_code == 201, "others have turns of their own"
    assert two.call("POST", "/ensembles", DECIDE).status_code == 201, "and then it has one again"


def test_operators_are_not_counted_by_project_but_leave_threads_for_the_rest(two: Service) -> None:
    with ExitStack() as under_way:
        for _ in range(3):
            under_way.enter_context(two.env.admission.turn(OPERATOR))
        answer = two.call("POST", "/ensembles", DECIDE)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"


def test_a_refused_request_takes_no_turn_and_a_failed_one_gives_it_back() -> None:
    admission = Admission(of_one_project=1, in_all=2)
    with admission.turn(TENANT):
        for _ in range(3):
            with pytest.raises(TooManyRequests), admission.turn(TENANT):
                pytest.fail("it has its turn already")
        with admission.turn(OTHER), pytest.raises(Busy), admission.turn(OPERATOR):
            pytest.fail("there is none left")
    with pytest.raises(ZeroDivisionError), admission.turn(TENANT):
        raise ZeroDivisionError
    with admission.turn(TENANT), admission.turn(OTHER):
        pass


def test_a_project_that_asks_alone_uses_all_and_shares_once_another_asks() -> None:
    now = 0.0
    admission = Admission(of_one_project=4, turns=ProjectTurns(1, lambda: now))
    began = [threading.Event() for _ in range(2)]

    def work(event: threading.Event) -> None:
        with admission.turn(TENANT):
            event.set()

    alone = (admission.turn(TENANT), admission.turn(TENANT))
    with alone[0], alone[1], admission.turn(OTHER), admission.turn(OPERATOR):
        waits = threading.Thread(target=work, args=(began[0],))
        waits.start()
        assert not began[0].wait(0.2)
    waits.join(20)
    assert began[0].is_set()
    with admission.turn(TENANT):
        with (
            pytest.raises(deadline.TimeExpired),
            deadline.within(time.monotonic, 0.1),
            admission.turn(TENANT),
        ):
            pytest.fail("the other has asked lately")
        now = 11.0
        work(began[1])
        assert began[1].is_set(), "the other asks no more"


def test_what_searches_is_counted_and_what_nova_waits_for_is_not() -> None:
    expensive = {(one.method, one.path) for one in ROUTES if one.expensive}
    assert {
        ("POST", "/decisions"),
        ("POST", "/hot"),
        ("POST", "/leases"),
        ("POST", "/offers"),
        ("POST", "/series"),
        ("POST", "/capacity/fit"),
        ("POST", "/explanations"),
    } <= expensive
    assert not {("POST", "/decisions/{id}/claims"), ("PATCH", "/claims/{id}")} & expensive
    assert not [path for method, path in expensive if method == "DELETE"]


def test_who_waits_for_events_leaves_threads_for_the_rest(service: Service) -> None:
    def pause(_: float) -> None:
        pytest.fail("it waits, though as many wait as may")

    admission = Admission(waiting=1)
    service.env = replace(service.env, admission=admission, pause=pause)
    path, later = "/events", {"wait": "20"}
    seen = service.call("GET", path).json["cursor"]
    with admission.waiting:
        answer = service.call("GET", path, query={**later, "after": seen})
        assert (answer.status_code, answer.json["events"]) == (200, [])


def test_a_request_waits_for_its_turn_no_longer_than_a_decision_may_take() -> None:
    """Else one with a limit of seconds had no time left when its turn came, after a minute."""
    turns = ProjectTurns(1, time.monotonic, longest=0.2)
    with deadline.within(time.monotonic, 60), turns.turn("a"), turns.turn("b"):
        began = time.monotonic()
        with pytest.raises(deadline.TimeExpired), turns.turn("a"):
            pytest.fail("it has its turn already, and another asks")
        assert time.monotonic() - began < 10
        assert deadline.left(60.0) > 1, "the request's own deadline is as before"
