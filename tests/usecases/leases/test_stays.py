"""Ensembles that end, or may be ended: their terms outlive renewals, growth and claims."""

from collections.abc import Callable

import pytest
from tests.usecases.leases.conftest import World, described, named

from moorage.domain.changes import ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.effects import EffectKind
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, HOUR, MINUTE, format_instant
from moorage.domain.tickets import ticket_class
from moorage.domain.virtual_classes import PREEMPTIBLE
from moorage.testing.service import OPERATOR, TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.hold import renew
from moorage.usecases.claims.outcome import activate, fail
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.ensembles.change import ChangeRequest, change_ensemble
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.ledger.allocations import allocate, release
from moorage.usecases.preemption.stay_ends import EndReason, decided_ends, stay_ends

Make = Callable[..., World]
SIZE = {"resources": {"VCPU": 2}}


def test_growth_keeps_the_terms_of_an_ensemble(world: Make) -> None:
    here = world(16)
    made = here.ensemble(2, until=4, preemptible=True)
    change = ChangeRequest(members=[{"name": "web", "count": 2}])
    grown = change_ensemble(here.service.env, TENANT, made.ensemble.id, change, None)
    assert grown.decision is not None
    assert grown.decision.preemptible
    assert len(grown.ensemble.members) == 2
    for member in grown.ensemble.members:
        booking = here.booking(member.uuid)
        assert (booking.period.end, booking.preemptible) == (here.at(4), True)


def test_a_server_that_presents_a_claim_keeps_the_end_that_was_declared(world: Make) -> None:
    here = world(16)
    lease = here.lease(3, 5, vcpu=16)
    made = here.ensemble(2, until=8, preemptible=True)
    assert made.decision is not None
    env, naming = here.service.env, here.naming()
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 2}})
    claim(env, TENANT, made.decision.id, second, naming)
    owner = Consumer(named(1), TENANT.project_id, "nova", "INSTANCE")
    write = ReplaceAllocations(owner, {here.hosts[0]: {"VCPU": 2}}, None)
    allocate(env.store, [write], ids=env.ids, request_id=f"req-{naming.id}")
    booking = here.booking(named(1))
    assert (booking.period.end, booking.yields_to) == (here.at(3) - 5 * MINUTE, lease.lease.id)
    assert booking.declared_end == here.at(8)
    cancel_lease(env, TENANT, lease.lease.id)
    assert here.booking(named(1)).period.end == here.at(8)


def test_a_renewed_hold_and_its_server_yield_as_before(world: Make) -> None:
    here = world(16)
    lease = here.lease(3, 5, vcpu=16)
    made = here.ensemble(2, preemptible=True)
    assert made.decision is not None
    env = here.service.env
    renew(env, TENANT, made.decision.id, here.now + 30 * MINUTE, None)
    naming = here.naming()
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 2}})
    claim(env, TENANT, made.decision.id, second, naming)
    activate(env, TENANT, naming.id, named(1))
    booking = here.booking(named(1))
    assert booking.period.end == here.at(3) - 5 * MINUTE
    assert (booking.preemptible, booking.yields_to) == (True, lease.lease.id)


def away(here: World, *hosts: int, start: float, end: float) -> None:
    """Plan that hosts are away for some hours."""
    body = {"kind": "maintenance", "hosts": [f"h{number}" for number in hosts]}
    between = {"start": format_instant(here.at(start)), "end": format_instant(here.at(end))}
    answer = here.service.call(
        "POST", "/capacity/planned", {"window": body | between}, caller=OPERATOR
    )
    assert answer.status_code == 201, answer.json


def test_a_preemptible_stay_lasts_until_its_host_is_away_or_a_lease_needs_it(world: Make) -> None:
    here = world(32, 32, 32, 32)
    away(here, 2, 3, start=3000, end=3024)
    here.server(28, 0, preemptible=True)
    apart = {"name": "apart", "type": "anti-affinity", "members": ["web"]}
    lease = here.lease(3030, 3032, body=described(vcpu=8, members=3, policies=[apart]))
    made = here.ensemble(28, 3, preemptible=True)
    assert made.decision is not None
    booked = [here.booking(member.uuid) for member in made.ensemble.members]
    booked.sort(key=lambda one: here.hosts.index(one.provider))
    ends = [(one.period.end, one.yields_to) for one in booked]
    needed = (here.at(3030) - 5 * MINUTE, lease.lease.id)
    assert ends == [needed, (here.at(3000), None), (here.at(3000), None)]
    because = {end.at: end.because for end in decided_ends(made.decision).values()}
    assert because == {needed[0]: EndReason.PREEMPTED, here.at(3000): EndReason.AWAY}
    renew(here.service.env, TENANT, made.decision.id, here.now + 30 * MINUTE, None)
    env, naming = here.service.env, here.naming()
    going = next(n for n, one in enumerate(made.ensemble.members) if one.name in made.decision.away)
    second = SecondDescription(MemberName("web", going), {"resources": {"VCPU": 28}})
    claim(env, TENANT, made.decision.id, second, naming)
    owner = Consumer(named(1), TENANT.project_id, "nova", "INSTANCE")
    host = here.booking(made.ensemble.members[going].uuid).provider
    write = ReplaceAllocations(owner, {host: {"VCPU": 28}}, None)
    allocate(env.store, [write], ids=env.ids, request_id=f"req-{naming.id}")
    stored = here.service.store.ensemble(made.ensemble.id)
    member_places = locate_members(here.service.store.snapshot(), stored)
    assert len(member_places.places) == 3
    assert {
        end.at: end.because
        for end in stay_ends(here.service.store, member_places.bookings).values()
    } == because


