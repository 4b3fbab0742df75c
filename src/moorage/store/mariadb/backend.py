"""MariaDB and MySQL: one writer at a time, whichever process it is in; readers that never wait.

A commit's first statement locks the ledger's one row, for which InnoDB keeps a queue, and holds it
to the end. With one lock, always the first, nobody can wait for each other, and numbers are given
in the order of commits (see `log`). Advisory locks by name, as on PostgreSQL, end here
with the session instead of the transaction and are not shared; locks on rows would leave out those
that are still to be born.

Everybody works at REPEATABLE READ. A reader's statements all see one state. A writer's first plain
read comes after its lock, so what it sees is what the lock protects; a stricter level would only
lock more, and READ COMMITTED would want another level for readers, set in a round trip for each
transaction.

A connection that breaks is replaced, and what was not finished is done anew. If it broke in the
middle of COMMIT, the log is asked what became of the transaction: a commit is never done twice and
never reported lost when it was not.

In a Galera cluster a lock holds on one node only, so a proxy leads to one node at a time. Around a
failover there may be two: of commits on two nodes the cluster takes one, for every commit moves the
ledger's row, and the other is done anew; a transaction begins when its node has everything that was
acknowledged anywhere. Why that is not enough for more is in ADR-0018.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pymysql
from sqlalchemy.exc import DBAPIError

from moorage.domain.errors import BadConfiguration, Busy, InvalidDescription
from moorage.store.changelog.entries import Connections
from moorage.store.database.fifo_lock import FifoLock
from moorage.store.database.retry import CONFLICT, NODE_CONFLICT, WAIT, message, retry, unavailable
from moorage.store.database.session import as_sqlalchemy_error
from moorage.store.database.statements import StatementCompiler
from moorage.store.mariadb.connect import CONNECTIONS, OLD, engine_for
from moorage.store.mariadb.log import MARK, LogConnection, Mark, MarkedLog, logged, timed_out
from moorage.store.mariadb.session import BundleSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import URL, Connection, PoolProxiedConnection

    from moorage.domain.period import Instant
    from moorage.store.database.retry import DatabaseRetries
    from moorage.store.database.session import Question, Rows, Session

T = TypeVar("T")

_WRITING: Final = 12
"""Of these those that write; see the same in `postgres`."""
_OLDEST: Final = {"MariaDB": (10, 6), "MySQL": (8, 0)}

_COLLIDED: Final = frozenset({1213, 1020, 1412})
"""Deadlock; a row, or a table's shape, that moved under a view: try again."""
_TWICE: Final = 1062
"""Two births of one key. Of two commits on two nodes of a cluster one may meet it before it is
refused; on a single server nobody does."""
_LATE: Final = frozenset({1205, 1317, 1969, 3024})
"""Waited too long for a lock, was cancelled, or took longer than the server allows."""
_GONE: Final = frozenset(
    {
        *(1040, 1203, 1226),  # too many connections
        *(1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031),  # shutdown, cut, killed, idle
        *(2002, 2003, 2005, 2006, 2013, 2014, 2055),  # as the driver sees it
        1180,  # a node that lost its cluster during a COMMIT
    }
)
_DEMOTED: Final = frozenset({1290, 1836, 1047})
"""A server that only reads: no primary any more; a node that has lost its cluster."""
_FULL: Final = frozenset({1021, 1026, 1114})
"""The disk, or what the server may use of it."""
_REFUSED: Final = frozenset({1044, 1045, 1046, 1049, 1142, 1251, 1698, 2054, 2059, 2061})
"""No such database or user, wrong password, no rights, another way to log in."""
_HALF_WAY: Final = frozenset({1050, 1060, 1061, 1826})
"""A table, column, index or constraint that a migration is to make is there already."""

_COLLATION: Final = {"MariaDB": "utf8mb4_nopad_bin", "MySQL": "utf8mb4_0900_bin"}
"""By code points, and `a` is not `a ` (as it is in utf8mb4_bin)."""
_COLLATED: Final = "SELECT @@collation_database"
_SHUT: Final = "SELECT GET_LOCK(CONCAT('moorage ', SHA1(DATABASE())), %s)"
_OPEN: Final = "SELECT RELEASE_LOCK(CONCAT('moorage ', SHA1(DATABASE())))"
_PROMPT: Final = 10
"""Seconds in which a question is answered that waits for nobody's lock."""


