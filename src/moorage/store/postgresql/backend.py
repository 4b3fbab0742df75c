"""PostgreSQL: many writers at once, which lock what they touch, in one order, before reading.

Transactions are READ COMMITTED: after `moorage_begin` (see `log`) has locked everything a
commit judges or changes, each statement sees what the locks protect as it is. Deadlocks and
serialization failures are therefore not expected, and tried again all the same.

A connection that breaks is replaced, and what was not finished is done anew. If it broke in the
middle of COMMIT, the database is asked what became of the transaction: a commit is never done
twice and never reported lost when it was not. What commits without COMMIT, in one round trip, is
never attempted again.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError

from moorage.domain.errors import Busy
from moorage.domain.retry_policy import RetryPolicy
from moorage.store.changelog.entries import Connections
from moorage.store.database.fifo_lock import FifoLock
from moorage.store.database.retry import AWAY, WAIT, DatabaseRetries, retry
from moorage.store.database.session import as_sqlalchemy_error
from moorage.store.database.statements import StatementCompiler
from moorage.store.postgresql.connect import CONNECTIONS, engine_for, require_usable
from moorage.store.postgresql.connection import RawConnection
from moorage.store.postgresql.errors import pause_or_raise, pause_or_raise_at_start
from moorage.store.postgresql.locks import ALONE
from moorage.store.postgresql.log import NUMBER, LogConnection, VisibleLog
from moorage.store.postgresql.session import PipelineSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import URL, Connection, PoolProxiedConnection

    from moorage.domain.period import Instant
    from moorage.store.database.session import Question, Rows, Session

T = TypeVar("T")

_dialect: Any = PGDialect_psycopg  # has no annotations
_COMPILER: Final = StatementCompiler(_dialect(paramstyle="numeric_dollar", dbapi=psycopg))
"""Every database's: their texts are the same."""

_WRITING: Final = 12
"""Of the connections those that write. A writer waits for others, so one that shuts them all out
must find a connection to read by, and so must whoever it waits for in this process."""

_RAW: Final = "moorage raw connection"
"""Where the pool's notes on a connection keep what was prepared on it."""
_READING: Final[dict[str, Any]] = {
    "isolation_level": "REPEATABLE READ",
    "postgresql_readonly": True,
}
_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_IN_DOUBT: Final = "the database broke off while committing; look before trying again"
_STATUS: Final = text("SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8))")
_LOGGED: Final = text("SELECT EXISTS (SELECT FROM changes WHERE revision = :number AND at = :at)")


class PostgresBackend:
    """A PostgreSQL database, shared with other processes on any machine."""

    def __init__(self, url: URL) -> None:
        self._engine, self._detector = engine_for(url)
        self._writers = FifoLock(WAIT, most=_WRITING)
        self._log_connection = LogConnection(self._connect, self._detector.refuse)
        self.log = VisibleLog(self._log_connection)
        try:
            retry(lambda: require_usable(self._engine), pause_or_raise_at_start)
        except BaseException:
            self.close()
            raise

    def now(self) -> Instant:
        return retry(self._log_connection.now, pause_or_raise)

    def read_schema(self, work: Callable[[Connection], T]) -> T:
        def looking() -> T:
            with self._engine.connect() as connection:
                return work(connection.execution_options(**_READING))

        return retry(looking, pause_or_raise)

    def read(self, work: Callable[[Session], T]) -> T:
        return retry(lambda: self._reading(work), pause_or_raise)

    def ask(self, *questions: Question) -> Sequence[Rows]:
        """See `Backend`. One round trip."""

        def asking() -> Sequence[Rows]:
            with self._lent(_READ) as session:
                return session.only(*questions)

        return retry(asking, pause_or_raise)

    def write(self, work: Callable[[Session], T]) -> T:
        return retry(lambda: self._writing(work), pause_or_raise)

    def upgrade(self, work: Callable[[Connection], None]) -> None:
        def alone() -> None:
            with self._engine.connect() as connection:
                connection.execution_options(isolation_level="READ COMMITTED")
                driver: Any = connection.connection.driver_connection
                driver.waits.lasts = True
                connection.detach()  # it is not lent again
                with connection.begin():
                    connection.execute(ALONE)
                    work(connection)

        retry(alone, pause_or_raise)

    def connections(self) -> Connections:
        """See `Backend`. One more is kept for questions."""
        pool: Any = self._engine.pool
        return Connections(pool.checkedout(), pool.checkedin(), CONNECTIONS)

    def close(self) -> None:
        self._log_connection.close()
        self._engine.dispose()
        self._detector.close()

    # --- one attempt --------------------------------------------------------------------------

    def _borrow(self) -> tuple[PoolProxiedConnection, RawConnection]:
        """A connection of the pool, and the statements that were prepared on it."""
        try:
            lent = self._engine.raw_connection()
        except psycopg.Error as error:
            raise as_sqlalchemy_error(_COMPILER.dialect, error, "connect", broken=True) from error
        raw = lent.info.get(_RAW)
        if raw is None:
            driver: Any = lent.driver_connection
            raw = lent.info[_RAW] = RawConnection(driver, driver.waits)
        return lent, raw

    def _connect(self) -> RawConnection:
        """A connection outside the pool."""
        lent, raw = self._borrow()
        lent.detach()
        return raw

    @contextmanager
    def _lent(self, begin: str) -> Iterator[PipelineSession]:
        """A transaction on a connection of the pool; whoever is done with it ends it."""
        lent, raw = self._borrow()
        session = PipelineSession(raw, _COMPILER, begin)
        try:
            self._detector.refuse()  # it may be known since the wait for a connection began
            yield session
        except BaseException:
            session.take_back()
            raise
        finally:
            if raw.broken:
                lent.invalidate()
            lent.close()

    def _reading(self, work: Callable[[Session], T]) -> T:
        with self._lent(_READ) as session:
            found = work(session)
            session.commit()
            return found

    def _writing(self, work: Callable[[Session], T]) -> T:
        with self._writers, self._lent(_WRITE) as session:
            result = work(session)
            try:
                session.commit()
            except DBAPIError as error:
                mark = session.info.get(NUMBER)
                if mark is None or not error.connection_invalidated:
                    raise
                broken = error
            else:
                return result
        if self._was_committed(*mark):
            return result
        raise broken  # and be tried again: it left nothing behind

    def _was_committed(self, number: int, at: Instant) -> bool:
        """What became of a transaction whose connection broke at its end.

        Raises:
            Busy: nobody could say in time.
        """
        try:
            self._wait_for_end(number)
            # Asked afterwards, and of the log, not of the number: one that a crash wiped out
            # before it reached the disk is given again, to somebody else, at another instant.
            mark = {"number": number, "at": at}
            return self.read(
                lambda connection: bool(connection.execute(_LOGGED, mark).scalar_one())
            )
        except Busy as error:
            raise Busy(_IN_DOUBT, retry_after=2) from error

    def _wait_for_end(self, number: int) -> None:
        """Return once a transaction is over.

        Raises:
            Busy: nobody could say in time.
        """
        retries, policy = DatabaseRetries(), RetryPolicy(0.05, growth=1.0, limit=AWAY)
        while self.read(lambda connection: _status(connection, number)) == "in progress":
            if not retries.pause(policy):
                raise Busy(_IN_DOUBT)


def _status(connection: Session, number: int) -> str | None:
    """`in progress`, `committed`, `aborted`; None of a number not given yet (again)."""
    try:
        status: str | None = connection.execute(_STATUS, {"number": number}).scalar_one()
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == "22023":
            return None
        raise
    return status
