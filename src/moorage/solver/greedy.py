"""A greedy search with restarts, in columns: fast answers, and proofs by counting.

Members that must share a domain form a block; scarce blocks go first, and within a block
scarce members, so an anchor stands before its partners. A block is placed whole or not at
all: when its first choice of domain leaves a partner without a host, the block is undone and
that domain left out. A block that finds no place at all goes to the front, and the search
starts again, with a little seeded noise. It also starts again a few times after an answer
that is not proved the best: a restart costs far less than an exact solve.

Counting may prove that there is no placement. Most requests are placed at the first attempt
and need no such proof: so it comes before the second.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain import search_progress
from moorage.domain.period import SECOND
from moorage.engine.joint.cost import cost, satisfies
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.problem_index import index_problem
from moorage.policies.primitives import SameDomain
from moorage.solver.bounds import lower_bound
from moorage.solver.partial_solution import Partial

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import NDArray

    from moorage.domain.period import Duration
    from moorage.engine.joint.problem import Problem
    from moorage.engine.joint.problem_index import ProblemIndex
    from moorage.solver.partial_solution import Candidates

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

Block = tuple[int, ...]

IMPROVING: Final = 5
"""A valid answer is improved for one part in this many of the time limit, at most."""


@dataclass(frozen=True)
class Greedy:
    """Searches for a first answer and improves it.

    `attempts` bounds the restarts, so that the answer does not depend on the machine's speed
    unless the time limit is very short.
    """

    attempts: int = 24
    domains_tried: int = 12
    improving: int = 4
    """Restarts after the first answer, if it is not proved the best; see `IMPROVING`."""
    polishing: int = 3
    """Rounds of moving single members to cheaper hosts."""
    scatter: int | None = None
    """A number of its own for each process that searches beside others on the same fleet: among
    hosts of equal cost each then has preferences of its own, so that they seldom want the same
    ones. None: it searches alone."""
    name: str = "greedy"

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        """A placement that meets every required primitive, `unknown`, or a proof by counting."""
        started = time.monotonic()
        deadline = started + time_limit / SECOND
        numbers = index_problem(problem)
        noise = np.random.default_rng(seed)
        least = lower_bound(numbers)
        best = Outcome(Verdict.UNKNOWN, self.name)
        began, until, left = started, deadline, self.improving
        polish = time_limit / SECOND / IMPROVING
        for attempt, found in enumerate(self._attempts(numbers, noise, deadline, least, polish)):
            now = time.monotonic()
            if found is not None:
                if best.hosts is None:
                    until = min(deadline, now + time_limit / SECOND / IMPROVING)
                best = self._better(best, found, least)
            elif not attempt and refuted(problem):
                best = Outcome(Verdict.INFEASIBLE, "counting")
                break
            if best.hosts is not None:
                # An attempt takes about as long as the one before it.
                if best.proven or not left or now + (now - began) > until:
                    break
                left -= 1
            began = time.monotonic()
        return replace(best, wall_ms=(time.monotonic() - started) * 1000)

    def _better(self, best: Outcome, found: tuple[Ints, int], least: int) -> Outcome:
        """The better one of the best answer so far and that of another attempt."""
        rows, value = found
        if best.hosts is not None and best.value <= value:
            return best
        bound = min(value, least)
        search_progress.report(self.name, value, bound)
        return Outcome(Verdict.FEASIBLE, self.name, rows, value=value, bound=bound)

    def _attempts(
        self,
        numbers: ProblemIndex,
        noise: np.random.Generator,
        deadline: float,
        least: int,
        polish: float,
    ) -> Iterator[tuple[Ints, int] | None]:
        """Per attempt the [M] rows of a valid placement and its cost, or None.

        A placement is polished for so many seconds, and until the deadline, at most.
        """
        partial = Partial(numbers, self.scatter)
        blocks = _blocks(partial)
        failures = dict.fromkeys(blocks, 0)
        for attempt in range(self.attempts):
            if attempt and time.monotonic() > deadline:
                return
            search_progress.report(self.name, None, least)
            if attempt:
                partial = Partial(numbers, self.scatter)
            # Sorting is stable: among blocks that failed equally often the scarce stay first.
            order = sorted(blocks, key=lambda block: -failures[block])
            if attempt == 1:  # of sizes that divide each other, this packs whatever can be packed
                order = sorted(blocks, key=partial.share_of, reverse=True)
            spread = 0.0 if attempt == 0 else 2.0 * attempt
            stuck = self._place_all(partial, order, noise, spread)
            if stuck is None and satisfies(numbers.problem, partial.row_of[None, :])[0]:
                value = self._polish(partial, min(deadline, time.monotonic() + polish), least)
                yield partial.row_of, value
                continue
            if stuck is not None:
                failures[stuck] += 1
            yield None

    def _place_all(
        self, partial: Partial, order: list[Block], noise: np.random.Generator, spread: float
    ) -> Block | None:
        """Place every block; return the first that found no place, or None."""
        for block in order:
            if not self._place_block(partial, block, noise, spread):
                return block
        return None

    def _place_block(
        self, partial: Partial, block: Block, noise: np.random.Generator, spread: float
    ) -> bool:
        barred: Bools | None = None
        for _ in range(self.domains_tried):
            placed: list[int] = []
            for m in block:
                row = _cheapest(partial.candidates(m), None if placed else barred, noise, spread)
                if row < 0:
                    break
                partial.place(m, row)
                placed.append(m)
            if len(placed) == len(block):
                return True
            if not placed:
                return False
            domain_of = _meeting_place(partial, block)
            tried = domain_of == domain_of[partial.row_of[placed[0]]]
            barred = tried if barred is None else barred | tried
            for m in reversed(placed):
                partial.undo(m)
        return False

    def _polish(self, partial: Partial, deadline: float, least: int) -> int:
        """Move single members to cheaper hosts while the total cost falls; return the cost."""
        numbers = partial.index
        problem = numbers.problem
        value = int(cost(problem, partial.row_of[None, :])[0])
        for _ in range(self.polishing):
            before = value
            for m in numbers.to_place:
                if value <= least or time.monotonic() > deadline:
                    return value
                value = _move(partial, m, value)
            if value == before:
                break
        return value


def _move(partial: Partial, m: int, value: int) -> int:
    """Move one member to its cheapest host if that improves the placement; return the value."""
    problem = partial.index.problem
    old = int(partial.row_of[m])
    partial.undo(m)
    rows, costs = partial.candidates(m)
    new = int(rows[np.argmin(costs)]) if np.isfinite(costs).any() else old
    partial.place(m, new)
    if new != old:
        placement = partial.row_of[None, :]
        moved = int(cost(problem, placement)[0])
        if moved < value and satisfies(problem, placement)[0]:
            return moved
        partial.undo(m)
        partial.place(m, old)
    return value


def _cheapest(
    candidates: Candidates, barred: Bools | None, noise: np.random.Generator, spread: float
) -> int:
    """The candidate host with the least cost, or -1. `barred` is [H], or None: no host."""
    rows, costs = candidates
    if barred is not None:
        costs = np.where(barred[rows], np.inf, costs)
    if spread:
        open_rows = np.isfinite(costs)
        rows, costs = rows[open_rows], costs[open_rows]
        costs = costs + noise.uniform(0.0, spread, len(rows))
    if not len(rows):
        return -1
    best = int(costs.argmin())
    return int(rows[best]) if costs[best] < np.inf else -1


def _meeting_place(partial: Partial, block: Block) -> Ints:
    """[H] the domains to try in turn: of the widest level that the block must share."""
    shared = [
        partial.index.constraints[c]
        for c in partial.index.constraints_of[block[0]]
        if _binds(partial.index, c)
    ]
    if not shared:
        return np.arange(len(partial.index.problem.hosts), dtype=np.int64)
    return min(shared, key=lambda constraint: constraint.domain_count).domain_of


def _binds(numbers: ProblemIndex, c: int) -> bool:
    constraint = numbers.constraints[c]
    return constraint.required and isinstance(constraint.primitive, SameDomain)


def _blocks(start: Partial) -> list[Block]:
    """Members to place, grouped by the domains they must share; scarce groups first."""
    numbers = start.index
    scarcity = _scarcity(start)
    head = {m: m for m in numbers.to_place}

    def find(m: int) -> int:
        while head[m] != m:
            m = head[m]
        return m

    for c, constraint in enumerate(numbers.constraints):
        if _binds(numbers, c):
            moving = [m for m in constraint.members if m in head]
            for m in moving[1:]:
                head[find(m)] = find(moving[0])
    blocks: dict[int, list[int]] = {}
    for m in numbers.to_place:
        blocks.setdefault(find(m), []).append(m)
    choice = numbers.choice
    ordered = [
        tuple(sorted(block, key=lambda m: (choice(m), scarcity[m], m))) for block in blocks.values()
    ]
    return sorted(
        ordered, key=lambda block: (choice(block[0]), scarcity[block[0]], -len(block), block)
    )


def _scarcity(start: Partial) -> dict[int, float]:
    """Per member to place: the initial slots for its kind, divided by the members of the kind."""
    numbers = start.index
    found: dict[int, float] = {}
    demanded: dict[int, int] = {}
    for m in numbers.to_place:
        demanded[numbers.group_of[m]] = demanded.get(numbers.group_of[m], 0) + 1
    known: dict[Hashable, int] = {}
    for kind in numbers.interchangeable:
        first = kind[0]
        look = start.look_of(first)
        if look not in known:
            rows, costs = start.candidates(first)
            slots = numbers.slots(int(numbers.problem.role_of[first]))
            known[look] = int(slots[rows[np.isfinite(costs)]].sum())
        found |= dict.fromkeys(kind, known[look] / demanded[numbers.group_of[first]])
    return found
