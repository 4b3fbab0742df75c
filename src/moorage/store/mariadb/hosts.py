"""Several servers of MariaDB or MySQL in one URL: a connection goes to the first that serves.

    mysql://user:password@/name?host=one:3306&host=two:3306

In the order of the URL, so that all replicas use the same one while it can be used: the nodes of
a Galera cluster, or a primary and what may take its place. One that could not be used is shunned
for a while: it is asked last, but by the first connection made after that while.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import pymysql
from sqlalchemy import event

from moorage.store.mariadb.url import Host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Dialect, Engine

_log = logging.getLogger(__name__)

_SHUNNED: Final = 10.0
"""Seconds for which a server that could not be used is asked last."""
_LONGEST: Final = 300.0
"""The same at most where it does not answer: each time it is asked costs somebody a timeout."""
_ONLY_READS: Final = 1290
"""The server's own number for it."""
_OFF: Final = frozenset({"OFF", "0", 0})
_READ_ONLY: Final = "SHOW VARIABLES LIKE 'read_only'"


@dataclass
class _Shunned:
    """A server that could not be used."""

    wait: float
    """Seconds for which it is asked last."""
    until: float
    """When that ends, on the process's own clock."""
    hangs: bool
    """Whether it did not answer, instead of refusing."""


class Choice:
    """Which of several servers an engine's connections go to. May be used from any thread."""

    def __init__(self, engine: Engine, hosts: Sequence[Host], *, only_read: bool = False) -> None:
        """Those that only read will do with `only_read`."""
        self._engine = engine
        self._hosts = list(hosts)
        self._only_read = only_read
        self._shunned: dict[Host, _Shunned] = {}
        self._open: WeakSet[Any] = WeakSet()
        self._lock = Lock()
        event.listen(engine, "do_connect", self._connect)

    def cut(self, driver: Any) -> None:  # noqa: ANN401 - the driver's own
        """The server of this connection hangs: shun it, and break what else waits for it."""
        host = Host(driver.host, driver.port)
        self._shun(host, "it does not answer", hangs=True)
        self._leave(host)

    def _connect(self, dialect: Dialect, _record: object, words: Any, options: Any) -> Any:  # noqa: ANN401 - the driver's own
        failed: pymysql.Error | None = None
        for host in self._in_order():
            try:
                found = self._connected(dialect, words, {**options, **host._asdict()})
            except pymysql.Error as error:
                failed = error
                hangs = timed_out(error)
                self._shun(host, _sentence(error), hangs=hangs)
                if hangs:
                    self._leave(host)
            else:
                self._use(host, found)
                return found
        assert failed is not None, "there is a server"
        raise failed

    def _connected(self, dialect: Dialect, words: Any, options: dict[str, Any]) -> Any:  # noqa: ANN401 - the driver's own
        connection: Any = dialect.connect(*words, **options)
        try:
            # A node that has lost its cluster lets one in, but refuses even this.
            connection.commit()
            if not self._only_read:
                with connection.cursor() as cursor:
                    cursor.execute(_READ_ONLY)
                    require_writable(cursor.fetchone()[1])
        except BaseException:
            connection.close()
            raise
        return connection

    def _leave(self, host: Host) -> None:
        with self._lock:
            others = [one for one in self._open if (one.host, one.port) == host]
        if others:
            self._engine.dispose()
        for one in others:
            _break(one)

    def _in_order(self) -> list[Host]:
        """Those that hang come last. One whose time is over is asked by one thread only."""
        now = time.monotonic()

        def rank(host: Host) -> int:
            shunned = self._shunned.get(host)
            if shunned is None:
                return 0
            if shunned.until <= now:
                if shunned.hangs:
                    shunned.wait = min(shunned.wait * 2, _LONGEST)
                shunned.until = now + shunned.wait
                return 0
            return 2 if shunned.hangs else 1

        with self._lock:
            return sorted(self._hosts, key=rank)

    def _shun(self, host: Host, why: str, *, hangs: bool) -> None:
        with self._lock:
            known = self._shunned.get(host)
            wait = known.wait if known is not None and known.hangs and hangs else _SHUNNED
            self._shunned[host] = _Shunned(wait, time.monotonic() + wait, hangs)
        if known is None:
            _log.warning("the database server %s is passed over: %s", _written(host), why)

    def _use(self, host: Host, connection: Any) -> None:  # noqa: ANN401 - the driver's own
        with self._lock:
            self._open.add(connection)
            known = self._shunned.pop(host, None)
        if known is not None:
            _log.warning("the database server %s is used again", _written(host))


def require_writable(read_only: object) -> None:
    """Return if this value of the server's variable says that it can be written to.

    Raises:
        pymysql.OperationalError: it only reads.
    """
    if read_only not in _OFF:
        raise pymysql.OperationalError(_ONLY_READS, f"read_only is {read_only}")


def timed_out(error: BaseException | None) -> bool:
    """Whether the driver raised this because the server did not answer in time."""
    return error is not None and isinstance(error.__context__, TimeoutError)


def _break(driver: Any) -> None:  # noqa: ANN401 - the driver's own
    """Whoever waits for an answer on it hears that it is broken."""
    wire = driver._sock  # noqa: SLF001 - nothing public ends a wait in another thread
    if wire is not None:
        with contextlib.suppress(OSError):  # it has ended already
            # Not that of TLS, which another thread may be using.
            socket.socket.shutdown(wire, socket.SHUT_RDWR)


def _written(host: Host) -> str:
    return f"[{host.host}]:{host.port}" if ":" in host.host else f"{host.host}:{host.port}"


def _sentence(error: pymysql.Error) -> str:
    return " ".join(str(error).split())
