"""Two replicas whose machines disagree about the time: the database's clock judges."""

import time
from pathlib import Path

import pytest
from tests.servers.replica import Replica

from moorage.domain.changes import Changeset, CreateProvider, PutInventories
from moorage.domain.effects import EffectState
from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY, MINUTE, SECOND, Instant, format_instant, parse_instant
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store

HOST = "00000000-0000-4000-8000-000000000001"
SKEWED = """
import os, time
skew = int(os.environ["SKEW_SECONDS"])
real, real_ns = time.time, time.time_ns
time.time = lambda: real() + skew
time.time_ns = lambda: real_ns() + skew * 1_000_000_000
"""
"""Python reads it when it starts, in each process of a replica."""
LATE = 60 * SECOND
"""How much later than due something may be done on a busy machine; less than the clocks differ."""


def wait_for_state(store: Ledger, lease: str, state: LeaseState) -> None:
    deadline = time.monotonic() + 100
    while store.lease(lease).state is not state:
        assert time.monotonic() < deadline, store.lease(lease)
        time.sleep(0.1)


def lease_of(replica: Replica, start: Instant, seconds: int) -> str:
    wanted = {
        "name": "short",
        "start": format_instant(start),
        "end": format_instant(start + seconds * SECOND),
        "amount": {"count": 1, "resources": {"VCPU": 1}},
    }
    made = replica.call("POST", "/v1/leases", {"lease": wanted})
    return str(made["lease"]["id"])


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.process
def test_the_databases_clock_judges(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SKEWED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    store = open_store(postgres_url)
    stock = PutInventories(HOST, (Inventory("VCPU", 1),), None)
    store.commit(Changeset((CreateProvider(HOST, "h"), stock)))
    replicas = []
    try:
        for name, skew in (("ahead", 7 * 60), ("behind", -7 * 60)):
            (tmp_path / name).mkdir()
            monkeypatch.setenv("SKEW_SECONDS", str(skew))
            replicas.append(Replica(tmp_path / name, postgres_url, "--planners", "1"))
            replicas[-1].start()
        for one in replicas:
            one.up()
        ahead, behind = replicas
        for days, one in enumerate(replicas, start=1):
            lease_of(one, store.now() + days * DAY, 60)  # a first request takes longer
        start = store.now() + 12 * SECOND
        first = lease_of(behind, start, 6)
        # One that touches is granted by the other, one that overlaps by a second is not.
        second = lease_of(ahead, start + 6 * SECOND, 60)
        status, _ = ahead.ask("POST", "/v1/leases", {"lease": overlapping(start + 5 * SECOND)})
        assert status == 409
        wait_for_state(store, first, LeaseState.CLOSED)
        wait_for_state(store, second, LeaseState.ACTIVE)
        for lease in (first, second):
            for effect in store.effects(lease):
                if effect.state is EffectState.DONE:
                    assert effect.due <= effect.updated_at <= effect.due + LATE, effect
        shown = [one.call("GET", f"/v1/leases/{second}")["lease"] for one in replicas]
        assert shown[0] == shown[1]
        told = [one.call("GET", "/v1/leases")["computed_at"] for one in replicas]
        assert all(abs(parse_instant(one) - store.now()) < MINUTE for one in told)
    finally:
        for one in replicas:
            one.down()
        store.close()


def overlapping(start: Instant) -> dict[str, object]:
    return {
        "name": "overlapping",
        "start": format_instant(start),
        "end": format_instant(start + 2 * SECOND),
        "amount": {"count": 1, "resources": {"VCPU": 1}},
    }
