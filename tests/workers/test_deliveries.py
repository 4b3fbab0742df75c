"""A project whose targets are slow delays nobody else's events: with real receivers on loopback."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from tests.outward.conftest import Answer, Request, receiving

from moorage.domain.changes import Changeset, PutEvent, PutSubscription
from moorage.domain.events import DerivedEvent
from moorage.domain.period import SECOND
from moorage.domain.subscriptions import Subscription, SubscriptionFilter
from moorage.outward.subscriber import SubscriberClient
from moorage.testing.service import NINE, Service
from moorage.usecases.events.deliver import Delivery, DeliveryRound, deliver
from moorage.usecases.events.trim import record_passed
from moorage.workers.deliveries import BATCH, DeliveryQueue, run

SLOW = "slow"


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    yield found
    found.close()


def subscriptions(service: Service, project: str, url: str, count: int) -> None:
    """Subscriptions of a project, each to a path of its own."""
    service.store.commit(
        Changeset(
            tuple(
                PutSubscription(
                    Subscription(
                        id=f"{project}-{number}",
                        name=f"{project}-{number}",
                        project_id=project,
                        user_id="u",
                        url=f"{url}/{project}/{number}",
                        secret="whsec_MDEyMzQ1Njc4OWFiY2RlZg==",
                        wants=SubscriptionFilter(("lease.*",)),
                        created_at=NINE,
                        updated_at=NINE,
                    ),
                    None,
                )
                for number in range(count)
            )
        )
    )


def happen(service: Service, project: str, count: int = 1) -> None:
    for number in range(count):
        told = PutEvent(DerivedEvent("lease.active", project, f"{project} {number}", 0, {}))
        service.store.commit(Changeset((told,)))


@dataclass
class Targets:
    """Receivers of which those of some projects do not answer until they are let go."""

    slow: frozenset[str]
    go: threading.Event = field(default_factory=threading.Event)
    began: list[str] = field(default_factory=list)
    """The project of each request, as they came."""

    def answer(self, request: Request) -> Answer:
        project = request.path.split("/")[1]
        self.began.append(project)
        if project in self.slow:
            self.go.wait(60)
        return Answer(200)

    def until(self, good: Callable[[Counter[str]], bool]) -> Counter[str]:
        """Wait until the requests of each project are so many."""
        deadline = time.monotonic() + 30
        while not good(found := Counter(self.began)):
            assert time.monotonic() < deadline, found
            time.sleep(0.01)
        return found


@contextmanager
def delivering(
    service: Service, targets: Targets, places: int, share: int, replicas: int = 1
) -> Iterator[None]:
    """Workers that deliver; at the end nothing is under way."""

    @dataclass
    class Work:
        delivery: Delivery

        def deliver(self, one: Subscription) -> DeliveryRound:
            return deliver(service.env, self.delivery, one)

        passing = staticmethod(partial(record_passed, service.env))

    sender = SubscriberClient(60.0, public_only=False)
    work = Work(Delivery(sender, timeout=120 * SECOND, turn=60 * SECOND))
    queues = [DeliveryQueue(service.store, work, places, share) for _ in range(replicas)]
    stop = threading.Event()
    threads = [
        threading.Thread(target=run, args=(one,), kwargs={"stop": stop, "interval": 0.05})
        for one in queues
    ]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        targets.go.set()
        stop.set()
        for one in threads:
            one.join()
        while not all(one.idle() for one in queues):
            time.sleep(0.01)


def test_a_project_has_a_share_of_the_places(service: Service) -> None:
    targets = Targets(frozenset({SLOW}))
    with receiving(targets.answer) as receiver, delivering(service, targets, 4, 2):
        subscriptions(service, SLOW, receiver.url, 100)
        happen(service, SLOW)
        targets.until(lambda found: found[SLOW] == 2)
        subscriptions(service, "other", receiver.url, 3)
        happen(service, "other", 2)
        found = targets.until(lambda found: found["other"] == 6)
        assert found[SLOW] == 2, "as many as before, for ever"
        targets.go.set()
        targets.until(lambda found: found[SLOW] == 100)


def test_projects_with_the_fewest_under_way_come_first(service: Service) -> None:
    """Slow ones have all places: the first that is free is not theirs again."""
    slow = frozenset(f"slow{number}" for number in range(4))
    targets = Targets(slow)
    with receiving(targets.answer) as receiver, delivering(service, targets, 4, 2):
        for one in sorted(slow):
            subscriptions(service, one, receiver.url, 50)
            happen(service, one)
        targets.until(lambda found: sum(found.values()) == 4)
        subscriptions(service, "other", receiver.url, 1)
        happen(service, "other")
        targets.go.set()
        targets.until(lambda found: found["other"] == 1)
        assert len(targets.began) - 1 < 50, "not behind all of the others'"


def test_each_replica_has_its_share(service: Service) -> None:
    targets = Targets(frozenset({SLOW}))
    with receiving(targets.answer) as receiver, delivering(service, targets, 3, 1, replicas=2):
        subscriptions(service, SLOW, receiver.url, 20)
        happen(service, SLOW)
        targets.until(lambda found: found[SLOW] == 2)
        subscriptions(service, "other", receiver.url, 1)
        happen(service, "other")
        assert targets.until(lambda found: found["other"] == 1)[SLOW] == 2


def test_a_project_with_many_subscriptions_cuts_off_nobody(service: Service) -> None:
    subscriptions(service, SLOW, "http://127.0.0.1:9", BATCH + 20)
    happen(service, SLOW)
    service.clock.pass_by(SECOND)
    subscriptions(service, "other", "http://127.0.0.1:9", 3)
    happen(service, "other")
    due = service.store.event_log.due(BATCH)
    assert [one.project_id for one in due[:6]] == [SLOW, "other"] * 3
    assert len(due) == BATCH


def test_a_long_queue_of_one_subscription_gives_its_place_up(service: Service) -> None:
    """A target that answers, but takes its time, is served in turns."""
    passed: list[str] = []

    def send(_: object) -> str:
        passed.append("")
        time.sleep(0.02)
        return "answered 200"

    subscriptions(service, SLOW, "http://127.0.0.1:9", 1)
    happen(service, SLOW, 6)
    delivery = Delivery(send, turn=SECOND // 20)
    turns = []
    while due := service.store.event_log.due(1):
        turns.append(deliver(service.env, delivery, due[0]).delivered)
    assert sum(turns) == len(passed) == 6
    assert len(turns) > 1
    assert service.store.event_log.subscription(f"{SLOW}-0").delivered == 6


@pytest.mark.parametrize("places", [1, 3])
def test_a_share_may_be_larger_than_all_places(service: Service, places: int) -> None:
    targets = Targets(frozenset())
    with receiving(targets.answer) as receiver, delivering(service, targets, places, 8):
        subscriptions(service, "other", receiver.url, 5)
        happen(service, "other")
        targets.until(lambda found: found["other"] == 5)
