"""Computes why a problem has no solution: stage, minimal conflicts, relaxations that work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.disclosure import EXACT
from moorage.domain.ensembles import MemberKind
from moorage.domain.explain import Conflict, Stage
from moorage.engine.explain.conflict_classes import binding_classes
from moorage.engine.explain.conflicts import DeletionFilter, Oracle
from moorage.engine.explain.element_facts import demand_text, fleet_facts, policy_rejections
from moorage.engine.explain.elements import POLICY, elements, on_empty_hosts, without_elements
from moorage.engine.explain.relaxations import find_relaxations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.disclosure import Disclosure
    from moorage.domain.explain import Relaxation
    from moorage.engine.explain.conflicts import Core
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import SupportsSolve

INFEASIBLE = "infeasible"
UNDECIDED = "undecided"
FEASIBLE = "feasible"
_RESERVED_SHARE: Final = 3
"""One part in this many of the time is reserved for relaxations."""
_GIVERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        MemberKind.SLICE: "server that offers slices",
        MemberKind.VOLUME: "pool that gives such volumes (a compute node gives none)",
        MemberKind.PORT: "provider that gives such ports",
    }
)
"""Kind of members -> what they are placed on, if that is no host."""
NO_SMALL_CHANGE: Final = "no single small change makes it fit"


@dataclass(frozen=True)
class RefusalExplanation:
    """The contents of a `domain.explain.Explanation`, without id, time and revision."""

    verdict: str
    stage: Stage
    conflicts: tuple[Conflict, ...]
    relaxations: tuple[Relaxation, ...]
    considered: int
    rejected: Mapping[str, int]
    note: str = ""


def explain(
    built: BuiltProblem,
    solver: SupportsSolve,
    *,
    remaining: Callable[[], float],
    seed: int = 0,
    disclosure: Disclosure = EXACT,
    skip_stage: Stage | None = None,
) -> RefusalExplanation:
    """Explain why a request has no placement.

    What is undecided when `remaining` returns no more seconds is left out or marked as not minimal.
    A request that failed at `skip_stage` is not explained further. `disclosure` is how exactly the
    relaxations may be disclosed.
    """
    ends = deadline.left(remaining())
    oracle = Oracle(solver, remaining, seed)
    # Some conflicts with relaxations are better than all conflicts without.
    deletion = DeletionFilter(
        built, replace(oracle, remaining=lambda: oracle.seconds_left() - ends / _RESERVED_SHARE)
    )
    verdict = {True: FEASIBLE, False: INFEASIBLE, None: UNDECIDED}[deletion.feasible(frozenset())]
    stage = _stage(built, deletion, oracle)
    cores = () if stage is skip_stage else tuple(deletion.conflicts())
    left = deletion.feasible(frozenset(one for core in cores for one in core.elements))
    found = find_relaxations(built, cores, oracle, disclosure) if cores else ()
    return RefusalExplanation(
        verdict=verdict,
        stage=stage,
        conflicts=tuple(_conflict(built, core, oracle) for core in cores),
        relaxations=found,
        considered=built.considered,
        rejected={**built.rejected, **policy_rejections(built)},
        note=_note(built, verdict, cores, found, left=left),
    )


def _stage(built: BuiltProblem, deletion: DeletionFilter, oracle: Oracle) -> Stage:
    """The stage at which the request failed.

    `static` if it does not fit even on the empty fleet. With fixed members, policies are left out
    of that question: on an empty fleet these members would still be where they are.
    """
    request = built.request
    alone = replace(request, policies=()) if request.fixed else request
    if oracle.feasible_if_time(lambda: on_empty_hosts(alone, built).problem) is False:
        return Stage.STATIC
    policies = frozenset(one for one in elements(built) if one.kind == POLICY)
    return Stage.CAPACITY if deletion.feasible(policies) is False else Stage.POLICY


def _conflict(built: BuiltProblem, core: Core, oracle: Oracle) -> Conflict:
    classes = binding_classes(built, core, oracle)
    return Conflict(
        elements=core.elements,
        needs=tuple(demand_text(built, one, classes) for one in core.elements),
        facts=fleet_facts(built, core.elements, classes),
        minimal=core.minimal,
    )


def _note(
    built: BuiltProblem,
    verdict: str,
    cores: tuple[Core, ...],
    found: tuple[Relaxation, ...],
    *,
    left: bool | None,
) -> str:
    if verdict != INFEASIBLE:
        return ""
    if left is False:
        who, what = _shut_out(built)
        return f"no {what} is open to {who}, whatever is set aside"
    if left is None:
        return "time ran out: there may be further conflicts"
    if not found:
        several = "the conflicts are independent: " if len(cores) > 1 else ""
        return f"{several}{NO_SMALL_CHANGE}"
    return ""


def _shut_out(built: BuiltProblem) -> tuple[str, str]:
    """The first role that has no place whatever is set aside, and what it needs one of."""
    bare = without_elements(built, frozenset(elements(built))).problem
    open_to = {name: bool(bare.allowed[number].any()) for number, name in enumerate(bare.roles)}
    for role in built.request.roles:
        if not (role.alternatives or open_to.get(role.name, True)):
            return f"role {role.name}", _GIVERS.get(role.kind, "host")
    return "this request", "host"
