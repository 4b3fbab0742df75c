"""Opening the ledger: connect, bring the schema up to date, hand out the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.store.backends import connect
from moorage.store.ledger import Ledger
from moorage.store.upgrade import is_current, upgrade
from moorage.store.watch import Unwatched

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from moorage.domain.period import Instant
    from moorage.store.backends import Backend
    from moorage.store.watch import Watch
    from moorage.usecases.ports import Clock


_UNWATCHED = Unwatched()


def open_store(
    database_url: str, *, clock: Clock | None = None, watch: Watch = _UNWATCHED
) -> Ledger:
    """The ledger at a database URL, made or migrated if need be.

    `sqlite:///path` is a file (its directory must exist); `sqlite://` is a private database
    that is gone when the ledger is closed; `postgresql://user:password@host/name` and
    `mysql://user:password@host/name` are databases that exist on a server. The time is the
    database's unless a clock is given.

    Raises:
        InvalidDescription: the URL cannot be used, or a newer version has changed the schema;
            says why.
        Busy: somebody else keeps the database locked, or it is away.
    """
    backend = connect(database_url)
    try:
        # Looked at first: whoever only starts must not keep those who work waiting.
        if not backend.look(lambda one: is_current(one) and backend.log.belongs(one)):
            now = backend.now() if clock is None else clock.now()
            backend.upgrade(lambda connection: _upgrade(backend, connection, now))
    except BaseException:
        backend.close()
        raise
    return Ledger(backend, clock, watch)


def _upgrade(backend: Backend, connection: Connection, now: Instant) -> None:
    upgrade(connection, now=now)
    if not backend.log.belongs(connection):
        backend.log.begin_anew(connection)
