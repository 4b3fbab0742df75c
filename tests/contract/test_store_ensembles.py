"""The store contract: ensembles, decisions, claims, explanations, flavors, topology, time."""

from contextlib import closing
from dataclasses import replace

import pytest
from tests.contract.conftest import SetClock

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    DeleteEnsemble,
    DeleteFlavor,
    PutBookings,
    PutClaim,
    PutDecision,
    PutEnsemble,
    PutExplanation,
    PutFlavor,
    PutInventories,
    PutTopology,
    ReplaceAllocations,
    UpdateProvider,
)
from moorage.domain.consumers import Consumer
from moorage.domain.decision_records import DecisionRecord
from moorage.domain.decisions import Claim, ClaimState, Decision, DecisionState, Solve
from moorage.domain.ensembles import Ensemble, Member, PolicyStatement, Role, Selector
from moorage.domain.errors import (
    ConcurrentUpdate,
    DuplicateName,
    NotFound,
    ProviderConflict,
    ServerOfMember,
    UnknownName,
)
from moorage.domain.explain import Explanation, Refusal, Stage
from moorage.domain.flavors import Flavor
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.domain.requests import Objective
from moorage.domain.topology import Attachment, Domain, Level, Topology
from moorage.store import Ledger, open_store
from moorage.usecases.paging import Order, Page


def write(store: Ledger, *changes: Change) -> None:
    store.commit(Changeset(changes))


