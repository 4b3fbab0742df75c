"""The store contract: violations, one open for each subject, and the marks of what is judged."""

from dataclasses import replace

import pytest
from tests.contract.conftest import SetClock, how_many_pass
from tests.contract.test_store_ensembles import ensemble, write
from tests.contract.test_store_records import sweep

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.changes import (
    Changeset,
    DeleteEnsemble,
    MarkJudged,
    PutEnsemble,
    PutTopology,
    PutViolation,
)
from moorage.domain.errors import ConcurrentUpdate, NotFound
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER
from moorage.domain.records import RecordKind
from moorage.domain.topology import EMPTY
from moorage.domain.violations import Cause, CauseKind, Violation
from moorage.store import Ledger
from moorage.usecases.compliance_ports import ViolationFilter
from moorage.usecases.paging import Page

WHOLE = Page()
EVERY = ViolationFilter(open=None)


def violation(id_: str, policy: str | None = "apart", **more: object) -> Violation:
    made = Violation(
        id=id_,
        ensemble_id="e1",
        ensemble="shop",
        project_id="p",
        policy=policy,
        type="anti-affinity" if policy else "lost",
        required=True,
        members=(MemberName("web", 1),),
        amount=1,
        text="h1 holds 2",
        since=1_000,
        cause=Cause(CauseKind.HOST, ("h1",), "disabled", Actor("ann", "p", "req-1")),
    )
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def an_ensemble(store: Ledger) -> None:
    write(store, PutEnsemble(ensemble(1), None), PutEnsemble(ensemble(2), None))


def ids(store: Ledger, wanted: ViolationFilter = EVERY, page: Page = WHOLE) -> list[str]:
    return [one.id for one in store.compliance.page(wanted, page)]


def test_a_violation_is_read_as_it_was_written(store: Ledger) -> None:
    one = violation("v1")
    write(store, PutViolation(one, None))
    assert store.compliance.page(EVERY, WHOLE) == [one]
    assert store.compliance.open_of(["e1", "e2", "gone"]) == {"e1": [one]}
    assert store.compliance.broken(["e1", "e2"]) == {"e1": 1}
    assert store.compliance.counts() == {("anti-affinity", True): 1}


def test_of_one_subject_one_is_open(store: Ledger) -> None:
    write(store, PutViolation(violation("v1"), None), PutViolation(violation("m", None), None))
    with pytest.raises(ConcurrentUpdate):
        write(store, PutViolation(violation("v2"), None))
    write(store, PutViolation(violation("v1", until=2_000), 0))
    write(store, PutViolation(violation("v2", since=3_000), None))
    assert ids(store) == ["v2", "m", "v1"]
    assert ids(store, ViolationFilter()) == ["v2", "m"]
    assert ids(store, ViolationFilter(open=False)) == ["v1"]
    assert ids(store, ViolationFilter(types=frozenset({"lost"}))) == ["m"]
    assert ids(store, ViolationFilter(open=None, since=2_500)) == ["v2", "m"]
    assert ids(store, ViolationFilter(project_id="q")) == []
    assert ids(store, EVERY, Page(1, "m")) == ["v1"]


def test_a_change_names_the_generation_that_it_has_seen(store: Ledger) -> None:
    write(store, PutViolation(violation("v1"), None))
    write(store, PutViolation(violation("v1", amount=2), 0))
    with pytest.raises(ConcurrentUpdate):
        write(store, PutViolation(violation("v1", until=5_000), 0))
    (found,) = store.compliance.page(EVERY, WHOLE)
    assert (found.amount, found.until, found.generation) == (2, FOREVER, 1)


def test_of_many_at_once_one_is_written(store: Ledger) -> None:
    changes = [Changeset((PutViolation(violation(f"v{n}"), None),)) for n in range(6)]
    assert how_many_pass(store, changes, ConcurrentUpdate) == 1


def test_violations_go_with_their_ensemble(store: Ledger) -> None:
    write(store, PutViolation(violation("v1"), None), PutViolation(violation("m", None), None))
    write(store, DeleteEnsemble("e1"))
    assert ids(store) == []
    with pytest.raises(NotFound):
        write(store, PutViolation(violation("v2"), None))


def test_an_ensemble_is_unjudged_until_it_is_judged_as_it_is(store: Ledger) -> None:
    assert store.compliance.unjudged(10) == [("e1", 0), ("e2", 0)]
    assert store.compliance.unjudged(1) == [("e1", 0)]
    write(store, MarkJudged((("e1", 0), ("e2", 7), ("gone", 0))))
    assert store.compliance.unjudged(10) == [("e2", 0)]
    write(store, PutEnsemble(ensemble(1), 0))
    assert store.compliance.unjudged(10) == [("e1", 1), ("e2", 0)]
    found = store.compliance.ensembles_by_id(["e2", "e1", "gone"])
    assert [(one.ensemble.id, one.unjudged) for one in found] == [("e1", True), ("e2", True)]
    assert store.compliance.every_ensemble() == ["e1", "e2"]
    projects = {one.ensemble.id: one.ensemble.project_id for one in found}
    assert store.compliance.projects_of(["e2", "e1", "gone"]) == projects


def test_who_wrote_an_ensemble_and_the_topology_is_known(store: Ledger) -> None:
    assert store.compliance.topology_actor() == UNKNOWN
    ann = Actor("ann", "p", "req-1")
    acting = store.by(ann)
    acting.commit(Changeset((PutEnsemble(ensemble(1), 0), PutTopology(EMPTY))))
    (one, other) = store.compliance.ensembles_by_id(["e1", "e2"])
    assert (one.actor, other.actor) == (ann, UNKNOWN)
    assert store.compliance.topology_actor() == ann


def test_violations_are_kept_as_other_records_are(store: Ledger, clock: SetClock) -> None:
    write(
        store,
        PutViolation(violation("old", until=2_000), None),
        PutViolation(violation("new"), None),
    )
    clock.instant = 50_000
    assert sweep(store, 50_000) == {RecordKind.VIOLATION: 1}
    assert ids(store) == ["new"]
