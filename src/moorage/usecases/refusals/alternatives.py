"""Alternatives of a refusal: the earliest window, the largest count that fits, and other zones.

Each is found by a trial of the changed request with all strategies that make room, within a part
of the time for explanations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.explain import Largest, Window
from moorage.domain.period import FOREVER, SECOND
from moorage.engine.explain.conflicts import Oracle
from moorage.engine.joint.build import build_on_terrain
from moorage.policies.fence import Fence
from moorage.usecases.refusals.earliest_window import earliest_start
from moorage.usecases.refusals.explanation import UNTRIED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.ensembles import PolicyStatement
    from moorage.domain.explain import Explanation
    from moorage.domain.period import Duration
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.capacity.starts import Starts
    from moorage.engine.joint.build import BuiltProblem
    from moorage.usecases.refusals.trial import Trial, WindowRequest
    from moorage.usecases.shared.environment import Environment

ZONE: Final = "zone"
"""The level whose domains are tried as alternatives of a fence around one of them."""
_ZONES: Final = 8
"""Other zones that are tried at most."""
_SHARE: Final = 2
"""All alternatives together may take 1/_SHARE of the time for an explanation."""
_PART: Final = 4
"""The count and the zones may each take 1/_PART of the time for alternatives."""


def with_alternatives(  # noqa: PLR0913 - the refused request, its problem, range and margins
    env: Environment,
    why: Explanation,
    window_request: WindowRequest,
    built: BuiltProblem,
    otherwise: Trial | None,
    starts: Starts,
    *,
    lead: Duration = 0,
    cleaning: Duration = 0,
) -> Explanation:
    """The explanation with the earliest window, the largest count and the other zones.

    `why` explains a request none of whose members is placed yet, `built` is its infeasible problem,
    and `starts` is the range whose first start was refused. `otherwise` tries changed requests with
    strategies that make room. `lead` is the time between the starts of the booked and of the
    tenant's period, `cleaning` that between their ends.
    """
    budget = env.limits.explanation_budget // _SHARE
    seconds = budget // _PART / SECOND
    trial = otherwise if otherwise is not None and otherwise.helps(built.request) else None
    judge = _Judge(built, Oracle(env.solver, env.countdown(seconds), window_request.seed), trial)
    largest = _listed(why) or _largest(judge, env.limits.disclosure)
    starts = replace(starts, disclosure=env.limits.disclosure)
    zoning = _Judge(built, Oracle(env.solver, env.countdown(seconds), window_request.seed), trial)
    zones = tuple(one for one, request in _zones(built) if zoning.fits(request))
    sought = earliest_start(env, window_request, starts, time_limit=budget, later=True)
    why = why if judge.sure else replace(why, note=UNTRIED)
    none_missed = sought.start is not None or sought.proved
    complete = why.complete and judge.complete and zoning.complete and none_missed
    why = replace(why, largest=largest, zones=zones, complete=complete)
    if sought.start is None:
        return why
    start = sought.start + lead
    end = starts.window(sought.start).end
    window = Window(start, None if end == FOREVER else end - cleaning, sought.proved)
    return replace(why, earliest=window)


def _listed(why: Explanation) -> Largest | None:
    """The largest count, if a relaxation of the explanation has it already."""
    for one in why.relaxations:
        change = one.change
        if change.subject == "member" and change.field == "count":
            before, after = change.before, change.after
            if isinstance(before, int) and isinstance(after, int) and after < before:
                return Largest(change.name, after, before)
    return None


@dataclass(eq=False)
class _Judge:
    """Judges whether changed requests fit, unaided or with strategies that make room."""

    built: BuiltProblem
    oracle: Oracle
    otherwise: Trial | None
    sure: bool = True
    """Whether every negative answer of a strategy so far is proved."""

    @property
    def complete(self) -> bool:
        """Whether every negative answer so far is proved."""
        return self.sure and self.oracle.complete

    def stays(self, request: EnsembleRequest) -> bool:
        """Whether the request fits with all other bookings unchanged."""
        terrain, closed = self.built.terrain, self.built.closed
        feasible = self.oracle.feasible_if_time(
            lambda: build_on_terrain(request, terrain, closed=closed).problem
        )
        return feasible is True

    def fits(self, request: EnsembleRequest) -> bool:
        """Whether the request fits, unaided or with a strategy that makes room."""
        if self.stays(request):
            return True
        if self.otherwise is None:
            return False
        granted = self.otherwise.grants(request, self.oracle.remaining())
        self.sure = self.sure and granted is not None
        return granted is True


def _largest(judge: _Judge, rough: Disclosure) -> Largest | None:
    """The largest disclosed count that fits, of a request with a single role; else None.

    Found by bisection, which assumes that smaller counts fit if a larger one does.
    """
    request = judge.built.request
    roles = {member.role for member in request.members}
    named = {one.member for policy in request.policies for one in policy.members}
    if len(roles) != 1 or named & set(request.members):
        return None
    every = sorted(request.members)
    sizes, few = rough.sizes(len(every)), 0
    for fits in (judge.stays, judge.fits):
        many = len(sizes)
        while many - few > 1:
            middle = (few + many) // 2
            if fits(replace(request, members=tuple(every[: sizes[middle]]))):
                few = middle
            else:
                many = middle
    return Largest(next(iter(roles)), sizes[few], len(every)) if few else None


def _zones(built: BuiltProblem) -> Iterator[tuple[str, EnsembleRequest]]:
    """Zones other than those that a required fence names, each with the changed request."""
    topology = built.terrain.topology
    for statement in built.request.policies:
        domains = statement.parameters.get("domains")
        if statement.type != Fence.type or not statement.required:
            continue
        names = set(domains) if isinstance(domains, list | tuple | set | frozenset) else set()
        trees = {
            tree
            for (tree, name), domain in topology.domains.items()
            if name in names and domain.level == ZONE
        }
        others = sorted(
            name
            for (tree, name), domain in topology.domains.items()
            if tree in trees and domain.level == ZONE and name not in names
        )
        for zone in others[:_ZONES]:
            yield zone, _fenced(built.request, statement, zone)


def _fenced(request: EnsembleRequest, statement: PolicyStatement, zone: str) -> EnsembleRequest:
    """The request with one of its fences changed to another zone."""
    parameters = MappingProxyType({**statement.parameters, "domains": [zone]})
    other = replace(statement, parameters=parameters)
    policies = tuple(other if one is statement else one for one in request.policies)
    return replace(request, policies=policies)
