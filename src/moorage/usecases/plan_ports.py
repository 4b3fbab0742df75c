"""What the ledger answers about plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.plans import Plan, PlanKind, PlanState
    from moorage.usecases.paging import Page


class PlanRecords(Protocol):
    """Stored plans."""

    def plan(self, id_: str) -> Plan:
        """One plan. NotFound."""

    def page(
        self, page: Page, *, state: PlanState | None = None, kind: PlanKind | None = None
    ) -> Sequence[Plan]:
        """Plans, newest first; None: of any state or kind."""

    def running(self) -> Sequence[Plan]:
        """Plans that run, by creation."""

    def counts(self) -> Mapping[PlanState, int]:
        """Number of plans in each state that any is in."""
