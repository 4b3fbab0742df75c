"""Reads leases and what belongs to them; every function works in the caller's transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, exists, func, select

from moorage.domain.effects import EffectState, Lane
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.quotas import QuotaUse
from moorage.engine.time.quotas import ProjectLeases
from moorage.store.database.statements import chunks
from moorage.store.read import stored_values
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Collection

    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.quotas import Quota
    from moorage.store.database.session import Asked, Session

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
_DUE_EFFECTS = stored_values.whose_time_has_come(tables.effects.c.not_before).where(
    tables.effects.c.state == EffectState.PENDING.value
)
_DUE_IN_LANE = _DUE_EFFECTS.where(tables.effects.c.lane == bindparam("lane"))
PROPOSED: Final = (LeaseState.OFFERED.value, tables.LAPSED)
"""How rows of leases are listed that are no leases but offers: present ones, and those over."""
OF_AN_OFFER: Final = exists().where(
    tables.leases.c.ensemble_id == tables.ensembles.c.id,
    tables.leases.c.state == LeaseState.OFFERED.value,
)
"""Of a row of ensembles: whether it is there for an offer only."""


_l = tables.leases.c
LIVE: Final = tuple(_l.state != one for one in (*PROPOSED, LeaseState.CLOSED.value))
"""Of a row of leases: what is true of a lease that has not ended."""
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


def quota(asked: Asked, project_id: str) -> Quota | None:
    """What an operator has said of a project."""
    body = asked.ask((_QUOTA, {"of": project_id}))[0].scalar_one_or_none()
    return None if body is None else stored_bodies.QUOTA.decode(body)


def uses_of_lease(connection: Session, lease_id: str) -> tuple[QuotaUse, ...]:
    """What a lease counts for, in order."""
    rows_ = connection.execute(_USES_OF_LEASE, {"of": lease_id}).all()
    return tuple(QuotaUse(row.units, row.start_at, row.end_at) for row in rows_)


def lessee(
    connection: Session, project_id: str, since: Instant, now: Instant, *, but: str = ""
) -> ProjectLeases:
    """What a project has leased that ends after an instant, but for one lease."""
    given = {"of": project_id, "since": since, "but": but}
    rows_ = connection.execute(_USES_OF_PROJECT, given).all()
    ends = {row.lease_id: row.end_at for row in rows_ if row.end_at > now}
    return ProjectLeases(
        [QuotaUse(row.units, row.start_at, row.end_at) for row in rows_], list(ends.values())
    )


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
    return stored_bodies.LEASE.decode(body)


def due_effects(connection: Session, now: Instant, limit: int, lane: Lane | None) -> list[Effect]:
    """Effects that may be taken on, of one lane or of all, the longest due first."""
    given = {"now": now, "limit": limit}
    if lane is None:
        found = connection.scalars(_DUE_EFFECTS, given)
    else:
        found = connection.scalars(_DUE_IN_LANE, {**given, "lane": lane.value})
    return [stored_bodies.EFFECT.decode(body) for body in found]


def pending_effects(connection: Session, now: Instant) -> dict[Lane, tuple[int, Instant]]:
    """How many effects of each lane are due, and the longest due one's instant."""
    e = tables.effects.c
    query = (
        select(e.lane, func.count(), func.min(e.not_before))
        .where(e.state == EffectState.PENDING.value, e.not_before <= now)
        .group_by(e.lane)
    )
    return {Lane(lane): (number, oldest) for lane, number, oldest in connection.execute(query)}
