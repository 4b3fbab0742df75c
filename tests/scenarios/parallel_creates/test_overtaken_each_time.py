"""A rival who is quicker every time: a decision comes to an end all the same."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from tests.scenarios.parallel_creates.test_contention import Uuids
from tests.store.hosts import host, opened

from moorage.domain.changes import (
    Changeset,
    Committed,
    DeleteAllocations,
    PutBookings,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Busy, CapacityExceeded, Infeasible
from moorage.domain.explain import Explanation
from moorage.domain.period import Duration
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.service_environment import with_strategies
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.store import Ledger
from moorage.testing.service import TENANT
from moorage.usecases.decide.attempt import MOMENT
from moorage.usecases.decide.loop import ALONE_MEMBERS, TURN
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits

HOSTS = tuple(str(UUID(int=number + 1)) for number in range(6))
ROOM = 4
BODY = {
    "name": "shop",
    "members": [{"name": "web", "count": 3, "resources": {"VCPU": ROOM}}],
    "policies": [{"name": "apart", "type": "anti-affinity", "members": ["web"]}],
}


@pytest.fixture
def store(database_url: str) -> Iterator[Ledger]:
    with opened(database_url) as one:
        for name in HOSTS:
            host(one, name, ROOM)
        yield one


@dataclass
class Rival:
    """The ledger; before each commit of a decision somebody takes the very hosts it chose.

    What that one had before is given back, so there is always room for the decision.
    """

    store: Ledger
    tries: int = 10_000
    """How often."""
    everything: bool = False
    """Whether, in the end, all hosts are taken and kept."""
    late: list[BaseException | None] = field(default_factory=list)
    """What became of tries while the decision was alone."""
    had: list[str] = field(default_factory=list)
    names: Iterator[int] = field(default_factory=lambda: count(1 << 64))

    def commit(self, changeset: Changeset) -> Committed:
        if self.tries and any(isinstance(one, PutBookings) for one in changeset.changes):
            self.tries -= 1
            self.take(changeset)
        return self.store.commit(changeset)

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        if self.everything:
            self.give_back()
            self.book(HOSTS)
        rivals: list[Thread] = []

        def proposed() -> Changeset | None:
            changeset = propose()
            if changeset is not None:
                rivals.append(Thread(target=self.take_late, args=(changeset,)))
                rivals[-1].start()
                time.sleep(0.2)
            return changeset

        try:
            return self.store.commit_alone(proposed)
        finally:
            for one in rivals:
                one.join(60)

    def take(self, changeset: Changeset) -> None:
        self.give_back()
        kept = [one for one in changeset.changes if isinstance(one, PutBookings)]
        self.book({booking.provider for one in kept for booking in one.bookings})

    def take_late(self, changeset: Changeset) -> None:
        try:
            self.take(changeset)
        except CapacityExceeded as error:
            self.late.append(error)
        else:
            self.late.append(None)

    def give_back(self) -> None:
        if self.had:
            self.store.commit(Changeset(tuple(map(DeleteAllocations, self.had))))
            self.had.clear()

    def book(self, hosts: Any) -> None:
        taken = []
        for name in sorted(hosts):
            consumer = Consumer(str(UUID(int=next(self.names))), "other", "u", "INSTANCE")
            taken.append(ReplaceAllocations(consumer, {name: {"VCPU": ROOM}}, None))
        self.store.commit(Changeset(tuple(taken)))
        self.had += [one.consumer.uuid for one in taken]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@dataclass
class Leisurely:
    """The real solver, that knows nothing where it has but a moment."""

    solver: Portfolio
    asked: list[Duration] = field(default_factory=list)

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.asked.append(time_limit)
        if time_limit <= MOMENT:
            return Outcome(Verdict.UNKNOWN, "leisurely")
        return self.solver.solve(problem, time_limit=time_limit, seed=seed)


def environment_of(rival: Rival, limits: Limits | None = None) -> UseCaseEnvironment:
    solver = Portfolio(CpSat())
    return with_strategies(
        Environment(rival, solver, Uuids(), limits or Limits(), time.monotonic, time.sleep)
    )


def decide(env: UseCaseEnvironment) -> set[str]:
    naming = RequestIdentity(env.ids.uuid())
    wanted = read_ensemble({**BODY, "name": naming.id})
    made = create_ensemble(env, TENANT, wanted, DecisionOptions(), naming)
    assert made.decision is not None
    return {place.host for place in made.decision.places.values()}


@pytest.mark.parametrize("attempts", [25, 1], ids=["often", "once"])
def test_a_decision_that_is_overtaken_each_time_comes_to_an_end(
    store: Ledger, attempts: int
) -> None:
    rival = Rival(store)
    before = rival.tries
    hosts = decide(environment_of(rival, Limits(attempts=attempts)))
    assert len(hosts) == 3
    assert before - rival.tries == min(attempts, TURN - 1), "then it was alone"
    assert [type(one) for one in rival.late] == [CapacityExceeded], "for once the rival was late"
    kept = [booking.provider for _, booking in store.bookings() if booking.decision is not None]
    assert set(kept) == hosts


def test_what_takes_longer_than_a_moment_is_tried_beside_others_again(store: Ledger) -> None:
    rival = Rival(store, tries=TURN - 1)
    solver = Leisurely(Portfolio(CpSat()))
    assert len(decide(replace(environment_of(rival), solver=solver))) == 3
    assert MOMENT in solver.asked
    assert solver.asked[-1] > MOMENT
    assert rival.late == [], "alone nothing came of it"


def test_that_there_is_no_room_is_told_with_the_reasons(store: Ledger) -> None:
    """While it is alone nobody waits for the reasons: they are found afterwards."""
    rival = Rival(store, everything=True)
    with pytest.raises(Infeasible) as told:
        decide(environment_of(rival))
    explanation = told.value.explanation
    assert isinstance(explanation, Explanation)
    assert store.explanation(explanation.id)[0].explanation == explanation
    assert store.ensembles(project_id=None) == []
    store.commit(Changeset((DeleteAllocations(rival.had.pop()),)))


@dataclass
class TakesOne(Rival):
    """Takes one of the hosts that the decision chose, whole, and no other one."""

    room: int = 0

    def book(self, hosts: Any) -> None:
        consumer = Consumer(str(UUID(int=next(self.names))), "other", "u", "INSTANCE")
        taken = ReplaceAllocations(consumer, {min(hosts): {"VCPU": self.room}}, None)
        self.store.commit(Changeset((taken,)))
        self.had.append(consumer.uuid)

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        raise AssertionError("all writers wait for a large decision")


@pytest.mark.parametrize("attempts", [6, 1], ids=["often", "once"])
def test_a_large_decision_never_makes_all_writers_wait(store: Ledger, attempts: int) -> None:
    """However often it is overtaken; then the client is told to come again (ADR-0026)."""
    room, members = 600, ALONE_MEMBERS + 1
    for name in ("big-0", "big-1", "big-2"):
        host(store, name, room)
    env = environment_of(TakesOne(store, room=room), Limits(attempts=attempts))
    role = {"name": "web", "count": members, "resources": {"VCPU": 1}}
    naming = RequestIdentity(env.ids.uuid())
    wanted = read_ensemble({"name": naming.id, "members": [role]})
    with pytest.raises(Busy, match=r"gave up after \d+ conflicting commits"):
        create_ensemble(env, TENANT, wanted, DecisionOptions(), naming)
    kept = [booking for _, booking in store.bookings() if booking.decision is not None]
    assert kept == []
