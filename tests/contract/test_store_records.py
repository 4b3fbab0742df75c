"""The store contract: records that ended long ago go with what is theirs; what is in use stays."""

from dataclasses import replace

import pytest
from tests.contract.conftest import SetClock
from tests.contract.test_store_bookings import allocate, hosts, write
from tests.contract.test_store_ensembles import claim, decision, ensemble
from tests.contract.test_store_leases import LEASE, effect
from tests.contract.test_store_series import OFFER, SERIES, occurrence
from tests.contract.test_store_waitlist import entry

from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import (
    DeleteAllocations,
    DeleteEnsemble,
    DeleteRecords,
    PutCapacityWindow,
    PutClaim,
    PutDecision,
    PutEffect,
    PutEnsemble,
    PutEntry,
    PutLease,
    PutSeries,
)
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.effects import EffectState
from moorage.domain.errors import NotFound
from moorage.domain.leases import Lease, LeaseState, Reservation
from moorage.domain.period import Period
from moorage.domain.records import RecordKind, RecordPlace
from moorage.domain.waitlist import EntryState
from moorage.store import Ledger
from moorage.usecases.paging import Page

__all__ = ["hosts"]

LATER = 50_000


def lease(number: int, **more: object) -> Lease:
    made = replace(
        LEASE,
        id=f"l{number}",
        ensemble_id=f"e{number}",
        decision_id=f"d{number}",
        reservations=(Reservation(f"r{number}", "web"),),
        state=LeaseState.CLOSED,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def leased(store: Ledger, number: int, **more: object) -> None:
    """A lease with its ensemble, decision and a claim that came to nothing."""
    closed = decision(number, ensemble_id=f"e{number}", state=DecisionState.CLOSED)
    failed = claim(
        number, ensemble_id=f"e{number}", decision_id=f"d{number}", state=ClaimState.FAILED
    )
    write(
        store,
        PutEnsemble(ensemble(number), None),
        PutDecision(closed, None),
        PutClaim(failed, None),
        PutLease(lease(number, **more), None),
    )


def sweep(store: Ledger, before: int, most: int = 2) -> dict[RecordKind, int]:
    """Delete what may be deleted, a few at a time; how many of each kind."""
    gone: dict[RecordKind, int] = {}
    for kind in RecordKind:
        after: RecordPlace | None = RecordPlace()
        while after is not None:
            found = store.records.deletable(kind, before, after, most)
            if found.ids:
                write(store, DeleteRecords(kind, found.ids, before))
                gone[kind] = gone.get(kind, 0) + len(found.ids)
            after = found.after
    return gone


def leases(store: Ledger) -> list[str]:
    return [one.id for one in store.leases(project_id=None)]


def ensembles(store: Ledger) -> list[str]:
    return [one.id for one in store.ensembles(project_id=None)]


def test_a_closed_lease_goes_with_its_ensemble_and_its_number_is_not_given_again(
    store: Ledger, clock: SetClock
) -> None:
    for number in range(1, 6):
        leased(store, number)
    leased(store, 6, state=LeaseState.ACTIVE)
    clock.instant = LATER
    leased(store, 7)
    assert sweep(store, 1_000) == {}
    assert sweep(store, LATER) == {RecordKind.LEASE: 5}
    assert (leases(store), ensembles(store)) == (["l6", "l7"], ["e6", "e7"])
    for gone in (
        lambda: store.lease("l1"),
        lambda: store.lease_of_reservation("r1"),
        lambda: store.decision("d1"),
        lambda: store.claim("c1"),
    ):
        with pytest.raises(NotFound):
            gone()
    assert not store.uses_of_lease("l1")
    told = store.event_log.newest()
    assert sweep(store, LATER + 1) == {RecordKind.LEASE: 1}
    assert store.event_log.newest() == told
    write(store, PutLease(lease(8), None))
    assert store.lease("l8").serial == 8


def test_a_lease_stays_while_a_server_is_in_its_places(store: Ledger, clock: SetClock) -> None:
    leased(store, 1)
    write(store, allocate("m1", {"a": {"VCPU": 1}}))
    clock.instant = LATER
    assert sweep(store, LATER) == {}
    write(store, DeleteAllocations("m1"))
    assert sweep(store, LATER) == {RecordKind.LEASE: 1}
    assert ensembles(store) == []


def test_an_ensemble_stays_that_is_leased_again_or_waits_to_be(
    store: Ledger, clock: SetClock
) -> None:
    leased(store, 1)
    write(store, PutLease(lease(2, ensemble_id="e1", state=LeaseState.PENDING), None))
    leased(store, 3)
    write(store, PutEntry(replace(entry("w"), ensemble=None, ensemble_id="e3"), None))
    leased(store, 4)
    clock.instant = LATER
    write(store, PutEnsemble(replace(ensemble(4), updated_at=LATER), 0))
    assert sweep(store, LATER) == {RecordKind.LEASE: 2}
    assert leases(store) == ["l2", "l3"]
    assert ensembles(store) == ["e1", "e3", "e4"]
    assert store.decision("d1").id == "d1"  # the only one of an ensemble that is there
    write(store, PutEntry(replace(store.waitlist_entry("w"), state=EntryState.EXPIRED), 0))
    assert sweep(store, LATER) == {RecordKind.LEASE: 1}
    assert ensembles(store) == ["e1", "e4"]
    assert store.waitlist_entry("w").state is EntryState.EXPIRED
    assert sweep(store, LATER + 1) == {RecordKind.ENTRY: 1}
    with pytest.raises(NotFound):
        store.waitlist_entry("w")


def test_what_came_to_be_in_use_after_it_was_found_stays(store: Ledger, clock: SetClock) -> None:
    leased(store, 1)
    leased(store, 2)
    clock.instant = LATER
    found = store.records.deletable(RecordKind.LEASE, LATER, RecordPlace(), 10)
    assert found.ids == ("l1", "l2")
    write(store, allocate("m1", {"a": {"VCPU": 1}}))
    # Two workers have found them.
    for _ in range(2):
        write(store, DeleteRecords(RecordKind.LEASE, found.ids, LATER))
    assert (leases(store), ensembles(store)) == (["l1"], ["e1"])
    assert store.consumer("m1") is not None


def test_a_series_goes_as_a_whole(store: Ledger, clock: SetClock) -> None:
    write(
        store,
        PutSeries(SERIES, None),
        PutSeries(replace(SERIES, id="empty"), None),
        *(PutLease(occurrence(one, LeaseState.CLOSED), None) for one in (1, 3, 4)),
        PutLease(occurrence(5, LeaseState.CLOSED, OFFER), None),
    )
    write(store, PutLease(replace(occurrence(2, LeaseState.ACTIVE)), None))
    clock.instant = LATER
    assert sweep(store, LATER) == {RecordKind.SERIES: 1, RecordKind.LEASE: 1}  # that kept for it
    assert store.occurrences(["s"])["s"] == {LeaseState.CLOSED: 3, LeaseState.ACTIVE: 1}
    write(store, PutLease(occurrence(2, LeaseState.CLOSED), 0))
    assert sweep(store, LATER) == {}
    assert sweep(store, LATER + 1) == {RecordKind.SERIES: 1}
    assert (leases(store), list(store.all_series(project_id=None))) == ([], [])


def test_decisions_go_that_nothing_shows(store: Ledger, clock: SetClock) -> None:
    over = DecisionState.SUPERSEDED
    servers = {1: None, 2: "m1", 3: None, 4: "gone"}
    write(
        store,
        PutEnsemble(ensemble(1), None),
        *(PutDecision(decision(number, state=over), None) for number in range(1, 6)),
        PutDecision(decision(6, state=DecisionState.CLOSED), None),
        PutLease(lease(1, decision_id="d3", state=LeaseState.ACTIVE), None),
        PutDecision(decision(7, ensemble_id="e2", state=DecisionState.RELEASED), None),
        PutDecision(decision(8, ensemble_id="e2"), None),
        allocate("m1", {"a": {"VCPU": 1}}),
        *(
            PutClaim(
                claim(
                    number,
                    decision_id=f"d{number}",
                    server_id=server,
                    state=ClaimState.BUILDING if number == 1 else ClaimState.ACTIVE,
                ),
                None,
            )
            for number, server in servers.items()
        ),
    )
    clock.instant = LATER
    # Stay: 1 is claimed for a server that is built, 2 for one that runs, 3 is the lease's, 6 the
    # ensemble's, 8 is held.
    assert sweep(store, LATER) == {RecordKind.DECISION: 3}
    kept = {one.id for one in store.decisions(project_id=None)}
    assert kept == {"d1", "d2", "d3", "d6", "d8"}
    assert store.claim("c2").server_id == "m1"
    with pytest.raises(NotFound):
        store.claim("c4")


def test_the_first_decision_of_a_ticket_stays_while_one_with_the_ticket_is_held(
    store: Ledger, clock: SetClock
) -> None:
    over, first, held = DecisionState.SUPERSEDED, decision(1).id, decision(3, ticket="d1")
    write(
        store,
        PutEnsemble(ensemble(1), None),
        *(PutDecision(decision(number, ticket=first, state=over), None) for number in (1, 2)),
        PutDecision(held, None),
    )
    clock.instant = LATER
    assert sweep(store, LATER) == {RecordKind.DECISION: 1}
    assert {one.id for one in store.decisions(project_id=None)} == {"d1", "d3"}
    write(
        store,
        PutDecision(replace(held, state=over), 0),
        PutDecision(decision(4, ticket="d4"), None),
    )
    assert sweep(store, LATER) == {RecordKind.DECISION: 1}
    assert sweep(store, LATER + 1) == {RecordKind.DECISION: 1}
    assert {one.id for one in store.decisions(project_id=None)} == {"d4"}


def test_decisions_of_a_deleted_ensemble_go(store: Ledger, clock: SetClock) -> None:
    write(
        store,
        PutEnsemble(ensemble(1), None),
        PutDecision(decision(1, state=DecisionState.RELEASED), None),
    )
    clock.instant = LATER
    assert sweep(store, LATER) == {}
    write(store, DeleteEnsemble("e1"))
    assert sweep(store, LATER) == {RecordKind.DECISION: 1}


def test_effects_go_once_what_they_were_of_is_gone(store: Ledger, clock: SetClock) -> None:
    def done(name: str, subject: str) -> PutEffect:
        return PutEffect(replace(effect(name, 1, subject), state=EffectState.DONE), None)

    write(
        store,
        PutLease(lease(1, state=LeaseState.ACTIVE), None),
        allocate("m1", {"a": {"VCPU": 1}}),
        done("of a lease", "l1"),
        done("of a server", "m1"),
        done("of nothing", "x"),
        PutEffect(effect("to be done", 1, "x"), None),
    )
    clock.instant = LATER
    assert sweep(store, LATER) == {RecordKind.EFFECT: 1}
    assert [one.id for one in store.effects("x", page=Page())] == ["to be done"]
    write(store, DeleteAllocations("m1"))
    assert sweep(store, LATER) == {RecordKind.EFFECT: 1}
    assert [one.id for one in store.effects("l1", page=Page())] == ["of a lease"]


def test_capacity_windows_go_that_are_over(store: Ledger, clock: SetClock) -> None:
    for name, end in (("past", 9_000), ("later", LATER + 5)):
        window = CapacityWindow(name, WindowKind.MAINTENANCE, ("a",), Period(2_000, end))
        write(store, PutCapacityWindow(window))
    clock.instant = LATER
    assert sweep(store, LATER) == {RecordKind.WINDOW: 1}
    assert [one.id for one in store.capacity_windows()] == ["later"]
