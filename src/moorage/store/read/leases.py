"""Which rows of leases are live, and what projects have that quotas limit."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, distinct, exists, func, select, true

from moorage.domain.leases import LeaseState
from moorage.domain.quotas import QuotaName, QuotaUse
from moorage.domain.waitlist import EntryState
from moorage.engine.time.quotas import ProjectLeases
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Select

    from moorage.domain.period import Instant
    from moorage.domain.quotas import Quota
    from moorage.store.database.session import Queryable, Session

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
_e, _h = tables.ensembles.c, tables.shares.c
_OF: Final[Any] = bindparam("of")
_COUNT: Final[Mapping[QuotaName, Select[Any]]] = MappingProxyType(
    {
        QuotaName.ENSEMBLES: select(func.count())
        .select_from(tables.ensembles)
        .where(_e.project_id == _OF, ~exists().where(_l.ensemble_id == _e.id)),
        QuotaName.TEMPLATES: select(func.count()).where(tables.templates.c.project_id == _OF),
        QuotaName.SERIES: select(func.count(distinct(_l.series_id))).where(
            _l.project_id == _OF, *LIVE
        ),
        QuotaName.WAITLIST: select(func.count()).where(
            tables.waitlist.c.project_id == _OF,
            tables.waitlist.c.state == EntryState.WAITING.value,
        ),
        QuotaName.SUBSCRIPTIONS: select(func.count()).where(
            tables.subscriptions.c.project_id == _OF
        ),
        QuotaName.SHARES_GIVEN: select(func.count())
        .select_from(tables.shares)
        .join(tables.ensembles, _e.id == _h.ensemble_id)
        .where(_e.project_id == _OF),
        QuotaName.SHARES_RECEIVED: select(func.count()).where(
            _h.project_id == _OF, _h.offered == true()
        ),
    }
)
"""Offers are not among them: which of them are there still depends on the time."""


def quota(source: Queryable, project_id: str) -> Quota | None:
    """What an operator has said of a project."""
    body = source.ask((_QUOTA, {"of": project_id}))[0].scalar_one_or_none()
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


def count(source: Queryable, project_id: str, name: QuotaName) -> int:
    """How many things of a kind a project has; one of `_COUNT`."""
    return int(source.ask((_COUNT[name], {"of": project_id}))[0].scalar_one())


def counts(source: Queryable, project_id: str) -> dict[QuotaName, int]:
    """How many things of each of these kinds a project has."""
    found = source.ask(*((query, {"of": project_id}) for query in _COUNT.values()))
    return {name: int(rows.scalar_one()) for name, rows in zip(_COUNT, found, strict=True)}
