"""What searches is handed to a planner, in each dialect, and nothing else is."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from falcon.testing import TestClient

from moorage.api import leases, native
from moorage.api.leases.routes import ROUTES as LEASE_ROUTES
from moorage.api.native.routes import ROUTES as NATIVE_ROUTES
from moorage.domain.errors import Busy
from moorage.http.planner_client import PlannerAnswer
from moorage.http.wsgi import ROUTE, Environ
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.shared.admission import Admission


class Recorder:
    """A planner that notes what it is given, and answers the same to all."""

    def __init__(self) -> None:
        self.given: set[tuple[str, str]] = set()
        self.error: Exception | None = None

    def __call__(self, environ: Environ) -> PlannerAnswer:
        self.given.add((environ["REQUEST_METHOD"], environ[ROUTE]))
        if self.error is not None:
            raise self.error
        return PlannerAnswer("418 I'm a teapot", [("x-said", "1"), ("content-length", "9")], b"{}")


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


def ask(app: Any, method: str, path: str, caller: Any = OPERATOR) -> Any:
    filled = path.replace("{", "").replace("}", "")
    extras = {"moorage.caller": caller, "moorage.request_id": "req-1"}
    return TestClient(app).simulate_request(method, filled, extras=extras, body=b"not JSON")


@pytest.mark.parametrize(
    ("dialect", "routes", "prefix"),
    [(native, NATIVE_ROUTES, ""), (leases, LEASE_ROUTES, "/v1")],
    ids=["native", "leases"],
)
def test_all_that_is_expensive_and_nothing_else_goes_to_a_planner(
    service: Service, dialect: Any, routes: Any, prefix: str
) -> None:
    planner = Recorder()
    app = dialect.create_app(service.env, planner=planner)
    for route in routes:
        answer = ask(app, route.method, f"{prefix}{route.path}")
        assert (answer.status_code == 418) is route.expensive, (route.method, route.path)
    expensive = {(one.method, f"{prefix}{one.path}") for one in routes if one.expensive}
    assert planner.given == expensive
    assert expensive


def test_its_answer_is_given_as_it_is(service: Service) -> None:
    answer = ask(native.create_app(service.env, planner=Recorder()), "GET", "/capacity")
    assert (answer.status_code, answer.text) == (418, "{}")
    assert (answer.headers["x-said"], answer.headers["content-length"]) == ("1", "2")


def test_a_planner_is_asked_only_for_who_may_and_has_a_turn(service: Service) -> None:
    planner = Recorder()
    parts = replace(service.env, admission=Admission(of_one_project=1))
    app = native.create_app(parts, planner=planner)
    assert ask(app, "POST", "/capacity/planned", TENANT).status_code == 403
    with parts.admission.turn(TENANT):
        assert ask(app, "GET", "/capacity", TENANT).status_code == 429
    assert planner.given == set()


@pytest.mark.parametrize(("dialect", "path"), [(native, "/leases"), (leases, "/v1/leases")])
def test_where_no_planner_answers_a_client_is_told_when_to_ask_again(
    service: Service, dialect: Any, path: str
) -> None:
    planner = Recorder()
    planner.error = Busy("the planner process ended before its answer", retry_after=2)
    answer = ask(dialect.create_app(service.env, planner=planner), "POST", path, TENANT)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "planner process ended" in answer.text
