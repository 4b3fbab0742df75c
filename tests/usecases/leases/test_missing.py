"""Nobody takes a place of a lease where somebody is still, or nothing is any more."""

from collections.abc import Callable

import pytest
from tests.usecases.leases.conftest import World, named

from moorage.domain.changes import (
    Change,
    Changeset,
    DeleteAllocations,
    PutInventories,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.errors import WrongState
from moorage.domain.leases import reservation_class
from moorage.domain.member_names import MemberName
from moorage.domain.providers import Inventory
from moorage.testing.service import TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.leases.queries import remaining
from moorage.usecases.leases.requests import LeaseResult
from moorage.usecases.ledger.allocations import allocate

Worlds = Callable[..., World]
SERVER = named(7)
NONE = "missing|no place left|its host is out of service"


def active(here: World) -> LeaseResult:
    """A lease of one place, which has begun, after a server that should have gone before it."""
    made = here.lease(3, 5, vcpu=4)
    here.go_to(3)
    here.begin(made.lease.id)
    return made


def claimed(here: World, made: LeaseResult) -> None:
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 4}})
    claim(here.service.env, TENANT, made.decision.id, second, here.naming())


def still(here: World, made: LeaseResult) -> int:
    """How many of its places can be claimed."""
    store = here.service.store
    return sum(one.remaining for one in remaining(store, store.lease(made.lease.id)))


def drawn(here: World, made: LeaseResult) -> None:
    name = reservation_class(made.lease.reservations[0].id)
    owner = Consumer(SERVER, TENANT.project_id, "nova", "INSTANCE")
    write = ReplaceAllocations(owner, {here.hosts[0]: {"VCPU": 4, name: 1}}, None)
    allocate(here.service.store, [write], ids=here.service.env.ids)


@pytest.mark.parametrize("take", [claimed, drawn], ids=["claim", "draw"])
def test_a_place_is_not_taken_while_a_server_overstays_there(
    world: Worlds, take: Callable[[World, LeaseResult], None]
) -> None:
    here = world(4)
    late = here.server(3, until=2)
    made = active(here)
    with pytest.raises(WrongState, match=NONE):
        take(here, made)
    here.service.store.commit(Changeset((DeleteAllocations(late),)))
    take(here, made)


@pytest.mark.parametrize("take", [claimed, drawn], ids=["claim", "draw"])
@pytest.mark.parametrize("lost", ["host", "capacity"])
def test_a_place_is_not_taken_where_it_was_lost(
    world: Worlds, take: Callable[[World, LeaseResult], None], lost: str
) -> None:
    here = world(4)
    made = active(here)
    host = here.hosts[0]

    def left(vcpu: int, *traits: str) -> Change:
        if lost == "host":
            return PutTraits(host, frozenset(traits), None)
        return PutInventories(host, (Inventory("VCPU", vcpu),), None)

    here.service.store.commit(Changeset((left(3, "COMPUTE_STATUS_DISABLED"),)))
    with pytest.raises(WrongState, match=NONE):
        take(here, made)
    assert still(here, made) == 0
    here.service.store.commit(Changeset((left(4),)))
    assert still(here, made) == 1
    take(here, made)
    assert still(here, made) == 0
