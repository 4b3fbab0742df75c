"""Stored events, subscriptions and dead letters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, exists, func, or_, select, true

from moorage.domain.errors import NotFound
from moorage.domain.events import EventCursor, EventFilter
from moorage.domain.subscriptions import DeliveryState, letter_id
from moorage.store.database.statements import chunks
from moorage.store.feed import event_log
from moorage.store.schema import tables
from moorage.store.values import stored_bodies
from moorage.usecases.event_ports import EventDelivery, PendingEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from moorage.domain.events import Event
    from moorage.domain.period import Instant
    from moorage.domain.subscriptions import DeadLetter, Subscription
    from moorage.store.backend import Backend
    from moorage.store.database.session import Session
    from moorage.usecases.event_ports import EventPage
    from moorage.usecases.paging import Page

_e, _l, _b = tables.events.c, tables.ledger.c, tables.event_starts.c
_s, _d = tables.subscriptions.c, tables.dead_letters.c
_SUBSCRIPTION: Final = select(_s.body, _s.reached, _s.generation)
_NUMBER: Final = select(_s.number).where(_s.id == bindparam("marker"))
_LETTER: Final = select(_d.number).where(_d.id == bindparam("marker"))
_DEAD: Final = (
    select(_d.subscription_id, func.count().label("number"))
    .where(_d.subscription_id.in_(bindparam("some", expanding=True)))
    .group_by(_d.subscription_id)
)
_WAITING: Final = exists().where(
    _e.project_id == _s.project_id, _e.position > _s.reached, _e.position < bindparam("settled")
)
_QUEUED: Final = exists().where(_d.subscription_id == _s.id, _d.queued == true())
_BEHIND: Final = or_(
    _s.reached < select(_l.events_start).scalar_subquery(),
    exists().where(_b.project_id == _s.project_id, _b.position > _s.reached),
)
_IN_TURN: Final = (
    select(
        _s.number,
        func.row_number()
        .over(partition_by=_s.project_id, order_by=(_s.not_before, _s.number))
        .label("turn"),
    )
    .where(_s.not_before <= bindparam("now"), or_(_WAITING, _QUEUED, _BEHIND))
    .subquery()
)
_DUE: Final = (
    _SUBSCRIPTION.join(_IN_TURN, _IN_TURN.c.number == _s.number)
    .order_by(_IN_TURN.c.turn, _s.not_before, _s.number)
    .limit(bindparam("most", type_=Integer))
)
_OF_PROJECT: Final = _SUBSCRIPTION.where(_s.project_id == bindparam("project")).order_by(_s.number)
_LETTERS: Final = select(_d.id, _d.queued).where(_d.id.in_(bindparam("some", expanding=True)))


class EventStore:
    """See `usecases.ports.Told`. Every method is a transaction of its own."""

    def __init__(self, backend: Backend, now: Callable[[], Instant]) -> None:
        self._backend = backend
        self._now = now

    def page(
        self, project_id: str | None, after: EventCursor, wanted: EventFilter, limit: int
    ) -> EventPage:
        return self._backend.read(
            lambda connection: event_log.page(connection, project_id, after, wanted, limit)
        )

    def newest(self) -> EventCursor:
        return self._backend.read(event_log.newest)

    def oldest(self, project_id: str | None) -> EventCursor:
        return self._backend.read(lambda connection: event_log.oldest(connection, project_id))

    def surplus(self, before: Instant, keep: int) -> tuple[int, int]:
        return self._backend.read(lambda connection: event_log.surplus(connection, before, keep))

    def subscription(self, id_: str) -> Subscription:
        wanted = _SUBSCRIPTION.where(_s.id == id_)
        row = self._backend.read(lambda connection: connection.execute(wanted).one_or_none())
        if row is None:
            raise NotFound("subscription", id_)
        return _subscription(row)

    def subscriptions(self, project_id: str | None, page: Page) -> Sequence[Subscription]:
        wanted = _SUBSCRIPTION
        if project_id is not None:
            wanted = wanted.where(_s.project_id == project_id)
        wanted = wanted.order_by(_s.number).limit(page.limit)

        def work(connection: Session) -> list[Subscription]:
            query = wanted
            if page.marker is not None:
                query = query.where(_s.number > _place(connection, _NUMBER, page.marker))
            return [_subscription(row) for row in connection.execute(query)]

        return self._backend.read(work)

    def with_thresholds(self) -> Sequence[Subscription]:
        wanted = _SUBSCRIPTION.where(_s.thresholds == true()).order_by(_s.number)
        found = self._backend.read(lambda connection: connection.execute(wanted).all())
        return [_subscription(row) for row in found]

    def due(self, limit: int) -> Sequence[Subscription]:
        now = self._now()

        def work(connection: Session) -> list[Subscription]:
            given = {"now": now, "most": limit, "settled": event_log.settled(connection)}
            return [_subscription(row) for row in connection.execute(_DUE, given)]

        return self._backend.read(work)

    def pending(self, one: Subscription, limit: int) -> PendingEvents:
        wanted = EventFilter(one.wants.types)

        def work(connection: Session) -> PendingEvents:
            lost = event_log.oldest(connection, one.project_id)
            after = max(one.reached, lost.position)
            newest = event_log.settled(connection) - 1
            found, last = event_log.scan(connection, one.project_id, after, wanted, limit)
            meant = tuple(filter(one.means, event_log.whole(connection, found)))
            reached = max(newest, after) if last is None else last.position
            return PendingEvents(meant, reached, lost if one.reached < after else None)

        return self._backend.read(work)

    def deliveries(self, project_id: str, events: Sequence[Event]) -> Sequence[EventDelivery]:
        def work(connection: Session) -> list[EventDelivery]:
            if not events:
                return []
            rows = connection.execute(_OF_PROJECT, {"project": project_id})
            meant = [
                (event, one)
                for one in map(_subscription, rows)
                for event in events
                if one.began < event.position and one.means(event)
            ]
            letters = {letter_id(one.id, event.id) for event, one in meant if one.given_up}
            queued = {
                row.id: row.queued
                for some in chunks(letters)
                for row in connection.execute(_LETTERS, {"some": some})
            }
            return [
                EventDelivery(event.id, one, _reached(event, one, queued)) for event, one in meant
            ]

        return self._backend.read(work)

    def dead_letters(
        self, subscription_id: str, page: Page, *, queued: bool = False
    ) -> Sequence[DeadLetter]:
        wanted = select(_d.body).where(_d.subscription_id == subscription_id)
        if queued:
            wanted = wanted.where(_d.queued == true())
        wanted = wanted.order_by(_d.number).limit(page.limit)

        def work(connection: Session) -> list[DeadLetter]:
            query = wanted
            if page.marker is not None:
                query = query.where(_d.number > _place(connection, _LETTER, page.marker))
            return [stored_bodies.DEAD_LETTER.decode(body) for body in connection.scalars(query)]

        return self._backend.read(work)

    def dead(self, subscriptions: Collection[str]) -> Mapping[str, int]:
        def work(connection: Session) -> dict[str, int]:
            return {
                row.subscription_id: int(row.number)
                for some in chunks(subscriptions)
                for row in connection.execute(_DEAD, {"some": some})
            }

        return self._backend.read(work)


def _subscription(row: Any) -> Subscription:  # noqa: ANN401 - a row of `subscriptions`
    """Where it has come to is a column: it is passed on without the rest."""
    one: Subscription = stored_bodies.SUBSCRIPTION.decode(row.body)
    return replace(one, reached=row.reached, generation=row.generation)


def _reached(event: Event, one: Subscription, letters: Mapping[str, bool]) -> DeliveryState:
    """What became of an event: `letters` are those given up, and whether they are to be sent."""
    if one.reached < event.position:
        return DeliveryState.WAITING
    queued = letters.get(letter_id(one.id, event.id))
    if queued is None:
        return DeliveryState.HEARD
    return DeliveryState.WAITING if queued else DeliveryState.GIVEN_UP


def _place(connection: Session, query: Any, marker: str) -> int:  # noqa: ANN401 - a Select
    place = connection.scalars(query, {"marker": marker}).one_or_none()
    if place is None:
        raise NotFound("marker", marker)
    return int(place)
