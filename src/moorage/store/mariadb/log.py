"""The change log on MariaDB and MySQL: revisions count up, each with its instant.

Writers come one at a time (see `mariadb`), so numbers count up in the order of commits, as in
`numbered`. But a number alone is no cursor here. The server shows a commit to others before it is
on its disk; after a crash, or on a replica that was promoted, the last numbers may never have been
given and are given again. So a cursor also holds the instant that the log says of its number:
while that row is there, everything up to it is, since only the end of a history is ever lost. If
it is not, everything is read anew.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pymysql
from sqlalchemy import bindparam, delete, text, update
from sqlalchemy.exc import DBAPIError

from moorage.domain.waitlist import EntryState
from moorage.store.changelog.entries import (
    Entry,
    LogDelta,
    LogPoll,
    SingleWriterLog,
    Turn,
    by_provider,
    log_rows,
)
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.period import Instant
    from moorage.store.changelog.entries import ProviderChange
    from moorage.store.changelog.footprint import Footprint
    from moorage.store.database.session import Question, Rows, Session

# The clock of the statement's end, not of its begin: it is read after the wait for the lock.
CLOCK: Final = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"
_NOW: Final = f"SELECT {CLOCK}"
_ASK: Final = (
    "SELECT revision,"  # noqa: S608 - the clock is a constant
    " (SELECT at FROM changes WHERE changes.revision = ledger.revision LIMIT 1),"
    f" {CLOCK} FROM ledger WHERE id = 1"
)


class Mark(NamedTuple):
    """A place in the history that nothing else can be mistaken for."""

    revision: int
    at: Instant | None
    """When the commit of that number was made; None: there is no such row in the log."""


class LogConnection:
    """One connection per process for questions of one statement; replaced when it breaks."""

    def __init__(
        self, connect: Callable[[], Any], on_timeout: Callable[[], None], *, oldest: float
    ) -> None:
        """`on_timeout` is called when the server did not answer in time.

        `oldest` are seconds after which the connection is made anew.
        """
        self._connect = connect
        self._on_timeout = on_timeout
        self._oldest = oldest
        self._busy = Lock()
        self._driver: Any = None
        self._made = 0.0
        self._dropped = False
        self._joining = Lock()
        self._connecting: Future[None] | None = None
        """Of the one thread that makes a connection, if any does."""

    def ask(self) -> tuple[Mark, Instant]:
        """The newest mark, and the server's clock.

        Raises:
            DBAPIError: the database is away; the connection is broken.
        """
        revision, at, now = self._one(_ASK)
        return Mark(revision, at), now

    def now(self) -> Instant:
        """The server's clock.

        Raises:
            DBAPIError: the database is away; the connection is broken.
        """
        return int(self._one(_NOW)[0])

    def drop(self) -> None:
        """Let the next query open a new connection; does not wait."""
        self._dropped = True

    def close(self) -> None:
        """Let go of the connection."""
        with self._busy:
            self._close()

    def _one(self, statement: str) -> Any:  # noqa: ANN401 - a row
        try:
            if self._driver is not None and time.monotonic() > self._made + self._oldest:
                self._renew()
            while True:
                with self._busy:
                    if self._dropped:
                        self._dropped = False
                        self._close()
                    if self._driver is not None:
                        return self._answer(statement)
                self._renew(together=True)
        except pymysql.Error as error:
            # In SQLAlchemy's terms, as every other error of the database.
            raise DBAPIError(statement, (), error, connection_invalidated=True) from error

    def _renew(self, *, together: bool = False) -> None:
        """Make a new connection, or if a thread does so already, go on or wait `together` with it.

        Those that wait share its failure, instead of trying in vain one after the other.
        """
        mine: Future[None] = Future()
        with self._joining:
            others = self._connecting
            if others is None:
                self._connecting = mine
        if others is not None:
            if together:
                others.result()
            return
        try:
            driver = self._connect()
            with self._busy:
                self._close()
                self._driver, self._made = driver, time.monotonic()
        except BaseException as error:
            self._connecting = None
            mine.set_exception(error)
            raise
        self._connecting = None
        mine.set_result(None)

    def _answer(self, statement: str) -> Any:  # noqa: ANN401 - a row
        try:
            with self._driver.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchone()
        except pymysql.Error as error:
            self._close()
            if timed_out(error):
                self._on_timeout()
            raise

    def _close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None and driver.open:
            driver.close()


def timed_out(error: BaseException | None) -> bool:
    """Whether the driver raised this because the server did not answer in time."""
    return error is not None and isinstance(error.__context__, TimeoutError)


MARK: Final = "moorage mark"
"""Where a connection's info keeps the mark of the transaction about to commit."""
_LOOK_BACK: Final = 100
"""Numbers before the newest that a reader of everything makes sure to have seen."""

