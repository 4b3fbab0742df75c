"""What must hold: while it goes on, by a watcher; and in the end, by counting."""

import time
from collections import Counter
from threading import Event

from tests.scenarios.soak.clients import MOVING, STEADY, Client

from moorage.domain.errors import Busy
from moorage.engine.state.snapshot import Snapshot
from moorage.store import Ledger

SLOWEST = 30.0
"""Seconds after which a client counts as starved."""

Stock = dict[str, tuple[int, int, int]]
"""Host -> used, capacity, and when the inventory was last written."""


class Watcher:
    """Looks at the ledger all the time: nobody may have made an overage worse."""

    def __init__(self, store: Ledger, *, killing: bool) -> None:
        self.wrong: list[str] = []
        self.looked = 0
        self._store, self._killing = store, killing

    def run(self, stop: Event) -> None:
        """Compare each look with the one before."""
        before: Stock = {}
        while not stop.is_set():
            try:
                now = _stock(self._store.snapshot())
            except Busy as error:
                if not self._killing:
                    self.wrong.append(f"the watcher was sent away: {error}")
                time.sleep(0.05)
                continue
            self.wrong += worsened(before, now)
            self.looked += 1
            before = now
            time.sleep(0.01)


def _stock(snapshot: Snapshot) -> Stock:
    columns = snapshot.classes["VCPU"]
    return {
        snapshot.uuids[row]: (
            int(columns.used[at]),
            int(columns.capacity[at]),
            int(columns.updated_at[at]),
        )
        for at, row in enumerate(columns.rows.tolist())
    }


def worsened(before: Stock, now: Stock) -> list[str]:
    """Hosts that are fuller than before and fuller than they may be, in one and the same stock.

    However many commits lie between: if none of them made an overage worse, all of them have not.
    """
    return [
        f"{host} went from {before[host][0]} to {used} of {capacity}"
        for host, (used, capacity, written) in now.items()
        if host in before
        and before[host][1:] == (capacity, written)
        and used > max(capacity, before[host][0])
    ]


def judge(store: Ledger, clients: list[Client]) -> list[str]:
    """What is not as it must be, once all is quiet."""
    booked: Counter[str] = Counter()
    wrong = []
    for client in clients:
        wrong += _judge_client(store, client, booked)
    wrong += _judge_hosts(store, clients, booked)
    wrong += _judge_service(clients)
    if _said(Ledger(store._backend, None)) != _said(store):
        wrong.append("a snapshot kept in step differs from a new one")
    return wrong


def _judge_client(store: Ledger, client: Client, booked: Counter[str]) -> list[str]:
    """Everything acknowledged stands, at the generation that was told; adds up what stands."""
    wrong = []
    for name in list(client.doubtful):
        client.settle(name)
    for name, held in client.stands.items():
        found = store.consumer(name)
        stored = {one.provider: one.amounts["VCPU"] for one in found[1]} if found else {}
        booked.update(stored)
        generation = found[0].generation if found else None
        if (stored, generation) != (held, client.generation.get(name)):
            wrong.append(
                f"{name} has {stored} at {generation}, acknowledged was {held}"
                f" at {client.generation.get(name)}"
            )
    return wrong


def _judge_service(clients: list[Client]) -> list[str]:
    """Nobody waited too long, nobody got much less than the others.

    A short run says nothing of that: who asks for a decision again pauses for a second.
    """
    wrong = [
        f"client {one.number} waited {max(one.waits):.1f} s"
        for one in clients
        if max(one.waits, default=0.0) > SLOWEST
    ]
    served = sorted(len(one.waits) for one in clients)
    usual = served[len(served) // 2]
    if usual >= 1_000 and served[0] * 4 < usual:
        wrong.append(f"a client got {served[0]} answers where others got {usual}")
    return wrong


def _judge_hosts(store: Ledger, clients: list[Client], booked: Counter[str]) -> list[str]:
    """Use is the sum of allocations; where nobody shrinks, within capacity, and counted exactly."""
    wrong = []
    snapshot = store.snapshot()
    stock = _stock(snapshot)
    for host in STEADY + MOVING:
        used, capacity, _ = stock[host]
        if used != booked[host]:
            wrong.append(f"{host} is used {used}, allocations say {booked[host]}")
        if host in STEADY and used > capacity:
            wrong.append(f"{host} is over its capacity")
        generation = snapshot.generation[snapshot.row(host)]
        expected = 1 + sum(client.moved[host] for client in clients)
        if host in STEADY and generation != expected:
            wrong.append(f"{host} is at {generation}, counted were {expected}")
    return wrong


def _said(store: Ledger) -> dict[str, tuple[int, int]]:
    """What a snapshot says of every provider."""
    snapshot = store.snapshot()
    return {
        one: (int(snapshot.generation[row]), int(snapshot.revisions[row]))
        for one, row in snapshot.row_of.items()
    }
