"""Reads plans, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.usecases.shared.access import require_operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.plans import Plan, PlanKind, PlanState
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller


def show_plan(env: UseCaseEnvironment, caller: Caller, id_: str) -> Plan:
    """One plan.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: there is no such plan.
    """
    require_operator(caller)
    return env.store.plans.plan(id_)


def list_plans(
    env: UseCaseEnvironment,
    caller: Caller,
    page: Page,
    *,
    state: PlanState | None = None,
    kind: PlanKind | None = None,
) -> Sequence[Plan]:
    """Plans, newest first; None: of any state or kind.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: the page's marker is no plan.
    """
    require_operator(caller)
    return env.store.plans.page(page, state=state, kind=kind)
