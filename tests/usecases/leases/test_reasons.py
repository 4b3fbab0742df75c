"""Refusals are about what was asked, and what they offer helps once it is asked for."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.leases.conftest import World, described
from tests.usecases.leases.test_change import take
from tests.usecases.leases.test_obstacles import booked, refused

from moorage.domain.capacity_windows import WindowKind
from moorage.domain.errors import Infeasible
from moorage.domain.explain import Explanation, Stage
from moorage.domain.period import FOREVER, HOUR, parse_instant
from moorage.engine.joint import instance
from moorage.engine.joint.problem import Outcome, Problem
from moorage.testing.service import OPERATOR, TENANT
from moorage.usecases.capacity.planned import PlanRequest, plan_window
from moorage.usecases.ports import Caller, Solver

Make = Callable[..., World]


def stays(told: Explanation) -> list[str]:
    return [
        one.name for conflict in told.conflicts for one in conflict.elements if one.kind == "stay"
    ]


def offered(told: Explanation) -> dict[str, Any]:
    """Field -> what is offered, of changes of time; checked to be cheapest first."""
    assert [one.cost for one in told.relaxations] == sorted(one.cost for one in told.relaxations)
    assert all(one.change.subject == "time" for one in told.relaxations)
    return {one.change.field: one.change.after for one in told.relaxations}


def hours(here: World, instant: str) -> float:
    return (parse_instant(instant) - here.at(0)) / HOUR


@pytest.mark.parametrize("caller", [TENANT, OPERATOR], ids=["tenant", "operator"])
def test_only_a_lease_in_the_way_is_the_whole_reason(world: Make, caller: Caller) -> None:
    here = world(16, 16, 16)
    made = here.lease(2, 5, vcpu=10, members=2, lead=HOUR)
    told = refused(lambda: here.ensemble(10, members=3, caller=caller))
    assert (told.stage, told.verdict) == (Stage.TIME, "infeasible")
    name = f"lease {made.lease.id}" if caller is OPERATOR else "lease L1"
    assert booked(told) == [f"{name} from 2026-11-21T10:00:00Z"]
    assert stays(told) == ["3 open-ended servers"]
    assert offered(told) == {
        "until": "2026-11-21T10:00:00Z",
        "preemptible": True,
        "start": "2026-11-21T14:00:00Z",
    }


class Asked:
    """A solver that notes each problem on a fleet without bookings that it is asked to solve."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.problems: list[bytes] = []

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        """See `Solver`."""
        if (problem.free == problem.capacity).all():
            self.problems.append(instance.dumps(problem))
        return self.solver.solve(problem, time_limit=time_limit, seed=seed)


def test_what_is_in_the_way_is_told_without_placing_it_on_the_empty_fleet_again(
    world: Make,
) -> None:
    """By the stage it fits there; the window after the lease is the same problem once more."""
    here = world(16, 16)
    here.lease(1, 4, vcpu=10, members=2)
    asked = Asked(here.service.env.solver)
    here.service.env = replace(here.service.env, solver=asked)
    told = refused(lambda: here.lease(2, 3, vcpu=10, members=2))
    assert told.stage is Stage.TIME
    assert max(Counter(asked.problems).values()) == 2


def test_the_end_that_is_offered_works_and_no_later_one(world: Make) -> None:
    here = world(16, 16)
    here.lease(1, 2, vcpu=4, members=2)
    here.lease(3, 4, vcpu=16)
    here.lease(5, 6, vcpu=16, members=2)
    told = refused(lambda: here.ensemble(10, members=2))
    until = hours(here, offered(told)["until"])
    assert until == 3
    with pytest.raises(Infeasible):
        here.ensemble(10, members=2, until=until + 0.001)
    made = here.ensemble(10, members=2, until=until)
    assert {here.booking(m.uuid).period.end for m in made.ensemble.members} == {here.at(3)}


def test_a_stay_that_ends_too_late_is_offered_an_earlier_end(world: Make) -> None:
    here = world(16)
    here.lease(1, 2, vcpu=16)
    told = refused(lambda: here.ensemble(10, until=1.5))
    assert stays(told) == ["1 server until 2026-11-21T10:30:00Z"]
    # There is no time left after the lease.
    assert offered(told) == {"until": "2026-11-21T10:00:00Z", "preemptible": True}
    here.ensemble(10, until=1)


