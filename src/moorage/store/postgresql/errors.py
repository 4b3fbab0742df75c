"""What PostgreSQL's errors mean: which are worth another attempt, and what to say of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy, InvalidDescription
from moorage.store.database.retry import CONFLICT, message, unavailable
from moorage.store.postgresql.connection import STALE

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError

    from moorage.store.database.retry import DatabaseRetries

_LOST: Final = frozenset({"40001", "40P01", "23505", "23503", "53200"}) | STALE
"""Serialization, deadlock; two births of one name; no room for locks; what was prepared is no
longer so: try again."""
_GONE: Final = frozenset({"57P01", "57P02", "57P03", "53300", "25006"})
"""Shutdown, crash, starting up, too many connections, a server that is no primary any more."""
_LATE: Final = frozenset({"55P03", "57014"})
"""Waited too long for a lock, or was cancelled."""

_DISK_FULL: Final = "53100"
_ON_THE_DISK: Final = frozenset({_DISK_FULL, "58030", "XX001", "XX002"})
"""Disk full, I/O error, data or index corrupted: an operator must look."""


POOLED: Final = (
    "the server is behind a pooler that lends its sessions for one transaction at a time"
    " (pgbouncer's pool_mode transaction or statement), but Moorage needs sessions of its own:"
    " connect to the server itself, or set pool_mode = session"
)


def pause_or_raise(error: DBAPIError, retries: DatabaseRetries) -> None:
    """Return if it is worth another attempt, after a pause.

    Raises:
        Busy: not now.
        DBAPIError: the error itself, which no repetition mends.
    """
    state = getattr(error.orig, "sqlstate", None)
    if state in _LATE:
        raise Busy("the ledger has too many writers at once") from error
    if state in _ON_THE_DISK:
        why = "the database's disk is full" if state == _DISK_FULL else "the database is damaged"
        raise unavailable(error, why) from error
    if state in _LOST:
        if retries.pause(CONFLICT):
            return
        if state in {"40001", "40P01"}:
            raise Busy("the ledger has too many writers at once") from error
        raise error
    if error.connection_invalidated or state is None or state in _GONE or state.startswith("08"):
        retries.wait_for_database(error)
        return
    raise error


def pause_or_raise_at_start(error: DBAPIError, retries: DatabaseRetries) -> None:
    """As `pause_or_raise`; a server that refuses us for good is a mistake in the URL.

    Raises:
        InvalidDescription: no such database or role, wrong password, or no sessions.
    """
    said = message(error)
    if "statement pooling mode" in said:
        raise InvalidDescription(POOLED, path="database")
    if "FATAL" in said and "the database system is" not in said:
        raise InvalidDescription(f"cannot open the database: {said}", path="database")
    pause_or_raise(error, retries)
