"""PostgreSQL: opening, a server that goes and comes back, commits whose end nobody heard."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Literal

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, make_url
from tests.servers.postgres import Databases, PostgresServer
from tests.servers.proxy import Proxy

from moorage.domain.changes import Changeset, CreateProvider, PutInventories, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import Busy, ConsumerConflict, InvalidDescription
from moorage.domain.providers import Inventory
from moorage.logs import Lasting
from moorage.store import Ledger, open_store, patience, tables
from moorage.store.opening import connect
from moorage.store.upgrade import upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator


def host(store: Ledger, name: str, total: int = 1_000_000) -> None:
    stock = PutInventories(name, (Inventory("VCPU", total),), None)
    store.commit(Changeset((CreateProvider(name, name), stock)))


def claim(consumer: str, provider: str = "a") -> Changeset:
    change = ReplaceAllocations(Consumer(consumer), {provider: {"VCPU": 1}}, None)
    return Changeset((change,))


def used(store: Ledger) -> int:
    return int(store.snapshot().classes["VCPU"].used.sum())


# --- opening ------------------------------------------------------------------------------------


def test_migrations_make_exactly_the_tables_of_the_code(postgres_databases: Databases) -> None:
    backend = connect(postgres_databases.empty())

    def work(connection: Connection) -> None:
        upgrade(connection, now=1)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []

    backend.upgrade(work)
    backend.close()


def test_a_database_that_is_not_there_is_a_clear_error(postgres_url: str) -> None:
    url = make_url(postgres_url).set(database="nowhere").render_as_string(hide_password=False)
    began = time.monotonic()
    with pytest.raises(InvalidDescription, match='"nowhere" does not exist'):
        open_store(url)
    assert time.monotonic() - began < patience.AWAY / 2, "nothing to wait for"


def test_a_server_that_is_not_there_is_waited_for_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "AWAY", 0.3)
    with pytest.raises(Busy, match="the database is away"):
        open_store("postgresql://postgres@127.0.0.1:1/nowhere")


def test_the_clock_is_the_databases(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica whose own clock is hours off books and lapses like all others."""
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    store = open_store(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    assert row is not None
    before = int(float(row[0]) * 1e6)
    host(store, "a")
    at = store.commit(claim("c")).at
    assert before <= at <= store.now() < before + 60_000_000
    assert before <= store.snapshot().taken_at <= store.now()
    store.close()


def test_a_dump_is_restored_on_another_server(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    """Whose transactions have lower numbers than those the log speaks of."""
    store = open_store(postgres_url)
    host(store, "a")
    for number in range(5):
        store.commit(claim(f"c{number}"))
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE changes SET revision = revision + 1000000")
    empty = Databases(postgres_server.url).empty()
    dump = f"/tmp/moorage-{make_url(empty).port}.dump"
    postgres_server.run("pg_dump", "--format=custom", f"--file={dump}", postgres_url)
    postgres_server.run("pg_restore", "--no-owner", f"--dbname={empty}", dump)
    Path(dump).unlink()
    restored = open_store(empty)
    assert used(restored) == 5
    restored.commit(claim("c5"))
    assert used(restored) == 6
    with pytest.raises(ConsumerConflict):
        restored.commit(claim("c0"))
    restored.close()
    store.close()


# --- commits whose end nobody heard -------------------------------------------------------------


def test_a_migration_beside_a_running_process_costs_it_no_request(postgres_url: str) -> None:
    """What was prepared before may not be run any more once a column has another type."""
    store = open_store(postgres_url)
    host(store, "a")
    for number in range(20):
        store.commit(claim(f"before-{number}"))
        assert store.consumer(f"before-{number}") is not None
    with psycopg.connect(postgres_url) as other:
        for column in ("project_id", "user_id", "type"):
            other.execute(f"ALTER TABLE consumers ALTER COLUMN {column} TYPE text")
        other.execute("ALTER TABLE bookings ALTER COLUMN resource_class TYPE text")
        other.execute("ALTER TABLE providers ALTER COLUMN name TYPE text")
    for number in range(20):
        store.commit(claim(f"after-{number}"))
        assert store.consumer(f"after-{number}") is not None
    assert used(store) == 40
    store.close()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(make_url(postgres_url).port or 5432) as one:
        yield one


@pytest.fixture
def through(postgres_url: str, proxy: Proxy) -> Iterator[Ledger]:
    """A ledger behind the proxy."""
    url = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port)
    store = open_store(url.render_as_string(hide_password=False))
    yield store
    store.close()


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_commit_cut_off_is_done_once_and_reported_as_done(
    through: Ledger, proxy: Proxy, cut: Literal["before", "after"]
) -> None:
    host(through, "a")
    proxy.cut = cut
    done = through.commit(claim("c"))
    assert proxy.cuts == 1
    assert done.consumer_generations == {"c": 1}
    assert used(through) == 1
    with pytest.raises(ConsumerConflict):
        through.commit(claim("c"))


def test_connections_that_break_between_requests_are_replaced(
    through: Ledger, proxy: Proxy
) -> None:
    host(through, "a")
    for number in range(5):
        proxy.hang_up()
        through.commit(claim(f"c{number}"))
        proxy.hang_up()
        assert used(through) == number + 1
        proxy.hang_up()
        assert through.now() > 0


def test_a_database_that_stays_away_is_busy_and_comes_back(
    through: Ledger, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(through, "a")
    monkeypatch.setattr(patience, "AWAY", 0.3)
    proxy.deaf = True
    proxy.hang_up()
    for ask in (through.snapshot, through.traits, lambda: through.commit(claim("c")), through.now):
        with pytest.raises(Busy) as busy:
            ask()
        assert busy.value.retry_after >= 1
    proxy.deaf = False
    through.commit(claim("c"))
    assert used(through) == 1


def test_the_log_says_each_reason_of_one_outage_once(
    postgres_url: str,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(patience, "AWAY", 0.3)
    monkeypatch.setattr(patience, "_lasting", Lasting())  # what other tests met was said before
    url = make_url(postgres_url)
    role = f"{url.database}_role"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
        mine = url.set(host="127.0.0.1", port=proxy.port, username=role)
        store = open_store(mine.render_as_string(hide_password=False))
        proxy.deaf = True
        proxy.hang_up()
        for refusing in (False, True):
            admin.execute(f"ALTER ROLE {role} {'NOLOGIN' if refusing else ''}")
            proxy.deaf = not refusing
            for _ in range(3):
                with pytest.raises(Busy, match=r"^the database is away$"):
                    store.now()
        said = [one.getMessage() for one in caplog.records if "is away" in one.getMessage()]
        assert len(said) == 2, said
        assert "not permitted to log in" in said[1]
        admin.execute(f"ALTER ROLE {role} LOGIN")
        store.now()
        store.close()
        admin.execute(f"DROP ROLE {role}")


# --- a server that is killed --------------------------------------------------------------------


def go_on(done: list[str], steps: int) -> None:
    """Wait until so many more are done."""
    enough, deadline = len(done) + steps, time.monotonic() + 30
    while len(done) < enough:
        assert time.monotonic() < deadline, "nobody gets on"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.process
def test_restarts_and_crashes_lose_nothing_acknowledged(postgres_server: PostgresServer) -> None:
    """Eight threads write through stops, kills of single backends and one kill of everything."""
    url = Databases(postgres_server.url).empty()
    store, stop = open_store(url), Event()
    host(store, "a")
    acknowledged: list[str] = []
    stale: list[str] = []
    errors: list[Exception] = []

    def write(number: int) -> None:
        turn = 0
        while not stop.is_set():
            name = f"w{number}-{turn}"
            turn += 1
            try:
                store.commit(claim(name))
                acknowledged.append(name)
                count = len(acknowledged)
                if used(store) < count - 8:  # others may not have counted theirs yet
                    stale.append(f"{used(store)} of {count}")
            except Busy:
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001 - told below
                errors.append(error)
                return

    writers = [Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    try:
        for turn in range(6):
            go_on(acknowledged, 20)
            if turn % 3 == 2:
                postgres_server.restart()
            else:
                with psycopg.connect(url) as connection:
                    victim = connection.execute(
                        "SELECT pid FROM pg_stat_activity WHERE application_name = 'moorage'"
                        " ORDER BY random() LIMIT 1"
                    ).fetchone()
                assert victim is not None
                postgres_server.kill_a_backend(victim[0])
                postgres_server.wait()
        go_on(acknowledged, 20)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors
    assert not stale
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(store.consumer, acknowledged))
    assert None not in found
    other = open_store(url)
    assert used(store) == used(other) >= len(acknowledged)
    other.close()
    store.close()
