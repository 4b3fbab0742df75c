"""Exact answers by CP-SAT: proofs, and improvements of the greedy answer.

The only home of OR-Tools, with the other `cpsat` modules. Deterministic for a seed: one worker, a
fixed seed and a limit in CP-SAT's own deterministic time; the wall clock only ends what is late.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain import search_progress
from moorage.domain.period import SECOND
from moorage.engine.joint.cost import cost
from moorage.engine.joint.equivalence_classes import equivalence_classes, sufficient_hosts
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.problem_index import index_problem
from moorage.solver.bounds import lower_bound
from moorage.solver.cpsat_alone import cp_model
from moorage.solver.cpsat_cuts import add_cuts
from moorage.solver.cpsat_model import model
from moorage.solver.cpsat_progress import ProgressCallback, cost_bound
from moorage.solver.greedy import Greedy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Problem
    from moorage.engine.joint.problem_index import ProblemIndex
    from moorage.solver.cpsat_model import Model

    Ints: TypeAlias = NDArray[np.int64]

CELLS = 40_000
"""Variables of a model that improves a known answer: more hosts than fit are left out."""
MOST_CELLS = 400_000
"""Variables of a model that looks for a first answer or a proof."""
CELLS_PER_SECOND = 40_000
"""Most variables per second of the time limit: a model is then stated in about two thirds of it."""
TERMS_PER_SECOND = 400_000
"""Most terms of constraints per second of the time limit. To state those of every two of a hundred
sides takes a minute and gigabytes, whatever the limit; nothing is searched for then."""
DETERMINISTIC = 0.5
"""CP-SAT's deterministic seconds per second of the limit: reached before the wall clock."""


@dataclass(frozen=True)
class CpSat:
    """Starts from a greedy answer, and keeps it if nothing better is found in time."""

    greedy: Greedy = field(default_factory=Greedy)
    name: str = "cpsat"

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """The best placement found, with its bound; `infeasible` only when proved."""
        started = time.monotonic()
        known = self.greedy.solve(problem, time_limit=time_limit, seed=seed)
        if known.proven:
            return known
        numbers = index_problem(problem)
        of_class = equivalence_classes(problem)
        first = _loads(problem, known)
        suffices = sufficient_hosts(problem, of_class, first)
        cells = min(
            MOST_CELLS if known.hosts is None else CELLS, CELLS_PER_SECOND * time_limit // SECOND
        )
        rows = _shortlist(
            numbers, suffices, first, max(cells // max(len(numbers.interchangeable), 1), 1)
        )
        if _terms(numbers, len(rows)) > TERMS_PER_SECOND * time_limit // SECOND:
            return replace(known, wall_ms=(time.monotonic() - started) * 1000)
        stated = model(numbers, rows, of_class)
        add_cuts(stated)
        if known.hosts is not None:
            stated.hint(known.hosts)
        left = time_limit / SECOND - (time.monotonic() - started)
        found = known
        if left > 0:
            found = self._run(stated, left, seed, known, complete=len(rows) == len(suffices))
        return replace(found, wall_ms=(time.monotonic() - started) * 1000)

    def _run(
        self, stated: Model, seconds: float, seed: int, known: Outcome, *, complete: bool
    ) -> Outcome:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed % 2**31
        solver.parameters.max_deterministic_time = seconds * DETERMINISTIC
        solver.parameters.max_time_in_seconds = seconds
        # Otherwise presolve exploits symmetries whatever the limit: for seconds, if hosts are many.
        solver.parameters.keep_symmetry_in_presolve = True
        bound = known.bound if known.hosts is not None else lower_bound(stated.numbers)
        progress = None
        if (hears := search_progress.listener()) is not None:
            value = None if known.hosts is None else known.value
            progress = ProgressCallback(stated, hears, self.name, value, bound)
            solver.best_bound_callback = progress.bound_proved if complete else None
        status = solver.solve(stated.cp, progress)
        if status == cp_model.INFEASIBLE and complete:
            return Outcome(Verdict.INFEASIBLE, self.name)
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return known
        problem = stated.numbers.problem
        rows = stated.read(solver)
        value = int(cost(problem, rows[None, :])[0])
        if complete:
            bound = max(bound, cost_bound(stated, solver.best_objective_bound))
        if known.hosts is not None and known.value <= value:
            return Outcome(
                Verdict.FEASIBLE, known.solver, known.hosts, known.value, min(bound, known.value)
            )
        return Outcome(Verdict.FEASIBLE, self.name, rows, value, min(bound, value))


def _terms(numbers: ProblemIndex, rows: int) -> int:
    """About how many terms the constraints have that count members by domains, on so many hosts."""
    kind_of = {m: kind for kind, some in enumerate(numbers.interchangeable) for m in some}
    found = 0
    for constraint in numbers.constraints:
        for members in (constraint.members, constraint.others):
            kinds = len({kind_of[m] for m in members if m in kind_of})
            found += kinds * rows + min(constraint.domain_count, rows) if kinds else 0
    return found


def _loads(problem: Problem, known: Outcome) -> Ints:
    """[H] how many members of a known answer stand on each host."""
    if known.hosts is None:
        return np.zeros(len(problem.hosts), dtype=np.int64)
    return np.bincount(known.hosts, minlength=len(problem.hosts)).astype(np.int64)


def _shortlist(numbers: ProblemIndex, rows: Ints, first: Ints, most: int) -> Ints:
    """At most so many of the rows: fixed and used hosts first, then by free capacity.

    The others are taken round robin over the domains of the widest level, roomiest first, so
    that no domain is lost. Keeps the order of `rows`, hence classes together.
    """
    if len(rows) <= most:
        return rows
    problem = numbers.problem
    kept = first > 0
    kept[problem.fixed[problem.fixed >= 0]] = True
    kept[problem.host_count :] = True
    largest = np.maximum(problem.capacity, problem.free).max(axis=0, initial=1)
    scale = np.maximum(largest, 1)
    room = (np.maximum(problem.free, 0) / scale).sum(axis=1)
    levels = [d for d in problem.domains.values() if len(np.unique(d)) < len(problem.hosts)]
    domain = max(levels, key=lambda d: len(np.unique(d))) if levels else np.zeros_like(first)
    others = rows[~kept[rows]]
    others = others[np.argsort(-room[others], kind="stable")]
    turn = _turns(domain[others])
    chosen = others[np.argsort(turn, kind="stable")][: max(most - int(kept.sum()), 0)]
    kept[chosen] = True
    return rows[kept[rows]]


def _turns(values: Ints) -> Ints:
    """The number of equal values before each value."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    found = np.empty(len(values), dtype=np.int64)
    found[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered)
    return found
