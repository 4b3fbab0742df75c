"""The change log where there is one writer at a time: revisions count up in commit order.

The newest revision is the last one in the log, where every commit writes a row, in the name of
nobody if it touched no provider; whoever reads a number has seen every commit up to it. That needs
an order of commits that is known before they end, which one writer at a time gives.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from sqlalchemy import BigInteger, bindparam, delete, exists, func, literal_column, select, update

from moorage.domain.waitlist import EntryState
from moorage.store.changelog.entries import (
    LogDelta,
    LogPoll,
    SingleWriterLog,
    Turn,
    by_provider,
    log_rows,
)
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from moorage.store.changelog.entries import ProviderChange
    from moorage.store.changelog.footprint import Footprint
    from moorage.store.database.session import Question, Rows, Session

_WAIT: Final = 5.0
"""Seconds to wait while another program keeps the file locked."""


class RevisionReader:
    """Reads the only value of one statement, without a pool and a transaction, in any thread.

    A statement that stands alone sees every commit that ended before it began. To take a connection
    out of a pool for it, to begin and to roll back would cost many times what the statement does.
    """

    def __init__(self, path: Path, text: str) -> None:
        # The file is there already: one that is lost meanwhile must not be made anew, and empty.
        self._uri = f"file:{quote(str(path.absolute()))}?mode=rw"
        self._text = text
        self._idle: deque[sqlite3.Connection] = deque()
        """The one used last is taken first: what it knows of the file is the newest."""
        self._closed = False

    def __call__(self) -> Any:  # noqa: ANN401 - a value of any column
        """The value, as of now.

        Raises:
            sqlite3.Error: the file cannot be read; the next call begins anew.
        """
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connected()
        try:
            ((value,),) = connection.execute(self._text).fetchall()
        except sqlite3.Error:
            connection.close()
            raise
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)
        return value

    def close(self) -> None:
        """Let go of the file; a connection in use is closed by whoever uses it."""
        self._closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._uri, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )


_l, _log = tables.ledger.c, tables.changes.c
REVISION = select(
    func.coalesce(func.max(_log.revision), literal_column("0", BigInteger)).label("revision")
)
_HEAD = select(
    REVISION.scalar_subquery().label("newest"),
    _l.topology_revision,
    _l.exclusive_revision,
    _l.log_start,
    exists().select_from(tables.members).label("tags"),
    exists()
    .where(tables.waitlist.c.state == literal_column(f"'{EntryState.WAITING.value}'"))
    .label("waited"),
)
_ENTER = select(REVISION.scalar_subquery(), _l.topology_revision, _l.exclusive_revision)
_TOPOLOGY_MOVES = update(tables.ledger).values(topology_revision=_l.topology_revision + 1)
_LOG = tables.changes.insert()
_AFTER = (
    select(_log.subject, _log.revision, _log.at, _log.bookings_only, _log.added)
    .where(_log.revision > bindparam("after"), _log.subject != literal_column("''"))
    .order_by(_log.revision)
)


class NumberedLog(SingleWriterLog):
    """See the module; the cursor is the revision."""

    def __init__(self, revision: Callable[[], int]) -> None:
        """`revision` looks up the newest one, from outside of any transaction."""
        self._revision = revision

    def shut_out(self, connection: Session) -> None:
        """See `Log`. Whoever has begun to write is alone."""

    def enter(
        self, connection: Session, touches: Callable[[], Footprint], ahead: Sequence[Question] = ()
    ) -> tuple[Turn, Sequence[Rows]]:
        """See `Log`. Whatever it touches, a writer is alone."""
        del touches
        turn, *answers = connection.ask((_ENTER, {}), *ahead)
        newest, topology, exclusive = turn.one()
        return Turn(time.time_ns() // 1000, newest + 1, topology, exclusive), answers

    def append(
        self,
        connection: Session,
        turn: Turn,
        changed: Mapping[str, ProviderChange],
        *,
        topology_moved: bool = False,
        actor: str | None = None,
    ) -> int:
        revision = turn.number
        connection.do(_LOG, log_rows(revision, turn, changed, actor))
        if topology_moved:
            connection.do(_TOPOLOGY_MOVES)
        if upto := self.surplus(connection, revision):
            _trim(connection, upto)
        return revision

    def poll(self, cursor: object | None) -> LogPoll:
        return LogPoll(cursor is None or self._revision() != cursor)

    def delta(self, connection: Session, cursor: object | None, revision: int) -> LogDelta:
        head = connection.execute(_HEAD).one()
        complete = cursor is not None and revision >= head.log_start
        found = connection.execute(_AFTER, {"after": revision}).all() if complete else []
        return LogDelta(
            cursor=head.newest,
            revision=head.newest,
            topology_revision=head.topology_revision,
            exclusive_revision=head.exclusive_revision,
            waited=bool(head.waited),
            entries=by_provider(found),
            tags=bool(head.tags),
            complete=complete,
        )


def newest_revision(connection: Session) -> int:
    """The revision of the newest commit that this transaction sees."""
    return int(connection.scalar(REVISION))


def _trim(connection: Session, upto: int) -> None:
    connection.execute(delete(tables.changes).where(_log.revision <= upto))
    connection.execute(update(tables.ledger).values(log_start=upto))
