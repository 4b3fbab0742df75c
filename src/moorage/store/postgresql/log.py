"""The change log on PostgreSQL: transaction ids and snapshots order concurrent commits.

Numbers that writers take do not come in the order in which their commits end, so a reader that
remembers the last number would miss those that end later. Here a commit's number is its
transaction's (`xid8`), and a reader's cursor is a snapshot of the database (`pg_snapshot`): all
below `xmax` is visible in it but what was running. What it has missed are rows with a number that
is not visible in it, however late they were committed.

A cursor means something only on the server it was taken from, as long as that has not crashed:
numbers that were never written to disk are given again. So each process keeps one connection,
the log connection, on which it asks whether there is news; when that breaks, or the server turns
out to be another one, everything is read anew.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from moorage.domain.changes import BoundHeld, BoundOffers, BoundStored
from moorage.domain.waitlist import EntryState
from moorage.store.changelog.entries import LogDelta, LogPoll, Turn, by_provider, log_rows
from moorage.store.changelog.lapsed_bookings import Swept, lapsed_consumers, sweep_all, sweep_of
from moorage.store.database.fifo_lock import FifoLock
from moorage.store.database.retry import WAIT, retry
from moorage.store.postgresql.errors import pause_or_raise
from moorage.store.postgresql.locks import ALONE, begin
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.store.changelog.entries import ProviderChange
    from moorage.store.changelog.footprint import Footprint
    from moorage.store.database.session import Question, Rows, Session
    from moorage.store.postgresql.connection import RawConnection

NUMBER: Final = "moorage number"
"""Where a connection's info keeps number and instant of the transaction about to commit."""

KEPT: Final = 50_000
"""Rows the log keeps; a reader that slept longer loads everything anew."""
TRIM_EVERY: Final = 1_000
"""Each process cuts the log after so many of its commits."""
_SWEPT_AT_ONCE: Final = 100
_QUEUES: Final = 64
"""For projects; some have to share one."""
_NO_QUEUE: Final = nullcontext()

_NOW: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_ASK: Final = """
SELECT log_start,
       extract(epoch FROM pg_postmaster_start_time())::float8,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       EXISTS (SELECT FROM changes WHERE revision >= $1)
FROM ledger
"""
_ASK_OF_RUNNING: Final = """
SELECT log_start,
       extract(epoch FROM pg_postmaster_start_time())::float8,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       EXISTS (SELECT FROM changes WHERE revision >= $1)
       OR EXISTS (SELECT FROM changes WHERE revision = ANY($2::bigint[]))
FROM ledger
"""
"""The same where transactions were running at the cursor: seldom, and dearer."""
_HEAD: Final = text(
    "SELECT pg_current_snapshot()::text AS seen,"  # noqa: S608 - constants
    " extract(epoch FROM pg_postmaster_start_time())::float8 AS started,"
    " (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,"
    " log_start, topology_revision, exclusive_revision, EXISTS (SELECT FROM members) AS tags,"
    f" EXISTS (SELECT FROM waitlist WHERE state = '{EntryState.WAITING.value}') AS waited,"
    " coalesce((SELECT max(revision) FROM changes), log_start) AS newest FROM ledger"
)
_REVISIONS: Final = text("SELECT topology_revision, exclusive_revision FROM ledger")
_UNSEEN: Final = text(
    "SELECT subject, revision, at, bookings_only, added FROM changes"
    " WHERE revision >= :xmax OR revision = ANY(CAST(:running AS bigint[]))"
    # Commits that touch one provider come one after the other, and so do their instants.
    " ORDER BY at, revision"
)
_TRY: Final = (
    "SELECT one FROM unnest($1::text[]) AS one"
    " WHERE pg_try_advisory_xact_lock(hashtextextended(one, 1))"
)
_CUT: Final = text(
    # Nobody below may still be running: who is not visible yet must find its rows later.
    "SELECT least(pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1,"
    " (SELECT revision FROM changes ORDER BY revision DESC OFFSET :kept LIMIT 1)) AS upto"
    " WHERE EXISTS (SELECT FROM changes OFFSET :kept)"
)
_TRIM: Final = text("DELETE FROM changes WHERE revision <= :upto")
_START: Final = text("UPDATE ledger SET log_start = :upto WHERE log_start < :upto")
_TOPOLOGY: Final = text("UPDATE ledger SET topology_revision = topology_revision + 1")
_BELONGS: Final = text(
    # What is visible has a number below xmax, if it got it here.
    "SELECT NOT EXISTS (SELECT FROM changes"
    " WHERE revision >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
    " AND log_start < pg_snapshot_xmax(pg_current_snapshot())::text::bigint FROM ledger"
)
_FAR: Final = 2**61
_FORGET: Final = (
    text("TRUNCATE changes"),
    text("UPDATE ledger SET log_start = 0, events_start = 0"),
    text("TRUNCATE event_starts"),
    # What happened before stays, in its order, before everything that happens here: numbered from
    # one on, by way of far ahead, so that no two positions are one meanwhile.
    text(
        "UPDATE subscriptions SET reached ="
        " (SELECT count(*) FROM events WHERE position <= subscriptions.reached)"
    ),
    text(
        f"UPDATE events SET position = {_FAR} + place.number"  # noqa: S608 - a constant
        " FROM (SELECT position AS was, row_number() OVER (ORDER BY position) AS number"
        " FROM events) AS place WHERE events.position = place.was"
    ),
    text(f"UPDATE events SET position = position - {_FAR}"),  # noqa: S608 - a constant
)
_LOG = tables.changes.insert()


