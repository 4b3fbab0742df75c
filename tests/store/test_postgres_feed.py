"""The feed on PostgreSQL: nothing committed is missed, in whatever order commits end (ADR-0007)."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from tests.store.hosts import claim, generations, host, loads, opened

from moorage.store import Ledger
from moorage.store.postgresql import log

HOSTS = ("a", "b", "c", "d")


@pytest.fixture
def store(postgres_url: str) -> Iterator[Ledger]:
    with opened(postgres_url) as one:
        for name in HOSTS:
            host(one, name)
        yield one


@contextmanager
def slow_writer(url: str, provider: str) -> Iterator[psycopg.Connection]:
    """A commit that has its number and has written, and does not end yet."""
    with psycopg.connect(url) as connection:
        begun = connection.execute(
            "SELECT number FROM moorage_begin(false, '{}', '{}', '{}', ARRAY[%s], '{}')",
            (provider,),
        ).fetchone()
        assert begun is not None
        connection.execute(
            "UPDATE providers SET revision = revision + 1, generation = 1000 WHERE uuid = %s",
            (provider,),
        )
        connection.execute("INSERT INTO changes VALUES (%s, %s, true, 0)", (begun[0], provider))
        yield connection


def test_a_commit_that_ends_after_later_ones_is_seen(postgres_url: str, store: Ledger) -> None:
    before = store.snapshot()
    with slow_writer(postgres_url, "a") as connection:
        store.commit(claim("c1", "b"))
        between = store.snapshot()
        assert generations(store)["a"] == 1, "not before its end"
        store.commit(claim("c2", "c"))
        assert generations(store)["c"] == 2
        latest = store.snapshot()
        connection.commit()
    assert generations(store)["a"] == 1000
    final = store.snapshot()
    assert before.revision < between.revision < latest.revision < final.revision


def test_a_commit_that_never_ends_is_not_seen(postgres_url: str, store: Ledger) -> None:
    with slow_writer(postgres_url, "a") as connection:
        store.commit(claim("c1", "b"))
        assert generations(store)["b"] == 2
        connection.rollback()
    store.commit(claim("c2", "b"))
    assert generations(store) == {"a": 1, "b": 3, "c": 1, "d": 1}


def test_nothing_is_loaded_wholly_while_the_line_stands(
    store: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = loads(monkeypatch)
    store.snapshot()
    for number in range(5):
        store.commit(claim(f"c{number}", "a"))
        store.snapshot()
    assert loaded == ["everything"]
    store._backend._log_connection._connection.close()  # type: ignore[attr-defined]
    assert generations(store)["a"] == 6
    assert loaded == ["everything"] * 2, "after a break nothing of before is relied on"


def test_the_log_is_not_cut_over_a_commit_that_has_not_ended(
    postgres_url: str, store: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "TRIM_EVERY", 5)
    monkeypatch.setattr(log, "KEPT", 3)
    with slow_writer(postgres_url, "a") as connection, opened(postgres_url) as sleeper:
        sleeper.snapshot()
        for number in range(20):
            store.commit(claim(f"c{number}", "b"))
        assert generations(sleeper)["b"] == 21
        connection.commit()
        assert generations(sleeper)["a"] == 1000


def test_a_copy_from_another_server_is_followed(postgres_url: str, store: Ledger) -> None:
    """Restored from a dump, the log speaks of transactions that are still to come."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE changes SET revision = revision + 1000000000")
        connection.execute("UPDATE ledger SET log_start = 1000000000")
    with opened(postgres_url) as restored, psycopg.connect(postgres_url) as connection:
        restored.commit(claim("c", "a"))
        assert generations(restored)["a"] == 2
        row = connection.execute("SELECT max(revision) FROM changes").fetchone()
        assert row is not None
        assert row[0] < 1_000_000_000
        restored.commit(claim("c2", "a"))
        assert generations(restored)["a"] == 3
