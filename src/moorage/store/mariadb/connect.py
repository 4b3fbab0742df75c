"""How a connection to MariaDB or MySQL is made, and what is set on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import create_engine, event

from moorage.store.database.retry import WAIT
from moorage.store.mariadb.session import FLAGS
from moorage.store.mariadb.url import require_known

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

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


def made_engine(url: URL) -> Engine:
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
