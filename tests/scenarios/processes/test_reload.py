"""SIGHUP: every process is replaced, one after the other, and no client notices."""

import signal
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Self

import pytest
import requests

pytestmark = pytest.mark.process

HTTP = "moorage.http.worker_process"
SOLVER = "moorage.solver.solver_process"
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.36"}
DONE = "reload finished"


def reload(service: Any) -> None:
    """Replace every process, and wait until the old ones have left."""
    before = service.children("")
    done = service.log.read_text().count(DONE)
    service.process.send_signal(signal.SIGHUP)
    service.eventually(lambda: service.log.read_text().count(DONE) > done)
    service.eventually(lambda: not any(service.alive(pid) for pid in before))
    service.eventually(lambda: len(service.children("")) == len(before))  # they are reaped


class Clients:
    """Threads that read and write all the time, some over connections that they keep."""

    def __init__(self, port: int, number: int) -> None:
        self._url = f"http://127.0.0.1:{port}/placement/resource_providers"
        self._capacity = f"http://127.0.0.1:{port}/v1/capacity"
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(i,)) for i in range(number)]
        self.failed: list[str] = []
        self.made: set[str] = set()
        self.answered = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _work(self, number: int) -> None:
        with requests.Session() as session:  # it retries nothing
            session.headers.update(HEADERS)
            while not self._stop.is_set():
                self._ask(session)
                if number % 2:  # some come anew each time
                    session.close()
                time.sleep(0.15 if number % 4 else 0.05)

    def _ask(self, session: requests.Session) -> None:
        name = str(uuid.uuid4())
        try:
            answer = session.post(self._url, json={"name": name, "uuid": name}, timeout=60)
            assert answer.status_code == 200, answer.text
            self.made.add(name)
            answer = session.get(f"{self._url}/{name}", timeout=60)
            assert answer.status_code == 200, answer.text
            answer = session.get(self._capacity, timeout=60)  # by a planner
            assert answer.status_code == 200, answer.text
        except (requests.RequestException, AssertionError) as error:
            self.failed.append(repr(error))
        self.answered += 1


@pytest.mark.parametrize(
    ("workers", "times"), [("1", 2), pytest.param("2", 1, marks=pytest.mark.nightly)]
)
def test_no_request_fails_while_every_process_is_replaced(
    start: Any, workers: str, times: int
) -> None:
    service = start("--workers", workers, "--planners", "1", "--log-level", "warning")
    service.eventually(lambda: len(service.children(HTTP)) == int(workers))
    with Clients(service.port, 4) as clients:
        for _ in range(times):
            service.eventually(lambda n=clients.answered: clients.answered > n + 10)
            reload(service)
        service.eventually(lambda n=clients.answered: clients.answered > n + 10)
    assert clients.failed == []
    _, listed = service.get("/placement/resource_providers", **{"X-Auth-Token": "admin"})
    assert {one["uuid"] for one in listed["resource_providers"]} == clients.made
    assert "Traceback" not in service.log.read_text()
    service.process.send_signal(signal.SIGTERM)
    assert service.ended() == 0


def test_a_request_under_way_is_answered_by_the_process_that_took_it(start: Any) -> None:
    service = start("--log-level", "warning")
    [worker] = service.children(HTTP)
    idle = service.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert b"connection: close" not in idle.recv(4096)
    body = b'{"name": "last"}'
    series_in_progress = service.raw(
        b"POST /placement/resource_providers HTTP/1.1\r\nHost: a\r\nX-Auth-Token: admin\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body[:-1])
    )
    kept = service.raw(b"")
    service.process.send_signal(signal.SIGHUP)

    def last_answer_on_kept() -> bool:
        """One that says so: without a request for some seconds, it would be closed like `idle`."""
        kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = kept.recv(4096)
        assert answer.startswith(b"HTTP/1.1 200")
        return b"connection: close" in answer

    service.eventually(last_answer_on_kept)
    service.eventually(lambda: DONE in service.log.read_text())
    assert service.alive(worker)
    assert service.get("/healthz") == (200, {"status": "alive"})  # by its successor
    assert idle.recv(4096) == b""  # closed: nothing came on it for some seconds
    assert service.alive(worker)
    series_in_progress.sendall(body[-1:])
    answer = series_in_progress.recv(4096)
    assert answer.startswith(b"HTTP/1.1 201")
    assert b"connection: close" in answer
    service.eventually(lambda: not service.alive(worker))
    for connection in (idle, kept, series_in_progress):
        connection.close()


