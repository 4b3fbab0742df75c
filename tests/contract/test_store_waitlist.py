"""The store contract: the waitlist, its order, and writers who meet at a limit or a grant."""

from dataclasses import replace

import pytest
from tests.contract.conftest import how_many_pass
from tests.contract.test_store_bookings import write

from moorage.domain.changes import Changeset, PutEntry
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, LimitExceeded, NotFound
from moorage.domain.events import BEGINNING, EVERYTHING
from moorage.domain.leases import Terms
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period
from moorage.domain.waitlist import EntryState, Estimate, WaitlistEntry, WaitsFor
from moorage.store import Ledger

ENSEMBLE = Ensemble(
    "e", "p", "u", "n", (Role("web", {"VCPU": 1}),), (Member(MemberName("web", 0), "m"),), ()
)


def entry(name: str, *, priority: int = 0, entered_at: int = 5, start: int = 100) -> WaitlistEntry:
    """One for a fixed window of a hundred."""
    return WaitlistEntry(
        id=name,
        project_id="p",
        user_id="u",
        name="n",
        terms=Terms(Period(start, start + 100), priority=priority),
        latest=start,
        until=start + 1,
        entered_at=entered_at,
        ensemble_id="e",
        ensemble=ENSEMBLE,
        units=1,
        classes=frozenset({"VCPU"}),
        roles=frozenset({"member"}),
    )


def test_an_entry_comes_back_as_it_was(store: Ledger) -> None:
    one = replace(entry("a"), actions={"on_end": ("notify",)}, estimate=Estimate(7, 9, proved=True))
    write(store, PutEntry(one, None))
    assert store.waitlist_entry("a") == one
    with pytest.raises(NotFound):
        store.waitlist_entry("b")
    with pytest.raises(DuplicateName):
        write(store, PutEntry(one, None))
    after = replace(one, waits_for=WaitsFor.QUOTA, state=EntryState.FAILED)
    write(store, PutEntry(after, 0))
    assert store.waitlist_entry("a") == replace(after, generation=1)
    with pytest.raises(ConcurrentUpdate):
        write(store, PutEntry(one, 0))
    with pytest.raises(NotFound):
        write(store, PutEntry(entry("b"), 0))
    assert store.waitlist_counts() == {EntryState.FAILED: 1}
    assert [found.id for found in store.waitlist(project_id="p")] == ["a"]
    assert store.waitlist(project_id="p", state=EntryState.WAITING) == []
    assert store.waitlist(project_id="o") == []
    told = store.event_log.page("p", BEGINNING, EVERYTHING, 10).events
    assert [found.type for found in told] == ["waitlist.waiting", "waitlist.failed"]


def test_they_stand_by_priority_then_by_time_then_as_they_came(store: Ledger) -> None:
    for one in (
        entry("d", entered_at=9),
        entry("c"),
        entry("b"),
        entry("a", entered_at=7, priority=3),
        entry("x", start=900),
        replace(entry("y", priority=9), state=EntryState.CANCELLED),
    ):
        write(store, PutEntry(one, None))
    assert [one.id for one in store.waiting_entries(Period(0, 200), 9)] == ["a", "c", "b", "d"]
    assert [one.id for one in store.waiting_entries(Period(0, FOREVER), 2)] == ["a", "c"]
    # Periods that touch do not overlap.
    assert [one.id for one in store.waiting_entries(Period(200, 901), 9)] == ["x"]
    assert store.waiting_entries(Period(200, 900), 9) == []


def test_who_comes_together_meets_at_the_limit(store: Ledger) -> None:
    commits = [Changeset((PutEntry(entry(f"e{number}"), None, 3),)) for number in range(8)]
    assert how_many_pass(store, commits, LimitExceeded) == 3
    assert store.waitlist_counts() == {EntryState.WAITING: 3}
    # Who waits no more counts no more, and what is no new entry is not bounded.
    left = store.waiting_entries(Period(0, FOREVER), 1)[0]
    write(store, PutEntry(replace(left, state=EntryState.EXPIRED), left.generation))
    write(store, PutEntry(entry("more"), None, 3))
