"""Nova writes servers into held places while workers are killed and replaced: none is lost.

Each server asks for candidates and writes its allocations as Nova's report client does, with the
request id that presents its claim. What got no answer, or 503, is repeated as it was (Nova's
`connect_retries` and `status_code_retries`); `placement.concurrent_update` a few times (its own
decorator), anything else is the end of the build. Some Novas end themselves, and repeat nothing.
"""

import random
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from tests.scenarios.crash.test_kill_nine import fill
from tests.scenarios.kills import services
from tests.servers.replica import Replica, Unacknowledged

from moorage.domain.decisions import ClaimState
from moorage.store import Ledger, open_store

pytestmark = [pytest.mark.process, pytest.mark.slow]

SERVERS = 6
ROUNDS = 3
LIFETIME = 90
"""Seconds a claim lives; of those whose Nova gives up less."""
BRIEF = 6
PATIENCE = 100.0
RACES = 4
"""How often Nova repeats a write that lost a race."""


@dataclass
class Build:
    """One server that Nova builds into a claimed place."""

    claim: Any
    server: str
    gives_up: bool
    """Whether its Nova is gone as soon as an answer does not come."""
    status: int = 0
    """Of the last answer to the write; 0: none came."""

    def go(self, service: Replica) -> None:
        headers = {
            "x-auth-token": "nova:service",
            "x-roles": "service",
            "openstack-api-version": "placement 1.36",
            "content-type": "application/json",
            **self.claim["present_as"]["header"],
        }

        def ask(method: str, path: str, body: object = None) -> tuple[int, Any]:
            return self._retried(lambda: service.ask(method, path, body, headers))

        status, found = ask("GET", "/placement/allocation_candidates?resources=VCPU:1")
        if status != 200:
            return
        if self.gives_up and len(found["allocation_requests"]) != 1:
            return  # its brief claim has lapsed before the first request, on a busy machine
        (candidate,) = found["allocation_requests"]
        body = {
            **candidate,
            "project_id": "project-a",
            "user_id": "ann",
            "consumer_generation": None,
        }
        for _ in range(RACES):
            self.status, told = ask("PUT", f"/placement/allocations/{self.server}", body)
            if self.status != 409 or told["errors"][0]["code"] != "placement.concurrent_update":
                return

    def _retried(self, attempt: Callable[[], tuple[int, Any]]) -> tuple[int, Any]:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                status, body = attempt()
            except Unacknowledged:
                status, body = 0, None
            if status not in {0, 503} or self.gives_up:
                return status, body
            assert time.monotonic() < until, "repeated in vain"
            time.sleep(0.05)


def hold(service: Replica, number: int, dice: random.Random) -> list[Build]:
    """An ensemble whose places are held, and a claim of each."""
    members = [{"name": "web", "count": SERVERS, "flavor": "m1.small"}]
    wanted = {"name": f"shop-{number}", "members": members, "decide": {"hold": "PT180S"}}
    made = service.call("POST", "/v1/ensembles", {"ensemble": wanted})
    builds = []
    for index in range(SERVERS):
        gives_up = dice.random() < 0.25
        asked = {
            "member": f"web[{index}]",
            "server": {"flavorRef": "m1.small"},
            "lifetime": f"PT{BRIEF if gives_up else LIFETIME}S",
        }
        path = f"/v1/decisions/{made['decision']['id']}/claims"
        claim = service.call("POST", path, {"claim": asked})["claim"]
        builds.append(Build(claim, str(uuid.UUID(int=dice.getrandbits(128), version=4)), gives_up))
    return builds


def check(store: Ledger, builds: list[Build]) -> None:
    """Each claim is its server's, or free once its lifetime is over; nobody was given less."""
    deadline = time.monotonic() + LIFETIME
    for build in builds:
        claim = store.claim(build.claim["id"])
        while claim.state_at(store.now()) is ClaimState.BUILDING:
            assert build.gives_up, "the server was not built, and its place is claimed still"
            assert time.monotonic() < deadline, "the claim outlives its lifetime"
            time.sleep(0.2)
            claim = store.claim(build.claim["id"])
        stands = store.consumer(build.server)
        if not build.gives_up:
            assert build.status == 204, f"the write ended with {build.status}"
        if build.status == 204 or claim.state is ClaimState.ACTIVE:
            assert claim.state is ClaimState.ACTIVE
            assert claim.server_id == build.server
            assert stands is not None, "an active claim without allocations"
            assert [dict(one.amounts) for one in stands[1]] == [{"VCPU": 1}]
            assert stands[0].generation == 1, "written once, however often it was repeated"
        else:
            assert stands is None, "allocations without a claim"


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)],
    indirect=True,
)
def test_no_server_is_lost_through_kills_and_reloads(tmp_path: Path, database_url: str) -> None:
    url = database_url
    fill(url)
    dice = random.Random(20261123)
    every: list[Build] = []
    with closing(open_store(url)) as store, services(tmp_path, [url], 1) as [service]:
        for number in range(ROUNDS):
            builds = hold(service, number, dice)
            every += builds
            way = service.reload if number % 3 == 2 else service.kill_worker
            trouble = Timer(dice.uniform(0, 0.06), way)
            with ThreadPoolExecutor(SERVERS) as pool:
                trouble.start()
                list(pool.map(lambda build: build.go(service), builds))
            trouble.join()
            service.up()
        check(store, every)
        assert sum(build.status == 204 for build in every) >= len(every) // 2
        used = {one.server for one in every if store.consumer(one.server) is not None}
        assert store.snapshot().classes["VCPU"].used.sum() == len(used)
