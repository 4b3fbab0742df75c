"""Loads what a snapshot needs of providers: all of them, or a few by UUID."""

from __future__ import annotations

import logging
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, select

from moorage.domain.errors import NotFound
from moorage.domain.period import Period
from moorage.domain.topology import EMPTY
from moorage.engine.state.arrivals import AddedBookings
from moorage.engine.state.snapshot import ProviderState
from moorage.store.database.statements import IN_LIST, chunks
from moorage.store.schema import tables
from moorage.store.values import rows, stored_bodies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moorage.domain.host_states import HostRecord
    from moorage.domain.placement import Occupant
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.topology import Topology
    from moorage.store.changelog.entries import Added
    from moorage.store.database.session import Queryable, Question, Session

_log = logging.getLogger(__name__)

_b, _c, _m = tables.bookings.c, tables.consumers.c, tables.members.c
_SOME: Final[Any] = bindparam("providers", expanding=True)

# Oldest first on every replica: a server such as PostgreSQL has no order of its own.
_AGE = (tables.providers.c.created_at, tables.providers.c.uuid)
_OLDEST_FIRST = select(tables.providers.c.uuid).order_by(*_AGE)
_s = tables.server_providers.c
_PROVIDERS = (
    select(tables.providers, _s.body.label("offer"))
    .outerjoin(tables.server_providers, _s.id == tables.providers.c.uuid)
    .order_by(*_AGE)
)
_INVENTORIES = select(tables.inventories).order_by(
    tables.inventories.c.provider, tables.inventories.c.resource_class
)
_TRAITS = select(tables.provider_traits)
_AGGREGATES = select(tables.provider_aggregates)
_a, _p = tables.away.c, tables.providers.c
_AWAY = (
    select(_p.uuid, _a.start_at, _a.end_at)
    .join(tables.away, _a.provider == _p.root)
    .order_by(_a.start_at, _a.end_at)
)
_r = tables.host_records.c
_RECORDS = select(_r.provider, _r.closing, _r.service)
_BOOKINGS = select(*(_b[name] for name in rows.BOOKING_ROW)).order_by(_b.number)
_OCCUPANTS = select(_c.uuid, _c.project_id, _m.tags).outerjoin(
    tables.members, _m.consumer == _c.uuid
)

_SOME_PROVIDERS = _PROVIDERS.where(tables.providers.c.uuid.in_(_SOME))
_SOME_INVENTORIES = _INVENTORIES.where(tables.inventories.c.provider.in_(_SOME))
_SOME_TRAITS = _TRAITS.where(tables.provider_traits.c.provider.in_(_SOME))
_SOME_AGGREGATES = _AGGREGATES.where(tables.provider_aggregates.c.provider.in_(_SOME))
_SOME_AWAY = _AWAY.where(_p.uuid.in_(_SOME))
_SOME_RECORDS = _RECORDS.where(_r.provider.in_(_SOME))
_SOME_BOOKINGS = _BOOKINGS.where(_b.provider.in_(_SOME))
_OCCUPANTS_OF_SOME = _OCCUPANTS.where(
    _c.uuid.in_(select(_b.consumer).where(_b.provider.in_(_SOME)))
)

_OF: Final[Any] = bindparam("consumers", expanding=True)
_NAMED_OCCUPANTS = _OCCUPANTS.where(_c.uuid.in_(_OF))
_TAGS = select(_m.consumer, _m.tags).where(_m.consumer.in_(_OF))


def every_state(connection: Session) -> Iterator[ProviderState]:
    """All providers there are."""
    uuids = connection.scalars(_OLDEST_FIRST).all()
    # All at once: to look each of them up by its key takes ten times as long.
    occupants = _occupants(connection.execute(_OCCUPANTS))
    # The others a part at a time: all rows of bookings would take as much memory as all bookings.
    for start in range(0, len(uuids), IN_LIST):
        found = connection.ask(*_questions(uuids[start : start + IN_LIST]))
        yield from _states(found, occupants)


