"""Brings a database to the newest schema and the newest standard names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import os_resource_classes
import os_traits
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, select, text, update

from moorage.domain.errors import BadConfiguration, InvalidDescription
from moorage.store.schema import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from moorage.domain.period import Instant
    from moorage.store.database.session import Session

_ONE_AT_A_TIME: Final = Lock()
"""Alembic keeps the running migration in module globals."""
MIGRATIONS: Final = Path(__file__).parent / "migrations"
_REACHED: Final = text("SELECT version_num FROM alembic_version")
_UNRELEASED: Final = frozenset({*(f"{number:04}" for number in range(1, 26)), "0001_ledger"})
"""Schemas from before the first release, which nothing upgrades."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The schemas this version of the program knows."""

    all: frozenset[str]
    newest: frozenset[str]


@cache
def _known() -> _Known:
    scripts = ScriptDirectory(str(MIGRATIONS))
    every = frozenset(script.revision for script in scripts.walk_revisions())
    return _Known(every, frozenset(scripts.get_heads()))


def check_schema(connection: Session) -> None:
    """Return if the schema is this version's own; only reads.

    Raises:
        InvalidDescription: it is another one; says which.
    """
    reached = frozenset(connection.scalars(_REACHED))
    _refuse_unknown(reached)
    if reached != _known().newest:
        raise InvalidDescription(
            f"the database's schema is {_named(reached)}, older than this program's"
            f" {_named(_known().newest)}",
            path="database",
        )


def _refuse_unknown(reached: frozenset[str]) -> None:
    """Return if there is an upgrade from these revisions, or they are the newest.

    Raises:
        BadConfiguration: the schema is from before the first release.
        InvalidDescription: a newer version of the program has changed it.
    """
    unreleased = reached & _UNRELEASED
    if unreleased:
        raise BadConfiguration(
            f"the database's schema is {_named(unreleased)}, from before the first release, and"
            " cannot be upgraded: use a new database, and bring providers and allocations over"
            " with `moorage admin import placement --from URL` from a service of the version that"
            " made this one",
            path="database",
        )
    strange = reached - _known().all
    if strange:
        raise InvalidDescription(
            f"the database's schema is {_named(strange)}, which this program does not know"
            f" (its newest is {_named(_known().newest)}): a newer version has changed it",
            path="database",
        )


def _named(revisions: frozenset[str]) -> str:
    return " and ".join(sorted(revisions)) or "empty"


def is_current(connection: Connection) -> bool:
    """Whether there is nothing to upgrade; only reads.

    Raises:
        BadConfiguration: the schema is from before the first release.
        InvalidDescription: a newer version of the program has changed it.
    """
    reached = frozenset(MigrationContext.configure(connection).get_current_heads())
    _refuse_unknown(reached)
    if reached != _known().newest:
        return False
    classes, traits = tables.resource_classes.c, tables.traits.c
    places = dict(map(tuple, connection.execute(select(classes.name, classes.place))))
    known = set(connection.scalars(select(traits.name)))
    return known.issuperset(os_traits.get_traits()) and all(
        places.get(name) == place for place, name in enumerate(os_resource_classes.STANDARDS)
    )


def revisions(connection: Connection) -> tuple[str, str]:
    """The schema's revision, and this program's; only reads."""
    reached = frozenset(MigrationContext.configure(connection).get_current_heads())
    return _named(reached), _named(_known().newest)


def is_empty(connection: Connection) -> bool:
    """Whether nobody ever made a ledger here; only reads."""
    return not MigrationContext.configure(connection).get_current_heads()


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
    standard = {name: place for place, name in enumerate(os_resource_classes.STANDARDS)}
    missing = [
        {"name": name, "place": place, "updated_at": now}
        for name, place in standard.items()
        if name not in places
    ]
    if missing:
        connection.execute(insert(table), missing)
    for name, place in standard.items():
        if places.get(name, place) != place:
            connection.execute(update(table).where(table.c.name == name).values(place=place))


def _sync_traits(connection: Connection, now: Instant) -> None:
    table = tables.traits
    known = set(connection.scalars(select(table.c.name)))
    missing = [name for name in os_traits.get_traits() if name not in known]
    if missing:
        connection.execute(insert(table), [{"name": name, "updated_at": now} for name in missing])
