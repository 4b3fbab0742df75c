"""Decisions while unrelated placements commit all the time on the very same hosts."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event
from types import MappingProxyType
from uuid import UUID

import pytest
from tests.store.hosts import host, opened

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.service_environment import with_strategies
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.store import Ledger
from moorage.testing.service import TENANT
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits

HOSTS = tuple(str(UUID(int=number + 1)) for number in range(6))
WRITERS, DECISIONS = 6, 24
BODY = {
    "name": "shop",
    "members": [{"name": "web", "count": 3, "resources": {"VCPU": 1}}],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["web"]}],
}


class Uuids:
    """Different ones for every thread's sake."""

    def __init__(self) -> None:
        self._dice = Random(20261121)

    def uuid(self) -> str:
        return str(UUID(int=self._dice.getrandbits(128), version=4))

    def salt(self) -> str:
        return self.uuid()


@pytest.fixture
def store(database_url: str) -> Iterator[Ledger]:
    with opened(database_url) as one:
        for name in HOSTS:
            host(one, name)
        yield one


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
def test_no_decision_is_sent_away_while_others_place_on_its_hosts(store: Ledger) -> None:
    env = with_strategies(
        Environment(store, Portfolio(CpSat()), Uuids(), Limits(), time.monotonic, time.sleep)
    )
    stop = Event()

    def write(number: int) -> int:
        dice, generation, written = Random(number), None, 0
        server = Consumer(str(UUID(int=number + 1 << 64)), "other", "u", "INSTANCE")
        while not stop.is_set():
            chosen = dice.choice(HOSTS)
            amounts = MappingProxyType({chosen: MappingProxyType({"VCPU": 1})})
            change = ReplaceAllocations(server, amounts, generation)
            generation = store.commit(Changeset((change,))).consumer_generations[server.uuid]
            written += 1
        return written

    def decide(number: int) -> None:
        wanted = read_ensemble({**BODY, "name": f"e{number}"})
        made = create_ensemble(
            env, TENANT, wanted, DecisionOptions(), RequestIdentity(env.ids.uuid())
        )
        assert made.decision is not None
        assert len({place.host for place in made.decision.places.values()}) == 3
        delete_ensemble(env, TENANT, made.ensemble.id, made.ensemble.generation)

    with ThreadPoolExecutor(WRITERS) as writers, ThreadPoolExecutor(3) as deciders:
        writing = [writers.submit(write, number) for number in range(WRITERS)]
        try:
            list(deciders.map(decide, range(DECISIONS)))
        finally:
            stop.set()
        assert sum(one.result() for one in writing) > DECISIONS, "they met no one"
    left = [one for _, one in store.bookings() if one.decision is not None]
    assert left == []
