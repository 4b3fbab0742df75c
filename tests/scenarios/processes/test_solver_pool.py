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
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.scenarios.processes.conftest import eventually

from moorage.domain.errors import Busy
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.requests import Objective
from moorage.domain.search_progress import SearchProgress, listening
from moorage.engine.joint import instance
from moorage.engine.joint.problem import Outcome, Problem, Verdict
from moorage.http import process_queue, process_status
from moorage.http.child_process import ChildProcess, Program
from moorage.solver.cpsat import CpSat
from moorage.solver.pool import PoolSolver
from moorage.solver.portfolio import Portfolio
from moorage.solver.solver_process import OVERRUN
from moorage.solver.warmup_problem import toy_problem

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


def loose_packing() -> Problem:
    """Placed at once, but how few of the hosts would do takes long to find."""
    chance = random.Random(2)
    sizes = [chance.randint(15, 60) for _ in range(60)]
    return replace(
        packing(len(sizes), 40),
        members=tuple(MemberName(f"r{i:03}", 0) for i in range(len(sizes))),
        roles=tuple(f"r{i:03}" for i in range(len(sizes))),
        role_of=np.arange(len(sizes)),
        demand=np.array(sizes)[:, None],
        allowed=np.ones((len(sizes), 40), np.bool_),
        free=np.full((40, 1), 100),
        capacity=np.full((40, 1), 100),
        objective=Objective.PACK,
    )


