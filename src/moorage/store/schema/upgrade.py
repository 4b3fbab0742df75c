"""Brings a database to the newest schema and the newest standard names.

Every process of a service looks whether its database is up to date. Only the one that upgrades it
loads Alembic, which takes half a second and 8 MB.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import os_resource_classes
import os_traits
from sqlalchemy import insert, inspect, select, text, update

from moorage.domain.errors import BadConfiguration, InvalidDescription
from moorage.store.schema import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from moorage.domain.period import Instant
    from moorage.store.database.session import Session

_ONE_AT_A_TIME: Final = Lock()
"""Alembic keeps the running migration in module globals."""
MIGRATIONS: Final = Path(__file__).parent / "migrations"
KNOWN: Final = tuple(sorted(one.stem for one in MIGRATIONS.glob("versions/[0-9]*.py")))
"""The revisions that this program knows, oldest first: a migration's file is named like its own."""
NEWEST: Final = KNOWN[-1]
_REACHED: Final = text("SELECT version_num FROM alembic_version")
_UNRELEASED: Final = frozenset({*(f"{number:04}" for number in range(1, 26)), "0001_ledger"})
"""Schemas from before the first release, which nothing upgrades."""


def check_schema(connection: Session) -> None:
    """Return if the schema is this version's own; only reads.

    Raises:
        InvalidDescription: it is another one; says which.
    """
    reached = frozenset(connection.scalars(_REACHED))
    if not _is_newest(reached):
        raise InvalidDescription(
            f"the database's schema is {_named(reached)}, older than this program's {NEWEST}",
            path="database",
        )


def _is_newest(reached: frozenset[str]) -> bool:
    """Whether these revisions are this program's; if not, there is an upgrade from them.

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
    strange = reached - set(KNOWN)
    if strange:
        raise InvalidDescription(
            f"the database's schema is {_named(strange)}, which this program does not know"
            f" (its newest is {NEWEST}): a newer version has changed it",
            path="database",
        )
    return reached == {NEWEST}


def _named(revisions: frozenset[str]) -> str:
    return " and ".join(sorted(revisions)) or "empty"


def is_current(connection: Connection) -> bool:
    """Whether there is nothing to upgrade; only reads.

    Raises:
        BadConfiguration: the schema is from before the first release.
        InvalidDescription: a newer version of the program has changed it.
    """
    if not _is_newest(_reached(connection)):
        return False
    classes, traits = tables.resource_classes.c, tables.traits.c
    places = dict(map(tuple, connection.execute(select(classes.name, classes.place))))
    known = set(connection.scalars(select(traits.name)))
    return known.issuperset(os_traits.get_traits()) and all(
        places.get(name) == place for place, name in enumerate(os_resource_classes.STANDARDS)
    )


def revisions(connection: Connection) -> tuple[str, str]:
    """The schema's revision, and this program's; only reads."""
    return _named(_reached(connection)), NEWEST


def is_empty(connection: Connection) -> bool:
    """Whether nobody ever made a ledger here; only reads."""
    return not _reached(connection)


def _reached(connection: Connection) -> frozenset[str]:
    """The revisions of the database's schema; none without a ledger."""
    if not inspect(connection).has_table("alembic_version"):
        return frozenset()
    return frozenset(connection.scalars(_REACHED))


def upgrade(connection: Connection, *, now: Instant) -> None:
    """Run the migrations that are missing, then add standard names that are new.

    Works inside the caller's transaction, which must shut out other writers. Does nothing
    to a database that is up to date.
    """
    from alembic import command  # noqa: PLC0415 - see the module
    from alembic.config import Config  # noqa: PLC0415

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
