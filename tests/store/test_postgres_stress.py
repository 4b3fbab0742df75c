"""Stress on the feed: commits end in any order, writers are killed, the server crashes."""

import random
import subprocess
import sys
import time
from threading import Event, Thread

import psycopg
import pytest
from tests.servers.postgres import Databases, PostgresServer
from tests.store.hosts import host, used

from moorage.store import Ledger, open_store

WRITERS = 4

WRITER = """
import random, sys, time
import psycopg
from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.store import open_store
from moorage.store.postgresql.session import PipelineSession
url, name, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
dice, store, turn = random.Random(seed), open_store(url), 0

commit = PipelineSession.commit

def late(session):
    # After everything is written and before it ends: commits end in another order.
    session._run()
    if dice.random() < 0.3:
        time.sleep(dice.expovariate(50))
    commit(session)

PipelineSession.commit = late

while True:
    host = dice.choice("abcd")
    store.commit(Changeset((
        ReplaceAllocations(Consumer(f"{name}-{turn}"), {host: {"VCPU": 1}}, None),
    )))
    turn += 1
    print(turn, flush=True)
"""


class Crowd:
    """Writers in processes of their own, who say what was acknowledged."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._writers: dict[int, tuple[subprocess.Popen[str], Thread]] = {}
        self._told = [0] * WRITERS
        self._before = [0] * WRITERS
        """What those said who are gone."""

    def start(self, number: int, generation: int) -> None:
        name = f"w{number}.{generation}"
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, self._url, name, str(generation)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        listener = Thread(target=self._listen, args=(number, writer))
        listener.start()
        self._writers[number] = writer, listener

    def _listen(self, number: int, writer: subprocess.Popen[str]) -> None:
        assert writer.stdout is not None
        for line in writer.stdout:
            self._told[number] = int(line)

    def kill(self, number: int) -> None:
        writer, listener = self._writers.pop(number)
        writer.kill()
        writer.wait()
        listener.join()
        assert writer.stdout is not None
        writer.stdout.close()
        # First down, then up: what is promised may be less than was done, never more.
        told, self._told[number] = self._told[number], 0
        self._before[number] += told

    def kill_all(self) -> None:
        for number in list(self._writers):
            self.kill(number)

    def go_on(self, steps: int) -> None:
        """Wait until so many more were acknowledged."""
        enough, deadline = self.promised + steps, time.monotonic() + 100
        while self.promised < enough:
            assert time.monotonic() < deadline, "the writers stand still"
            time.sleep(0.01)

    @property
    def promised(self) -> int:
        """At least so many were acknowledged."""
        return sum(self._told) + sum(self._before)


class Reader:
    """Looks all the time, and notes what was promised and not there."""

    def __init__(self, store: Ledger, crowd: Crowd) -> None:
        self.store, self.looked, self.stale = store, 0, list[str]()
        self._crowd, self._stop = crowd, Event()
        self._thread = Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.is_set():
            promised = self._crowd.promised
            found = used(self.store)
            self.looked += 1
            if found < promised:
                self.stale.append(f"{found} after {promised}")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def content(store: Ledger) -> dict[str, object]:
    snapshot = store.snapshot()
    return {
        uuid: (
            int(snapshot.generation[row]),
            int(snapshot.revisions[row]),
            len(snapshot.bookings_of(row)),
        )
        for uuid, row in snapshot.row_of.items()
    }


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.process
def test_no_reader_ever_misses_a_commit(postgres_server: PostgresServer) -> None:
    """In the end each says what a new one says; none was behind what was acknowledged before."""
    url = Databases(postgres_server.url).empty()
    dice = random.Random(20261121)
    stores = [open_store(url) for _ in range(2)]
    for name in "abcd":
        host(stores[0], name)
    crowd = Crowd(url)
    readers = [Reader(store, crowd) for store in stores]
    try:
        for number in range(WRITERS):
            crowd.start(number, 0)
        long_one = psycopg.connect(url)
        long_one.execute("SELECT pg_current_xact_id()")
        for generation in range(1, 9):
            crowd.go_on(15)
            victim = dice.randrange(WRITERS)
            crowd.kill(victim)
            if generation == 4:
                long_one.close()
            if generation == 6:
                postgres_server.restart()
            crowd.start(victim, generation)
        crowd.go_on(15)
    finally:
        crowd.kill_all()
        for reader in readers:
            reader.stop()
    assert [reader.stale for reader in readers] == [[], []]
    assert min(reader.looked for reader in readers) > 20
    fresh = open_store(url)
    deadline = time.monotonic() + 100
    # What the last ones killed had begun to commit may end meanwhile.
    while not content(stores[0]) == content(stores[1]) == content(fresh):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for store in (*stores, fresh):
        store.close()
