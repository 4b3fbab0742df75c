"""What is in a database, without making or upgrading a ledger there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import inspect

from moorage.store.opening import connect, is_missing
from moorage.store.schema.upgrade import is_current, is_empty, revisions

if TYPE_CHECKING:
    from sqlalchemy import Connection

_OLDEST_POSTGRESQL: Final = 14
_OF_PLACEMENT: Final = "placement_aggregates"
"""A table that openstack-placement has, and the ledger does not."""


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """A database that answers."""

    server: str
    """Its kind and version: `PostgreSQL 15.3`."""
    too_old: bool = False
    missing: bool = False
    """Whether it has no ledger."""
    of_placement: bool = False
    """Whether it is openstack-placement's."""
    reached: str = ""
    """The revision of the ledger's schema; empty without a ledger."""
    newest: str = ""
    """The revision of this program."""


def database_status(url: str) -> DatabaseStatus:
    """Look at a database; writes nothing.

    Raises:
        InvalidDescription: not a database URL, or the server refuses us.
        Busy: the database is away.
    """
    if url.startswith("sqlite") and is_missing(url):
        return DatabaseStatus(f"SQLite {sqlite3.sqlite_version}", missing=True)
    with closing(connect(url)) as backend:
        return backend.read_schema(_status)


def needs_upgrade(url: str) -> bool:
    """Whether opening the ledger would change its schema or its standard names; writes nothing.

    Raises:
        InvalidDescription: the schema is one that this program cannot use; says why.
        Busy: the database is away.
    """
    with closing(connect(url)) as backend:
        return not backend.read_schema(is_current)


def _status(connection: Connection) -> DatabaseStatus:
    kind, version = _version(connection)
    status = partial(
        DatabaseStatus,
        f"{kind} {'.'.join(map(str, version))}",
        too_old=kind == "PostgreSQL" and version[0] < _OLDEST_POSTGRESQL,
    )
    if _OF_PLACEMENT in inspect(connection).get_table_names():
        return status(of_placement=True)
    if is_empty(connection):
        return status(missing=True)
    reached, newest = revisions(connection)
    return status(reached=reached, newest=newest)


def _version(connection: Connection) -> tuple[str, tuple[int, ...]]:
    dialect: Any = connection.dialect
    kind = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}.get(dialect.name, "MySQL")
    if getattr(dialect, "is_mariadb", False):
        kind = "MariaDB"
    found = dialect.server_version_info or ()
    return kind, tuple(one for one in found if isinstance(one, int))
