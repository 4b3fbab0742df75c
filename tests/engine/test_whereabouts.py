"""Where consumers are: added to for ever, until starting anew is cheaper."""

from moorage.domain.placement import Occupant
from moorage.domain.providers import ResourceProvider
from moorage.engine.snapshot import ProviderState, Snapshot
from moorage.engine.whereabouts import Whereabouts


def state(name: str, *consumers: str) -> ProviderState:
    occupants = tuple(Occupant(one, "p") for one in consumers)
    return ProviderState(ResourceProvider(name, name, None, name), (), occupants)


def test_rows_are_only_added() -> None:
    found = Whereabouts([state("a", "x"), None, state("c", "x", "y")])
    assert (found.rows("x"), found.rows("y"), found.rows("z")) == ((0, 2), (2,), ())
    found.note([(0, state("a", "z")), (2, None)])
    assert (found.rows("x"), found.rows("z")) == ((0, 2), (0,))


def test_after_many_comings_and_goings_a_new_one_is_made() -> None:
    snapshot = Snapshot.empty().with_states([state("a", "x")])
    assert snapshot.rows_of_consumer("x") == (0,)
    first = snapshot.whereabouts
    turns = 0
    while snapshot.whereabouts is first:
        turns += 1
        assert turns < 50
        snapshot = snapshot.with_states([state("a", *(f"c{turns}-{n}" for n in range(10_000)))])
    assert snapshot.rows_of_consumer("x") == ()
    assert snapshot.rows_of_consumer(f"c{turns}-7") == (0,)