class MariadbBackend:
    """A database of MariaDB or MySQL, shared with other processes on any machine."""

    def __init__(self, url: URL) -> None:
        if not url.database:
            raise InvalidDescription("the URL names no database on the server", path="database URL")
        self._engine = engine_for(url)
        self._compiler = StatementCompiler(self._engine.dialect)
        self._writers = FifoLock(WAIT, most=_WRITING)
        self._log_connection = LogConnection(self._connect, self._drop, oldest=OLD)
        self.log = MarkedLog(lambda: self._retry(self._log_connection.ask))
        try:
            self._kind = retry(self._meet, _pause_or_raise_at_start)
        except OSError as error:  # of TLS; the driver has its own errors for the server
            self.close()
            raise BadConfiguration(
                f"a file that the URL names cannot be read: {error}", path="database URL"
            ) from error
        except BaseException:
            self.close()
            raise

    def now(self) -> Instant:
        return self._retry(self._log_connection.now)

    def read_schema(self, work: Callable[[Connection], T]) -> T:
        def looking() -> T:
            with self._engine.connect() as connection:
                return work(connection)

        return self._retry(looking)

    def read(self, work: Callable[[Session], T]) -> T:
        return self._retry(lambda: self._reading(work))

    def ask(self, *questions: Question) -> Sequence[Rows]:
        return self.read(lambda session: session.ask(*questions))

    def write(self, work: Callable[[Session], T]) -> T:
        doubtful: dict[Mark, T] = {}
        return self._retry(lambda: self._writing(work, doubtful))

    def upgrade(self, work: Callable[[Connection], None]) -> None:
        """See `Backend`.

        Raises:
            InvalidDescription: an earlier upgrade was cut off half-way: here a change of the
                schema is no transaction.
        """
        try:
            self._retry(lambda: self._upgrading(work))
        except DBAPIError as error:
            if _number(error) not in _HALF_WAY:
                raise
            raise InvalidDescription(
                f"{message(error)}: either an upgrade was cut off half-way, then restore the"
                " backup made before it (or drop and create the database, if it was new); or"
                " these tables are another program's",
                path="database",
            ) from error

    def connections(self) -> Connections:
        """See `Backend`. One more is kept for questions."""
        pool: Any = self._engine.pool
        return Connections(pool.checkedout(), pool.checkedin(), CONNECTIONS)

    def close(self) -> None:
        self._log_connection.close()
        self._engine.dispose()

    # --- one attempt --------------------------------------------------------------------------

    def _meet(self) -> str:
        """What kind of server it is.

        Raises:
            InvalidDescription: it is too old.
        """
        with self._engine.connect() as connection:
            dialect: Any = connection.dialect
            kind = "MariaDB" if dialect.is_mariadb else "MySQL"
            found, oldest = dialect.server_version_info[:2], _OLDEST[kind]
            if found < oldest:
                raise InvalidDescription(
                    f"{kind} {'.'.join(map(str, found))} is too old;"
                    f" {'.'.join(map(str, oldest))} or newer is needed",
                    path="database",
                )
            return kind

    def _connect(self) -> Any:  # noqa: ANN401 - the driver's own connection
        """A connection outside the pool, one statement at a time."""
        connection = self._engine.raw_connection()
        driver: Any = connection.driver_connection
        connection.detach()
        driver._read_timeout = min(driver._read_timeout, _PROMPT)  # noqa: SLF001
        try:
            driver.autocommit(True)  # noqa: FBT003 - the driver's own
        except pymysql.Error as error:
            if timed_out(error):
                self._drop()
            raise
        return driver

    @contextmanager
    def _lent(self) -> Iterator[PoolProxiedConnection]:
        """A connection of the pool, which does not get it back if it broke."""
        try:
            lent = self._engine.raw_connection()
        except pymysql.Error as error:
            dialect = self._engine.dialect
            raise as_sqlalchemy_error(dialect, error, "connect", broken=True) from error
        try:
            yield lent
        except DBAPIError as error:
            # A node that has lost its cluster refuses the ROLLBACK as well.
            if error.connection_invalidated or _number(error) in _DEMOTED:
                lent.invalidate(error)
            if timed_out(error.orig):
                self._drop()
            raise
        finally:
            lent.close()

    def _reading(self, work: Callable[[Session], T]) -> T:
        with self._lent() as lent:
            session = BundleSession(lent.driver_connection, self._compiler)
            try:
                return work(session)
            finally:
                session.take_back()

    def _writing(self, work: Callable[[Session], T], doubtful: dict[Mark, T]) -> T:
        """`doubtful` are attempts before this one of whose COMMIT nobody knows, and results."""
        with self._writers, self._lent() as lent:
            session = BundleSession(lent.driver_connection, self._compiler)
            try:
                for done in logged(session, doubtful):
                    session.take_back()
                    return doubtful[done]
                result = work(session)
            except BaseException:
                session.take_back()
                raise
            mark: Mark | None = session.info.get(MARK)
            try:
                session.commit()
            except DBAPIError as error:
                if mark is not None and _number(error) not in _COLLIDED:
                    doubtful[mark] = result
                if not error.connection_invalidated:
                    session.take_back()
                raise
            return result

    def _upgrading(self, work: Callable[[Connection], None]) -> None:
        with self._engine.connect() as connection:
            if connection.exec_driver_sql(_SHUT, (WAIT,)).scalar_one() != 1:
                raise Busy("another process is upgrading the database")
            try:
                collation = _COLLATION[self._kind]
                if connection.exec_driver_sql(_COLLATED).scalar_one() != collation:
                    connection.exec_driver_sql(
                        f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {collation}"
                    )
                connection.commit()
                with connection.begin():
                    work(connection)
            finally:
                if not connection.invalidated:
                    connection.exec_driver_sql(_OPEN)

    # --- several attempts ---------------------------------------------------------------------

    def _retry(self, attempt: Callable[[], T]) -> T:
        return retry(attempt, self._pause_or_raise)

    def _pause_or_raise(self, error: DBAPIError, retries: DatabaseRetries) -> None:
        if _number(error) in _DEMOTED:
            # A new connection may find the server that is the primary now.
            self._drop()
        _pause_or_raise(error, retries)

    def _drop(self) -> None:
        """Leave the server that the connections lead to: it hangs, or only reads."""
        self._log_connection.drop()
        self._engine.dispose()


