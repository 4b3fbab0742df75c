"""Opening the ledger: connect, bring the schema up to date, hand out the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from moorage.domain.errors import BadConfiguration
from moorage.store.ledger import Ledger
from moorage.store.schema.upgrade import is_current, is_empty, upgrade

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection

    from moorage.domain.period import Instant
    from moorage.store.backend import Backend
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock


def open_store(
    database_url: str, *, clock: Clock | None = None, watch: Watch | None = None
) -> Ledger:
    """The ledger at a database URL, made or migrated if need be.

    `sqlite:///path` is a file (its directory must exist); `sqlite://` is a private database
    that is gone when the ledger is closed; `postgresql://user:password@host/name` (or
    `postgres://`) and
    `mysql://user:password@host/name` are databases that exist on a server. The time is the
    database's unless a clock is given.

    Raises:
        BadConfiguration: the URL cannot be used, or the schema is from before the first release;
            says why.
        InvalidDescription: the server refuses us, or a newer version has changed the schema.
        Busy: somebody else keeps the database locked, or it is away.
    """
    backend = connect(database_url)
    try:
        # Looked at first: whoever only starts must not keep those who work waiting.
        if not backend.read_schema(lambda one: is_current(one) and backend.log.belongs(one)):
            now = backend.now() if clock is None else clock.now()
            backend.upgrade(lambda connection: _upgrade(backend, connection, now))
    except BaseException:
        backend.close()
        raise
    return Ledger(backend, clock, watch)


def is_missing(database_url: str) -> bool:
    """Whether opening the ledger would make it: SQLite's file, on a server the tables.

    Raises:
        InvalidDescription: not a database URL, or the server has no such database.
        Busy: the server is away.
    """
    parsed = _parsed(database_url)
    if parsed.get_backend_name() == "sqlite":
        private = parsed.database in {None, "", ":memory:"}
        return not private and not Path(str(parsed.database)).exists()
    backend = connect(database_url)
    try:
        return backend.read_schema(is_empty)
    finally:
        backend.close()


def connect(url: str) -> Backend:
    """The backend for a database URL; `sqlite://` is a private database that goes on close.

    Raises:
        BadConfiguration: not a URL, not of a supported database, or its driver is missing.
        Busy: the database is away.
    """
    parsed = _parsed(url)
    kind = parsed.get_backend_name()
    # Drivers are extras: each is asked for only where a URL names its database.
    try:
        if kind == "sqlite":
            from moorage.store.sqlite.backend import open_sqlite  # noqa: PLC0415

            return open_sqlite(parsed)
        if kind == "postgresql":
            from moorage.store.postgresql.backend import PostgresBackend  # noqa: PLC0415

            return PostgresBackend(parsed)
        if kind in {"mysql", "mariadb"}:
            from moorage.store.mariadb.backend import MariadbBackend  # noqa: PLC0415

            return MariadbBackend(parsed)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise BadConfiguration(
            f"no driver for {kind} databases ({error}): see the extras of the package",
            path="database URL",
        ) from error
    raise BadConfiguration(
        f"no support for {kind} databases; use sqlite:///path, postgresql://host/name,"
        " or mysql://host/name",
        path="database URL",
    )


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # the second of a port that is no number
        raise BadConfiguration(
            "not a database URL, such as sqlite:///path or postgresql://user@host:5432/name;"
            " several hosts of PostgreSQL are written"
            " postgresql://user@/name?host=one:5432&host=two:5432",
            path="database URL",
        ) from error
    # As libpq and many tools write it.
    return parsed.set(drivername="postgresql") if parsed.drivername == "postgres" else parsed


def _upgrade(backend: Backend, connection: Connection, now: Instant) -> None:
    upgrade(connection, now=now)
    if not backend.log.belongs(connection):
        backend.log.reset_log(connection)
