"""Capacity over time against a brute force that looks at every instant."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.engine.capacity.capacity_over_time import count_fits, hosts_where, profile
from moorage.engine.state.snapshot import ProviderState, Snapshot

NOW = 10
LAST = 40
STATES = (
    BookingState.ALLOCATED,
    BookingState.RESERVED,
    BookingState.HELD,
    BookingState.CLAIMED,
)
TAKING = {BookingState.ALLOCATED, BookingState.CLAIMED}


def provider(uuid: str, root: str, *inventories: Inventory) -> ResourceProvider:
    parent = None if uuid == root else root
    return ResourceProvider(uuid, uuid, parent, root, inventories=inventories)


@st.composite
def bookings(draw: st.DrawFn, uuid: str, name: str) -> tuple[Booking, ...]:
    made = []
    for number in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, 30))
        end = draw(st.one_of(st.just(FOREVER), st.integers(start + 1, LAST)))
        state = draw(st.sampled_from(STATES))
        amounts = {name: draw(st.integers(1, 4))}
        made.append(Booking(f"{uuid}{name}{number}", uuid, amounts, Period(start, end), state))
    return tuple(made)


@st.composite
def fleets(draw: st.DrawFn) -> Snapshot:
    """Three hosts, each with VCPU of its own and two devices below it; some are away at times."""
    states = []
    for host in "abc":
        down = tuple(
            Period(start, draw(st.one_of(st.just(FOREVER), st.integers(start + 1, LAST))))
            for start in draw(st.lists(st.integers(0, 30), max_size=2))
        )
        cpu = Inventory("VCPU", 8)
        states.append(
            ProviderState(provider(host, host, cpu), draw(bookings(host, "VCPU")), (), down)
        )
        for device in (f"{host}1", f"{host}2"):
            vf = Inventory("SRIOV_NET_VF", draw(st.integers(1, 6)))
            booked = draw(bookings(device, "SRIOV_NET_VF"))
            states.append(ProviderState(provider(device, host, vf), booked, (), down))
    return Snapshot.empty(now=NOW).with_states(states)


def taken(state: ProviderState, at: int, states: set[BookingState]) -> int:
    return sum(
        sum(one.amounts.values())
        for one in state.bookings
        if one.state in states
        and one.live(NOW)
        and one.period.start <= at < one.occupies_until(NOW)
    )


def capacity(state: ProviderState, at: int) -> int:
    away = any(one.start <= at < one.end for one in state.down)
    return 0 if away else state.provider.inventories[0].capacity


def states_of(snapshot: Snapshot, name: str) -> list[ProviderState]:
    every = (snapshot.state(row) for row in range(len(snapshot.uuids)))
    return [one for one in every if one.provider.inventories[0].resource_class == name]


def free(state: ProviderState, at: int) -> int:
    return max(0, capacity(state, at) - taken(state, at, set(STATES)))


def fits(snapshot: Snapshot, at: int, until: int, amount: int, vfs: int) -> int:
    """How many could stay from `at` until just before `until`, host by host."""
    found = 0
    for host in "abc":
        cpu, *devices = [
            snapshot.state(row) for row in snapshot.tree(snapshot.row_of[host]).tolist()
        ]
        least = [min(free(one, t) for t in range(at, until)) for one in (cpu, *devices)]
        found += min(least[0] // amount, sum(one // vfs for one in least[1:]))
    return found


@given(fleets(), st.sampled_from(("VCPU", "SRIOV_NET_VF")))
def test_the_functions_are_what_counting_gives(snapshot: Snapshot, name: str) -> None:
    found = profile(snapshot, hosts_where(snapshot), name, Period(NOW, LAST + 5))
    instants = np.arange(NOW, LAST + 5)
    at: list[int] = instants.tolist()
    every = states_of(snapshot, name)
    assert found.total.values_at(instants).tolist() == [
        sum(capacity(s, t) for s in every) for t in at
    ]
    assert found.allocated.values_at(instants).tolist() == [
        sum(min(taken(s, t, TAKING), capacity(s, t)) for s in every) for t in at
    ]
    assert found.unbacked.values_at(instants).tolist() == [
        sum(max(taken(s, t, set(STATES)) - capacity(s, t), 0) for s in every) for t in at
    ]
    assert found.available.values_at(instants).tolist() == [
        sum(free(s, t) for s in every) for t in at
    ]
    added = np.array(
        [f.values_at(instants) for f in (found.reserved, found.allocated, found.available)]
    )
    assert found.total.values_at(instants).tolist() == added.sum(axis=0).tolist()
    assert added.min() >= 0


@given(fleets(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 12))
def test_how_many_fit_is_what_counting_gives(
    snapshot: Snapshot, amount: int, vfs: int, length: int
) -> None:
    size = {"VCPU": amount, "SRIOV_NET_VF": vfs}
    window = Period(NOW, LAST + 5)
    hosts = hosts_where(snapshot)
    now = count_fits(snapshot, hosts, size, window).total()
    assert now.values_at(np.arange(NOW, LAST + 5)).tolist() == [
        fits(snapshot, t, t + 1, amount, vfs) for t in range(NOW, LAST + 5)
    ]
    staying = count_fits(snapshot, hosts, size, window, duration=length).total()
    starts = np.arange(NOW, LAST + 6 - length)
    assert staying.values_at(starts).tolist() == [
        fits(snapshot, t, t + length, amount, vfs) for t in starts.tolist()
    ]


@given(fleets(), st.integers(0, 20), st.integers(1, 30))
def test_nobody_sees_capacity_while_a_host_is_away(
    snapshot: Snapshot, start: int, length: int
) -> None:
    period = Period(NOW + start, NOW + start + length)
    for name in ("VCPU", "SRIOV_NET_VF"):
        columns = snapshot.classes[name]
        peak = snapshot.peak_over(name, period)
        without = snapshot.peak_over(
            name, period, without=frozenset(one.consumer for one in snapshot.bookings_of(0))
        )
        for n, row in enumerate(columns.rows.tolist()):
            if any(one.overlaps(period) for one in snapshot.state(row).down):
                assert peak[n] >= columns.capacity[n]
                assert without[n] >= columns.capacity[n]
                assert columns.max_addition[n] <= 0


@given(fleets(), st.integers(NOW, LAST + 5))
def test_time_passes_a_planned_change_by(snapshot: Snapshot, later: int) -> None:
    states = [snapshot.state(row) for row in range(len(snapshot.uuids))]
    fresh, passed = Snapshot.empty(now=later).with_states(states), snapshot.at(later)
    for name, columns in fresh.classes.items():
        assert passed.classes[name].peak.tolist() == columns.peak.tolist()
