"""The store contract: shares of ensembles, and the quota of another project."""

from dataclasses import replace

import pytest
from tests.contract.conftest import how_many_pass
from tests.contract.test_store_ensembles import decision, ensemble, write

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    BoundHeld,
    Changeset,
    CreateProvider,
    DeleteEnsemble,
    PutBookings,
    PutDecision,
    PutEnsemble,
    PutInventories,
)
from moorage.domain.consumers import Consumer
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.errors import ConcurrentUpdate, NotFound, OtherQuotaExceeded
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.domain.shares import Share, ShareState
from moorage.store import Ledger
from moorage.usecases.paging import Page

WHOLE = Page()


def shared(number: int, *shares: Share, project: str = "p") -> Ensemble:
    """An ensemble with a role for each of these shares."""
    roles = tuple(Role(f"r{i}", {"VCPU": 1}, share=one) for i, one in enumerate(shares))
    members = tuple(Member(MemberName(one.name, 0), f"m{number}-{one.name}") for one in roles)
    return ensemble(number, project, roles=roles, members=members)


def listed(store: Ledger, project: str | None, page: Page = WHOLE) -> list[str]:
    return [share for share, _ in store.shares(project_id=project, page=page)]


def test_shares_are_found_by_either_project(store: Ledger) -> None:
    first, second = shared(1, Share("s1", "q"), Share("s2", "r")), shared(2, Share("s3", "p"))
    second = replace(second, project_id="q")
    write(store, PutEnsemble(first, None), PutEnsemble(second, None))
    assert listed(store, "p") == ["s1", "s2", "s3"]
    assert listed(store, "q") == ["s1", "s3"]
    assert listed(store, "r") == ["s2"]
    assert listed(store, None) == ["s1", "s2", "s3"]
    assert listed(store, "stranger") == []
    assert listed(store, "p", Page(limit=1, marker="s1")) == ["s2"]
    assert store.ensemble_of_share("s2") == first
    assert [one for _, one in store.shares(project_id="r")] == [first]


def test_decisions_are_listed_for_the_projects_of_shares(store: Ledger) -> None:
    shares = [Share("s1", "q"), Share("s2", "q"), Share("s3", "r")]
    write(store, PutEnsemble(shared(1, *shares), None), PutEnsemble(ensemble(2, "q"), None))
    write(store, PutDecision(decision(1), None))
    write(store, PutDecision(decision(2, ensemble_id="e2", project_id="q"), None))

    def read(project: str, page: Page = WHOLE) -> list[str]:
        return [one.id for one in store.decisions_seen_by(project, page)]

    assert read("q") == ["d2", "d1"]
    assert read("q", Page(limit=1)) == ["d2"]
    assert read("q", Page(limit=1, marker="d2")) == ["d1"]
    assert read("r") == read("p") == ["d1"]
    assert read("stranger") == []


def test_a_role_that_is_offered_anew_has_another_share(store: Ledger) -> None:
    first = shared(1, Share("s1", "q"), Share("s2", "r"))
    write(store, PutEnsemble(first, None))
    accepted = replace(first.roles[0], share=Share("s1", "q").accepted("u"))
    write(store, PutEnsemble(first.with_role(accepted), 0))
    anew = replace(first.roles[0], share=Share("s9", "q"))
    write(store, PutEnsemble(first.with_role(anew), 1))
    assert listed(store, "q") == ["s9"]
    assert listed(store, "p") == ["s2", "s9"]
    with pytest.raises(NotFound):
        store.ensemble_of_share("s1")


def test_consent_is_stored_with_the_ensemble(store: Ledger) -> None:
    share = Share("s1", "q", ShareState.ACCEPTED, "bob")
    write(store, PutEnsemble(shared(1, share), None))
    stored = store.ensemble("e1")
    assert stored.shared_roles[0][1] == share
    assert (stored.project_of("r0"), stored.user_of("r0")) == ("q", "bob")


def test_shares_end_with_their_ensemble(store: Ledger) -> None:
    write(store, PutEnsemble(shared(1, Share("s1", "q")), None))
    write(store, DeleteEnsemble("e1", 0))
    assert listed(store, None) == []
    with pytest.raises(NotFound):
        store.ensemble_of_share("s1")


def test_of_consents_given_at_once_one_is_written(store: Ledger) -> None:
    first = shared(1, Share("s1", "q"))
    write(store, PutEnsemble(first, None))
    accepted = replace(first.roles[0], share=Share("s1", "q").accepted("u"))
    commits = [Changeset((PutEnsemble(first.with_role(accepted), 0),)) for _ in range(4)]
    assert how_many_pass(store, commits, ConcurrentUpdate) == 1
    assert listed(store, "q") == ["s1"]


def test_the_quota_of_another_project_is_kept_without_its_numbers(store: Ledger) -> None:
    stock = PutInventories("p", (Inventory("VCPU", 10),), None)
    held = Booking("m", "p", {"VCPU": 1}, Period(0, FOREVER), BookingState.HELD, lapses_at=FOREVER)
    put = PutBookings(Consumer("m", "q", "u"), (held,))
    write(store, CreateProvider("p", "host"), stock)
    with pytest.raises(OtherQuotaExceeded, match="quota of project q does not allow the 1 place"):
        write(store, put, BoundHeld("q", 0, 1, disclosed=False))
    assert store.held("q") == 0
    write(store, put, BoundHeld("q", 1, 1, disclosed=False))
    assert store.held("q") == 1
