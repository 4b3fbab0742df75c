"""What the change logs share whose database has one writer at a time."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from moorage.store.changelog.lapsed_bookings import sweep_all
from moorage.store.schema.tables import changes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.store.changelog.entries import Turn
    from moorage.store.changelog.lapsed_bookings import Swept
    from moorage.store.database.session import Session

KEPT: Final = 50_000
"""Rows the log keeps, one for each provider that a commit changes; a reader that slept longer loads
everything anew."""
TRIM_EVERY: Final = 1_000
"""The log is trimmed after so many commits."""
_BEYOND: Final = select(changes.c.revision).order_by(changes.c.revision.desc()).limit(1)
_NO_QUEUE: Final = nullcontext()


class SingleWriterLog:
    """A log whose numbers are the ledger's own, wherever it is copied to."""

    def belongs(self, connection: Session | Connection) -> bool:
        del connection
        return True

    def reset_log(self, connection: Connection) -> None:
        """Nothing needs to be forgotten: the log always belongs."""

    def queue(self, changeset: Changeset) -> AbstractContextManager[object]:
        """No queue of its own: all writers are in one anyway."""
        del changeset
        return _NO_QUEUE

    def sweep(self, connection: Session, turn: Turn, now: Instant) -> Swept:
        del turn
        return sweep_all(connection, now)

    @staticmethod
    def surplus(connection: Session, revision: int) -> int:
        """The revision up to which the commit of this one trims the log; 0: it does not."""
        if revision % TRIM_EVERY:
            return 0
        beyond = connection.execute(_BEYOND.offset(KEPT)).scalar_one_or_none() or 0
        return min(beyond, revision - 1)  # its own rows are kept, however many they are
