"""The pool's client against real solver processes: warm, bounded, replaced."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.domain.ensembles import MemberName
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.engine.problem import Outcome, Problem, Verdict
from moorage.http.offspring import Offspring, Program
from moorage.solver import channel
from moorage.solver.cpsat import CpSat
from moorage.solver.pool import PoolSolver, SolverFailed
from moorage.solver.portfolio import Portfolio
from moorage.solver.warmup import toy_problem
from moorage.solver.worker import OVERRUN

pytestmark = pytest.mark.process


def packing(members: int, hosts: int) -> Problem:
    """Two sizes that only just fit: hard enough to keep a solver busy to its limit."""
    sizes = np.array([[5], [7]])
    role_of = np.arange(members) % 2
    return replace(
        toy_problem(),
        members=tuple(MemberName("ab"[i % 2], i // 2) for i in range(members)),
        roles=("a", "b"),
        role_of=role_of,
        demand=sizes,
        allowed=np.ones((2, hosts), np.bool_),
        fixed=np.full(members, -1),
        free=np.arange(hosts)[:, None] % 5 + 15,
        capacity=np.full((hosts, 1), 24),
        hosts=tuple(f"h{i}" for i in range(hosts)),
    )


def perfect_packing() -> Problem:
    """Thirty hosts that random members fill without a gap: beyond any solver's few seconds."""
    chance = random.Random(5)
    cuts = [sorted(chance.sample(range(1, 1000), 4)) for _ in range(30)]
    sizes = [b - a for cut in cuts for a, b in pairwise([0, *cut, 1000])]
    chance.shuffle(sizes)
    return replace(
        packing(len(sizes), 30),
        members=tuple(MemberName(f"r{i:03}", 0) for i in range(len(sizes))),
        roles=tuple(f"r{i:03}" for i in range(len(sizes))),
        role_of=np.arange(len(sizes)),
        demand=np.array(sizes)[:, None],
        allowed=np.ones((len(sizes), 30), np.bool_),
        free=np.full((30, 1), 1000),
        capacity=np.full((30, 1), 1000),
    )


