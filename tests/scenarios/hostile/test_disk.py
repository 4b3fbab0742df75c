"""A full, a read-only and a damaged disk: said to client and log, nothing half-written, mended."""

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.hostile.conftest import Isolated, call, create, names
from tests.scenarios.processes.conftest import child_pids, command_of, eventually

from moorage.domain.errors import Unavailable
from moorage.store.opening import connect

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_a_full_disk_refuses_writes_until_there_is_room(isolated: Callable[[], Isolated]) -> None:
    service = isolated()
    there = {f"host-{number}" for number in range(5)}
    assert {create(service.port, name)[0] for name in there} == {201}
    fill = f"head -c 100M /dev/zero > {service.disk}/ballast"
    assert "No space left" in service.inside("sh", "-c", fill).stderr
    tried: set[str] = set()
    status, body = 201, dict[str, Any]()
    while status == 201:
        name = f"late-{len(tried)}-{'x' * 150}"
        status, body = create(service.port, name)
        if status == 201:
            tried.add(name)
        assert len(tried) < 2000, "the disk is not full"
    assert status == 503, body
    assert "disk is full" in body["errors"][0]["detail"]
    service.logged("the ledger's file cannot be used: database or disk is full")
    assert names(service.port) == there | tried, "what was acknowledged, and nothing else"
    assert create(service.port, "x" * 200)[0] == 503
    eventually(lambda: call(service.port, "GET", "/readyz")[2]["checks"]["writes"] == "not ready")
    service.logged("not ready: writes: the ledger cannot be used: database or disk is full")
    said = service.log.read_text()
    assert said.count("the ledger's file cannot be used") == 1, said
    assert "Traceback" not in said
    assert service.inside("rm", f"{service.disk}/ballast").returncode == 0
    # Nobody need write for it to be noticed.
    eventually(lambda: call(service.port, "GET", "/readyz")[0] == 200)
    assert create(service.port, "afterwards")[0] == 201
    assert names(service.port) == there | tried | {"afterwards"}


@pytest.mark.nightly
def test_a_read_only_disk_is_said_at_the_start(isolated: Callable[[], Isolated]) -> None:
    service = isolated()
    assert create(service.port, "before")[0] == 201
    signal_workers(service, signal.SIGSTOP)  # so that nobody has the file open for writing
    ended = service.inside(
        *("sh", "-c", f'mount --bind -r {service.disk} {service.disk} && exec "$@"', "serve"),
        *(sys.executable, "-m", "moorage.cli.main", "serve", "--port", "0"),
        *("--database", f"sqlite:///{service.disk}/ledger.db"),
    )
    assert ended.returncode == 1
    assert "Read-only file system" in ended.stderr
    assert "Traceback" not in ended.stderr
    service.inside("umount", str(service.disk))
    signal_workers(service, signal.SIGCONT)
    assert names(service.port) == {"before"}
    assert create(service.port, "after")[0] == 201


@pytest.mark.nightly
def test_a_damaged_file_is_named_and_its_backup_is_served(
    isolated: Callable[[], Isolated],
) -> None:
    service = isolated()
    assert create(service.port, "good")[0] == 201
    file = service.disk / "ledger.db"
    service.sql(file, f"VACUUM INTO '{file}.kept'", "PRAGMA wal_checkpoint(TRUNCATE)")
    damage = f"head -c 300K /dev/urandom | dd of={file} bs=4k seek=1 conv=notrunc"
    assert service.inside("sh", "-c", damage).returncode == 0
    signal_workers(service, signal.SIGKILL)
    service.logged("malformed")
    assert "Traceback" not in service.log.read_text()
    restore = f"rm -f {file}-wal {file}-shm && cp {file}.kept {file}"
    assert service.inside("sh", "-c", restore).returncode == 0
    # The supervisor tries again by itself, less often each time.
    assert names(service.port) == {"good"}
    assert create(service.port, "after")[0] == 201


def test_a_file_that_cannot_be_written_any_more_is_no_mistake_of_ours(tmp_path: Path) -> None:
    backend = connect(f"sqlite:///{tmp_path}/ledger.db")

    def frozen(connection: Any) -> None:
        connection.exec_driver_sql("CREATE TABLE kept (x)")
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.exec_driver_sql("INSERT INTO kept VALUES (1)")

    try:
        with pytest.raises(Unavailable, match="attempt to write a readonly database"):
            backend.write(frozen)
    finally:
        backend.close()


def signal_workers(service: Isolated, how: signal.Signals) -> None:
    for pid in child_pids(service.process.pid):
        # Planners have the file open as workers have.
        if re.search(r"http\.(worker|planner)", command_of(pid)):
            os.kill(pid, how)
