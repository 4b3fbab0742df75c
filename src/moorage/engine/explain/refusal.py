"""Computes why a problem has no solution: stage, minimal conflicts, relaxations that work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.ensembles import MemberKind
from moorage.domain.explain import Conflict, Stage
from moorage.domain.words import first_of
from moorage.engine.explain.conflict_classes import binding_classes
from moorage.engine.explain.conflict_facts import conflict_facts
from moorage.engine.explain.conflicts import Core, DeletionFilter, Oracle, counts_refute
from moorage.engine.explain.element_facts import demand_text, policy_rejections
from moorage.engine.explain.elements import POLICY, elements, on_empty_hosts, without_elements
from moorage.engine.explain.relaxation_candidates import ANY_CHANGE
from moorage.engine.explain.relaxations import FoundRelaxations, find_relaxations
from moorage.engine.joint.host_filters import unnamed_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.explain import Relaxation
    from moorage.engine.explain.relaxation_candidates import ChangeTerms
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
_UNNAMED: Final = "servers of other projects are to be named, by servers_of or on_server"
NO_SMALL_CHANGE: Final = "no single small change makes it fit"
TIME_RAN_OUT: Final = "time ran out before a change was found that makes it fit"
NONE_FOUND: Final = "no single small change was found that makes it fit"


LATE: Final = "time ran out: there may be further conflicts, and further changes that help"
"""Note of an explanation whose search was cut short by the deadline."""
COUNTING: Final = 5.0
"""Least number of seconds to count, on the empty fleet, what the search has counted in time."""
_TELLING: Final = 1.0
"""Least number of seconds to say what the conflicts that were found run into."""
_NAMED: Final = 5
"""Fields that are named at most where not all of their values were tried."""


@dataclass(frozen=True)
class RefusalExplanation:
    """The contents of a `domain.explain.Explanation`, without id, time and revision."""

    verdict: str
    stage: Stage
    conflicts: tuple[Conflict, ...]
    found: FoundRelaxations
    considered: int
    rejected: Mapping[str, int]
    note: str = ""
    complete: bool = True

    @property
    def relaxations(self) -> tuple[Relaxation, ...]:
        """The relaxations found."""
        return self.found.relaxations


def explain(  # noqa: PLR0913 - a problem, what is known of it, and for whom it is explained
    built: BuiltProblem,
    solver: SupportsSolve,
    *,
    remaining: Callable[[], float],
    seed: int = 0,
    terms: ChangeTerms = ANY_CHANGE,
    proved: bool = False,
    stage: Stage | None = None,
    skip_stage: Stage | None = None,
) -> RefusalExplanation:
    """Explain why a request has no placement.

    What is undecided when `remaining` returns no more seconds is left out or marked as not minimal,
    and the explanation is not complete. A request that failed at `skip_stage` is not explained
    further. `proved` says that a search has shown that there is no placement, `stage` at which
    stage, if that is known. What was found before the deadline of the current work is returned
    when that passes.
    """
    ends = deadline.left(remaining())
    oracle = Oracle(solver, remaining, seed)
    # Some conflicts with relaxations are better than all conflicts without.
    deletion = DeletionFilter(
        built, replace(oracle, remaining=lambda: oracle.seconds_left() - ends / _RESERVED_SHARE)
    )
    if proved:
        deletion.assume_infeasible()
    verdict = {True: FEASIBLE, False: INFEASIBLE, None: UNDECIDED}[deletion.feasible(frozenset())]
    counted = deletion.counted_conflict() if verdict == INFEASIBLE else None
    stage = stage or _stage(built, deletion, oracle)
    cores = () if stage is skip_stage else tuple(deletion.conflicts())
    shrunk = oracle.complete and deletion.oracle.complete
    # Counting judges parts alone: with time, conflicts are shrunk in the meaning of the whole.
    if counted is not None and (not cores or (not shrunk and counted.narrows(cores[0]))):
        cores = (counted, *cores[1:])
    left = deletion.is_resolved(frozenset(one for core in cores for one in core.elements))
    found = FoundRelaxations()
    if cores and stage is not skip_stage:
        with deadline.alternatives():
            found = find_relaxations(built, cores, oracle, terms)
    conflicts = _conflicts(built, cores, oracle)
    complete = oracle.complete and deletion.oracle.complete and found.complete
    return RefusalExplanation(
        verdict=verdict,
        stage=stage,
        conflicts=conflicts,
        found=found,
        considered=built.considered,
        rejected={**built.rejected, **policy_rejections(built)},
        note=_note(built, verdict, cores, found, left=left) or ("" if complete else LATE),
        complete=complete,
    )


def counted_static(built: BuiltProblem) -> bool:
    """Whether counting alone shows that a request does not fit even the empty fleet.

    That takes no search, so it waits for no time.
    """
    with deadline.at_least(COUNTING):
        return counts_refute(_when_empty(built).problem)


def _when_empty(built: BuiltProblem) -> BuiltProblem:
    """The request on the empty fleet.

    With fixed members, policies are left out of it: these members would still be where they are.
    """
    request = built.request
    alone = replace(request, policies=()) if request.fixed else request
    return on_empty_hosts(alone, built)


def _stage(built: BuiltProblem, deletion: DeletionFilter, oracle: Oracle) -> Stage:
    """The stage at which the request failed, as far as it is shown.

    `static` if it does not fit even on the empty fleet.
    """
    empty = oracle.feasible_if_time(lambda: _when_empty(built).problem)
    if empty is False:
        return Stage.STATIC
    policies = frozenset(one for one in elements(built) if one.kind == POLICY)
    unbound = deletion.feasible(policies)
    if empty is None or unbound is None:
        return Stage.UNKNOWN
    return Stage.POLICY if unbound else Stage.CAPACITY


def _conflicts(
    built: BuiltProblem, cores: tuple[Core, ...], oracle: Oracle
) -> tuple[Conflict, ...]:
    """The conflicts with what they need and run into; once time is over, with their names only."""
    with deadline.at_least(_TELLING):
        return tuple(_conflict(built, core, oracle) for core in cores)


def _conflict(built: BuiltProblem, core: Core, oracle: Oracle) -> Conflict:
    try:
        return _described_conflict(built, core, oracle)
    except TimeExpired:
        oracle.complete = False
        return _named_conflict(core)


def whole_conflict(built: BuiltProblem) -> Conflict:
    """The conflict of all parts of a request, which is all that is known without any time."""
    return _named_conflict(Core(elements(built), minimal=False))


def _named_conflict(core: Core) -> Conflict:
    needs = tuple(one.said for one in core.elements)
    return Conflict(elements=core.elements, needs=needs, minimal=core.minimal)


def _described_conflict(built: BuiltProblem, core: Core, oracle: Oracle) -> Conflict:
    classes = binding_classes(built, core, oracle)
    exact = replace(built, policy_view=replace(built.policy_view, exact_names=True))
    needs, exact_needs = (
        tuple(demand_text(one_view, one, classes) for one in core.elements)
        for one_view in (built, exact)
    )
    return Conflict(
        elements=core.elements,
        needs=needs,
        facts=conflict_facts(built, core.elements, classes),
        minimal=core.minimal,
        exact_needs=() if exact_needs == needs else exact_needs,
    )


def _note(
    built: BuiltProblem,
    verdict: str,
    cores: tuple[Core, ...],
    found: FoundRelaxations,
    *,
    left: bool | None,
) -> str:
    if verdict != INFEASIBLE:
        return ""
    notes = []
    if left is False:
        who, what = _shut_out(built)
        notes.append(f"no {what} is open to {who}, whatever is set aside")
    elif not found.relaxations:
        several = "the conflicts are independent: " if len(cores) > 1 else ""
        notes.append(f"{several}{_without_change(found, every=left is True)}")
    slices = (one for one in built.request.every_choice if one.is_slice)
    if any(unnamed_servers(one, built.terrain) for one in slices):
        notes.append(_UNNAMED)
    return "; ".join(notes)


def _without_change(found: FoundRelaxations, *, every: bool) -> str:
    """The note of an explanation without a change that helps; `every`: all conflicts are known."""
    if found.complete and every:
        return NO_SMALL_CHANGE
    named = ", ".join(first_of(found.untried, _NAMED))
    tried = f"; not every value was tried of {named}" if named else ""
    return f"{NONE_FOUND if found.timely and every else TIME_RAN_OUT}{tried}"


def _shut_out(built: BuiltProblem) -> tuple[str, str]:
    """The first role that has no place whatever is set aside, and what it needs one of."""
    bare = without_elements(built, frozenset(elements(built))).problem
    open_to = {name: bool(bare.allowed[number].any()) for number, name in enumerate(bare.roles)}
    for role in built.request.roles:
        if not (role.alternatives or open_to.get(role.name, True)):
            return f"role {role.name}", _GIVERS.get(role.kind, "host")
    return "this request", "host"
