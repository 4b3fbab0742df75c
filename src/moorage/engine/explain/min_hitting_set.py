"""The sufficient set of least weight, with a proof, by implicit hitting sets.

An oracle decides whether a set is sufficient; supersets of sufficient sets are sufficient. If a set
is not sufficient, every sufficient set contains one of the items outside it: these are a *core*. So
the minimum hitting set of all known cores is no heavier than the answer. If it is sufficient it is
the answer; else it is extended to a maximal insufficient set, which gives one more core
(E. Moreno-Centeno and R. Karp, The implicit hitting set approach, Operations Research 61, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MAX_NODES: Final = 20_000
"""Nodes of the search for one minimum hitting set, before the proof is given up."""


@dataclass(frozen=True, slots=True)
class MinimumSet:
    """The result: a sufficient set, minimal as far as the oracle could decide."""

    items: frozenset[int] | None
    """None: not even all items are sufficient, or that is undecided."""
    proved: bool
    """Whether it is proved that no lighter set is sufficient."""


def minimum_set(
    weights: Sequence[int], enough: Callable[[frozenset[int]], bool | None]
) -> MinimumSet:
    """The sufficient set of items with the least sum of weights.

    The weights [n] are positive; among sets of equal weight, any may result. `enough` returns None
    if it is undecided in time.
    """
    oracle = _Oracle(enough)
    order = sorted(range(len(weights)), key=lambda one: weights[one])
    whole = oracle.ask(frozenset(order))
    if whole is not True:
        return MinimumSet(None, proved=whole is False)
    best = _minimal(_lightest_prefix(order, oracle), weights, oracle)
    cores: list[frozenset[int]] = []
    while True:
        chosen = _min_hitting_set(weights, cores, sum(weights[one] for one in best))
        if chosen is None:
            return MinimumSet(best, proved=False)
        if _weight(weights, chosen) >= _weight(weights, best):
            return MinimumSet(best, proved=True)
        answer = oracle.ask(chosen)
        if answer:
            return MinimumSet(chosen, proved=True)
        if answer is None:
            return MinimumSet(best, proved=False)
        for one in order:
            if one not in chosen and oracle.ask(chosen | {one}) is False:
                chosen |= {one}
        cores.append(frozenset(order) - chosen)


class _Oracle:
    """Calls `enough` only if the answer does not follow from former ones by monotonicity."""

    def __init__(self, enough: Callable[[frozenset[int]], bool | None]) -> None:
        self._enough = enough
        self._known: dict[bool, list[frozenset[int]]] = {True: [], False: []}

    def ask(self, some: frozenset[int]) -> bool | None:
        if any(known <= some for known in self._known[True]):
            return True
        if any(some <= known for known in self._known[False]):
            return False
        answer = self._enough(some)
        if answer is not None:
            self._known[answer].append(some)
        return answer


def _lightest_prefix(order: list[int], oracle: _Oracle) -> frozenset[int]:
    """The shortest sufficient prefix of the items by weight, by bisection."""
    few, many = 0, len(order)
    while few < many:
        middle = (few + many) // 2
        if oracle.ask(frozenset(order[:middle])):
            many = middle
        else:
            few = middle + 1
    return frozenset(order[:many])


def _minimal(some: frozenset[int], weights: Sequence[int], oracle: _Oracle) -> frozenset[int]:
    """A minimal sufficient subset: items that are not needed are dropped, the heaviest first."""
    for one in sorted(some, key=lambda one: -weights[one]):
        if oracle.ask(some - {one}):
            some -= {one}
    return some


def _weight(weights: Sequence[int], some: frozenset[int]) -> int:
    return sum(weights[one] for one in some)


def _min_hitting_set(
    weights: Sequence[int], cores: Sequence[frozenset[int]], most: int
) -> frozenset[int] | None:
    """A minimum hitting set of the cores; any one of weight `most` or more if all are so heavy.

    By branch and bound over the items of a core that is not hit; None if `_MAX_NODES` is exceeded.
    """
    best, best_weight = frozenset[int]().union(*cores), None
    stack: list[tuple[frozenset[int], frozenset[int], int]] = [(frozenset(), frozenset(), 0)]
    nodes = 0
    while stack:
        nodes += 1
        if nodes > _MAX_NODES:
            return None
        taken, barred, weight = stack.pop()
        if weight >= (most if best_weight is None else best_weight):
            continue
        open_cores = [core - barred for core in cores if not core & taken]
        if not open_cores:
            best, best_weight = taken, weight
            continue
        core = min(open_cores, key=len)
        branches = []
        without = barred
        for one in sorted(core, key=lambda one: weights[one]):
            branches.append((taken | {one}, without, weight + weights[one]))
            without |= {one}
        stack.extend(reversed(branches))
    return best
