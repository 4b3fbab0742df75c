"""By how much required policies are violated on each host that one member could stand on."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.joint.cost import excess, members_of
from moorage.engine.joint.equivalence_classes import equivalence_classes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]

_CELLS: Final = 2**22
"""Hosts judged at once times all hosts: bounds the memory."""


def violations_by_host(built: BuiltProblem, member: MemberName) -> Mapping[str, Ints]:
    """Required policy that restricts the member -> [H] its excess with the member on each host.

    All other members of the problem are fixed. Neither capacity nor closed hosts count.
    """
    posted = {
        rule.statement.name: own
        for rule in built.rules
        if rule.statement.required
        and (own := [one for one in built.policy_view.posted(rule) if member in members_of(one)])
    }
    problem = _without_capacity(built.problem, [one for own in posted.values() for one in own])
    _, examples, of_class = np.unique(
        equivalence_classes(problem), return_index=True, return_inverse=True
    )
    found = {name: np.zeros(len(examples), dtype=np.int64) for name in posted}
    step = max(1, _CELLS // max(1, len(problem.hosts)))
    for first in range(0, len(examples), step):
        some = examples[first : first + step]
        rows = np.tile(problem.fixed, (len(some), 1))
        rows[:, problem.position_of[member]] = some
        for name, own in posted.items():
            for one in own:
                found[name][first : first + step] += excess(problem, one, rows)
    return MappingProxyType({name: each[of_class] for name, each in found.items()})


def _without_capacity(problem: Problem, posted: Sequence[Primitive]) -> Problem:
    """The problem in which hosts differ only in what these primitives see."""
    hosts = len(problem.hosts)
    return replace(
        problem,
        free=np.zeros((hosts, 0), dtype=np.int64),
        capacity=np.zeros((hosts, 0), dtype=np.int64),
        allowed=np.ones_like(problem.allowed),
        primitives=tuple(posted),
        cuts=(),
    )
