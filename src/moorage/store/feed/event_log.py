"""Reads events in commit order, without missing any (ADR-0007).

An event's position is its commit's revision and a number in it. Where writers come one at a time,
a reader that sees a revision sees all before it. On PostgreSQL a commit's revision is its
transaction's number, and a lower one may end later: there only what is below every transaction that
still runs is shown, since nothing can come before that any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, func, select, text

from moorage.domain.errors import EventsLost
from moorage.domain.events import BEGINNING, Event, EventCursor, position
from moorage.domain.period import format_instant
from moorage.store.schema import tables
from moorage.store.sqlite.log import newest_revision
from moorage.store.values import stored_bodies
from moorage.usecases.event_ports import EventPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.events import EventFilter
    from moorage.domain.period import Instant
    from moorage.store.database.session import Session

SCANNED: Final = 2_000
"""Events looked at for one page, however few of them are wanted."""

_e, _l, _b = tables.events.c, tables.ledger.c, tables.event_starts.c
_BELOW: Final[Any] = bindparam("settled")
_STARTS: Final = select(
    _l.events_start.label("position"), _l.events_start_at.label("at")
).union_all(select(_b.position, _b.at))
_STARTS_OF: Final = select(
    _l.events_start.label("position"), _l.events_start_at.label("at")
).union_all(select(_b.position, _b.at).where(_b.project_id == bindparam("project")))
_AT: Final = select(_e.at).where(_e.position == bindparam("position"))
_FIRST: Final = select(_e.position, _e.at).order_by(_e.position).limit(1)
CROWDED: Final = (
    select(_e.project_id, func.count().label("number"))
    .group_by(_e.project_id)
    .having(func.count() > bindparam("keep", type_=Integer))
)
"""The projects that have too many events, and how many they have."""
_NEWEST: Final = (
    select(_e.position, _e.at).where(_e.position < _BELOW).order_by(_e.position.desc()).limit(1)
)
_AFTER: Final = (
    select(_e.position, _e.id, _e.type, _e.subject, _e.at)
    .where(_e.position > bindparam("after"), _e.position < _BELOW)
    .order_by(_e.position)
    .limit(bindparam("most", type_=Integer))
)
_OF_PROJECT: Final = _AFTER.where(_e.project_id == bindparam("project"))
_OF_SUBJECTS: Final = _AFTER.where(_e.subject.in_(bindparam("subjects", expanding=True)))
_OF_BOTH: Final = _OF_PROJECT.where(_e.subject.in_(bindparam("subjects", expanding=True)))
_WHOLE: Final = (
    select(tables.events)
    .where(
        _e.position >= bindparam("first"),
        _e.position <= bindparam("last"),
        _e.id.in_(bindparam("some", expanding=True)),
    )
    .order_by(_e.position)
)
_XMIN: Final = text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
_REVISION: Final = select(_l.revision)
_LOGGED: Final = (
    select(tables.changes.c.revision)
    .distinct()
    .where(tables.changes.c.revision > bindparam("after"))
    .order_by(tables.changes.c.revision)
)
_LOOK_BACK: Final = 100


def settled(connection: Session) -> int:
    """The position before which nothing can be put any more."""
    kind = connection.dialect.name
    if kind == "postgresql":
        return position(int(connection.execute(_XMIN).scalar_one()), 0)
    if kind == "sqlite":
        return position(newest_revision(connection) + 1, 0)
    revision = int(connection.execute(_REVISION).scalar_one())
    return position(_without_gap(connection, revision) + 1, 0)


def _without_gap(connection: Session, newest: int) -> int:
    """The revision up to which all is seen: a view there is not taken in one instant."""
    seen = connection.scalars(_LOGGED, {"after": newest - _LOOK_BACK}).all()
    reached: int | None = None
    for one in seen:
        if reached is not None and one > reached + 1:
            return reached
        reached = one
    return newest if reached is None else reached


def newest(connection: Session) -> EventCursor:
    """The cursor after every event there is."""
    row = connection.execute(_NEWEST, {"settled": settled(connection)}).one_or_none()
    if row is not None:
        return EventCursor(row.position, row.at)
    return oldest(connection)


def oldest(connection: Session, project_id: str | None = None) -> EventCursor:
    """The cursor after the newest event that was deleted, of a project or of all."""
    if project_id is None:
        starts = connection.execute(_STARTS)
    else:
        starts = connection.execute(_STARTS_OF, {"project": project_id})
    return max((EventCursor(row.position, row.at) for row in starts), key=_order)


def surplus(connection: Session, before: Instant, keep: int) -> tuple[int, int]:
    """The oldest event if it is older than `before`, and how many are beyond a project's `keep`."""
    first = connection.execute(_FIRST).first()
    if first is None:
        return 0, 0
    beyond = sum(row.number - keep for row in connection.execute(CROWDED, {"keep": keep}))
    return first.position if first.at < before else 0, beyond


