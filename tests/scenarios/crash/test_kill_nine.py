"""kill -9 of the real service at random points between decide, hold, claim and confirm.

Each round walks a few applications at once through the three steps over HTTP and kills the
service (its HTTP worker alone, every process of it, or the database server) at a seeded moment of
a seeded step of the first; the others are wherever they are. Two services share the ledger, so
that one works while the other comes back. After each kill the ledger is looked at directly: what
was acknowledged is there, what was not is there wholly or not at all, and in the end nothing is
held any more. `MOORAGE_CRASH_SEED` repeats a run, `MOORAGE_CRASH_KILLS` makes a longer one, and
`MOORAGE_CRASH_REPORT` names a file that tells of it (`make crash`).
"""

from __future__ import annotations

import os
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url
from tests.scenarios.crash.looking import (
    check_acknowledged,
    check_end,
    check_integrity,
    check_whole,
)
from tests.scenarios.crash.report import TITLE, Crashed, as_markdown
from tests.scenarios.crash.walks import CONFIRMED, HOLD, LAPSED, STEPS, UNHEARD, Walk
from tests.servers import mariadb, postgres
from tests.servers.replica import Replica

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
from moorage.domain.errors import NotFound
from moorage.domain.flavors import Flavor
from moorage.domain.providers import Inventory
from moorage.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

KILLS = int(os.environ.get("MOORAGE_CRASH_KILLS", "0"))
"""On each database; 0: few, as many as a test among others may take."""
FEW = {"sqlite": 10, "postgresql": 5, "mysql": 3}
SEED = int(os.environ.get("MOORAGE_CRASH_SEED", "20261121"))
REPORT = os.environ.get("MOORAGE_CRASH_REPORT")
TOGETHER = 3
"""Walks that one kill hits."""
HOSTS = 6
WORKER, SERVICE, DATABASE = "HTTP worker", "supervisor with all its processes", "database server"

long = pytest.mark.timeout(300 + 20 * KILLS)


def round_of(
    number: int,
    service: Replica,
    dice: random.Random,
    crash: Callable[[], None] | None,
    told: Crashed,
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
    ways = [(WORKER, service.kill_worker), (SERVICE, service.kill_everything)]
    if crash is not None:
        ways = [(DATABASE, crash), *ways]
    # Each once in turn, so that a short run has them all; after that as the dice fall.
    what, way = ways[number] if number < len(ways) else dice.choice([*ways, ways[-2]])
    killer = Timer(delay, way)

    def go(walk: Walk) -> None:
        own = random.Random(f"{SEED}-{walk.number}")
        first = walk is walks[0]
        time.sleep(0 if first else own.uniform(0, 0.1))
        for name in walk.go(service, own):
            if first and name == step and killer.ident is None:
                killer.start()
        assert walk.ended != UNHEARD or killer.ident is not None, "failed before the kill"

    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(go, walks))
    told.ends.update(walk.ended for walk in walks)
    if killer.ident is not None:
        killer.join()
        told.kills[what] += 1
        told.steps[step] += 1
        if what == SERVICE:
            service.down()
            service.start()
    return walks


def fill(url: str) -> None:
    """Six hosts and a flavor."""
    store = open_store(url)
    changes: list[Change] = [PutFlavor(Flavor("1", "m1.small", {"VCPU": 1}))]
    for number in range(HOSTS):
        name = str(uuid.UUID(int=number + 1))
        changes += [
            CreateProvider(name, f"h{number}"),
            PutInventories(name, (Inventory("VCPU", 10_000),), None),
        ]
    store.commit(Changeset(tuple(changes)))
    store.close()


def crashes(folder: Path, url: str, crash: Callable[[], None] | None) -> None:
    """The whole test, on a database."""
    fill(url)
    kind = make_url(url).get_backend_name()
    dice, told, began = random.Random(SEED), Crashed(SEED), time.monotonic()
    services = [Replica(folder / name, url) for name in ("one", "two")]
    walks: list[Walk] = []
    store = open_store(url)
    try:
        for name, service in zip(("one", "two"), services, strict=True):
            (folder / name).mkdir()
            service.start()
        number = 0
        while told.kills.total() < (KILLS or FEW[kind]):
            fresh = round_of(number, services[number % 2], dice, crash, told)
            number += 1
            walks += fresh
            if kind == "sqlite":
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
        told.seconds = time.monotonic() - began
        text = as_markdown(told, "mariadb" if kind == "mysql" else kind)
        assert told.ends[CONFIRMED] * 10 > told.ends.total(), f"hardly one came through\n{text}"
        keep(text)
    finally:
        for service in services:
            service.down()
        store.close()


def keep(text: str) -> None:
    """Add a section to the report, if one is wanted."""
    if REPORT:
        page = Path(REPORT)
        before = page.read_text() if page.exists() else TITLE
        page.write_text(f"{before}\n{text}")


@pytest.mark.slow
@pytest.mark.process
@long
def test_kill_nine_loses_nothing_acknowledged_and_leaves_no_half(tmp_path: Path) -> None:
    crashes(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}", None)


@pytest.mark.slow
@pytest.mark.process
@long
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_kill_nine_with_the_database_among_the_killed(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    server = request.getfixturevalue(f"{kind}_server")
    databases = {"postgres": postgres, "mariadb": mariadb}[kind].Databases(server.url)
    crashes(tmp_path, databases.empty(), server.restart)


def test_the_checks_see_a_half_decision_and_a_lost_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    fill(url)
    service, store = Replica(tmp_path, url), open_store(url)
    try:
        service.start()
        service.up()
        walk = Walk(0, str(uuid.UUID(int=99, version=4)))
        steps = walk.go(service, random.Random(1))
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


def test_a_hold_that_lapses_before_its_time_is_seen(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    fill(url)
    service = Replica(tmp_path, url)
    try:
        service.start()
        service.up()
        walks = [Walk(number, str(uuid.UUID(int=number, version=4))) for number in (1, 2)]
        ways = [walk.go(service, random.Random(1)) for walk in walks]
        for steps in ways:
            assert [next(steps), next(steps)] == ["decide", "claim"]
        time.sleep(HOLD + 0.1)
        assert not list(ways[0])
        assert walks[0].ended == LAPSED
        walks[1].asked += HOLD  # as if it had asked just now
        with pytest.raises(AssertionError, match="lapsed after"):
            next(ways[1])
    finally:
        service.down()
