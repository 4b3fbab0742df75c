"""What is granted, and what is not: windows, neighbours, whole ensembles."""

from collections.abc import Callable

import pytest
from tests.usecases.leases.conftest import World, described, named

from moorage.domain.bookings import BookingState
from moorage.domain.decisions import DecisionState
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import (
    CapacityExceeded,
    DuplicateName,
    Infeasible,
    InUse,
    InvalidDescription,
    LimitExceeded,
    NotFound,
    WrongState,
)
from moorage.domain.explain import Explanation
from moorage.domain.leases import LeaseState, Terms
from moorage.domain.period import HOUR, MINUTE, Period
from moorage.testing.service import OPERATOR, OTHER, TENANT
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.decide import decide_ensemble
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.queries import own_lease, remaining
from moorage.usecases.leases.requests import LeaseRequest

Make = Callable[..., World]


def test_a_lease_is_booked_for_its_period_with_lead_and_cleaning(world: Make) -> None:
    here = world(64)
    made = here.lease(1, 3, vcpu=4, members=2, lead=HOUR // 2, cleaning=10 * MINUTE)
    assert made.lease.state is LeaseState.PENDING
    assert made.lease.decision_id == made.decision.id
    assert made.decision.lease_id == made.lease.id
    assert made.decision.state is DecisionState.HELD
    assert made.decision.expires_at == here.at(3)
    for member in made.ensemble.members:
        booking = here.booking(member.uuid)
        assert booking.state is BookingState.RESERVED
        assert booking.period == Period(here.at(0.5), here.at(3) + 10 * MINUTE)
        assert booking.lapses_at == here.at(3)
    (left,) = remaining(here.service.store, made.lease)
    assert (left.reservation.role, left.count, left.claimed, left.remaining) == ("web", 2, 0, 2)


def test_two_leases_back_to_back_on_one_host(world: Make) -> None:
    here = world(64)
    here.lease(1, 3, vcpu=64)
    here.lease(3, 5, vcpu=64)
    for start, end in ((2, 4), (0, 5), (4, 5), (2.999, 3)):
        with pytest.raises(Infeasible):
            here.lease(start, end, vcpu=1)
    here.lease(0, 1, vcpu=64)


def test_the_cleaning_of_one_lease_is_not_the_lead_of_the_next(world: Make) -> None:
    here = world(64)
    here.lease(1, 3, vcpu=64, cleaning=30 * MINUTE)
    with pytest.raises(Infeasible):
        here.lease(3, 5, vcpu=1)
    with pytest.raises(Infeasible):
        here.lease(4, 5, vcpu=1, lead=31 * MINUTE)
    here.lease(4, 5, vcpu=64, lead=30 * MINUTE)


def test_all_members_of_all_roles_are_placed_jointly_or_none(world: Make) -> None:
    here = world(16, 16)
    apart = {"name": "apart", "type": "anti-affinity", "members": ["*"]}
    body = described(members=2, vcpu=8, policies=[apart])
    made = here.lease(1, 3, body=body)
    assert len({place.host for place in made.decision.places.values()}) == 2
    with pytest.raises(Infeasible):
        here.lease(1, 3, body=described(members=3, vcpu=1, policies=[apart]))
    assert len(here.service.store.leases(project_id=None)) == 1
    assert len(here.service.store.ensembles(project_id=None)) == 1


def test_an_open_ended_server_refuses_a_lease_and_a_bounded_one_does_not(world: Make) -> None:
    here = world(16)
    server = here.server(10, until=2)
    here.lease(2, 4, vcpu=16)
    with pytest.raises(Infeasible):
        here.lease(1.5, 2, vcpu=8)
    assert here.booking(server).period.end == here.at(2)
    other = world(16)
    other.server(10)
    with pytest.raises(Infeasible):
        other.lease(2000, 2001, vcpu=8)


def test_an_open_ended_ensemble_is_never_given_promised_capacity(world: Make) -> None:
    here = world(16)
    here.lease(100, 101, vcpu=10)
    with pytest.raises(Infeasible):
        here.ensemble(7)
    here.ensemble(6)
    with pytest.raises(CapacityExceeded):
        here.server(1)


def test_a_bounded_ensemble_uses_promised_capacity_until_the_lease(world: Make) -> None:
    here = world(16)
    here.lease(4, 5, vcpu=16)
    made = here.ensemble(16, until=4)
    assert made.decision is not None
    assert made.decision.period == Period(here.at(0), here.at(4))
    with pytest.raises(Infeasible):
        here.ensemble(1, until=4.001)
    with pytest.raises(InvalidDescription):
        here.ensemble(1, until=0)


def test_a_server_past_its_end_counts_as_one_without(world: Make) -> None:
    here = world(16)
    here.server(10, until=2)
    here.go_to(2)
    with pytest.raises(Infeasible):
        here.lease(10, 11, vcpu=7)
    here.lease(10, 11, vcpu=6)


def test_a_given_ensemble_has_one_placement_at_a_time(world: Make) -> None:
    here = world(16)
    placed = here.ensemble(2)
    with pytest.raises(WrongState):
        here.lease(1, 2, ensemble_id=placed.ensemble.id)
    here.go_to(1)  # the hold has lapsed
    made = here.lease(2, 3, ensemble_id=placed.ensemble.id)
    assert made.ensemble.id == placed.ensemble.id
    with pytest.raises(WrongState):
        here.lease(4, 5, ensemble_id=placed.ensemble.id)
    with pytest.raises(WrongState):
        decide_ensemble(
            here.service.env, TENANT, placed.ensemble.id, DecisionOptions(), here.naming()
        )
    with pytest.raises(NotFound):
        here.lease(4, 5, ensemble_id=placed.ensemble.id, caller=OTHER)


def test_an_ensemble_with_a_lease_is_not_deleted(world: Make) -> None:
    here = world(16)
    made = here.lease(2, 3)
    with pytest.raises(InUse):
        delete_ensemble(here.service.env, TENANT, made.ensemble.id, None)


def test_the_same_request_gets_the_same_answer(world: Make) -> None:
    here = world(16)
    asked = LeaseRequest(
        "l",
        Terms(Period(here.at(1), here.at(2))),
        description=read_ensemble(described(vcpu=16)),
    )
    naming = RequestIdentity(named(1), digest="x")
    first = create_lease(here.service.env, TENANT, asked, naming)
    again = create_lease(here.service.env, TENANT, asked, naming)
    assert (again.lease, again.decision) == (first.lease, first.decision)
    with pytest.raises(DuplicateName):
        create_lease(here.service.env, TENANT, asked, RequestIdentity(named(1), digest="y"))
    refused = RequestIdentity(named(2), digest="z")
    ids = set()
    for _ in range(2):
        with pytest.raises(Infeasible) as no:
            create_lease(here.service.env, TENANT, asked, refused)
        assert isinstance(no.value.explanation, Explanation)
        ids.add(no.value.explanation.id)
    assert len(ids) == 1


def test_a_dry_run_writes_nothing(world: Make) -> None:
    here = world(16)
    told = here.lease(1, 2, dry_run=True)
    assert told.lease.decision_id == told.decision.id
    assert here.service.store.leases(project_id=None) == []
    assert here.service.store.ensembles(project_id=None) == []


@pytest.mark.parametrize(
    ("start", "end", "error"),
    [
        (-1, 2, InvalidDescription),
        (-3, -1, InvalidDescription),
        (1, 1, InvalidDescription),
        (2, 1, InvalidDescription),
        (1, 24 * 366 + 2, LimitExceeded),
        (24 * 1200, 24 * 1200 + 1, LimitExceeded),
        (24 * 36_500, 24 * 36_501, LimitExceeded),
    ],
)
def test_impossible_windows_are_refused(
    world: Make, start: float, end: float, error: type[Exception]
) -> None:
    here = world(16)
    with pytest.raises(error):
        here.lease(start, end)
    assert here.service.store.leases(project_id=None) == []


def test_a_start_just_now_is_now(world: Make) -> None:
    here = world(16)
    made = here.lease(-0.01, 1)
    assert made.lease.terms.period.start == here.now


def test_too_many_reservations_and_no_places_at_all(world: Make) -> None:
    here = world(16)
    roles = [{"name": f"r{n}", "count": 1, "resources": {"VCPU": 1}} for n in range(201)]
    with pytest.raises(LimitExceeded):
        here.lease(1, 2, body={"name": "e", "members": roles})
    with pytest.raises(InvalidDescription):
        here.lease(1, 2, body={"name": "e"})
    with pytest.raises(InvalidDescription):
        create_lease(
            here.service.env,
            TENANT,
            LeaseRequest("l", Terms(Period(here.at(1), here.at(2)))),
            here.naming(),
        )


def test_a_lease_is_its_projects(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 2)
    store = here.service.store
    assert own_lease(store, OPERATOR, made.lease.id) == made.lease
    with pytest.raises(NotFound):
        own_lease(store, OTHER, made.lease.id)


def test_leases_do_not_count_as_held_places(world: Make) -> None:
    here = world(64)
    here.lease(1, 2, members=5)
    assert here.service.store.held(TENANT.project_id) == 0


def test_a_neighbours_exclusive_lease_closes_a_host_only_while_it_lasts(world: Make) -> None:
    here = world(16)
    alone = {"name": "alone", "type": "exclusive", "members": ["*"]}
    here.lease(4, 6, body=described(policies=[alone]))
    with pytest.raises(Infeasible):
        here.lease(3, 5, caller=OTHER)
    here.lease(3, 4, caller=OTHER)
    here.lease(6, 7, caller=OTHER)
    with pytest.raises(Infeasible):
        here.lease(2, 8, body=described(policies=[alone]))
    here.lease(1, 3, body=described(policies=[alone]))
    here.ensemble(1, until=1, caller=OTHER)
