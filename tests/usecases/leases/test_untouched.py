"""Whom a lease lets use its places until it begins, and who stays away."""

from collections.abc import Callable

from tests.usecases.leases.conftest import World
from tests.usecases.leases.test_obstacles import booked, refused
from tests.usecases.leases.test_reasons import offered

from moorage.domain.explain import Stage
from moorage.domain.leases import Yielding
from moorage.domain.period import FOREVER, HOUR, MINUTE
from moorage.testing.service import OTHER, TENANT
from moorage.usecases.leases.cancel import cancel_lease

Make = Callable[..., World]
BOUNDED, PREEMPTIBLE = frozenset({Yielding.BOUNDED}), frozenset({Yielding.PREEMPTIBLE})
NOBODY: frozenset[Yielding] = frozenset()
NAME = "lease L1 from 2026-11-21T12:00:00Z to 2026-11-21T15:00:00Z"


def test_who_would_have_to_go_is_kept_away(world: Make) -> None:
    here = world(16)
    here.lease(4, 6, vcpu=16, lead=HOUR, before_start=BOUNDED)
    told = refused(lambda: here.ensemble(2, preemptible=True))
    assert (told.stage, booked(told)) == (Stage.TIME, [NAME])
    # Whoever ends in time is let in: up to the lead, and no longer.
    refused(lambda: here.ensemble(2, until=3.01))
    (member,) = here.ensemble(2, until=3).ensemble.members
    assert here.booking(member.uuid).period.end == here.at(3)


def test_who_ends_by_itself_is_kept_away(world: Make) -> None:
    here = world(16)
    here.lease(4, 6, vcpu=16, lead=HOUR, before_start=PREEMPTIBLE)
    told = refused(lambda: here.ensemble(2, until=1))
    assert (told.stage, booked(told)) == (Stage.TIME, [NAME])
    (member,) = here.ensemble(2, preemptible=True, until=9).ensemble.members
    assert here.booking(member.uuid).period.end == here.at(3) - 5 * MINUTE


def test_where_nobody_is_let_in_others_are_elsewhere(world: Make) -> None:
    here = world(16, 16)
    lease = here.lease(4, 6, vcpu=16, before_start=NOBODY)
    own = here.host_of(lease)
    for more in ({"until": 1.0}, {"preemptible": True}):
        made = here.ensemble(4, 2, **more)
        hosts = {here.booking(one.uuid).provider for one in made.ensemble.members}
        assert hosts == set(here.hosts) - {own}
    # Another lease is beside it in time, whatever it says.
    assert here.lease(1, 4, vcpu=16, caller=OTHER).decision.places
    cancel_lease(here.service.env, TENANT, lease.lease.id)
    here.ensemble(4, 2, until=0.5)


def test_nothing_is_offered_that_it_does_not_let_in(world: Make) -> None:
    here = world(16)
    here.lease(4, 6, vcpu=16, before_start=NOBODY)
    told = refused(lambda: here.ensemble(2))
    assert offered(told) == {"start": "2026-11-21T15:00:00Z"}
    assert offered(refused(lambda: here.ensemble(2, until=1))) == {}


def test_who_is_there_already_stays_and_a_lease_that_has_begun_shuts_nobody_out(
    world: Make,
) -> None:
    here = world(16)
    (early,) = here.ensemble(2, until=2).ensemble.members
    server = here.server(4, preemptible=True)
    lease = here.lease(4, 6, vcpu=12, before_start=NOBODY)
    assert here.booking(early.uuid).period.end == here.at(2)
    assert here.booking(server).period.end == FOREVER
    refused(lambda: here.ensemble(1, until=1))
    here.go_to(4)
    here.begin(lease.lease.id)
    assert not here.service.store.exclusive_until_start()
