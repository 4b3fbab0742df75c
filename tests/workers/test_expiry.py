"""The expiry loop over a real ledger: what is due is handed over once it is due, never before."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread

import pytest

from moorage.domain.changes import Changeset, PutDecision
from moorage.domain.decisions import Claim, Decision, DecisionState, Solve
from moorage.domain.errors import ConcurrentUpdate
from moorage.domain.period import Period
from moorage.domain.requests import Objective
from moorage.store import Ledger
from moorage.testing.ledger_copy import private_ledger
from moorage.workers.expiry import BATCH, Swept, run, start, sweep


class SetClock:
    def __init__(self) -> None:
        self.instant = 100

    def now(self) -> int:
        return self.instant


def held(number: int, expires_at: int) -> Decision:
    return Decision(
        id=f"d{number}",
        ensemble_id="e",
        project_id="p",
        ensemble_generation=0,
        state=DecisionState.HELD,
        period=Period(0),
        expires_at=expires_at,
        hold=10,
        objective=Objective.SPREAD,
        solve=Solve("greedy", 0, 0, proven=True, wall_ms=1.0, seed=0),
        places={},
        policies=(),
        revision=0,
    )


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(clock: SetClock) -> Iterator[Ledger]:
    ledger = private_ledger(clock)
    ledger.commit(Changeset((PutDecision(held(1, 110), None), PutDecision(held(2, 120), None))))
    yield ledger
    ledger.close()


class Expiring:
    """The use case: marks decisions expired, and remembers what it was given."""

    def __init__(self, store: Ledger) -> None:
        self.store = store
        self.given: list[str] = []

    def __call__(self, due: Decision | Claim) -> bool:
        assert isinstance(due, Decision)
        self.given.append(due.id)
        expired = replace(due, state=DecisionState.EXPIRED)
        self.store.commit(Changeset((PutDecision(expired, due.generation),)))
        return True


def test_nothing_is_due_before_its_time(store: Ledger, clock: SetClock) -> None:
    expire = Expiring(store)
    clock.instant = 109
    assert sweep(store, expire) == Swept(due=0, failed=0)
    clock.instant = 110
    assert sweep(store, expire) == Swept(due=1, failed=0)
    assert sweep(store, expire) == Swept(due=0, failed=0)
    clock.instant = 500
    sweep(store, expire)
    assert expire.given == ["d1", "d2"]


def test_one_that_fails_does_not_stop_the_rest(
    store: Ledger, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.instant = 500
    expire = Expiring(store)

    def stumbling(due: Decision | Claim) -> bool:
        if due.id == "d1":
            raise ConcurrentUpdate("somebody was faster", subject="d1")
        return expire(due)

    with caplog.at_level(logging.ERROR):
        assert sweep(store, stumbling) == Swept(due=2, failed=1, seen=frozenset({"d1"}))
    assert expire.given == ["d2"]
    assert "could not expire decision d1" in caplog.text
    assert [one.id for one in store.due(10)] == ["d1"], "it comes again"


def test_the_loop_survives_a_broken_item_and_stops_when_told(
    store: Ledger, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.instant = 500
    expire, stop, rounds = Expiring(store), Event(), []

    def breaking_once(due: Decision | Claim) -> bool:
        rounds.append(due.id)
        if len(rounds) == 1:
            raise RuntimeError("no such luck")
        expire(due)
        if len(expire.given) == 2:
            stop.set()
        return True

    with caplog.at_level(logging.ERROR):
        run(store, breaking_once, stop=stop, interval=0.001)
    assert expire.given == ["d2", "d1"]
    assert "no such luck" in caplog.text


def test_what_never_ends_neither_spins_the_loop_nor_hides_the_rest(
    store: Ledger, clock: SetClock
) -> None:
    stuck = tuple(PutDecision(held(number, 10), None) for number in range(3, 3 + 2 * BATCH))
    store.commit(Changeset(stuck))
    clock.instant = 500
    expire, stop, turns = Expiring(store), Event(), Counter[str]()

    def stubborn(due: Decision | Claim) -> bool:
        turns[due.id] += 1
        return expire(due) if due.id in {"d1", "d2"} else False

    loop = Thread(target=run, args=(store, stubborn), kwargs={"stop": stop, "interval": 60.0})
    loop.start()
    deadline = time.monotonic() + 100
    while len(expire.given) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    loop.join()
    assert expire.given == ["d1", "d2"]
    assert set(turns.values()) == {1}, "one turn each, then the loop waits"


def test_the_loop_survives_a_broken_store(caplog: pytest.LogCaptureFixture) -> None:
    gone, stop = private_ledger(), Event()
    gone.close()
    worker = start(gone, lambda due: stop.is_set(), interval=0.001)
    deadline = time.monotonic() + 100
    while "background work waits" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    assert worker.threads[0].is_alive()
    worker.close()
    assert not worker.threads[0].is_alive()
    assert caplog.text.count("background work waits") == 1, "it goes on, but it is said once"


def test_a_started_worker_expires_and_ends(store: Ledger, clock: SetClock) -> None:
    expire = Expiring(store)
    worker = start(store, expire, interval=0.01)
    clock.instant = 500
    deadline = time.monotonic() + 100
    while len(expire.given) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    worker.close()
    assert not worker.threads[0].is_alive()
    assert expire.given == ["d1", "d2"]