def _number(error: DBAPIError) -> int:
    """The server's number of the error, or the driver's; 0 without any."""
    found = error.orig.args[0] if error.orig is not None and error.orig.args else 0
    return found if isinstance(found, int) else 0


def _pause_or_raise(error: DBAPIError, retries: DatabaseRetries) -> None:
    """Return if it is worth another attempt, after a pause.

    Raises:
        Busy: not now.
        Unavailable: not before an operator has done something.
        DBAPIError: the error itself, which no repetition mends.
    """
    number = _number(error)
    if number in _COLLIDED and retries.pause(NODE_CONFLICT):
        return
    if number == _TWICE and retries.pause(CONFLICT):
        return
    if number in _LATE | _COLLIDED:
        raise Busy("the ledger has too many writers at once") from error
    if number in _FULL:
        raise unavailable(error, "the database's disk is full") from error
    if error.connection_invalidated or number in _GONE | _DEMOTED:
        retries.wait_for_database(error)
    else:
        raise error


def _pause_or_raise_at_start(error: DBAPIError, retries: DatabaseRetries) -> None:
    """As `_pause_or_raise`; a server that refuses us for good is a mistake in the URL.

    Raises:
        InvalidDescription: no such database or user, wrong password.
    """
    if _number(error) in _REFUSED:
        raise InvalidDescription(
            f"cannot open the database: {message(error)}", path="database"
        ) from error
    _pause_or_raise(error, retries)