def test_being_preemptible_works_where_it_is_offered(world: Make) -> None:
    here = world(16)
    lease = here.lease(1, 2, vcpu=16)
    told = refused(lambda: here.ensemble(10))
    assert offered(told)["preemptible"] is True
    made = here.ensemble(10, preemptible=True)
    (member,) = made.ensemble.members
    assert here.booking(member.uuid).yields_to == lease.lease.id


@pytest.mark.parametrize("as_lease", [True, False], ids=["a lease", "asked again then"])
def test_a_later_start_works_where_it_is_offered(world: Make, *, as_lease: bool) -> None:
    here = world(16)
    first = here.lease(1, 2, vcpu=16)
    here.lease(2, 3, vcpu=12)
    start = hours(here, offered(refused(lambda: here.ensemble(10)))["start"])
    assert start == 3
    if as_lease:
        assert here.lease(start, 900, vcpu=10).displaced == ()
        return
    here.go_to(start)
    (member,) = here.ensemble(10).ensemble.members
    assert here.booking(member.uuid).period.end == FOREVER
    assert first.lease.terms.occupied.end <= here.now


def test_policies_hold_in_what_is_offered(world: Make) -> None:
    here = world(16, 16)
    here.lease(1, 2, vcpu=16)
    apart = {"name": "apart", "type": "anti-affinity", "members": ["*"], "level": "host"}
    body = described(vcpu=2, members=2, policies=[apart])
    told = refused(lambda: here.ensemble(body=body))
    assert offered(told)["until"] == "2026-11-21T10:00:00Z"
    made = here.ensemble(body=body, until=1)
    assert len({here.booking(one.uuid).provider for one in made.ensemble.members}) == 2


def test_what_does_not_fit_now_is_offered_no_end(world: Make) -> None:
    here = world(16)
    here.server(10)
    here.lease(1, 2, vcpu=6)
    told = refused(lambda: here.ensemble(10))
    assert not any(one.change.subject == "time" for one in told.relaxations)


def test_while_a_lease_is_there_only_a_later_start_is_offered(world: Make) -> None:
    here = world(16)
    here.lease(0, 2, vcpu=16)
    told = refused(lambda: here.ensemble(10))
    assert told.stage is Stage.TIME
    assert offered(told) == {"start": "2026-11-21T11:00:00Z"}
    here.go_to(2)
    here.ensemble(10)


def test_a_lease_that_cannot_begin_at_once_says_so(world: Make) -> None:
    here = world(16)
    here.server(10, preemptible=True)
    made = here.lease(3, 5, vcpu=16)
    assert made.displaced
    told = refused(lambda: here.change(made.lease.id, start=0))
    assert (told.stage, told.verdict) == (Stage.TIME, "infeasible")
    assert "servers that end after it begins" in booked(told)


