"""Counts what a project has stored, which quotas limit."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, distinct, exists, func, select

from moorage.domain.quotas import QuotaName
from moorage.domain.waitlist import EntryState
from moorage.store.read.leases import LIVE
from moorage.store.schema import tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Select

    from moorage.store.database.session import Asked

_l, _e = tables.leases.c, tables.ensembles.c
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
    }
)
"""Offers are not among them: which of them are there still depends on the time."""


def count(asked: Asked, project_id: str, name: QuotaName) -> int:
    """How many things of a kind a project has; one of `_COUNT`."""
    return int(asked.ask((_COUNT[name], {"of": project_id}))[0].scalar_one())


def counts(asked: Asked, project_id: str) -> dict[QuotaName, int]:
    """How many things of each of these kinds a project has."""
    found = asked.ask(*((query, {"of": project_id}) for query in _COUNT.values()))
    return {name: int(rows.scalar_one()) for name, rows in zip(_COUNT, found, strict=True)}
