"""The store contract under contention: threads and processes that want the same."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import pytest
from tests.contract.conftest import how_many_pass
from tests.store.hosts import claim, host

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import CapacityExceeded, ConsumerConflict, ProviderConflict
from moorage.store import Ledger, open_store

THREADS = 8


@pytest.mark.parametrize("attempt", range(3))
def test_the_last_unit_goes_to_exactly_one_thread(store: Ledger, attempt: int) -> None:
    host(store, "a", 1)
    ready = Barrier(THREADS)

    def want(number: int) -> bool:
        ready.wait()
        try:
            store.commit(claim(f"c{number}", "a"))
        except CapacityExceeded:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        won = list(pool.map(want, range(THREADS)))
    assert sum(won) == 1
    assert store.consumer(f"c{won.index(True)}") is not None
    assert store.snapshot().classes["VCPU"].used.tolist() == [1]


def test_one_writer_of_a_consumer_wins_each_round(store: Ledger) -> None:
    host(store, "a", 100)
    writers = [Consumer("c", f"p{number}") for number in range(THREADS)]
    commits = [Changeset((ReplaceAllocations(one, {"a": {"VCPU": 1}}, None),)) for one in writers]
    assert how_many_pass(store, commits, ConsumerConflict) == 1


def test_decisions_on_one_view_exclude_each_other(store: Ledger) -> None:
    host(store, "a", 100)
    seen = store.snapshot()
    relied = {"a": int(seen.revisions[seen.row("a")])}
    commits = [
        Changeset(claim(f"c{number}", "a").changes, relies_on=relied) for number in range(THREADS)
    ]
    assert how_many_pass(store, commits, ProviderConflict) == 1


def test_a_snapshot_is_never_older_than_a_finished_commit(store: Ledger) -> None:
    host(store, "a", 10_000)

    def work(number: int) -> list[str]:
        stale = []
        for turn in range(15):
            done = store.commit(claim(f"c{number}-{turn}", "a"))
            snapshot = store.snapshot()
            if snapshot.revision < done.revision:
                stale.append(f"{snapshot.revision} after {done.revision}")
        return stale

    with ThreadPoolExecutor(THREADS) as pool:
        assert [one for found in pool.map(work, range(THREADS)) for one in found] == []
    assert store.snapshot().classes["VCPU"].used.tolist() == [THREADS * 15]


def test_readers_see_whole_commits_only(store: Ledger) -> None:
    """Two consumers swap places all the time; a reader never sees one missing."""
    host(store, "a", 1)
    host(store, "b", 1)
    store.commit(claim("x", "a"))
    store.commit(claim("y", "b"))
    stop, torn = Event(), []

    def read() -> None:
        while not stop.is_set():
            used = store.snapshot().classes["VCPU"].used.tolist()
            listed = sorted(booking.provider for _, booking in store.bookings())
            if used != [1, 1] or listed != ["a", "b"]:
                torn.append((used, listed))

    readers = [Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(60):
        places = ("b", "a") if turn % 2 == 0 else ("a", "b")
        store.commit(
            Changeset(
                tuple(
                    ReplaceAllocations(Consumer(one), {place: {"VCPU": 1}}, ANY_GENERATION)
                    for one, place in zip("xy", places, strict=True)
                )
            )
        )
    stop.set()
    for reader in readers:
        reader.join()
    assert torn == []


WRITER = """
import json, sys, time
from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import CapacityExceeded
from moorage.store import open_store
url, name, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, won, slowest = open_store(url), 0, 0.0
for turn in range(turns):
    began = time.monotonic()
    try:
        store.commit(Changeset((
            ReplaceAllocations(Consumer(f"{name}-{turn}"), {"a": {"VCPU": 1}}, None),
        )))
        won += 1
    except CapacityExceeded:
        pass
    slowest = max(slowest, time.monotonic() - began)
json.dump({"won": won, "slowest": slowest, "used": store.snapshot().classes["VCPU"].used.tolist()},
          sys.stdout)
"""


def test_processes_share_one_database_and_none_is_locked_out(database_url: str) -> None:
    url = database_url
    store = open_store(url)
    host(store, "a", 130)
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, url, f"w{number}", "50"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(3)
    ]
    found = []
    for writer in writers:
        output, errors = writer.communicate(timeout=100)
        assert writer.returncode == 0, errors.decode()
        found.append(json.loads(output))
    assert sum(one["won"] for one in found) == 130
    assert store.snapshot().classes["VCPU"].used.tolist() == [130]
    store.close()


def test_processes_may_open_a_new_database_together(new_database_url: str) -> None:
    url = new_database_url
    program = "import sys; from moorage.store import open_store; open_store(sys.argv[1]).close()"
    openers = [
        subprocess.Popen([sys.executable, "-c", program, url], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for opener in openers:
        _, errors = opener.communicate(timeout=100)
        assert opener.returncode == 0, errors.decode()
    store = open_store(url)
    assert len(store.resource_classes()) > 20
    store.close()


def test_a_killed_writer_lets_the_others_go_on(database_url: str) -> None:
    url = database_url
    store = open_store(url)
    host(store, "a", 1_000_000)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, url, "w", "1000000"], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 100
    while store.snapshot().classes["VCPU"].used[0] < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    writer.kill()
    writer.wait()
    seen = int(store.snapshot().classes["VCPU"].used[0])
    assert seen >= 5
    store.commit(claim("mine", "a"))
    [now] = store.snapshot().classes["VCPU"].used.tolist()
    # Where it is a server's: the one that had begun to commit may end after its client.
    assert now - seen in {1, 2}
    assert store.consumer("mine") is not None
    store.close()
