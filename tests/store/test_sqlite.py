"""SQLite's one writing connection: kept between writes, and not trusted after an error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import column, table
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.exc import IntegrityError, OperationalError

from moorage.domain.errors import NotFound, Unavailable
from moorage.store.backend import Backend
from moorage.store.database.session import Session
from moorage.store.opening import connect
from moorage.store.read.bookings import HELD_OF_PROJECT
from moorage.store.schema.upgrade import upgrade


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    """A file with a table; the connection that writes has one of its own, which no other sees."""
    made = connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.write(lambda session: session.exec_driver_sql("CREATE TABLE numbers (n INTEGER)"))
    made.write(lambda session: session.exec_driver_sql("CREATE TEMP TABLE mine (n INTEGER)"))
    yield made
    made.close()


def count(backend: Backend, table: str) -> int:
    """How many rows a table has, as the connection that writes sees it."""
    rows = backend.write(lambda session: session.exec_driver_sql(f"SELECT count(*) FROM {table}"))
    found: int = rows[0][0]
    return found


def test_the_connection_that_writes_is_kept(backend: Backend) -> None:
    assert count(backend, "sqlite_temp_master") == 1


def test_a_refusal_takes_back_what_was_written_and_keeps_the_connection(backend: Backend) -> None:
    def refused(session: Session) -> Any:
        session.exec_driver_sql("INSERT INTO numbers VALUES (1)")
        raise NotFound("number", "2")

    with pytest.raises(NotFound):
        backend.write(refused)
    assert count(backend, "numbers") == 0
    assert count(backend, "sqlite_temp_master") == 1


def test_after_an_error_of_the_database_another_connection_writes(backend: Backend) -> None:
    def failing(session: Session) -> Any:
        session.exec_driver_sql("INSERT INTO numbers VALUES (1)")
        return session.exec_driver_sql("SELECT n FROM nowhere")

    with pytest.raises(OperationalError, match="no such table: nowhere"):
        backend.write(failing)
    assert count(backend, "sqlite_temp_master") == 0
    assert count(backend, "numbers") == 0
    backend.write(lambda session: session.exec_driver_sql("INSERT INTO numbers VALUES (1)"))
    assert count(backend, "numbers") == 1


def test_what_is_to_be_done_about_a_subject_is_found_by_the_subject(backend: Backend) -> None:
    """Without statistics it was looked for among all that is to be done, in every such commit."""
    backend.upgrade(lambda connection: upgrade(connection, now=1))
    asked = "SELECT body FROM effects WHERE subject = 'a' AND state = 'pending'"
    rows = backend.write(lambda session: session.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}"))
    assert "subject=? AND state=?" in rows[0][3]


def test_a_projects_held_places_are_counted_without_its_other_bookings(backend: Backend) -> None:
    backend.upgrade(lambda connection: upgrade(connection, now=1))
    asked = str(HELD_OF_PROJECT.compile(dialect=dialect()))
    rows = backend.write(
        lambda session: session.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", (1, 1, "project"))
    )
    (row,) = rows  # the consumers need not be sorted
    assert "bookings USING COVERING INDEX ix_bookings_places_taken (holder=?)" in row[3]


def test_an_older_version_does_not_count_on(tmp_path: Path) -> None:
    """Its commits would be numbered from what stood there, and nobody would see them."""
    backend = connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    backend.upgrade(lambda connection: upgrade(connection, now=1))
    older = "UPDATE ledger SET revision = revision + 1"
    with pytest.raises(IntegrityError, match="a newer version"):
        backend.write(lambda session: session.exec_driver_sql(older))
    backend.close()


def test_a_damaged_page_that_is_met_while_rows_are_fetched_is_told(
    backend: Backend, tmp_path: Path
) -> None:
    fill = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO numbers SELECT i FROM n"
    )
    backend.write(lambda session: session.exec_driver_sql(fill))
    backend.close()
    path = tmp_path / "ledger.db"
    with path.open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\xff" * 4096)
    damaged = connect(f"sqlite:///{path}")
    try:
        with pytest.raises(Unavailable, match="malformed"):
            damaged.read(lambda session: session.execute(_NUMBERS.select()))
    finally:
        damaged.close()


_NUMBERS = table("numbers", column("n"))


@pytest.mark.parametrize("many", [15, 16, 255, 256, 700])
def test_rows_of_an_insertion_are_written_many_at_once(backend: Backend, many: int) -> None:
    """Each run gives the interpreter's lock away, which comes back late where others search."""
    ran: list[str] = []

    def insert(session: Session) -> None:
        driver: Any = session
        driver._connection.set_trace_callback(ran.append)
        session.do(insertion, [{"n": number} for number in range(many)])
        driver._connection.set_trace_callback(None)

    insertion = _NUMBERS.insert()
    backend.write(insert)
    found = backend.read(lambda session: session.exec_driver_sql("SELECT n FROM numbers"))
    assert [row[0] for row in found] == list(range(many))
    assert len(ran) <= many // 256 + many % 256 // 16 + many % 16


def test_a_row_among_many_that_cannot_be_written_takes_all_back(backend: Backend) -> None:
    backend.write(lambda session: session.exec_driver_sql("CREATE UNIQUE INDEX one ON numbers (n)"))
    rows = [{"n": number} for number in (*range(300), 17)]
    with pytest.raises(IntegrityError):
        backend.write(lambda session: session.do(_NUMBERS.insert(), rows))
    assert count(backend, "numbers") == 0