@dataclass(frozen=True, slots=True)
class Cursor:
    """A `pg_snapshot`, and where it was taken."""

    xmax: int
    running: tuple[int, ...]
    connection: int
    """Which of its connections: another number means that there was a break."""
    started: float
    """When the server was started: another one means another server."""

    @classmethod
    def of(cls, seen: str, connection: int, started: float) -> Cursor:
        """From PostgreSQL's own form, `xmin:xmax:running,...`."""
        _, xmax, running = seen.split(":")
        return cls(
            int(xmax), tuple(map(int, filter(None, running.split(",")))), connection, started
        )

    def misses(self, log_start: int) -> bool:
        """Whether the log was cut where this cursor has not seen everything."""
        return self.xmax <= log_start or any(one <= log_start for one in self.running)


_NOWHERE: Final = Cursor(xmax=2**62, running=(), connection=-1, started=0.0)
"""Of who has read nothing: no row lies beyond it, for everything is read anyway."""


class LogConnection:
    """One connection per process for questions of one statement; replaced when it breaks."""

    def __init__(self, connect: Callable[[], RawConnection], refuse: Callable[[], None]) -> None:
        """`refuse` raises Busy while the server is known not to answer."""
        self._connect = connect
        self._refuse = refuse
        self._busy = Lock()
        self._connection: RawConnection | None = None
        self.number = 0

    def ask(self, xmax: int, running: Sequence[int]) -> tuple[int, float, Instant, bool]:
        """Log start, server start, clock; whether there are rows a cursor does not see.

        Raises:
            DBAPIError: the database is away; the connection is broken.
        """
        found: tuple[int, float, Instant, bool]
        if running:
            found = self._one(_ASK_OF_RUNNING, (xmax, list(running)))
        else:
            found = self._one(_ASK, (xmax,))
        return found

    def now(self) -> Instant:
        """The server's clock.

        Raises:
            DBAPIError: the database is away; the connection is broken.
        """
        return int(self._one(_NOW, ())[0])

    def _one(self, statement: str, parameters: tuple[object, ...]) -> Any:  # noqa: ANN401 - a row
        with self._busy:
            self._refuse()
            try:
                if self._connection is None:
                    self._connection = self._connect()
                    self.number += 1
                return self._connection.one(statement, parameters)
            except psycopg.Error as error:
                broken = self._connection is None or self._connection.broken
                self._close()
                # In SQLAlchemy's terms, as every other error of the database.
                raise DBAPIError(
                    statement, parameters, error, connection_invalidated=broken
                ) from error

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Let go of the connection."""
        with self._busy:
            self._close()


class VisibleLog:
    """See the module."""

    def __init__(self, connection: LogConnection) -> None:
        self._log_connection = connection
        self._commits = count(1)
        self._queues = tuple(FifoLock(WAIT) for _ in range(_QUEUES))

    def belongs(self, connection: Session | Connection) -> bool:
        """See `Log`. In a copy from another server transactions had other numbers."""
        return bool(connection.execute(_BELONGS).scalar_one())

    def reset_log(self, connection: Connection) -> None:
        for statement in _FORGET:
            connection.execute(statement)

    def queue(self, changeset: Changeset) -> AbstractContextManager[object]:
        """See `Log`. One commit at a time of those that count what a project holds.

        In the database they would wait for each other as well, but each with a connection, and in
        the way of commits that run alone.
        """
        for one in changeset.changes:
            if isinstance(one, BoundHeld | BoundOffers | BoundStored):
                return self._queues[crc32(one.project_id.encode()) % len(self._queues)]
        return _NO_QUEUE

    def shut_out(self, connection: Session) -> None:
        connection.execute(ALONE)

    def enter(
        self, connection: Session, touches: Callable[[], Footprint], ahead: Sequence[Question] = ()
    ) -> tuple[Turn, Sequence[Rows]]:
        footprint = touches()
        turn, ledger, *answers = connection.ask(begin(footprint), (_REVISIONS, {}), *ahead)
        number, instant = turn.one()
        connection.info[NUMBER] = number, instant
        topology, exclusive = ledger.one()
        return Turn(instant, number, topology, exclusive, alone=footprint.alone), answers

    def sweep(self, connection: Session, turn: Turn, now: Instant) -> Swept:
        """See `Log`. Consumers whom somebody else changes just now are left to the next one."""
        if turn.alone:
            return sweep_all(connection, now)
        found = lapsed_consumers(connection, now, most=_SWEPT_AT_ONCE)
        if not found:
            return Swept()
        mine = connection.exec_driver_sql(_TRY, (list(found),)).scalars().all()
        return sweep_of(connection, now, mine) if mine else Swept()

    def append(
        self,
        connection: Session,
        turn: Turn,
        changed: Mapping[str, ProviderChange],
        *,
        topology_moved: bool = False,
        actor: str | None = None,
    ) -> int:
        number = turn.number
        connection.do(_LOG, log_rows(number, turn, changed, actor))
        if topology_moved:
            connection.do(_TOPOLOGY)
        if next(self._commits) % TRIM_EVERY == 0:
            _trim(connection)
        return number

    def poll(self, cursor: object | None) -> LogPoll:
        if not isinstance(cursor, Cursor):
            # Opens the log connection, which must stand before the first cursor is taken.
            return LogPoll(moved=True, now=retry(self._log_connection.now, pause_or_raise))
        log_start, started, now, unseen = retry(
            lambda: self._log_connection.ask(cursor.xmax, cursor.running), pause_or_raise
        )
        moved = unseen or not self._holds(cursor, started, log_start)
        return LogPoll(moved, now)

    def delta(self, connection: Session, cursor: object | None, revision: int) -> LogDelta:
        """See `Log`. Revisions go up by what is seen, also where a lower number comes later."""
        number = (
            self._log_connection.number
        )  # before anything is read: a break afterwards is a break
        known = cursor if isinstance(cursor, Cursor) else _NOWHERE
        missed = {"xmax": known.xmax, "running": list(known.running)}
        heads, found = connection.ask((_HEAD, {}), (_UNSEEN, missed))
        head = heads.one()
        reached = Cursor.of(head.seen, number, head.started)
        if known is _NOWHERE:
            return _everything(head, reached, head.newest)
        if not self._holds(known, head.started, head.log_start):
            return _everything(head, reached, max(head.newest, revision + 1))
        return LogDelta(
            cursor=reached,
            revision=max(revision + 1, *(row.revision for row in found)) if found else revision,
            topology_revision=head.topology_revision,
            exclusive_revision=head.exclusive_revision,
            waited=head.waited,
            entries=by_provider(found),
            tags=head.tags,
            complete=True,
            now=head.now,
        )

    def _holds(self, cursor: Cursor, started: float, log_start: int) -> bool:
        return (
            cursor.connection == self._log_connection.number
            and cursor.started == started
            and not cursor.misses(log_start)
        )


def _everything(head: Any, cursor: Cursor, revision: int) -> LogDelta:  # noqa: ANN401 - a row
    return LogDelta(
        cursor=cursor,
        revision=revision,
        topology_revision=head.topology_revision,
        exclusive_revision=head.exclusive_revision,
        waited=head.waited,
        entries={},
        tags=head.tags,
        complete=False,
        now=head.now,
    )


def _trim(connection: Session) -> None:
    upto = connection.execute(_CUT, {"kept": KEPT}).scalar_one_or_none()
    if upto is not None:
        connection.execute(_TRIM, {"upto": upto})
        connection.execute(_START, {"upto": upto})
