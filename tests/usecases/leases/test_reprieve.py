"""Late re-planning: where fewer preemptible servers have to go for a lease that has not started."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build, described

from moorage.domain.bookings import Booking
from moorage.domain.errors import CapacityExceeded, Infeasible
from moorage.domain.leases import Lease
from moorage.domain.period import FOREVER, MINUTE, Duration
from moorage.engine.joint.problem import Outcome, Problem
from moorage.testing.service import OPERATOR
from moorage.usecases.leases.requests import LeaseResult
from moorage.usecases.ledger.allocations import release
from moorage.usecases.ports import Solver
from moorage.usecases.preemption.victims import displaced_for
from moorage.usecases.relocation.late_replanning import AHEAD, BACKOFF, ReplanWorker, replan_lease
from moorage.usecases.shared.limits import Limits

Make = Callable[..., World]
NOTICE = 5 * MINUTE
APART = [{"name": "apart", "type": "anti-affinity", "members": ["*"], "level": "host"}]


def look(here: World) -> None:
    ReplanWorker(here.service.env).run_round(here.service.store.snapshot())


def near(here: World, start: float) -> None:
    """So near to a lease's start that its places are looked for once more."""
    here.service.clock.set(here.at(start) - NOTICE - AHEAD * NOTICE)


def now(here: World, granted: LeaseResult) -> Lease:
    return here.service.store.lease(granted.lease.id)


def hosts(here: World, granted: LeaseResult) -> list[str]:
    decision = here.service.store.decision(now(here, granted).decision_id)
    return [place.host for _, place in sorted(decision.places.items())]


def test_a_lease_goes_to_room_that_has_come_and_its_server_stays(world: Make) -> None:
    here = world(16, 16)
    firm = here.server(16, 1)
    server = here.server(16, 0, preemptible=True)
    made = here.lease(10, 12, vcpu=16)
    assert here.booking(server).yields_to == made.lease.id
    release(here.service.store, firm)
    look(here)
    assert hosts(here, made) == [here.hosts[0]], "there is time for more to change"
    near(here, 10)
    look(here)
    assert hosts(here, made) == [here.hosts[1]]
    booking = here.booking(server)
    assert (booking.period.end, booking.yields_to) == (FOREVER, None)
    told = [one.kind.value for one in here.service.store.effects(server)]
    assert told == ["warn", "reprieve"]
    assert not now(here, made).degraded


def test_where_some_have_to_go_the_others_stay(world: Make) -> None:
    here = world(16, 16, 16)
    firm = here.server(16, 2)
    servers = [here.server(16, host, preemptible=True) for host in (0, 1)]
    made = here.lease(10, 12, body=described(vcpu=16, members=2, policies=APART))
    assert len(displaced_for(here.service.store, made.lease.id)) == 2
    release(here.service.store, firm)
    near(here, 10)
    look(here)
    assert len(displaced_for(here.service.store, made.lease.id)) == 1
    assert sorted(here.booking(one).period.end == FOREVER for one in servers) == [False, True]
    assert len(set(hosts(here, made))) == 2


def test_other_leases_that_have_not_started_make_room_for_it(world: Make) -> None:
    here = world(16, 16, 12)
    firm = here.server(12, 2)
    server = here.server(16, 0, preemptible=True)
    small = here.lease(10, 12, vcpu=12)
    assert hosts(here, small) == [here.hosts[1]]
    large = here.lease(10, 12, vcpu=16)
    assert here.booking(server).yields_to == large.lease.id
    release(here.service.store, firm)
    near(here, 10)
    look(here)
    assert (hosts(here, small), hosts(here, large)) == ([here.hosts[2]], [here.hosts[1]])
    assert here.booking(server).period.end == FOREVER


@pytest.mark.parametrize("priority", [0, 1])
def test_one_goes_instead_of_two_unless_it_has_priority(world: Make, priority: int) -> None:
    here = world(16, 16)
    firm = here.server(16, 1)
    two = [here.server(8, 0, preemptible=True) for _ in range(2)]
    made = here.lease(10, 12, vcpu=16)
    release(here.service.store, firm)
    other = here.server(16, 1, preemptible=True, priority=priority)
    near(here, 10)
    look(here)
    gone = {one.consumer for one in displaced_for(here.service.store, made.lease.id)}
    assert gone == (set(two) if priority else {other})
    if not priority:
        assert here.booking(other).period.end == here.at(10) - NOTICE
        told = {one.kind.value: one.due for one in here.service.store.effects(other)}
        assert told == {"warn": here.now, "evict": here.at(10) - NOTICE}
        assert all(here.booking(one).period.end == FOREVER for one in two)


@pytest.mark.parametrize("strength", ["required", "preferred"])
def test_one_goes_instead_of_two_where_the_leases_policies_allow(
    world: Make, strength: str
) -> None:
    here = world(16, 16, 16)
    firm = here.server(16, 1)
    fill = here.server(16, 2)
    two = [here.server(8, 0, preemptible=True) for _ in range(2)]
    ban = {"name": "off", "type": "ban", "members": ["*"], "domains": ["h2"], "strength": strength}
    made = here.lease(10, 12, body=described(vcpu=16, policies=[ban]), caller=OPERATOR)
    assert {one.consumer for one in displaced_for(here.service.store, made.lease.id)} == set(two)
    release(here.service.store, firm)
    other = here.server(16, 1, preemptible=True)
    if strength == "required":
        release(here.service.store, fill)
    near(here, 10)
    look(here)
    assert hosts(here, made) == [here.hosts[1]]
    assert {one.consumer for one in displaced_for(here.service.store, made.lease.id)} == {other}