def test_claimed_places_that_cannot_be_kept_say_who_comes(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=4, members=2, expiry=HOUR // 2)
    here.lease(4, 5, vcpu=14)
    here.lease(6, 7, vcpu=14)
    here.go_to(1)
    here.begin(made.lease.id)
    take(here, made, 0, vcpu=4)
    here.go_to(1.6)
    told = refused(lambda: here.change(made.lease.id, end=4.5))
    assert (told.stage, told.verdict) == (Stage.TIME, "infeasible")
    assert booked(told) == ["lease L2 from 2026-11-21T13:00:00Z to 2026-11-21T14:00:00Z"]
    period = "from 2026-11-21T10:00:00Z to 2026-11-21T13:30:00Z"
    assert stays(told) == [f"1 place where it is, {period}"]


def test_who_is_overrun_is_named_to_who_cannot_stay(world: Make) -> None:
    here = world(16)
    here.server(10, until=1)
    made = here.lease(1, 3, vcpu=16)
    here.go_to(1)
    here.begin(made.lease.id)
    told = refused(lambda: here.change(made.lease.id, end=4))
    assert (told.stage, told.verdict) == (Stage.TIME, "infeasible")
    assert booked(told) == ["servers past their end"]


# --- leases -----------------------------------------------------------------------------------


def ends(told: Explanation) -> list[object]:
    return [one.change.after for one in told.relaxations if one.change.field == "end"]


def test_a_refused_lease_is_offered_the_latest_end_up_to_which_it_fits(world: Make) -> None:
    here = world(16, 16)
    here.lease(4, 5, vcpu=10)
    here.lease(6, 8, vcpu=16, members=2)
    told = refused(lambda: here.lease(1, 7, vcpu=10, members=2, cleaning=HOUR))
    assert told.stage is Stage.TIME
    (end,) = ends(told)
    assert hours(here, str(end)) == 3
    with pytest.raises(Infeasible):
        here.lease(1, 3.001, vcpu=10, members=2, cleaning=HOUR)
    here.lease(1, hours(here, str(end)), vcpu=10, members=2, cleaning=HOUR)


class JointlyAsked:
    """A solver that notes each problem in which leases move for a request."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.problems: list[bytes] = []

    def solve(self, problem: Problem, *, time_limit: int, seed: int) -> Outcome:
        """See `Solver`."""
        if len({member.role for member in problem.members}) > 1:
            self.problems.append(instance.dumps(problem))
        return self.solver.solve(problem, time_limit=time_limit, seed=seed)


def test_a_smaller_lease_is_tried_once_with_the_leases_that_might_move_for_it(world: Make) -> None:
    """Both the change of the count that is least and the largest count come to one member less."""
    here = world(16, 16)
    here.lease(4, 5, vcpu=10)
    here.lease(6, 8, vcpu=16, members=2)
    asked = JointlyAsked(here.service.env.solver)
    here.service.env = replace(here.service.env, solver=asked)
    refused(lambda: here.lease(1, 7, vcpu=10, members=2, cleaning=HOUR))
    assert max(Counter(asked.problems).values()) == 1


def test_the_end_that_is_offered_may_have_others_make_room(world: Make) -> None:
    here = world(16)
    here.lease(6, 8, vcpu=16)
    here.server(10, until=5, preemptible=True)
    told = refused(lambda: here.lease(2, 7, vcpu=10))
    assert [hours(here, str(end)) for end in ends(told)] == [6]
    assert here.lease(2, 6, vcpu=10).displaced


def test_no_end_is_offered_to_a_lease_that_does_not_fit_when_it_starts(world: Make) -> None:
    here = world(16)
    here.lease(1, 5, vcpu=10)
    assert ends(refused(lambda: here.lease(2, 7, vcpu=10))) == []


def test_an_extension_is_offered_as_far_as_it_goes(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 2, vcpu=10)
    here.lease(4, 5, vcpu=10)
    told = refused(lambda: here.change(made.lease.id, end=6))
    (end,) = ends(told)
    assert hours(here, str(end)) == 4
    assert here.service.store.lease(made.lease.id) == made.lease
    assert here.change(made.lease.id, end=hours(here, str(end))).lease.terms.period.end == here.at(
        4
    )
    # Nothing less than what it has is an offer.
    assert ends(refused(lambda: here.change(made.lease.id, end=6))) == []


def test_growth_that_is_refused_says_until_when_it_fits(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 6, vcpu=4)
    here.lease(3, 5, vcpu=8)
    told = refused(lambda: here.change(made.lease.id, counts={"web": 3}))
    assert [hours(here, str(end)) for end in ends(told)] == [3]
    here.change(made.lease.id, counts={"web": 3}, end=3)


# --- lead and cleaning --------------------------------------------------------------------------


def less(told: Explanation, field: str) -> list[object]:
    return [one.change.after for one in told.relaxations if one.change.field == field]


def test_a_shorter_lead_is_offered_where_it_alone_helps(world: Make) -> None:
    here = world(16, 16)
    here.lease(0, 2.25, vcpu=16)
    here.lease(0, 2.5, vcpu=16)
    told = refused(lambda: here.lease(4, 6, vcpu=10, members=2, lead=2 * HOUR))
    # An hour and a half would do: others' ends are told on the hour.
    assert (told.stage, less(told, "lead"), less(told, "cleaning")) == (Stage.TIME, ["PT1H"], [])
    as_operator = refused(
        lambda: here.lease(4, 6, vcpu=10, members=2, lead=2 * HOUR, caller=OPERATOR)
    )
    assert less(as_operator, "lead") == ["PT1H30M"]
    here.lease(4, 6, vcpu=10, members=2, lead=HOUR)


def test_no_lead_at_all_may_be_what_helps(world: Make) -> None:
    here = world(16)
    here.lease(1, 3, vcpu=16)
    told = refused(lambda: here.lease(3, 4, vcpu=10, lead=HOUR))
    assert less(told, "lead") == ["PT0S"]
    here.lease(3, 4, vcpu=10)


def test_a_shorter_cleaning_is_offered_where_it_alone_helps(world: Make) -> None:
    here = world(16, 16)
    here.lease(5.25, 7, vcpu=16)
    here.lease(5.5, 7, vcpu=16)
    told = refused(lambda: here.lease(2, 4, vcpu=10, cleaning=2 * HOUR, lead=HOUR))
    assert (less(told, "cleaning"), less(told, "lead")) == (["PT1H"], [])
    here.lease(2, 4, vcpu=10, cleaning=HOUR, lead=HOUR)


def test_neither_is_offered_where_both_are_too_long(world: Make) -> None:
    here = world(16)
    here.lease(1, 3.5, vcpu=16)
    here.lease(6.5, 8, vcpu=16)
    told = refused(lambda: here.lease(4, 6, vcpu=10, lead=HOUR, cleaning=HOUR))
    assert not less(told, "lead")
    assert not less(told, "cleaning")


def test_a_stay_until_an_instant_is_told_a_window_as_long_as_one(world: Make) -> None:
    here = world(16)
    here.lease(1, 5, vcpu=16)
    told = refused(lambda: here.ensemble(10, until=3))
    assert offered(told)["until"] == "2026-11-21T10:00:00Z"
    assert told.earliest is not None
    window = told.earliest
    assert (window.start, window.end, window.beyond) == (here.at(5), here.at(8), True)
    lease = refused(lambda: here.lease(2, 3, vcpu=10)).earliest
    assert lease is not None
    assert (lease.start, lease.beyond) == (here.at(5), False)


def test_a_later_start_that_would_do_is_the_earliest_one(world: Make) -> None:
    here = world(16)
    here.server(8, until=1)
    here.lease(2, 5, vcpu=4)
    told = refused(lambda: here.ensemble(10))
    assert told.earliest is not None
    assert (told.earliest.start, told.earliest.proved) == (here.at(1), True)
    assert offered(told)["start"] == "2026-11-21T10:00:00Z"


def test_a_stay_may_last_until_its_host_is_away(world: Make) -> None:
    here = world(16)
    planning = PlanRequest(WindowKind.MAINTENANCE, ("h0",), start=here.at(4), end=here.at(6))
    plan_window(here.service.env, OPERATOR, planning, here.naming())
    told = refused(lambda: here.ensemble(10, until=9))
    assert offered(told)["until"] == "2026-11-21T13:00:00Z"
    here.ensemble(10, until=4)
    told = refused(lambda: here.lease(4, 9, vcpu=10))
    assert ends(told) == []
    assert [hours(here, str(end)) for end in ends(refused(lambda: here.lease(1, 9, vcpu=2)))] == [4]


# --- changes ------------------------------------------------------------------------------------


def test_a_refused_change_says_what_holds_wherever_its_members_are(world: Make) -> None:
    here = world(10, 6)
    roles = [
        {"name": "big", "count": 1, "resources": {"VCPU": 6}},
        {"name": "small", "count": 1, "resources": {"VCPU": 5}},
    ]
    made = here.lease(1, 6, body={"name": "e", "members": roles}, emptiest=True)
    assert [here.host_of(made, member) for member in (0, 1)] == here.hosts
    told = refused(lambda: here.change(made.lease.id, counts={"small": 3}))
    # With both where they are there is no room for another; with both elsewhere there is.
    assert [(one.change.name, one.change.after) for one in told.relaxations] == [("small", 2)]
    grown = here.change(made.lease.id, counts={"small": 2})
    assert [here.host_of(grown, member) for member in (0, 1, 2)] == [
        here.hosts[1],
        here.hosts[0],
        here.hosts[0],
    ]
