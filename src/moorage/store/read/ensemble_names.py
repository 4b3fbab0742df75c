"""Finds the ensemble in use that has a name in a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, exists, func, or_, select

from moorage.domain.decisions import ClaimState, DecisionState
from moorage.store.read.leases import LIVE
from moorage.store.schema import tables

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.store.database.session import Asked

_e, _l, _d, _c = tables.ensembles.c, tables.leases.c, tables.decisions.c, tables.claims.c
_older = tables.decisions.alias("older")
_LEASES_ENDED: Final = and_(
    exists().where(_l.ensemble_id == _e.id), ~exists().where(_l.ensemble_id == _e.id, *LIVE)
)
"""It was leased, or kept for an offer, and no lease of it is left."""
_NEWEST: Final = (
    select(func.max(_older.c.number))
    .where(_older.c.ensemble_id == _d.ensemble_id)
    .correlate(tables.decisions)
    .scalar_subquery()
)
_PLACES_GONE: Final = exists().where(
    _d.ensemble_id == _e.id,
    _d.number == _NEWEST,
    or_(
        _d.state == DecisionState.RELEASED.value,
        _d.state == DecisionState.EXPIRED.value,
        and_(_d.state == DecisionState.HELD.value, _d.expires_at <= bindparam("now")),
    ),
    ~exists().where(_c.decision_id == _d.id, _c.state == ClaimState.ACTIVE.value),
)
"""Its places were given back, or their hold has lapsed, before a server had one."""
_NAMESAKE: Final = (
    select(_e.id)
    .where(
        _e.project_id == bindparam("of"),
        _e.name == bindparam("named"),
        _e.id != bindparam("but"),
        ~_LEASES_ENDED,
        ~_PLACES_GONE,
    )
    .order_by(_e.number)
    .limit(1)
)


def namesake(
    asked: Asked, project_id: str, name: str, now: Instant, *, but: str = ""
) -> str | None:
    """The id of the oldest ensemble in use of a name, but for one; see `ExpectUniqueName`."""
    given = {"of": project_id, "named": name, "but": but, "now": now}
    found = asked.ask((_NAMESAKE, given))[0].first()
    return None if found is None else str(found.id)
