"""A planner ends its own requests in time: nobody has to kill it, which would end others' too."""

import fcntl
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.processes.conftest import StartService
from tests.scenarios.processes.test_one_tenant import ANN, call, stock

from moorage.http.planner_client import MARGIN

pytestmark = pytest.mark.process

PLANNER = "moorage.http.planner_process"
LIMIT = 1.0
OWN = 3.0
"""Seconds after its limit by which a request ends; a planner is killed `MARGIN` after it."""
ROLES = 300


@contextmanager
def file_lock(database: Path) -> Iterator[None]:
    """Another process of the service writes."""
    with database.with_name(f"{database.name}-writer").open("ab") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


@contextmanager
def transaction(database: Path) -> Iterator[None]:
    """Another program writes."""
    with closing(sqlite3.connect(database, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        yield


def ensemble(size: int, roles: int = 1) -> dict[str, Any]:
    members = [
        {"name": f"r{number}", "count": 1, "resources": {"VCPU": size}} for number in range(roles)
    ]
    decide = {"time_limit": f"{LIMIT:g}s"}
    return {"ensemble": {"name": f"e{time.monotonic_ns()}", "members": members, "decide": decide}}


@pytest.mark.parametrize("held", [file_lock, transaction])
def test_a_commit_waits_for_the_write_lock_until_its_limit_and_no_longer(
    start: StartService, tmp_path: Path, held: Callable[[Path], Any]
) -> None:
    assert OWN < MARGIN
    database = tmp_path / "locked.db"
    service = start("--planners", "1", "--database", f"sqlite:///{database}")
    stock(service)
    service.eventually(lambda: service.get("/readyz")[0] == 200)
    [planner] = service.children(PLANNER)
    with held(database):
        began = time.monotonic()
        status, headers, body = call(service, "POST", "/v1/ensembles", ANN, ensemble(1))
        assert time.monotonic() - began < 2 * LIMIT + OWN, body
        assert status == 503, body
        assert int(headers["Retry-After"]) > 0
        # A refusal is answered all the same; its explanation cannot be kept.
        began = time.monotonic()
        status, _, body = call(service, "POST", "/v1/ensembles", ANN, ensemble(100_000))
        assert time.monotonic() - began < 2 * LIMIT + OWN, body
        assert status == 409, body
        assert not body["errors"][0]["explanation"].get("links"), body
    assert call(service, "POST", "/v1/ensembles", ANN, ensemble(1))[0] == 201
    assert call(service, "POST", "/v1/ensembles", ANN, ensemble(100_000))[0] == 409
    assert service.children(PLANNER) == [planner]


def test_a_refusal_with_many_relaxations_ends_by_itself(start: StartService) -> None:
    service = start("--planners", "1")
    stock(service)
    service.eventually(lambda: service.get("/readyz")[0] == 200)
    [planner] = service.children(PLANNER)
    began = time.monotonic()
    status, _, body = call(service, "POST", "/v1/ensembles", ANN, ensemble(100_000, ROLES))
    assert time.monotonic() - began < LIMIT + 3 * LIMIT + OWN
    assert status == 409, body
    assert body["errors"][0]["explanation"]["complete"] is False
    assert service.children(PLANNER) == [planner]
