"""Requests that search, through a real service: the HTTP worker goes on whatever planners do."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

pytestmark = pytest.mark.process

PLANNER = "moorage.http.planner_process"
ANN = {"X-Auth-Token": "ann:project-a", "X-Roles": "member"}
MANY = 3_000


@pytest.fixture(scope="module")
def service(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One for all: a planner that is killed or stopped has a successor, or goes on."""
    with serve(tmp_path_factory.mktemp("planned")) as start:
        found = start("--planners", "1", "--worker-timeout", "5m", "--log-level", "warning")
        found.eventually(lambda: found.get("/readyz")[0] == 200)
        yield found


class Asking(threading.Thread):
    """A request that waits for its answer."""

    def __init__(self, service: Any, method: str, path: str, body: Any = None) -> None:
        super().__init__()
        self._asked = (method, f"http://127.0.0.1:{service.port}{path}", body)
        self.answer: requests.Response | None = None
        self.start()

    def run(self) -> None:
        method, url, body = self._asked
        self.answer = requests.request(method, url, json=body, headers=ANN, timeout=120)

    def answered(self) -> requests.Response:
        self.join(120)
        assert self.answer is not None
        return self.answer


def planning(service: Any) -> float:
    """How many requests the planner works on."""
    page = requests.get(f"http://127.0.0.1:{service.port}/metrics", timeout=60).text
    return sum(
        float(line.split()[-1])
        for line in page.splitlines()
        if line.startswith("moorage_planner_requests{")
    )


def large() -> dict[str, Any]:
    """A template that takes seconds to read."""
    servers = {
        f"s{number}": {"type": "OS::Nova::Server", "properties": {"flavor": "m1.small"}}
        for number in range(MANY)
    }
    text = json.dumps({"heat_template_version": "2018-08-31", "resources": servers})
    return {"hot": {"name": "large", "template": text}}


def test_while_no_planner_answers_the_worker_does(service: Any) -> None:
    [planner] = service.children(PLANNER)
    os.kill(planner, signal.SIGSTOP)
    asked = [Asking(service, "GET", "/v1/capacity") for _ in range(9)]
    [refused] = service.eventually(lambda: [one for one in asked if one.answer is not None])
    assert refused.answer.status_code == 429, "eight are under way"
    assert refused.answer.headers["Retry-After"] == "1"
    for _ in range(20):
        assert service.get("/v1/ensembles", **ANN)[1]["ensembles"] == []
    asked.remove(refused)
    assert all(one.answer is None for one in asked)
    os.kill(planner, signal.SIGCONT)
    assert [one.answered().status_code for one in asked] == [200] * 8


def test_a_planner_killed_over_a_request_costs_that_answer(service: Any) -> None:
    [planner] = service.children(PLANNER)
    asked = Asking(service, "POST", "/v1/hot", large())
    service.eventually(lambda: planning(service) == 1)
    os.kill(planner, signal.SIGKILL)
    answer = asked.answered()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2"), answer.text
    assert "planner process ended" in answer.json()["errors"][0]["detail"]
    assert Asking(service, "GET", "/v1/capacity").answered().status_code == 200
    assert service.children(PLANNER) != [planner]
    assert "Traceback" not in service.log.read_text()


def test_nobody_asks_as_somebody_else(service: Any) -> None:
    """What is told of a caller comes from the worker that knows them, and from no header."""
    eve = {"user_id": "eve", "project_id": "other", "roles": ["admin"]}
    forged = {
        name: json.dumps(eve) for name in ("moorage.caller", "Moorage-Caller", "X-Moorage-Caller")
    }
    url = f"http://127.0.0.1:{service.port}/v1/capacity"
    operator = {"X-Auth-Token": "admin"}
    for headers, exact in ((ANN, False), ({**ANN, **forged}, False), (operator, True)):
        answer = requests.get(url, headers=headers, timeout=60)
        assert answer.json()["capacity"]["exact"] is exact


def test_without_planners_the_worker_plans_itself(start: Any) -> None:
    service = start("--planners", "0", "--log-level", "warning")
    assert service.get("/v1/capacity", **ANN)[0] == 200
    assert service.children(PLANNER) == []
    assert "planner" not in service.get("/readyz")[1]["checks"]
