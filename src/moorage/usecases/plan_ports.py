"""What the ledger answers about plans, and who moves servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.period import Duration, Instant
    from moorage.domain.plan_progress import MoveReport
    from moorage.domain.plans import Move, Plan, PlanKind, PlanState
    from moorage.usecases.paging import Page


class PlanRecords(Protocol):
    """Stored plans."""

    def plan(self, id_: str) -> Plan:
        """One plan. NotFound."""

    def page(
        self, page: Page, *, state: PlanState | None = None, kind: PlanKind | None = None
    ) -> Sequence[Plan]:
        """Plans, newest first; None: of any state or kind."""

    def unfinished(self) -> Sequence[Plan]:
        """Plans that were applied and may have something happen still, by creation.

        Those that run or are paused, and canceled ones of which a server still moves.
        """

    def counts(self) -> Mapping[PlanState, int]:
        """Number of plans in each state that any is in."""


class MoveRefused(MoorageError):
    """Whoever moves servers has refused a move; nothing was begun."""


class MoverUnreachable(MoorageError):
    """Whether a move was begun, or how far it is, is not known: it is looked at again."""


class ServerMover(Protocol):
    """Moves servers: Nova, or in a simulation the ledger alone."""

    @property
    def patience(self) -> Duration:
        """How long after it was decided a request for a move may still be on its way."""

    def begin(self, move: Move) -> None:
        """Begin to move a server, whose allocations the ledger is written by meanwhile.

        Raises:
            MoveRefused: it does not.
            MoverUnreachable: it may have begun.
        """

    def report(self, move: Move) -> MoveReport:
        """How far a move is that may have begun.

        Raises:
            MoverUnreachable: that cannot be read now.
        """

    def next_end(self, move: Move) -> Instant:
        """When a move that is under way ends by the clock; FOREVER: nobody knows."""
