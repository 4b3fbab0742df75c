"""kill -9 of the real service while a lease's effects are due: each happens, none is lost.

The service's clock is a file that the test sets. At each edge of the lease every process of the
service is killed at a seeded moment after the edge has come, and started again; a receiver counts
what it hears by Idempotency-Key, and a hook ends servers as Nova does. `MOORAGE_CRASH_SEED`
repeats a run, `MOORAGE_LEASE_KILLS` says how often each edge is hit.
"""

import os
import random
import time
import uuid
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.outward.conftest import Answer, receiving
from tests.scenarios.kills import SEED, SERVICE, Kills, stock, wait_for
from tests.servers.replica import Replica

from moorage.domain.bookings import BookingState
from moorage.domain.effects import TIMERS, Effect, EffectKind, EffectState
from moorage.domain.leases import Lease, LeaseState
from moorage.domain.period import HOUR, MINUTE, Instant, format_instant
from moorage.store import Ledger, open_store
from moorage.store.settable_clock import SettableClock, create
from moorage.testing.service import NINE

KILLS = int(os.environ.get("MOORAGE_LEASE_KILLS", "1"))
"""At each edge."""
SERVERS = 2
HOST = "00000000-0000-4000-8000-000000000001"
ACTIONS = {
    "on_start": ["notify", "notify:PT1H"],
    "before_end": ["notify:PT30M"],
    "on_end": ["notify"],
}


def described(start: Instant) -> dict[str, object]:
    """Two servers for a day, with an hour before and an hour after."""
    return {
        "name": "night",
        "start": format_instant(start),
        "duration": "PT24H",
        "lead": "PT1H",
        "cleaning": "PT1H",
        "amount": {"count": SERVERS, "resources": {"VCPU": 1}},
        **ACTIONS,
    }


def ending(folder: Path) -> Path:
    """A hook that deletes a server's allocations over HTTP, wherever the service is now."""
    hook = folder / "end-server"
    hook.write_text(
        f"""#!/bin/sh
server=$(sed -n 's/.*"server": *"\\([^"]*\\)".*/\\1/p')
exec curl -s -X DELETE -H 'X-Auth-Token: admin' \\
    "http://127.0.0.1:$(cat {folder}/port)/placement/allocations/$server"
"""
    )
    hook.chmod(0o755)
    return hook


def edges(lease: Lease) -> list[Instant]:
    """Every instant at which something is due."""
    terms = lease.terms
    start, end = terms.period.start, terms.period.end
    return sorted({start - HOUR, start, end - 30 * MINUTE, end, end + HOUR})


def all_effects(store: Ledger, lease: Lease, servers: list[str]) -> list[Effect]:
    """Of the lease, and of its servers."""
    return [effect for one in (lease.id, *servers) for effect in store.effects(one)]


def done(store: Ledger, clock: SettableClock, lease: Lease, servers: list[str]) -> bool:
    """Whether all is done that is due; lets time go by for what a killed worker has taken on."""
    now = clock.now()
    left = [
        one.not_before
        for one in all_effects(store, lease, servers)
        if one.state is EffectState.PENDING and one.due <= now
    ]
    if left and min(left) > now:
        clock.set(min(left))
    return not left


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(300 + 60 * KILLS)
def test_each_effect_of_a_lease_outlives_the_service(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    url, hand = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "clock"
    create(hand, NINE)
    clock = SettableClock(hand)
    store = open_store(url, clock=clock)
    stock(store, SERVERS, [HOST])
    kills = Kills(None)
    with receiving(lambda _: Answer()) as receiver:
        options = ["--clock-file", str(hand), "--webhook", receiver.url]
        options += ["--end-servers", "hook", "--hook", str(ending(tmp_path))]
        service = Replica(tmp_path, url, *options)

        def tell_port() -> None:
            (tmp_path / "port").write_text(str(service.port))

        try:
            service.start()
            service.up()
            tell_port()
            made = service.call("POST", "/v1/leases", {"lease": described(NINE + 5 * HOUR)})
            lease = store.lease(made["lease"]["id"])
            generations = [lease.generation]
            servers: list[str] = []
            for edge in edges(lease):
                clock.set(edge)
                for _ in range(KILLS):
                    time.sleep(dice.uniform(0, 1.5))
                    kills.kill_and_start(SERVICE, service)
                    tell_port()
                wait_for(partial(done, store, clock, lease, servers), service)
                generations.append(store.lease(lease.id).generation)
                if store.lease(lease.id).state is LeaseState.ACTIVE and not servers:
                    servers = [drawn(service, lease, dice, store) for _ in range(SERVERS)]
                    generations.append(store.lease(lease.id).generation)
        finally:
            service.down()
    check_effects(store, lease, servers)
    heard = Counter(one.headers["idempotency-key"] for one in receiver.requests)
    check_heard(store, lease, heard)
    # One step of the lease is one generation: prepared, active, ending, closed.
    assert store.lease(lease.id).state is LeaseState.CLOSED
    assert generations[-1] - generations[0] == 4, generations
    assert [one.state for _, one in store.bookings()] == []
    store.close()


def drawn(service: Replica, lease: Lease, dice: random.Random, store: Ledger) -> str:
    """A server in the lease: claimed, built, active."""
    server = str(uuid.UUID(int=dice.getrandbits(128), version=4))
    taken = {one.consumer for _, one in store.bookings() if one.state is not BookingState.RESERVED}
    member = f"server[{len(taken)}]"
    decision = store.lease(lease.id).decision_id
    asked = {"claim": {"member": member, "server": {"resources": {"VCPU": 1}}}}
    claim = service.call("POST", f"/v1/decisions/{decision}/claims", asked)["claim"]
    told = {"claim": {"status": "active", "server_id": server}}
    service.call("PATCH", f"/v1/claims/{claim['id']}", told)
    return server


def check_effects(store: Ledger, lease: Lease, servers: list[str]) -> None:
    """Each is done, and each step of the lease was taken once."""
    found = all_effects(store, lease, servers)
    assert {one.state for one in found} == {EffectState.DONE}
    kinds = Counter(one.kind for one in found)
    once = {kind: count for kind, count in kinds.items() if kind in TIMERS}
    assert once == {
        EffectKind.PREPARE: 1,
        EffectKind.ACTIVATE: 1,
        EffectKind.END: 1,
        EffectKind.CLOSE: 1,
        EffectKind.ACT: 2,
    }
    assert (kinds[EffectKind.NOTIFY], kinds[EffectKind.DELETE]) == (4, SERVERS)
    assert {store.consumer(one) for one in servers} == {None}


def check_heard(store: Ledger, lease: Lease, heard: Counter[str]) -> None:
    """Whoever is told has heard each notice at least once, and nothing else."""
    notices = {one.id for one in store.effects(lease.id) if one.kind is EffectKind.NOTIFY}
    assert heard.keys() == notices
