"""A view of the ledger in which nothing is written."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    BoundHeld,
    Changeset,
    CreateProvider,
    DeleteEnsemble,
    DropBookings,
    PutBookings,
    PutClaim,
    PutDecision,
    PutEnsemble,
    PutEntry,
    PutExplanation,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import Claim, ClaimState, Decision, DecisionState, Solve
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.errors import NotFound, QuotaExceeded
from moorage.domain.explain import Explanation, RefusedRequest, Stage
from moorage.domain.leases import Terms
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.domain.requests import Objective
from moorage.domain.waitlist import WaitlistEntry
from moorage.store import Ledger

NAME = MemberName("web", 0)
SHOP = Ensemble("e", "p", "u", "shop", (Role("web", {"VCPU": 1}),), (Member(NAME, "m"),))
DECISION = Decision(
    id="d",
    ensemble_id="e",
    project_id="p",
    ensemble_generation=0,
    state=DecisionState.HELD,
    period=Period(1_000),
    expires_at=2_000,
    hold=1_000,
    objective=Objective.SPREAD,
    solve=Solve("exact", 0, 0, proven=True, wall_ms=1.5, seed=7),
    places={},
    policies=(),
    revision=3,
)
CLAIM = Claim("c", "d", "e", "p", NAME, ClaimState.BUILDING)
ENTRY = WaitlistEntry("w", "p", "u", "l", Terms(Period(1, 2)), 1, 2, 0, "e")
REFUSED = PutExplanation(
    Explanation("x", "infeasible", Stage.CAPACITY, 0, 0),
    "p",
    "",
    request="r",
    digest="1",
    asked=RefusedRequest("e", "shop", "u"),
)
ALL = (PutEnsemble(SHOP, None), PutDecision(DECISION, None), PutClaim(CLAIM, None))


def test_what_is_put_is_found_in_the_view_alone(store: Ledger) -> None:
    dry = store.dry_run()
    dry.commit(Changeset(ALL))
    assert (dry.ensemble("e"), dry.decision("d"), dry.claim("c")) == (SHOP, DECISION, CLAIM)
    for read, id_ in ((store.ensemble, "e"), (store.decision, "d"), (store.claim, "c")):
        with pytest.raises(NotFound):
            read(id_)
    with pytest.raises(NotFound):
        store.dry_run().ensemble("e")


def test_what_replaces_another_has_its_generation(store: Ledger) -> None:
    store.commit(Changeset((PutEnsemble(SHOP, None),)))
    stored = store.ensemble("e")
    dry = store.dry_run()
    dry.commit(Changeset((PutEnsemble(replace(stored, name="store"), stored.generation),)))
    assert dry.ensemble("e").generation == stored.generation
    assert (dry.ensemble("e").name, store.ensemble("e")) == ("store", stored)


def test_neither_events_nor_bookings_nor_providers_are_written(store: Ledger) -> None:
    before = store.snapshot().revision, store.event_log.newest()
    write = ReplaceAllocations(Consumer("s"), {"a": {"VCPU": 1}}, None)
    done = store.dry_run().commit(Changeset((CreateProvider("a", "a"), write, *ALL)))
    assert (done.revision, store.event_log.newest()) == before
    assert store.snapshot().revision == before[0]
    assert store.consumer("s") is None


def test_it_waits_for_no_writer(store: Ledger) -> None:
    """A dry run goes on while somebody keeps all writers out, and keeps nobody out itself."""
    dry = store.dry_run()
    with ThreadPoolExecutor(1) as other:

        def propose() -> Changeset:
            other.submit(dry.commit, Changeset(ALL)).result(timeout=10)
            other.submit(dry.commit_alone, lambda: Changeset(ALL)).result(timeout=10)
            return Changeset((PutEnsemble(SHOP, None),))

        store.commit_alone(propose)

        def propose_dry() -> Changeset:
            other.submit(store.commit, Changeset(ALL[1:])).result(timeout=10)
            return Changeset(ALL)

        dry.commit_alone(propose_dry)
    assert store.decision("d").id == "d"


def test_it_says_that_nothing_was_written(store: Ledger) -> None:
    assert not store.dry_run().commit(Changeset(ALL)).written
    assert store.commit(Changeset(ALL)).written


def test_who_waits_is_found_by_id_alone(store: Ledger) -> None:
    dry = store.dry_run()
    dry.commit(Changeset((PutEntry(ENTRY, None),)))
    assert dry.waitlist_entry("w") == ENTRY
    assert not dry.waiting_entries(Period(0), 9)


def test_a_view_of_a_view_begins_with_what_was_put_and_keeps_its_own(store: Ledger) -> None:
    outer = store.dry_run()
    outer.commit(Changeset(ALL[:1]))
    inner = outer.dry_run(explained=True)
    inner.commit(Changeset((*ALL[1:], REFUSED)))
    assert (inner.ensemble("e"), inner.decision("d")) == (SHOP, DECISION)
    with pytest.raises(NotFound):
        outer.decision("d")
    with pytest.raises(NotFound):
        store.explanation("x")


def test_explanations_alone_are_written_where_they_are_asked_for(store: Ledger) -> None:
    trial = store.dry_run(explained=True)
    before = store.event_log.newest()
    trial.commit(Changeset(ALL))
    assert trial.commit(Changeset((REFUSED,))).written
    assert store.explanation("x")[0].explanation == REFUSED.explanation
    assert store.event_log.newest() == before, "no event reports it"
    with pytest.raises(NotFound):
        store.ensemble("e")


def test_a_request_that_was_refused_is_judged_anew(store: Ledger) -> None:
    store.commit(Changeset((REFUSED,)))
    assert store.refusal("r", project_id="p", digest="1")[0].explanation == REFUSED.explanation
    with pytest.raises(NotFound):
        store.dry_run().refusal("r", project_id="p", digest="1")


def test_held_places_are_bounded_by_those_of_the_ledger(store: Ledger) -> None:
    dry = store.dry_run()
    dry.commit(Changeset((BoundHeld("p", 3, requested=3),)))
    with pytest.raises(QuotaExceeded) as refused:
        dry.commit(Changeset((BoundHeld("p", 3, requested=4),)))
    assert (refused.value.limit, refused.value.used, refused.value.requested) == (3, 0, 4)


HOST = (CreateProvider("h", "h"), PutInventories("h", (Inventory("VCPU", 4),), 0))
PLACE = Booking(
    consumer="m",
    provider="h",
    amounts={"VCPU": 3},
    period=Period(0),
    state=BookingState.HELD,
    lapses_at=FOREVER,
    decision="d",
)
HOLDS = PutBookings(Consumer("m", "p", "u"), (PLACE,))


def test_a_hypothetical_ledger_has_what_it_holds(store: Ledger) -> None:
    store.commit(Changeset(HOST))
    revision, made = store.snapshot().revision, store.hypothetical()
    made.commit(Changeset((*ALL, HOLDS)))
    snapshot = made.snapshot()
    assert snapshot.classes["VCPU"].peak.tolist() == [3]
    assert made.snapshot() is made.last_snapshot()
    assert (made.held("p"), store.held("p")) == (1, 0)
    assert [one.id for one in made.decisions(project_id="p", ensemble_id="e")] == ["d"]
    assert [one.ensemble for one in made.compliance.ensembles_by_id(["e"])] == [SHOP]
    assert made.compliance.every_ensemble() == ["e"]
    assert made.compliance.ensembles_of((), ["d"]) == {"e"}
    assert store.snapshot().classes["VCPU"].peak.tolist() == [0]
    assert (store.snapshot().revision, store.compliance.every_ensemble()) == (revision, [])


def test_what_is_tried_in_a_hypothetical_ledger_stays_out_of_it(store: Ledger) -> None:
    store.commit(Changeset(HOST))
    made = store.hypothetical()
    tried = made.dry_run()
    tried.commit(Changeset((*ALL, HOLDS)))
    assert made.snapshot().classes["VCPU"].peak.tolist() == [0]
    assert made.compliance.every_ensemble() == []
    inner = tried.hypothetical()
    inner.commit(Changeset((DropBookings(frozenset({"m"})), DeleteEnsemble("e", 0))))
    assert inner.snapshot().classes["VCPU"].peak.tolist() == [0]
    assert inner.compliance.ensembles_by_id(["e"]) == []
    assert tried.snapshot().classes["VCPU"].peak.tolist() == [3]


def test_a_hypothetical_ledger_goes_on_from_a_dry_run(store: Ledger) -> None:
    store.commit(Changeset(HOST))
    dry = store.dry_run()
    dry.commit(Changeset((*ALL, HOLDS)))
    made = dry.hypothetical()
    assert made.ensemble("e") == SHOP
    assert made.snapshot().classes["VCPU"].peak.tolist() == [3]
    assert dry.snapshot().classes["VCPU"].peak.tolist() == [0]


def test_a_hypothetical_ledger_stands_at_its_instant(store: Ledger) -> None:
    store.commit(Changeset(HOST))
    now = store.now()
    made = store.hypothetical(now + 1_000_000)
    assert made.now() == made.snapshot().taken_at == now + 1_000_000
    made.commit(Changeset((PutBookings(HOLDS.consumer, (replace(PLACE, lapses_at=now + 5),)),)))
    assert made.snapshot().classes["VCPU"].peak.tolist() == [0]
