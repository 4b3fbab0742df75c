"""A process that shows no sign of life is replaced, whatever holds it; a busy one is left alone."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.processes.conftest import eventually
from tests.scenarios.processes.test_solver_pool import packing

from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.http import process_queue, process_status
from moorage.http.child_process import ChildProcess, Program
from moorage.http.process_status import Column, ProcessStatus, Row
from moorage.http.supervisor import listen
from moorage.http.transport.limits import ConnectionLimits
from moorage.solver.pool import PoolSolver
from moorage.solver.warmup_problem import toy_problem

pytestmark = pytest.mark.process

SILENCE = 2.0
LOG = {"level": "info", "form": "text"}


@pytest.fixture(autouse=True)
def _finds_the_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@dataclass
class Watched:
    """A child that is looked after as the supervisor does it."""

    child: ChildProcess
    row: Row
    pids: list[int] = field(default_factory=list)

    def look(self) -> None:
        """What the supervisor does from time to time."""
        if self.child.ended() is not None or self.child.process is None:
            self.child.start()
        self.child.kill_if_silent(time.monotonic())
        assert self.child.process is not None
        if self.child.process.pid not in self.pids:
            self.pids.append(self.child.process.pid)

    def serves(self) -> bool:
        """Whether it serves, having been looked after."""
        self.look()
        return self.row[Column.BEATS] > 0

    def is_replaced(self) -> bool:
        """Whether another one serves in its place."""
        return self.serves() and len(self.pids) == 2


@contextmanager
def watched(target: str, config: dict[str, Any], *descriptors: int) -> Iterator[Watched]:
    """A child with a row of its own, which is up."""
    descriptor = process_status.make()
    status = ProcessStatus(descriptor)
    rows = {
        "moorage.http.worker_process:main": status.worker,
        "moorage.http.planner_process:main": status.planner,
        "moorage.solver.solver_process:main": status.solver,
    }[target]
    program = Program(
        "child",
        target,
        config | {"status": descriptor},
        (*descriptors, descriptor),
        status=rows,
        silence=SILENCE,
    )
    found = Watched(ChildProcess(program), rows(1))
    try:
        eventually(found.serves)
        yield found
    finally:
        os.close(descriptor)
        if found.child.process is not None:
            found.child.process.kill()
        found.child.finish(time.monotonic() + 5)


@contextmanager
def worker(**limits: Any) -> Iterator[tuple[Watched, int]]:
    """An HTTP worker that serves `stuck.application`, and its port."""
    given = ConnectionLimits(connections=50, threads=6, idle_seconds=60, body_seconds=60, running=3)
    config: dict[str, Any] = {
        "application": "stuck:application",
        "settings": {"slow": 4 * SILENCE},
        "limits": asdict(given) | limits,
        "tls": None,
        "log": LOG,
    }
    with listen("127.0.0.1", 0, 10) as listener:
        config["listener"] = listener.fileno()
        with watched("moorage.http.worker_process:main", config, listener.fileno()) as found:
            yield found, listener.getsockname()[1]


def ask(port: int, path: str) -> bytes:
    """What is answered; nothing if the worker dies."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        try:
            return b"".join(iter(lambda: client.recv(4096), b""))
        except ConnectionError:
            return b""


def ask_all(port: int, path: str, times: int) -> tuple[list[threading.Thread], list[bytes]]:
    """So many at once, and what is answered in the end."""
    answers: list[bytes] = []
    asking = [
        threading.Thread(target=lambda: answers.append(ask(port, path))) for _ in range(times)
    ]
    for one in asking:
        one.start()
    return asking, answers


