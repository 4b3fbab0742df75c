"""What the ledger needs of a database: the protocols of a backend and of its change log.

A backend knows how to connect, what a consistent read is, how writers keep out of each other's
way, and what to do when the database is away. What follows commits is its `Log`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.store.changelog.entries import (
        Connections,
        LogDelta,
        LogPoll,
        ProviderChange,
        Turn,
    )
    from moorage.store.changelog.footprint import Footprint
    from moorage.store.changelog.lapsed_bookings import Swept
    from moorage.store.database.session import Question, Rows, Session

T = TypeVar("T")


class Log(Protocol):
    """The change log of a kind of database: how commits are told apart and followed."""

    def belongs(self, connection: Session | Connection) -> bool:
        """Whether the log stored there was written on this server, not copied from another."""

    def reset_log(self, connection: Connection) -> None:
        """Forget a log that does not belong; whoever follows loads everything."""

    def queue(self, changeset: Changeset) -> AbstractContextManager[object]:
        """Where to wait for the turn of a commit, before there is a transaction.

        Raises:
            Busy: that took too long.
        """

    def shut_out(self, connection: Session) -> None:
        """Wait until nobody else can write, until this transaction ends; others still read.

        Raises:
            Busy: that took too long.
        """

    def enter(
        self, connection: Session, touches: Callable[[], Footprint], ahead: Sequence[Question] = ()
    ) -> tuple[Turn, Sequence[Rows]]:
        """Wait until nobody else can change what this commit reads or writes; then ask at once.

        `touches` finds out what that is, for who does not shut out everybody.

        Raises:
            Busy: that took too long.
        """

    def sweep(self, connection: Session, turn: Turn, now: Instant) -> Swept:
        """Delete bookings that no longer live, of whomever nobody else is busy with.

        If the batch is alone: all there are.
        """

    def append(
        self,
        connection: Session,
        turn: Turn,
        changed: Mapping[str, ProviderChange],
        *,
        topology_moved: bool = False,
        actor: str | None = None,
    ) -> int:
        """Write down what the commit did (see `log_rows`), as its last step; its revision."""

    def poll(self, cursor: object | None) -> LogPoll:
        """Whether anything was committed that the cursor does not know; None knows nothing."""

    def delta(self, connection: Session, cursor: object | None, revision: int) -> LogDelta:
        """What a reader at the cursor, and at a revision, has missed."""


class Backend(Protocol):
    """One database. Every method may be called from any thread."""

    @property
    def log(self) -> Log:
        """Its change log."""

    def read_schema(self, work: Callable[[Connection], T]) -> T:
        """As `read`, through SQLAlchemy: for what looks at the schema.

        Raises:
            Busy: the database is away.
        """

    def read(self, work: Callable[[Session], T]) -> T:
        """Do work that only reads, in one consistent state.

        Raises:
            Busy: the database is away.
        """

    def ask(self, *questions: Question) -> Sequence[Rows]:
        """As `read`, when all there is to ask is known beforehand.

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
