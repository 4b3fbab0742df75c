"""Several joint requests over different periods as one problem.

Between two edges of the requests' periods (a time slot) the set of members is constant, so the free
capacity in a slot is the capacity less the peak of other bookings. The joint problem has a column
per resource class and slot, and a member demands its amounts in the slots of its own period. Every
solver can solve this without knowing of time.

Members of the i-th request are called `i/role[n]` in the joint problem. A member that has a host
prefers to stay on it; nothing else is preferred, so no member moves without need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.engine.joint.problem import Problem
from moorage.engine.joint.terrain import MOST_FREE
from moorage.policies.primitives import OnlyOn, Sided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]


_AT: Final = "@"
"""Between a class and the number of the time slot, in the names of columns."""


@dataclass(frozen=True, eq=False)
class TimedProblem:
    """One request, built on a terrain without the bookings of any of the requests."""

    built: BuiltProblem
    current_hosts: Mapping[MemberName, str]
    """Member -> UUID of its present host; members may move."""


def time_slots(periods: Sequence[Period]) -> tuple[Period, ...]:
    """The time slots between neighbouring edges of the periods, ascending; gaps are left out."""
    edges = sorted({edge for one in periods for edge in (one.start, one.end)})
    found = (Period(start, end) for start, end in pairwise(edges))
    return tuple(slot for slot in found if any(one.overlaps(slot) for one in periods))


def join_problems(parties: Sequence[TimedProblem], snapshot: Snapshot) -> Problem:
    """Join the problems of several requests on the hosts of one snapshot.

    There is at least one party, and all have the same hosts. The snapshot is the one that their
    terrains were cut from, without their bookings.
    """
    problems = [one.built.problem for one in parties]
    hosts = problems[0].hosts
    assert all(one.hosts == hosts for one in problems), "one snapshot has one order of hosts"
    times = time_slots([one.built.request.period for one in parties])
    classes = tuple(sorted({name for one in problems for name in one.classes}))
    column = {name: k for k, name in enumerate(classes)}
    roles, demand, allowed, members = [], [], [], []
    for number, one in enumerate(parties):
        problem = one.built.problem
        there = np.array([one.built.request.period.overlaps(slot) for slot in times])
        for index, role in enumerate(problem.roles):
            amounts = np.zeros((len(times), len(classes)), dtype=np.int64)
            for k, name in enumerate(problem.classes):
                amounts[there, column[name]] = problem.demand[index, k]
            demand.append(amounts.reshape(-1))
            allowed.append(problem.allowed[index])
            roles.append(_role_name(number, role))
        members += [
            (_member(number, name), _role_name(number, problem.roles[role]), row)
            for name, role, row in zip(
                problem.members, problem.role_of.tolist(), problem.fixed.tolist(), strict=True
            )
        ]
    members.sort()
    free, capacity = _slot_columns(snapshot, hosts, classes, times)
    position = {name: index for index, name in enumerate(roles)}
    return Problem(
        members=tuple(name for name, _, _ in members),
        roles=tuple(roles),
        role_of=np.array([position[role] for _, role, _ in members], dtype=np.int64),
        demand=np.array(demand, dtype=np.int64),
        allowed=np.array(allowed, dtype=np.bool_),
        fixed=np.array([row for _, _, row in members], dtype=np.int64),
        classes=tuple(f"{name}{_AT}{slot}" for slot in range(len(times)) for name in classes),
        free=free,
        capacity=capacity,
        hosts=hosts,
        domains={level: rows for one in problems for level, rows in one.domains.items()},
        primitives=tuple(_primitives(parties)),
        objective=None,
    )


def class_of_column(column: str) -> str:
    """The resource class of a column of a joint problem, without the time slot."""
    return column.rpartition(_AT)[0]


def split_answer(
    parties: Sequence[TimedProblem], problem: Problem, rows: Ints
) -> tuple[list[int], ...]:
    """Split an answer to the joint problem: per request the host rows of its members."""
    row_of = dict(zip(problem.members, rows.tolist(), strict=True))
    return tuple(
        [row_of[_member(number, name)] for name in one.built.problem.members]
        for number, one in enumerate(parties)
    )


def _role_name(number: int, role: str) -> str:
    return f"{number}/{role}"


def _member(number: int, name: MemberName) -> MemberName:
    return MemberName(_role_name(number, name.role), name.index)


def _slot_columns(
    snapshot: Snapshot,
    hosts: Sequence[str],
    classes: Sequence[str],
    times: Sequence[Period],
) -> tuple[Ints, Ints]:
    """[H, S x K] free capacity and capacity per slot and class."""
    rows = np.array([snapshot.row_of[uuid] for uuid in hosts], dtype=np.int64)
    free = np.zeros((len(hosts), len(times), len(classes)), dtype=np.int64)
    capacity = np.zeros_like(free)
    for k, name in enumerate(classes):
        columns = snapshot.classes.get(name)
        if columns is None:
            continue
        at = columns.position[rows]
        has, at = at >= 0, at[at >= 0]
        for s, slot in enumerate(times):
            peak = snapshot.peak_over(name, slot)[at]
            left = np.minimum(columns.capacity[at] - peak, MOST_FREE)
            free[has, s, k] = left
            capacity[has, s, k] = left + peak
    shape = (len(hosts), len(times) * len(classes))
    return free.reshape(shape), capacity.reshape(shape)


def _primitives(parties: Sequence[TimedProblem]) -> Iterator[Primitive]:
    row_of = {uuid: row for row, uuid in enumerate(parties[0].built.problem.hosts)}
    for number, one in enumerate(parties):
        for primitive in one.built.problem.primitives:
            if primitive.weight is None:
                yield renamed_primitive(primitive, number)
        for name, host in sorted(one.current_hosts.items()):
            if host in row_of:
                yield OnlyOn(
                    policy=f"{_member(number, name)} stays",
                    members=(_member(number, name),),
                    weight=1,
                    hosts=frozenset({row_of[host]}),
                )


def renamed_primitive(primitive: Primitive, number: int) -> Primitive:
    """The primitive with the members of the i-th request renamed as in the joint problem."""
    members = tuple(_member(number, name) for name in primitive.members)
    if isinstance(primitive, Sided):
        others = tuple(_member(number, name) for name in primitive.others)
        return replace(primitive, members=members, others=others)
    return replace(primitive, members=members)
