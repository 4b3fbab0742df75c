"""Reads plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from moorage.domain.plans import PlanState
from moorage.store.read.stored_values import Reader
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.plans import Plan, PlanKind
    from moorage.usecases.paging import Page

_p = tables.plans.c
_UNFINISHED: Final = (
    select(_p.body)
    .where(_p.ended_at.is_(None), _p.state != PlanState.READY.value)
    .order_by(_p.number)
)
_COUNTS: Final = select(_p.state, func.count().label("number")).group_by(_p.state)


class PlanStore(Reader):
    """See `usecases.plan_ports.PlanRecords`."""

    def plan(self, id_: str) -> Plan:
        return self._one(tables.plans, "plan", stored_bodies.PLAN, id_)

    def page(
        self, page: Page, *, state: PlanState | None = None, kind: PlanKind | None = None
    ) -> Sequence[Plan]:
        wanted = select(_p.body, _p.number)
        if state is not None:
            wanted = wanted.where(_p.state == state.value)
        if kind is not None:
            wanted = wanted.where(_p.kind == kind.value)
        return self._listed(tables.plans, stored_bodies.PLAN, wanted, page, newest_first=True)

    def unfinished(self) -> Sequence[Plan]:
        return self._every(stored_bodies.PLAN, _UNFINISHED)

    def counts(self) -> Mapping[PlanState, int]:
        return {PlanState(row.state): int(row.number) for row in self._ask(_COUNTS)}