def test_settings_are_read_again_and_bad_ones_change_nothing(start: Any, tmp_path: Path) -> None:
    settings = tmp_path / "own.conf"
    settings.write_text("[DEFAULT]\nbody_limit = 20\nlog_level = warning\n")
    service = start("--config-file", str(settings), "--planners", "1")
    before = service.children("")

    def create() -> int:
        body = {"name": "a-name-that-is-rather-long"}
        url = f"http://127.0.0.1:{service.port}/placement/resource_providers"
        return requests.post(url, json=body, headers=HEADERS, timeout=60).status_code

    assert create() == 413
    for wrong, words in (
        ("body_limit = much\n", "body_limit"),
        ("pid_file = elsewhere\n", "setting pid_file"),
        ("tls_cert = none\ntls_key = none\n", "cannot use certificate none"),
    ):
        settings.write_text(f"[DEFAULT]\nlog_level = warning\n{wrong}")
        service.process.send_signal(signal.SIGHUP)
        service.eventually(
            lambda words=words: any(
                "reload refused" in line and words in line
                for line in service.log.read_text().splitlines()
            )
        )
    assert service.children("") == before
    assert create() == 413
    settings.write_text("[DEFAULT]\nbody_limit = 64K\nlog_level = warning\nworkers = 2\n")
    service.process.send_signal(signal.SIGHUP)
    service.eventually(lambda: DONE in service.log.read_text())
    assert len(service.children(HTTP)) == 2
    service.eventually(lambda: not any(service.alive(pid) for pid in before))
    assert create() == 200
    settings.write_text("[DEFAULT]\nlog_level = warning\n")
    reloaded = service.log.read_text().count(DONE)
    service.process.send_signal(signal.SIGHUP)
    service.eventually(lambda: service.log.read_text().count(DONE) > reloaded)
    service.eventually(lambda: len(service.children("")) == len(before))
    # Each process tells of itself once; none that has left is shown.
    page = requests.get(f"http://127.0.0.1:{service.port}/metrics", timeout=60).text
    shown = [line for line in page.splitlines() if line.startswith("moorage_ready{")]
    names = {line.partition('worker="')[2].partition('"')[0] for line in shown}
    assert [name for name in names if not name.startswith("planner-")] == [min(names)], shown
    assert len(names) == len(before) - 1, shown  # a solver tells nothing


def test_processes_that_cannot_start_leave_the_old_ones_in_their_place(
    start: Any, tmp_path: Path
) -> None:
    settings = tmp_path / "own.conf"
    settings.write_text("[DEFAULT]\nlog_level = warning\n")
    service = start("--config-file", str(settings))
    before = service.children("")
    settings.write_text("[DEFAULT]\nlog_level = warning\npolicy_file = none\n")
    service.process.send_signal(signal.SIGHUP)
    service.eventually(lambda: "reload stopped" in service.log.read_text())
    assert service.children("") == before
    assert service.get("/healthz") == (200, {"status": "alive"})


@pytest.mark.nightly
def test_it_can_be_stopped_while_it_reloads(start: Any) -> None:
    service = start("--workers", "2", "--planners", "1", "--log-level", "warning")
    service.eventually(lambda: len(service.children(HTTP)) == 2)
    for pause in (0.0, 0.3, 1.0):
        service.process.send_signal(signal.SIGHUP)
        time.sleep(pause)
    everybody = service.children("")
    service.process.send_signal(signal.SIGTERM)
    assert service.ended() == 0
    assert not any(service.alive(pid) for pid in everybody)
    assert not service.answers()
    assert "Traceback" not in service.log.read_text()
