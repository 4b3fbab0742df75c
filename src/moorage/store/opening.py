"""Opening the ledger: connect, bring the schema up to date, hand out the store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from moorage.store.backends import connect
from moorage.store.ledger import Ledger
from moorage.store.upgrade import upgrade

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Clock


class WallClock:
    """The time of this machine, which is SQLite's too."""

    def now(self) -> Instant:
        """Microseconds since the epoch, UTC."""
        return time.time_ns() // 1000


def open_store(database_url: str, *, clock: Clock | None = None) -> Ledger:
    """The ledger at a database URL, made or migrated if need be.

    `sqlite:///path` is a file (its directory must exist); `sqlite://` is a private database
    that is gone when the ledger is closed.

    Raises:
        InvalidDescription: the URL cannot be used; says why.
        Busy: somebody else keeps the database locked.
    """
    chosen = clock or WallClock()
    backend = connect(database_url)
    try:
        with backend.writing() as connection:
            upgrade(connection, now=chosen.now())
    except BaseException:
        backend.close()
        raise
    return Ledger(backend, chosen)