def test_a_preemptible_server_ends_when_its_host_is_away(world: Make) -> None:
    here = world(32)
    away(here, 0, start=24, end=48)
    owner = Consumer(named(1), "project-z", "zoe", "INSTANCE")
    given = {here.hosts[0]: {"VCPU": 28, PREEMPTIBLE: 1}}
    env = here.service.env
    allocate(env.store, [ReplaceAllocations(owner, given, None)], ids=env.ids)
    assert here.booking(named(1)).period.end == here.at(24)


@pytest.mark.parametrize("by", ["ticket", "claim"])
def test_a_preemptible_server_ends_for_a_lease_if_another_one_takes_a_place(
    world: Make, by: str
) -> None:
    """Both are written in one request."""
    here = world(16, 16)
    lease = here.lease(3, 5, vcpu=16)
    made = here.ensemble(2)
    assert made.decision is not None
    env, naming = here.service.env, here.naming()
    (place,) = made.decision.places.values()
    taken = {"VCPU": 2}
    if by == "ticket":
        taken[ticket_class(made.decision.ticket, "web")] = 1
    else:
        second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 2}})
        claim(env, TENANT, made.decision.id, second, naming)
    writes = [
        ReplaceAllocations(
            Consumer(named(number), TENANT.project_id, "nova", "INSTANCE"), {host: amounts}, None
        )
        for number, host, amounts in (
            (1, place.host, taken),
            (2, here.host_of(lease), {"VCPU": 2, PREEMPTIBLE: 1}),
        )
    ]
    allocate(env.store, writes, ids=env.ids, request_id=f"req-{naming.id}")
    assert here.booking(named(1)).decision == made.decision.id
    booking = here.booking(named(2))
    assert (booking.period.end, booking.yields_to) == (here.at(3) - 5 * MINUTE, lease.lease.id)
    told = [one.kind for one in env.store.effects(named(2))]
    assert EffectKind.WARN in told


@pytest.mark.parametrize("late", [False, True])
def test_a_deleted_server_that_ends_for_a_lease_gives_back_what_is_left_of_its_place(
    world: Make, *, late: bool
) -> None:
    here = world(16)
    lease = here.lease(3, 5, vcpu=16)
    made = here.ensemble(2, preemptible=True, hold=4 * HOUR)
    assert made.decision is not None
    env, (member,) = here.service.env, made.ensemble.members
    taken = {here.hosts[0]: {"VCPU": 2, ticket_class(made.decision.ticket, "web"): 1}}
    owner = Consumer(named(1), TENANT.project_id, "nova", "INSTANCE")
    allocate(env.store, [ReplaceAllocations(owner, taken, None)], ids=env.ids)
    here.go_to(3 if late else 1)
    release(env.store, named(1))
    if late:
        assert env.store.bookings(consumer=member.uuid) == []
        return
    allocate(env.store, [ReplaceAllocations(owner, taken, None)], ids=env.ids)
    booking = here.booking(named(1))
    assert (booking.period.end, booking.yields_to) == (here.at(3) - 5 * MINUTE, lease.lease.id)
    cancel_lease(env, TENANT, lease.lease.id)
    assert here.booking(named(1)).period.end == FOREVER


def test_a_failed_claim_gives_back_what_is_left_of_its_place(world: Make) -> None:
    here = world(16)
    lease = here.lease(3, 5, vcpu=16)
    made = here.ensemble(2, preemptible=True)
    assert made.decision is not None
    env, naming, (member,) = here.service.env, here.naming(), made.ensemble.members
    before = here.booking(member.uuid)
    assert before.yields_to == lease.lease.id
    claim(env, TENANT, made.decision.id, SecondDescription(member.name, SIZE), naming)
    fail(env, TENANT, naming.id)
    assert here.booking(member.uuid) == before
