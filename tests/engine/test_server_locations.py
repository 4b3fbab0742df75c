"""Where server providers are: they follow their servers, and go round in no circles."""

from collections.abc import Iterable, Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import SHARING_TRAIT, Inventory, ResourceProvider
from moorage.engine.state.server_locations import (
    NOWHERE,
    host_of,
    host_of_server,
    hosts_of_rows,
)
from moorage.engine.state.snapshot import ProviderState, Snapshot


def state(
    name: str,
    *consumers: str,
    offered_by: str | None = None,
    root: str | None = None,
    traits: frozenset[str] = frozenset(),
    state: BookingState = BookingState.ALLOCATED,
    start: int = 0,
    end: int = FOREVER,
) -> ProviderState:
    provider = ResourceProvider(
        *(name, name, root, root or name),
        inventories=(Inventory("CUSTOM_SESSION", 100),),
        traits=traits,
        offered_by=offered_by,
    )
    bookings = tuple(
        Booking(one, name, {"CUSTOM_SESSION": 1}, Period(start, end), state, lapses_at=FOREVER)
        for one in consumers
    )
    return ProviderState(provider, bookings, tuple(Occupant(one, "p") for one in consumers))


def snapshot(*states: ProviderState, now: int = 10) -> Snapshot:
    return Snapshot.empty().with_states(states, now=now)


def where(found: Snapshot, name: str) -> str | None:
    row = host_of(found, found.row(name))
    return None if row == NOWHERE else found.names[row]


def test_a_server_provider_follows_its_server_without_any_write_to_it() -> None:
    found = snapshot(state("h1", "server"), state("h2"), state("slice", offered_by="server"))
    assert where(found, "slice") == "h1"
    moved = found.with_states([state("h1"), state("h2", "server")])
    assert where(moved, "slice") == "h2"
    assert where(found, "slice") == "h1"
    shelved = moved.with_states([state("h2")])
    assert where(shelved, "slice") is None
    assert where(shelved.with_states([state("h1", "server")]), "slice") == "h1"


def test_hosts_and_what_is_below_them_are_where_they_were() -> None:
    found = snapshot(state("h1"), state("child", root="h1"))
    assert hosts_of_rows(found) is found.root
    offered = found.with_states([state("slice", offered_by="nobody")])
    assert hosts_of_rows(offered).tolist() == [0, 0, NOWHERE]


def test_an_allocation_below_a_host_is_on_the_host() -> None:
    found = snapshot(
        state("h1"), state("numa", "server", root="h1"), state("slice", offered_by="server")
    )
    assert where(found, "slice") == "h1"


def test_shared_storage_is_no_host() -> None:
    pool = state("nfs", "server", traits=frozenset({SHARING_TRAIT}))
    found = snapshot(state("h1", "server"), pool, state("slice", offered_by="server"))
    assert where(found, "slice") == "h1"
    assert where(found.with_states([state("h1")]), "slice") is None


def test_who_is_on_two_hosts_is_nowhere() -> None:
    found = snapshot(
        state("h1", "server"), state("h2", "server"), state("slice", offered_by="server")
    )
    assert where(found, "slice") is None


def test_holds_and_allocations_of_later_are_no_place() -> None:
    slice_ = state("slice", offered_by="server")
    assert where(snapshot(state("h", "server", state=BookingState.HELD), slice_), "slice") is None
    later = snapshot(state("h", "server", start=20), slice_)
    assert where(later, "slice") is None
    assert where(later.at(20), "slice") == "h"
    overrun = snapshot(state("h", "server", end=5), slice_)
    assert where(overrun, "slice") == "h"


def test_a_server_that_is_a_slice_itself_is_where_that_is() -> None:
    found = snapshot(
        state("h1", "a"), state("of a", "b", offered_by="a"), state("of b", offered_by="b")
    )
    assert where(found, "of b") == "h1"


def test_a_server_with_a_host_is_there_whatever_slices_it_uses() -> None:
    found = snapshot(
        *(state("h1", "a"), state("h2", "b")),
        *(state("of a", "b", offered_by="a"), state("of b", offered_by="b")),
    )
    assert where(found, "of b") == "h2"


def test_who_stands_only_on_itself_is_nowhere() -> None:
    found = snapshot(state("of a", "b", offered_by="a"), state("of b", "a", offered_by="b"))
    assert (where(found, "of a"), where(found, "of b")) == (None, None)


def test_many_ways_down_are_walked_once() -> None:
    """Each server stands on two slices of the one below: a million million paths."""
    states = [state("h", "s0")]
    for number in range(40):
        states += [
            state(f"{number}{way}", f"s{number + 1}", offered_by=f"s{number}") for way in "ab"
        ]
    found = snapshot(*states)
    assert found.names[host_of_server(found, "s40")] == "h"


servers = st.sampled_from("abcd")
places = st.dictionaries(st.sampled_from(["h1", "h2", *"abcd"]), st.sets(servers), min_size=1)


def stated(where: Mapping[str, Iterable[str]]) -> list[ProviderState]:
    """Hosts, and a provider of each server, named like it; with who stands on them."""
    hosts = [state(one, *sorted(where.get(one, ()))) for one in ("h1", "h2")]
    return hosts + [state(one, *sorted(where.get(one, ())), offered_by=one) for one in "abcd"]


def expected(where: Mapping[str, Iterable[str]], server: str) -> str | None:
    """The one host that can be reached, where a server with a host goes no further."""
    ends: set[str | None] = set()
    seen: set[str] = set()

    def walk(one: str) -> None:
        if one in seen:
            return
        seen.add(one)
        on = [place for place, there in where.items() if one in there]
        hosts = [place for place in on if place.startswith("h")]
        if hosts or not on:
            ends.update(hosts or [None])
            return
        for place in on:
            walk(place)

    walk(server)
    return ends.pop() if len(ends) == 1 else None


@given(places, places)
def test_whatever_moves_they_follow(
    before: Mapping[str, set[str]], after: Mapping[str, set[str]]
) -> None:
    first = snapshot(*stated(before))
    for found, truth in ((first, before), (first.with_states(stated(after)), after)):
        for one in "abcd":
            assert where(found, one) == expected(truth, one)
        every = [host_of(found, row) for row in range(len(found.uuids))]
        assert np.array_equal(hosts_of_rows(found), every)


def test_offers_are_kept_by_difference() -> None:
    first = snapshot(state("h1"), state("slice", offered_by="a"))
    booked = first.with_states([state("h1", "a"), state("slice", "x", offered_by="a")])
    assert booked.offered_by is first.offered_by
    assert booked.offered_by == {1: "a"}
    gone = booked.with_states(removed=["slice"])
    assert gone.offered_by == {}
    assert gone.with_states([state("other")]).offered_by == {}
    assert first.offered_by == {1: "a"}