def test_a_worker_whose_interpreter_is_held_is_replaced(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with worker() as (found, port):
        [asking], answers = ask_all(port, "/hold", 1)
        eventually(found.is_replaced)
        asking.join(60)
        assert answers == [b""]
        assert ask(port, "/").endswith(str(found.pids[1]).encode())
        assert found.row[Column.REPLACED] == 1
        assert f"child 1 (process {found.pids[0]}) sent no heartbeat for 2 s" in caplog.text
    # What it did is written down before it is killed.
    stacks = capfd.readouterr().err
    assert "(most recent call first):" in stacks
    assert "stuck.py" in stacks


def test_a_stopped_worker_is_replaced() -> None:
    with worker() as (found, port):
        os.kill(found.pids[0], signal.SIGSTOP)
        eventually(found.is_replaced)
        assert ask(port, "/").endswith(str(found.pids[1]).encode())


def test_a_worker_whose_requests_wait_for_each_other_is_replaced() -> None:
    with worker(stuck_seconds=1.0) as (found, port):
        asking, answers = ask_all(port, "/lock", 4)  # the first one gets it
        assert ask(port, "/").endswith(str(found.pids[0]).encode())
        eventually(found.is_replaced)
        for one in asking:
            one.join(60)
        assert sorted(map(len, answers))[:3] == [0, 0, 0]
        assert ask(port, "/").endswith(str(found.pids[1]).encode())


def test_a_worker_all_whose_threads_are_busy_is_left_alone() -> None:
    with worker(stuck_seconds=5 * SILENCE) as (found, port):
        asking, answers = ask_all(port, "/slow", 6)
        while any(one.is_alive() for one in asking):
            found.look()
            time.sleep(0.1)
        assert all(one.endswith(str(found.pids[0]).encode()) for one in answers)
        assert len(found.pids) == 1


def test_a_child_that_is_starting_is_left_alone() -> None:
    row = process_status.alone()
    child = ChildProcess(Program("child", "time:sleep", {}, status=lambda _: row, silence=SILENCE))
    child.start()
    try:
        for look in range(10):
            child.kill_if_silent(time.monotonic() + 2 * look)
        assert (child.silent, row[Column.REPLACED]) == (0, 0)
    finally:
        assert child.process is not None
        child.process.kill()
        child.finish(time.monotonic() + 5)


def test_a_pause_of_the_supervisor_is_no_silence_of_its_children() -> None:
    with worker() as (found, _):
        now = time.monotonic()
        found.child.kill_if_silent(now + 1)
        os.kill(found.pids[0], signal.SIGSTOP)  # all are paused, then the supervisor goes on first
        found.child.kill_if_silent(now + 1000)
        os.kill(found.pids[0], signal.SIGCONT)
        beats = found.row[Column.BEATS]
        eventually(lambda: found.row[Column.BEATS] > beats)
        found.child.kill_if_silent(now + 1002)
        assert found.child.silent == 0
        assert found.row[Column.REPLACED] == 0


def held_by(solver: PoolSolver) -> threading.Thread:
    """A request that waits for a solver which holds the interpreter."""

    def ask() -> None:
        with pytest.raises(Busy, match="ended before its answer"):
            solver.solve(packing(3, 2), time_limit=60 * SECOND, seed=1)

    asking = threading.Thread(target=ask)
    asking.start()
    return asking


@pytest.mark.parametrize("way", ["held", "stopped"])
def test_a_solver_that_is_held_or_stopped_is_replaced(way: str) -> None:
    address = process_queue.new_address("solver")
    with process_queue.listen(address, 2) as listener:
        config = {
            "solver": "stuck:Holding",
            "listener": listener.fileno(),
            "memory": 2**31,
            "number": 1,
            "log": LOG,
        }
        with watched("moorage.solver.solver_process:main", config, listener.fileno()) as found:
            solver = PoolSolver(address)
            asking = held_by(solver) if way == "held" else None
            if asking is None:
                os.kill(found.pids[0], signal.SIGSTOP)
            eventually(found.is_replaced)
            if asking is not None:
                asking.join(60)
            assert solver.solve(toy_problem(), time_limit=20 * SECOND, seed=1).proven


def test_the_service_replaces_whom_it_does_not_hear_and_counts_it(start: Any) -> None:
    service = start("--worker-timeout", "2s", "--log-level", "error")
    [worker], [solver] = (
        service.children("http.worker_process"),
        service.children("solver.solver_process"),
    )
    for pid in (worker, solver):
        os.kill(pid, signal.SIGSTOP)
    assert service.get("/healthz") == (200, {"status": "alive"})
    service.eventually(lambda: not service.alive(solver))
    log = service.log.read_text()
    assert f"HTTP worker 1 (process {worker}) sent no heartbeat for " in log
    assert f"solver 1 (process {solver}) sent no heartbeat for " in log
    with service.raw(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") as wire:
        metrics = b"".join(iter(lambda: wire.recv(65536), b"")).decode()
    assert 'moorage_processes_replaced_total{process="worker 1"} 1.0' in metrics
    assert 'moorage_processes_replaced_total{process="solver 1"} 1.0' in metrics
    assert 'moorage_worker_connections{worker="1"} ' in metrics
