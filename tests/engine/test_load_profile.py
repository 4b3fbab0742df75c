"""Courses against peaks that are found anew for every window."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.test_occupancy import spans, windows

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.period import Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.engine.time.load_profile import LoadProfile
from moorage.engine.time.occupancy import Spans, peaks

Items = list[tuple[int, int, int, int]]


@given(items=spans, window=windows)
def test_a_course_has_the_peaks_of_its_spans(items: Items, window: Period) -> None:
    found = LoadProfile.of(Spans.of(items)).peaks(5, window)
    assert found.tolist() == peaks(Spans.of(items), 5, window).tolist()


@given(before=spans, after=spans, touched=st.sets(st.integers(0, 3)), window=windows)
def test_a_course_with_other_spans_of_some_owners_is_that_of_all_spans(
    before: Items, after: Items, touched: set[int], window: Period
) -> None:
    rows = np.array(sorted(touched), dtype=np.int64)
    others = [one for one in after if one[0] in touched]
    course = LoadProfile.of(Spans.of(before)).with_owners(rows, LoadProfile.of(Spans.of(others)))
    whole = [one for one in before if one[0] not in touched] + others
    assert course.peaks(4, window).tolist() == peaks(Spans.of(whole), 4, window).tolist()
    assert (np.diff(course.owner) >= 0).all(), "in order still"


bookings = st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(1, 9), st.integers(1, 4))


@given(changes=st.lists(st.lists(bookings, max_size=3), max_size=8), window=windows)
def test_who_asks_after_every_change_is_told_what_a_newcomer_is(
    changes: list[list[tuple[int, int, int, int]]], window: Period
) -> None:
    def host(number: int, some: list[tuple[int, int, int, int]]) -> ProviderState:
        stock = (Inventory("VCPU", 99),)
        on = (one for one in some if one[0] == number)
        return ProviderState(
            ResourceProvider(f"h{number}", f"h{number}", None, f"h{number}", inventories=stock),
            tuple(
                Booking(
                    f"{number}-{place}",
                    f"h{number}",
                    {"VCPU": amount},
                    Period(start, start + length),
                    BookingState.RESERVED,
                )
                for place, (_, start, length, amount) in enumerate(on)
            ),
        )

    states = {number: host(number, []) for number in range(10)}
    snapshot = Snapshot.empty().with_states(states.values())
    for some in changes:
        fresh = {number: host(number, some) for number, *_ in some}
        states |= fresh
        snapshot = snapshot.with_states(fresh.values())
        anew = Snapshot.empty().with_states(states.values())
        found = snapshot.peak_over("VCPU", window).tolist()
        assert found == anew.peak_over("VCPU", window).tolist()
