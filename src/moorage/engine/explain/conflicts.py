"""Minimal conflicts: which parts of a request cannot hold together on this fleet.

A deletion filter drops every element of a request (`explain.elements`) that the proof of
infeasibility does not need. Counting decides most questions, the solver the rest; an undecided
question makes a conflict `minimal=False`.

Fewer elements can make a request harder where the remaining ones mean something else without them:
the skew of `spread` counts the domains that the sizes and filters of its roles, and the other
policies' fences and bans, leave it. So an answer about one part is used for another only where all
policies in both post the same primitives.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from moorage.domain import deadline
from moorage.domain.deadline import TimeExpired
from moorage.domain.errors import Busy
from moorage.domain.explain import Element
from moorage.domain.period import SECOND
from moorage.engine.explain.elements import (
    CLOSED,
    POLICY,
    Elements,
    elements,
    part_of,
    view_without,
)
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.proved_solve import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.policy_view import TerrainView
    from moorage.engine.joint.problem import Problem, SupportsSolve
    from moorage.policies.rules import PolicyRule

_MOST_PARTS: Final = 64
"""Proper parts of a conflict that are tried at most to show that it is minimal."""


class _Question(NamedTuple):
    """Whether a part of a request has a placement."""

    aside: Elements
    """The elements that are left out."""
    unmeant: Elements = frozenset()
    """Those of them without which policies are to be read."""


@dataclass(eq=False)
class Oracle:
    """Decides whether a problem has any placement, within a time budget."""

    solver: SupportsSolve
    remaining: Callable[[], float]
    """Seconds left for the whole explanation."""
    seed: int = 0
    max_seconds: float = 2.0
    """Seconds for a single question at most."""
    complete: bool = True
    """Whether every question so far was decided."""

    def seconds_left(self) -> float:
        """Seconds left for the whole explanation and of the current work's deadline."""
        return deadline.left(self.remaining())

    def feasible_if_time(self, make: Callable[[], Problem]) -> bool | None:
        """As `feasible`, for a problem that is built only if there is time left."""
        try:
            if self.seconds_left() > 0:
                return self.feasible(make())
        except TimeExpired:
            pass
        self.complete = False
        return None

    def refuted_if_time(self, make: Callable[[], Problem]) -> bool:
        """Whether counting alone proves that a problem has no placement."""
        if self.seconds_left() <= 0:
            return False
        try:
            return counts_refute(make())
        except TimeExpired:
            return False

    def feasible(self, problem: Problem) -> bool | None:
        """True with a placement, False with a proof, None if neither was found in time."""
        outcome = self.answer(problem)
        return None if outcome is None else outcome.verdict is Verdict.FEASIBLE

    def answer(self, problem: Problem) -> Outcome | None:
        """Some placement, or the verdict that there is none; None if neither was found in time."""
        bare = any_placement(problem)
        if refuted(bare):
            return Outcome(Verdict.INFEASIBLE, "counting")
        limit = int(min(self.seconds_left(), self.max_seconds) * SECOND)
        try:
            if limit > 0:
                outcome = solve(self.solver, bare, time_limit=limit, seed=self.seed)
                if outcome.verdict is not Verdict.UNKNOWN:
                    return outcome
        except Busy:
            pass
        self.complete = False
        return None


def any_placement(problem: Problem) -> Problem:
    """The problem without preferences and objective, to decide feasibility only."""
    required = tuple(one for one in problem.primitives if one.weight is None)
    return replace(problem, primitives=required, objective=None)


def counts_refute(problem: Problem) -> bool:
    """Whether counting alone proves that a problem has no placement."""
    return refuted(any_placement(problem))


@dataclass(frozen=True, slots=True)
class Core:
    """Elements that cannot hold together; `minimal` when every proper subset provably can."""

    elements: tuple[Element, ...]
    minimal: bool

    def narrows(self, other: Core) -> bool:
        """Whether the other conflict has all of this one's elements, and more."""
        return frozenset(self.elements) < frozenset(other.elements)


