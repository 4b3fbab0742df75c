"""kill -9 of the real service at random points between decide, hold, claim and confirm.

Each round walks a few applications at once through the three steps over HTTP and kills the
service (its HTTP worker alone, every process of it, or the database server) at a seeded moment of
a seeded step of the first; the others are wherever they are. Two services share the ledger, so
that one works while the other comes back. After each kill the ledger is looked at directly: what
was acknowledged is there, what was not is there wholly or not at all, and in the end nothing is
held any more. `MOORAGE_CRASH_SEED` repeats a run, `MOORAGE_CRASH_KILLS` makes a longer one, and
`MOORAGE_CRASH_REPORT` names a file that tells of it (`make crash`).
"""

import os
import random
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Timer

import pytest
from tests.scenarios.crash.looking import (
    check_acknowledged,
    check_end,
    check_integrity,
    check_whole,
)
from tests.scenarios.crash.report import TITLE, Crashed, as_markdown
from tests.scenarios.crash.walks import CONFIRMED, HOLD, LAPSED, STEPS, UNHEARD, Walk
from tests.scenarios.kills import SEED, SERVICE, Kills, append, database, services, stock, wait_for
from tests.servers.replica import Replica

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, DeleteEnsemble, DropBookings
from moorage.domain.errors import NotFound
from moorage.store import Ledger, open_store

KILLS = int(os.environ.get("MOORAGE_CRASH_KILLS", "0"))
"""On each database; 0: few, as many as a test among others may take."""
FEW = {"sqlite": 2, "postgresql": 3, "mariadb": 3}
REPORT = os.environ.get("MOORAGE_CRASH_REPORT")
TOGETHER = 3
"""Walks that one kill hits."""
HOSTS = tuple(str(uuid.UUID(int=number + 1)) for number in range(6))
ROOM = 10_000


def round_of(
    number: int, service: Replica, dice: random.Random, kills: Kills, told: Crashed
) -> list[Walk]:
    """Some walks, with one kill at some moment of some step of the first."""
    service.up()
    walks = [
        Walk(number * TOGETHER + one, str(uuid.UUID(int=dice.getrandbits(128), version=4)))
        for one in range(TOGETHER)
    ]
    step, delay = dice.choice(STEPS), dice.uniform(0, 0.04)
    ways = kills.ways
    # Each once in turn, so that a short run has them all; after that as the dice fall.
    what = ways[number] if number < len(ways) else dice.choice([*ways, ways[-2]])
    killer = Timer(delay, kills.kill, (what, service))

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
        told.steps[step] += 1
        if what == SERVICE:
            service.down()
            service.start()
    return walks


def fill(url: str) -> None:
    """Hosts with room for all, and a flavor."""
    store = open_store(url)
    stock(store, ROOM, HOSTS)
    store.close()


def settled(check: Callable[[], None]) -> None:
    """A check that must hold once the server has ended what it had begun when its client died."""
    deadline = time.monotonic() + HOLD / 2
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def crashes(folder: Path, kind: str) -> None:
    """The whole test, on a kind of database."""
    with database(kind, folder) as (url, restart):
        fill(url)
        kills, dice, began = Kills(restart), random.Random(SEED), time.monotonic()
        told, walks = Crashed(SEED, kills.done), list[Walk]()
        with (
            closing(open_store(url)) as store,
            services(folder, [url], 2, "--planners", "1") as served,
        ):
            while kills.done.total() < (KILLS or FEW[kind]):
                service = served[len(walks) // TOGETHER % 2]
                fresh = round_of(len(walks) // TOGETHER, service, dice, kills, told)
                walks += fresh
                if kind == "sqlite":
                    check_integrity(folder / "ledger.db")
                for walk in fresh:
                    settled(partial(check_whole, store, walk))
                    check_acknowledged(store, walk)
            served[0].up()
            wait_for(lambda: not store.due(1) and not held(store), served[0])
            for walk in walks:
                check_whole(store, walk)
                check_acknowledged(store, walk)
            check_end(store, walks)
        told.seconds = time.monotonic() - began
    text = as_markdown(told, kind)
    if KILLS >= 100:  # of a few all may be hit
        assert told.ends[CONFIRMED] * 10 > told.ends.total(), f"hardly one came through\n{text}"
    if REPORT:
        append(Path(REPORT), TITLE, text)


def held(store: Ledger) -> bool:
    """Whether any place is held that no server has."""
    return any(booking.state is not BookingState.ALLOCATED for _, booking in store.bookings())


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(400 + 20 * KILLS)
@pytest.mark.parametrize(
    "kind",
    [
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.nightly),
        pytest.param("mariadb", marks=pytest.mark.nightly),
    ],
)
def test_kill_nine_loses_nothing_acknowledged_and_leaves_no_half(tmp_path: Path, kind: str) -> None:
    """Where there is a database server it is among the killed."""
    crashes(tmp_path, kind)


def test_the_checks_see_a_half_decision_and_a_lost_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    fill(url)
    with closing(open_store(url)) as store, services(tmp_path, [url], 1) as [service]:
        walk = Walk(0, str(uuid.UUID(int=99, version=4)), hold=60)
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


def test_a_hold_that_lapses_before_its_time_is_seen(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    fill(url)
    with services(tmp_path, [url], 1) as [service]:
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
