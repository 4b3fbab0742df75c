"""A snapshot brought forward step by step equals one made at once; time alone moves it too."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.errors import NotFound
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.topology import Attachment, Domain, Level, Topology
from moorage.engine.state.arrivals import AddedBookings
from moorage.engine.state.snapshot import ProviderState, Snapshot

NAMES = tuple("abcdef")
CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_X")
instants = st.integers(0, 20)


def booked(provider: str, number: int, amounts: dict[str, int], **more: object) -> Booking:
    fields = {"consumer": f"c{number}", "provider": provider, "amounts": amounts, **more}
    fields.setdefault("period", Period(0))
    return Booking(**fields)  # type: ignore[arg-type]


def host(
    name: str,
    *,
    bookings: Iterable[Booking] = (),
    parent: str | None = None,
    root: str | None = None,
    inventories: tuple[Inventory, ...] = (Inventory("VCPU", 8),),
    **more: object,
) -> ProviderState:
    kept = tuple(bookings)
    provider = ResourceProvider(name, name, parent, root or name, inventories=inventories)
    return ProviderState(
        dataclasses.replace(provider, **more),  # type: ignore[arg-type]
        kept,
        tuple(Occupant(one, "project") for one in {b.consumer: None for b in kept}),
    )


@st.composite
def stays(draw: st.DrawFn, name: str, number: int, classes: Sequence[str]) -> Booking:
    start = draw(instants)
    end = draw(st.one_of(st.just(FOREVER), st.integers(start + 1, 25)))
    state = draw(st.sampled_from(list(BookingState)))
    return booked(
        name,
        number,
        {draw(st.sampled_from(classes)): draw(st.integers(1, 9))},
        period=Period(start, end),
        state=state,
        lapses_at=FOREVER
        if state is BookingState.ALLOCATED
        else draw(st.one_of(st.just(FOREVER), instants)),
        preemptible=draw(st.booleans()),
    )


@st.composite
def states(draw: st.DrawFn, name: str) -> ProviderState:
    classes = draw(st.sets(st.sampled_from(CLASSES)))
    inventories = tuple(
        Inventory(one, draw(st.integers(1, 50)), allocation_ratio=draw(st.sampled_from([1.0, 1.5])))
        for one in sorted(classes)
    )
    bookings = [
        draw(stays(name, draw(st.integers(0, 4)) * 10 + number, sorted(classes)))
        for number in range(draw(st.integers(0, 3)) if classes else 0)
    ]
    return host(
        name,
        bookings=bookings,
        inventories=inventories,
        generation=draw(st.integers(0, 5)),
        revision=draw(st.integers(0, 5)),
        traits=draw(st.frozensets(st.sampled_from(["T1", "T2"]))),
        aggregates=draw(st.frozensets(st.sampled_from(["A1", "A2"]))),
    )


Step = tuple[list[ProviderState], list[str], list[Booking], int]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """What changes, what goes, what comes to those that stay, and when."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    gone = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))
    # Mostly of the sort that lasts; perhaps of a class of which the provider has no inventory.
    numbers = draw(st.lists(st.integers(0, 4).map(lambda tens: tens * 10), unique=True, max_size=3))
    coming = [draw(stays(draw(st.sampled_from(NAMES)), number, CLASSES)) for number in numbers]
    if draw(st.booleans()):
        coming = [dataclasses.replace(one, period=Period(0)) for one in coming]
    return [draw(states(name)) for name in names if name not in gone], gone, coming, draw(instants)


def arrived(state: ProviderState, coming: Sequence[Booking]) -> AddedBookings:
    """The state with these bookings besides, as a feed would say it."""
    here = {one.consumer for one in state.occupants}
    new = [
        one for one in coming if one.provider == state.provider.uuid and one.consumer not in here
    ]
    after = dataclasses.replace(
        state,
        provider=dataclasses.replace(state.provider, revision=state.provider.revision + 1),
        bookings=(*state.bookings, *new),
        occupants=(*state.occupants, *(Occupant(one.consumer, "project") for one in new)),
    )
    return AddedBookings(after, new)


def content(snapshot: Snapshot) -> dict[str, object]:
    """All a snapshot says, by provider name instead of row."""
    living = np.flatnonzero(snapshot.alive).tolist()
    found: dict[str, object] = {"valid_until": snapshot.valid_until, "at": snapshot.taken_at}
    for row in living:
        found[snapshot.uuids[row]] = (
            int(snapshot.generation[row]),
            int(snapshot.revisions[row]),
            int(snapshot.next_change[row]),
            bool(snapshot.preemptible[row]),
            {name for name, mask in snapshot.traits.items() if mask[row]},
            {name for name, rows in snapshot.aggregates.items() if row in rows},
            {
                name: tuple(
                    getattr(columns, field)[columns.position[row]].item()
                    for field in (
                        "total",
                        "capacity",
                        "used",
                        "peak",
                        "base",
                        "server_base",
                        "allocation_ratio",
                    )
                )
                for name, columns in snapshot.classes.items()
                if columns.position[row] >= 0
            },
            {
                name: int(snapshot.peak_over(name, Period(5, 9))[columns.position[row]])
                for name, columns in snapshot.classes.items()
                if columns.position[row] >= 0
            },
        )
    return found


