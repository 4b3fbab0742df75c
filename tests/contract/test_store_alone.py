"""A commit that is proposed while nobody else can write."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from moorage.domain.changes import (
    Changeset,
    Committed,
    CreateProvider,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import CapacityExceeded, ConsumerConflict
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store

HOST, ROOM = "a", 40
CROWD = 30
"""Writers at once: more than a process has connections."""
HOLDER = """
import sys, time
from moorage.store import open_store

def propose():
    print("alone", flush=True)
    time.sleep(60)

open_store(sys.argv[1]).commit_alone(propose)
"""


def claim(consumer: str, amount: int = 1) -> Changeset:
    change = ReplaceAllocations(Consumer(consumer), {HOST: {"VCPU": amount}}, None)
    return Changeset((change,))


def used(store: Ledger) -> int:
    return int(store.snapshot().classes["VCPU"].used.sum())


@pytest.fixture
def many() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(CROWD) as made:
        yield made


@pytest.fixture
def stocked(store: Ledger) -> Ledger:
    stock = PutInventories(HOST, (Inventory("VCPU", ROOM),), None)
    store.commit(Changeset((CreateProvider(HOST, HOST), stock)))
    return store


def test_nobody_overtakes_what_is_proposed_alone(stocked: Ledger, many: ThreadPoolExecutor) -> None:
    """A crowd wants the room, and has come; whoever is alone reads, and gets all of it."""
    crowd: list[Future[Committed]] = []

    def propose() -> Changeset:
        crowd.extend(many.submit(stocked.commit, claim(f"other-{n}")) for n in range(CROWD))
        time.sleep(0.3)
        assert not any(one.done() for one in crowd), "somebody has written meanwhile"
        left = ROOM - used(stocked)
        assert stocked.allocations_of_consumer("mine") is None
        return claim("mine", left)

    assert stocked.commit_alone(propose) is not None
    # Had it waited for those who wait for it, they would have been told to come again.
    assert {type(one.exception(60)) for one in crowd} == {CapacityExceeded}
    assert used(stocked) == ROOM


def test_what_is_read_alone_is_so_still_when_it_is_written(
    stocked: Ledger, many: ThreadPoolExecutor
) -> None:
    """Many change one consumer, each as it has seen it: who is alone has always seen the newest."""
    stocked.commit(claim("shared"))

    def change() -> Changeset:
        found = stocked.allocations_of_consumer("shared")
        assert found is not None
        amounts = {HOST: {"VCPU": 1}}
        return Changeset((ReplaceAllocations(found[0], amounts, found[0].generation),))

    alone = [many.submit(stocked.commit_alone, change) for _ in range(6)]
    freely = [many.submit(lambda: stocked.commit(change())) for _ in range(CROWD)]
    assert [one.exception(60) for one in alone] == [None] * 6
    assert {type(one.exception(60)) for one in freely} <= {type(None), ConsumerConflict}


def test_nothing_proposed_is_nothing_written(stocked: Ledger) -> None:
    before = stocked.snapshot().revision
    assert stocked.commit_alone(lambda: None) is None
    assert stocked.snapshot().revision == before
    stocked.commit(claim("next"))


def test_an_error_is_told_and_keeps_nobody_waiting(stocked: Ledger) -> None:
    def propose() -> Changeset:
        raise LookupError("of the proposal's own")

    with pytest.raises(LookupError, match="of the proposal's own"):
        stocked.commit_alone(propose)
    with pytest.raises(CapacityExceeded):
        stocked.commit_alone(lambda: claim("mine", ROOM + 1))
    stocked.commit(claim("next"))
    assert stocked.commit_alone(lambda: claim("mine")) is not None
    assert used(stocked) == 2


def test_a_holder_that_is_killed_holds_up_nobody(stocked: Ledger, database_url: str) -> None:
    """Locks end with the connection or the process that has them."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, database_url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "alone\n"
        with ThreadPoolExecutor(1) as one:
            waiting = one.submit(stocked.commit, claim("mine"))
            time.sleep(0.3)
            assert not waiting.done(), "it was not alone"
            os.kill(holder.pid, signal.SIGKILL)
            waiting.result(30)  # long before the holder would have ended by itself
    finally:
        holder.kill()
        holder.wait(60)
        assert holder.stdout is not None
        holder.stdout.close()
    second = open_store(database_url)
    assert second.commit_alone(lambda: claim("more")) is not None
    second.close()
    assert used(stocked) == 2
