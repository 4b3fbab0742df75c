"""Several servers of MariaDB or MySQL in one URL: a connection goes to the first that serves.

    mysql://user:password@/name?host=one:3306&host=two:3306

In the order of the URL, so that all replicas use the same one while it can be used: the nodes of
a Galera cluster, or a primary and what may take its place.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pymysql
from sqlalchemy import event

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import URL, Dialect, Engine

_SHUNNED: Final = 10.0
"""Seconds for which a server that could not be used is asked last: it may cost a timeout."""
_PORT: Final = 3306
_ONLY_READS: Final = 1290
"""The server's own number for it."""
_READ_ONLY: Final = "SHOW VARIABLES LIKE 'read_only'"
_HOST: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]+))(?::([0-9]{1,5}))?")


class Host(NamedTuple):
    """Where a server listens."""

    host: str
    port: int


def without_hosts(url: URL) -> tuple[URL, list[Host]]:
    """The URL without its list of servers, and that list; empty if there is none.

    Raises:
        InvalidDescription: one of them is not `name` or `name:port`, or there is another before
            the database.
    """
    given = url.query.get("host", ())
    names = (given,) if isinstance(given, str) else given
    if names and url.host:
        raise InvalidDescription(
            "a server is named both before the database and by host=; several are written"
            " mysql://user@/name?host=one:3306&host=two:3306",
            path="database",
        )
    return url.difference_update_query(["host"]), [_host(name) for name in names]


def _host(text: str) -> Host:
    found = _HOST.fullmatch(text)
    if found is None:
        raise InvalidDescription(
            f"host={text} is not name, name:port, or [address]:port", path="database"
        )
    address, name, port = found.groups()
    return Host(address or name, int(port or _PORT))


def connect_to_first(engine: Engine, hosts: Sequence[Host]) -> None:
    """Let the engine's connections go to the first of these servers that can be written to."""
    shunned: dict[Host, float] = {}

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Dialect, _record: object, words: Any, options: Any) -> Any:  # noqa: ANN401 - the driver's own
        now = time.monotonic()
        *others, last = sorted(hosts, key=lambda one: shunned.get(one, now) > now)
        for host in others:
            try:
                found = _connected(dialect, words, {**options, **host._asdict()})
            except pymysql.Error:
                shunned[host] = time.monotonic() + _SHUNNED
            else:
                return found
        return _connected(dialect, words, {**options, **last._asdict()})


def _connected(dialect: Dialect, words: Any, options: dict[str, Any]) -> Any:  # noqa: ANN401 - the driver's own
    connection: Any = dialect.connect(*words, **options)
    try:
        _check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: Any) -> None:  # noqa: ANN401 - the driver's own
    # A node that has lost its cluster lets one in, but refuses even this.
    connection.commit()
    with connection.cursor() as cursor:
        cursor.execute(_READ_ONLY)
        name, value = cursor.fetchone()
    if value != "OFF":
        raise pymysql.OperationalError(_ONLY_READS, f"{name} is {value}")