def whereabouts(snapshot: Snapshot) -> dict[int, set[str]]:
    """Row -> consumers, as looked up by consumer; the same as the states say."""
    found: dict[int, set[str]] = {}
    for consumer in {f"c{tens * 10 + ones}" for tens in range(5) for ones in range(3)}:
        for row in snapshot.rows_of_consumer(consumer):
            found.setdefault(row, set()).add(consumer)
    assert found == {
        row: {one.consumer for one in state.occupants}
        for row, state in enumerate(snapshot.states)
        if state is not None and state.occupants
    }
    return found


@given(history=st.lists(steps(), max_size=6))
def test_step_by_step_equals_at_once(history: list[Step]) -> None:
    now, snapshot = 0, Snapshot.empty()
    stored: dict[str, ProviderState] = {}
    passed: list[tuple[Snapshot, dict[int, set[str]], dict[str, object]]] = []
    for changed, gone, coming, later in history:
        now = max(now, later)
        others = stored.keys() - {state.provider.uuid for state in changed} - set(gone)
        there = {one.provider for one in coming} & others
        came = [arrived(stored[name], coming) for name in sorted(there)]
        snapshot = snapshot.with_states([*changed, *came], removed=gone, now=now)
        passed.append((snapshot, whereabouts(snapshot), content(snapshot)))
        for name in snapshot.classes:
            snapshot.peak_over(name, Period(5, 9))  # so that there is a course to keep in step
        stored |= {state.provider.uuid: state for state in (*changed, *(one.state for one in came))}
        stored = {name: state for name, state in stored.items() if name not in gone}
    at_once = Snapshot.empty(now=now).with_states(stored.values())
    assert content(snapshot) == content(at_once)
    for older, found, said in passed:
        assert whereabouts(older) == found, "a snapshot says the same for ever"
        assert content(older) == said
    for columns in snapshot.classes.values():
        assert (np.diff(columns.rows) > 0).all()
        assert np.array_equal(columns.position[columns.rows], np.arange(len(columns.rows)))
        assert len(columns.position) == len(snapshot.uuids)


def test_sums_that_are_equal_are_one_column_as_long_as_they_are() -> None:
    before = host("a", bookings=[booked("a", 1, {"VCPU": 1})])
    first = Snapshot.empty(now=7).with_states([before, host("b")])
    came = arrived(before, [booked("a", 2, {"VCPU": 2})])
    second = first.with_states([came])
    again = second.with_states([host("b", bookings=[booked("b", 3, {"VCPU": 4})])])
    held = booked("a", 4, {"VCPU": 1}, state=BookingState.HELD)
    parted = again.with_states([arrived(came.state, [held])])
    for snapshot, sums in ((first, [1, 0]), (second, [3, 0]), (again, [3, 4])):
        columns = snapshot.classes["VCPU"]
        assert columns.base.tolist() == sums
        assert all(one is columns.base for one in (columns.used, columns.peak, columns.server_base))
    columns = parted.classes["VCPU"]
    assert columns.peak is columns.base
    assert [columns.base.tolist(), columns.used.tolist(), columns.server_base.tolist()] == [
        [4, 4],
        [3, 4],
        [3, 4],
    ]


@pytest.mark.parametrize("now", [12, 7, 3], ids=["later", "now", "earlier"])
def test_what_comes_where_time_changes_something_too_is_judged_with_it(now: int) -> None:
    lapsing = booked("a", 1, {"VCPU": 4}, state=BookingState.HELD, lapses_at=10)
    began = booked("a", 2, {"VCPU": 3}, period=Period(5))
    before = host("a", bookings=[lapsing, began])
    after = arrived(before, [booked("a", 10, {"VCPU": 2})])
    snapshot = Snapshot.empty(now=7).with_states([before]).with_states([after], now=now)
    assert content(snapshot) == content(Snapshot.empty(now=now).with_states([after.state]))


@given(state=states("a"), now=instants)
def test_sums_follow_the_bookings_that_live(state: ProviderState, now: int) -> None:
    snapshot = Snapshot.empty(now=now).with_states([state])
    live = [one for one in state.bookings if one.live(now)]
    assert snapshot.bookings_of(0) == tuple(live)
    for name, columns in snapshot.classes.items():

        def level(at: int, name: str = name) -> int:
            return sum(
                one.amounts.get(name, 0)
                for one in live
                if one.period.start <= at < one.occupies_until(now)
            )

        assert columns.peak[0] == max(level(at) for at in range(now, 30))
        assert columns.used[0] == sum(
            one.amounts.get(name, 0)
            for one in state.bookings
            if one.state is BookingState.ALLOCATED
        )
        for start, end in ((now, now + 1), (now, FOREVER), (now + 3, now + 6)):
            expected = max(level(at) for at in range(start, min(end, 40)))
            assert snapshot.peak_over(name, Period(start, end))[0] == expected