def page(
    connection: Session,
    project_id: str | None,
    after: EventCursor,
    wanted: EventFilter,
    limit: int,
) -> EventPage:
    """The next events after a cursor, of a project or of all; the work is bounded.

    Raises:
        EventsLost: some after the cursor are kept no more, or the ledger does not know it.
    """
    _check(connection, project_id, after)
    found, last = scan(connection, project_id, after.position, wanted, limit)
    events = whole(connection, found)
    if last is not None:
        return EventPage(events, EventCursor(last.position, last.at), more=True)
    # All that there is: go on from the newest, whosever it is.
    return EventPage(events, max(newest(connection), after, key=_order), more=False)


def scan(
    connection: Session,
    project_id: str | None,
    after: int,
    wanted: EventFilter,
    limit: int,
) -> tuple[list[tuple[int, str]], Any]:
    """The next events that are wanted.

    Returns:
        Their positions and ids; the row that was looked at last, where there are more.
    """
    given: dict[str, Any] = {"after": after, "settled": settled(connection), "most": SCANNED}
    query = _AFTER
    if project_id is not None:
        query, given["project"] = _OF_PROJECT, project_id
    if wanted.subjects:
        query = _OF_SUBJECTS if project_id is None else _OF_BOTH
        given["subjects"] = list(wanted.subjects)
    found: list[tuple[int, str]] = []
    last = None
    scanned = connection.execute(query, given)
    for row in scanned:
        if len(found) == limit:
            return found, last
        last = row
        if wanted.passes(row.type, row.subject):
            found.append((row.position, row.id))
    return found, last if len(scanned) == SCANNED else None


def _order(cursor: EventCursor) -> int:
    return cursor.position


def whole(connection: Session, found: Sequence[tuple[int, str]]) -> tuple[Event, ...]:
    """The events at these positions, of these ids, in their order."""
    if not found:
        return ()
    given = {"first": found[0][0], "last": found[-1][0], "some": [id_ for _, id_ in found]}
    return tuple(map(_event, connection.execute(_WHOLE, given)))


def _event(row: Any) -> Event:  # noqa: ANN401 - a row of `events`
    return Event(
        row.id,
        row.type,
        row.project_id,
        row.subject,
        row.at,
        row.generation,
        row.position,
        stored_bodies.EVENT_BODY.decode(row.body),
        stored_bodies.actor_of(row.actor),
    )


def _check(connection: Session, project_id: str | None, after: EventCursor) -> None:
    """Let a cursor pass that this ledger gave, and since which nothing was forgotten."""
    if after == BEGINNING:
        return
    start = oldest(connection, project_id)
    if after.position < start.position:
        raise EventsLost(
            f"events up to {format_instant(start.at)} are kept no more; go on from {start}",
            oldest=str(start),
            before=start.at,
        )
    if after == start:
        return
    made = connection.scalars(_AT, {"position": after.position}).one_or_none()
    if made is None and after.position <= oldest(connection).position:
        return  # after another project's event, which is kept no more
    if made != after.at:
        raise EventsLost(
            f"this ledger has no event at the cursor {after}; go on from {start}",
            oldest=str(start),
            before=start.at,
        )
