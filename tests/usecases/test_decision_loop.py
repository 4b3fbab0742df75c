"""The loop of a decision: what is read is decided, and read again where it has moved."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Busy, ConcurrentUpdate, Infeasible, StaleGeneration
from moorage.testing.service import TENANT, Service
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, run_decision, unplaced
from moorage.usecases.decide.request import Proposal, RequestIdentity
from moorage.usecases.decide.search_result import SearchResult
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.environment import UseCaseEnvironment

ATTEMPTS = 3


@pytest.fixture
def patient(service: Service) -> UseCaseEnvironment:
    """Gives up after a few attempts, and does not wait for them."""
    limits = replace(service.env.limits, attempts=ATTEMPTS)
    return replace(service.env, limits=limits, pause=lambda _: None)


def proposed(env: UseCaseEnvironment, vcpu: int) -> Proposal:
    role = {"name": "web", "count": 1, "resources": {"VCPU": vcpu}}
    described = read_ensemble({"name": "e", "members": [role]})
    made = create_ensemble(
        env.in_dry_run(), TENANT, described, None, RequestIdentity(env.ids.uuid())
    )
    return Proposal(made.ensemble, None, (unplaced(made.ensemble),))


def test_a_reading_with_nothing_to_decide_answers(patient: UseCaseEnvironment) -> None:
    def read() -> DecisionFlow[str]:
        yield from ()
        return "nothing"

    assert run_decision(patient, read) == "nothing"


def test_a_reading_is_sent_the_decision(patient: UseCaseEnvironment) -> None:
    def read() -> DecisionFlow[str]:
        settled = yield DecisionRequest(
            proposed(patient, 1), DecisionOptions(), RequestIdentity(patient.ids.uuid())
        )
        return settled.decision.id

    made = run_decision(patient, read)
    assert patient.store.decision(made).id == made


def test_a_defect_of_a_strategy_is_no_answer(patient: UseCaseEnvironment) -> None:
    """An iterator that is empty by mistake must not look like the end of the reading."""

    class Defect:
        concedes = False
        name = "defect"

        def attempts(self, *_: object) -> Iterator[SearchResult]:
            return next(iter(()))

    strategies = replace(patient.strategies, room_makers=(Defect(),))

    def read() -> DecisionFlow[str]:
        yield DecisionRequest(
            proposed(patient, 1), DecisionOptions(), RequestIdentity(patient.ids.uuid())
        )
        return "decided"

    with pytest.raises(StopIteration):
        run_decision(replace(patient, strategies=strategies), read)


def test_a_reading_is_thrown_a_refusal_and_may_answer_it(patient: UseCaseEnvironment) -> None:
    def read() -> DecisionFlow[str]:
        proposal = proposed(patient, 1)
        role = replace(proposal.ensemble.roles[0], resources={"VCPU": 10**6})
        proposal = replace(proposal, roles=(role,))
        try:
            yield DecisionRequest(proposal, DecisionOptions(), RequestIdentity(patient.ids.uuid()))
        except Infeasible as error:
            return error.message
        return "placed"

    assert "no placement" in run_decision(patient.in_dry_run(), read)


def test_it_is_read_again_as_often_as_attempts_are_allowed(patient: UseCaseEnvironment) -> None:
    begun: list[int] = []

    def read() -> DecisionFlow[None]:
        begun.append(1)
        raise ConcurrentUpdate("moved", subject="e")

    with pytest.raises(Busy):
        run_decision(patient, read)
    assert len(begun) == ATTEMPTS


def test_what_has_moved_once_is_read_again_and_decided(patient: UseCaseEnvironment) -> None:
    moves = iter([True, False])

    def read() -> DecisionFlow[str]:
        if next(moves):
            raise ConcurrentUpdate("moved", subject="e")
        settled = yield DecisionRequest(
            proposed(patient, 1), DecisionOptions(), RequestIdentity(patient.ids.uuid())
        )
        return settled.decision.id

    made = run_decision(patient, read)
    assert patient.store.decision(made).id == made


def test_who_must_know_is_told_at_once(patient: UseCaseEnvironment) -> None:
    begun: list[int] = []

    def read() -> DecisionFlow[None]:
        begun.append(1)
        raise ConcurrentUpdate("moved", subject="e")

    with pytest.raises(ConcurrentUpdate):
        run_decision(patient, read, must_know=lambda _: True)

    def stale() -> DecisionFlow[None]:
        begun.append(1)
        raise StaleGeneration("ensemble", "e", expected=1, actual=2)

    with pytest.raises(StaleGeneration):
        run_decision(patient, stale)
    assert len(begun) == 2
