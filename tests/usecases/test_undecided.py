"""Requests whose time runs out are told as undecided: neither as refused nor as too many."""

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Busy
from moorage.domain.explain import UNFINISHED
from moorage.engine.joint.instance import recorded_verdict
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.decide.loop import decide_proposal, unplaced_or_held
from moorage.usecases.decide.request import (
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import described_ensemble
from moorage.usecases.shared.pending_work import AfterAnswer, PendingWork, leaving_work

SHOP = {"name": "shop", "members": [{"name": "web", "count": 2, "resources": {"VCPU": 1}}]}
ID = "5b0b62a8-6a0f-4a55-9b52-2f4a9a3f1c11"


class Answers:
    """A solver that gives one answer, or raises an error, or asks another one."""

    def __init__(self, answer: Outcome | Busy | Portfolio) -> None:
        self.answer = answer

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        """See `Solver`."""
        if isinstance(self.answer, Busy):
            raise self.answer
        if isinstance(self.answer, Outcome):
            return self.answer
        return self.answer.solve(problem, time_limit=time_limit, seed=seed)


UNKNOWN = Outcome(Verdict.UNKNOWN, "tests")


@pytest.fixture
def undecided(service: Service) -> Iterator[Service]:
    """A service whose solver never knows."""
    solver = service.env.solver
    service.env = replace(service.env, solver=Answers(UNKNOWN))
    yield service
    service.env = replace(service.env, solver=solver)


def ask(service: Service, path: str = "/ensembles", **more: Any) -> Any:
    return service.call("POST", path, {"ensemble": {**SHOP, "decide": {}} | more})


def test_an_undecided_request_is_told_with_an_explanation(undecided: Service) -> None:
    answer = ask(undecided)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"]) == (409, "ensemble.undecided")
    assert error["detail"] == "time ran out before an answer, or a proof that there is none"
    assert "Retry-After" not in answer.headers
    why = error["explanation"]
    assert (why["verdict"], why["stage"]) == ("undecided", "unknown")
    assert (why["complete"], why["pending"], why["conflict"]) == (False, False, [])
    assert why["note"] == error["detail"]
    assert why["counts"]["considered"] == "8+"
    assert undecided.call("GET", "/ensembles").json["ensembles"] == []
    found = undecided.call("GET", f"/explanations/{why['id']}").json["explanation"]
    assert (found["ensemble"], found["project_id"]) == ("shop", "project-a")
    subject = {"ensemble", "ensemble_id", "project_id"}
    assert {key: found[key] for key in found.keys() - subject} == why


def test_its_problem_is_kept_for_operators(undecided: Service) -> None:
    id_ = ask(undecided).json["errors"][0]["explanation"]["id"]
    query = {"instance": "true"}
    found = undecided.call("GET", f"/explanations/{id_}", caller=OPERATOR, query=query)
    assert recorded_verdict(json.dumps(found.json["explanation"]["instance"])) is None


def test_it_is_listed_and_told_as_refusals_are(undecided: Service) -> None:
    ask(undecided)
    (one,) = undecided.call("GET", "/explanations", query={"stage": "unknown"}).json["explanations"]
    assert (one["verdict"], one["ensemble"]) == ("undecided", "shop")
    (event,) = undecided.call("GET", "/events", query={"type": "request.refused"}).json["events"]
    assert (event["body"]["stage"], event["subject"]) == ("unknown", one["id"])


def test_a_repetition_is_searched_for_again(undecided: Service) -> None:
    assert ask(undecided, id=ID).json["errors"][0]["code"] == "ensemble.undecided"
    solver = undecided.env.solver
    assert isinstance(solver, Answers)
    solver.answer = Portfolio(CpSat())
    answer = ask(undecided, id=ID)
    assert answer.status_code == 201, answer.json
    assert ask(undecided, id=ID).json["ensemble"]["id"] == answer.json["ensemble"]["id"]


def test_a_dry_run_keeps_nothing(undecided: Service) -> None:
    body = {"ensemble": {**SHOP, "decide": {}}}
    answer = undecided.call("POST", "/ensembles", body, query={"dry_run": "true"})
    assert answer.json["errors"][0]["code"] == "ensemble.undecided"
    assert answer.json["errors"][0]["explanation"]["links"] == []
    assert undecided.call("GET", "/explanations").json["explanations"] == []


def test_who_only_asks_is_given_the_verdict(undecided: Service) -> None:
    body = {"explanation": {"members": SHOP["members"]}}
    answer = undecided.call("POST", "/explanations", body)
    assert (answer.status_code, answer.json["verdict"]) == (200, "undecided")
    why = answer.json["explanation"]
    assert (why["stage"], why["complete"]) == ("unknown", False)
    assert undecided.call("GET", f"/explanations/{why['id']}").status_code == 200


def test_an_explanation_that_cannot_be_kept_now_is_in_the_answer_alone(
    three_racks: str, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.db"
    service = Service(three_racks, database=new_database(tmp_path))
    service.env = replace(service.env, solver=Answers(UNKNOWN))
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = ask(service, decide={"time_limit": "PT1S"})
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"]) == (409, "ensemble.undecided")
    assert (error["explanation"]["links"], error.get("links") or []) == ([], [])
    assert service.call("GET", "/explanations").json["explanations"] == []
    service.close()


def test_a_refusal_that_cannot_be_kept_now_is_answered_all_the_same(
    three_racks: str, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.db"
    service = Service(three_racks, database=new_database(tmp_path))
    large = [{"name": "web", "count": 2, "resources": {"VCPU": 1_000}}]
    body = {"ensemble": {"name": "shop", "members": large, "decide": {"time_limit": "PT1S"}}}
    asked = {"explanation": {"members": large}}
    after = AfterAnswer(PendingWork())
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with leaving_work(after):
            answer = service.call("POST", "/ensembles", body, headers={"Prefer": "wait=0"})
        with deadline.under(deadline.admitted(time.monotonic, 2)):
            unkept = service.call("POST", "/explanations", asked)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"]) == (409, "ensemble.infeasible")
    why = error["explanation"]
    assert (why["links"], why["pending"], why["note"]) == ([], False, UNFINISHED)
    assert unkept.status_code == 503  # it was to be kept, and nothing else
    after.run()
    assert service.call("GET", "/explanations").json["explanations"] == []
    service.close()


def test_a_full_queue_is_told_as_busy(service: Service) -> None:
    full = Busy("the solver's queue is full", retry_after=2)
    service.env = replace(service.env, solver=Answers(full))
    answer = ask(service)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert service.call("GET", "/explanations").json["explanations"] == []


def test_a_search_that_no_client_reads_hears_that_time_ran_out(undecided: Service) -> None:
    env = undecided.env
    reader = RefusalReader(detail=RefusalDetail.UNSTORED)
    identity = RequestIdentity(env.ids.uuid())
    described = read_ensemble(SHOP)
    ensemble = described_ensemble(env, TENANT, described, identity)
    every = unplaced_or_held(ensemble)
    proposal = Proposal(ensemble, None, (every,), reader=reader)
    with pytest.raises(TimeExpired):
        decide_proposal(env, proposal, DecisionOptions(), identity)
    assert undecided.call("GET", "/explanations").json["explanations"] == []
