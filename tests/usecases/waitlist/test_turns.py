"""Who asks for more than it was granted comes after those who wait; who keeps what it has need not.

One host of sixteen units. A lease that was in the way of somebody who waits is cancelled, and no
worker has looked at the list since.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.leases.conftest import World, described
from tests.usecases.leases.test_ends_known import offered

from moorage.domain.changes import Changeset, Committed, DeleteAllocations, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible
from moorage.domain.leases import LeaseState, Terms
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, Period
from moorage.domain.waitlist import EntryState, WaitlistEntry
from moorage.testing.service import OTHER, TENANT
from moorage.usecases.claims.claim import SecondDescription
from moorage.usecases.claims.redecide import claim_or_redecide
from moorage.usecases.decide import loop
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseRequest
from moorage.usecases.offers.accept import AcceptanceTerms, accept_offer
from moorage.usecases.waitlist.attempt import try_entry
from moorage.usecases.waitlist.enter import WaitRequest, create_or_wait

Make = Callable[..., World]
RIVAL = Consumer("dddddddd-0000-4000-8000-000000000001", "other", "u", "INSTANCE")


def waits(here: World, start: float, end: float, vcpu: int) -> str:
    """Somebody waits for a lease."""
    terms = Terms(Period(here.at(start), here.at(end)))
    ask = LeaseRequest(name="w", terms=terms, description=read_ensemble(described(vcpu=vcpu)))
    naming = here.naming()
    create_or_wait(here.service.env, OTHER, ask, WaitRequest(latest=here.at(start)), naming)
    assert state(here, naming.id) is EntryState.WAITING
    return naming.id


def state(here: World, entry: str) -> EntryState:
    return here.service.store.waitlist_entry(entry).state


def cancel(here: World, lease: Any) -> None:
    cancel_lease(here.service.env, TENANT, lease.lease.id)


def test_a_dry_run_grants_nobody_and_is_kept_waiting_by_nobody(world: Make) -> None:
    here = world(16)
    first = here.lease(6, 8, vcpu=16)
    entry = waits(here, 6, 8, vcpu=16)
    cancel(here, first)
    told = here.lease(6, 8, vcpu=16, dry_run=True)
    assert told.lease.terms.period.start == here.at(6)
    assert state(here, entry) is EntryState.WAITING
    with pytest.raises(Infeasible):
        here.lease(6, 8, vcpu=16)
    assert state(here, entry) is EntryState.GRANTED


def test_an_entry_that_was_granted_is_not_tried_again(world: Make) -> None:
    """The listing of a dry run has it still, since nothing was written."""
    here, tried = world(16), list[str]()
    first = here.lease(6, 8, vcpu=16)
    waiting = waits(here, 6, 8, vcpu=16)
    cancel(here, first)

    def granted(env: UseCaseEnvironment, entry: WaitlistEntry, seconds: float) -> bool:
        tried.append(entry.id)
        return try_entry(env, entry, seconds)

    env = replace(here.service.env, store=here.service.store.dry_run(), try_entry=granted)
    terms = Terms(Period(here.at(6), here.at(8)))
    ask = LeaseRequest(name="l", terms=terms, description=read_ensemble(described(vcpu=16)))
    create_lease(env, TENANT, ask, here.naming())
    assert tried == [waiting]
    assert state(here, waiting) is EntryState.WAITING


@pytest.mark.parametrize("lead", [None, HOUR], ids=["as it was offered", "longer"])
def test_an_offer_is_accepted_at_once_and_a_longer_one_in_its_turn(
    world: Make, lead: int | None
) -> None:
    here = world(16)
    first = here.lease(6, 8, vcpu=16)
    entry = waits(here, 6, 8, vcpu=16)
    offer = offered(here, 8, 10, vcpu=16)
    cancel(here, first)
    if lead is None:
        accepted = accept_offer(here.service.env, TENANT, offer, AcceptanceTerms())
        assert accepted.lease.state is LeaseState.PENDING
        assert state(here, entry) is EntryState.WAITING, "nothing of it was for those who wait"
        return
    with pytest.raises(Infeasible):
        accept_offer(here.service.env, TENANT, offer, AcceptanceTerms(lead=lead))
    assert state(here, entry) is EntryState.GRANTED


def test_a_place_of_another_size_is_asked_for_in_its_turn(world: Make) -> None:
    here = world(16)
    made = here.ensemble(4)
    assert made.decision is not None
    first = here.lease(1, 3, vcpu=12)
    entry = waits(here, 1, 3, vcpu=12)
    cancel(here, first)
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 8}})
    with pytest.raises(Infeasible):
        claim_or_redecide(here.service.env, TENANT, made.decision.id, second, here.naming())
    assert state(here, entry) is EntryState.GRANTED


def test_an_active_lease_takes_its_turn_for_a_larger_place_too(world: Make) -> None:
    here = world(16)
    lease = here.lease(0, 6, vcpu=4)
    here.begin(lease.lease.id)
    first = here.lease(1, 3, vcpu=12)
    entry = waits(here, 1, 3, vcpu=12)
    cancel(here, first)
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 8}})
    with pytest.raises(Infeasible):
        claim_or_redecide(here.service.env, TENANT, lease.decision.id, second, here.naming())
    assert state(here, entry) is EntryState.GRANTED


class Quicker:
    """The ledger; somebody is quicker than the first decision, and gone before it is alone."""

    def __init__(self, here: World, then: Callable[[], None]) -> None:
        self._here, self._then = here, then
        self._acts = [self._take]

    def _take(self) -> None:
        change = ReplaceAllocations(RIVAL, {self._here.hosts[0]: {"VCPU": 12}}, None)
        self._here.service.store.commit(Changeset((change,)))

    def commit(self, changeset: Changeset) -> Committed:
        if self._acts:
            self._acts.pop()()
        return self._here.service.store.commit(changeset)

    def commit_alone(self, propose: Callable[[], Changeset | None]) -> Committed | None:
        self._here.service.store.commit(Changeset((DeleteAllocations(RIVAL.uuid),)))
        self._then()
        return self._here.service.store.commit_alone(propose)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here.service.store, name)


def test_who_is_alone_lets_those_have_their_turn_who_wait(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease goes just before: whoever waited for its place gets it, not who was overtaken."""
    monkeypatch.setattr(loop, "TURN", 1)
    here = world(16)
    first = here.lease(6, 8, vcpu=4)
    entry = waits(here, 6, 8, vcpu=16)
    store: Any = Quicker(here, lambda: cancel(here, first))
    here.service.env = replace(here.service.env, store=store)
    with pytest.raises(Infeasible):
        here.ensemble(4)
    assert state(here, entry) is EntryState.GRANTED
