"""A database that goes away under load, and one that another version of the program has changed."""

import sqlite3
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.hostile.conftest import call, create, names
from tests.servers.postgres import PostgresServer

from moorage.domain.errors import InvalidDescription
from moorage.store import open_store

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_a_database_that_is_away_makes_it_unready_and_loses_nothing(
    start: Any, postgres_server: PostgresServer
) -> None:
    service = start("--database", postgres_server.url, "--log-level", "warning")
    service.eventually(lambda: service.get("/readyz")[0] == 200)
    acknowledged: set[str] = set()
    statuses: set[int] = set()
    told: set[str] = set()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            name = str(uuid.uuid4())
            status, body = create(service.port, name)
            statuses.add(status)
            if status == 503:
                told.add(body["errors"][0]["detail"])
            if status == 201:
                acknowledged.add(name)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        service.eventually(lambda: len(acknowledged) > 20)
        postgres_server.end()
        service.eventually(lambda: service.get("/readyz")[1]["checks"]["database"] == "not ready")
        assert service.get("/healthz") == (200, {"status": "alive"})
        assert call(service.port, "GET", "/placement/")[0] == 200  # which versions there are
        service.eventually(lambda: any("the database is away" in one for one in told))
        service.eventually(lambda: "background work waits" in service.log.read_text())
        postgres_server.start()
        service.eventually(lambda: service.get("/readyz")[0] == 200)
        before = len(acknowledged)
        service.eventually(lambda: len(acknowledged) > before + 20)
        service.eventually(lambda: "background work goes on" in service.log.read_text())
    finally:
        stop.set()
        for writer in writers:
            writer.join(60)
    assert statuses == {201, 503}
    assert acknowledged <= names(service.port)
    log = service.log.read_text()
    assert "not ready: database" in log
    assert "ready again: database" in log
    # One outage is few lines, however many loops and requests met it, and no traceback.
    assert "Traceback" not in log
    for line in ("background work waits", "background work goes on"):
        assert log.count(line) == 1, log
    # Each process gives each reason once.
    reasons = [
        (line.split()[2], line.partition(" is away: ")[2])
        for line in log.splitlines()
        if " is away: " in line
    ]
    assert len(reasons) == len(set(reasons)) > 0, log
    # Where the database is and what its driver says is for the log only.
    assert str(postgres_server.port) in log
    in_doubt = "the database broke off while committing; look before trying again"
    words = {one.rpartition("\n")[2].strip() for one in told}
    assert words - {in_doubt} == {"the database is away"}


def test_a_database_of_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    open_store(url).close()
    with sqlite3.connect(tmp_path / "ledger.db") as other:
        other.execute("UPDATE alembic_version SET version_num = '9999'")
    other.close()
    with pytest.raises(InvalidDescription, match="schema is 9999, which this program does not"):
        open_store(url)
