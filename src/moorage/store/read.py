"""Reading rows back as values; every function works in the caller's transaction."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    Integer,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    true,
)

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.effects import EffectState, Lane
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.quotas import Use
from moorage.domain.waitlist import EntryState
from moorage.engine.quotas import Lessee
from moorage.store import bodies, rows, tables
from moorage.store.batch import chunks
from moorage.usecases.ports import Keepers, Named, Overrun

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Column, Select, Table

    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.quotas import Quota
    from moorage.domain.templates import Template
    from moorage.store.codec import Shape
    from moorage.store.session import Asked, Question, Session
    from moorage.usecases.ports import Page

    T = TypeVar("T")


Owned = tuple["Consumer", Booking]

_BODIES: Final = 512
"""Decoded values kept by their text: a worker that plans leases anew reads the same ones often."""
_LONG: Final = 32_768
"""Characters of a text that is not kept."""


def _due(time: Column[Any]) -> Select[Any]:
    """Bodies of rows whose `time` has come, the longest overdue first."""
    table = time.table
    query = select(table.c.body).where(time <= bindparam("now"))
    return query.order_by(time, table.c.number).limit(bindparam("limit"))


_b, _c = tables.bookings.c, tables.consumers.c
_BOOKED = (
    select(tables.bookings, _c.uuid, _c.project_id, _c.user_id, _c.type, _c.generation)
    .join(tables.consumers, _c.uuid == _b.consumer)
    .order_by(_b.number)
)
_ALLOCATIONS = _BOOKED.where(_b.state == BookingState.ALLOCATED.value)
_OF_CONSUMER = _ALLOCATIONS.where(_b.consumer == bindparam("consumer"))
_OF_PROVIDER = _ALLOCATIONS.where(_b.provider == bindparam("provider"))
_OF_PROJECT = _ALLOCATIONS.where(_c.project_id == bindparam("project"))
_OF_USER = _OF_PROJECT.where(_c.user_id == bindparam("user"))
_IDLE = (
    select(_c.uuid)
    .where(~select(_b.number).where(_b.consumer == _c.uuid).exists())
    .order_by(_c.uuid)
)
_OVERRUN = (
    select(_c.uuid, _c.project_id, _c.user_id, _c.type, _c.generation, _b.end_at, _b.yields_to)
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
_QUOTA = select(tables.quotas.c.body).where(tables.quotas.c.project_id == bindparam("of"))
_uses = tables.lease_uses.c
_USES = select(_uses.lease_id, _uses.units, _uses.start_at, _uses.end_at).order_by(
    _uses.end_at, _uses.number
)
_USES_OF_LEASE = _USES.where(_uses.lease_id == bindparam("of"))
_USES_OF_PROJECT = _USES.where(
    _uses.project_id == bindparam("of"),
    _uses.end_at > bindparam("since"),
    _uses.lease_id != bindparam("but"),
)
_PROVIDER = select(tables.providers.c.uuid).where(tables.providers.c.uuid == bindparam("uuid"))
_classes = tables.resource_classes.c
# What workers ask again and again, in every process: worded once.
_DUE_DECISIONS = _due(tables.decisions.c.expires_at).where(
    tables.decisions.c.state == DecisionState.HELD.value
)
_DUE_CLAIMS = _due(tables.claims.c.lapses_at).where(
    tables.claims.c.state == ClaimState.BUILDING.value
)
_DUE_EFFECTS = _due(tables.effects.c.not_before).where(
    tables.effects.c.state == EffectState.PENDING.value
)
_DUE_IN_LANE = _DUE_EFFECTS.where(tables.effects.c.lane == bindparam("lane"))
_CLASSES = select(_classes.name, _classes.updated_at).order_by(
    _classes.place.is_(None), _classes.place, _classes.number
)
_KEEPERS_REVISION = select(
    tables.ledger.c.keepers_revision,
    exists()
    .where(tables.waitlist.c.state == literal_column(f"'{EntryState.WAITING.value}'"))
    .label("waited"),
)
_TRAITS = select(tables.traits).order_by(tables.traits.c.name)
_TRAITS_NAMED = _TRAITS.where(tables.traits.c.name.in_(bindparam("names", expanding=True)))


def resource_classes(connection: Session) -> list[Named]:
    """Standard ones first, in their order; then custom ones by creation."""
    return [Named(row.name, row.updated_at) for row in connection.execute(_CLASSES)]


def traits(asked: Asked, names: Collection[str] | None) -> list[Named]:
    """Traits by name: every one, or those of these names that exist."""
    questions: list[Question] = [(_TRAITS, {})]
    if names is not None:
        questions = [(_TRAITS_NAMED, {"names": some}) for some in chunks(names)]
    return [Named(row.name, row.updated_at) for found in asked.ask(*questions) for row in found]


# --- bookings -------------------------------------------------------------------------------


def _owned(found: Iterable[Any]) -> list[Owned]:
    """Rows of bookings with their consumers, as values, in the order of their first rows."""
    every = list(found)
    owners = {row.consumer: rows.consumer(row) for row in every}
    return [(owners[one.consumer], one) for one in rows.bookings(every)]


def consumer(asked: Asked, uuid: str) -> tuple[Consumer, list[Booking]] | None:
    """A consumer and its allocations, or None without any."""
    found = _owned(asked.ask((_OF_CONSUMER, {"consumer": uuid}))[0])
    return (found[0][0], [booking for _, booking in found]) if found else None


def allocations_of_provider(connection: Session, uuid: str) -> list[Owned]:
    """The allocations on a provider.

    Raises:
        NotFound: no such provider.
    """
    if connection.scalars(_PROVIDER, {"uuid": uuid}).first() is None:
        raise NotFound("resource provider", uuid)
    return _owned(connection.execute(_OF_PROVIDER, {"provider": uuid}))


def usages(connection: Session, project_id: str, user_id: str | None) -> list[Owned]:
    """The allocations of a project, or of one of its users."""
    if user_id is None:
        return _owned(connection.execute(_OF_PROJECT, {"project": project_id}))
    return _owned(connection.execute(_OF_USER, {"project": project_id, "user": user_id}))


def bookings(
    connection: Session,
    *,
    now: Instant,
    provider: str | None,
    consumer: str | None,
    decision: str | None,
    page: Page,
) -> list[Owned]:
    """Live bookings by consumer; a page holds whole consumers, the marker is one's UUID."""
    about = {"provider": provider, "consumer": consumer, "decision": decision}
    given = {name: value for name, value in about.items() if value is not None}
    if page.marker is not None:
        given["marker"] = page.marker
    query = _page_of_bookings(tuple(given))
    return _owned(connection.execute(query, {**given, "now": now, "limit": page.limit}))


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


