"""Reads resource classes, traits, consumers, bookings and usages."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Integer, and_, bindparam, func, or_, select, text

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.errors import NotFound
from moorage.store.database.statements import chunks
from moorage.store.read.stored_values import Reader
from moorage.store.schema import tables
from moorage.store.values import rows, stored_bodies
from moorage.usecases.paging import WHOLE_LEDGER
from moorage.usecases.ports import NamedRecord, OverrunConsumer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import Select

    from moorage.domain.actors import Actor
    from moorage.domain.consumers import Consumer
    from moorage.domain.period import Instant
    from moorage.store.database.session import Queryable, Question, Session
    from moorage.usecases.paging import Page

Owned = tuple["Consumer", Booking]

_b, _c, _p = tables.bookings.c, tables.consumers.c, tables.providers.c
_l = tables.changes.c
_LAST_ACTORS = (
    select(_l.revision, _l.actor)
    .where(
        _l.revision > bindparam("after"),
        _l.subject.in_(bindparam("providers", expanding=True)),
    )
    .order_by(_l.revision.desc())
    .limit(1)
)
_LAST_OPERATORS = _LAST_ACTORS.where(_l.actor.contains('"operator":true'))
_BOOKED = (
    select(
        *(_b[name] for name in rows.BOOKING_ROW),
        *tables.consumers.c,
    )
    .join(tables.consumers, _c.uuid == _b.consumer)
    .order_by(_b.number)
)
_ALLOCATIONS = _BOOKED.where(_b.state == BookingState.ALLOCATED.value)
_OF_CONSUMER = _ALLOCATIONS.where(_b.consumer == bindparam("consumer"))
_OF_CONSUMER_WHERE = _OF_CONSUMER.join(tables.providers, _p.uuid == _b.provider).add_columns(
    _p.generation.label("provider_generation")
)
_OF_PROVIDER = _ALLOCATIONS.where(_b.provider == bindparam("provider"))
_OF_PROJECT = _ALLOCATIONS.where(_c.project_id == bindparam("project"))
_OF_USER = _OF_PROJECT.where(_c.user_id == bindparam("user"))
_IDLE = (
    select(_c.uuid)
    .where(~select(_b.number).where(_b.consumer == _c.uuid).exists())
    .order_by(_c.uuid)
)
_OVERRUN = (
    select(*tables.consumers.c, _b.end_at, _b.yields_to)
    .join(tables.consumers, _c.uuid == _b.consumer)
    .where(
        text(tables.HAS_END),
        _b.state == BookingState.ALLOCATED.value,
        _b.end_at >= bindparam("end"),
        or_(_b.end_at > bindparam("end"), _c.uuid > bindparam("uuid")),
        _b.end_at <= bindparam("now"),
    )
    .distinct()
    .order_by(_b.end_at, _c.uuid)
    .limit(bindparam("limit"))
)
_classes = tables.resource_classes.c
_CLASSES = select(_classes.name, _classes.updated_at, _classes.offered).order_by(
    _classes.place.is_(None), _classes.place, _classes.number
)
_TRAITS = select(tables.traits).order_by(tables.traits.c.name)
_TRAITS_NAMED = _TRAITS.where(tables.traits.c.name.in_(bindparam("names", expanding=True)))
_GENERATION = select(_p.generation).where(_p.uuid == bindparam("provider"))


def _named(row: Any) -> NamedRecord:  # noqa: ANN401 - a row of `resource_classes` or `traits`
    return NamedRecord(row.name, row.updated_at, bool(row.offered))


def _owned(found: Iterable[Any]) -> list[Owned]:
    """Rows of bookings with their consumers, as values, in the order of their first rows."""
    every = list(found)
    owners = {row.consumer: rows.consumer(row) for row in every}
    return [(owners[one.consumer], one) for one in rows.bookings(every)]


@cache
def _page_of_bookings(given: tuple[str, ...]) -> Select[Any]:
    """Worded once for each choice of what is `given`."""
    now = bindparam("now", type_=BigInteger)
    live = or_(_b.state == BookingState.ALLOCATED.value, _b.end_at > now)
    wanted = [_b.lapses_at > now, live]
    wanted += [_b[name] == bindparam(name) for name in given if name != "marker"]
    owners = select(_b.consumer).where(and_(*wanted)).distinct().order_by(_b.consumer)
    if "marker" in given:
        owners = owners.where(_b.consumer > bindparam("marker"))
    chosen = owners.limit(bindparam("limit", type_=Integer)).subquery()
    query = _BOOKED.where(and_(*wanted), _b.consumer.in_(select(chosen.c.consumer)))
    return query.order_by(None).order_by(_b.consumer, _b.number)


HELD = select(func.count(_b.consumer.distinct())).where(
    text(tables.PLACE_TAKEN), _b.lapses_at > bindparam("now"), _b.end_at > bindparam("now")
)
HELD_OF_PROJECT = HELD.where(_b.holder == bindparam("project"))


def held(source: Queryable, project_id: str | None, *, now: Instant) -> int:
    """How many consumers have places held or claimed now; None means those of every project."""
    if project_id is None:
        (found,) = source.ask((HELD, {"now": now}))
    else:
        (found,) = source.ask((HELD_OF_PROJECT, {"now": now, "project": project_id}))
    return int(found.scalar_one())


class BookingQueries(Reader):
    """See `Store`."""

    def resource_classes(self) -> Sequence[NamedRecord]:
        """Standard ones first, in their order; then custom ones by creation."""
        return [_named(row) for row in self._ask(_CLASSES)]

    def traits(self, names: Collection[str] | None = None) -> Sequence[NamedRecord]:
        """Traits by name: every one, or those of these names that exist."""
        questions: list[Question] = [(_TRAITS, {})]
        if names is not None:
            questions = [(_TRAITS_NAMED, {"names": some}) for some in chunks(names)]
        answers = self._backend.ask(*questions)
        return [_named(row) for found in answers for row in found]

    def consumer(self, uuid: str) -> tuple[Consumer, Sequence[Booking]] | None:
        """A consumer and its allocations, or None without any."""
        found = _owned(self._ask(_OF_CONSUMER, consumer=uuid))
        return (found[0][0], [booking for _, booking in found]) if found else None

    def allocations_of_consumer(
        self, uuid: str
    ) -> tuple[Consumer, Sequence[Booking], Mapping[str, int]] | None:
        """The same with the generation of each provider. In one statement, so of one state."""
        every = self._ask(_OF_CONSUMER_WHERE, consumer=uuid)
        if not every:
            return None
        found = _owned(every)
        generations = {row.provider: row.provider_generation for row in every}
        return found[0][0], [booking for _, booking in found], generations

    def allocations_of_provider(self, uuid: str) -> tuple[int, Sequence[Owned]]:
        """A provider's generation and the allocations on it, of one state.

        Raises:
            NotFound: no such provider.
        """
        one = {"provider": uuid}
        generation, found = self._backend.ask((_GENERATION, one), (_OF_PROVIDER, one))
        if not generation:
            raise NotFound("resource provider", uuid)
        return int(generation.scalar_one()), _owned(found)

    def usages(self, project_id: str, user_id: str | None = None) -> Sequence[Owned]:
        if user_id is None:
            return _owned(self._ask(_OF_PROJECT, project=project_id))
        return _owned(self._ask(_OF_USER, project=project_id, user=user_id))

    def bookings(
        self,
        *,
        provider: str | None = None,
        consumer: str | None = None,
        decision: str | None = None,
        page: Page = WHOLE_LEDGER,
    ) -> Sequence[Owned]:
        """Live bookings by consumer; a page holds whole consumers, the marker is one's UUID."""
        about = {"provider": provider, "consumer": consumer, "decision": decision}
        about["marker"] = page.marker
        given = {name: value for name, value in about.items() if value is not None}
        query = _page_of_bookings(tuple(given))
        return _owned(self._ask(query, **given, now=self.now(), limit=page.limit))

    def last_actor(
        self, providers: Collection[str], after: int, *, operators_first: bool = False
    ) -> Actor | None:
        def newest(connection: Session, query: Select[tuple[int, str]]) -> Actor | None:
            found = [
                row
                for some in chunks(providers)
                for row in connection.execute(query, {"after": after, "providers": some})
            ]
            last = max(found, key=lambda row: int(row.revision), default=None)
            return None if last is None else stored_bodies.actor_of(last.actor)

        def work(connection: Session) -> Actor | None:
            operator = newest(connection, _LAST_OPERATORS) if operators_first else None
            return operator or newest(connection, _LAST_ACTORS)

        return self._backend.read(work)

    def idle_consumers(self) -> Sequence[str]:
        return self._ask(_IDLE).scalars()

    def held(self, project_id: str | None) -> int:
        return held(self._backend, project_id, now=self.now())

    def yielding(self, lease_id: str) -> Sequence[Owned]:
        """Live bookings that end early for a lease."""
        now = self.now()
        query = _BOOKED.where(
            _b.yields_to == lease_id,
            _b.lapses_at > now,
            or_(_b.state == BookingState.ALLOCATED.value, _b.end_at > now),
        )
        return _owned(self._ask(query))

    def overrun(self, after: tuple[Instant, str], limit: int) -> Sequence[OverrunConsumer]:
        end, uuid = after
        found = self._ask(_OVERRUN, end=end, uuid=uuid, now=self.now(), limit=limit)
        return [OverrunConsumer(rows.consumer(row), row.end_at, row.yields_to) for row in found]
