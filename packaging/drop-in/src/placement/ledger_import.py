"""Moorage's database beside that of openstack-placement: made, and filled once.

The old database is only read. A table of this package in the new one tells that its content was
imported and compared; before, the service does not start, and `placement-manage db sync` begins
again where it stopped.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import (
    Column,
    DateTime,
    Integer,
    MetaData,
    Table,
    create_engine,
    func,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import SQLAlchemyError

from moorage.domain.content import Content, counts, differences
from moorage.domain.errors import BadConfiguration, Busy, Conflict, InvalidDescription
from moorage.store import open_store
from moorage.store.placement_database import read_placement
from moorage.usecases.ledger.content import ledger_content
from moorage.usecases.ledger.placement_takeover import TakeoverPermission, plan, take_over
from moorage.usecases.ports import Caller
from placement.configuration import DRIVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import URL, Connection

    from placement.configuration import DropInConfiguration

_OPERATOR: Final = Caller("placement-manage", "", frozenset({"admin"}))
_ADMINISTRATIVE: Final = {"mysql": "", "mariadb": "", "postgresql": "postgres"}
"""The database in which one is when another is made."""
_MARIADB_LOCK: Final = "SELECT GET_LOCK(CONCAT('import ', SHA1(DATABASE())), 86400)"
_LOCKS: Final = {
    "mysql": _MARIADB_LOCK,
    "mariadb": _MARIADB_LOCK,
    "postgresql": "SELECT pg_advisory_lock(hashtext('placement_imports'))",
}
"""What waits for the lock of an import, which goes with its connection."""
_IMPORTS: Final = Table(
    "placement_imports",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("finished_at", DateTime, nullable=False, server_default=func.now()),
)


def create_database(new: URL) -> None:
    """Make the ledger's database, unless it is there.

    Raises:
        InvalidDescription: this user may not; the sentence has the statements for one who may.
        Busy: the server is away.
    """
    kind = new.get_backend_name()
    if kind == "sqlite" or _is_there(new):
        return
    with _connected(new.set(database=_ADMINISTRATIVE[kind])) as connection:
        statements = list(_statements(connection, new))
        try:
            connection.exec_driver_sql(statements[0])
        except SQLAlchemyError as error:
            if _is_there(new):
                return  # another process has made it meanwhile
            raise InvalidDescription(
                f"the database {new.database} is missing, and {new.username} may not make it"
                f" ({_first_line(error)}). An administrator of the server runs:\n"
                + "\n".join(f"  {one};" for one in statements)
                + "\nThen repeat this command."
            ) from error


def _is_there(new: URL) -> bool:
    try:
        with _connected(new):
            return True
    except Busy:
        return False


def _statements(connection: Connection, new: URL) -> Iterator[str]:
    quoted = connection.dialect.identifier_preparer.quote_identifier
    name, user = quoted(str(new.database)), str(new.username)
    if connection.dialect.name == "postgresql":
        yield f"CREATE DATABASE {name} OWNER {quoted(user)} ENCODING 'UTF8' TEMPLATE template0"
        return
    mariadb = getattr(connection.dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
    yield f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE {collation}"
    yield f"GRANT ALL PRIVILEGES ON {name}.* TO '{user}'@'%'"


def import_once(found: DropInConfiguration) -> Iterator[str]:
    """Import the old database's content, unless that was done; a sentence for each step.

    Raises:
        Conflict: the ledger is not equal to the old database afterwards.
        InvalidDescription, Busy: one of the databases cannot be used.
    """
    create_database(found.new)
    new = found.new.render_as_string(hide_password=False)
    # One that waits here finds the import done, and does not undo what was written since.
    with _alone(found.new), closing(open_store(new)) as store:
        if _was_imported(found.new):
            yield f"{found.new.database} is up to date; its content was imported before"
            return
        content = _old_content(found.old)
        planned = plan(store, _OPERATOR, content, topology=None)
        yield from planned.remarks
        # Nobody has written to the ledger yet: what it has besides is of an attempt before.
        take_over(store, planned, TakeoverPermission.MIRROR)
        unlike = list(differences(content, ledger_content(store)))
        if unlike:
            told = "; ".join(f"{one.kind} {one.subject} {one.way}" for one in unlike[:5])
            raise Conflict(f"{len(unlike)} differences after the import: {told}")
        with _connected(found.new) as connection:
            connection.execute(insert(_IMPORTS).values(id=1))
    told = ", ".join(f"{number} {name}" for name, number in counts(content).items() if number)
    yield f"imported into {found.new.database}, and compared: {told or 'nothing was there'}"


@contextmanager
def _alone(new: URL) -> Iterator[None]:
    """Wait for other processes that import into this database, and keep them waiting."""
    kind = new.get_backend_name()
    if kind == "sqlite":
        with Path(f"{new.database}-import").open("a", encoding="utf-8") as file:
            flock(file, LOCK_EX)
            yield
        return
    with _connected(new) as connection:
        connection.exec_driver_sql(_LOCKS[kind])
        yield


def require_import(found: DropInConfiguration) -> None:
    """Return if the old database's content was imported.

    Raises:
        InvalidDescription: it was not.
        Busy: the database is away, or missing.
    """
    if not _was_imported(found.new):
        raise InvalidDescription(
            f"{found.new.database} has not the content of {found.old.database} yet:"
            " run `placement-manage db sync`"
        )


def _was_imported(new: URL) -> bool:
    with _connected(new) as connection:
        _IMPORTS.create(connection, checkfirst=True)
        return connection.scalar(select(func.count()).select_from(_IMPORTS)) == 1


def _old_content(old: URL) -> Content:
    with _connected(old) as connection:
        is_empty = not inspect(connection).get_table_names()
    return Content() if is_empty else read_placement(old.render_as_string(hide_password=False))


@contextmanager
def _connected(url: URL) -> Iterator[Connection]:
    """A connection that commits each statement."""
    engine = create_engine(url.set(drivername=DRIVERS[url.get_backend_name()]))
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield connection
    except SQLAlchemyError as error:
        named = f"database {url.database}" if url.database else f"the server of {url.host}"
        raise Busy(f"{named}: {_first_line(error)}") from error
    except OSError as error:  # of TLS; the drivers have their own errors for the server
        raise BadConfiguration(
            f"a file that the URL of the database names cannot be read: {error}"
        ) from error
    finally:
        engine.dispose()


def _first_line(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