def idle_consumers(connection: Session) -> list[str]:
    """Consumers without any row of a booking."""
    return list(connection.scalars(_IDLE))


def held(connection: Session, project_id: str | None, *, now: Instant) -> int:
    """How many consumers have places held or claimed now; None means those of every project."""
    count = select(func.count(_b.consumer.distinct())).where(
        _b.state.in_([BookingState.HELD.value, BookingState.CLAIMED.value]),
        _b.lapses_at > now,
        _b.end_at > now,
    )
    if project_id is not None:
        of_consumer = _c.uuid == _b.consumer
        count = count.join(tables.consumers, of_consumer).where(_c.project_id == project_id)
    return int(connection.scalar(count) or 0)


def quota(asked: Asked, project_id: str) -> Quota | None:
    """What an operator has said of a project."""
    body = asked.ask((_QUOTA, {"of": project_id}))[0].scalar_one_or_none()
    return None if body is None else bodies.QUOTA.decode(body)


def uses_of_lease(connection: Session, lease_id: str) -> tuple[Use, ...]:
    """What a lease counts for, in order."""
    rows_ = connection.execute(_USES_OF_LEASE, {"of": lease_id}).all()
    return tuple(Use(row.units, row.start_at, row.end_at) for row in rows_)


def lessee(
    connection: Session, project_id: str, since: Instant, now: Instant, *, but: str = ""
) -> Lessee:
    """What a project has leased that ends after an instant, but for one lease."""
    given = {"of": project_id, "since": since, "but": but}
    rows_ = connection.execute(_USES_OF_PROJECT, given).all()
    ends = {row.lease_id: row.end_at for row in rows_ if row.end_at > now}
    return Lessee([Use(row.units, row.start_at, row.end_at) for row in rows_], list(ends.values()))


