"""The one value that nearly every request reads."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from moorage.store.sqlite.log import RevisionReader

READ = "SELECT n FROM counter"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in the mode the ledger uses; its name is one that a URI must quote."""
    path = tmp_path / "a ledger?#%41.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE counter (n INTEGER NOT NULL)")
        connection.execute("INSERT INTO counter VALUES (0)")
    return path


@pytest.fixture
def peek(file: Path) -> Iterator[RevisionReader]:
    """Closed in the end."""
    made = RevisionReader(file, READ)
    yield made
    made.close()


def test_sees_each_commit_of_another_connection(file: Path, peek: RevisionReader) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        for number in range(1, 100):
            writer.execute("UPDATE counter SET n = ?", (number,))
            assert peek() == number


def test_sees_nothing_of_a_transaction_that_is_not_committed(
    file: Path, peek: RevisionReader
) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE counter SET n = 7")
        assert peek() == 0
        writer.execute("COMMIT")
        assert peek() == 7


def test_keeps_no_reader_in_the_way_of_a_checkpoint(file: Path, peek: RevisionReader) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        for number in range(5):
            writer.execute("UPDATE counter SET n = ?", (number,))
            peek()
        busy, *_ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0


def test_serves_many_threads(file: Path, peek: RevisionReader) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("UPDATE counter SET n = 5")
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: peek(), range(2000)))
    assert found == [5] * 2000


def test_does_not_make_a_lost_file_anew(file: Path, peek: RevisionReader) -> None:
    lost = RevisionReader(file.with_name("lost.db"), READ)
    with pytest.raises(sqlite3.OperationalError):
        lost()
    assert not file.with_name("lost.db").exists()
    assert peek() == 0


def test_begins_anew_after_an_error(file: Path, peek: RevisionReader) -> None:
    assert peek() == 0
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("ALTER TABLE counter RENAME TO hidden")
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            peek()
        writer.execute("ALTER TABLE hidden RENAME TO counter")
    assert peek() == 0


def test_a_closed_one_keeps_no_connection(file: Path) -> None:
    peek = RevisionReader(file, READ)
    peek()
    peek.close()
    # The last connection that goes takes the log along.
    assert not file.with_name(f"{file.name}-wal").exists()
    assert peek() == 0
    assert not file.with_name(f"{file.name}-wal").exists()
