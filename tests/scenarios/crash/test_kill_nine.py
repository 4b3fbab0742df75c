"""kill -9 of the real service at random points between decide, hold, claim and confirm.

Each round walks an application through the three steps over HTTP and kills the service (its
HTTP worker alone, or every process of it) at a seeded moment of a seeded step. Two services share
the ledger, so that one works while the other comes back. After each kill the ledger is looked
at directly: what was acknowledged is there, what was not is there wholly or not at all, and in
the end nothing is held any more. `MOORAGE_CRASH_SEED` repeats a run, `MOORAGE_CRASH_KILLS` makes a
longer one.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest

from moorage.domain.bookings import BookingState
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    DeleteEnsemble,
    DropBookings,
    PutFlavor,
    PutInventories,
)
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import NotFound
from moorage.domain.flavors import Flavor
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = int(os.environ.get("MOORAGE_CRASH_KILLS", "30"))
SEED = int(os.environ.get("MOORAGE_CRASH_SEED", "20261121"))
MEMBERS = 3
HOSTS = 6
HOLD = "PT4S"
STEPS = ("decide", "claim", "active", "confirm")
HEADERS = {
    "X-Auth-Token": "ann:project-a",
    "X-Roles": "member",
    "Content-Type": "application/json",
}
Unacknowledged = (OSError, http.client.HTTPException)
"""How a request ends whose answer never came."""


class Service:
    """`moorage serve` in a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def up(self) -> None:
        """Wait until it answers."""
        assert self.process is not None
        assert self.process.stdout is not None
        if not self.port:
            line = self.process.stdout.readline()
            assert "serving on" in line, (self.folder / "log").read_text()[-2000:]
            self.port = int(line.partition("://")[2].partition(" ")[0].rpartition(":")[2])
        deadline = time.monotonic() + 60
        while not self._healthy():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.02)

    def start(self) -> None:
        """Start it, without waiting for an answer."""
        self.port = 0
        dropped = ("MOORAGE_", "PYTHONDONTWRITEBYTECODE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        options = ("--database", f"sqlite:///{self.folder / 'ledger.db'}", "--log-level", "warning")
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "moorage.cli.main", "serve", "--port", "0", *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.folder,
                env={**kept, "HOME": str(self.folder)},
                start_new_session=True,
            )

    def _healthy(self) -> bool:
        with contextlib.suppress(*Unacknowledged):
            return self.call("GET", "/healthz") is not None
        return False

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The body of a good answer; an answer that is none fails the test."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, HEADERS)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        assert answer.status < 300, content.decode()
        return json.loads(content) if content else {}

    def kill_everything(self) -> None:
        """SIGKILL to the supervisor and all its processes at once."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill_worker(self) -> None:
        """SIGKILL to the process that answers requests; the supervisor makes a new one."""
        assert self.process is not None
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            words = Path(f"/proc/{child}/cmdline").read_text()
            if "solver" not in words:
                os.kill(int(child), signal.SIGKILL)

    def down(self) -> None:
        """Nobody of it runs any more."""
        self.kill_everything()
        if self.process is not None:
            self.process.wait(20)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


@dataclass
class Walk:
    """One application on its way, and what the service has acknowledged of it."""

    number: int
    ensemble: str
    decision: str | None = None
    claims: dict[str, str] = field(default_factory=dict)
    """Member -> claim."""
    servers: dict[str, str] = field(default_factory=dict)
    """Member -> server, once its claim is active."""
    confirmed: bool = False


def requests_of(walk: Walk, service: Service, dice: random.Random) -> Iterator[str]:
    """Take one step after the other; yields the name of the step before it is sent."""
    yield "decide"
    made = service.call(
        "POST",
        "/v1/ensembles",
        {
            "ensemble": {
                "name": f"walk-{walk.number}",
                "id": walk.ensemble,
                "members": [{"name": "web", "count": MEMBERS, "flavor": "m1.small"}],
                "policies": [
                    {
                        "name": "apart",
                        "type": "anti-affinity",
                        "members": ["web"],
                        "level": "host",
                    }
                ],
                "decide": {"hold": HOLD},
            }
        },
    )
    walk.decision = made["decision"]["id"]
    for index in range(2):
        member = f"web[{index}]"
        yield "claim"
        wanted = {"member": member, "server": {"flavorRef": "m1.small"}, "lifetime": HOLD}
        path = f"/v1/decisions/{walk.decision}/claims"
        walk.claims[member] = service.call("POST", path, {"claim": wanted})["claim"]["id"]
    server = str(uuid.UUID(int=dice.getrandbits(128), version=4))
    yield "active"
    told = {"claim": {"status": "active", "server_id": server}}
    service.call("PATCH", f"/v1/claims/{walk.claims['web[0]']}", told)
    walk.servers["web[0]"] = server
    yield "confirm"
    service.call("POST", f"/v1/decisions/{walk.decision}/confirm", {})
    walk.confirmed = True


def round_of(number: int, service: Service, dice: random.Random) -> Walk:
    """One walk with a kill at some moment of some step."""
    service.up()
    walk = Walk(number, str(uuid.UUID(int=dice.getrandbits(128), version=4)))
    step, delay = dice.choice(STEPS), dice.uniform(0, 0.04)
    whole = dice.random() < 0.4
    killer = Timer(delay, service.kill_everything if whole else service.kill_worker)
    try:
        for name in requests_of(walk, service, dice):
            if name == step and killer.ident is None:
                killer.start()
    except Unacknowledged:
        assert killer.ident is not None, "a request failed before the kill"
    if killer.ident is not None:
        killer.join()
    if whole:
        service.down()
        service.start()
    return walk


# --- looking at the ledger --------------------------------------------------------------------


def check_integrity(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def check_whole(store: Ledger, walk: Walk) -> None:
    """A decision has all of its places or is not there at all."""
    try:
        ensemble = store.ensemble(walk.ensemble)
    except NotFound:
        assert walk.decision is None, "an acknowledged ensemble is lost"
        assert not store.decisions(project_id=None, ensemble_id=walk.ensemble)
        return
    (decision,) = store.decisions(project_id=None, ensemble_id=walk.ensemble)
    assert walk.decision in {None, decision.id}
    standing = {}
    for member in ensemble.members:
        consumers = [one for one in (member.uuid, member.server_id) if one is not None]
        found = [booking for one in consumers for _, booking in store.bookings(consumer=one)]
        assert len(found) <= 1, f"{member.name} stands twice"
        standing[str(member.name)] = found[0].state if found else None
    if decision.state is DecisionState.HELD and store.now() < decision.expires_at:
        claimed_before = {str(one.member) for one in store.claims(decision_id=decision.id)}
        missing = {name for name, state in standing.items() if state is None} - claimed_before
        # Read last: what has lapsed while we looked is no half decision.
        assert not missing or store.now() >= decision.expires_at, f"half a decision: {standing}"
    if decision.state in {DecisionState.CONFIRMED, DecisionState.CLOSED}:
        assert BookingState.HELD not in standing.values(), f"half a confirm: {standing}"


def check_acknowledged(store: Ledger, walk: Walk) -> None:
    """Whatever the service has said is done is done."""
    for claim_id in walk.claims.values():
        assert store.claim(claim_id).decision_id == walk.decision
    for member, server in walk.servers.items():
        assert store.claim(walk.claims[member]).state is ClaimState.ACTIVE
        found = store.consumer(server)
        assert found is not None, f"the server of {member} lost its allocation"
        assert [dict(booking.amounts) for booking in found[1]] == [{"VCPU": 1}]
    if walk.confirmed:
        assert walk.decision is not None
        state = store.decision(walk.decision).state
        assert state in {DecisionState.CONFIRMED, DecisionState.CLOSED}


def check_end(store: Ledger, walks: list[Walk]) -> None:
    """After every expiry: nothing is held, and allocations belong to active claims."""
    states = {booking.state for _, booking in store.bookings()}
    assert states <= {BookingState.ALLOCATED}
    active = set()
    for walk in walks:
        for decision in store.decisions(project_id=None, ensemble_id=walk.ensemble):
            assert decision.state is not DecisionState.HELD
            for claim in store.claims(decision_id=decision.id):
                assert claim.state is not ClaimState.BUILDING
                if claim.state is ClaimState.ACTIVE:
                    active.add(claim.server_id)
    assert {booking.consumer for _, booking in store.bookings()} == active
    columns = store.snapshot().classes["VCPU"]
    assert columns.used.sum() == len(active)
    assert (columns.peak == columns.used).all(), "something is still held"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ledger with six hosts and a flavor."""
    store = open_store(f"sqlite:///{tmp_path / 'ledger.db'}")
    changes: list[Change] = [PutFlavor(Flavor("1", "m1.small", {"VCPU": 1}))]
    for number in range(HOSTS):
        name = str(uuid.UUID(int=number + 1))
        changes += [
            CreateProvider(name, f"h{number}"),
            PutInventories(name, (Inventory("VCPU", 1000),), None),
        ]
    store.commit(Changeset(tuple(changes)))
    store.close()
    return tmp_path


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(150 + 10 * KILLS)
def test_kill_nine_loses_nothing_acknowledged_and_leaves_no_half(folder: Path) -> None:
    dice = random.Random(SEED)
    services, walks = (Service(folder), Service(folder)), []
    store = open_store(f"sqlite:///{folder / 'ledger.db'}")
    try:
        for service in services:
            service.start()
        for number in range(KILLS):
            walks.append(round_of(number, services[number % 2], dice))
            check_integrity(folder / "ledger.db")
            check_whole(store, walks[-1])
            check_acknowledged(store, walks[-1])
        services[0].up()
        deadline = time.monotonic() + 30
        while store.due(1) or any(
            booking.state is not BookingState.ALLOCATED for _, booking in store.bookings()
        ):
            assert time.monotonic() < deadline, "something stays held"
            time.sleep(0.1)
        for walk in walks:
            check_whole(store, walk)
            check_acknowledged(store, walk)
        check_end(store, walks)
        reached = [step for walk in walks for step in (walk.decision, walk.confirmed) if step]
        assert reached, "no walk came anywhere"
    finally:
        for service in services:
            service.down()
        store.close()


def test_the_checks_see_a_half_decision_and_a_lost_one(folder: Path) -> None:
    service = Service(folder)
    store = open_store(f"sqlite:///{folder / 'ledger.db'}")
    try:
        service.start()
        service.up()
        walk = Walk(0, str(uuid.UUID(int=99, version=4)))
        steps = requests_of(walk, service, random.Random(1))
        assert [next(steps), next(steps)] == ["decide", "claim"]
        check_whole(store, walk)
        member = store.ensemble(walk.ensemble).members[2]
        store.commit(Changeset((DropBookings(frozenset({member.uuid})),)))
        with pytest.raises(AssertionError, match="half a decision"):
            check_whole(store, walk)
        store.commit(Changeset((DeleteEnsemble(walk.ensemble),)))
        with pytest.raises(AssertionError, match="lost"):
            check_whole(store, walk)
        walk.claims["web[0]"] = "nowhere"
        with pytest.raises(NotFound):
            check_acknowledged(store, walk)
    finally:
        service.down()
        store.close()
