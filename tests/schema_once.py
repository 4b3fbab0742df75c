"""Migrates an empty SQLite database once a process; what that made is repeated for the others.

Most tests begin with a ledger of their own, and nine tenths of its cost were Alembic. The first
one is migrated as ever, and so is every database that is not empty; `tests/store/` proves the
migrations themselves.
"""

from types import SimpleNamespace

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect

from moorage.store import upgrade

_made: list[str] = []
"""The statements that make an empty database a migrated one."""


def pytest_configure() -> None:
    """Stand between the opening of a ledger and Alembic."""
    vars(upgrade)["command"] = SimpleNamespace(upgrade=_upgraded)


def _upgraded(config: Config, revision: str) -> None:
    connection: Connection = config.attributes["connection"]
    if connection.dialect.name != "sqlite" or inspect(connection).get_table_names():
        command.upgrade(config, revision)
    elif _made:
        for statement in _made:
            connection.exec_driver_sql(statement)
    else:
        command.upgrade(config, revision)
        driver = connection.connection.driver_connection
        assert driver is not None
        _made.extend(driver.iterdump())
        del _made[0], _made[-1]  # the transaction is ours