def ended(child: Offspring) -> int:
    """The exit status of a process that is about to end."""
    deadline = time.monotonic() + 10
    while (status := child.ended()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return status


def when_there_is_room(solver: PoolSolver, problem: Problem) -> Outcome:
    """The answer, asked for again while the queue is full, as a client would."""
    for _ in range(2000):
        try:
            return solver.solve(problem, time_limit=20 * SECOND, seed=1)
        except Busy:
            time.sleep(0.01)
    raise AssertionError("the queue stays full")


@dataclass
class Pool:
    solver: PoolSolver
    child: Offspring


@contextmanager
def pool(solver: str = "moorage.solver.cpsat:CpSat") -> Iterator[Pool]:
    address = channel.new_address()
    with channel.listen(address, 2) as listener:
        config = {
            "solver": solver,
            "listener": listener.fileno(),
            "memory": 2**31,
            "address": address,
            "number": 1,
            "log": {"level": "error", "form": "text"},
        }
        program = Program("solver", "moorage.solver.worker:main", config, (listener.fileno(),))
        child = Offspring(program)
        child.start()
        try:
            yield Pool(PoolSolver(address), child)
        finally:
            child.stop()
            child.finish(time.monotonic() + 5)


@pytest.fixture(scope="module")
def running() -> Iterator[Pool]:
    with pool() as made:
        yield made


@pytest.fixture
def warm(running: Pool) -> Pool:
    """A pool with an empty queue."""
    when_there_is_room(running.solver, toy_problem())
    return running


def test_the_pool_answers_as_the_solver_does(warm: Pool) -> None:
    problem = packing(6, 4)
    there = warm.solver.solve(problem, time_limit=10 * SECOND, seed=3)
    here = CpSat().solve(problem, time_limit=10 * SECOND, seed=3)
    assert there.verdict is Verdict.FEASIBLE
    assert (there.value, there.bound) == (here.value, here.bound)
    assert there.hosts is not None
    assert here.hosts is not None
    assert there.hosts.tolist() == here.hosts.tolist()
    assert warm.solver.solve(packing(9, 2), time_limit=10 * SECOND, seed=3).verdict is (
        Verdict.INFEASIBLE
    )


def test_callers_queue_up_and_those_beyond_the_queue_are_told(warm: Pool) -> None:
    held = [channel.connect(warm.solver.address)]
    assert held[0].poll(10)
    try:
        with pytest.raises(Busy, match="queue is full") as caught:  # noqa: PT012 - until it is
            while True:
                held.append(channel.connect(warm.solver.address))
        assert caught.value.retry_after > 0
        started = time.monotonic()
        with pytest.raises(Busy):
            warm.solver.solve(toy_problem(), time_limit=SECOND, seed=1)
        assert time.monotonic() - started < 1
        held.pop().close()
    finally:
        for connection in held:
            connection.close()
    assert when_there_is_room(warm.solver, toy_problem()).proven


def test_waiting_for_a_turn_is_part_of_the_limit(warm: Pool) -> None:
    held = channel.connect(warm.solver.address)
    assert held.poll(10)
    started = time.monotonic()
    with held, pytest.raises(Busy, match="no solver became free"):
        warm.solver.solve(toy_problem(), time_limit=SECOND // 2, seed=1)
    assert 0.4 < time.monotonic() - started < 2


def test_many_callers_at_once_all_get_their_own_answer(warm: Pool) -> None:
    answers: dict[int, Any] = {}

    def ask(members: int) -> None:
        answers[members] = when_there_is_room(warm.solver, packing(members, 8))

    threads = [threading.Thread(target=ask, args=(members,)) for members in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {members: len(outcome.hosts) for members, outcome in answers.items()} == {
        members: members for members in range(1, 9)
    }


def test_a_caller_that_leaves_or_talks_nonsense_harms_nobody(warm: Pool) -> None:
    abandoned = channel.connect(warm.solver.address)
    abandoned.close()
    for terms in (
        b'{"time_limit": 1000000, "seed": 1, "for": ["", ""]}',
        b'{"time_limit": 1000000, "seed": 1}',
        b'{"time_limit": "soon", "seed": 1, "for": ["", ""]}',
        b"[]",
        b"\xff",
    ):
        rude = channel.connect(warm.solver.address)
        assert rude.poll(10)
        rude.send_bytes(terms)
        rude.send_bytes(b"not an instance")
        assert rude.recv_bytes() == channel.READY
        assert rude.poll(10)
        assert rude.recv_bytes() == channel.FAILED
        rude.close()
    assert warm.solver.solve(toy_problem(), time_limit=10 * SECOND, seed=1).proven


def test_a_killed_process_is_an_error_for_one_and_a_wait_for_the_next(warm: Pool) -> None:
    failed: list[Exception] = []

    def ask() -> None:
        try:
            warm.solver.solve(perfect_packing(), time_limit=30 * SECOND, seed=1)
        except Busy as error:
            failed.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    process = warm.child.process
    assert process is not None
    time.sleep(1)
    os.kill(process.pid, signal.SIGKILL)
    asker.join(10)
    assert [str(error) for error in failed] == ["the solver process ended while it solved"]
    assert ended(warm.child) == -signal.SIGKILL
    warm.child.start()
    assert warm.solver.solve(toy_problem(), time_limit=30 * SECOND, seed=1).proven


def test_without_any_process_a_greedy_answer_is_given() -> None:
    nobody = PoolSolver(channel.new_address())
    with pytest.raises(Busy, match="no solver is running"):
        nobody.solve(toy_problem(), time_limit=SECOND, seed=1)
    outcome = Portfolio(nobody).solve(packing(6, 4), time_limit=SECOND, seed=1)
    assert outcome.verdict is Verdict.FEASIBLE
    assert outcome.solver == "greedy"


def test_a_solver_that_misbehaves_costs_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with pool("badsolvers:Worst") as made:
        with pytest.raises(SolverFailed):
            made.solver.solve(packing(5, 3), time_limit=20 * SECOND, seed=1)
        assert made.solver.solve(toy_problem(), time_limit=20 * SECOND, seed=1).proven

        with pytest.raises(Busy, match="ended while it solved"):
            made.solver.solve(packing(4, 3), time_limit=20 * SECOND, seed=1)
        assert ended(made.child) == OVERRUN
        made.child.start()
        assert made.solver.solve(toy_problem(), time_limit=20 * SECOND, seed=1).proven

        with pytest.raises(Busy, match="past its time limit"):
            made.solver.solve(packing(3, 3), time_limit=20 * SECOND // 1000, seed=1)
        assert ended(made.child) == OVERRUN
        assert made.child.failures == 2
