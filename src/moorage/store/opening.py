"""Opening the ledger: connect, bring the schema up to date, hand out the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.store.backends import connect
from moorage.store.ledger import Ledger
from moorage.store.upgrade import upgrade

if TYPE_CHECKING:
    from moorage.usecases.ports import Clock


def open_store(database_url: str, *, clock: Clock | None = None) -> Ledger:
    """The ledger at a database URL, made or migrated if need be.

    `sqlite:///path` is a file (its directory must exist); `sqlite://` is a private database
    that is gone when the ledger is closed; `postgresql://user:password@host/name` is a database
    that exists on a server. The time is the database's unless a clock is given.

    Raises:
        InvalidDescription: the URL cannot be used; says why.
        Busy: somebody else keeps the database locked, or it is away.
    """
    backend = connect(database_url)
    try:
        with backend.upgrading() as connection:
            upgrade(connection, now=backend.now() if clock is None else clock.now())
    except BaseException:
        backend.close()
        raise
    return Ledger(backend, clock)
