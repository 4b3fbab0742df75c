"""Trials: search for a changed request, or for another window, without writing anything.

A trial uses the same strategies as a request: preemption of preemptible servers, relocation of
leases that have not started, and preemption of leases of lower priority.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import Member
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.engine.joint.build import BuiltProblem, build
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.request import KnownHosts
from moorage.usecases.decide.search_plan import search_once
from moorage.usecases.relocation.movable_leases import movable_periods

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Instant, Period
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.capacity.starts import Starts
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import LeasePromise, Proposal
    from moorage.usecases.decide.search_result import Observation
    from moorage.usecases.decide.solution import DecisionOptions


NOBODY: Final[Mapping[str, frozenset[str]]] = {}
"""No host is barred."""


@dataclass(frozen=True, eq=False)
class WindowRequest:
    """A request and the fleet in which its earliest window is searched."""

    ensemble: Ensemble
    request: EnsembleRequest
    """All of its members are to be placed; its period is replaced by that of each window."""
    snapshot: Snapshot
    exclusive: Sequence[Ensemble]
    """Ensembles with exclusive policies."""
    displacing_from: Instant | None = None
    """Windows that start then or later may displace preemptible consumers; None: no window may."""
    barred: Mapping[str, frozenset[str]] | None = None
    seed: int = 0
    trial: Trial | None = None
    """Tries windows with all strategies; None: without relocation, and then a result is proved only
    if no lease could move."""

    def problem_at(self, starts: Starts, start: Instant, view: Snapshot) -> BuiltProblem:
        """The problem of the window that begins at `start`, on the fleet `view`."""
        period = starts.window(start)
        closed = closed_hosts(self.exclusive, self.snapshot, self.ensemble, period)
        request = replace(self.request, period=period)
        return build(request, view, closed={**(self.barred or NOBODY), **closed})


@dataclass(frozen=True, eq=False)
class Trial:
    """Tries a request in other windows."""

    env: DecideEnvironment
    proposal: Proposal
    promise: LeasePromise
    """The terms, with a period that is replaced by that of each window."""
    options: DecisionOptions
    observation: Observation

    @property
    def outranks(self) -> int:
        """Leases of a lower priority than this may give up their places for the request."""
        return 0 if self.env.limits.preemption_notice is None else self.promise.outranks

    def granted(self, period: Period, seconds: float) -> bool | None:
        """Whether the request would be granted in a window; None: unknown.

        Args:
            period: the window, with lead and cleaning.
            seconds: time limit of the search.
        """
        proposal = replace(self.proposal, promise=replace(self.promise, period=period))
        return granted(self.env, proposal, self.options, self.observation, seconds)

    def at(self, period: Period) -> ChangedRequestTrial:
        """A trial of changed requests in one window."""
        proposal = replace(self.proposal, promise=replace(self.promise, period=period))
        return ChangedRequestTrial(self.env, proposal, self.options, self.observation)


@dataclass(frozen=True, eq=False)
class ChangedRequestTrial:
    """Tries a request with other members, roles or policies."""

    env: DecideEnvironment
    proposal: Proposal
    options: DecisionOptions
    observation: Observation

    def helps(self, request: EnsembleRequest) -> bool:
        """Whether any strategy could make room for the request, so that trials are worthwhile."""
        if not self.proposal.hooks.reader.client_reads:
            return False
        snapshot = self.observation.snapshot
        if self.options.preemptible or (self.proposal.promise and snapshot.preemptible.any()):
            return True
        planned = movable_periods(snapshot, request.own_consumers).values()
        return any(one.overlaps(request.period) for one in planned)

    def granted(self, request: EnsembleRequest, seconds: float) -> bool | None:
        """Whether the changed request would be granted; None: unknown.

        Args:
            request: the changed joint request.
            seconds: time limit of the search.
        """
        proposal = _changed_proposal(self.env, self.proposal, request)
        return granted(self.env, proposal, self.options, self.observation, seconds)


def granted(
    env: DecideEnvironment,
    proposal: Proposal,
    options: DecisionOptions,
    observation: Observation,
    seconds: float,
) -> bool | None:
    """Whether a proposal would be granted, by a search of at most `seconds`; None: unknown."""
    limit = int(seconds * SECOND)
    if limit <= 0:
        return None
    try:
        result = search_once(env, options, proposal, observation, limit)
    except Busy:
        return None
    if result.placement is not None:
        return True
    return None if result.unsure else False


def _changed_proposal(
    env: DecideEnvironment, proposal: Proposal, request: EnsembleRequest
) -> Proposal:
    """The proposal with the roles, members and policies of a changed request."""
    ensemble, names = proposal.ensemble, frozenset(request.members)
    have = {one.name: one for one in ensemble.members}
    more = names - have.keys()
    members = tuple(have.get(one) or Member(one, env.ids.uuid()) for one in request.members)

    def selecting(
        anew: Callable[[MemberPlaces], frozenset[MemberName]],
    ) -> Callable[[MemberPlaces], frozenset[MemberName]]:
        return lambda member_places: (anew(member_places) & names) | more

    return replace(
        proposal,
        ensemble=replace(ensemble, roles=request.roles, members=members, policies=request.policies),
        selections=tuple(selecting(one) for one in proposal.selections),
        roles=None if proposal.roles is None else request.roles,
        restated=request.restated,
        known_hosts=KnownHosts(barred=proposal.known_hosts.barred),
    )
