"""Trials: search for a changed request, or for another window, without writing anything.

A trial uses the same strategies as a request: preemption of preemptible servers, relocation of
leases that have not started, and preemption of leases of lower priority.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Member
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND
from moorage.engine.joint.build import BuiltProblem, build
from moorage.usecases.decide.closed_hosts import closed_hosts
from moorage.usecases.decide.request import KnownHosts
from moorage.usecases.decide.search_plan import SearchPlan
from moorage.usecases.relocation.movable_leases import movable_periods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Instant, Period
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.capacity.starts import Starts
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.environment import DecideEnvironment
    from moorage.usecases.decide.request import (
        LeasePromise,
        Proposal,
        RefusalReader,
        SelectsMembers,
    )
    from moorage.usecases.decide.search_result import Observation
    from moorage.usecases.decide.solution import DecisionOptions


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
        return build(request, view, closed={**(self.barred or {}), **closed})


@dataclass(frozen=True, eq=False)
class Trial:
    """Searches for a proposal, or for changes of it, with all strategies."""

    env: DecideEnvironment
    proposal: Proposal
    options: DecisionOptions
    observation: Observation
    _granted: list[tuple[EnsembleRequest, bool]] = field(
        default_factory=list, init=False, repr=False
    )
    """Changed requests that were searched for, and whether they would be granted."""

    @property
    def reader(self) -> RefusalReader:
        """For whom the refusal is explained."""
        return self.proposal.reader

    @property
    def outranks(self) -> int:
        """Leases of a lower priority than this may give up their places for the request."""
        promise = self.proposal.promise
        if promise is None or self.env.limits.preemption_notice is None:
            return 0
        return promise.outranks

    def helps(self, request: EnsembleRequest) -> bool:
        """Whether any strategy could make room for the request, so that trials are worthwhile."""
        if not self.reader.client_reads:
            return False
        snapshot = self.observation.snapshot
        if self.options.preemptible or (self.proposal.promise and snapshot.preemptible.any()):
            return True
        planned = movable_periods(snapshot, request.own_consumers).values()
        return any(one.overlaps(request.period) for one in planned)

    def granted(self, seconds: float, *, without_concessions: bool = False) -> bool | None:
        """Whether the proposal would be granted, by a search of at most `seconds`; None: unknown.

        `without_concessions` leaves out the strategies with concessions.
        """
        limit = int(seconds * SECOND)
        if limit <= 0:
            return None
        plan = SearchPlan(self.env, self.proposal, self.options, limit)
        try:
            result = plan.search(self.observation, without_concessions=without_concessions)
        except Busy:
            return None
        if result.placement is not None:
            return True
        return None if result.unsure else False

    def grants(self, request: EnsembleRequest, seconds: float) -> bool | None:
        """Whether a changed request would be granted, by a search of at most `seconds`.

        None: unknown. Explanations look for changes in several ways, which meet at the same ones:
        one that was decided is not searched for again.
        """
        for known, decided in self._granted:
            if _ask_the_same(known, request):
                return decided
        verdict = self.with_request(request).granted(seconds)
        if verdict is not None:
            self._granted.append((request, verdict))
        return verdict

    def window_request(
        self, request: EnsembleRequest, displacing_from: Instant | None
    ) -> WindowRequest:
        """The request in any window, with this trial; see `WindowRequest`."""
        return WindowRequest(
            self.proposal.ensemble,
            request,
            self.observation.snapshot,
            self.observation.exclusive,
            displacing_from=displacing_from,
            barred=self.proposal.known_hosts.barred,
            seed=self.options.seed,
            trial=self,
        )

    def with_promise(self, promise: LeasePromise | None) -> Trial:
        """A trial of the proposal on other terms."""
        return replace(self, proposal=replace(self.proposal, promise=promise))

    def in_window(self, period: Period) -> Trial:
        """A trial of a lease's proposal in a window, with lead and cleaning."""
        promise = self.proposal.promise
        assert promise is not None, "only leases have windows"
        return self.with_promise(replace(promise, period=period))

    def with_request(self, request: EnsembleRequest) -> Trial:
        """A trial of the proposal with the roles, members and policies of a changed request."""
        proposal, names = self.proposal, frozenset(request.members)
        have = {one.name: one for one in proposal.ensemble.members}
        more = names - have.keys()
        members = tuple(
            have.get(one) or Member(one, self.env.ids.uuid())
            for one in (*request.members, *request.absent)
        )

        def selecting(anew: SelectsMembers) -> SelectsMembers:
            return lambda member_places: (anew(member_places) & names) | more

        ensemble = replace(
            proposal.ensemble, roles=request.roles, members=members, policies=request.policies
        )
        changed = replace(
            proposal,
            ensemble=ensemble,
            selections=tuple(selecting(one) for one in proposal.selections),
            roles=None if proposal.roles is None else request.roles,
            before=proposal.before or proposal.ensemble,
            restated=request.restated,
            known_hosts=KnownHosts(barred=proposal.known_hosts.barred),
        )
        return replace(self, proposal=changed)


def _ask_the_same(one: EnsembleRequest, other: EnsembleRequest) -> bool:
    """Whether two changes of one request have the same members, roles, policies and period."""
    return (
        frozenset(one.members) == frozenset(other.members)
        and frozenset(one.absent) == frozenset(other.absent)
        and one.fixed == other.fixed
        and one.period == other.period
        and one.roles == other.roles
        and one.policies == other.policies
        and one.restated == other.restated
    )
