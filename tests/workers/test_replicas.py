"""The expiry loop in several replicas at once: each item is expired by exactly one of them."""

import time
from collections import Counter
from dataclasses import replace
from functools import partial
from threading import Event, Lock, Thread

from moorage.domain.changes import Changeset, PutDecision
from moorage.domain.decisions import Claim, Decision, DecisionState, Solve
from moorage.domain.errors import ConcurrentUpdate
from moorage.domain.period import Period
from moorage.domain.requests import Objective
from moorage.store import Ledger, open_store
from moorage.workers.expiry import run

ITEMS, REPLICAS = 60, 3


def held(number: int) -> Decision:
    return Decision(
        id=f"d{number}",
        ensemble_id="e",
        project_id="p",
        ensemble_generation=0,
        state=DecisionState.HELD,
        period=Period(0),
        expires_at=1,
        hold=10,
        objective=Objective.SPREAD,
        solve=Solve("greedy", 0, 0, proven=True, wall_ms=1.0, seed=0),
        places={},
        policies=(),
        revision=0,
    )


def test_one_replica_expires_an_item(database_url: str) -> None:
    stores = [open_store(database_url) for _ in range(REPLICAS)]
    stores[0].commit(Changeset(tuple(PutDecision(held(one), None) for one in range(ITEMS))))
    done: Counter[str] = Counter()
    counting, stop = Lock(), Event()

    def expire(store: Ledger, due: Decision | Claim) -> None:
        assert isinstance(due, Decision)
        expired = replace(due, state=DecisionState.EXPIRED)
        try:
            store.commit(Changeset((PutDecision(expired, due.generation),)))
        except ConcurrentUpdate:
            return  # another one was faster
        with counting:
            done[due.id] += 1

    loops = [
        Thread(
            target=run, args=(one, partial(expire, one)), kwargs={"stop": stop, "interval": 0.01}
        )
        for one in stores
    ]
    for loop in loops:
        loop.start()
    deadline = time.monotonic() + 100
    while stores[0].due(1) and time.monotonic() < deadline:
        time.sleep(0.02)
    stop.set()
    for loop in loops:
        loop.join()
    assert done == Counter({f"d{one}": 1 for one in range(ITEMS)})
    found = [stores[0].decision(f"d{one}") for one in range(ITEMS)]
    assert {(one.state, one.generation) for one in found} == {(DecisionState.EXPIRED, 1)}
    for store in stores:
        store.close()
