"""Preferring hosts where nobody has to go.

A lease that displaces preemptible users is looked for as if they were not there. Where the search
may choose, it shall not choose their hosts: a member on a host that has no room beside them costs
more than anything the objective can gain, and less than any preference that was stated. One on a
host where those of the highest priority have to go costs more than any others do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine.build import state
from moorage.engine.cost import preference_scale
from moorage.engine.terrain import survey
from moorage.policies.primitives import NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import MemberName
    from moorage.engine.build import Built
    from moorage.engine.problem import Problem
    from moorage.engine.snapshot import Snapshot

SPARING: Final = "sparing"
"""What posts the preference; no policy of the ensemble's."""


def sparing(built: Built, there: Sequence[Snapshot]) -> Built:
    """The same problem, which prefers hosts that have room for a member as things are.

    What is feasible stays so. Of several members on one host, each is judged alone.

    Args:
        built: the problem as if those who could be displaced were not there.
        there: the fleet with them; then with some of them, to spare whom weighs more than all
            that comes before.
    """
    bare = built.problem
    placed = np.flatnonzero(bare.fixed < 0).tolist()
    above = 1 + len(placed)
    unit = preference_scale(bare)
    posted: list[NeverOn] = []
    for view in there:
        full = state(built.request, survey(view, built.request), closed=built.closed).problem
        grudged: dict[frozenset[int], list[MemberName]] = {}
        for m in placed:
            rows = np.flatnonzero(_open(bare, m) & ~_open(full, m))
            if len(rows):
                grudged.setdefault(frozenset(rows.tolist()), []).append(bare.members[m])
        posted += (
            NeverOn(policy=SPARING, members=tuple(members), weight=unit, hosts=hosts)
            for hosts, members in grudged.items()
        )
        unit *= above
    if not posted:
        return built
    stated = tuple(
        one if one.weight is None else replace(one, weight=above ** len(there) * one.weight)
        for one in bare.primitives
    )
    return replace(built, problem=replace(bare, primitives=(*stated, *posted)))


def _open(problem: Problem, member: int) -> NDArray[np.bool_]:
    """[H] hosts that a member may be on, alone."""
    found: NDArray[np.bool_] = problem.allowed[problem.role_of[member]].copy()
    name = problem.members[member]
    for one in problem.primitives:
        if isinstance(one, NeverOn | OnlyOn) and one.weight is None and name in one.members:
            named = np.zeros(len(problem.hosts), dtype=np.bool_)
            named[list(one.hosts)] = True
            found &= named if isinstance(one, OnlyOn) else ~named
    return found
