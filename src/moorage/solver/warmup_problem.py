"""A tiny problem that makes a fresh process load and compile the solver."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from moorage.domain.member_names import MemberName
from moorage.domain.requests import Objective
from moorage.engine.joint.problem import Problem


def toy_problem() -> Problem:
    """Two members that take half of a host each, on two hosts."""
    return Problem(
        members=(MemberName("a", 0), MemberName("a", 1)),
        roles=("a",),
        role_of=np.zeros(2, np.int64),
        demand=np.ones((1, 1), np.int64),
        allowed=np.ones((1, 2), np.bool_),
        fixed=np.full(2, -1, np.int64),
        classes=("VCPU",),
        free=np.full((2, 1), 2, np.int64),
        capacity=np.full((2, 1), 2, np.int64),
        hosts=("one", "two"),
        domains=MappingProxyType({}),
        primitives=(),
        objective=Objective.SPREAD,
    )