def ensemble(number: int, project: str = "p", **more: object) -> Ensemble:
    made = Ensemble(
        id=f"e{number}",
        project_id=project,
        user_id="u",
        name=f"shop-{number % 2}",
        roles=(Role("web", {"VCPU": 1}, tags=frozenset({"blue"})),),
        members=(Member(MemberName("web", 0), f"m{number}"),),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def decision(number: int, expires_at: int = 2_000, **more: object) -> Decision:
    made = Decision(
        id=f"d{number}",
        ensemble_id="e1",
        project_id="p",
        ensemble_generation=0,
        state=DecisionState.HELD,
        period=Period(1_000),
        expires_at=expires_at,
        hold=1_000,
        objective=Objective.SPREAD,
        solve=Solve("exact", 0, 0, proven=True, wall_ms=1.5, seed=7),
        places={},
        policies=(),
        revision=3,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def claim(number: int, lapses_at: int = FOREVER, **more: object) -> Claim:
    made = Claim(
        id=f"c{number}",
        decision_id="d1",
        ensemble_id="e1",
        project_id="p",
        member=MemberName("web", 0),
        state=ClaimState.BUILDING,
        lapses_at=lapses_at,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_ensembles_are_kept_and_listed(store: Ledger) -> None:
    every = [ensemble(1), ensemble(2, "q"), ensemble(3)]
    write(store, *(PutEnsemble(one, None) for one in every))
    assert store.ensemble("e2") == every[1]
    assert list(store.ensembles(project_id=None)) == every
    assert list(store.ensembles(project_id="p")) == [every[0], every[2]]
    assert list(store.ensembles(project_id="p", name="shop-0")) == []
    assert list(store.ensembles(project_id=None, page=Page(1, "e1"))) == [every[1]]
    with pytest.raises(NotFound):
        store.ensemble("e9")
    with pytest.raises(NotFound):
        store.ensembles(project_id=None, page=Page(1, "e9"))


def test_ensembles_are_listed_in_an_order_page_by_page(store: Ledger) -> None:
    names = ["b", "a", "B", "b-2", "c"]
    every = [replace(ensemble(n), name=name) for n, name in enumerate(names)]
    every[-1] = replace(every[-1], name="a", project_id="q")
    write(store, *(PutEnsemble(one, None) for one in every))

    def walked(order: Order) -> list[str]:
        found: list[str] = []
        while some := store.ensembles(
            project_id=None, page=Page(1, found[-1] if found else None, order)
        ):
            found += [one.id for one in some]
        return found

    assert walked(Order("name")) == ["e2", "e1", "e4", "e0", "e3"]
    assert walked(Order("name", descending=True)) == ["e3", "e0", "e1", "e4", "e2"]
    assert walked(Order("created_at", descending=True)) == ["e4", "e3", "e2", "e1", "e0"]
    assert walked(Order("project_id")) == ["e0", "e1", "e2", "e3", "e4"]


def test_an_ensembles_generation_moves_and_is_compared(store: Ledger) -> None:
    write(store, PutEnsemble(ensemble(1), None))
    with pytest.raises(DuplicateName):
        write(store, PutEnsemble(ensemble(1), None))
    write(store, PutEnsemble(ensemble(1, name="new"), 0))
    stored = store.ensemble("e1")
    assert (stored.name, stored.generation) == ("new", 1)
    for change in (PutEnsemble(ensemble(1), 0), DeleteEnsemble("e1", 0)):
        with pytest.raises(ConcurrentUpdate):
            write(store, change)
    for missing in (PutEnsemble(ensemble(9), 0), DeleteEnsemble("e9")):
        with pytest.raises(NotFound):
            write(store, missing)
    write(store, DeleteEnsemble("e1", 1))
    with pytest.raises(NotFound):
        store.ensemble("e1")


def test_occupants_wear_their_roles_tags(store: Ledger) -> None:
    booking = Booking("m1", "a", {"VCPU": 1}, Period(1_000), BookingState.HELD)
    write(
        store,
        CreateProvider("a", "a"),
        PutInventories("a", (Inventory("VCPU", 8),), None),
        PutBookings(Consumer("m1", "p"), (booking,)),
    )
    (occupant,) = store.snapshot().occupants(0)
    assert (occupant.project_id, occupant.tags) == ("p", frozenset())
    write(store, PutEnsemble(ensemble(1), None))
    (occupant,) = store.snapshot().occupants(0)
    assert occupant.tags == {"blue"}
    write(store, DeleteEnsemble("e1"))
    (occupant,) = store.snapshot().occupants(0)
    assert occupant.tags == frozenset()


def test_a_write_that_expects_no_members_meets_none(store: Ledger) -> None:
    stock = PutInventories("a", (Inventory("VCPU", 8),), None)
    server = Member(MemberName("web", 0), "m1", server_id="s")
    write(store, CreateProvider("a", "a"), stock)
    write(store, PutEnsemble(ensemble(1, members=(server,)), None))

    def put(consumer: str, generation: int | None, amount: int) -> None:
        allocations = {"a": {"VCPU": amount}} if amount else {}
        change = ReplaceAllocations(Consumer(consumer, "p", "u"), allocations, generation)
        store.commit(Changeset((change,), expects_no_members=True))

    put("stranger", None, 1)
    with pytest.raises(ServerOfMember, match="consumer s is"):
        put("s", None, 1)
    assert store.consumer("s") is None
    write(store, ReplaceAllocations(Consumer("s", "p", "u"), {"a": {"VCPU": 2}}, None))
    with pytest.raises(ServerOfMember):
        put("s", 1, 3)
    with pytest.raises(ConcurrentUpdate):
        put("s", 7, 3)
    put("s", 1, 0)
    assert store.consumer("s") is None


def test_a_record_is_written_with_its_decision_and_stays(store: Ledger) -> None:
    record = DecisionRecord(5, 6, rejected={"trait": 2}, places="digest", instance="text")
    ann = Actor("ann", "p", "req-1")
    put = PutDecision(decision(1), None, record=record)
    store.by(ann).commit(Changeset((put, PutDecision(decision(2), None))))
    write(store, PutDecision(decision(1, state=DecisionState.CONFIRMED), 0))
    assert store.decision_record("d1") == (record, ann)
    assert store.decision_record("d2") == (None, UNKNOWN)  # as of a version that kept none
    with pytest.raises(NotFound):
        store.decision_record("d9")


def test_decisions_are_kept_newest_first(store: Ledger) -> None:
    write(store, *(PutDecision(decision(n), None) for n in (1, 2)))
    write(store, PutDecision(decision(3, ensemble_id="e2", project_id="q"), None))
    assert store.decision("d2") == decision(2)
    assert [one.id for one in store.decisions(project_id=None)] == ["d3", "d2", "d1"]
    assert [one.id for one in store.decisions(project_id="p", page=Page(1))] == ["d2"]
    assert [one.id for one in store.decisions(project_id="p", page=Page(9, "d2"))] == ["d1"]
    assert [one.id for one in store.decisions(project_id=None, ensemble_id="e2")] == ["d3"]
    write(store, PutDecision(decision(1, state=DecisionState.CONFIRMED), 0))
    assert store.decision("d1").generation == 1
    with pytest.raises(ConcurrentUpdate):
        write(store, PutDecision(decision(1), 0))
    with pytest.raises(NotFound):
        store.decision("d9")


def test_the_newest_decisions_of_ensembles_and_their_open_claims(
    store: Ledger, clock: SetClock
) -> None:
    write(store, *(PutDecision(decision(n), None) for n in (1, 2)))
    write(store, PutDecision(decision(3, ensemble_id="e2", project_id="q"), None))
    write(
        store,
        PutClaim(claim(1, 1_450, decision_id="d2"), None),
        PutClaim(claim(2, 1_450, decision_id="d2", state=ClaimState.ACTIVE), None),
        PutClaim(claim(3, decision_id="d2", state=ClaimState.FAILED), None),
        PutClaim(claim(4), None),
    )
    newest = store.newest_decisions(["e1", "e2", "e9"])
    assert {name: one.id for name, one in newest.items()} == {"e1": "d2", "e2": "d3"}
    assert store.open_claims(["d2", "d3"]) == {"d2": 2}
    clock.instant = 1_450
    assert store.open_claims(["d2", "d3"]) == {"d2": 1}
    assert store.newest_decisions([]) == {}
    assert store.open_claims([]) == {}


def test_claims_move_from_the_state_expected(store: Ledger) -> None:
    write(store, PutClaim(claim(1), None), PutClaim(claim(2), None))
    assert list(store.claims(decision_id="d1")) == [claim(1), claim(2)]
    active = claim(1, state=ClaimState.ACTIVE, server_id="s")
    write(store, PutClaim(active, "building"))
    assert store.claim("c1") == active
    with pytest.raises(ConcurrentUpdate):
        write(store, PutClaim(claim(1, state=ClaimState.FAILED), "building"))
    with pytest.raises(NotFound):
        write(store, PutClaim(claim(9), "building"))
    with pytest.raises(DuplicateName):
        write(store, PutClaim(claim(1), None))
    with pytest.raises(NotFound):
        store.claim("c9")


def test_what_is_due(store: Ledger, clock: SetClock) -> None:
    write(
        store,
        PutDecision(decision(1, 1_500), None),
        PutDecision(decision(2, 1_400), None),
        PutDecision(decision(3, 1_400, state=DecisionState.RELEASED), None),
        PutClaim(claim(1, 1_450), None),
        PutClaim(claim(2, 1_450, state=ClaimState.ACTIVE), None),
    )
    clock.instant = 1_399
    assert list(store.due(10)) == []
    clock.instant = 1_450
    assert [one.id for one in store.due(10)] == ["d2", "c1"]
    clock.instant = 9_000
    assert [one.id for one in store.due(10)] == ["d2", "d1", "c1"]
    assert [one.id for one in store.due(2)] == ["d2", "d1"]


def test_explanations_carry_their_instance(store: Ledger) -> None:
    explanation = Explanation("x1", "infeasible", Stage.POLICY, 1_000, 4, rejected={"aggregate": 3})
    write(store, PutExplanation(explanation, "p", '{"members": []}'))
    assert store.explanation("x1") == (Refusal(explanation, "p"), '{"members": []}')
    with pytest.raises(NotFound):
        store.explanation("x9")
    with pytest.raises(DuplicateName):
        write(store, PutExplanation(explanation, "p", "{}"))


def test_flavors_by_id_or_name(store: Ledger) -> None:
    small, large = Flavor("1", "small", {"VCPU": 1}), Flavor("2", "large", {"VCPU": 8})
    write(store, PutFlavor(small), PutFlavor(large))
    assert (store.flavor("1"), store.flavor("large")) == (small, large)
    assert list(store.flavors()) == [large, small]
    write(store, PutFlavor(replace(small, resources={"VCPU": 2})))
    assert store.flavor("small").resources == {"VCPU": 2}
    with pytest.raises(DuplicateName):
        write(store, PutFlavor(Flavor("3", "small", {})))
    write(store, DeleteFlavor("small"))
    with pytest.raises(NotFound):
        store.flavor("1")
    with pytest.raises(NotFound):
        write(store, DeleteFlavor("small"))


RACKS = Topology.build(
    {"location": ("zone", "rack")},
    [Domain("z", "zone"), Domain("r", "rack", parent="z", line=3)],
    [Attachment("host", "r")],
)


def test_the_topology_is_replaced_whole(store: Ledger) -> None:
    with pytest.raises(UnknownName):
        write(store, PutTopology(RACKS))
    write(store, CreateProvider("a", "host"), PutTopology(RACKS))
    snapshot = store.snapshot()
    assert snapshot.topology == RACKS
    assert snapshot.topology_revision == 1
    assert snapshot.domains(Level("location", "rack")).tolist() == [0]
    write(store, PutTopology(Topology.build({}, [])))
    assert store.snapshot().topology_revision == 2
    assert store.snapshot().topology.domains == {}


def test_a_renamed_host_keeps_its_place(store: Ledger) -> None:
    write(store, CreateProvider("a", "host"), CreateProvider("b", "b"), PutTopology(RACKS))
    write(store, UpdateProvider("a", "renamed"), UpdateProvider("b", "host"))
    snapshot = store.snapshot()
    rack = snapshot.domains(Level("location", "rack"))
    assert rack[snapshot.row("a")] == 0
    assert rack[snapshot.row("b")] == -1, "who takes the name does not take the place"
    assert snapshot.topology_revision == 2
    write(store, UpdateProvider("b", "again"))
    assert store.snapshot().topology_revision == 2


def test_a_changeset_may_rely_on_the_topology(store: Ledger) -> None:
    write(store, CreateProvider("a", "host"), PutTopology(RACKS))
    changes = (CreateProvider("b", "b"),)
    with pytest.raises(ProviderConflict):
        store.commit(Changeset(changes, topology_revision=0))
    store.commit(Changeset(changes, topology_revision=1))


def test_what_grows_with_the_members_is_encoded_before_the_locks(
    store: Ledger, database_url: str, clock: SetClock
) -> None:
    unsayable = Changeset((PutEnsemble(ensemble(1, user_id=object()), None),))

    def alone() -> None:
        with pytest.raises(TypeError, match="object"):  # and does not wait for this one's end
            store.commit(unsayable)

    with closing(open_store(database_url, clock=clock)) as other:
        assert other.commit_alone(alone) is None


def test_ensembles_that_keep_others_out_are_read_again_only_after_one_has_changed(
    store: Ledger, database_url: str, clock: SetClock
) -> None:
    alone = PolicyStatement("alone", "exclusive", (Selector(role="web"),))
    kept = ensemble(2, policies=(alone,))
    with closing(open_store(database_url, clock=clock)) as other:
        before = other.snapshot()
        known = other.exclusive_ensembles(before)
        assert known.ensembles == ()
        write(store, CreateProvider("a", "host"), PutEnsemble(ensemble(1), None))
        assert other.snapshot().exclusive_revision == before.exclusive_revision
        assert other.exclusive_ensembles(other.snapshot()) is known
        write(store, PutEnsemble(kept, None))
        relied = other.last_snapshot().exclusive_revision
        assert relied == before.exclusive_revision
        with pytest.raises(ProviderConflict) as refused:
            other.commit(Changeset((CreateProvider("b", "b"),), exclusive_revision=relied))
        assert refused.value.subject == "exclusive ensembles"
        after = other.snapshot()
        assert after.exclusive_revision > before.exclusive_revision
        assert [one.id for one in other.exclusive_ensembles(after).ensembles] == ["e2"]
        other.commit(
            Changeset((CreateProvider("b", "b"),), exclusive_revision=after.exclusive_revision)
        )
        write(store, DeleteEnsemble("e2", store.ensemble("e2").generation))
        assert other.exclusive_ensembles(other.snapshot()).ensembles == ()


def test_the_members_of_others_come_with_the_policies_that_refer_to_them(store: Ledger) -> None:
    sides = [["web"], ["ensemble:e1", "ensemble:e9"]]
    apart = PolicyStatement(
        "apart", "separation", (Selector(role="web"),), parameters={"between": sides}
    )
    server = Member(MemberName("web", 0), "m1", server_id="s1", migration="x1")
    write(store, PutEnsemble(ensemble(1, members=(server,)), None))
    write(store, PutEnsemble(ensemble(2, policies=(apart,), references={"old": frozenset()}), None))
    consumers = {"e1": frozenset({"m1", "s1", "x1"})}
    assert store.ensemble("e2").references == consumers
    assert [one.references for one in store.ensembles(project_id="p")] == [{}, consumers]
    write(store, DeleteEnsemble("e1", store.ensemble("e1").generation))
    assert store.ensemble("e2").references == {}
