"""Migrates an empty SQLite database once a process; the others begin as copies of what that made.

Most tests begin with a ledger of their own, and most of its cost are Alembic and the standard
names: without this the tests of the contract take four tenths more. What has tables already is
migrated as ever; `tests/store/` proves the migrations themselves.
"""

import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

from moorage.store import opening
from moorage.store.schema.upgrade import is_current, upgrade

_NAMED = ("resource_classes", "traits")
"""Tables of standard names, which are as old as the ledger."""
_FILLED = text("SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'")
_VERSIONS = text("SELECT count(*) FROM alembic_version")


def pytest_configure() -> None:
    """Stand between the opening of a ledger and what makes it one."""
    vars(opening)["is_current"] = _looked_at
    vars(opening)["upgrade"] = _finished


def _looked_at(connection: Connection) -> bool:
    """Fill an empty file, before it is asked whether there is a ledger in it."""
    if connection.dialect.name == "sqlite":
        with closing(sqlite3.connect(str(connection.engine.url.database))) as file:
            if not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                with closing(sqlite3.connect(":memory:")) as template:
                    template.deserialize(_template()[0])
                    template.backup(file)
    return is_current(connection)


def _finished(connection: Connection, *, now: int) -> None:
    """Make a ledger of a copy, which has no version of the schema yet; migrate anything else."""
    copied = (
        connection.dialect.name == "sqlite"
        and connection.execute(_FILLED).scalar()
        and not connection.execute(_VERSIONS).scalar()
    )
    if not copied:
        upgrade(connection, now=now)
        return
    connection.execute(text("INSERT INTO alembic_version VALUES (:one)"), {"one": _template()[1]})
    for table in _NAMED:
        connection.execute(text(f"UPDATE {table} SET updated_at = :now"), {"now": now})


@cache
def _template() -> tuple[bytes, str]:
    """A ledger that nobody has used, without the version of its schema; and that version."""
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        path = Path(folder) / "ledger.db"
        backend = opening.connect(f"sqlite:///{path}")
        backend.upgrade(lambda connection: upgrade(connection, now=0))
        backend.close()
        with closing(sqlite3.connect(path)) as file:
            (version,) = file.execute("SELECT version_num FROM alembic_version").fetchone()
            file.execute("DELETE FROM alembic_version")
            file.commit()
            file.execute("PRAGMA journal_mode = DELETE")  # one in memory has no other file
            return file.serialize(), version
