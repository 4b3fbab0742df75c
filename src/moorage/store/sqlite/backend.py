"""SQLite: one file, one writer at a time, readers that never wait.

Write-ahead log, so readers never wait; `synchronous=FULL`, so an acknowledged commit survives
power loss; `BEGIN IMMEDIATE`, so a transaction that will write never fails half way. SQLite's
own waiting is by sleeping ever longer, which starves writers for seconds; here threads queue at
a lock and processes at a file lock beside the database, both woken by the one before. The
database's own lock is then free unless somebody else has the file open.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import create_engine, event
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DatabaseError, OperationalError

from moorage.domain import deadline
from moorage.domain.errors import Busy, InvalidDescription, Unavailable
from moorage.logs import Lasting
from moorage.store.changelog.entries import Connections
from moorage.store.database.retry import WAIT
from moorage.store.database.session import CursorSession, as_sqlalchemy_error
from moorage.store.database.statements import StatementCompiler
from moorage.store.sqlite.log import REVISION, NumberedLog, RevisionReader, newest_revision
from moorage.store.sqlite.writer_lock import WriterLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import URL, Connection, Engine, PoolProxiedConnection

    from moorage.domain.period import Instant
    from moorage.store.database.session import Question, Rows, Session

T = TypeVar("T")

_log = logging.getLogger(__name__)
_lasting: Final = Lasting()

_dialect: Any = SQLiteDialect_pysqlite  # has no annotations
_COMPILER: Final = StatementCompiler(_dialect(dbapi=sqlite3))
"""Every file's: their texts are the same."""

_LOCKED: Final = 15.0
"""Seconds for which a transaction is begun again while a stranger keeps the file locked."""
_BEGIN: Final = "PRAGMA busy_timeout = 250"
"""How long one attempt to begin waits for a stranger, in milliseconds; the deadline is looked at
between attempts."""

_PRIVATE: Final = 0o600
"""Permissions of a file that is made: the ledger has tenants' names, and webhooks' secrets."""
_READ_WRITE: Final = 0o666

_POOL: Final = 8
"""Connections kept."""
_OVERFLOW: Final = 56
"""Connections made beyond those while they are needed."""

_ON_THE_DISK: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CANTOPEN,
    }
)
"""Errors that no repetition mends: the file, or what it lies on, needs an operator."""

_PRAGMAS: Final = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -65536",
    # Of all connections of the process together: each keeps pages until then, and there are as
    # many as requests that run at once.
    "PRAGMA soft_heap_limit = 67108864",
    # In 4,000 pages of log a page that every commit touches stands often, and is written back
    # once; with the 1,000 of the default that costs each commit a twentieth more.
    "PRAGMA wal_autocheckpoint = 4000",
)


def open_sqlite(url: URL) -> SqliteBackend:
    """The file a URL names, or a private one that is gone when closed."""
    if url.database in {None, "", ":memory:"}:
        folder = Path(tempfile.mkdtemp(prefix="moorage-"))
        return SqliteBackend(folder / "ledger.db", private=folder)
    return SqliteBackend(Path(str(url.database)))


