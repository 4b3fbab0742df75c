"""PostgreSQL: many writers at once, who lock what they touch, in one order, before they read it.

Transactions are READ COMMITTED: after `moorage_begin` (see `visible`) has locked everything a
commit judges or changes, each statement sees what the locks protect as it is. Deadlocks and
serialization failures are therefore not expected, and tried again all the same.

A connection that breaks is replaced, and what was not finished is done anew. If it broke in the
middle of COMMIT, the database is asked what became of the transaction: a commit is never done
twice and never reported lost when it was not. What commits without COMMIT, in one round trip, is
never attempted again: who bet on it (see `first`) goes on from what there is.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from sqlalchemy import create_engine, event, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from moorage.domain.errors import Busy
from moorage.store.advisory import ALONE, begin
from moorage.store.patience import AWAY, WAIT, stubbornly
from moorage.store.pipeline import PipelineSession
from moorage.store.postgres_errors import bear, bear_at_first, bear_once
from moorage.store.session import Rows, in_general_terms
from moorage.store.statements import Speech
from moorage.store.visible import NUMBER, Line, VisibleLog
from moorage.store.wire import Wire
from moorage.store.wires import Permits, Wires

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import URL, Connection, Engine

    from moorage.domain.period import Instant
    from moorage.store.answers import Connections
    from moorage.store.footprint import Footprint
    from moorage.store.session import Question, Session

T = TypeVar("T")

_CONNECTIONS: Final = 16
"""Transactions at a time per process; more only queue in the database instead of here."""
_WRITING: Final = 12
"""Of these those that write. A writer waits for others, so one that shuts them all out must find a
connection to read by, and so must whoever it waits for in this process."""
_KEPT: Final = _CONNECTIONS
"""Connections kept that nobody needs just now: all, for a new one costs more than a claim."""

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_STATUS: Final = text("SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8))")
_LOGGED: Final = text("SELECT EXISTS (SELECT FROM changes WHERE revision = :number AND at = :at)")
_SETTINGS: Final = (
    "SET application_name = 'moorage'",
    # Of a transaction that begins without BEGIN; what it sees under its locks must be new.
    "SET default_transaction_isolation = 'read committed'",
    # Plans are kept while tables grow from nothing, and not made anew for other keys; what is
    # looked up by key has an index.
    "SET enable_seqscan = off",
    "SET plan_cache_mode = force_generic_plan",
    "SET jit = off",
    f"SET lock_timeout = {int(WAIT * 1000)}",
    # A writer that was stopped in its tracks must not keep its locks for ever.
    f"SET idle_in_transaction_session_timeout = {int(WAIT * 1000)}",
)
_LIVELY: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
"""So that a server whose machine has gone is noticed; the URL may say otherwise."""


class PostgresBackend:
    """A PostgreSQL database, shared with other processes on any machine."""

    def __init__(self, url: URL) -> None:
        self._engine = _engine(url)
        self._reader = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        wording: Any = PGDialect_psycopg  # has no annotations
        self._speech = Speech(wording(paramstyle="numeric_dollar", dbapi=psycopg))
        self._wires = Wires(self._dial, most=_CONNECTIONS, kept=_KEPT, patience=WAIT)
        self._writers = Permits(_WRITING, patience=WAIT)
        self._line = Line(self._dial)
        self.log = VisibleLog(self._line, self._stubbornly)
        try:
            stubbornly(lambda: self._reading(lambda _: None), bear_at_first)
        except BaseException:
            self.close()
            raise

    def now(self) -> Instant:
        """See `Backend`."""
        return self._stubbornly(self._line.now)

    def look(self, work: Callable[[Connection], T]) -> T:
        """See `Backend`."""

        def looking() -> T:
            with self._reader.connect() as connection:
                return work(connection)

        return self._stubbornly(looking)

    def read(self, work: Callable[[Session], T]) -> T:
        """See `Backend`."""
        return self._stubbornly(lambda: self._reading(work))

    def ask(self, *questions: Question) -> Sequence[Rows]:
        """See `Backend`. One round trip."""

        def asking() -> Sequence[Rows]:
            with self._lent(_READ) as session:
                return session.only(*questions)

        return self._stubbornly(asking)

    def write(self, work: Callable[[Session], T]) -> T:
        """See `Backend`."""
        return self._stubbornly(lambda: self._writing(work))

    def at_once(
        self, touches: Callable[[], Footprint], writes: Callable[[], Question]
    ) -> Rows | None:
        """See `Backend`. It takes a statement more to cut the log."""
        sent = False

        def attempt() -> Rows:
            nonlocal sent
            with self._writers, self._lent(_WRITE) as session:
                if session.has_news:  # nobody could tell later whether it was taken
                    return Rows()
                sent = True
                # The second sees what is there once the first has the locks.
                _, found = session.together(begin(touches()), writes())
            if found:
                self.log.note()
            return found

        if self.log.is_long:
            return None
        try:
            return stubbornly(attempt, bear_once)
        except DBAPIError as error:
            if sent and error.connection_invalidated:
                raise
            return Rows()  # taken back; the commit that follows has the patience, or tells why not

    def upgrade(self, work: Callable[[Connection], None]) -> None:
        """See `Backend`."""

        def alone() -> None:
            with self._engine.begin() as connection:
                connection.execute(ALONE)
                work(connection)

        self._stubbornly(alone)

    def connections(self) -> Connections:
        """See `Backend`. One more is kept for questions."""
        return self._wires.count()

    def close(self) -> None:
        """See `Backend`."""
        self._line.close()
        self._wires.close()
        self._engine.dispose()

    # --- one attempt --------------------------------------------------------------------------

    def _dial(self) -> Wire:
        """A new connection."""
        try:
            lent = self._engine.raw_connection()
        except psycopg.Error as error:
            raise in_general_terms(self._speech.dialect, error, "connect", broken=True) from error
        driver: Any = lent.driver_connection
        lent.detach()
        return Wire(driver)

    @contextmanager
    def _lent(self, begin: str) -> Iterator[PipelineSession]:
        """A transaction on a connection of its own; whoever is done with it ends it."""
        wire = self._wires.lend()
        session = PipelineSession(wire, self._speech, begin)
        try:
            yield session
        except BaseException:
            session.take_back()
            raise
        finally:
            self._wires.give_back(wire)

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
        deadline = time.monotonic() + AWAY
        while self.read(lambda connection: _status(connection, number)) == "in progress":
            if time.monotonic() > deadline:
                raise Busy("the database broke off while committing; look before trying again")
            time.sleep(0.05)
        # Asked afterwards, and of the log, not of the number: one that a crash wiped out before
        # it reached the disk is given again, to somebody else, at another instant.
        mark = {"number": number, "at": at}
        return self.read(lambda connection: bool(connection.execute(_LOGGED, mark).scalar_one()))

    # --- several attempts ---------------------------------------------------------------------

    def _stubbornly(self, attempt: Callable[[], T]) -> T:
        return stubbornly(attempt, bear)


def _status(connection: Session, number: int) -> str | None:
    """`in progress`, `committed`, `aborted`; None of a number not given yet (again)."""
    try:
        status: str | None = connection.execute(_STATUS, {"number": number}).scalar_one()
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == "22023":
            return None
        raise
    return status


def _engine(url: URL) -> Engine:
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    lively = {name: value for name, value in _LIVELY.items() if name not in url.query}
    engine = create_engine(
        url.update_query_dict(lively),
        isolation_level="READ COMMITTED",
        poolclass=NullPool,  # what is used often is kept as wires
        use_native_hstore=False,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own type
        for statement in _SETTINGS:
            connection.execute(statement)
        connection.commit()

    return engine