def test_what_gains_nothing_is_left_as_it_is_and_not_asked_again(world: Make) -> None:
    here = world(16, 16)
    here.server(16, 1)
    server = here.server(16, 0, preemptible=True)
    made = here.lease(10, 12, vcpu=16)
    near(here, 10)
    rounds = ReplanWorker(here.service.env)
    before = here.service.store.snapshot().revision
    for _ in range(2):
        rounds.run_round(here.service.store.snapshot())
    assert here.service.store.snapshot().revision == before
    assert here.booking(server).yields_to == made.lease.id
    assert replan_lease(here.service.env, made.lease.id) == 0


@dataclass
class Slow:
    """A solver of which every search takes a second."""

    solver: Solver
    seconds: float = 0.0

    def solve(self, problem: Problem, *, time_limit: Duration, seed: int) -> Outcome:
        self.seconds += 1
        return self.solver.solve(problem, time_limit=time_limit, seed=seed)


def test_in_vain_for_many_leases_takes_no_more_of_a_workers_time_than_for_one(world: Make) -> None:
    here = world(16, 16, 16, 16, 1)
    for host in range(4):
        here.server(16, host, preemptible=True)
    assert all(here.lease(10, 12, vcpu=16).displaced for _ in range(4))
    near(here, 10)
    slow, waited = Slow(here.service.env.solver), 0
    rounds = ReplanWorker(
        replace(here.service.env, solver=slow, stopwatch=lambda: waited + slow.seconds)
    )
    while rounds.run_round(here.service.store.snapshot()):
        pass
    first = slow.seconds
    for _ in range(150):
        waited += 1
        release(here.service.store, here.server(1, 4))  # the ledger moves all the time
        rounds.run_round(here.service.store.snapshot())
    assert first < slow.seconds <= first + (waited + slow.seconds) / BACKOFF


def test_a_lease_that_keeps_others_out_or_is_bound_stays(world: Make) -> None:
    here = world(16, 16)
    firm = here.server(16, 1)
    here.server(1, 0, preemptible=True)
    alone = [{"name": "x", "type": "exclusive", "members": ["*"], "against": "others"}]
    made = here.lease(10, 12, body=described(policies=alone))
    release(here.service.store, firm)
    assert replan_lease(here.service.env, made.lease.id) == 0
    assert hosts(here, made) == [here.hosts[0]]


def ended(here: World, servers: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Those who are left once everybody has gone whose end has come."""
    over = [one for one in servers if here.booking(one[0]).period.end <= here.now]
    for name, _ in over:
        release(here.service.store, name)
    return [one for one in servers if one not in over]


def going(bookings: list[Booking]) -> int:
    return sum(one.yields_to is not None for one in bookings)


@settings(max_examples=5, deadline=None)
@given(
    servers=st.lists(
        st.tuples(st.sampled_from((4, 8, 16)), st.integers(0, 2), st.booleans(), st.booleans()),
        max_size=6,
    ),
    leases=st.lists(
        st.tuples(st.integers(8, 14), st.integers(1, 2), st.sampled_from((4, 8, 16))),
        min_size=1,
        max_size=2,
    ),
)
@example(  # two end for the first lease; elsewhere one would, but the two have to for the second
    servers=[
        (4, 0, False, True),
        (4, 1, False, False),
        (4, 1, True, False),
        (4, 2, True, False),
        (4, 2, True, False),
    ],
    leases=[(8, 1, 16), (11, 1, 16)],
)
def test_fewer_go_and_all_is_kept(
    servers: list[tuple[int, int, bool, bool]], leases: list[tuple[int, int, int]]
) -> None:
    here = build(16, 16, 16)
    here.service.env = replace(here.service.env, limits=Limits(explanation_budget=1))
    try:
        firm: list[tuple[str, bool]] = []
        preemptible: list[tuple[str, bool]] = []
        for vcpu, host, yields, stays in servers:
            try:
                name = here.server(vcpu, host, preemptible=yields)
            except CapacityExceeded:
                continue
            (preemptible if yields else firm).append((name, stays))
        granted = []
        for start, members, vcpu in leases:
            body = described(vcpu=vcpu, members=members, policies=APART)
            try:
                granted.append(here.lease(start, start + 3, body=body))
            except Infeasible:
                continue
        for name, stays in firm:
            if not stays:
                release(here.service.store, name)
        for start in sorted({one[0] for one in leases}):
            near(here, start)
            preemptible = ended(here, preemptible)
            before = [here.booking(name) for name, _ in preemptible]
            look(here)
            after = [here.booking(name) for name, _ in preemptible]
            assert going(after) <= going(before)
            for was, is_ in zip(before, after, strict=True):
                assert is_.period.end >= min(was.period.end, here.now + NOTICE)
            for one in (each for each in granted if each.decision.period.end > here.now):
                decision = here.service.store.decision(now(here, one).decision_id)
                places = {m.name: here.booking(m.uuid) for m in one.ensemble.members}
                assert {n: p.host for n, p in decision.places.items()} == {
                    n: b.provider for n, b in places.items()
                }
                assert len({b.provider for b in places.values()}) == len(places)
                assert all(b.period == decision.period for b in places.values())
        snapshot = here.service.store.snapshot()
        columns = snapshot.classes["VCPU"]
        assert (columns.peak <= columns.capacity).all()
    finally:
        here.service.close()
