"""Requests over different periods as one problem, against trying everything instant by instant."""

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.test_build import NOW, booking, snapshot, state, uuid
from tests.engine.test_room import provider
from tests.engine.test_room import snapshot as room_snapshot

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.ensembles import PolicyStatement, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory
from moorage.domain.request_mix import StatedMix, StatedShape, shape
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_joint_room
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.windows import TimedProblem, join_problems, split_answer, time_slots
from moorage.engine.state.snapshot import Snapshot
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.testing.problems import PROJECT, statement


def hours(start: int, end: int) -> Period:
    return Period(NOW + start * HOUR, NOW + end * HOUR)


def party(
    fleet: Snapshot,
    period: Period,
    sizes: tuple[int, ...],
    policies: tuple[PolicyStatement, ...] = (),
    stood: tuple[int, ...] = (),
) -> TimedProblem:
    """A request of one role per size; `stood` are the numbers of its members' hosts till now."""
    members = tuple(MemberName(f"r{i}", 0) for i in range(len(sizes)))
    request = EnsembleRequest(
        project_id=PROJECT,
        roles=tuple(Role(f"r{i}", {"VCPU": size}) for i, size in enumerate(sizes)),
        members=members,
        policies=policies,
        period=period,
    )
    return TimedProblem(
        build(request, fleet), dict(zip(members, (uuid(number) for number in stood), strict=False))
    )


def fits(
    hosts: list[tuple[int, list[Booking]]], parties: list[tuple[Period, tuple[int, ...]]]
) -> bool:
    """Whether some assignment is within capacity at every edge of anything."""
    wanted = [(period, size) for period, sizes in parties for size in sizes]
    edges = {period.start for period, _ in wanted} | {
        one.period.start for _, bookings in hosts for one in bookings
    }
    for rows in product(range(len(hosts)), repeat=len(wanted)):
        if all(
            sum(one.amounts["VCPU"] for one in bookings if one.period.covers(at))
            + sum(
                size
                for row, (period, size) in zip(rows, wanted, strict=True)
                if row == number and period.covers(at)
            )
            <= capacity
            for number, (capacity, bookings) in enumerate(hosts)
            for at in edges
            # What was overfull before is nobody's fault; these fleets have none.
        ):
            return True
    return False


def test_slots_lie_between_neighbouring_edges_of_some_period() -> None:
    assert time_slots([hours(0, 2), hours(1, 3), hours(5, 6)]) == (
        hours(0, 1),
        hours(1, 2),
        hours(2, 3),
        hours(5, 6),
    )


def test_one_after_the_other_may_stand_on_one_host() -> None:
    fleet = snapshot(state(1))
    parties = [party(fleet, hours(0, 2), (16,)), party(fleet, hours(2, 4), (16,))]
    assert Exhaustive().solve(join_problems(parties, fleet), time_limit=1, seed=0).verdict is (
        Verdict.FEASIBLE
    )
    crossing = [*parties, party(fleet, hours(1, 3), (1,))]
    assert Exhaustive().solve(join_problems(crossing, fleet), time_limit=1, seed=0).verdict is (
        Verdict.INFEASIBLE
    )


def test_who_stood_somewhere_moves_only_for_somebody() -> None:
    fleet = snapshot(state(1), state(2, vcpu=Inventory("VCPU", 8)))
    stays = party(fleet, hours(0, 4), (8,), stood=(1,))
    small, large = party(fleet, hours(1, 2), (8,)), party(fleet, hours(1, 2), (16,))
    for newcomer, expected in ((small, [0]), (large, [1])):
        parties = [newcomer, stays]
        problem = join_problems(parties, fleet)
        found = Exhaustive().solve(problem, time_limit=1, seed=0)
        assert found.hosts is not None
        assert split_answer(parties, problem, found.hosts)[1] == expected


