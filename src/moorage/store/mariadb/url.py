"""Reads the query of a MariaDB or MySQL URL: servers, and arguments of the driver."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final, NamedTuple

import pymysql

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from sqlalchemy import URL

_PORT: Final = 3306
_LAST_PORT: Final = 65_535
_HOST: Final = re.compile(r"(?:\[([^\[\],]+)\]|([^\[\]:,\s]+))(?::([0-9]{1,5}))?")
_SECONDS: Final = frozenset({"connect_timeout", "read_timeout", "write_timeout"})
_NUMBER: Final = re.compile(r"0*[1-9][0-9]{0,6}")
_NO_TEXT: Final = frozenset(
    {
        *("auth_plugin_map", "conv", "cursorclass", "ssl"),  # values of Python
        *("compress", "named_pipe"),  # not supported by the driver
        *("client_flag", "defer_connect", "host", "port"),  # given by us
    }
)
_KNOWN: Final = (
    {
        *("ssl_capath", "ssl_check_hostname", "ssl_cipher"),  # SQLAlchemy's
        *list(inspect.signature(pymysql.Connection.__init__).parameters)[1:],
    }
    - _NO_TEXT
)


class Host(NamedTuple):
    """Where a server listens."""

    host: str
    port: int


def without_hosts(url: URL) -> tuple[URL, list[Host]]:
    """The URL without its list of servers, and that list; empty if there is none.

    Raises:
        InvalidDescription: one of them is not `name` or `name:port`, or there is another, or its
            port, elsewhere in the URL.
    """
    given = url.query.get("host", ())
    names = (given,) if isinstance(given, str) else given
    if names and (url.host or url.port or "unix_socket" in url.query):
        raise InvalidDescription(
            "a server or a port is named both by host= and elsewhere; several are written"
            " mysql://user@/name?host=one:3306&host=two:3306",
            path="database URL",
        )
    if "port" in url.query:
        raise InvalidDescription(
            "a port is written behind its server (one:3306), not as port=", path="database URL"
        )
    return url.difference_update_query(["host"]), [_host(name) for name in names]


def _host(text: str) -> Host:
    found = _HOST.fullmatch(text)
    if found is None:
        raise InvalidDescription(
            f"host={text} is not name, name:port, or [address]:port of one server",
            path="database URL",
        )
    address, name, port = found.groups()
    number = int(port or _PORT)
    if not 0 < number <= _LAST_PORT:
        raise InvalidDescription(f"host={text}: there is no such port", path="database URL")
    return Host(address or name, number)


def require_known(url: URL) -> None:
    """Return if the driver knows every argument of a URL without hosts.

    Raises:
        InvalidDescription: one of them it does not, or it is given twice, or is no number of
            seconds though it should be.
    """
    for name, value in url.query.items():
        if name not in _KNOWN:
            raise InvalidDescription(
                f"a URL of MariaDB or MySQL has no argument {name}", path="database URL"
            )
        if not isinstance(value, str):
            raise InvalidDescription(f"the URL gives {name} twice", path="database URL")
        if name in _SECONDS and not _NUMBER.fullmatch(value):
            raise InvalidDescription(
                f"{name} in the URL is no number of seconds", path="database URL"
            )