def keepers_revision(asked: Asked) -> tuple[int, bool]:
    """The revision of all ensembles that keep others out, and whether anybody waits."""
    row = asked.ask((_KEEPERS_REVISION, {}))[0].one()
    return int(row.keepers_revision), bool(row.waited)


def keepers(connection: Session) -> Keepers:
    """Every ensemble that keeps others out, and their revision, in one look."""
    ensembles, keeping = tables.ensembles.c, tables.keepers.c
    query = (
        select(tables.ledger.c.keepers_revision, ensembles.body)
        .select_from(tables.ledger)
        .outerjoin(tables.keepers, true())
        .outerjoin(tables.ensembles, ensembles.id == keeping.ensemble_id)
        .order_by(ensembles.number)
    )
    found = connection.execute(query).all()
    return Keepers(
        revision=found[0].keepers_revision,
        ensembles=tuple(bodies.ENSEMBLE.decode(row.body) for row in found if row.body),
    )


def refusal(request: str, *, project_id: str | None, digest: str | None) -> Select[Any]:
    """The newest explanation of a request that was refused."""
    table = tables.explanations
    query = select(table).where(table.c.request == request)
    if project_id is not None:
        query = query.where(table.c.project_id == project_id)
    if digest is not None:
        query = query.where(table.c.digest == digest)
    return query.order_by(table.c.number.desc()).limit(1)


# --- values in bodies -----------------------------------------------------------------------


def one(asked: Asked, table: Table, kind: str, shape: Shape[T], id_: str) -> T:
    """The value of an id.

    Raises:
        NotFound: there is none.
    """
    body = asked.ask((_body_of(table), {"of": id_}))[0].scalar_one_or_none()
    if body is None:
        raise NotFound(kind, id_)
    return shape.decode(body) if len(body) > _LONG else _decoded(shape, body)


@lru_cache(maxsize=_BODIES)
def _decoded(shape: Shape[T], body: str) -> T:
    """Values are frozen: who reads the same text again gets the same value."""
    return shape.decode(body)


@cache
def _body_of(table: Table) -> Select[Any]:
    """Worded once per table: a statement made anew is worded anew."""
    return select(table.c.body).where(table.c.id == bindparam("of"))


def listed(
    connection: Session,
    table: Table,
    shape: Shape[T],
    wanted: Select[Any],
    *,
    newest_first: bool,
    page: Page,
) -> list[T]:
    """Values by creation (or newest first), one page of them.

    Raises:
        NotFound: the page's marker names nothing.
    """
    number = table.c.number
    if page.marker is not None:
        # Of a thing with versions, the newest stands for it.
        marked = select(number).where(table.c.id == page.marker).order_by(number.desc()).limit(1)
        place = connection.scalars(marked).one_or_none()
        if place is None:
            raise NotFound("marker", page.marker)
        wanted = wanted.where(number < place if newest_first else number > place)
    ordered = wanted.order_by(number.desc() if newest_first else number).limit(page.limit)
    return [shape.decode(row.body) for row in connection.execute(ordered)]


PROPOSED: Final = (LeaseState.OFFERED.value, tables.LAPSED)
"""How rows of leases are listed that are no leases but offers: present ones, and those over."""
OF_AN_OFFER: Final = exists().where(
    tables.leases.c.ensemble_id == tables.ensembles.c.id,
    tables.leases.c.state == LeaseState.OFFERED.value,
)
"""Of a row of ensembles: whether it is there for an offer only."""


_l = tables.leases.c
_OCCURRENCES: Final = (
    select(_l.series_id, _l.state, func.count().label("number"))
    .where(_l.series_id.in_(bindparam("some", expanding=True)))
    .group_by(_l.series_id, _l.state)
)