def ended(child: ChildProcess) -> int:
    """The exit status of a process that is about to end."""
    deadline = time.monotonic() + 100
    while (status := child.ended()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return status


def when_there_is_room(solver: PoolSolver, problem: Problem) -> Outcome:
    """The answer, asked for again while the queue is full, as a client would."""
    for _ in range(6000):
        try:
            return solver.solve(problem, time_limit=20 * SECOND, seed=1)
        except Busy:
            time.sleep(0.01)
    raise AssertionError("the queue stays full")


@dataclass
class Pool:
    solver: PoolSolver
    child: ChildProcess


@contextmanager
def pool(solver: str = "moorage.solver.cpsat:CpSat") -> Iterator[Pool]:
    address = process_queue.new_address("solver")
    status = os.fdopen(process_status.make(), "rb")
    with status, process_queue.listen(address, 2) as listener:
        config = {
            "solver": solver,
            "listener": listener.fileno(),
            "memory": 2**31,
            "number": 1,
            "status": status.fileno(),
            "log": {"level": "error", "form": "text"},
        }
        descriptors = (listener.fileno(), status.fileno())
        program = Program("solver", "moorage.solver.solver_process:main", config, descriptors)
        child = ChildProcess(program)
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


def joined(pool: Pool) -> Connection:
    """A connection in the queue of the pool."""
    return process_queue.ProcessPool("solver", pool.solver.address).connect()


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
    held = [joined(warm)]
    assert held[0].poll(60)
    try:
        with pytest.raises(Busy, match="queue is full") as caught:  # noqa: PT012 - until it is
            while True:
                held.append(joined(warm))
        assert caught.value.retry_after > 0
        with pytest.raises(Busy, match="queue is full"):
            warm.solver.solve(toy_problem(), time_limit=SECOND, seed=1)
        held.pop().close()
    finally:
        for connection in held:
            connection.close()
    assert when_there_is_room(warm.solver, toy_problem()).proven


def test_waiting_for_a_turn_is_part_of_the_limit(warm: Pool) -> None:
    held = joined(warm)
    assert held.poll(60)
    started = time.monotonic()
    with held, pytest.raises(Busy, match="no solver became free"):
        warm.solver.solve(toy_problem(), time_limit=SECOND // 2, seed=1)
    assert time.monotonic() - started > 0.4


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
    abandoned = joined(warm)
    abandoned.close()
    for terms in (
        b'{"time_limit": 1000000, "seed": 1, "for": ["", ""]}',
        b'{"time_limit": 1000000, "seed": 1}',
        b'{"time_limit": 1000000, "for": ["", ""]}',
        b'{"time_limit": "soon", "seed": 1, "for": ["", ""]}',
        b"[]",
        b"\xff",
    ):
        rude = joined(warm)
        assert rude.poll(60)
        rude.send_bytes(terms)
        rude.send_bytes(b"not an instance")
        assert rude.recv_bytes() == process_queue.READY
        assert rude.poll(60)
        assert rude.recv_bytes() == process_queue.FAILED
        rude.close()
    assert warm.solver.solve(toy_problem(), time_limit=10 * SECOND, seed=1).proven


def test_a_long_solve_tells_how_far_it_is_before_its_answer(warm: Pool) -> None:
    heard: list[SearchProgress] = []
    with listening(heard.append):
        found = warm.solver.solve(loose_packing(), time_limit=3 * SECOND, seed=1)
    assert len(heard) >= 2
    newest = heard[-1]
    assert newest.bound <= found.bound < found.value
    assert newest.value is not None
    assert newest.value >= found.value


def test_nothing_is_told_to_who_does_not_listen(warm: Pool) -> None:
    """The messages of a conversation without a listener are those of old."""
    silent = joined(warm)
    assert silent.poll(60)
    assert silent.recv_bytes() == process_queue.READY
    silent.send_bytes(b'{"time_limit": 1500000, "seed": 1, "for": ["", ""], "progress": false}')
    silent.send_bytes(instance.dumps(perfect_packing()))
    assert silent.poll(60)
    assert silent.recv_bytes() == process_queue.OK
    assert instance.loads_outcome(silent.recv_bytes()).verdict is Verdict.UNKNOWN


def test_a_killed_process_is_an_error_for_one_and_a_wait_for_the_next(warm: Pool) -> None:
    failed: list[Exception] = []
    heard: list[SearchProgress] = []

    def ask() -> None:
        try:
            with listening(heard.append):
                warm.solver.solve(perfect_packing(), time_limit=30 * SECOND, seed=1)
        except Busy as error:
            failed.append(error)

    asker = threading.Thread(target=ask)
    process = warm.child.process
    assert process is not None
    asker.start()
    eventually(lambda: len(heard) > 1)  # it is at work, and says so
    os.kill(process.pid, signal.SIGKILL)
    asker.join(60)
    assert [str(error) for error in failed] == ["the solver process ended before its answer"]
    assert ended(warm.child) == -signal.SIGKILL
    warm.child.start()
    assert warm.solver.solve(toy_problem(), time_limit=30 * SECOND, seed=1).proven


def test_without_any_process_a_greedy_answer_is_given() -> None:
    nobody = PoolSolver(process_queue.new_address("solver"))
    with pytest.raises(Busy, match="no solver is running"):
        nobody.solve(toy_problem(), time_limit=SECOND, seed=1)
    outcome = Portfolio(nobody).solve(packing(6, 4), time_limit=SECOND, seed=1)
    assert outcome.verdict is Verdict.FEASIBLE
    assert outcome.solver == "greedy"


def test_a_solver_that_misbehaves_costs_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with pool("badsolvers:Worst") as made:
        with pytest.raises(process_queue.ProcessFailed):
            made.solver.solve(packing(5, 3), time_limit=20 * SECOND, seed=1)
        assert made.solver.solve(toy_problem(), time_limit=20 * SECOND, seed=1).proven

        with pytest.raises(Busy, match="ended before its answer"):
            made.solver.solve(packing(4, 3), time_limit=20 * SECOND, seed=1)
        assert ended(made.child) == OVERRUN
        made.child.start()
        assert made.solver.solve(toy_problem(), time_limit=20 * SECOND, seed=1).proven

        with pytest.raises(Busy, match="past its time limit"):
            made.solver.solve(packing(3, 3), time_limit=SECOND, seed=1)
        assert ended(made.child) == OVERRUN
        assert made.child.failures == 2
