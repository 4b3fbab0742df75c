"""PostgreSQL: opening, dumps, migrations beside a running process, what is logged of an outage."""

import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.servers.postgres import Databases, PostgresServer
from tests.servers.proxy import Proxy
from tests.store.hosts import claim, host, used

from moorage.domain.changes import Changeset, CreateProvider
from moorage.domain.errors import Busy, ConsumerConflict, InvalidDescription
from moorage.logs import Lasting
from moorage.store import open_store
from moorage.store.database import retry


def test_a_database_that_is_not_there_is_a_clear_error(postgres_url: str) -> None:
    url = make_url(postgres_url).set(database="nowhere").render_as_string(hide_password=False)
    began = time.monotonic()
    with pytest.raises(InvalidDescription, match='"nowhere" does not exist'):
        open_store(url)
    assert time.monotonic() - began < retry.AWAY, "nothing to wait for"


def test_a_url_may_say_postgres(postgres_url: str) -> None:
    with closing(open_store(postgres_url.replace("postgresql://", "postgres://", 1))) as store:
        host(store, "a")
        assert store.snapshot().row_of.keys() == {"a"}


def test_text_that_it_cannot_store_is_told_as_that(postgres_url: str) -> None:
    """And not as a database that is away."""
    with closing(open_store(postgres_url)) as store:
        for text in ("a\0b", "a\ud800b"):
            with pytest.raises(InvalidDescription, match="a text holds"):
                store.commit(Changeset((CreateProvider("a", text),)))
            with pytest.raises(InvalidDescription, match="a text holds"):
                store.consumer(text)
        host(store, "a")


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


def test_the_log_says_each_reason_of_one_outage_once(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "AWAY", 0.3)
    monkeypatch.setattr(retry, "_lasting", Lasting())  # what other tests met was said before
    url = make_url(postgres_url)
    role = f"{url.database}_role"
    with (
        psycopg.connect(postgres_url, autocommit=True) as admin,
        Proxy(url.port or 5432) as proxy,
    ):
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
        assert len(said) == len(set(said)), said
        assert "not permitted to log in" in said[-1]
        assert len(said) > 1
        admin.execute(f"ALTER ROLE {role} LOGIN")
        store.now()
        store.close()
        admin.execute(f"DROP ROLE {role}")
