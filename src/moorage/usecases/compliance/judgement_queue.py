"""The order in which ensembles are judged: projects share the time that judgements take.

Each project has the time at which its share is used up, on a clock that only judgements move. Who
has used least comes first; a project that was idle has saved nothing up. So one whose ensembles are
large, and written again and again, keeps others waiting for one of its judgements at most.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

BATCH_SECONDS: Final = 0.25
"""Judgements that are committed together take so long, the last of them apart."""
_LEAST: Final = 0.001
"""Seconds that a judgement is expected to take, of a project of which none is known."""


@dataclass
class JudgementQueue:
    """The shares of projects. What it remembers only orders the work."""

    projects_of: Callable[[Collection[str]], Mapping[str, str]]
    """Ensembles -> their projects, without those that do not exist."""
    _projects: dict[str, str] = field(default_factory=dict)
    """Ensemble -> its project, of those seen."""
    _now: float = 0.0
    """The share that whoever is idle is taken to have used."""
    _used: dict[str, float] = field(default_factory=dict)
    """Project -> the share that it has used, if that is more than `_now`."""
    _cost: dict[str, float] = field(default_factory=dict)
    """Project -> seconds of its last judgement, of those in `_used`."""

    def first(self, due: Iterable[str], most: int) -> Iterator[str]:
        """The ensembles to judge next, fairly ordered; of a project in the order in which given."""
        by_project: dict[str, list[str]] = {}
        known = list(due)
        self._learn(known)
        for one in known:
            by_project.setdefault(self._projects.get(one, ""), []).append(one)
        order = count()
        heads = [
            (self._share(project), next(order), project, iter(some))
            for project, some in by_project.items()
        ]
        heapq.heapify(heads)
        self._now = max(self._now, heads[0][0] if heads else 0.0)
        self._forget()
        return islice(self._merged(heads, order), most)

    def note(self, ensemble: str, seconds: float) -> None:
        """Count the time that a judgement took."""
        project = self._projects.get(ensemble, "")
        self._used[project] = self._share(project) + seconds
        self._cost[project] = seconds

    def keep(self, ensembles: Iterable[str]) -> None:
        """Forget the projects of all other ensembles."""
        self._projects = {one: self._projects[one] for one in ensembles if one in self._projects}

    def _share(self, project: str) -> float:
        return max(self._now, self._used.get(project, 0.0))

    def _merged(
        self, heads: list[tuple[float, int, str, Iterator[str]]], order: Iterator[int]
    ) -> Iterator[str]:
        """Take from the projects in turn, as long as none has used much more than the first."""
        last = self._now + BATCH_SECONDS
        while heads and heads[0][0] <= last:
            share, _, project, some = heapq.heappop(heads)
            one = next(some, None)
            if one is not None:
                yield one
                cost = max(self._cost.get(project, 0.0), _LEAST)
                heapq.heappush(heads, (share + cost, next(order), project, some))

    def _learn(self, ensembles: Iterable[str]) -> None:
        unknown = [one for one in ensembles if one not in self._projects]
        if unknown:
            self._projects |= self.projects_of(unknown)

    def _forget(self) -> None:
        """Forget the projects that have used no more than those that are idle."""
        for project in [one for one, used in self._used.items() if used <= self._now]:
            del self._used[project], self._cost[project]
