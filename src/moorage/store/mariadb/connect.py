"""Connections to MariaDB or MySQL: the URL is checked, settings are made on each."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final

import pymysql
from sqlalchemy import create_engine, event

from moorage.domain.errors import BadConfiguration
from moorage.store.database.retry import WAIT
from moorage.store.mariadb.session import FLAGS

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

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


CONNECTIONS: Final = 16
"""Transactions at a time per process; more only queue in the database instead of here."""
OLD: Final = 45
"""Seconds after which an idle connection is made anew before it is used."""
_SETTINGS: Final = (
    f"SET SESSION innodb_lock_wait_timeout = {int(WAIT)}, lock_wait_timeout = {int(WAIT)},"
    " time_zone = '+00:00', default_storage_engine = InnoDB, foreign_key_checks = 1,"
    " sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
)
# A writer that was stopped in its tracks must not keep its lock for ever.
_IDLE: Final = {
    "MariaDB": f"SET SESSION idle_transaction_timeout = {int(WAIT)}",
    "MySQL": "SET SESSION wait_timeout = 60",
}
_CLUSTERED: Final = "SHOW VARIABLES LIKE 'wsrep_on'"
_CAUSAL: Final = "SET SESSION wsrep_sync_wait = 7"
"""Whatever a transaction begins with waits for what this node has been sent."""
_LIVELY: Final = {"connect_timeout": 5, "read_timeout": 60, "write_timeout": 60}
"""So that a server whose machine has gone is noticed; the URL may say otherwise. A writer waits
for its turn meanwhile."""


def engine_for(url: URL) -> Engine:
    """Connections to the server of a URL, each made ready for Moorage's work.

    Raises:
        InvalidDescription: the driver does not know an argument, or its value cannot be.
    """
    require_known(url)
    lively = {name: int(str(url.query.get(name, value))) for name, value in _LIVELY.items()}
    # The driver takes its time for the greeting by the others, too.
    brief = {name: str(min(value, lively["connect_timeout"])) for name, value in lively.items()}
    engine = create_engine(
        # One name for both kinds, which the migrations tell from others.
        url.set(drivername="mysql+pymysql").update_query_dict(brief),
        isolation_level="REPEATABLE READ",
        pool_size=CONNECTIONS // 2,
        max_overflow=CONNECTIONS - CONNECTIONS // 2,
        pool_timeout=WAIT,
        pool_recycle=OLD,
        pool_use_lifo=True,
        # Every transaction is ended by whoever began it.
        pool_reset_on_return=None,
        paramstyle="format",  # sessions give their values in order
        connect_args={"client_flag": FLAGS},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own type
        kind = "MariaDB" if "MariaDB" in connection.get_server_info() else "MySQL"
        with connection.cursor() as cursor:
            cursor.execute(_SETTINGS)
            cursor.execute(_IDLE[kind])
            cursor.execute(_CLUSTERED)
            if (cursor.fetchone() or ("", "OFF"))[1] == "ON":
                cursor.execute(_CAUSAL)
        connection._read_timeout = lively["read_timeout"]  # noqa: SLF001 - fixed once it is made
        connection._write_timeout = lively["write_timeout"]  # noqa: SLF001

    return engine
