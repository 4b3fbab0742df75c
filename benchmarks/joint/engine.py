"""Moorage's engine as a decision uses it, in this process: build, solve, verify, explain."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.explain import Stage
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.engine.explain.conflicts import DeletionFilter, Oracle, any_placement
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_fleet_room
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import verify
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.explain import Relaxation
    from moorage.domain.period import Duration
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.host_filters import Closed
    from moorage.engine.state.snapshot import Snapshot

LEAST: Final = SECOND // 1000
"""The time limit of a first valid answer: what is found is returned at once."""
LONGEST: Final = 10 * SECOND
"""Within so much time a group has to be decided."""
NONE_CLOSED: Final[Mapping[str, frozenset[str]]] = MappingProxyType({})


@dataclass
class Stopwatch:
    """Seconds of the parts of a decision: by the wall, and of the processor."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    _since: tuple[float, float] = (0.0, 0.0)

    def start(self) -> None:
        """From here on time counts."""
        self._since = time.perf_counter(), time.process_time()

    def lap(self, part: str) -> None:
        """What has passed since the last lap was for this part."""
        now = time.perf_counter(), time.process_time()
        self.wall[part] = self.wall.get(part, 0.0) + now[0] - self._since[0]
        self.cpu[part] = self.cpu.get(part, 0.0) + now[1] - self._since[1]
        self._since = now


@dataclass(frozen=True, eq=False)
class Decided:
    """What the engine says of a request, and how long it took."""

    verdict: Verdict
    hosts: Mapping[MemberName, str] | None
    outcome: Outcome
    built: BuiltProblem
    taken: Stopwatch

    @property
    def seconds(self) -> float:
        """By the wall."""
        return sum(self.taken.wall.values())

    @property
    def cpu_seconds(self) -> float:
        """Of the processor."""
        return sum(self.taken.cpu.values())


def first_answer(
    snapshot: Snapshot,
    request: EnsembleRequest,
    *,
    closed: Closed = NONE_CLOSED,
    longest: Duration = LONGEST,
) -> Decided:
    """The first valid answer or proof: with the least limit, and if that decides nothing again.

    Then any placement will do, so that a solver does not go on to improve what it has found.
    """
    solver, watch = Portfolio(CpSat()), Stopwatch()
    watch.start()
    built = with_fleet_room(build(request, snapshot, closed=closed), snapshot, tuple)
    watch.lap("build")
    outcome = solve(solver, built.problem, time_limit=LEAST, seed=0)
    watch.lap("solve")
    if outcome.verdict is Verdict.UNKNOWN and longest > LEAST:
        outcome = solve(solver, any_placement(built.problem), time_limit=longest, seed=0)
        watch.lap("search on")
    return _verified(built, outcome, watch)


def improved_answer(snapshot: Snapshot, request: EnsembleRequest, limit: Duration) -> Decided:
    """The best answer found within a limit, which is of the solver alone."""
    watch = Stopwatch()
    watch.start()
    built = with_fleet_room(build(request, snapshot), snapshot, tuple)
    watch.lap("build")
    outcome = solve(Portfolio(CpSat()), built.problem, time_limit=limit, seed=0)
    watch.lap("solve")
    return _verified(built, outcome, watch)


def _verified(built: BuiltProblem, outcome: Outcome, watch: Stopwatch) -> Decided:
    hosts = None
    if outcome.hosts is not None:
        verify(built, outcome.hosts)
        rows = outcome.hosts.tolist()
        hosts = dict(
            zip(built.problem.members, (built.problem.hosts[row] for row in rows), strict=True)
        )
        watch.lap("verify")
    return Decided(outcome.verdict, hosts, outcome, built, watch)


@dataclass(frozen=True, eq=False)
class Refused:
    """Why the engine refuses a request, and how long it took to find out, in seconds."""

    conflicts: tuple[frozenset[tuple[str, str]], ...]
    minimal: bool
    """Whether the first conflict is proved to be minimal."""
    relaxations: tuple[Relaxation, ...]
    conflict_seconds: float
    """Until the first minimal conflict was there, the decision included."""
    relaxed_seconds: float
    """From the decision until every conflict and relaxation was there."""
    cpu: tuple[float, float]
    """Of the processor, for the two."""


def refusal(decided: Decided, *, seconds: float = LONGEST / SECOND) -> Refused:
    """The conflicts and relaxations of a request that was refused."""
    solver, watch = Portfolio(CpSat()), Stopwatch()
    until = time.monotonic() + seconds
    watch.start()
    oracle = Oracle(solver, lambda: until - time.monotonic())
    first = next(DeletionFilter(decided.built, oracle).conflicts(), None)
    watch.lap("conflict")
    until = time.monotonic() + seconds
    # A new object: what is kept with the first must not help the second.
    explained = explain(
        replace(decided.built),
        solver,
        remaining=lambda: until - time.monotonic(),
        skip_stage=Stage.TIME,
    )
    watch.lap("all")
    return Refused(
        conflicts=tuple(
            frozenset((part.kind, part.name) for part in one.elements)
            for one in explained.conflicts
        ),
        minimal=first is not None and first.minimal,
        relaxations=explained.relaxations,
        conflict_seconds=decided.seconds + watch.wall["conflict"],
        relaxed_seconds=watch.wall["all"],
        cpu=(decided.cpu_seconds + watch.cpu["conflict"], watch.cpu["all"]),
    )


def relaxed(request: EnsembleRequest, relaxation: Relaxation) -> EnsembleRequest:
    """The request with a relaxation applied, as a tenant would write it."""
    change = relaxation.change
    if change.subject == "policy":
        return replace(
            request,
            policies=tuple(
                one
                if one.name != change.name
                else replace(one, weight=1)
                if change.field == "strength"
                else replace(
                    one,
                    parameters=MappingProxyType({**one.parameters, change.field: change.after}),
                )
                for one in request.policies
            ),
        )
    if change.field == "count":
        return with_count(request, change.name, change.after)
    assert change.field == "required"
    texts = change.after
    assert isinstance(texts, list)
    required = tuple(frozenset(text.split("|")) for text in texts)
    return replace(
        request,
        roles=tuple(
            replace(role, required=required) if role.name == change.name else role
            for role in request.roles
        ),
    )


def without_part(request: EnsembleRequest, kind: str, name: str) -> EnsembleRequest:
    """The request without one part of a conflict: a policy, a role's traits or its resources."""
    if kind == "policy":
        kept = tuple(one for one in request.policies if one.name != name)
        return replace(request, policies=kept)
    roles = []
    for role in request.roles:
        if role.name != name:
            roles.append(role)
        elif kind == "traits":
            roles.append(replace(role, required=()))
        else:
            roles.append(replace(role, resources=MappingProxyType({})))
    return replace(request, roles=tuple(roles))


def with_count(request: EnsembleRequest, role: str, count: object) -> EnsembleRequest:
    """The request with so many members of a role."""
    assert isinstance(count, int)
    mine = sorted(member for member in request.members if member.role == role)
    others = tuple(member for member in request.members if member.role != role)
    more = tuple(
        MemberName(role, mine[-1].index + 1 + number) for number in range(max(count - len(mine), 0))
    )
    return replace(request, members=(*others, *mine[:count], *more))