def test_policies_hold_within_each_request() -> None:
    fleet = snapshot(state(1), state(2))
    apart = (statement("apart", "anti-affinity", "*"),)
    parties = [party(fleet, hours(0, 2), (4, 4), apart), party(fleet, hours(0, 2), (4, 4))]
    problem = join_problems(parties, fleet)
    found = Exhaustive().solve(problem, time_limit=1, seed=0)
    assert found.hosts is not None
    first, _ = split_answer(parties, problem, found.hosts)
    assert sorted(first) == [0, 1]


periods = st.tuples(st.integers(0, 4), st.integers(1, 3)).map(lambda p: hours(p[0], p[0] + p[1]))


@given(
    hosts=st.lists(
        st.tuples(st.integers(4, 9), st.lists(st.tuples(periods, st.integers(1, 2)), max_size=2)),
        min_size=1,
        max_size=2,
    ),
    wanted=st.lists(
        st.tuples(periods, st.lists(st.integers(1, 6), min_size=1, max_size=2).map(tuple)),
        min_size=1,
        max_size=3,
    ),
)
def test_joint_answers_are_those_of_trying_everything(
    hosts: list[tuple[int, list[tuple[Period, int]]]],
    wanted: list[tuple[Period, tuple[int, ...]]],
) -> None:
    booked = [
        (capacity, [booking(n, size, when, f"o{n}.{i}") for i, (when, size) in enumerate(bookings)])
        for n, (capacity, bookings) in enumerate(hosts, start=1)
    ]
    fleet = snapshot(
        *(
            state(n, vcpu=Inventory("VCPU", capacity), bookings=tuple(bookings))
            for n, (capacity, bookings) in enumerate(booked, start=1)
        )
    )
    parties = [party(fleet, period, sizes) for period, sizes in wanted]
    problem = join_problems(parties, fleet)
    expected = Verdict.FEASIBLE if fits(booked, wanted) else Verdict.INFEASIBLE
    assert Exhaustive().solve(problem, time_limit=1, seed=0).verdict is expected
    found = CpSat().solve(problem, time_limit=10_000_000, seed=0)
    assert found.verdict is expected
    if found.hosts is not None:
        assert all(
            np.isin(rows, np.arange(len(hosts))).all()
            for rows in split_answer(parties, problem, found.hosts)
        )


def test_joint_placements_leave_room_for_others() -> None:
    """In every time slot: GPUs that are taken at hour 3 are no room for those that need one.

    Then what it has left is used first; otherwise it is spared.
    """

    def fleet(taken: bool) -> Snapshot:  # noqa: FBT001 - one of two fleets
        used = [Booking("x", "gpu", {"VGPU": 4}, hours(3, 9), BookingState.ALLOCATED)]
        gpu = provider("gpu", {"VCPU": 16, "VGPU": 4})
        later = replace(gpu, bookings=tuple(used), occupants=(Occupant("x", PROJECT),))
        made = room_snapshot(later if taken else gpu, provider("plain", {"VCPU": 16}))
        mix = [StatedShape(shape({"VCPU": 4, "VGPU": 1}), 9), StatedShape(shape({"VCPU": 5}), 1)]
        return made.with_stated_mix(StatedMix.of(mix, now=NOW))

    def hosts(seen: Snapshot, *, weighed: bool) -> set[str]:
        parties = [party(seen, hours(0, 2), (2,)), party(seen, hours(1, 4), (2,))]
        problem = join_problems(parties, seen)
        if weighed:
            problem = with_joint_room(problem, parties, seen, tuple)
        found = Greedy().solve(replace(problem, objective=Objective.ROOM), time_limit=1, seed=0)
        assert found.hosts is not None
        return {problem.hosts[row] for row in found.hosts.tolist()}

    assert hosts(fleet(taken=False), weighed=False) == {"gpu"}
    assert hosts(fleet(taken=False), weighed=True) == {"plain"}
    assert hosts(fleet(taken=True), weighed=True) == {"gpu"}