def states(connection: Session, uuids: Iterable[str]) -> Iterator[ProviderState]:
    """Those of the named providers that exist."""
    for some in chunks(uuids):
        *found, occupants = connection.ask(
            *_questions(some), (_OCCUPANTS_OF_SOME, {"providers": some})
        )
        yield from _states(found, _occupants(occupants))


def _questions(uuids: Sequence[str]) -> Iterator[Question]:
    """What to ask of providers, as many as one statement takes; for `_states`."""
    for statement in (
        _SOME_PROVIDERS,
        _SOME_INVENTORIES,
        _SOME_TRAITS,
        _SOME_AGGREGATES,
        _SOME_BOOKINGS,
        _SOME_AWAY,
        _SOME_RECORDS,
    ):
        yield statement, {"providers": uuids}


def _states(
    found: Sequence[Iterable[Any]], occupants: Mapping[str, Occupant]
) -> Iterator[ProviderState]:
    """The states that the answers to `_questions` tell, oldest provider first."""
    *parts, bookings, away, records = found
    hosts = {one.provider: rows.host_record(one) for one in records}
    return _booked(_assembled(*parts), bookings, occupants, _down(away), hosts)


class _Occupants(dict[str, "Occupant"]):
    """Occupants by consumer; also has those whose rows are missing, and logs them."""

    def __missing__(self, consumer: str) -> Occupant:
        """A consumer with bookings but no row in `consumers`; its bookings count as all others.

        No commit leaves one; rows that were deleted by hand do.
        """
        _log.error(
            "the ledger is damaged: consumer %s has bookings and no row in `consumers`;"
            " they count, as those of an unknown project",
            consumer,
        )
        found = self[consumer] = rows.occupant(consumer, "", None)
        return found


def _occupants(every: Iterable[Any]) -> _Occupants:
    return _Occupants({row.uuid: rows.occupant(*row) for row in every})


def provider(source: Queryable, uuid: str) -> ResourceProvider:
    """One of them, without its bookings.

    Raises:
        NotFound: there is none.
    """
    one = {"providers": [uuid]}
    found = source.ask(
        (_SOME_PROVIDERS, one),
        (_SOME_INVENTORIES, one),
        (_SOME_TRAITS, one),
        (_SOME_AGGREGATES, one),
    )
    for provider in _assembled(*found):
        return provider
    raise NotFound("resource provider", uuid)


def forms(connection: Session, uuids: Iterable[str]) -> Iterator[ResourceProvider]:
    """Those of the named providers that exist, without their inventories."""
    for some in chunks(uuids):
        parameters = {"providers": some}
        yield from _assembled(
            connection.execute(_SOME_PROVIDERS, parameters).all(),
            (),
            connection.execute(_SOME_TRAITS, parameters).all(),
            connection.execute(_SOME_AGGREGATES, parameters).all(),
        )


def rebooked(connection: Session, known: Mapping[str, ProviderState]) -> Iterator[ProviderState]:
    """Known providers of which only bookings and counters have changed."""
    for some in chunks(known):
        parameters = {"providers": some}
        counters, bookings, occupants = connection.ask(
            (_SOME_PROVIDERS, parameters),
            (_SOME_BOOKINGS, parameters),
            (_OCCUPANTS_OF_SOME, parameters),
        )
        providers = (
            rows.recounted(
                known[row.uuid].provider,
                generation=row.generation,
                revision=row.revision,
                updated_at=row.updated_at,
            )
            for row in counters
        )
        down = {uuid: known[uuid].down for uuid in some}
        hosts = {uuid: known[uuid].host for uuid in some}
        yield from _booked(providers, bookings, _occupants(occupants), down, hosts)


_CONSUMER: Final = attrgetter("consumer")


def are_new(state: ProviderState, added: Iterable[Added]) -> bool:
    """Whether no consumer of the added bookings has any in this state.

    One that has may look otherwise now. And a log may give an entry twice, after a gap in it.
    """
    came = {booking.consumer for one in added for booking in one.bookings}
    return came.isdisjoint(map(_CONSUMER, state.occupants))


