"""What is shown of the places of a lease that is over: of servers that should be gone."""

from collections.abc import Callable

from tests.usecases.leases.conftest import World
from tests.usecases.leases.test_life import claim, lease, work

from moorage.domain.leases import LeaseState
from moorage.testing.service import TENANT
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.leases.queries import remaining
from moorage.usecases.ledger.allocations import release

Make = Callable[..., World]


def left(here: World, lease_id: str) -> tuple[int, int, int]:
    """Places, those that servers have, and those to be claimed."""
    (one,) = remaining(here.service.store, here.service.store.lease(lease_id))
    return one.count, one.claimed, one.remaining


def test_a_server_that_stays_is_shown_until_it_is_gone(world: Make) -> None:
    here = world(4)
    one = lease(here, 1, 3)
    here.go_to(1)
    work(here)
    server = claim(here, one)
    here.go_to(3)
    work(here)
    store = here.service.store
    assert store.lease(one.id).state is LeaseState.CLOSED
    assert left(here, one.id) == (1, 1, 0)
    release(store, server)
    assert left(here, one.id) == (0, 0, 0)
    # What the ensemble gets afterwards is none of this lease's.
    again = here.lease(4, 5, ensemble_id=one.ensemble_id)
    assert left(here, one.id) == (0, 0, 0)
    assert again.lease.ensemble_id == one.ensemble_id


def test_of_a_lease_whose_ensemble_is_gone_nothing_is_left(world: Make) -> None:
    here = world(4)
    one = lease(here, 1, 3)
    here.go_to(3)
    work(here)
    delete_ensemble(here.service.env, TENANT, one.ensemble_id, None)
    assert left(here, one.id) == (0, 0, 0)
