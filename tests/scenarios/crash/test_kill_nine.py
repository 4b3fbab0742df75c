"""kill -9 of the real service at random points between decide, hold, claim and confirm.

Each round walks a few applications at once through the three steps over HTTP and kills the
service (its HTTP worker alone, every process of it, or the database server) at a seeded moment of
a seeded step of the first; the others are wherever they are. Two services share the ledger, so
that one works while the other comes back. After each kill the ledger is looked at directly: what
was acknowledged is there, what was not is there wholly or not at all, and in the end nothing is
held any more. `MOORAGE_CRASH_SEED` repeats a run, `MOORAGE_CRASH_KILLS` makes a longer one (`make
crash`).
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import make_url
from tests.servers import mariadb, postgres
from tests.servers.replica import Replica, Unacknowledged

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
    from collections.abc import Callable, Iterator
    from pathlib import Path


KILLS = int(os.environ.get("MOORAGE_CRASH_KILLS", "30"))
SEED = int(os.environ.get("MOORAGE_CRASH_SEED", "20261121"))
TOGETHER = 3
"""Walks that one kill hits."""
MEMBERS = 3
HOSTS = 6
HOLD = "PT4S"
LAPSED = "ensemble.hold_expired"
STEPS = ("decide", "claim", "active", "confirm")


class Declined(Exception):
    """The service said no, as it may: nothing was acknowledged.

    503: come again; or the hold has lapsed, where a loaded machine took longer than `HOLD`.
    """


def ask(service: Replica, method: str, path: str, body: object) -> Any:
    """The body of a good answer."""
    status, content = service.ask(method, path, body)
    if status == 503 or (status == 409 and content["errors"][0]["code"] == LAPSED):
        raise Declined
    assert status < 300, content
    return content


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


def requests_of(walk: Walk, service: Replica, dice: random.Random) -> Iterator[str]:
    """Take one step after the other; yields the name of the step before it is sent."""
    yield "decide"
    made = ask(
        service,
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
        walk.claims[member] = ask(service, "POST", path, {"claim": wanted})["claim"]["id"]
    server = str(uuid.UUID(int=dice.getrandbits(128), version=4))
    yield "active"
    told = {"claim": {"status": "active", "server_id": server}}
    ask(service, "PATCH", f"/v1/claims/{walk.claims['web[0]']}", told)
    walk.servers["web[0]"] = server
    yield "confirm"
    ask(service, "POST", f"/v1/decisions/{walk.decision}/confirm", {})
    walk.confirmed = True


def round_of(
    number: int, service: Replica, dice: random.Random, crash: Callable[[], None] | None
) -> list[Walk]:
    """Some walks, with one kill at some moment of some step of the first.

    `crash`, if given, is one way more to go wrong: the database's.
    """
    service.up()
    walks = [
        Walk(number * TOGETHER + one, str(uuid.UUID(int=dice.getrandbits(128), version=4)))
        for one in range(TOGETHER)
    ]
    step, delay = dice.choice(STEPS), dice.uniform(0, 0.04)
    ways = [service.kill_worker] * 3 + [service.kill_everything] * 2
    way = dice.choice(ways if crash is None else [*ways, crash, crash])
    killer = Timer(delay, way)

    def go(walk: Walk) -> None:
        own = random.Random(f"{SEED}-{walk.number}")
        first = walk is walks[0]
        time.sleep(0 if first else own.uniform(0, 0.1))
        try:
            for name in requests_of(walk, service, own):
                if first and name == step and killer.ident is None:
                    killer.start()
        except Declined:
            pass
        except Unacknowledged:
            assert killer.ident is not None, "a request failed before the kill"

    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(go, walks))
    if killer.ident is not None:
        killer.join()
        if way == service.kill_everything:
            service.down()
            service.start()
    return walks


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


def fill(url: str) -> None:
    """Six hosts and a flavor."""
    store = open_store(url)
    changes: list[Change] = [PutFlavor(Flavor("1", "m1.small", {"VCPU": 1}))]
    for number in range(HOSTS):
        name = str(uuid.UUID(int=number + 1))
        changes += [
            CreateProvider(name, f"h{number}"),
            PutInventories(name, (Inventory("VCPU", 1000),), None),
        ]
    store.commit(Changeset(tuple(changes)))
    store.close()


def crashes(folder: Path, url: str, kills: int, crash: Callable[[], None] | None) -> None:
    """The whole test, on a database."""
    fill(url)
    dice = random.Random(SEED)
    services = [Replica(folder / name, url) for name in ("one", "two")]
    walks: list[Walk] = []
    store = open_store(url)
    try:
        for name, service in zip(("one", "two"), services, strict=True):
            (folder / name).mkdir()
            service.start()
        for number in range(kills // TOGETHER):
            fresh = round_of(number, services[number % 2], dice, crash)
            walks += fresh
            if make_url(url).get_backend_name() == "sqlite":
                check_integrity(folder / "ledger.db")
            else:
                time.sleep(0.2)  # what had begun to commit on a server ends without its client
            for walk in fresh:
                check_whole(store, walk)
                check_acknowledged(store, walk)
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


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(150 + 10 * KILLS)
def test_kill_nine_loses_nothing_acknowledged_and_leaves_no_half(tmp_path: Path) -> None:
    crashes(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}", KILLS, None)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(150 + 10 * KILLS)
@pytest.mark.parametrize(
    ("kind", "share"), [("postgres", 2), ("mariadb", 3)], ids=["postgresql", "mariadb"]
)
def test_kill_nine_with_the_database_among_the_killed(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, share: int
) -> None:
    server = request.getfixturevalue(f"{kind}_server")
    databases = {"postgres": postgres, "mariadb": mariadb}[kind].Databases(server.url)
    crashes(tmp_path, databases.empty(), KILLS // share, server.restart)


def test_the_checks_see_a_half_decision_and_a_lost_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    fill(url)
    service, store = Replica(tmp_path, url), open_store(url)
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
