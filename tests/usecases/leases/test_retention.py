"""Retention: what is over is deleted after its time, and nothing that somebody uses."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import pytest
from tests.api.leases.conftest import ONE, Door, instances
from tests.usecases.leases.conftest import World
from tests.usecases.leases.test_life import claim, lease, work

from moorage.domain.changes import Changeset, DeleteAllocations
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY, Duration
from moorage.domain.quotas import QuotaDefaults
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.retention import EVERY, Retention, retention_period
from moorage.usecases.ledger.audit import audit
from moorage.usecases.shared.limits import Limits

Worlds = Callable[..., World]
DAYS = 24
"""Hours, in which worlds count."""


@dataclass
class Watch:
    """A stopwatch that somebody sets, in seconds."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def settle(service: Service, age: Duration | None = 90 * DAY) -> None:
    """Let one worker look until it finds nothing more."""
    limits = replace(service.env.limits, records_age=age)
    rounds = Retention(replace(service.env, limits=limits))
    for _ in range(100):
        if not rounds.run_round():
            return
    raise AssertionError("it finds more for ever")


def test_a_lease_is_kept_for_its_time_and_deleted_with_all_of_it(world: Worlds) -> None:
    here = world(4)
    closed = lease(here, 2, 6)
    stays = lease(here, 2, 300 * DAYS)
    here.go_to(7)
    work(here)
    for days, there in ((89, True), (91, False)):
        here.go_to(days * DAYS)
        work(here)
        settle(here.service)
        found = [one.id for one in here.service.store.leases(project_id=None)]
        assert found == ([closed.id, stays.id] if there else [stays.id])
    with pytest.raises(NotFound):
        here.service.store.ensemble(closed.ensemble_id)
    with pytest.raises(NotFound):
        here.service.store.decision(closed.decision_id)
    assert here.service.store.effects(closed.id) == []
    assert here.service.store.lease(stays.id).state is LeaseState.ACTIVE
    assert audit(here.service.store, OPERATOR, None).findings == ()


def test_servers_that_stay_keep_their_lease_and_their_allocations(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 2, 6)
    here.go_to(2)
    work(here)
    server = claim(here, one)
    booked = here.service.store.bookings(consumer=server)
    for hours in (6, 7, 200 * DAYS):
        here.go_to(hours)
        work(here)
        settle(here.service)
        assert here.service.store.bookings(consumer=server) == booked
    assert here.service.store.lease(one.id).state is LeaseState.CLOSED
    here.service.store.commit(Changeset((DeleteAllocations(server),), releases_places=True))
    settle(here.service)
    with pytest.raises(NotFound):
        here.service.store.lease(one.id)
    assert audit(here.service.store, OPERATOR, None).findings == ()


def test_many_go_a_few_at_a_time_and_the_next_round_comes_later(world: Worlds) -> None:
    here = world(4)
    store = here.service.store
    for _ in range(250):
        cancel_lease(here.service.env, OPERATOR, lease(here, 2, 3).id, None)
    here.go_to(100 * DAYS)
    watch = Watch()
    rounds = Retention(replace(here.service.env, stopwatch=watch))
    sizes = []
    for _ in count():
        before = len(store.leases(project_id=None))
        more = rounds.run_round()
        sizes.append(before - len(store.leases(project_id=None)))
        if not more:
            break
    assert [one for one in sizes if one] == [100, 100, 50]
    assert store.ensembles(project_id=None) == []
    revision = store.snapshot().revision
    assert not rounds.run_round()
    watch.seconds += EVERY / 1_000_000
    while rounds.run_round():
        pass
    assert store.snapshot().revision == revision


def test_for_ever_deletes_nothing_and_quotas_are_counted_to_their_end(world: Worlds) -> None:
    here = world(4)
    cancel_lease(here.service.env, OPERATOR, lease(here, 2, 3).id, None)
    here.go_to(10_000 * DAYS)
    settle(here.service, None)
    assert len(here.service.store.leases(project_id=None)) == 1
    limits = Limits(records_age=DAY, quotas=QuotaDefaults(window=30 * DAY))
    assert retention_period(limits) == 30 * DAY
    assert retention_period(replace(limits, records_age=40 * DAY)) == 40 * DAY
    assert retention_period(replace(limits, records_age=None)) is None


@pytest.fixture(params=["sqlite", "postgres"])
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    here = request.param == "sqlite"
    made = Door(ONE, database=None if here else request.getfixturevalue("postgres_url"))
    yield made
    made.service.close()


def test_the_lease_api_knows_a_deleted_lease_no_more(door: Door) -> None:
    made = door.lease("09:00", "10:00", instances(1, 2))
    assert made.status_code == 201, made.text
    path = f"/leases/{made.json['lease']['id']}"
    assert door.call("DELETE", path).status_code == 204
    door.service.clock.pass_by(91 * DAY)
    settle(door.service)
    assert door.call("GET", path).status_code == 404
    assert door.call("DELETE", path).status_code == 404
    assert door.call("GET", "/leases").json == {"leases": []}
    assert audit(door.service.store, OPERATOR, None).findings == ()
    assert door.service.store.ensembles(project_id=None) == []
