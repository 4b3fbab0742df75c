"""Whether a request would be granted if it were another: looked for as if it were that one.

Another is one that names another window, or asks for something else in its own. Whoever makes room
for a request makes room in a trial: preemptible users, leases that have not started, and leases of
less priority. Nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Member
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.usecases.leases.outrank import outranking
from moorage.usecases.leases.planned import planned_times
from moorage.usecases.looking import Looking

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.ensembles import MemberName
    from moorage.domain.period import Period
    from moorage.domain.requests import EnsembleRequest
    from moorage.usecases.joint import Ask
    from moorage.usecases.looking import Sight
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Promise, Proposal
    from moorage.usecases.standing import Standing


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
        proposal = replace(self.proposal, promise=replace(self.promise, period=period))
        return granted(self.parts, proposal, self.ask, self.sight, seconds)

    def at(self, period: Period) -> Otherwise:
        """The request for one window, to be tried with something else in it."""
        proposal = replace(self.proposal, promise=replace(self.promise, period=period))
        return Otherwise(self.parts, proposal, self.ask, self.sight)


@dataclass(frozen=True, eq=False)
class Otherwise:
    """What is asked for, where its members, roles and policies could be others."""

    parts: Parts
    proposal: Proposal
    ask: Ask
    sight: Sight

    def helps(self, request: EnsembleRequest) -> bool:
        """Whether there is anybody who could make room for it, beside what a search says."""
        if self.proposal.unasked:
            return False
        snapshot = self.sight.snapshot
        if self.ask.preemptible or (self.proposal.promise and snapshot.preemptible.any()):
            return True
        planned = planned_times(snapshot, request.own_consumers).values()
        return any(one.overlaps(request.period) for one in planned)

    def granted(self, request: EnsembleRequest, seconds: float) -> bool | None:
        """Whether it would be granted as changed; None: that is not known.

        Args:
            request: the request as a search sees it, changed.
            seconds: for the search.
        """
        proposal = _asking(self.parts, self.proposal, request)
        return granted(self.parts, proposal, self.ask, self.sight, seconds)


def granted(
    parts: Parts, proposal: Proposal, ask: Ask, sight: Sight, seconds: float
) -> bool | None:
    """Whether a proposal would be granted in so many seconds; None: that is not known."""
    limit = int(seconds * SECOND)
    if limit <= 0:
        return None
    try:
        look = Looking(parts, proposal, ask, limit).look(sight)
        if look.found is not None:
            return True
        if not proposal.outranks or parts.limits.preemption_notice is None:
            return None if look.unsure else False
        found = outranking(parts, proposal, ask, look, sight, limit)
    except Busy:
        return None
    return True if found is not None else None


def _asking(parts: Parts, proposal: Proposal, request: EnsembleRequest) -> Proposal:
    """The proposal as it would be for a changed request."""
    ensemble, names = proposal.ensemble, frozenset(request.members)
    have = {one.name: one for one in ensemble.members}
    more = names - have.keys()
    members = tuple(have.get(one) or Member(one, parts.ids.uuid()) for one in request.members)

    def also(
        anew: Callable[[Standing], frozenset[MemberName]],
    ) -> Callable[[Standing], frozenset[MemberName]]:
        return lambda stand: (anew(stand) & names) | more

    return replace(
        proposal,
        ensemble=replace(ensemble, roles=request.roles, members=members, policies=request.policies),
        anew=also(proposal.anew),
        or_anew=None if proposal.or_anew is None else also(proposal.or_anew),
        roles=None if proposal.roles is None else request.roles,
        restated=request.restated,
        known=MappingProxyType({}),
    )
