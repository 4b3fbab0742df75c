"""A decision that takes long tells of its search in the event feed, and is not disturbed by it."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pytest

from moorage.domain import search_progress
from moorage.domain.actors import Actor
from moorage.domain.changes import Changeset, Committed, PutEvent
from moorage.domain.errors import Busy
from moorage.domain.events import Event
from moorage.domain.idempotency import record_id
from moorage.domain.subscriptions import Subscription, SubscriptionFilter
from moorage.engine.joint.problem import Outcome, Problem
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.service import OTHER, Service

KEY = "7f1c9a52-5a1e-4c55-9b7a-2f4f4b1f6f01"
ID = record_id(KEY, "project-a")
MEMBERS = [{"name": "web", "count": 3, "flavor": "m1.small"}]


class Hand:
    """A stopwatch that somebody sets."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Slow:
    """A solver that finds out more and more while time passes."""

    stopwatch: Hand
    course: list[tuple[float, int | None, int]] = field(default_factory=list)
    """Seconds since the last report, value and bound."""
    solved: int = 0

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        """See `Solver`."""
        self.solved += 1
        for seconds, value, bound in self.course:
            self.stopwatch.seconds += seconds
            search_progress.report("cpsat", value, bound)
            written()
        with search_progress.listening(None):
            return Portfolio(CpSat()).solve(problem, time_limit=time_limit, seed=seed)


def written() -> None:
    """Wait until no event is being written."""
    for one in threading.enumerate():
        if one.name == "decision progress":
            one.join(30)


@pytest.fixture
def slow(service: Service) -> Iterator[Slow]:
    made = Slow(Hand())
    service.env = replace(service.env, stopwatch=made.stopwatch, solver=made)
    yield made
    written()


def decided(service: Service, query: str = "", **decide: Any) -> Any:
    body = {"id": KEY, "name": "shop", "members": MEMBERS}
    decide = {"time_limit": "PT10S", **decide}
    answer = service.call("POST", f"/ensembles{query}", {"ensemble": body | {"decide": decide}})
    assert answer.status_code in {200, 201}, answer.text
    return answer.json


def told(service: Service, **caller: Any) -> list[Any]:
    found = service.call("GET", "/events?type=decision.progress", **caller)
    return list(found.json["events"])


def test_a_long_search_tells_its_best_cost_and_bound(service: Service, slow: Slow) -> None:
    slow.course = [(1.5, None, 9), (2.0, 12, 9)]
    decided(service)
    first, second = told(service)
    assert (first["subject"], first["project_id"]) == (ID, "project-a")
    assert first["body"] == {
        "solver": "cpsat",
        "value": None,
        "bound": 9,
        "gap": None,
        "elapsed_ms": 1500,
        "time_limit_ms": 10_000,
        "name": "shop",
        "lease": None,
    }
    assert second["body"] == first["body"] | {"value": 12, "gap": 0.25, "elapsed_ms": 3500}
    assert told(service, caller=OTHER) == []


def test_nothing_is_told_of_the_first_second(service: Service, slow: Slow) -> None:
    slow.course = [(0.5, None, 9), (0.4, 12, 9)]
    decided(service)
    assert told(service) == []


def test_there_is_one_event_a_second_at_most_and_none_without_news(
    service: Service, slow: Slow
) -> None:
    slow.course = [(1.0, 20, 9), (0.9, 19, 9), (0.2, 18, 9), (1.5, 18, 9), (0.1, 17, 9)]
    decided(service)
    assert [one["body"]["value"] for one in told(service)] == [20, 18, 17]


def test_a_dry_run_writes_nothing(service: Service, slow: Slow) -> None:
    slow.course = [(1.5, None, 9), (1.5, 12, 9)]
    before = service.store.snapshot().revision
    decided(service, "?dry_run=true")
    assert told(service) == []
    assert service.store.snapshot().revision == before


def test_an_event_overtakes_no_decision(service: Service, slow: Slow) -> None:
    """What is written in the middle of a search costs no further search."""
    slow.course = [(1.5, 13, 9), (1.5, 12, 9)]
    decided(service)
    assert len(told(service)) == 2
    assert slow.solved == 1


class Unwilling:
    """A ledger that takes no event about progress."""

    def __init__(self, store: Any, problem: Callable[[], Exception]) -> None:
        self._store, self._problem = store, problem
        self.refused = 0

    def by(self, actor: Actor) -> Self:
        """This one, whoever acts."""
        del actor
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, changeset: Changeset) -> Committed:
        """See `Store`."""
        if any(isinstance(one, PutEvent) for one in changeset.changes):
            self.refused += 1
            raise self._problem()
        done: Committed = self._store.commit(changeset)
        return done


@pytest.mark.parametrize("problem", [lambda: Busy("too many writers"), lambda: OSError("no disk")])
def test_a_ledger_that_takes_no_event_disturbs_no_decision(
    service: Service, slow: Slow, problem: Callable[[], Exception], caplog: pytest.LogCaptureFixture
) -> None:
    store = Unwilling(service.store, problem)
    service.env = replace(service.env, store=store)
    slow.course = [(1.5, 13, 9), (1.5, 12, 9)]
    assert decided(service)["decision"]["status"] == "held"
    assert (store.refused, slow.solved) == (2, 1)
    assert f"no event about a search for {ID}" in caplog.text


def test_only_a_subscription_that_names_it_is_told() -> None:
    event = Event("e", "decision.progress", "project-a", ID, 0, 0, 1, {"lease": None})
    for types, means in (
        (("*",), False),
        (("decision.*",), False),
        (("decision.held",), False),
        (("decision.progress",), True),
        (("decision.*", "decision.progress"), True),
    ):
        wants = SubscriptionFilter(types, ensemble=ID)
        one = Subscription("s", "project-a", "ann", "mine", wants, "http://x", "secret")
        assert one.means(event) is means, types
