"""The order of searches: one at a time, projects in turn, and never longer than a turn."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event, Lock

import pytest

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.testing.problems import story_a
from moorage.usecases.decide.search_queue import SearchQueue, SolverBetweenTurns


def waiting(queue: SearchQueue) -> int:
    return sum(len(mine) for mine in queue._waiting.values())


def until_waiting(queue: SearchQueue, count: int) -> None:
    ends = time.monotonic() + 10
    while waiting(queue) < count:
        assert time.monotonic() < ends
        time.sleep(0.001)


def test_one_search_at_a_time() -> None:
    queue, at_once, most, guard = SearchQueue(time.monotonic, longest=30), 0, 0, Lock()

    def search(number: int) -> None:
        nonlocal at_once, most
        with queue.turn(f"project-{number % 3}"):
            with guard:
                at_once += 1
                most = max(most, at_once)
            time.sleep(0.001)
            with guard:
                at_once -= 1

    with ThreadPoolExecutor(8) as crew:
        list(crew.map(search, range(40)))
    assert most == 1
    assert queue._searching is None
    assert waiting(queue) == 0


def test_a_project_with_many_requests_does_not_go_before_others() -> None:
    queue, order = SearchQueue(time.monotonic, longest=30), []

    def search(project: str) -> None:
        with queue.turn(project):
            order.append(project)

    with ThreadPoolExecutor(8) as crew, queue.turn("first"):
        for number, project in enumerate(("busy", "busy", "busy", "busy", "rare")):
            crew.submit(search, project)
            until_waiting(queue, number + 1)
    assert order == ["busy", "rare", "busy", "busy", "busy"]


def test_a_long_search_delays_others_by_one_turn_only() -> None:
    queue, done = SearchQueue(time.monotonic, longest=0.05), Event()

    def search(project: str) -> None:
        with queue.turn(project):
            done.set()

    with ThreadPoolExecutor(2) as crew, queue.turn("long"):
        crew.submit(search, "short")
        assert done.wait(10)
    # The late end of the long search takes nobody's turn away.
    with queue.turn("next"):
        assert queue._searching is not None


def test_a_search_whose_time_is_over_leaves_the_queue() -> None:
    queue = SearchQueue(time.monotonic, longest=30)
    errors: list[TimeExpired | None] = []

    def search() -> None:
        try:
            with deadline.within(time.monotonic, 0.02), queue.turn("late"):
                errors.append(None)
        except TimeExpired as error:
            errors.append(error)

    with queue.turn("long"), ThreadPoolExecutor(1) as crew:
        crew.submit(search).result(10)
        assert waiting(queue) == 0
    assert isinstance(errors[0], TimeExpired)


def test_a_search_within_a_search_is_part_of_it() -> None:
    queue = SearchQueue(time.monotonic, longest=30)
    with queue.turn("outer"), queue.turn("inner"):
        assert waiting(queue) == 0
    assert queue._searching is None


class Exact:
    """A solver that answers once another search has had its turn."""

    def __init__(self, queue: SearchQueue) -> None:
        self.queue = queue
        self.others: list[str] = []

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        with ThreadPoolExecutor(1) as crew:
            crew.submit(self._other).result(10)
        return Outcome(Verdict.UNKNOWN, "exact")

    def _other(self) -> None:
        with self.queue.turn("other"):
            self.others.append("other")


@pytest.mark.parametrize("projects", [("one",), ()])
def test_others_search_while_a_solver_works_elsewhere(projects: tuple[str, ...]) -> None:
    queue = SearchQueue(time.monotonic, longest=30)
    exact = Exact(queue)
    with ExitStack() as turns:
        for project in projects:
            turns.enter_context(queue.turn(project))
        outcome = SolverBetweenTurns(exact).solve(story_a().problem, time_limit=1, seed=0)
        assert (queue._searching is not None) == bool(projects)
    assert outcome.verdict is Verdict.UNKNOWN
    assert exact.others == ["other"]
    assert queue._searching is None


def test_a_search_goes_on_before_those_that_wait() -> None:
    queue, order, crew = SearchQueue(time.monotonic, longest=30), list[str](), ThreadPoolExecutor(4)

    class Elsewhere:
        def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
            until_waiting(queue, 1)  # "second" waits behind "first", which searches now
            crew.submit(let_go)
            return Outcome(Verdict.UNKNOWN, "elsewhere")

    release = Event()

    def let_go() -> None:
        until_waiting(queue, 2)  # "one" wants to go on
        release.set()

    def search(project: str) -> None:
        with queue.turn(project):
            order.append(project)
            release.wait(10)

    with crew, queue.turn("one"):
        crew.submit(search, "first")
        crew.submit(search, "second")
        until_waiting(queue, 2)
        SolverBetweenTurns(Elsewhere()).solve(story_a().problem, time_limit=1, seed=0)
        assert order == ["first"]
    assert order == ["first", "second"]


def test_an_answer_is_used_though_no_turn_comes_in_time() -> None:
    queue = SearchQueue(time.monotonic, longest=30)
    held, release = Event(), Event()

    class Late:
        def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
            crew.submit(hold)
            assert held.wait(10)
            time.sleep(0.05)
            return Outcome(Verdict.UNKNOWN, "late")

    def hold() -> None:
        with queue.turn("other"):
            held.set()
            release.wait(10)

    crew = ThreadPoolExecutor(1)
    with crew, deadline.within(time.monotonic, 0.04), queue.turn("one"):
        found = SolverBetweenTurns(Late()).solve(story_a().problem, time_limit=1, seed=0)
        release.set()
    assert found.solver == "late"
    assert waiting(queue) == 0
