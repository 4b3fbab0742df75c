"""The time limit of a request covers reading it, searching, and saying why not."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from moorage.domain import deadline
from moorage.domain.ensembles import Member
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, SECOND, Period
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.explain.conflict_classes import binding_classes
from moorage.engine.explain.conflicts import Core, DeletionFilter, Oracle
from moorage.engine.explain.elements import elements
from moorage.engine.joint.build import build
from moorage.engine.joint.problem import Outcome, Problem
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.solution import request_for

MANY = 60


class Steps:
    """A stopwatch on which so much time passes between two looks."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.seconds = 0.0
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.seconds += self.step
        return self.seconds


@pytest.fixture
def timed(three_racks: str) -> Iterator[Callable[[float], tuple[Service, Steps]]]:
    made: list[Service] = []

    def start(step: float) -> tuple[Service, Steps]:
        service, steps = Service(three_racks), Steps(step)
        made.append(service)
        service.env = replace(service.env, stopwatch=steps)
        return service, steps

    yield start
    for one in made:
        one.close()


def template(count: int, flavor: str) -> str:
    servers = "".join(
        f"  s{number}:\n    type: OS::Nova::Server\n    properties: {{flavor: {flavor}}}\n"
        for number in range(count)
    )
    return f"heat_template_version: 2018-08-31\nresources:\n{servers}"


def hot(count: int, flavor: str, **decide: Any) -> dict[str, Any]:
    return {"hot": {"template": template(count, flavor), "name": "many", "decide": decide}}


def ensemble(count: int, size: int) -> dict[str, Any]:
    members = [
        {"name": f"r{number}", "count": 1, "resources": {"VCPU": size}} for number in range(count)
    ]
    return {"ensemble": {"name": "many", "members": members, "decide": {}}}


def test_reading_a_template_counts(timed: Callable[[float], tuple[Service, Steps]]) -> None:
    service, steps = timed(0.1)  # five seconds are over long before so many servers are read
    answer = service.call("POST", "/hot", hot(MANY, "m1.small"))
    assert answer.status_code == 503, answer.text
    assert answer.headers["Retry-After"] == "5"
    assert answer.json["errors"][0]["code"] == "ensemble.busy"
    assert steps.seconds < 6
    assert service.call("GET", "/ensembles").json["ensembles"] == []


def test_a_template_within_its_limit_is_placed(
    timed: Callable[[float], tuple[Service, Steps]],
) -> None:
    service, _ = timed(0.02)
    answer = service.call("POST", "/hot", hot(MANY, "m1.small", time_limit="PT1M"))
    assert answer.status_code == 201, answer.text


def test_a_refusal_comes_in_time_and_says_that_it_is_not_complete(
    timed: Callable[[float], tuple[Service, Steps]],
) -> None:
    service, steps = timed(0.01)
    answer = service.call("POST", "/ensembles", ensemble(MANY, 100_000), caller=OPERATOR)
    assert answer.status_code == 409, answer.text
    why = answer.json["errors"][0]["explanation"]
    assert why["verdict"] == "infeasible"
    assert "time ran out" in why["note"]
    assert why["complete"] is False
    assert not why["minimal"]
    # The limit, a second for the reasons, and a few looks for each that is told.
    assert steps.seconds < 6 + 4 * MANY * steps.step


def test_a_refusal_with_time_is_complete(
    timed: Callable[[float], tuple[Service, Steps]],
) -> None:
    service, _ = timed(0.0)
    answer = service.call("POST", "/ensembles", ensemble(2, 100_000), caller=OPERATOR)
    assert answer.status_code == 409, answer.text
    why = answer.json["errors"][0]["explanation"]
    assert "time ran out" not in why["note"]
    assert why["complete"] is True
    assert why["minimal"]
    assert 1 + len(why["more_conflicts"]) == 2


@pytest.mark.parametrize(
    ("time_limit", "budget", "seconds"),
    [("2s", 15 * SECOND, 6.0), ("1s", 2 * SECOND, 1.0), ("3s", 1, 1.0)],
)
def test_an_explanation_has_a_multiple_of_the_time_limit(
    service: Service, time_limit: str, budget: int, seconds: float
) -> None:
    """Whatever the search has used, and a second at least."""
    left: list[float] = []
    env = service.env

    def explaining(*args: Any, **more: Any) -> Any:
        left.append(deadline.left(100.0))
        return env.strategies.explain(*args, **more)

    service.env = replace(
        env,
        limits=replace(env.limits, time_limit=5 * SECOND, explanation_budget=budget),
        strategies=replace(env.strategies, explain=explaining),
    )
    asked = ensemble(2, 100_000)
    asked["ensemble"]["decide"]["time_limit"] = time_limit
    assert service.call("POST", "/ensembles", asked, caller=OPERATOR).status_code == 409
    assert seconds - 0.5 < left[0] <= seconds


def test_counting_what_more_would_fit_never_costs_the_answer(
    timed: Callable[[float], tuple[Service, Steps]],
) -> None:
    service, _ = timed(0.2)
    body = {
        "ensemble": {
            "name": "few",
            "members": [{"name": "web", "count": 2, "flavor": "m1.small"}],
            "decide": {"max_additional": ["web"]},
        }
    }
    answer = service.call("POST", "/ensembles", body)
    assert answer.status_code == 201, answer.text


