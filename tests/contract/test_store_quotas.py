"""The store contract: quotas, what leases count for, and writers who meet at a limit."""

from dataclasses import replace

import pytest
from tests.contract.conftest import SetClock, how_many_pass
from tests.contract.test_store_bookings import write

from moorage.domain.changes import BoundOffers, Changeset, DropQuota, PutLease, PutQuota
from moorage.domain.errors import LimitExceeded, NotFound, QuotaExceeded
from moorage.domain.leases import Lease, LeaseState, Terms
from moorage.domain.offers import Offer, OfferState
from moorage.domain.period import Period
from moorage.domain.quotas import Quota, QuotaDefaults, QuotaName, QuotaUse
from moorage.store import Ledger

DEFAULTS = QuotaDefaults({QuotaName.UNITS: 5}, 1_000)


def lease(name: str, units: int, start: int = 5_000, end: int = 9_000) -> Lease:
    terms = Terms(Period(start, end))
    return Lease(name, "p", "u", name, "e", "d", terms, LeaseState.PENDING, (), units)


def test_what_is_said_of_a_project_comes_back(store: Ledger) -> None:
    quota = Quota("p", {QuotaName.UNITS: 7, QuotaName.HORIZON: 9}, 5)
    write(store, PutQuota(quota), PutQuota(Quota("o")))
    assert store.quota("p") == quota
    assert store.quotas() == [Quota("o"), quota]
    write(store, PutQuota(replace(quota, limits={})), DropQuota("o"))
    assert store.quotas() == [replace(quota, limits={})]
    with pytest.raises(NotFound):
        write(store, DropQuota("o"))


def test_a_lease_counts_for_what_it_was_and_is(store: Ledger, clock: SetClock) -> None:
    one = lease("l", 4)
    write(store, PutLease(one, None))
    assert store.uses_of_lease("l") == (QuotaUse(4, 5_000, 9_000),)
    clock.instant = 6_000
    write(store, PutLease(replace(one, units=2), 0))
    assert store.uses_of_lease("l") == (QuotaUse(4, 5_000, 6_000), QuotaUse(2, 6_000, 9_000))
    clock.instant = 7_000
    write(store, PutLease(replace(one, units=2, state=LeaseState.CLOSED), 1))
    assert store.uses_of_lease("l") == (QuotaUse(4, 5_000, 6_000), QuotaUse(2, 6_000, 7_000))
    lessee = store.lessee("p", 0)
    assert (len(lessee.uses), lessee.ends) == (2, [])
    assert store.lessee("p", 6_500).uses == [QuotaUse(2, 6_000, 7_000)]
    assert store.lessee("p", 0, but="l").uses == []


def test_what_counted_for_nothing_before_is_judged_like_a_new_lease(store: Ledger) -> None:
    within = QuotaDefaults({QuotaName.LEASES: 1, QuotaName.MAX_LENGTH: 4_000}, 1_000)
    first, second = lease("l1", 1), lease("l2", 0)
    write(store, PutLease(first, None, within), PutLease(second, None))
    with pytest.raises(QuotaExceeded, match="leases limit 1 used 1"):
        write(store, PutLease(replace(second, units=1), 0, within))
    write(store, PutLease(replace(first, name="other"), 0, within))


def test_of_writers_who_meet_at_a_limit_as_many_pass_as_it_allows(store: Ledger) -> None:
    commits = [Changeset((PutLease(lease(f"l{n}", 2), None, DEFAULTS),)) for n in range(8)]
    assert how_many_pass(store, commits, QuotaExceeded) == 2
    assert [one.units for one in store.lessee("p", 0).uses] == [2, 2]
    assert len(store.leases(project_id="p")) == 2


def offer(name: str, places: int, expires_at: int = 3_000) -> Lease:
    proposed = Offer("r", expires_at, proved=True, score=1.0, places=places)
    return replace(lease(name, 0), state=LeaseState.OFFERED, offer=proposed)


def test_of_offers_made_at_once_as_many_pass_as_a_project_may_have(store: Ledger) -> None:
    bound = BoundOffers("p", offers=3, held=100, requested=2)
    commits = [Changeset((PutLease(offer(f"o{n}", 2), None), bound)) for n in range(8)]
    assert how_many_pass(store, commits, LimitExceeded) == 3
    assert len(store.offers(project_id="p")) == 3


def test_offers_that_are_over_and_those_of_others_do_not_count(
    store: Ledger, clock: SetClock
) -> None:
    bound = BoundOffers("p", offers=1, held=2, requested=2)
    write(store, PutLease(replace(offer("x", 2), project_id="other"), None))
    write(store, PutLease(offer("o1", 2), None), bound)
    with pytest.raises(LimitExceeded, match="offers limit 1 used 1 requested 1"):
        write(store, PutLease(offer("o2", 2), None), bound)
    clock.instant = 4_000
    write(store, PutLease(offer("o2", 2, 5_000), None), bound)
    with pytest.raises(QuotaExceeded, match="held-units limit 3 used 0 requested 4"):
        write(store, PutLease(offer("o3", 2, 5_000), None), replace(bound, offers=5, held=3))
    write(store, PutQuota(Quota("p", {QuotaName.HELD: 4})))
    write(store, PutLease(offer("o3", 2, 5_000), None), replace(bound, offers=5, held=3))
    gone = replace(offer("o3", 2), state=LeaseState.CLOSED)
    withdrawn = replace(gone, offer=replace(gone.offer, state=OfferState.WITHDRAWN))  # type: ignore[type-var]
    write(store, PutLease(withdrawn, 0))
    write(store, PutLease(offer("o4", 2, 5_000), None), replace(bound, offers=2))