class SqliteBackend:
    """A SQLite file, shared by the threads of this process and by other processes."""

    def __init__(self, path: Path, *, private: Path | None = None) -> None:
        self._private = private
        if not path.parent.is_dir():
            raise InvalidDescription(f"no such directory: {path.parent}", path="database")
        self._writes: Any = None
        """The connection that writes, once there is one; the driver's own."""
        try:
            _make(path, _PRIVATE)
            gate = path.with_name(path.name + "-writer")
            _make(gate, path.stat().st_mode & _READ_WRITE)  # for all who share the file
            self._writer_lock = WriterLock(gate, WAIT)
        except OSError as error:
            raise InvalidDescription(
                f"cannot write beside {path}: {error.strerror}", path="database"
            ) from error
        self._engine = _engine(path)
        self._writer = self._engine.execution_options(moorage_begin="BEGIN IMMEDIATE")
        self.log = NumberedLog(self._revision)
        self._peek = RevisionReader(path, _COMPILER.compiled(REVISION, {}).text)
        try:
            with self._writer_lock, self._engine.connect() as connection:
                # The mode is a property of the file; it cannot change inside a transaction.
                driver = connection.connection.driver_connection
                assert driver is not None
                driver.execute("PRAGMA journal_mode = WAL")
        except (DatabaseError, sqlite3.Error) as error:  # locked, unreadable, or no database
            self.close()
            cause = getattr(error, "orig", None) or error  # the driver's own sentence
            raise InvalidDescription(f"cannot open {path}: {cause}", path="database") from error

    def now(self) -> Instant:
        """See `Backend`. SQLite's clock is the machine's."""
        return time.time_ns() // 1000

    def read_schema(self, work: Callable[[Connection], T]) -> T:
        with _DISK_ERRORS, self._engine.connect() as connection:
            return work(connection)

    def read(self, work: Callable[[Session], T]) -> T:
        """See `Backend`.

        Raises:
            Unavailable: the file, or the disk it lies on, needs an operator.
        """
        with _DISK_ERRORS, self._lent() as session, _reading(session):
            return work(session)

    def ask(self, *questions: Question) -> Sequence[Rows]:
        """See `Backend`. One question sees one state by itself, and needs no transaction."""
        if len(questions) != 1:
            return self.read(lambda session: session.ask(*questions))
        with _DISK_ERRORS, self._lent() as session:
            return session.ask(*questions)

    def write(self, work: Callable[[Session], T]) -> T:
        """See `Backend`. The work is done once.

        Raises:
            Unavailable: as for `read`; nothing was written.
        """
        with self._writer_lock:
            try:
                session = CursorSession(self._writes or self._write_connection(), _COMPILER)
                _begin_to_write(session)
                try:
                    found = work(session)
                    session.execute_text("COMMIT")
                except BaseException:
                    session.rollback()
                    raise
            except (DatabaseError, sqlite3.Error) as error:
                self._discard_write_connection()  # a new one knows nothing of the error
                _raise_disk_error(error)
                raise
            return found

    def _revision(self) -> int:
        """The newest commit's, without the cost of a transaction."""
        try:
            return int(self._peek())
        except sqlite3.Error:  # once more, by who can say what the trouble is
            return self.read(newest_revision)

    def upgrade(self, work: Callable[[Connection], None]) -> None:
        """See `Backend`. Every writer is alone here."""
        with _DISK_ERRORS, self._writer_lock, self._writer.begin() as connection:
            work(connection)

    @contextmanager
    def _lent(self) -> Iterator[CursorSession]:
        """A connection from the pool, for one transaction."""
        lent = self._borrowed()
        try:
            yield CursorSession(lent.driver_connection, _COMPILER)
        finally:
            lent.close()

    def _write_connection(self) -> Any:  # noqa: ANN401 - the driver's own
        """The connection of a single writer: its page cache stays valid between writes."""
        if self._writes is None:
            lent = self._borrowed()
            self._writes = lent.driver_connection
            lent.detach()
            self._writes.execute(_BEGIN)
        return self._writes

    def _discard_write_connection(self) -> None:
        if self._writes is not None:
            self._writes.close()
            self._writes = None

    def _borrowed(self) -> PoolProxiedConnection:
        try:
            return self._engine.raw_connection()
        except sqlite3.Error as error:
            raise as_sqlalchemy_error(self._engine.dialect, error, "connect") from error

    def connections(self) -> Connections:
        """See `Backend`. One more is kept for writing, one for a look at the revision."""
        pool: Any = self._engine.pool
        return Connections(pool.checkedout(), pool.checkedin(), _POOL + _OVERFLOW)

    def close(self) -> None:
        self._peek.close()
        self._discard_write_connection()
        self._engine.dispose()
        self._writer_lock.close()
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)


def _make(path: Path, mode: int) -> None:
    """Make an empty file with these permissions, unless there is one.

    SQLite gives the log and the index beside it the permissions of the file.
    """
    with contextlib.suppress(FileExistsError):
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE)
        try:
            os.fchmod(made, mode)
        finally:
            os.close(made)


def _raise_disk_error(error: BaseException | None) -> None:
    """Return if it is no trouble with the file or its disk.

    Raises:
        Unavailable: it is.
    """
    # The driver's own comes while rows are fetched.
    cause = error.orig if isinstance(error, DatabaseError) else error
    if not isinstance(cause, sqlite3.DatabaseError):
        return
    code = getattr(cause, "sqlite_errorcode", 0)
    if code & 0xFF in _ON_THE_DISK:  # the bits above are details
        if _lasting.is_news(code):
            _log.error("the ledger's file cannot be used: %s", cause)
        raise Unavailable(f"the ledger cannot be used: {cause}") from error


class _DiskErrors:
    """Says what trouble with the file or its disk is; any other error stays as it is."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        _raise_disk_error(error)


_DISK_ERRORS: Final = _DiskErrors()


def _engine(path: Path) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        pool_size=_POOL,
        pool_use_lifo=True,  # the one that was used last knows the most pages
        max_overflow=_OVERFLOW,
        # The driver begins nothing by itself; the listener below says how each one begins.
        connect_args={"isolation_level": None, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own type
        for pragma in _PRAGMAS:
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        connection.exec_driver_sql(options.get("moorage_begin", "BEGIN"))

    return engine


@contextmanager
def _reading(session: CursorSession) -> Iterator[None]:
    """One consistent state, for as long as it is looked at."""
    session.exec_driver_sql("BEGIN")
    try:
        yield
    finally:
        session.rollback()


def _begin_to_write(session: CursorSession) -> None:
    """Begin a transaction against strangers that lock the file.

    Raises:
        Busy: they do not let go of it, or the deadline has passed.
    """
    began = time.monotonic()
    while True:
        try:
            session.execute_text("BEGIN IMMEDIATE")
        except OperationalError as error:
            code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_BUSY)
            if code & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            if deadline.passed() or time.monotonic() - began > _LOCKED:
                raise Busy("the database file is locked by another program") from error
        else:
            return
