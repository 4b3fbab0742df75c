"""Checks a MariaDB or MySQL URL: it names one server, and arguments that the driver knows."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final

import pymysql

from moorage.domain.errors import BadConfiguration

if TYPE_CHECKING:
    from sqlalchemy import URL

_SECONDS: Final = frozenset({"connect_timeout", "read_timeout", "write_timeout"})
_NUMBER: Final = re.compile(r"0*[1-9][0-9]{0,6}")
_ADDRESS: Final = ("host", "port")
_NO_TEXT: Final = frozenset(
    {
        *("auth_plugin_map", "conv", "cursorclass", "ssl"),  # values of Python
        *("compress", "named_pipe"),  # not supported by the driver
        *("client_flag", "defer_connect"),  # given by us
    }
)
_KNOWN: Final = (
    {
        *("ssl_capath", "ssl_check_hostname", "ssl_cipher"),  # SQLAlchemy's
        *list(inspect.signature(pymysql.Connection.__init__).parameters)[1:],
    }
    - _NO_TEXT
)


def require_known(url: URL) -> None:
    """Return if a URL names one server, and arguments that the driver knows.

    Raises:
        BadConfiguration: it names several servers, or one among the arguments; or an argument is
            unknown, is given twice, or is no number of seconds though it should be.
    """
    if "," in (url.host or "") or not url.query.keys().isdisjoint(_ADDRESS):
        raise BadConfiguration(
            "a URL of MariaDB or MySQL names one server, as mysql://user@server:3306/name; for a"
            " cluster name a proxy that chooses the server, such as MaxScale, ProxySQL or HAProxy",
            path="database URL",
        )
    for name, value in url.query.items():
        if name not in _KNOWN:
            raise BadConfiguration(
                f"a URL of MariaDB or MySQL has no argument {name}", path="database URL"
            )
        if not isinstance(value, str):
            raise BadConfiguration(f"the URL gives {name} twice", path="database URL")
        if name in _SECONDS and not _NUMBER.fullmatch(value):
            raise BadConfiguration(
                f"{name} in the URL is no number of seconds", path="database URL"
            )
