"""The state of hosts: from disabled services, inventories and absences, by each one's location."""

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.host_states import (
    DISABLED_TRAIT,
    Closing,
    ClosingReason,
    HostState,
    state_of,
)
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import SHARING_TRAIT, Inventory, ResourceProvider
from moorage.domain.reservables import WHOLE_HOST
from moorage.engine.state.host_states import closings, host_states
from moorage.engine.state.snapshot import ProviderState, Snapshot

NODE = {"VCPU": (8, 0), "MEMORY_MB": (64, 4), "DISK_GB": (10, 0)}


def state(
    name: str,
    stock: Mapping[str, tuple[int, int]],
    *consumers: str,
    root: str | None = None,
    traits: frozenset[str] = frozenset(),
    offered_by: str | None = None,
    down: tuple[Period, ...] = (),
) -> ProviderState:
    """A provider with totals and reserved amounts by class."""
    provider = ResourceProvider(
        *(name, name, root, root or name),
        inventories=tuple(Inventory(one, total, kept) for one, (total, kept) in stock.items()),
        traits=traits,
        offered_by=offered_by,
    )
    bookings = tuple(
        Booking(one, name, {}, Period(0, FOREVER), BookingState.ALLOCATED, lapses_at=FOREVER)
        for one in consumers
    )
    return ProviderState(provider, bookings, tuple(Occupant(one, "p") for one in consumers), down)


def snapshot(*states: ProviderState, now: int = 10) -> Snapshot:
    return Snapshot.empty().with_states(states, now=now)


def states(found: Snapshot) -> dict[str, str]:
    of = host_states(found)
    return {one: of.state(row).value for one, row in sorted(found.row_of.items())}


def reasons(found: Snapshot, name: str) -> list[str]:
    return [one.why.value for one in closings(found, found.row(name))]


def test_what_inventories_say() -> None:
    found = snapshot(
        state("full", NODE),
        state("cpu reserved", NODE | {"VCPU": (8, 8)}),
        state("memory reserved", NODE | {"MEMORY_MB": (64, 64)}),
        state("disk reserved", NODE | {"DISK_GB": (10, 10)}),
        state("cells", {"DISK_GB": (10, 0)}),
        state("cell", {"PCPU": (4, 0), "MEMORY_MB": (4, 0)}, root="cells"),
        state("reserved cells", {"DISK_GB": (10, 0)}),
        state("reserved cell", {"PCPU": (4, 4), "MEMORY_MB": (4, 0)}, root="reserved cells"),
        state("leased whole", {"MEMORY_MB": (4, 0), "DISK_GB": (10, 0)}),
        state("its unit", {WHOLE_HOST: (1, 0)}, root="leased whole"),
        state("metal", {"CUSTOM_METAL": (1, 0)}),
        state("metal in maintenance", {"CUSTOM_METAL": (1, 1)}),
        state("its accelerator", {"FPGA": (1, 0)}, root="metal in maintenance"),
        state("carrier", {}),
        state("device", {"FPGA": (1, 0)}, root="carrier"),
        state("gone", {}),
        state("pool", {"DISK_GB": (10, 10)}, traits=frozenset({SHARING_TRAIT})),
        state("empty pool", {}, traits=frozenset({SHARING_TRAIT})),
    )
    open_, closed, down = (one.value for one in HostState)
    assert states(found) == {
        "full": open_,
        "cpu reserved": closed,
        "memory reserved": closed,
        "disk reserved": open_,
        "cells": open_,
        "cell": open_,
        "reserved cells": closed,
        "reserved cell": closed,
        "leased whole": closed,
        "its unit": closed,
        "metal": open_,
        "metal in maintenance": closed,
        "its accelerator": closed,
        "carrier": open_,
        "device": open_,
        "gone": down,
        "pool": open_,
        "empty pool": open_,
    }
    assert reasons(found, "metal in maintenance") == ["no capacity"]
    assert reasons(found, "gone") == ["no inventory"]
    assert reasons(found, "full") == []


