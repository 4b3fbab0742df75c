"""Finds relaxations: changes to a request with which it fits, each verified by a solve.

Candidates (`explain.relaxation_candidates`) are tried from the cheapest on; a required policy is
made preferred only if nothing smaller helps. Every relaxation returned has been placed by a solver
and accepted by `verify`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from moorage.domain.deadline import TimeExpired
from moorage.domain.errors import InvalidDescription
from moorage.domain.explain import EnsembleChange, Relaxation
from moorage.engine.explain.relaxation_candidates import ANY_CHANGE, SOFT_COST, ChangeProposals
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.explain.conflicts import Core, Oracle
    from moorage.engine.explain.relaxation_candidates import ChangeTerms, RelaxationCandidate
    from moorage.engine.joint.build import BuiltProblem

MAX_RELAXATIONS = 5
"""Relaxations returned at most."""
MAX_SOLVES = 60


@dataclass(frozen=True, slots=True)
class FoundRelaxations:
    """The relaxations that a search has found, and what it has left out."""

    relaxations: tuple[Relaxation, ...] = ()
    requests: tuple[EnsembleRequest, ...] = ()
    """The changed request of each."""
    untried: tuple[str, ...] = ()
    """Fields of which some value was not decided: `db count`."""
    timely: bool = True
    """Whether no change was left out for want of time."""
    useless: frozenset[str] = frozenset()
    """The changes, as text, of which it is proved that the request does not fit with them."""

    @property
    def complete(self) -> bool:
        """Whether something was found, or every candidate was tried; each in time."""
        return self.timely and bool(self.relaxations or not self.untried)


def find_relaxations(
    built: BuiltProblem,
    cores: Sequence[Core],
    oracle: Oracle,
    terms: ChangeTerms = ANY_CHANGE,
    useless: frozenset[str] = frozenset(),
) -> FoundRelaxations:
    """The cheapest changes that make the request fit, at most `MAX_RELAXATIONS`.

    Of several values of one field only the nearest is returned, of those that may be disclosed.
    `useless` are changes known not to help, as text; see `FoundRelaxations`.
    """
    proposals = ChangeProposals(built, cores, terms)
    search = _Search(
        lambda request: fits(built, request, oracle), oracle.seconds_left, useless=set(useless)
    )
    return search.first_of(
        proposals.small_changes, proposals.skipped_counts, proposals.preferred_policies
    )


def relaxations_with_room(
    built: BuiltProblem,
    cores: Sequence[Core],
    known: Sequence[Relaxation],
    granted: Callable[[EnsembleRequest], bool | None],
    remaining: Callable[[], float],
    terms: ChangeTerms = ANY_CHANGE,
) -> FoundRelaxations:
    """Relaxations that are granted with room made by strategies (preemption, relocation).

    `known` are the relaxations that help without making room; they are returned once `remaining`
    returns no more seconds. `granted` returns None if it is undecided.
    """
    proposals = ChangeProposals(built, cores, terms)
    least = {_direction(one.change): one for one in known if one.cost < SOFT_COST}

    def cheaper() -> Iterator[RelaxationCandidate]:
        for one in proposals.small_changes():
            key = _direction(one.change)
            if key not in least or one.cost < least[key].cost:
                yield one

    search = _Search(granted, remaining)
    stages = (cheaper,) if known else (cheaper, proposals.preferred_policies)
    found = search.first_of(*stages)
    if not known:
        return found
    if not (found.relaxations or least):
        return replace(found, relaxations=tuple(known))
    least |= {_direction(one.change): one for one in found.relaxations}
    cheapest = sorted(least.values(), key=lambda one: one.cost)[:MAX_RELAXATIONS]
    return replace(found, relaxations=tuple(cheapest))


@dataclass(eq=False)
class _Search:
    """Tries candidates one after the other, within a number of solves and a time limit."""

    fits: Callable[[EnsembleRequest], bool | None]
    remaining: Callable[[], float]
    solves: int = 0
    timely: bool = True
    untried: dict[str, None] = field(default_factory=dict)
    useless: set[str] = field(default_factory=set)

    def first_of(self, *stages: Callable[[], Iterable[RelaxationCandidate]]) -> FoundRelaxations:
        """What the first stage has found that has found anything."""
        found: list[RelaxationCandidate] = []
        for candidates in stages:
            self.solves = 0
            found = found or self._fitting(candidates())
        return FoundRelaxations(
            tuple(Relaxation(change=one.change, cost=one.cost) for one in found),
            tuple(one.request for one in found),
            tuple(self.untried),
            self.timely,
            frozenset(self.useless),
        )

    def _fitting(self, candidates: Iterable[RelaxationCandidate]) -> list[RelaxationCandidate]:
        found: dict[_Direction, RelaxationCandidate] = {}
        try:
            for one in candidates:
                key = _direction(one.change)
                if key in found:
                    continue
                if len(found) == MAX_RELAXATIONS:
                    break
                if self._fits(one):
                    found[key] = one
                    found[key] = self._cheapest_between(one)
        except TimeExpired:
            self.timely = False
        return sorted(found.values(), key=lambda one: one.cost)

    def _fits(self, one: RelaxationCandidate) -> bool:
        """Whether a candidate fits; what is not decided is noted as not tried."""
        answer: bool | None = None
        if str(one.change) in self.useless:
            return False
        if self.remaining() <= 0:
            self.timely = False
        elif self.solves < MAX_SOLVES:
            self.solves += 1
            answer = self._answer(one)
        if answer is None:
            self.untried[f"{one.change.name} {one.change.field}"] = None
        return answer is True

    def _answer(self, one: RelaxationCandidate) -> bool | None:
        """Whether a candidate fits; None, and no longer timely, if that is not decided in time."""
        if str(one.change) in self.useless:
            return False
        answer = self.fits(one.request)
        self.timely = self.timely and answer is not None
        if answer is False:
            self.useless.add(str(one.change))
        return answer

    def _cheapest_between(self, hit: RelaxationCandidate) -> RelaxationCandidate:
        """The cheapest candidate that fits between a failed step and one that fits, by bisection.

        It is assumed that more of a change helps no less.
        """
        if hit.with_cost is None or hit.failed_cost is None:
            return hit
        best, short = hit, hit.failed_cost
        while best.cost - short > 1:
            middle = hit.with_cost((best.cost + short) // 2)
            if self.remaining() <= 0:
                self.timely = False
                break
            if self._answer(middle):
                best = middle
            else:
                short = middle.cost
        return best


_Direction: TypeAlias = tuple[str, str, int | None, str, bool]


def _direction(change: EnsembleChange) -> _Direction:
    """The field and direction of a change; of changes with equal keys the nearest is enough."""
    before, after = change.before, change.after
    up = isinstance(before, int) and isinstance(after, int) and after > before
    return change.subject, change.name, change.alternative, change.field, up


def fits(built: BuiltProblem, request: EnsembleRequest, oracle: Oracle) -> bool | None:
    """Whether the changed request has a placement, which is verified; None: not decided in time."""
    if oracle.seconds_left() <= 0:
        return None
    try:
        changed = build_on_terrain(request, built.terrain, closed=built.closed)
        outcome = oracle.answer(changed.problem)
    except InvalidDescription:
        return False  # a policy proposed a value that is invalid in this topology
    except TimeExpired:
        return None
    if outcome is not None and outcome.hosts is not None:
        verify(changed, outcome.hosts)
    return None if outcome is None else outcome.verdict is Verdict.FEASIBLE