@given(state=states("a"), then=instants, wait=st.integers(0, 10))
def test_time_moves_a_snapshot_only_at_its_breakpoints(
    state: ProviderState, then: int, wait: int
) -> None:
    early = Snapshot.empty(now=then).with_states([state])
    late = early.at(then + wait)
    assert content(late) == content(Snapshot.empty(now=then + wait).with_states([state]))
    assert content(late.at(then)) == content(early)
    if then + wait < early.valid_until:
        assert late.states is early.states
        assert late.classes is early.classes


def test_released_consumers_do_not_count() -> None:
    mine = [booked("a", 1, {"VCPU": 3}), booked("a", 2, {"VCPU": 2}, period=Period(5, 9))]
    snapshot = Snapshot.empty().with_states([host("a", bookings=mine), host("b")])
    assert snapshot.peak_over("VCPU", Period(0)).tolist() == [5, 0]
    assert snapshot.peak_over("VCPU", Period(0), without=frozenset({"c1"})).tolist() == [2, 0]
    assert snapshot.peak_over("VCPU", Period(0, 5), without=frozenset({"c2"})).tolist() == [3, 0]
    assert snapshot.peak_over("VCPU", Period(0), without=frozenset({"x"})).tolist() == [5, 0]


def test_trees_children_and_occupants() -> None:
    snapshot = Snapshot.empty().with_states(
        [
            host("numa", parent="a", root="a", bookings=[booked("numa", 7, {"VCPU": 1})]),
            host("a", bookings=[booked("a", 7, {"VCPU": 1}), booked("a", 8, {"VCPU": 1})]),
            host("b"),
        ]
    )
    a = snapshot.row("a")
    assert [snapshot.names[row] for row in snapshot.children(a)] == ["numa"]
    assert {snapshot.names[row] for row in snapshot.tree(a)} == {"a", "numa"}
    assert {one.consumer for one in snapshot.occupants(a)} == {"c7", "c8"}
    assert [snapshot.names[row] for row in snapshot.roots] == ["a", "b"]
    assert snapshot.children(snapshot.row("b")).tolist() == []
    with pytest.raises(NotFound):
        snapshot.row("nobody")


def test_a_lapsed_hold_is_no_occupant() -> None:
    held = booked("a", 1, {"VCPU": 8}, state=BookingState.HELD, lapses_at=10)
    snapshot = Snapshot.empty(now=9).with_states([host("a", bookings=[held])])
    assert snapshot.valid_until == 10
    assert len(snapshot.occupants(0)) == 1
    later = snapshot.at(10)
    assert later.occupants(0) == ()
    assert later.classes["VCPU"].peak.tolist() == [0]
    assert later.valid_until == FOREVER


def test_domains_are_numbered_by_name_and_inherited() -> None:
    topology = Topology.build(
        {"location": ("zone", "rack")},
        [
            Domain("z", "zone"),
            Domain("r2", "rack", parent="z"),
            Domain("r1", "rack", parent="z"),
        ],
        [Attachment("a", "r2"), Attachment("b", "z")],
    )
    snapshot = Snapshot.empty().with_states(
        [host("a"), host("numa", parent="a", root="a"), host("b"), host("c")],
        topology=topology,
        topology_revision=1,
    )
    rack, zone, hosts = (Level("location", name) for name in ("rack", "zone", "host"))
    assert snapshot.domain_names(rack) == ("r1", "r2")
    assert snapshot.domains(rack).tolist() == [1, 1, -1, -1]
    assert snapshot.domains(zone).tolist() == [0, 0, 0, -1]
    assert snapshot.domains(hosts).tolist() == [0, 0, 2, 3]
    moved = snapshot.with_states([host("a", generation=3)])
    assert moved.domains(rack) is snapshot.domains(rack), "derived once while names stay"
    gone = snapshot.with_states(removed=["c"])
    assert gone.domains(hosts).tolist() == [0, 0, 2, -1]


def test_a_booking_shares_all_other_columns() -> None:
    both = (Inventory("VCPU", 8), Inventory("MEMORY_MB", 64))
    old = Snapshot.empty().with_states(host(name, inventories=both) for name in NAMES)
    new = old.with_states(
        [host("b", inventories=both, bookings=[booked("b", 1, {"VCPU": 2})], revision=1)]
    )
    for field in ("uuids", "names", "row_of", "parent", "root", "traits", "aggregates"):
        assert getattr(new, field) is getattr(old, field)
    assert new.classes["VCPU"].total is old.classes["VCPU"].total
    assert old.classes["VCPU"].used.sum() == 0
    assert new.classes["VCPU"].used.tolist() == [0, 2, 0, 0, 0, 0]


def test_rows_of_deleted_providers_are_used_again_later() -> None:
    snapshot = Snapshot.empty().with_states([host("a"), host("b"), host("c")])
    snapshot = snapshot.with_states([host("d")], removed=["a"])
    assert (snapshot.row("d"), len(snapshot.uuids)) == (3, 4)
    snapshot = snapshot.with_states([host("e")])
    assert (snapshot.row("e"), len(snapshot.uuids)) == (0, 4)
    assert snapshot.alive.all()