def test_a_question_is_not_even_stated_without_time(service: Service) -> None:
    made = service.call("POST", "/ensembles", {"ensemble": ensemble(3, 1)["ensemble"]})
    assert made.status_code == 201, made.text
    kept = service.store.ensemble(made.json["ensemble"]["id"])
    snapshot = service.store.snapshot()
    request = EnsembleRequest(
        project_id=kept.project_id,
        roles=kept.roles,
        members=tuple(one.name for one in kept.members),
        policies=(),
        period=Period(snapshot.taken_at, FOREVER),
        objective=Objective.SPREAD,
    )
    built = build(request, snapshot)
    oracle = Oracle(Portfolio(CpSat()), lambda: 5.0)
    watch = Steps(0.0)
    with deadline.within(watch, 1.0):
        watch.seconds += 2
        assert DeletionFilter(built, oracle).feasible(frozenset()) is None
        assert (
            oracle.feasible_if_time(lambda: pytest.fail("a problem was made for nothing")) is None
        )
    assert oracle.feasible_if_time(lambda: built.problem) is True


class Counted(dict[str, int]):
    """Resources that count how often they are copied."""

    copies = 0

    def items(self) -> Any:
        Counted.copies += 1
        return super().items()


def test_what_a_conflict_turns_on_copies_no_role_once_time_is_over(service: Service) -> None:
    made = service.call("POST", "/ensembles", {"ensemble": ensemble(MANY, 1)["ensemble"]})
    kept = service.store.ensemble(made.json["ensemble"]["id"])
    snapshot = service.store.snapshot()
    request = EnsembleRequest(
        project_id=kept.project_id,
        roles=kept.roles,
        members=tuple(one.name for one in kept.members),
        policies=(),
        period=Period(snapshot.taken_at, FOREVER),
    )
    asked = Counted(VCPU=1, MEMORY_MB=1)
    roles = tuple(replace(one, resources=asked) for one in kept.roles)
    built = replace(build(request, snapshot), request=replace(request, roles=roles))
    Counted.copies = 0
    core = Core(elements(built), minimal=False)
    found = binding_classes(built, core, Oracle(Portfolio(CpSat()), lambda: 0.0))
    assert set(found) == {role.name for role in roles}
    assert Counted.copies == 0


class Hand:
    """A stopwatch that somebody sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Improving:
    """A solver that never proves its answer, and uses all the time that it gets, and a little."""

    def __init__(self, stopwatch: Hand) -> None:
        self._stopwatch = stopwatch
        self.limits: list[float] = []

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        """See `Solver`."""
        self.limits.append(time_limit / SECOND)
        found = Portfolio(CpSat()).solve(problem, time_limit=10 * SECOND, seed=seed)
        self._stopwatch.seconds += time_limit / SECOND + 0.05
        return replace(found, bound=0) if found.value else found


class Late:
    """A solver that ends long after its limit."""

    def __init__(self, solver: Improving, stopwatch: Any) -> None:
        self._solver, self._stopwatch = solver, stopwatch

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        """See `Solver`."""
        found = self._solver.solve(problem, time_limit=time_limit, seed=seed)
        self._stopwatch.seconds += 1
        return found


@pytest.fixture
def hand(three_racks: str) -> Iterator[tuple[Service, Improving]]:
    service, stopwatch = Service(three_racks), Hand()
    solver = Improving(stopwatch)
    service.env = replace(service.env, stopwatch=stopwatch, solver=solver)
    yield service, solver
    service.close()


def test_what_a_solver_finds_with_all_its_time_is_written(hand: tuple[Service, Improving]) -> None:
    service, solver = hand
    for path, body in (("/ensembles", ensemble(2, 1)), ("/hot", hot(2, "m1.small"))):
        body[path.strip("/").removesuffix("s")]["name"] = path
        answer = service.call("POST", path, body)
        assert answer.status_code == 201, answer.text
    assert all(4.5 < limit < 5 for limit in solver.limits)


def test_time_is_left_to_write_many_members_and_tell_of_them(
    hand: tuple[Service, Improving],
) -> None:
    service, solver = hand
    for members in (10, 60):
        body = ensemble(members, 1)
        body["ensemble"]["name"] = f"of {members}"
        service.call("POST", "/ensembles", body)
    few, many = solver.limits
    assert few - many == pytest.approx(50 * 0.0003, abs=1e-4)


def test_a_search_that_ends_too_late_for_its_commit_writes_nothing(
    hand: tuple[Service, Improving],
) -> None:
    service, solver = hand
    service.env = replace(service.env, solver=Late(solver, service.env.stopwatch))
    answer = service.call("POST", "/ensembles", ensemble(2, 1))
    assert answer.status_code == 409, answer.text
    assert answer.json["errors"][0]["code"] == "ensemble.undecided"
    assert service.call("GET", "/ensembles").json["ensembles"] == []


def test_a_request_is_made_in_time_in_proportion_to_its_members(service: Service) -> None:
    """It looks at no deadline: with the square of the members, planners were ended over it."""
    made = service.call("POST", "/ensembles", {"ensemble": ensemble(1, 1)["ensemble"]})
    kept = service.store.ensemble(made.json["ensemble"]["id"])
    role = kept.roles[0].name
    members = tuple(Member(MemberName(role, n), str(n)) for n in range(5_000))
    large = replace(kept, members=members)
    snapshot = service.store.snapshot()
    places = locate_members(snapshot, large)
    everyone = frozenset(one.name for one in members)
    began = time.thread_time()
    request = request_for(
        large, places, everyone, Period(snapshot.taken_at, FOREVER), Objective.SPREAD
    )
    assert time.thread_time() - began < 0.07  # 3 ms, and 140 ms with the square
    assert len(request.members) == len(members)
    assert request.absent == ()
