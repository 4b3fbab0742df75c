"""The store contract: names of ensembles, and how much a project stores, judged in the commit."""

from dataclasses import replace

import pytest
from tests.contract.conftest import how_many_pass
from tests.contract.test_store_bookings import write
from tests.contract.test_store_ensembles import ensemble
from tests.contract.test_store_quotas import lease

from moorage.domain.changes import (
    BoundStored,
    Changeset,
    DeleteEnsemble,
    ExpectUniqueName,
    PutEnsemble,
    PutLease,
    PutQuota,
)
from moorage.domain.errors import NameTaken, QuotaExceeded
from moorage.domain.leases import LeaseState
from moorage.domain.quotas import Quota, QuotaName
from moorage.store import Ledger


def test_a_second_ensemble_of_a_name_is_refused_with_the_id_of_the_first(store: Ledger) -> None:
    one, other = ensemble(1), ensemble(3)
    assert one.name == other.name
    write(store, PutEnsemble(one, None), ExpectUniqueName("p", one.name, one.id))
    with pytest.raises(NameTaken, match=one.id) as refused:
        write(store, PutEnsemble(other, None), ExpectUniqueName("p", one.name, other.id))
    assert refused.value.existing == one.id
    assert store.ensembles_named("p", one.name) == [one.id]
    elsewhere = replace(other, project_id="q")
    write(store, PutEnsemble(elsewhere, None), ExpectUniqueName("q", one.name, other.id))
    write(store, DeleteEnsemble(one.id))
    again = ensemble(5)
    write(store, PutEnsemble(again, None), ExpectUniqueName("p", one.name, again.id))


def test_names_that_are_shared_already_stay_and_no_third_joins_them(store: Ledger) -> None:
    for number in (1, 3):
        write(store, PutEnsemble(ensemble(number), None))
    found = store.ensembles(project_id="p", name=ensemble(1).name)
    assert [one.id for one in found] == ["e1", "e3"]
    write(store, PutEnsemble(found[1], found[1].generation))
    assert store.ensembles_named("p", found[0].name) == ["e1", "e3"]
    third = ensemble(5)
    with pytest.raises(NameTaken, match="e1"):
        write(store, PutEnsemble(third, None), ExpectUniqueName("p", third.name, third.id))


def test_an_ensemble_whose_lease_is_over_gives_its_name_back(store: Ledger) -> None:
    one, other = ensemble(1), ensemble(3)
    leased = replace(lease("l", 1), ensemble_id=one.id)
    write(store, PutEnsemble(one, None), PutLease(leased, None))
    change = PutEnsemble(other, None), ExpectUniqueName("p", one.name, other.id)
    with pytest.raises(NameTaken):
        write(store, *change)
    write(store, PutLease(replace(leased, state=LeaseState.CLOSED), 0))
    write(store, *change)


def test_of_many_who_want_a_name_at_once_one_gets_it(store: Ledger) -> None:
    wanted = [replace(ensemble(number), name="shop") for number in range(8)]
    commits = [
        Changeset((PutEnsemble(one, None), ExpectUniqueName("p", "shop", one.id))) for one in wanted
    ]
    assert how_many_pass(store, commits, NameTaken) == 1
    assert len(store.ensembles(project_id="p", name="shop")) == 1


def test_of_many_who_store_at_once_no_more_pass_than_the_quota_allows(store: Ledger) -> None:
    bound = BoundStored("p", QuotaName.ENSEMBLES, 3)
    commits = [Changeset((PutEnsemble(ensemble(number), None), bound)) for number in range(8)]
    assert how_many_pass(store, commits, QuotaExceeded) == 3
    assert store.stored("p")[QuotaName.ENSEMBLES] == 3
    write(store, PutQuota(Quota("p", {QuotaName.ENSEMBLES: 4})))
    write(store, PutEnsemble(ensemble(20), None), bound)
    with pytest.raises(QuotaExceeded, match="ensembles limit 4 used 4 requested 1"):
        write(store, PutEnsemble(ensemble(22), None), bound)


def test_ensembles_of_leases_do_not_count_and_series_do_while_they_last(store: Ledger) -> None:
    write(store, PutEnsemble(ensemble(1), None))
    write(store, PutLease(replace(lease("l", 1), ensemble_id="e1"), None))
    counted = store.stored("p")
    assert counted[QuotaName.ENSEMBLES] == counted[QuotaName.SERIES] == 0