def booked(
    connection: Session, known: Sequence[tuple[ProviderState, Sequence[Added]]], *, tags: bool
) -> list[AddedBookings]:
    """What became of providers, in this order, by what these commits did to them.

    `tags` says whether any consumer has any. Only of whom a commit knows nothing is asked.
    """
    every = [one for _, added in known for one in added]
    strangers = [
        booking.consumer for one in every if one.newcomers is None for booking in one.bookings
    ]
    occupants = {
        row.uuid: rows.occupant(*row)
        for some in chunks(strangers)
        for row in connection.execute(_NAMED_OCCUPANTS, {"consumers": some})
    }
    if tags:
        newcomers = {one.consumer: one for came in every for one in came.newcomers or ()}
        occupants |= {
            row.consumer: rows.occupant(row.consumer, newcomers[row.consumer].project_id, row.tags)
            for some in chunks(newcomers)
            for row in connection.execute(_TAGS, {"consumers": some})
        }
    return [_arrived(state, added, occupants) for state, added in known]


def _arrived(
    state: ProviderState, added: Sequence[Added], occupants: Mapping[str, Occupant]
) -> AddedBookings:
    """`occupants` has all who had to be asked for, and those newcomers who have tags."""
    provider = state.provider
    generation, updated_at = provider.generation, provider.updated_at
    for one in added:
        if one.bump:
            generation, updated_at = generation + one.bump, one.at
    came, bookings = added[0].newcomers, added[0].bookings
    if len(added) > 1 or occupants or came is None:  # seldom
        bookings = [booking for one in added for booking in one.bookings]
        came = _who_came(added, occupants)
    now = ProviderState(
        rows.recounted(
            provider,
            generation=generation,
            revision=provider.revision + len(added),
            updated_at=updated_at,
        ),
        (*state.bookings, *bookings),
        (*state.occupants, *came),
        state.down,
        state.host,
    )
    return AddedBookings(now, bookings)


def _who_came(added: Iterable[Added], occupants: Mapping[str, Occupant]) -> Sequence[Occupant]:
    found: dict[str, Occupant] = {}
    for one in added:
        if one.newcomers is None:
            found.update((who, occupants[who]) for who in map(_CONSUMER, one.bookings))
        else:
            found.update((who.consumer, occupants.get(who.consumer, who)) for who in one.newcomers)
    return tuple(found.values())


def _assembled(
    providers: Iterable[Any],
    inventories: Iterable[Any],
    traits: Iterable[Any],
    aggregates: Iterable[Any],
) -> list[ResourceProvider]:
    stock = rows.by(inventories, "provider")
    traits_of, aggregates_of = rows.by(traits, "provider"), rows.by(aggregates, "provider")
    return [
        rows.provider(
            row,
            (rows.inventory(one) for one in stock.get(row.uuid, ())),
            (one.trait for one in traits_of.get(row.uuid, ())),
            (one.aggregate for one in aggregates_of.get(row.uuid, ())),
        )
        for row in providers
    ]


def _booked(
    providers: Iterable[ResourceProvider],
    bookings: Iterable[Any],
    occupants: Mapping[str, Occupant],
    down: Mapping[str, tuple[Period, ...]],
    hosts: Mapping[str, HostRecord | None],
) -> Iterator[ProviderState]:
    on = rows.by(bookings, "provider")
    for provider in providers:
        mine = rows.bookings(on.get(provider.uuid, ()), occupants)
        consumers = dict.fromkeys(map(_CONSUMER, mine))
        yield ProviderState(
            provider,
            mine,
            tuple(map(occupants.__getitem__, consumers)),
            down.get(provider.uuid, ()),
            hosts.get(provider.uuid),
        )


def _down(away: Iterable[Any]) -> dict[str, tuple[Period, ...]]:
    """When providers have no capacity, as capacity windows say."""
    return {
        uuid: tuple(Period(one.start_at, one.end_at) for one in some)
        for uuid, some in rows.by(away, "uuid").items()
    }


def topology(connection: Session) -> Topology:
    """The stored topology; empty before the first one."""
    body = connection.scalars(select(tables.topology.c.body)).one_or_none()
    return EMPTY if body is None else stored_bodies.TOPOLOGY.decode(body)
