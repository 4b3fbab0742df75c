"""The joint problem as columns, which every solver gets, and the solver's answer.

Built from a request and a snapshot by `joint.build`; written to JSON and read back as an *instance*
(bug report, regression test and benchmark input in one form).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from moorage.domain.decisions import SolveEnd
from moorage.domain.topology import HOST
from moorage.policies.primitives import NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration
    from moorage.domain.requests import Objective
    from moorage.domain.topology import Level
    from moorage.engine.devices.proof import Proof
    from moorage.engine.joint.room import Room
    from moorage.policies.primitives import Cut, Primitive

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


def mask_of(rows: Collection[int], size: int) -> Bools:
    """[size] true at these rows."""
    found = np.zeros(size, dtype=np.bool_)
    found[list(rows)] = True
    return found


def permitted_hosts(primitive: OnlyOn | NeverOn, hosts: int) -> Bools:
    """[H] the hosts, of this many, on which the primitive permits its members."""
    named = mask_of(primitive.hosts, hosts)
    return named if isinstance(primitive, OnlyOn) else ~named


@dataclass(frozen=True)
class Problem:
    """M members of R roles, to be placed on H hosts with K resource classes.

    Hosts are rows; their names are for messages only. A solver may merge equal rows.
    """

    members: tuple[MemberName, ...]
    """Length M, sorted."""
    roles: tuple[str, ...]
    """Length R."""
    role_of: Ints
    """[M] index into `roles`."""
    demand: Ints
    """[R, K] amounts one member of the role takes."""
    allowed: Bools
    """[R, H] hosts that pass every filter of the role alone: traits, aggregates, unit rules,
    and enough free capacity for one member."""
    fixed: Ints
    """[M] host row of a member that is placed already, or -1. Fixed members take nothing from
    `free` (their bookings are in it) and ignore `allowed`."""
    classes: tuple[str, ...]
    """Length K: resource classes."""
    free: Ints
    """[H, K] capacity less the peak of every live booking over the request's period."""
    capacity: Ints
    """[H, K] capacity of the empty hosts; with `free` it gives the fill for `balance`."""
    hosts: tuple[str, ...]
    """Length H: root provider UUIDs."""
    domains: Mapping[Level, Ints]
    """Level -> [H] domain number or -1; for every level a primitive names. At the level `host` the
    row itself, but for servers that offer slices the row of their host."""
    primitives: tuple[Primitive, ...]
    objective: Objective | None
    """None: placements cost only the penalties of preferred primitives."""
    cuts: tuple[Cut, ...] = ()
    """Known combinations of members that devices cannot serve."""
    choices: tuple[tuple[int, ...], ...] = ()
    """Numbers of the members of which exactly one is placed, a tuple for each member of the request
    that has alternatives (see `joint.alternatives`). If there are any, the last host is none:
    there stand those that are not placed."""
    room: Room | None = None
    """The hosts' room for what others ask for; among placements that cost the same, searches prefer
    those that take least of it. None: they prefer the emptiest hosts, or the fullest to pack."""
    proof: Proof | None = None
    """Decides whether devices can serve a placement; None if the request uses no devices. Solvers
    do not use it: its results are added as cuts (`joint.proved_solve`)."""

    @cached_property
    def position_of(self) -> Mapping[MemberName, int]:
        """Member -> its number in `members`."""
        return {member: index for index, member in enumerate(self.members)}

    @cached_property
    def domain_counts(self) -> Mapping[Level, int]:
        """Level -> the number of domains."""
        return {level: int(of.max(initial=-1)) + 1 for level, of in self.domains.items()}

    @property
    def host_count(self) -> int:
        """How many of the hosts are real ones: the first so many."""
        return len(self.hosts) - bool(self.choices)

    @cached_property
    def hosts_are_domains(self) -> bool:
        """Whether at the level `host` every row is a domain of its own: no two are on one host."""
        rows = np.arange(self.host_count)
        return all(
            np.array_equal(domain_of[: self.host_count], rows)
            for level, domain_of in self.domains.items()
            if level.name == HOST
        )

    @cached_property
    def to_place(self) -> Ints:
        """Numbers of the members to be placed (those that are not fixed), ascending."""
        return np.flatnonzero(self.fixed < 0)


def most_by_host(problem: Problem, roles: Sequence[int]) -> Ints | None:
    """[H] how many members each host can take by capacity and filters, if it has no others.

    Without policies, shared providers and devices just so many; else at most so many. `roles` are
    the numbers of a role's alternatives; None: these take no class in common.
    """
    rows = list(roles)
    # Of each class at least what the most modest alternative takes.
    demand = problem.demand[rows].min(axis=0)
    if len(rows) > 1 and not demand.any():
        return None
    allowed = problem.allowed[rows, : problem.host_count].any(axis=0)
    found = np.zeros(problem.host_count, dtype=np.int64)
    free = problem.free[: problem.host_count][allowed][:, demand > 0]
    if free.size:
        found[allowed] = np.maximum(free // demand[demand > 0], 0).min(axis=1)
    return found


class Verdict(StrEnum):
    """A solver's verdict on a problem."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    """Proved."""
    UNKNOWN = "unknown"
    """Time ran out before an answer or a proof."""


@dataclass(frozen=True)
class Outcome:
    """A solver's answer. `value` is its cost, `bound` a proved lower bound of the cost."""

    verdict: Verdict
    solver: str
    hosts: Ints | None = None
    """[M] host row per member when feasible."""
    value: int = 0
    bound: int = 0
    wall_ms: float = 0.0
    ended: SolveEnd = SolveEnd.TIME_LIMIT
    scatter: int | None = None
    """The number of the process that searched beside others; the same answer takes the same one."""

    @property
    def proven(self) -> bool:
        """Whether the answer is proved: infeasible, or of the least cost."""
        return self.verdict is Verdict.INFEASIBLE or (
            self.verdict is Verdict.FEASIBLE and self.value == self.bound
        )


class SupportsSolve(Protocol):
    """The protocol of a solver that explanations use; every `usecases.ports.Solver` is one."""

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The best placement found within the limit, or a verdict that there is none."""
