"""The pool of connections to PostgreSQL: how one is made, and when it is made anew."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DisconnectionError

from moorage.domain.errors import InvalidDescription
from moorage.store.database.retry import WAIT
from moorage.store.postgresql.errors import POOLED
from moorage.store.postgresql.hang_detector import HangDetector, Wait

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg.abc import PQGen
    from sqlalchemy import URL, Engine
    from sqlalchemy.pool import ConnectionPoolEntry

    from moorage.store.postgresql.hang_detector import Server

T = TypeVar("T")

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
CONNECTIONS: Final = 16
"""Transactions at a time per process; more only queue in the database instead of here."""
_LIVELY: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "2",
    "tcp_user_timeout": "5000",
}
"""So that a server whose machine has gone is noticed; the URL may say otherwise."""


_NOT_EVERY_TEXT: Final = (
    "the database's encoding is {}, which does not keep every text: make one by"
    " CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
)
_PROCESS: Final = "SELECT pg_backend_pid()"
_LOOKS: Final = 3
"""How often each of two connections is asked which process of the server answers."""


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that says while somebody waits for its server."""

    def __init__(self, *words: Any, **options: Any) -> None:  # noqa: ANN401 - the driver's
        super().__init__(*words, **options)
        self.waits = Wait(self.pgconn.socket, (self.info.host, self.info.port))
        """The waits on it."""

    def wait(self, gen: PQGen[T], *words: Any, **options: Any) -> T:  # noqa: ANN401 - the driver's
        """As the driver's, watched."""
        with self.waits:
            return super().wait(gen, *words, **options)


def engine_for(url: URL) -> tuple[Engine, HangDetector]:
    """Connections to the server of a URL, each made ready for Moorage's work and watched."""
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    lively = {name: value for name, value in _LIVELY.items() if name not in url.query}
    engine = create_engine(
        url.update_query_dict(lively),
        isolation_level="AUTOCOMMIT",  # each transaction says how it begins
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=WAIT,
        pool_use_lifo=True,  # the one used last has prepared the most statements
        pool_reset_on_return=None,  # every transaction is ended by whoever began it
        use_native_hstore=False,
    )
    words, options = engine.dialect.create_connect_args(engine.url)
    several = "," in str(options.get("host", ""))
    detector = HangDetector(partial(_is_there, words, options), leave=_go_on if several else None)

    @event.listens_for(engine, "do_connect")
    def connect(
        _dialect: object, _record: object, words: tuple[Any, ...], options: dict[str, Any]
    ) -> WatchedConnection:
        detector.refuse()
        try:
            connection = WatchedConnection.connect(*words, **options)
        except psycopg.errors.ConnectionTimeout:
            detector.declare()
            detector.refuse()
            raise
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            connection.close()
            raise InvalidDescription(_NOT_EVERY_TEXT.format(encoding), path="database")
        detector.watch(connection.waits)
        return connection

    @event.listens_for(engine, "connect")
    def prepare(connection: WatchedConnection, _record: object) -> None:
        for statement in _SETTINGS:
            connection.execute(statement)

    _make_anew_after_a_break(engine)
    return engine, detector


def _make_anew_after_a_break(engine: Engine) -> None:
    """Where one connection broke, trust none that is older: its server may have been restarted."""
    broken_at = -math.inf

    @event.listens_for(engine, "connect")
    def note_when(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["made at"] = time.monotonic()

    @event.listens_for(engine, "invalidate")
    def note_break(_connection: object, _record: object, error: BaseException | None) -> None:
        nonlocal broken_at
        if not isinstance(error, DisconnectionError):
            broken_at = time.monotonic()

    @event.listens_for(engine, "checkout")
    def reject(_connection: object, record: ConnectionPoolEntry, _lent: object) -> None:
        if record.info["made at"] <= broken_at:
            raise DisconnectionError


def require_usable(engine: Engine) -> None:
    """Return if each connection is a session of its own.

    Behind a pooler that lends sessions for a transaction only, two connections are answered by one
    process of the server, or one connection by several.

    Raises:
        InvalidDescription: there is such a pooler.
    """
    with engine.connect() as first, engine.connect() as second:
        drivers: list[Any] = [one.connection.driver_connection for one in (first, second)]
        answered: list[set[int]] = [set(), set()]
        for _ in range(_LOOKS):
            for driver, processes in zip(drivers, answered, strict=True):
                processes.add(driver.execute(_PROCESS, prepare=False).fetchone()[0])
        if any(len(processes) > 1 for processes in answered) or answered[0] & answered[1]:
            raise InvalidDescription(POOLED, path="database")


def _go_on(_server: Server) -> None:
    """The driver tries each server of the URL for every connection, the first one first."""


def _is_there(
    words: Sequence[str], options: Mapping[str, Any], seconds: float, server: Server
) -> bool:
    """Whether a server says anything within so many seconds; that it lets nobody in, too."""
    brief = {**options, "connect_timeout": max(math.floor(seconds), 1)}
    if server is not None:
        host, port = server
        brief |= {"host": host, "port": port, "target_session_attrs": "any"}
    try:
        psycopg.connect(*words, **brief).close()
    except psycopg.errors.ConnectionTimeout:
        return False
    except psycopg.Error:
        return True
    return True
