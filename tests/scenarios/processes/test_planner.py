"""A planner process: what it is told, how it ends, and that nobody waits for it for ever."""

import io
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.processes.conftest import eventually
from tests.scenarios.processes.test_silence import LOG, Watched, watched

from moorage.domain import deadline
from moorage.domain.errors import Busy
from moorage.http import process_queue
from moorage.http.planner_client import PlannerAnswer, PlannerClient
from moorage.http.process_status import Column
from moorage.usecases.ports import Caller

pytestmark = pytest.mark.process

ANN = Caller("ann", "project-a", frozenset({"member"}), "req-1")
THREADS = 9


@dataclass
class Planning:
    """A planner process, and those who hand it requests."""

    found: Watched
    planners: PlannerClient
    gate: Path
    """What waits goes on once it exists."""

    def ask(self, path: str = "/", **more: str) -> PlannerAnswer:
        """What it answers to a request of Ann's."""
        environ: dict[str, Any] = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "moorage.mount": "native",
            "moorage.request_id": "req-1",
            "moorage.caller": ANN,
            "wsgi.input": io.BytesIO(b"a body"),
            **more,
        }
        with deadline.within(time.monotonic, 60):
            return self.planners(environ)

    def told(self, path: str = "/", **more: str) -> Any:
        """What the application in it was told."""
        return json.loads(self.ask(path, **more).body)

    def begun(self, number: int) -> None:
        """Wait until it works on so many."""
        eventually(lambda: self.found.row[Column.CONNECTIONS] == number)


@contextmanager
def planning(*, stuck_seconds: float = 60.0) -> Iterator[Planning]:
    with tempfile.TemporaryDirectory() as directory:
        yield from _planning(Path(directory) / "gate", stuck_seconds)


def _planning(gate: Path, stuck_seconds: float) -> Iterator[Planning]:
    address = process_queue.new_address("planner")
    with process_queue.listen(address, 100) as queue:
        config = {
            "application": "stuck:dialects",
            "settings": {"gate": str(gate)},
            "listener": queue.fileno(),
            "threads": THREADS,
            "stuck_seconds": stuck_seconds,
            "log": LOG,
        }
        with watched("moorage.http.planner_process:main", config, queue.fileno()) as found:
            yield Planning(found, PlannerClient(address), gate)


@pytest.fixture(scope="module")
def running() -> Iterator[Planning]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with planning() as made:
            yield made


@pytest.fixture(autouse=True)
def _finds_the_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


class Asking(threading.Thread):
    """A request that waits for its answer."""

    def __init__(self, planning: Planning, path: str, **more: str) -> None:
        super().__init__()
        self._planning, self._path, self._more = planning, path, more
        self.answer: PlannerAnswer | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self._planning.ask(self._path, **self._more)
        except (Busy, process_queue.ProcessFailed) as error:
            self.error = error


def test_it_is_told_who_asks_by_the_worker_and_never_by_a_header(running: Planning) -> None:
    forged = {
        f"HTTP_{name}": json.dumps({"user_id": "eve", "project_id": "other", "roles": ["admin"]})
        for name in ("MOORAGE.CALLER", "MOORAGE_CALLER", "CALLER", "X_PROJECT_ID", "X_ROLES")
    }
    names = ("HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN", "HTTP_COOKIE")
    secret = dict.fromkeys(names, "secret")
    answer = running.ask("/some", QUERY_STRING="a=b", **forged, **secret)
    assert (answer.status, answer.headers[0]) == ("201 Created", ("x-said", "1"))
    told = json.loads(answer.body)
    assert (told["project"], told["roles"]) == ("project-a", ["member"])
    assert told["body"] == "a body"
    assert 0 < told["left"] <= 60, "the clock goes on in the other process"
    assert told["request"] == "req-1"
    environ = told["environ"]
    assert (environ["PATH_INFO"], environ["QUERY_STRING"]) == ("/some", "a=b")
    assert "secret" not in environ.values(), "no token leaves the worker"


def test_it_gives_way_to_http_workers(running: Planning) -> None:
    pid = running.found.pids[-1]
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(own + 5, 19)


def test_a_head_is_worked_on_as_a_get(running: Planning) -> None:
    assert running.told(REQUEST_METHOD="HEAD")["environ"]["REQUEST_METHOD"] == "GET"


