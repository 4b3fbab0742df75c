"""Whatever dies, nothing is left behind and the service goes on or ends as it should."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.processes.conftest import command

pytestmark = pytest.mark.process

HTTP = "moorage.http.worker_process"
SOLVER = "moorage.solver.solver_process"
PLANNERS = 2


def test_one_line_when_it_answers_and_nothing_left_after_sigterm(
    start: Any, tmp_path: Path
) -> None:
    service = start("--pid-file", "moorage.pid", "--planners", str(PLANNERS))
    database = tmp_path / "data" / "moorage" / "moorage.db"
    assert service.line == (
        f"moorage: serving on http://127.0.0.1:{service.port} (database sqlite:///{database},"
        " auth noauth2, compute at /compute, native at /v1, placement at /placement,"
        " reservation at /reservation, web at /ui)\n"
    )
    ready = dict.fromkeys(("database", "schema", "writes", "solver", "planner"), "ready")
    service.eventually(lambda: service.get("/readyz")[0] == 200)
    assert service.get("/readyz") == (200, {"status": "ready", "checks": ready})
    assert database.stat().st_size > 0
    assert database.parent.stat().st_mode & 0o077 == 0
    assert (tmp_path / "moorage.pid").read_text() == f"{service.process.pid}\n"
    service.eventually(lambda: len(service.children("")) == 2 + PLANNERS)
    children = service.children("")

    service.process.send_signal(signal.SIGTERM)
    assert service.ended() == 0
    assert not any(service.alive(pid) for pid in children)
    assert not service.answers()
    assert not (tmp_path / "moorage.pid").exists()
    page = f"moorage: the page is at http://127.0.0.1:{service.port}/ui\n"
    assert service.process.stdout.read() == page
    assert "Traceback" not in service.log.read_text()


def test_the_supervisor_killed_takes_everybody_along(start: Any) -> None:
    service = start("--planners", str(PLANNERS))
    service.eventually(lambda: len(service.children("")) == 2 + PLANNERS)
    children = service.children("")
    os.kill(service.process.pid, signal.SIGKILL)
    service.ended()
    service.eventually(lambda: not any(service.alive(pid) for pid in children))
    service.eventually(lambda: not service.answers())


def test_dead_children_are_replaced_and_ctrl_c_ends_all(start: Any) -> None:
    service = start("--workers", "2")
    service.eventually(lambda: len(service.children(HTTP)) == 2)
    workers, [solver] = service.children(HTTP), service.children(SOLVER)

    def both_have_answered() -> bool:
        service.get("/healthz")
        lines = [line for line in service.log.read_text().splitlines() if "/healthz" in line]
        return {int(line.split()[2]) for line in lines} >= set(workers)

    service.eventually(both_have_answered)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    os.kill(solver, signal.SIGKILL)
    # The port never closes: this request waits for the next worker instead of being refused.
    assert service.get("/healthz") == (200, {"status": "alive"})
    service.eventually(lambda: not {*workers, solver} & set(service.children("")))
    service.eventually(lambda: len(service.children(HTTP)) == 2)
    service.eventually(lambda: service.children(SOLVER))

    # Ctrl-C reaches the terminal's whole group; only the supervisor is in it.
    groups = {os.getpgid(pid) for pid in service.children("")}
    assert os.getpgid(service.process.pid) not in groups
    service.process.send_signal(signal.SIGINT)
    assert service.ended() == 130
    assert not service.answers()
    assert "Traceback" not in service.log.read_text()


def test_requests_under_way_are_finished_before_the_end_and_idle_clients_left(
    start: Any, tmp_path: Path
) -> None:
    service = start("--planners", "1")
    idle = service.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert idle.recv(4096).startswith(b"HTTP/1.1 200")
    half_a_head = service.raw(b"GET /healthz HTTP/1.1\r\nHo")
    series_in_progress = service.raw(
        b"POST /placement/resource_providers HTTP/1.1\r\nHost: a\r\nX-Auth-Token: admin\r\n"
        b'Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{"name":'
    )
    service.get("/healthz")
    service.process.send_signal(signal.SIGTERM)
    # Nobody waits at a port where nobody accepts; another service may have it already.
    service.eventually(lambda: not service.answers())
    assert service.process.poll() is None
    socket.create_server(("127.0.0.1", service.port)).close()
    series_in_progress.sendall(b' "last"}')
    assert series_in_progress.recv(4096).startswith(b"HTTP/1.1 201")
    assert service.ended() == 0
    assert "HTTP worker 1 did not exit after SIGTERM" not in service.log.read_text()
    for connection in (idle, half_a_head, series_in_progress):
        connection.close()
    # Whoever copies the file of a stopped service has everything.
    database = tmp_path / "data" / "moorage" / "moorage.db"
    assert not database.with_name("moorage.db-wal").exists()
    alone = tmp_path / "alone.db"
    alone.write_bytes(database.read_bytes())
    with contextlib.closing(sqlite3.connect(alone)) as kept:
        assert kept.execute("SELECT name FROM providers").fetchall() == [("last",)]


def test_a_frozen_child_does_not_keep_the_service_from_ending(start: Any) -> None:
    service = start()
    [worker] = service.children(HTTP)
    os.kill(worker, signal.SIGSTOP)
    service.process.send_signal(signal.SIGTERM)
    assert service.ended() == 0
    assert not service.alive(worker)
    assert "HTTP worker 1 did not exit after SIGTERM: killed" in service.log.read_text()


def test_too_few_open_files_are_said_plainly() -> None:
    words = ["bash", "-c", 'ulimit -n 64 && exec "$@"', "-", *command("--port", "0")]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "the limit on open files is 64, but a worker with 16 threads needs 528" in ended.stderr
    assert "ulimit -n 65536" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_in_use_is_said_plainly(shared: Any, run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        for port in (shared.port, other.getsockname()[1]):
            ended = run("--port", str(port))
            assert ended.returncode == 1
            assert ended.stdout == ""
            said = f"cannot listen on 127.0.0.1 port {port}: Address already in use\n"
            assert ended.stderr == said


@pytest.mark.parametrize(
    ("database", "status", "words"),
    [
        ("sqlite:////nowhere/at/all/x.db", 1, "/nowhere/at/all"),
        ("sqlite:///text.db", 1, "not a database"),
        ("postgresql://user:secret@127.0.0.1:1/x", 1, "the database is away"),
        ("oracle://user:secret@127.0.0.1/x", 2, "no support for oracle"),
    ],
)
def test_a_database_that_cannot_be_opened_ends_it(
    run: Any, tmp_path: Path, database: str, status: int, words: str
) -> None:
    (tmp_path / "text.db").write_text("once upon a time")
    ended = run("--port", "0", "--database", database)
    assert ended.returncode == status
    assert ended.stdout == ""
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "secret" not in ended.stderr
