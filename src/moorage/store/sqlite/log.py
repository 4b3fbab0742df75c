"""The change log where there is one writer at a time: revisions count up in commit order.

The newest revision is the last one in the log, where every commit writes a row, in the name of
nobody if it touched no provider; whoever reads a number has seen every commit up to it. That needs
an order of commits that is known before they end, which one writer at a time gives.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from sqlalchemy import BigInteger, bindparam, delete, exists, func, literal_column, select, update

from moorage.store.changelog.answers import Glance, News, commits
from moorage.store.changelog.entries import entries
from moorage.store.changelog.lapsed_bookings import sweep_all
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.store.changelog.answers import Turn
    from moorage.store.changelog.footprint import Footprint
    from moorage.store.changelog.lapsed_bookings import Swept
    from moorage.store.database.session import Question, Rows, Session

KEPT: Final = 20_000
"""Revisions the log reaches back; a reader that slept longer loads everything anew."""
TRIM_EVERY: Final = 1_000
_NO_QUEUE: Final = nullcontext()

_l, _log = tables.ledger.c, tables.changes.c
REVISION = select(
    func.coalesce(func.max(_log.revision), literal_column("0", BigInteger)).label("revision")
)
_HEAD = select(
    REVISION.scalar_subquery().label("newest"),
    _l.topology_revision,
    _l.log_start,
    exists().select_from(tables.members).label("tags"),
)
_TOPOLOGY_MOVES = update(tables.ledger).values(topology_revision=_l.topology_revision + 1)
_LOG = tables.changes.insert()
_AFTER = select(_log.subject, _log.revision, _log.at, _log.bookings_only).where(
    _log.revision > bindparam("after"), _log.subject != literal_column("''")
)


class NumberedLog:
    """See the module; the cursor is the revision."""

    def __init__(self, enter: Callable[[Session], Turn], revision: Callable[[], int]) -> None:
        """`revision` looks up the newest one, from outside of any transaction."""
        self._enter = enter
        self._revision = revision

    def belongs(self, connection: Session | Connection) -> bool:
        """See `Log`. Its numbers are the ledger's own, wherever it is copied to."""
        del connection
        return True

    def begin_anew(self, connection: Connection) -> None:
        """See `Log`."""

    def queue(self, changeset: Changeset) -> AbstractContextManager[object]:
        """See `Log`. All writers are in one queue anyway."""
        del changeset
        return _NO_QUEUE

    def shut_out(self, connection: Session) -> None:
        self._enter(connection)

    def enter(
        self, connection: Session, touches: Callable[[], Footprint], ahead: Sequence[Question] = ()
    ) -> tuple[Turn, Sequence[Rows]]:
        """See `Log`. Whatever it touches, a writer is alone."""
        del touches
        return self._enter(connection), connection.ask(*ahead)

    def sweep(self, connection: Session, turn: Turn, now: Instant) -> Swept:
        del turn
        return sweep_all(connection, now)

    def append(
        self,
        connection: Session,
        turn: Turn,
        touched: Mapping[str, bool],
        *,
        topology_moved: bool = False,
    ) -> int:
        revision = turn.number or newest_revision(connection) + 1
        connection.do(_LOG, entries(revision, turn, touched))
        if topology_moved:
            connection.do(_TOPOLOGY_MOVES)
        if revision % TRIM_EVERY == 0 and revision > KEPT:
            _trim(connection, revision - KEPT)
        return revision

    def glance(self, cursor: object | None) -> Glance:
        return Glance(cursor is None or self._revision() != cursor)

    def news(self, connection: Session, cursor: object | None, revision: int) -> News:
        head = connection.execute(_HEAD).one()
        complete = cursor is not None and revision >= head.log_start
        found = connection.execute(_AFTER, {"after": revision}).all() if complete else []
        return News(
            cursor=head.newest,
            revision=head.newest,
            topology_revision=head.topology_revision,
            commits=commits(found),
            wholly=frozenset(row.subject for row in found if not row.bookings_only),
            tags=bool(head.tags),
            complete=complete,
        )


def newest_revision(connection: Session) -> int:
    """The revision of the newest commit that this transaction sees."""
    return int(connection.scalar(REVISION))


def _trim(connection: Session, upto: int) -> None:
    connection.execute(delete(tables.changes).where(_log.revision <= upto))
    connection.execute(update(tables.ledger).values(log_start=upto))
