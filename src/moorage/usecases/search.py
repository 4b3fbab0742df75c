"""Looks for answers one way: the last one if it still holds, or a new one."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.engine.build import state
from moorage.usecases.joint import find, standing_answer, still_holds
from moorage.usecases.leases.sparing import sparing
from moorage.usecases.leases.yielding import aside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.ensembles import MemberName
    from moorage.domain.period import Duration
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask, Found
    from moorage.usecases.leases.yielding import Candidate
    from moorage.usecases.parts import Parts

BUSY_HOST: Final = "contention"
"""Reason id of hosts that others are busy with; such hosts are only avoided, never refused."""

_SPARING: Final = SECOND
"""How long hosts are looked for where nobody has to go, or few: the best are not proved."""


@dataclass(eq=False)
class Search:
    """Looks for answers one way, and keeps the last one."""

    parts: Parts
    ask: Ask
    time_limit: Duration
    known: Mapping[MemberName, str]
    """See `Proposal.known`."""
    found: Found | None = None
    broken: int = 0
    """How many answers no longer held."""

    def answer(
        self, built: Built, busy: frozenset[str], there: Sequence[Snapshot] = ()
    ) -> Found | None:
        """The last answer if it still holds, or else a new one; None if there is none.

        Args:
            built: the problem.
            busy: hosts (UUIDs) on which others were quicker.
            there: the fleet with those whom the problem sets aside; see `sparing`.
        """
        if self.found is not None:
            self.found = still_holds(self.found, built)
            self.broken += self.found is None
        elif self.known:
            self.found, self.known = standing_answer(self.known, built), MappingProxyType({})
        if self.found is None and self.broken > 1 and busy:
            closed = {**built.closed, BUSY_HOST: busy}
            self.found = self._find(state(built.request, built.terrain, closed=closed), there)
        if self.found is None:
            self.found = self._find(built, there)
        return self.found

    def _find(self, built: Built, there: Sequence[Snapshot]) -> Found | None:
        solver, seed = self.parts.solver, self.ask.seed
        if there:
            limit = min(self.time_limit, _SPARING)
            try:
                return find(solver, sparing(built, there), time_limit=limit, seed=seed)
            except Busy:
                pass  # whom to spare was too much to ask: then whoever has to go
        return find(solver, built, time_limit=self.time_limit, seed=seed)


def spared_views(there: Snapshot, candidates: Mapping[str, Candidate]) -> tuple[Snapshot, ...]:
    """The fleet with all who could go, and with only those of the highest priority."""
    if not candidates:
        return ()
    highest = max(one.priority for one in candidates.values())
    lower = [name for name, one in candidates.items() if one.priority < highest]
    return (there, aside(there, lower)) if lower else (there,)
