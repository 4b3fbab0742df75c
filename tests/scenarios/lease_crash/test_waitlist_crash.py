"""kill -9 of the real service while it grants from the waitlist, beside another that goes on.

Two replicas on PostgreSQL, and on SQLite one that is started again. Whatever the moment, each entry
is granted once, with its lease or not at all, and in the order of the list.
"""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import pytest
from tests.servers.replica import MEMBER, Replica

from moorage.domain.changes import Changeset, CreateProvider, PutInventories
from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY, format_instant
from moorage.domain.providers import Inventory
from moorage.domain.waitlist import EntryState
from moorage.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from moorage.store import Ledger

SEED = int(os.environ.get("MOORAGE_CRASH_SEED", "20261121"))
HOSTS, WAITING = 3, 5
DEADLINE = 60


def asked(start: str, count: int, name: str, **more: object) -> dict[str, object]:
    amount = {"count": count, "resources": {"VCPU": 8}}
    return {"lease": {"name": name, "amount": amount, "start": start, "duration": "PT4H"} | more}


def fill(store: Ledger) -> None:
    for number in range(HOSTS):
        uuid = f"00000000-0000-4000-8000-{number:012}"
        stock = PutInventories(uuid, (Inventory("VCPU", 8),), None)
        store.commit(Changeset((CreateProvider(uuid, f"h{number}"), stock)))


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_each_is_granted_once_and_in_order(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    dice = random.Random(SEED)
    sqlite = kind == "sqlite"
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    if not sqlite:
        url = str(request.getfixturevalue(f"{kind}_url"))
    store = open_store(url)
    fill(store)
    start = format_instant(store.now() + 30 * DAY)
    services = []
    for number in range(1 if sqlite else 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        services.append(Replica(folder, url))
    victim, survivor = services[0], services[-1]
    try:
        for one in services:
            one.start()
        for one in services:
            one.up()
        first = survivor.call("POST", "/v1/leases", asked(start, HOSTS, "first"))["lease"]
        entries = []
        for number in range(WAITING):
            status, told = survivor.ask(
                "POST", "/v1/leases", asked(start, 1, f"w{number}", wait={})
            )
            assert status == 202, told
            entries.append(told["entry"]["id"])
        any_ = {**MEMBER, "If-Match": "*"}
        assert survivor.ask("DELETE", f"/v1/leases/{first['id']}", None, any_)[0] == 204
        time.sleep(dice.uniform(0.1, 1.2))
        victim.kill_everything()
        victim.down()
        if sqlite:
            victim.start()
            victim.up()
        deadline = time.monotonic() + DEADLINE
        while store.waitlist_counts().get(EntryState.GRANTED, 0) < HOSTS:
            assert time.monotonic() < deadline, survivor.log()
            time.sleep(0.05)
    finally:
        for one in services:
            one.down()
    states = [store.waitlist_entry(one).state for one in entries]
    assert states == [EntryState.GRANTED] * HOSTS + [EntryState.WAITING] * (WAITING - HOSTS)
    granted = [one.id for one in store.leases(project_id=None) if one.state is LeaseState.PENDING]
    assert sorted(granted) == sorted(entries[:HOSTS])
    assert len(store.bookings()) == HOSTS
    store.close()