@dataclass(eq=False)
class DeletionFilter:
    """Finds disjoint minimal conflicts of one request by deletion; caches the oracle's answers."""

    built: BuiltProblem
    oracle: Oracle
    _known: dict[_Question, bool | None] = field(default_factory=dict)
    _views: dict[Elements, TerrainView] = field(default_factory=dict)

    def feasible(self, aside: Elements) -> bool | None:
        """Whether a request that asks for no more than is left without these has a placement."""
        return self._feasible(_Question(aside, aside & self._decisive))

    def is_resolved(self, aside: Elements) -> bool | None:
        """Whether the request has a placement once these are left out; None: undecided.

        What policies mean stays what it is in the whole request.
        """
        return self._feasible(_Question(aside))

    def _feasible(self, one: _Question) -> bool | None:
        if one not in self._known:
            verdict = self._implied(one)
            if verdict is None and not self._was_undecided(one):
                verdict = self.oracle.feasible_if_time(self._problem(one))
            self._known[one] = verdict
        return self._known[one]

    def _refuted(self, one: _Question) -> bool:
        """Whether counting, or another answer, proves that it has no placement."""
        if one not in self._known:
            verdict = self._implied(one)
            if verdict is None and self.oracle.refuted_if_time(self._problem(one)):
                verdict = False
            if verdict is not None:
                self._known[one] = verdict
        return self._known.get(one) is False

    def _problem(self, one: _Question) -> Callable[[], Problem]:
        return lambda: part_of(self.built, one.aside, self._view(one.unmeant)).problem

    def _view(self, unmeant: Elements) -> TerrainView:
        if not unmeant:
            return self.built.policy_view
        if unmeant not in self._views:
            self._views[unmeant] = view_without(self.built, unmeant)
        return self._views[unmeant]

    def _implied(self, one: _Question) -> bool | None:
        """What other answers imply: fewer elements that mean the same make no request harder."""
        try:
            for other, verdict in self._known.items():
                smaller, larger = (one, other) if verdict else (other, one)
                if (
                    verdict is not None
                    and larger.aside <= smaller.aside
                    and self._mean_the_same(smaller, larger)
                ):
                    return verdict
        except TimeExpired:
            self.oracle.complete = False
        return None

    def _was_undecided(self, one: _Question) -> bool:
        """Whether the same problem was searched for in vain, asked with another meaning in mind.

        That took all the time that one question may take, and would again.
        """
        try:
            return any(
                verdict is None and other.aside == one.aside and self._mean_the_same(one, other)
                for other, verdict in self._known.items()
            )
        except TimeExpired:
            self.oracle.complete = False
            return True

    def _mean_the_same(self, smaller: _Question, larger: _Question) -> bool:
        """Whether the policies of the smaller request mean the same in the larger one."""
        if smaller.unmeant == larger.unmeant:
            return True
        one, other = self._view(smaller.unmeant), self._view(larger.unmeant)
        return all(
            one.posted(rule) == other.posted(rule)
            for rule in self._dependent
            if Element(POLICY, rule.statement.name) not in smaller.aside
        )

    @cached_property
    def _dependent(self) -> tuple[PolicyRule, ...]:
        """The policies whose meaning depends on other elements."""
        return tuple(
            rule
            for rule in self.built.rules
            if rule.statement.required and rule.edges and self.built.policy_view.depends(rule)
        )

    @cached_property
    def _decisive(self) -> Elements:
        """The elements on which the meaning of policies depends."""
        if not self._dependent:
            return frozenset()
        roles = {one.role for rule in self._dependent for edge in rule.edges for one in edge}
        fences = {rule.statement.name for rule in self.built.policy_view.fences}
        return frozenset(
            one
            for one in elements(self.built)
            if one.kind != CLOSED and one.name in (fences if one.kind == POLICY else roles)
        )

    def assume_infeasible(self) -> None:
        """Take for granted that the whole request has no placement, which a search has proved."""
        self._known[_Question(frozenset())] = False

    def counted_conflict(self) -> Core | None:
        """The conflict that counting alone shows, which takes no search; None: it shows none.

        What there is no time to leave out stays part of it.
        """
        every = elements(self.built)
        whole = frozenset(every)
        if not self.oracle.refuted_if_time(self._problem(_Question(frozenset()))):
            return None
        core = _dropped(
            list(every), lambda rest: self._refuted(_Question(whole - rest)), len(every) // 2
        )
        alone = whole - frozenset(core)
        if core and not self._refuted(_Question(alone, alone & self._decisive)):
            core = list(every)  # alone its policies may mean something else
        return Core(tuple(core), minimal=False) if core else None

    def conflicts(self) -> Iterator[Core]:
        """Disjoint conflicts, until the rest is feasible or undecided.

        Each conflict is removed as a whole before the next search, in which policies still mean
        what they mean in the request. So each is a conflict of the request, and as they are
        disjoint, all of them must be resolved to make it feasible.
        """
        every = elements(self.built)
        aside: Elements = frozenset()
        while self.is_resolved(aside) is False:
            core = self._conflict([one for one in every if one not in aside], every)
            if not core.elements:
                return
            yield core
            aside |= frozenset(core.elements)

    def _conflict(self, active: list[Element], every: tuple[Element, ...]) -> Core:
        """A conflict among the active elements, minimal if possible.

        While it shrinks, policies mean what they mean in the request: else a conflict would result
        which only a part of the request has, and the whole could fit with all of it. If policies of
        the conflict ask for more by themselves than in the request, so that a part of the conflict
        is not satisfiable, that part is the conflict if it is refused whatever of the request is
        asked besides; else the elements that narrow them there are told with it.
        """
        whole = frozenset(every)
        core = self._shrunk(active, lambda rest: _Question(whole - rest))
        aside = whole - frozenset(core)
        if self.feasible(aside) is False and self.proves_minimal(core):
            return Core(tuple(core), minimal=True)
        if part := self._refused_part(core, frozenset(active)):
            return Core(part, minimal=True)
        needed = self._narrowing(_Question(aside), frozenset(active))
        return Core(
            tuple(one for one in active if one in needed or one not in aside), minimal=False
        )

    def _refused_part(self, core: Sequence[Element], active: Elements) -> tuple[Element, ...]:
        """A proper part of a conflict that is a minimal conflict by itself; empty: none is shown.

        Each part is read as a request of its own, and refused with whatever active elements change
        the meaning of its policies.
        """
        whole = frozenset(elements(self.built))
        sizes = range(1, len(core)) if self._dependent else range(0)
        parts = chain.from_iterable(combinations(core, n) for n in sizes)
        for part in islice(parts, _MOST_PARTS):
            others = sorted((active & self._decisive) - frozenset(part), key=str)
            if 2 ** len(others) > _MOST_PARTS:
                continue
            besides = chain.from_iterable(combinations(others, n) for n in range(len(others) + 1))
            asked = (frozenset(part) | frozenset(some) for some in besides)
            if all(self.feasible(whole - some) is False for some in asked) and (
                self.proves_minimal(part)
            ):
                return part
        return ()

    def _narrowing(self, conflict: _Question, active: Elements) -> Elements:
        """The active elements, not of a conflict, without which its policies mean something else.

        They are found by deletion.
        """
        needed = active & conflict.aside & self._decisive
        for one in sorted(needed, key=str):
            fewer = conflict.aside & self._decisive - (needed - {one})
            try:
                if self._mean_the_same(conflict._replace(unmeant=fewer), conflict):
                    needed -= {one}
            except TimeExpired:
                self.oracle.complete = False
                break
        return needed

    def _shrunk(
        self, active: list[Element], question: Callable[[Elements], _Question]
    ) -> list[Element]:
        """Drop ever smaller runs of elements while the rest is infeasible.

        If counting shows the conflict, elements are first dropped as long as it does: that takes a
        fraction of a search that finds a placement. Mostly each element that is left then is
        needed, so they are tried one by one.
        """
        size = len(active) // 2
        if self.oracle.refuted_if_time(self._problem(question(frozenset(active)))):
            active = _dropped(active, lambda rest: self._refuted(question(rest)), size)
            size = 1
        return _dropped(active, lambda rest: self._feasible(question(rest)) is False, size)

    def proves_minimal(self, core: Sequence[Element]) -> bool:
        """Whether every proper part of a conflict is shown to be satisfiable.

        Closed hosts stay closed unless the conflict names them.
        """
        whole = frozenset(elements(self.built))
        closed = {one for one in whole if one.kind == CLOSED} - frozenset(core)
        parts = list(self._proper_parts(core))
        return len(parts) <= _MOST_PARTS and all(
            self.feasible(whole - closed - part) is True for part in parts
        )

    def _proper_parts(self, core: Sequence[Element]) -> Iterator[Elements]:
        """Parts of a conflict which show, if they are satisfiable, that every proper part is.

        These are the parts that lack one element, and those that lack several of the elements on
        which the meaning of the others depends. No more than `_MOST_PARTS` of the latter are given.
        """
        every = frozenset(core)
        yield from (every - {one} for one in core)
        if any(Element(POLICY, rule.statement.name) in every for rule in self._dependent):
            decisive = [one for one in core if one in self._decisive]
            several = (combinations(decisive, n) for n in range(2, len(decisive) + 1))
            fewer = (every - frozenset(some) for some in chain.from_iterable(several))
            yield from islice(fewer, _MOST_PARTS)


def _dropped(
    active: list[Element], infeasible: Callable[[Elements], bool], size: int
) -> list[Element]:
    """What is left of a conflict after dropping ever smaller runs of it, the first of this size."""
    while True:
        size = max(size, 1)
        for run in _runs(active, size):
            rest = [one for one in active if one not in run]
            if infeasible(frozenset(rest)):
                active = rest
        if size == 1:
            return active
        size //= 2


def _runs(items: list[Element], size: int) -> list[list[Element]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
