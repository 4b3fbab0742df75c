"""Where consumers are: added to for ever, until starting anew is cheaper."""

from moorage.domain.placement import Occupant
from moorage.domain.providers import ResourceProvider
from moorage.engine.state.consumer_locations import ConsumerRows
from moorage.engine.state.snapshot import ProviderState, Snapshot


def state(name: str, *consumers: str) -> ProviderState:
    occupants = tuple(Occupant(one, "p") for one in consumers)
    return ProviderState(ResourceProvider(name, name, None, name), (), occupants)


def test_rows_are_only_added() -> None:
    states = [state("a", "x"), None, state("c", "x", "y")]
    found = ConsumerRows()
    assert [found.rows(one, states) for one in "xyz"] == [(0, 2), (2,), ()]
    later = found.updated([(0, ["z"]), (2, [])])
    assert later is found
    assert [found.rows(one, ()) for one in "xz"] == [(0, 2), (0,)]


def test_the_same_snapshot_at_another_instant_has_the_same() -> None:
    snapshot = Snapshot.empty().with_states([state("a", "x")])
    assert snapshot.at(5).rows_of_consumer("x") == (0,)
    known = snapshot.consumer_rows
    assert snapshot.at(6).consumer_rows is known
    follower = snapshot.with_states([state("b", "x")])
    assert follower.consumer_rows is known
    assert follower.rows_of_consumer("x") == (0, 1)
    assert snapshot.rows_of_consumer("x") == (0,)


def test_who_was_never_asked_has_nothing_to_hand_on() -> None:
    snapshot = Snapshot.empty().with_states([state("a", "x")])
    follower = snapshot.with_states([state("b", "x")])
    assert snapshot.rows_of_consumer("x") == (0,)
    assert follower.consumer_rows is not snapshot.consumer_rows
    assert follower.rows_of_consumer("x") == (0, 1)


def test_after_many_comings_and_goings_a_new_one_is_made() -> None:
    snapshot = Snapshot.empty().with_states([state("a", "x")])
    assert snapshot.rows_of_consumer("x") == (0,)
    first = snapshot.consumer_rows
    turns = 0
    while snapshot.consumer_rows is first:
        turns += 1
        assert turns < 50
        snapshot = snapshot.with_states([state("a", *(f"c{turns}-{n}" for n in range(10_000)))])
    assert snapshot.rows_of_consumer("x") == ()
    assert snapshot.rows_of_consumer(f"c{turns}-7") == (0,)
