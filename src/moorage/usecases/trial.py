"""Whether a request would be granted in another window: looked for as if it named that window.

Whoever makes room for a request makes room in a trial: preemptible users, leases that have not
started, and leases of less priority. Nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.usecases.leases.outrank import outranking
from moorage.usecases.looking import Looking

if TYPE_CHECKING:
    from moorage.domain.period import Period
    from moorage.usecases.joint import Ask
    from moorage.usecases.looking import Sight
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Promise, Proposal


@dataclass(frozen=True, eq=False)
class Trial:
    """What is asked for, apart from when."""

    parts: Parts
    proposal: Proposal
    promise: Promise
    """Of any window."""
    ask: Ask
    sight: Sight

    @property
    def outranks(self) -> int:
        """Leases of a lower priority than this may give up their places for it."""
        return 0 if self.parts.limits.preemption_notice is None else self.proposal.outranks

    def granted(self, period: Period, seconds: float) -> bool | None:
        """Whether it would be granted in a window; None: that is not known.

        Args:
            period: the window, with lead and cleaning.
            seconds: for the search.
        """
        limit = int(seconds * SECOND)
        if limit <= 0:
            return None
        proposal = replace(self.proposal, promise=replace(self.promise, period=period))
        try:
            look = Looking(self.parts, proposal, self.ask, limit).look(self.sight)
            if look.found is not None:
                return True
            if not self.outranks:
                return None if look.unsure else False
            found = outranking(self.parts, proposal, self.ask, look, self.sight, limit)
        except Busy:
            return None
        return True if found is not None else None