def test_a_slice_is_in_service_as_the_host_of_its_server_is() -> None:
    disabled = frozenset({DISABLED_TRAIT})
    found = snapshot(
        state("h1", NODE, "server", traits=disabled),
        state("h2", NODE),
        state("slice", {"CUSTOM_SESSION": (9, 0)}, offered_by="server"),
        state("nowhere", {"CUSTOM_SESSION": (9, 0)}, offered_by="shelved"),
    )
    assert states(found) == {"h1": "closed", "h2": "open", "slice": "closed", "nowhere": "open"}
    moved = found.with_states([state("h1", NODE, traits=disabled), state("h2", NODE, "server")])
    assert states(moved) == {"h1": "closed", "h2": "open", "slice": "open", "nowhere": "open"}
    assert states(found)["slice"] == "closed"


def test_an_absence_closes_from_its_start_to_its_end_without_a_write() -> None:
    away = Period(20, 30)
    found = snapshot(
        state("h1", NODE, down=(away,)),
        state("below", {"FPGA": (1, 0)}, root="h1", down=(away,)),
        state("bare", {}, down=(away,)),
        state("h2", NODE),
    )
    assert states(found)["h1"] == "open"
    assert closings(found, found.row("h1")) == (Closing(ClosingReason.PLANNED, 20, 30),)
    begun = found.at(20)
    assert states(begun) == {"h1": "down", "below": "down", "bare": "down", "h2": "open"}
    assert closings(begun, begun.row("h1")) == (Closing(ClosingReason.AWAY, 20, 30),)
    assert reasons(begun, "bare") == ["no inventory", "away"]
    assert not host_states(begun).lasting[begun.row("h1")], "its end is known"
    over = begun.at(30)
    assert states(over) == {"h1": "open", "below": "open", "bare": "down", "h2": "open"}
    assert closings(over, over.row("h1")) == ()
    assert states(found.at(19))["h1"] == "open"


def test_bookings_do_not_change_what_inventories_say() -> None:
    found = snapshot(state("h1", NODE), state("h2", NODE))
    host_states(found)
    kept = found.cache["host stock"]
    booked = found.with_states([state("h1", NODE, "server")], now=11)
    assert states(booked) == {"h1": "open", "h2": "open"}
    assert booked.cache["host stock"] is kept
    shrunk = booked.with_states([state("h1", NODE | {"VCPU": (8, 8)}, "server")], now=12)
    assert states(shrunk) == {"h1": "closed", "h2": "open"}
    assert states(booked)["h1"] == "open"


_STOCK = st.sampled_from([NODE, NODE | {"VCPU": (8, 8)}, {}])
_TRAITS = st.sampled_from([frozenset[str](), frozenset({DISABLED_TRAIT})])
_DOWN = st.sampled_from([(), (Period(5, 15),), (Period(15, FOREVER),)])
_HOSTS = st.dictionaries(st.sampled_from("abcd"), st.tuples(_STOCK, _TRAITS, _DOWN))


@given(_HOSTS, _HOSTS, st.integers(0, 20), st.integers(0, 20))
def test_a_changed_snapshot_has_the_states_of_one_made_anew(
    before: Mapping[str, tuple[dict[str, tuple[int, int]], frozenset[str], tuple[Period, ...]]],
    after: Mapping[str, tuple[dict[str, tuple[int, int]], frozenset[str], tuple[Period, ...]]],
    then: int,
    now: int,
) -> None:
    def made(
        some: Mapping[str, tuple[dict[str, tuple[int, int]], frozenset[str], tuple[Period, ...]]],
    ) -> list[ProviderState]:
        return [
            state(name, stock, traits=traits, down=down)
            for name, (stock, traits, down) in some.items()
        ]

    old = snapshot(*made(before), now=then)
    states(old)
    changed = old.with_states(made(after), removed=before.keys() - after.keys(), now=now)
    anew = snapshot(*made(after), now=now)
    assert states(changed) == states(anew)
    of = host_states(changed)
    for name, row in changed.row_of.items():
        assert closings(changed, row) == closings(anew, anew.row(name))
        assert of.state(row) is state_of(closings(changed, row))
    assert np.array_equal(of.in_service, of.severity == 0)
