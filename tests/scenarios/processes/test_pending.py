"""Refusals whose changes that help follow: found by a planner after the answer, or told as lost."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.scenarios.processes.conftest import Served
from tests.scenarios.processes.test_one_tenant import ADMIN

from moorage.client.discovery import Access
from moorage.client.moorage import connect
from moorage.domain.explain import PENDING, UNFINISHED
from moorage.testing.in_process import load

pytestmark = pytest.mark.process

PLANNER = "moorage.http.planner_process"
ANN = {"X-Auth-Token": "ann:project-a", "X-Roles": "member"}
RACKS = 24
FLEET = f"""\
fleet: racks
topology:
  location:
    levels: [rack]
    domains:
      - {{name: "r{{n}}", count: {RACKS}, level: rack}}
hosts:
  - name: "h{{n}}"
    count: {8 * RACKS}
    inventories: {{VCPU: 8}}
    place:
      location: {{name: "r{{n}}", count: {RACKS}}}
"""
TRIES = 6


@pytest.fixture(scope="module")
def service(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with one planner, on the fleet."""
    with serve(tmp_path_factory.mktemp("pending")) as start:
        found = start("--planners", "1", "--log-level", "info")
        found.eventually(lambda: found.get("/readyz")[0] == 200)
        access = Access(f"http://127.0.0.1:{found.port}", ADMIN["X-Auth-Token"])
        with connect(access) as operator:
            load(operator, FLEET)
        yield found


def described(name: str) -> dict[str, Any]:
    """An ensemble of which every role has a member more than there are racks."""
    roles = [{"name": f"r{n}", "count": RACKS + 1, "resources": {"VCPU": 1}} for n in range(4)]
    apart = [
        {"name": f"apart-{one['name']}", "type": "anti-affinity", "members": [one["name"]]}
        | {"level": "rack"}
        for one in roles
    ]
    return {"name": name, "members": roles, "policies": apart}


def asked(service: Served, name: str) -> list[requests.Response]:
    """The answer to a request of which all is to be answered at once; none: to be sent again."""
    answer = requests.post(
        f"http://127.0.0.1:{service.port}/v1/ensembles",
        json={"ensemble": {**described(name), "decide": {}}},
        headers=ANN | {"Prefer": "wait=0"},
        timeout=120,
    )
    # A planner that has just begun, on a busy machine, may not even come to a refusal in time.
    undecided = answer.status_code == 409 and "ensemble.undecided" in answer.text
    return [] if answer.status_code == 503 or undecided else [answer]


def refused(service: Served, name: str) -> dict[str, Any]:
    """The explanation of a refusal for which the client does not wait."""
    (answer,) = service.eventually(lambda: asked(service, name))
    assert answer.status_code == 409, answer.text
    assert answer.headers.get("Preference-Applied") == "wait=0", answer.text
    found: dict[str, Any] = answer.json()["errors"][0]["explanation"]
    assert found["conflict"]
    assert (found["pending"], found["note"]) == (True, PENDING)
    return found


def known(service: Served, id_: str) -> dict[str, Any]:
    status, body = service.get(f"/v1/explanations/{id_}", **ANN)
    assert status == 200, body
    found: dict[str, Any] = body["explanation"]
    return found


def test_a_planner_goes_on_after_the_answer(service: Served) -> None:
    why = refused(service, "follows")
    service.eventually(lambda: not known(service, why["id"])["pending"])
    found = known(service, why["id"])
    assert found["conflict"] == why["conflict"]
    assert found["note"] not in {PENDING, UNFINISHED}
    assert f"explanation {why['id']} is finished" in service.log.read_text()


def test_the_command_line_tells_how_the_rest_is_had(service: Served, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(described("shop")))  # JSON is YAML

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        url = f"http://127.0.0.1:{service.port}"
        who = ("--endpoint", url, "--token", ANN["X-Auth-Token"], "--role", "member")
        return subprocess.run(
            (sys.executable, "-m", "moorage.cli.main", *who, *words),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    done = run("ensemble", "create", "-f", str(file), "--explain-within", "0s")
    assert done.returncode == 3, done
    conflict, *_, last = done.stderr.strip().splitlines()
    assert conflict.startswith("infeasible [")
    words = last.partition("more follows: moorage ")[2].split()
    assert words[:2] == ["explanation", "show"], last
    shown = run(*words)
    assert shown.returncode == 0, shown
    assert PENDING not in shown.stdout
    assert shown.stdout.startswith(conflict)


def test_what_a_planner_left_that_died_is_told_as_not_finished(service: Served) -> None:
    """It is killed as soon as it has answered; now and then it is quicker than that."""
    for number in range(TRIES):
        (planner,) = service.children(PLANNER)
        why = refused(service, f"lost-{number}")
        os.kill(planner, signal.SIGKILL)
        service.eventually(lambda: service.children(PLANNER) not in ([], [planner]))  # noqa: B023
        service.eventually(lambda: service.get("/readyz")[0] == 200)
        service.eventually(lambda: not known(service, why["id"])["pending"])  # noqa: B023
        found = known(service, why["id"])
        if found["note"] == UNFINISHED:
            assert (found["complete"], found["conflict"]) == (False, why["conflict"])
            break
    else:
        pytest.fail("the planner was quicker every time")
    again = refused(service, "again")
    service.eventually(lambda: not known(service, again["id"])["pending"])
    assert known(service, again["id"])["note"] != UNFINISHED
