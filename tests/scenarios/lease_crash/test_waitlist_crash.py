"""kill -9 of the real service while it grants from the waitlist, beside another that goes on.

Two replicas on PostgreSQL, and on SQLite one that is started again. Whatever the moment, each entry
is granted once, with its lease or not at all, and in the order of the list.
"""

import random
import time
from pathlib import Path

import pytest
from tests.scenarios.kills import SEED, SERVICE, Kills, services, stock, wait_for
from tests.servers.replica import MEMBER

from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY, format_instant
from moorage.domain.waitlist import EntryState
from moorage.store import open_store

HOSTS, WAITING = 3, 5


def asked(start: str, count: int, name: str, **more: object) -> dict[str, object]:
    amount = {"count": count, "resources": {"VCPU": 8}}
    return {"lease": {"name": name, "amount": amount, "start": start, "duration": "PT4H"} | more}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "database_url", [pytest.param("sqlite", marks=pytest.mark.nightly), "postgres"], indirect=True
)
def test_each_is_granted_once_and_in_order(tmp_path: Path, database_url: str) -> None:
    dice, url = random.Random(SEED), database_url
    sqlite = url.startswith("sqlite")
    store = open_store(url)
    stock(store, 8, [f"00000000-0000-4000-8000-{number:012}" for number in range(HOSTS)])
    start = format_instant(store.now() + 30 * DAY)
    with services(tmp_path, [url], 1 if sqlite else 2) as served:
        victim, survivor = served[0], served[-1]
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
        if sqlite:
            Kills(None).kill_and_start(SERVICE, victim)
        else:
            victim.kill_everything()
        wait_for(lambda: store.waitlist_counts().get(EntryState.GRANTED, 0) >= HOSTS, survivor)
    states = [store.waitlist_entry(one).state for one in entries]
    assert states == [EntryState.GRANTED] * HOSTS + [EntryState.WAITING] * (WAITING - HOSTS)
    granted = [one.id for one in store.leases(project_id=None) if one.state is LeaseState.PENDING]
    assert sorted(granted) == sorted(entries[:HOSTS])
    assert len(store.bookings()) == HOSTS
    store.close()
