"""Databases behind the ledger, and the one way to name them: a URL.

A backend knows how to connect, what a consistent read is, how writers keep out of each other's
way, and what to do when the database is away. What follows commits is its `Log`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from moorage.domain.period import Instant
    from moorage.store.batch import Batch
    from moorage.store.footprint import Footprint
    from moorage.store.session import Session

T = TypeVar("T")

WAIT: Final = 30.0
"""Seconds a writer waits for its turn before it is told to come again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a writer has when nobody can get in its way any more."""

    at: Instant
    """The database's clock, read after every wait: later commits have later instants."""
    number: int = 0
    """The commit's revision, where it is known before the end."""
    alone: bool = True
    """Whether every other writer is shut out, not just those who touch the same things."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of one process to its database."""

    in_use: int
    idle: int
    limit: int
    """How many it may have; whoever comes then waits."""


@dataclass(frozen=True, slots=True)
class Glance:
    """The answer to the one cheap question of each request."""

    moved: bool
    """Whether there is a commit that the cursor does not know."""
    now: Instant | None = None
    """The database's clock, where it came along for nothing."""


@dataclass(frozen=True, slots=True)
class News:
    """What happened after a cursor, all of it seen in one consistent state."""

    cursor: object
    revision: int
    topology_revision: int
    subjects: frozenset[str]
    """Providers that changed."""
    wholly: frozenset[str]
    """Those of them of which more than bookings changed."""
    complete: bool
    """False: the log does not reach back to the cursor, so everything is to be read anew."""
    now: Instant | None = None
    """The database's clock, where it came along for nothing."""


class Log(Protocol):
    """The change log of a kind of database: how commits are told apart and followed."""

    def belongs(self, connection: Session | Connection) -> bool:
        """Whether the log stored there was written on this server, not copied from another."""

    def begin_anew(self, connection: Connection) -> None:
        """Forget a log that does not belong; whoever follows loads everything."""

    def enter(self, connection: Session, footprint: Footprint) -> Turn:
        """Wait until nobody else can change what this commit reads or writes.

        Raises:
            Busy: that took too long.
        """

    def sweep(self, batch: Batch) -> Sequence[str]:
        """Delete bookings that no longer live, of whomever nobody else is busy with.

        Returns:
            The consumers who lost some. If the batch is alone: all there are.
        """

    def append(self, batch: Batch) -> int:
        """Write down what the commit touched, as its last step; its revision."""

    def glance(self, cursor: object | None) -> Glance:
        """Whether anything was committed that the cursor does not know; None knows nothing."""

    def news(self, connection: Session, cursor: object | None, revision: int) -> News:
        """What a reader at the cursor, and at a revision, has missed."""


class Backend(Protocol):
    """One database. Every method may be called from any thread."""

    @property
    def log(self) -> Log:
        """Its change log."""

    def look(self, work: Callable[[Connection], T]) -> T:
        """As `read`, through SQLAlchemy: for what looks at the schema.

        Raises:
            Busy: the database is away.
        """

    def read(self, work: Callable[[Session], T]) -> T:
        """Do work that only reads, in one consistent state.

        Raises:
            Busy: the database is away.
        """

    def write(self, work: Callable[[Session], T]) -> T:
        """Do work in one transaction, which leaves nothing behind if it raises.

        The work may be done several times, each time from the beginning, if the database could
        not go through with it.

        Raises:
            Busy: no turn to write in time, or the database is away.
        """

    def upgrade(self, work: Callable[[Connection], None]) -> None:
        """As `write`, through SQLAlchemy, alone in the whole database: to change its schema."""

    def now(self) -> Instant:
        """The database's clock."""

    def connections(self) -> Connections:
        """How many there are now."""

    def close(self) -> None:
        """Let go of every connection."""


def connect(url: str) -> Backend:
    """The backend for a database URL; `sqlite://` is a private database that goes on close.

    Raises:
        InvalidDescription: not a URL, not of a supported database, or its driver is missing.
        Busy: the database is away.
    """
    try:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
    except ArgumentError as error:
        raise InvalidDescription(f"not a database URL: {error}", path="database") from error
    # Drivers are extras: each is asked for only where a URL names its database.
    try:
        if kind == "sqlite":
            from moorage.store.sqlite import open_sqlite  # noqa: PLC0415

            return open_sqlite(parsed)
        if kind == "postgresql":
            from moorage.store.postgres import PostgresBackend  # noqa: PLC0415

            return PostgresBackend(parsed)
        if kind in {"mysql", "mariadb"}:
            from moorage.store.mariadb import MariadbBackend  # noqa: PLC0415

            return MariadbBackend(parsed)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise InvalidDescription(
            f"no driver for {kind} databases ({error}): see the extras of the package",
            path="database",
        ) from error
    raise InvalidDescription(
        f"no support for {kind} databases; use sqlite:///path, postgresql://host/name,"
        " or mysql://host/name",
        path="database",
    )
