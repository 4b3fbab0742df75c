"""Brings a database to the newest schema and the newest standard names."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import os_resource_classes
import os_traits
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, select, update

from moorage.store import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from moorage.domain.period import Instant

_ONE_AT_A_TIME: Final = Lock()
"""Alembic keeps the running migration in module globals."""
MIGRATIONS: Final = Path(__file__).parent / "migrations"


def is_current(connection: Connection) -> bool:
    """Whether there is nothing to upgrade; only reads."""
    reached = MigrationContext.configure(connection).get_current_heads()
    if set(reached) != set(ScriptDirectory(str(MIGRATIONS)).get_heads()):
        return False
    classes, traits = tables.resource_classes.c, tables.traits.c
    places = dict(map(tuple, connection.execute(select(classes.name, classes.place))))
    known = set(connection.scalars(select(traits.name)))
    return known.issuperset(os_traits.get_traits()) and all(
        places.get(name) == place for place, name in enumerate(os_resource_classes.STANDARDS)
    )


def upgrade(connection: Connection, *, now: Instant) -> None:
    """Run the migrations that are missing, then add standard names that are new.

    Works inside the caller's transaction, which must shut out other writers. Does nothing
    to a database that is up to date.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _ONE_AT_A_TIME:
        command.upgrade(config, "head")
    _sync_resource_classes(connection, now)
    _sync_traits(connection, now)


def _sync_resource_classes(connection: Connection, now: Instant) -> None:
    table = tables.resource_classes
    rows = connection.execute(select(table.c.name, table.c.place))
    places = {row.name: row.place for row in rows}
    for place, name in enumerate(os_resource_classes.STANDARDS):
        if name not in places:
            connection.execute(insert(table).values(name=name, place=place, updated_at=now))
        elif places[name] != place:
            connection.execute(update(table).where(table.c.name == name).values(place=place))


def _sync_traits(connection: Connection, now: Instant) -> None:
    table = tables.traits
    known = set(connection.scalars(select(table.c.name)))
    missing = [name for name in os_traits.get_traits() if name not in known]
    if missing:
        connection.execute(insert(table), [{"name": name, "updated_at": now} for name in missing])
