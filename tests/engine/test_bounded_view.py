"""The fleet to who ends: room is what is free until then, and nothing else is otherwise."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import SHARING_TRAIT, Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery
from moorage.engine.state.bounded_view import UNLIMITED, with_period, with_unlimited
from moorage.engine.state.snapshot import ProviderState, Snapshot

NOW = 10
CAPACITY = 8


@st.composite
def fleets(draw: st.DrawFn) -> Snapshot:
    """Three hosts with bookings of every kind of stay."""
    states = []
    for uuid in "abc":
        bookings = []
        for number in range(draw(st.integers(0, 5))):
            start = draw(st.integers(0, 30))
            end = draw(st.one_of(st.just(FOREVER), st.integers(start + 1, 40)))
            state = draw(st.sampled_from((BookingState.ALLOCATED, BookingState.RESERVED)))
            amounts = {"VCPU": draw(st.integers(1, 4))}
            bookings.append(Booking(f"{uuid}{number}", uuid, amounts, Period(start, end), state))
        provider = ResourceProvider(
            uuid, uuid, None, uuid, inventories=(Inventory("VCPU", CAPACITY),)
        )
        states.append(ProviderState(provider, tuple(bookings)))
    return Snapshot.empty(now=NOW).with_states(states)


@given(fleets(), st.integers(NOW + 1, 50), st.integers(1, CAPACITY))
def test_candidates_are_those_who_have_room_at_every_instant_until_the_end(
    snapshot: Snapshot, end: int, amount: int
) -> None:
    query = CandidateQuery((RequestGroup(resources={"VCPU": amount}),))
    seen = with_period(snapshot, {"VCPU", "CUSTOM_NOBODY_HAS"}, Period(NOW, end))
    found = {row for one in candidates(seen, query) for row, _ in one.allocations}

    def taken(row: int, instant: int) -> int:
        return sum(
            one.amounts["VCPU"]
            for one in snapshot.bookings_of(row)
            if one.period.start <= instant < one.occupies_until(NOW)
        )

    assert found == {
        row
        for row in range(3)
        if all(taken(row, instant) + amount <= CAPACITY for instant in range(NOW, end))
    }
    everybody = list(candidates(snapshot, query))
    assert list(candidates(snapshot, query)) == everybody, "nobody else sees it otherwise"


def test_every_root_has_plenty_but_who_shares() -> None:
    def host(uuid: str, root: str, traits: frozenset[str] = frozenset()) -> ProviderState:
        stock = (Inventory("VCPU", CAPACITY),)
        parent = None if uuid == root else root
        return ProviderState(
            ResourceProvider(uuid, uuid, parent, root, inventories=stock, traits=traits)
        )

    states = [
        host("a", "a"),
        host("a1", "a"),
        host("s", "s", frozenset({SHARING_TRAIT})),
        host("b", "b"),
    ]
    snapshot = Snapshot.empty(now=NOW).with_states(states)
    seen = with_unlimited(snapshot, {"CUSTOM_HOURS": 9})
    columns = seen.classes["CUSTOM_HOURS"]
    assert [snapshot.uuids[row] for row in columns.rows] == ["a", "b"]
    assert columns.max_addition.tolist() == [9, 9]
    assert columns.capacity.tolist() == [UNLIMITED, UNLIMITED]
    assert "CUSTOM_HOURS" not in snapshot.classes
    query = CandidateQuery((RequestGroup(resources={"VCPU": 1, "CUSTOM_HOURS": 9}),))
    found = [{snapshot.uuids[row] for row, _ in one.allocations} for one in candidates(seen, query)]
    assert sorted(map(sorted, found)) == [["a"], ["a", "a1"], ["b"]]
    later = snapshot.with_states([host("s", "s")])
    roots = with_unlimited(later, {"CUSTOM_HOURS": 9}).classes["CUSTOM_HOURS"].rows
    assert [later.uuids[row] for row in roots] == ["a", "s", "b"]
