"""What is kept of a query from one look at the fleet to the next."""

from dataclasses import replace

from moorage.domain.bookings import Booking
from moorage.domain.period import Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.query import CandidateQuery
from moorage.engine.candidates.tree_cache import tree_blocks
from moorage.engine.state.snapshot import ProviderState, Snapshot

HOST = ResourceProvider("h0", "h0", None, "h0", inventories=(Inventory("VCPU", 4),))
OTHER = replace(HOST, uuid="h1", name="h1", root_uuid="h1", traits=frozenset({"T"}))


def fleet() -> Snapshot:
    return Snapshot.empty().with_states([ProviderState(HOST), ProviderState(OTHER)])


def query(trait: str = "T") -> CandidateQuery:
    return CandidateQuery((RequestGroup("", {"VCPU": 1}, (frozenset({trait}),)),))


def test_bookings_leave_a_prospect_as_it_is() -> None:
    asked, snapshot = query(), fleet()
    (before,) = tree_blocks(snapshot, asked, 10)
    booked = ProviderState(OTHER, (Booking("c", "h1", {"VCPU": 4}, Period(0)),))
    (after,) = tree_blocks(snapshot.with_states([booked]), asked, 10)
    assert after is before
    assert before.subset.rows.tolist() == [1], "only trees that can serve the query"


def test_a_trait_that_moves_makes_it_anew() -> None:
    asked, snapshot = query(), fleet()
    (before,) = tree_blocks(snapshot, asked, 10)
    (after,) = tree_blocks(
        snapshot.with_states([ProviderState(replace(HOST, traits=OTHER.traits))]), asked, 10
    )
    assert before.subset.rows.tolist() == [1]
    assert after.subset.rows.tolist() == [0, 1]


def test_of_many_queries_the_newest_are_kept() -> None:
    snapshot, asked = fleet(), [query() for _ in range(300)]
    first = [next(tree_blocks(snapshot, one, 10)) for one in asked]
    again = [next(tree_blocks(snapshot, one, 10)) for one in reversed(asked)]
    same = [a is b for a, b in zip(first, reversed(again), strict=True)]
    assert same[-1]
    assert not same[0]
