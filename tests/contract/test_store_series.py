"""The store contract: series, their leases, and what is kept while one is made."""

from dataclasses import replace
from datetime import datetime

import pytest
from tests.contract.test_store_leases import LEASE

from moorage.domain.changes import Changeset, PutLease, PutSeries
from moorage.domain.ensembles import Ensemble, Role
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, NotFound
from moorage.domain.leases import Lease, LeaseState, Occurrence, Reservation
from moorage.domain.offers import Offer, OfferState
from moorage.domain.recurrence import Recurrence, parse_every
from moorage.domain.requests import Objective
from moorage.domain.series import Series, SkippedOccurrence
from moorage.store import Ledger
from moorage.usecases.paging import Page

MODEL = Ensemble(
    id="m", project_id="p", user_id="u", name="shop", roles=(Role("web", {"VCPU": 1}),), members=()
)
SERIES = Series(
    id="s",
    project_id="p",
    user_id="u",
    name="shop",
    recurrence=Recurrence(
        datetime.fromisoformat("2026-12-07T08:00:00.000001"),
        "Europe/Berlin",
        parse_every("mon,wed"),
    ),
    terms=LEASE.terms,
    model=MODEL,
    reach=4,
    left_out=(
        SkippedOccurrence(2, 5_000, 9_000, "time: lease L1", "x"),
        SkippedOccurrence(3, 6_000, 9_500, "no"),
    ),
    actions={"on_end": ("notify",)},
    objective=Objective.PACK,
    digest="request",
)
OFFER = Offer("s", 99_000, proved=False, score=1.0, places=1)


def occurrence(index: int, state: LeaseState, offer: Offer | None = None) -> Lease:
    id_ = f"s{index}"
    return replace(
        LEASE,
        id=id_,
        state=state,
        reservations=(Reservation(f"r-{id_}", "web"),),
        offer=offer,
        occurrence=Occurrence("s", index),
    )


def test_a_series_is_written_and_read_as_it_is(store: Ledger) -> None:
    store.commit(Changeset((PutSeries(SERIES, None),)))
    assert store.series("s") == SERIES
    with pytest.raises(DuplicateName):
        store.commit(Changeset((PutSeries(SERIES, None),)))
    longer = replace(SERIES, reach=9, name="store")
    store.commit(Changeset((PutSeries(longer, 0),)))
    assert store.series("s") == replace(longer, generation=1)
    with pytest.raises(ConcurrentUpdate) as stale:
        store.commit(Changeset((PutSeries(longer, 0),)))
    assert stale.value.subject == "s"
    with pytest.raises(NotFound):
        store.commit(Changeset((PutSeries(replace(longer, id="t"), 0),)))
    with pytest.raises(NotFound):
        store.series("t")


def test_series_are_listed_by_creation(store: Ledger) -> None:
    others = (replace(SERIES, id="t", name="x"), replace(SERIES, id="v", project_id="q"))
    for one in (SERIES, *others):
        store.commit(Changeset((PutSeries(one, None),)))
    assert [one.id for one in store.all_series(project_id=None)] == ["s", "t", "v"]
    assert [one.id for one in store.all_series(project_id="p", name="x")] == ["t"]
    page = Page(limit=1, marker="s")
    assert [one.id for one in store.all_series(project_id="p", page=page)] == ["t"]


def test_its_leases_are_found_by_it_and_what_is_kept_for_it_is_apart(store: Ledger) -> None:
    kept = occurrence(4, LeaseState.OFFERED, OFFER)
    over = replace(OFFER, state=OfferState.WITHDRAWN)
    plain = replace(LEASE, id="o", state=LeaseState.OFFERED, offer=OFFER, reservations=())
    every = (
        occurrence(1, LeaseState.PENDING),
        occurrence(2, LeaseState.CLOSED),
        occurrence(3, LeaseState.PENDING),
        kept,
        occurrence(5, LeaseState.CLOSED, over),
        replace(LEASE, reservations=()),
        plain,
    )
    store.commit(Changeset(tuple(PutLease(one, None) for one in every)))
    assert [one.id for one in store.leases(project_id="p", series_id="s")] == ["s1", "s2", "s3"]
    assert store.occurrences(["s", "t"]) == {
        "s": {LeaseState.PENDING: 2, LeaseState.CLOSED: 1},
        "t": {},
    }
    assert [one.id for one in store.offers(project_id="p", over=True)] == ["o"]
    assert [one.id for one in store.offers(project_id="p", series_id="s")] == ["s4"]
    assert store.lease("s4").occurrence == Occurrence("s", 4)
    granted = replace(kept, state=LeaseState.PENDING, offer=None)
    store.commit(Changeset((PutLease(granted, 0),)))
    assert store.offers(project_id="p", series_id="s") == []
    assert store.occurrences(["s"])["s"][LeaseState.PENDING] == 3
