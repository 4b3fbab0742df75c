"""Who stands on a host by kind is what looking at each occupant says, commit after commit."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import ResourceProvider
from moorage.engine.state.snapshot import ProviderState, Snapshot

PERIODS = st.sampled_from([Period(0), Period(5), Period(0, 8), Period(12, 20), Period(30)])
BOOKED = st.tuples(st.integers(0, 5), PERIODS, st.sampled_from([FOREVER, 9]))
STATES = st.lists(BOOKED, max_size=3)
OWNERS = [
    ("p", frozenset[str]()),
    ("q", frozenset[str]()),
    ("p", frozenset({"noisy"})),
    ("q", frozenset({"noisy"})),
    ("r", frozenset[str]()),
    ("p", frozenset[str]()),
]


def state(number: int, booked: list[tuple[int, Period, int]]) -> ProviderState:
    """Hosts 0, 1 and 2; 3 is a child of 0."""
    name, root = f"h{number}", "h0" if number == 3 else f"h{number}"
    bookings = tuple(
        Booking(f"c{one}", name, {"VCPU": 1}, period, lapses_at=lapses)
        for one, period, lapses in booked
    )
    # Consumer 5 has no booking here, as where preemption looks at a fleet without somebody.
    here = sorted({one for one, _, _ in booked} | {5})
    occupants = tuple(Occupant(f"c{one}", *OWNERS[one]) for one in here)
    parent = "h0" if number == 3 else None
    return ProviderState(ResourceProvider(name, name, parent, root), bookings, occupants)


def foreign(one: Occupant) -> bool:
    return one.project_id != "p"


def noisy(one: Occupant) -> bool:
    return "noisy" in one.tags


def _of(project: str, one: Occupant) -> bool:
    return one.project_id == project


def anybody(_one: Occupant) -> bool:
    return True


@given(
    first=st.tuples(*[STATES] * 4),
    later=st.lists(st.tuples(st.integers(0, 3), STATES), max_size=3),
    period=st.sampled_from([Period(10), Period(10, 15), Period(25, 40)]),
    without=st.frozensets(st.sampled_from([f"c{number}" for number in range(6)]), max_size=2),
)
def test_hosts_with_somebody_forbidden(
    first: tuple[list[tuple[int, Period, int]], ...],
    later: list[tuple[int, list[tuple[int, Period, int]]]],
    period: Period,
    without: frozenset[str],
) -> None:
    snapshots = [
        Snapshot.empty(now=10).with_states([state(n, booked) for n, booked in enumerate(first)])
    ]
    for number, booked in later:
        snapshots.append(snapshots[-1].with_states([state(number, booked)]))
    # The older ones as well, after a newer one was asked.
    for snapshot in (*snapshots, *snapshots):
        for forbids in (foreign, noisy, anybody):
            found = snapshot.roots_with(forbids, period, without=without)
            for root in snapshot.roots.tolist():
                there = snapshot.occupants(root, period)
                expected = any(forbids(one) for one in there if one.consumer not in without)
                assert found[root] == expected


def test_ones_own_consumers_are_nobody() -> None:
    booked = [(1, Period(0), FOREVER)], [(1, Period(0), FOREVER), (3, Period(0), FOREVER)]
    snapshot = Snapshot.empty(now=10).with_states([state(n, booked[n - 1]) for n in (1, 2)])
    assert snapshot.roots_with(foreign, Period(10)).tolist() == [True, True]
    mine = frozenset({"c1"})
    assert snapshot.roots_with(foreign, Period(10), without=mine).tolist() == [False, True]


def test_a_removed_provider_has_nobody() -> None:
    snapshot = Snapshot.empty(now=10).with_states(
        [state(1, [(1, Period(0), FOREVER)]), state(2, [(1, Period(0), FOREVER)])]
    )
    assert snapshot.roots_with(foreign, Period(10)).tolist() == [True, True]
    snapshot = snapshot.with_states(removed=["h1"])
    assert snapshot.roots_with(foreign, Period(10)).tolist() == [False, True]


def test_only_changed_states_are_read_again() -> None:
    snapshot = Snapshot.empty(now=10).with_states([state(n, []) for n in (1, 2)])
    snapshot.roots_with(anybody, Period(10))
    owners = snapshot.owners
    kept = owners._chunks[0].rows
    snapshot = snapshot.with_states([state(2, [(1, Period(0), FOREVER)])])
    assert snapshot.owners is owners
    snapshot.roots_with(anybody, Period(10))
    rows = owners._chunks[0].rows
    assert [new is old for new, old in zip(rows, kept, strict=True)] == [True, False]


def test_kinds_that_have_left_are_forgotten() -> None:
    snapshot = Snapshot.empty(now=10).with_states([state(1, []), state(2, [])])
    provider = ResourceProvider("h1", "h1", None, "h1")
    booking = Booking("c", "h1", {"VCPU": 1}, Period(0))
    for number in range(300):
        there = Occupant("c", f"project-{number}", frozenset())
        snapshot = snapshot.with_states([ProviderState(provider, (booking,), (there,))])
        found = snapshot.roots_with(partial(_of, there.project_id), Period(10))
        assert found.tolist() == [True, False]
    assert len(snapshot.owners._chunks[0].number_of) < 100