_ENTER: Final = text(
    f"SELECT revision + 1, topology_revision, exclusive_revision, {CLOCK} AS instant"  # noqa: S608
    " FROM ledger WHERE id = 1 FOR UPDATE"
)
_HEAD: Final = (
    "SELECT revision, topology_revision, exclusive_revision, log_start,"  # noqa: S608 - constants
    f" {CLOCK} AS now, EXISTS (SELECT 1 FROM members) AS tags,"
    f" EXISTS (SELECT 1 FROM waitlist WHERE state = '{EntryState.WAITING.value}') AS waited"
    " FROM ledger WHERE id = 1"
)
_SINCE: Final = (
    "SELECT subject, revision, at, bookings_only, added FROM changes"
    " WHERE revision >= %s ORDER BY revision, subject"
)
_LOGGED: Final = "SELECT EXISTS (SELECT 1 FROM changes WHERE revision = %s AND at = %s)"
_l = tables.ledger.c
_ADVANCE = update(tables.ledger).values(
    revision=bindparam("number"), topology_revision=_l.topology_revision + bindparam("topology")
)
_LOG = tables.changes.insert()
_TRIM = delete(tables.changes).where(tables.changes.c.revision <= bindparam("upto"))
_START = update(tables.ledger).values(log_start=bindparam("upto"))


class MarkedLog(SingleWriterLog):
    """See the module; the cursor is a `Mark`."""

    def __init__(self, ask: Callable[[], tuple[Mark, Instant]]) -> None:
        """`ask` says the newest mark and the server's clock."""
        self._ask = ask

    def shut_out(self, connection: Session) -> None:
        connection.execute(_ENTER)

    def enter(
        self, connection: Session, touches: Callable[[], Footprint], ahead: Sequence[Question] = ()
    ) -> tuple[Turn, Sequence[Rows]]:
        """See `Log`. Whatever it touches, a writer is alone."""
        del touches
        turn, *answers = connection.ask((_ENTER, {}), *ahead)
        number, topology, exclusive, instant = turn.one()
        return Turn(instant, number, topology, exclusive), answers

    def append(
        self,
        connection: Session,
        turn: Turn,
        changed: Mapping[str, ProviderChange],
        *,
        topology_moved: bool = False,
        actor: str | None = None,
    ) -> int:
        number = turn.number
        connection.do(_ADVANCE, {"number": number, "topology": int(topology_moved)})
        connection.do(_LOG, log_rows(number, turn, changed, actor))
        if upto := self.surplus(connection, number):
            connection.do(_TRIM, {"upto": upto})
            connection.do(_START, {"upto": upto})
        connection.info[MARK] = Mark(number, turn.at)
        return number

    def poll(self, cursor: object | None) -> LogPoll:
        newest, now = self._ask()
        return LogPoll(moved=newest != cursor, now=now)

    def delta(self, connection: Session, cursor: object | None, revision: int) -> LogDelta:
        """See `Log`. Revisions go up for every reader, also where the numbers fell back."""
        head = connection.exec_driver_sql(_HEAD).one()
        newest, topology, exclusive, start, now, tags, waited = head
        if isinstance(cursor, Mark):
            found = _since(connection, cursor.revision)
            if _follows(cursor, found, start):
                missed = [row for row in found if row.revision > cursor.revision]
                reached = _reached(cursor, missed)
                return LogDelta(
                    cursor=reached,
                    revision=max(newest, revision + 1) if missed else revision,
                    topology_revision=topology,
                    exclusive_revision=exclusive if reached.revision == newest else None,
                    waited=bool(waited),
                    entries=by_provider(missed),
                    tags=bool(tags),
                    complete=True,
                    now=now,
                )
        found = _since(connection, max(newest - _LOOK_BACK, start + 1))
        before = Mark(found[0].revision - 1 if found else newest, None)
        reached = _reached(before, found)
        return LogDelta(
            cursor=reached,
            revision=newest if cursor is None else max(newest, revision + 1),
            topology_revision=topology,
            exclusive_revision=exclusive if reached.revision == newest else None,
            waited=bool(waited),
            entries={},
            tags=bool(tags),
            complete=False,
            now=now,
        )


def _since(connection: Session, revision: int) -> list[Entry]:
    return [Entry(*row) for row in connection.exec_driver_sql(_SINCE, (revision,))]


def logged(connection: Session, marks: Collection[Mark]) -> Iterator[Mark]:
    """Those of them whose commits happened; waits until their transactions, if any runs, ended.

    Asked in the transaction that does the work anew, where it must be done anew. Of a node of
    Galera that was lost a commit may still come, and its lock is not known here: then one of the
    two is refused, for both move the ledger's row.
    """
    if marks:
        connection.execute(_ENTER).one()
    for mark in marks:
        # The number alone would not do: a crash may have wiped it out, and another commit got it.
        if connection.exec_driver_sql(_LOGGED, tuple(mark)).scalar_one():
            yield mark


def _follows(cursor: Mark, found: Iterable[Entry], log_start: int) -> bool:
    """Whether the history that the cursor was taken from is the one in the log, from there on."""
    if cursor.at is None:
        return cursor.revision == 0 and log_start == 0
    return any((row.revision, row.at) == cursor for row in found)


def _reached(start: Mark, found: Iterable[Entry]) -> Mark:
    """How far the log was seen without a gap.

    A reader that looks while others commit may see a commit and not the one just before: the
    server does not take a view of all transactions in one instant. What was skipped is read with
    the next look, since the cursor stays before it.
    """
    reached = start
    for row in found:
        if row.revision > reached.revision + 1:
            break
        reached = Mark(row.revision, row.at)
    return reached