def test_all_that_one_project_may_have_leaves_room_for_others(running: Planning) -> None:
    slow = [Asking(running, "/wait") for _ in range(THREADS - 1)]
    running.begun(THREADS - 1)
    assert running.told()["project"] == "project-a", "another one is answered meanwhile"
    assert all(one.is_alive() for one in slow)
    running.gate.touch()
    for one in slow:
        one.join(60)
    running.gate.unlink()
    assert all(one.answer is not None for one in slow)


def test_what_goes_wrong_in_it_costs_one_answer(running: Planning) -> None:
    with pytest.raises(process_queue.ProcessFailed):
        running.ask("/fail")
    rude = process_queue.ProcessPool("planner", running.planners.address).connect()
    with rude:
        assert rude.poll(20)
        rude.send_bytes(b"nonsense")
        assert [rude.recv_bytes(), rude.recv_bytes()] == [process_queue.READY, process_queue.FAILED]
    gone = process_queue.ProcessPool("planner", running.planners.address).connect()
    gone.close()
    assert running.told()["project"] == "project-a"


def test_without_any_process_the_answer_is_busy() -> None:
    nobody = PlannerClient(process_queue.new_address("planner"))
    with deadline.within(time.monotonic, 1.0), pytest.raises(Busy, match="no planner is running"):
        nobody({"REQUEST_METHOD": "GET", "moorage.caller": ANN, "wsgi.input": io.BytesIO()})


def test_one_that_is_killed_costs_what_it_works_on_and_nothing_that_waits() -> None:
    with planning() as made:
        slow = [Asking(made, "/wait") for _ in range(3)]
        made.begun(3)
        os.kill(made.found.pids[0], signal.SIGSTOP)
        waits = Asking(made, "/")
        os.kill(made.found.pids[0], signal.SIGKILL)
        for one in slow:
            one.join(60)
            assert isinstance(one.error, Busy)
            assert one.error.retry_after > 0
            assert "planner process ended before its answer" in str(one.error)
        eventually(made.found.is_replaced, 60)
        waits.join(60)
        assert waits.answer is not None
        assert made.told()["project"] == "project-a"


@pytest.mark.parametrize("way", ["stopped", "held", "stuck"])
def test_one_that_does_not_go_on_is_replaced(way: str) -> None:
    with planning(stuck_seconds=1.0 if way == "stuck" else 60.0) as made:
        asking = Asking(made, "/hold" if way == "held" else "/wait")
        if way != "held":
            made.begun(1)
        if way == "stopped":
            os.kill(made.found.pids[0], signal.SIGSTOP)
        eventually(made.found.is_replaced, 60)
        asking.join(60)
        assert isinstance(asking.error, Busy)
        assert made.told()["project"] == "project-a"
        assert made.found.row[Column.REPLACED] == 1


def test_one_with_a_request_past_its_own_limit_is_replaced() -> None:
    with planning() as made:
        latest = 1000 * (time.monotonic() + 30)
        asking = Asking(made, "/limit", limit="0.5")  # the service allows 60 s
        eventually(lambda: 0 < made.found.row[Column.DUE] < latest)
        eventually(made.found.is_replaced, 60)
        asking.join(60)
        assert isinstance(asking.error, Busy)
        assert made.found.row[Column.REPLACED] == 1
        assert made.found.row[Column.DUE] == 0


def test_one_whose_request_has_committed_is_left_to_answer() -> None:
    with planning() as made:
        asking = Asking(made, "/commit", limit="1.5")
        made.begun(1)
        eventually(lambda: not made.found.row[Column.DUE])
        assert made.told()["project"] == "project-a"
        asking.join(60)
        assert asking.answer is not None


def test_one_that_is_told_to_leave_answers_what_it_has_and_takes_nothing_new() -> None:
    with planning() as made:
        slow = Asking(made, "/wait")
        made.begun(1)
        first = made.found.child.process
        assert first is not None
        made.found.child.drain()
        eventually(lambda: not made.found.row[Column.ACCEPTS])
        waits = Asking(made, "/")
        made.gate.touch()
        slow.join(60)
        assert slow.answer is not None
        assert first.wait(60) == 0
        assert waits.is_alive(), "it waits for the next one"
        eventually(made.found.is_replaced, 60)
        waits.join(60)
        assert waits.answer is not None
