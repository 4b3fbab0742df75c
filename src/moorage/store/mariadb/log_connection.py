"""The connection on which a process asks whether the ledger has changed, and for the time."""

from __future__ import annotations

import time
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pymysql
from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.period import Instant

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
        """Let the next question make a new connection; waits for nobody."""
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

        Who waits shares its failure: to try in vain one after the other takes ever longer.
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