def occurrences(
    connection: Session, series_ids: Collection[str]
) -> dict[str, dict[LeaseState, int]]:
    """How many leases of each of these series are in which state; not what was merely kept."""
    found: dict[str, dict[LeaseState, int]] = {one: {} for one in series_ids}
    for some in chunks(series_ids):
        for row in connection.execute(_OCCURRENCES, {"some": some}):
            if row.state not in PROPOSED:
                found[row.series_id][LeaseState(row.state)] = row.number
    return found


def matching(table: Table, **equal: object) -> Select[Any]:
    """The bodies of rows whose columns equal these values; None leaves a column free."""
    query = select(table.c.body)
    for column, value in equal.items():
        if value is not None:
            query = query.where(table.c[column] == value)
    return query


def due_items(connection: Session, now: Instant, limit: int) -> list[Decision | Claim]:
    """Held decisions, then building claims, whose time has come."""
    given = {"now": now, "limit": limit}
    found = connection.scalars(_DUE_DECISIONS, given)
    decisions = [bodies.DECISION.decode(body) for body in found]
    given = {"now": now, "limit": limit - len(decisions)}
    claims = [bodies.CLAIM.decode(body) for body in connection.scalars(_DUE_CLAIMS, given)]
    return [*decisions, *claims]


def template(connection: Session, template_id: str, version: int | None) -> Template:
    """A version of a template; None: the newest.

    Raises:
        NotFound: there is none.
    """
    t = tables.templates.c
    query = select(t.body).where(t.id == template_id)
    query = query.where(t.newest == true() if version is None else t.version == version)
    body = connection.scalars(query).one_or_none()
    if body is None:
        name = template_id if version is None else f"{template_id}@{version}"
        raise NotFound("template", name)
    return bodies.TEMPLATE.decode(body)


def templates(project_id: str | None, name: str | None) -> Select[Any]:
    """Bodies of the newest versions that a project may use; None: those of every project."""
    t = tables.templates.c
    query = select(t.body).where(t.newest == true())
    if project_id is not None:
        query = query.where(or_(t.project_id == project_id, t.shared == true()))
    return query if name is None else query.where(t.name == name)


def lease_of_reservation(connection: Session, reservation_id: str) -> Lease:
    """The lease that has this reservation.

    Raises:
        NotFound: there is none.
    """
    of = tables.leases.c.id == tables.reservations.c.lease_id
    query = select(tables.leases.c.body).join(tables.reservations, of)
    body = connection.scalars(query.where(tables.reservations.c.id == reservation_id)).one_or_none()
    if body is None:
        raise NotFound("reservation", reservation_id)
    return bodies.LEASE.decode(body)


def yielding(connection: Session, lease_id: str, *, now: Instant) -> list[Owned]:
    """Live bookings that end early for a lease."""
    query = _BOOKED.where(
        _b.yields_to == lease_id,
        _b.lapses_at > now,
        or_(_b.state == BookingState.ALLOCATED.value, _b.end_at > now),
    )
    return _owned(connection.execute(query))


def due_effects(connection: Session, now: Instant, limit: int, lane: Lane | None) -> list[Effect]:
    """Effects that may be taken on, of one lane or of all, the longest due first."""
    given = {"now": now, "limit": limit}
    if lane is None:
        found = connection.scalars(_DUE_EFFECTS, given)
    else:
        found = connection.scalars(_DUE_IN_LANE, {**given, "lane": lane.value})
    return [bodies.EFFECT.decode(body) for body in found]


def pending_effects(connection: Session, now: Instant) -> dict[Lane, tuple[int, Instant]]:
    """How many effects of each lane are due, and the longest due one's instant."""
    e = tables.effects.c
    query = (
        select(e.lane, func.count(), func.min(e.not_before))
        .where(e.state == EffectState.PENDING.value, e.not_before <= now)
        .group_by(e.lane)
    )
    return {Lane(lane): (number, oldest) for lane, number, oldest in connection.execute(query)}


def overrun(
    connection: Session, now: Instant, after: tuple[Instant, str], limit: int
) -> list[Overrun]:
    """See `Store.overrun`."""
    end, uuid = after
    given = {"end": end, "uuid": uuid, "now": now, "limit": limit}
    found = connection.execute(_OVERRUN, given)
    return [Overrun(rows.consumer(row), row.end_at, row.yields_to) for row in found]
