"""When a hold begins, and limits that several requests reach at once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from moorage.domain.changes import Changeset, PutTraits
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import LimitExceeded
from moorage.domain.period import SECOND, Duration
from moorage.domain.requests import Objective
from moorage.engine.joint.problem import Outcome, Problem
from moorage.testing.service import NINE, OPERATOR, Service
from moorage.usecases.claims.hold import renew
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.change import ChangeRequest, change_ensemble
from moorage.usecases.ensembles.create import EnsembleResult, create_ensemble
from moorage.usecases.ensembles.members import MemberAddition, add_members
from moorage.usecases.environment import UseCaseEnvironment


@dataclass
class Slow:
    """The real solver, for which four seconds pass at every answer."""

    service: Service

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.service.clock.pass_by(4 * SECOND)
        return self.service.env.solver.solve(problem, time_limit=time_limit, seed=seed)


def create(
    env: UseCaseEnvironment,
    ask: DecisionOptions,
    count: int = 2,
    *,
    on: str = "az1",
    dry_run: bool = False,
) -> EnsembleResult:
    naming = RequestIdentity(env.ids.uuid())
    body: dict[str, Any] = {
        "name": naming.id,
        "members": [{"name": "a", "count": count, "resources": {"VCPU": 1}}],
        "policies": [{"name": "on", "type": "fence", "members": ["a"], "domains": [on]}],
    }
    env = env.in_dry_run() if dry_run else env
    return create_ensemble(env, OPERATOR, read_ensemble(body), ask, naming)


@pytest.mark.parametrize("additional", [(), ("a",)])
def test_a_hold_counts_from_the_answer(service: Service, additional: tuple[str, ...]) -> None:
    env = replace(service.env, solver=Slow(service))
    made = create(env, DecisionOptions(hold=3 * SECOND, additional=additional))
    decision, now = made.decision, service.clock.now()
    assert decision is not None
    assert now >= NINE + 4 * SECOND
    assert decision.expires_at == now + 3 * SECOND
    assert decision.state_at(now) == "held"
    bookings = service.store.bookings(decision=decision.id)
    assert {booking.lapses_at for _, booking in bookings} == {decision.expires_at}
    assert service.store.held(OPERATOR.project_id) == 2


def test_places_held_are_limited_whoever_comes_at_the_same_time(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    limits = replace(service.env.limits, held_members=5)

    def create_another() -> None:
        create(replace(service.env, limits=limits), DecisionOptions(), 4, on="r1")

    env = replace(overtaken(create_another), limits=limits)
    with pytest.raises(LimitExceeded) as refused:
        create(env, DecisionOptions(), 4, on="r2")
    assert (refused.value.used, refused.value.requested, refused.value.limit) == (4, 4, 5)
    assert service.store.held(OPERATOR.project_id) == 4
    assert len(service.store.ensembles(project_id=None)) == 1


def test_what_exceeds_the_quota_is_not_searched_for(service: Service) -> None:
    """Neither where it would fit nor where it would not; a dry run says the same."""

    class Never:
        def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
            raise AssertionError("searched")

    limits = replace(service.env.limits, held_members=3)
    env = replace(service.env, limits=limits, solver=Never())
    for count in (4, 5_000):
        with pytest.raises(LimitExceeded) as refused:
            create(env, DecisionOptions(), count)
        told = refused.value
        assert (told.used, told.requested, told.limit) == (0, count, 3)
        with pytest.raises(LimitExceeded):
            create(env, DecisionOptions(), count, dry_run=True)


def test_holding_anew_what_is_held_needs_no_more_room(service: Service) -> None:
    env = replace(service.env, limits=replace(service.env.limits, held_members=4))
    made = create(env, DecisionOptions(), 4)
    body = {"decision": {"ensemble_id": made.ensemble.id}}
    again = service.call("POST", "/decisions", body, caller=OPERATOR)
    assert again.status_code == 201, again.text
    assert service.store.held(OPERATOR.project_id) == 4


def mark(service: Service, name: str) -> None:
    """Make the host another one than it was, in nothing that matters."""
    snapshot = service.store.snapshot()
    host = snapshot.uuids[snapshot.names.index(name)]
    traits = PutTraits(host, frozenset({"HW_CPU_X86_AVX"}), None)
    service.store.commit(Changeset((traits,)))


def test_what_was_proved_of_another_fleet_is_proved_no_more(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    """An answer that still holds after a commit in between may no longer be the best."""
    usual = create(service.env, DecisionOptions(), 1, on="h1").decision
    assert usual is not None
    assert usual.solve.proven
    env = overtaken(lambda: mark(service, "h1"))
    solves: list[Problem] = []
    real = service.env.solver

    class Counting:
        def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
            solves.append(problem)
            return real.solve(problem, time_limit=time_limit, seed=seed)

    packed = DecisionOptions(objective=Objective.PACK)
    late = create(replace(env, solver=Counting()), packed, 1, on="h1").decision
    assert late is not None
    assert len(solves) == 1
    assert late.solve.value == 1
    assert not late.solve.proven


def test_what_follows_from_a_decision_is_held_until_its_end(service: Service) -> None:
    """However long the answer takes, and however often: the end neither drifts nor comes early."""
    made = create(service.env, DecisionOptions(hold=60 * SECOND))
    assert made.decision is not None
    until = made.decision.expires_at
    service.clock.pass_by(7 * SECOND)
    slow = replace(service.env, solver=Slow(service))
    more = ChangeRequest(members=({"name": "a", "count": 3},))
    decision = change_ensemble(slow, OPERATOR, made.ensemble.id, more, None).decision
    assert decision is not None
    assert (decision.expires_at, decision.hold) == (until, 49 * SECOND)
    adding = MemberAddition({"name": "a", "count": 1})
    naming = RequestIdentity(service.env.ids.uuid())
    added = add_members(slow, OPERATOR, made.ensemble.id, adding, naming).decision
    assert added is not None
    assert added.expires_at == until
    assert {one.lapses_at for _, one in service.store.bookings(decision=added.id)} == {until}


def test_a_renewal_meanwhile_counts(
    service: Service, overtaken: Callable[[Callable[[], object]], UseCaseEnvironment]
) -> None:
    made = create(service.env, DecisionOptions(hold=60 * SECOND))
    assert made.decision is not None
    until, id_ = made.decision.expires_at + 9 * SECOND, made.decision.id
    env = overtaken(lambda: renew(service.env, OPERATOR, id_, until, None))
    more = ChangeRequest(members=({"name": "a", "count": 3},))
    decision = change_ensemble(env, OPERATOR, made.ensemble.id, more, None).decision
    assert decision is not None
    assert decision.expires_at == until


def test_a_hold_that_lapses_meanwhile_is_not_gone_on_with(service: Service) -> None:
    made = create(service.env, DecisionOptions(hold=3 * SECOND))
    slow = replace(service.env, solver=Slow(service))
    more = ChangeRequest(members=({"name": "a", "count": 3},))
    decision = change_ensemble(slow, OPERATOR, made.ensemble.id, more, None).decision
    assert decision is not None
    assert decision.expires_at > service.clock.now(), "a hold of its own"


def test_a_hold_that_is_too_long_is_told_by_its_setting(service: Service) -> None:
    role = {"name": "db", "count": 1, "resources": {"VCPU": 1}}
    body = {"ensemble": {"name": "e", "members": [role], "decide": {"hold": "P1D"}}}
    (error,) = service.call("POST", "/ensembles", body).json["errors"]
    assert error["detail"] == "hold: 4h at most (longest_hold), not 1d"
    assert (error["limit"], error["requested"]) == (14_400, 86_400)
