"""Counts and instants as tenants are told them: never better than they are, and coarse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.disclosure import Disclosure, on_series, said_names
from moorage.domain.period import FOREVER, HOUR, parse_instant
from moorage.domain.topology import Domain, Topology

USUAL = Disclosure()
TEN = parse_instant("2026-11-21T10:00:00Z")


@given(st.integers(0, 10**6))
def test_a_count_is_never_more_than_there_is(count: int) -> None:
    told = USUAL.count(count)
    assert told <= count
    assert told in USUAL.counts
    assert USUAL.count_text(count) == (f"{told}+" if told else "0")
    assert USUAL.whole(count) is (told == count and USUAL.count(count + 1) == count + 1)


@given(st.integers(0, 10**15))
def test_what_is_busy_never_looks_free(at: int) -> None:
    assert USUAL.since(at) <= at <= USUAL.until(at)
    assert USUAL.since(at) % HOUR == USUAL.until(at) % HOUR == 0
    assert USUAL.until(at) - USUAL.since(at) in {0, HOUR}


def test_a_whole_multiple_is_told_as_it_is_and_never_stays_never() -> None:
    assert (USUAL.since(TEN), USUAL.until(TEN)) == (TEN, TEN)
    assert USUAL.until(FOREVER) == FOREVER


@pytest.mark.parametrize(
    ("number", "before", "expected"),
    [(9, 12, 8), (9, 4, 10), (8, 12, 8), (1, 12, 1), (11, 9, None), (0, 4, None)],
)
def test_a_change_goes_to_the_next_value_beyond(
    number: int, before: int, expected: int | None
) -> None:
    assert on_series(number, before, (1, 2, 4, 8, 10)) == expected


def test_texts_name_zones_alone() -> None:
    domains = [Domain("z1", "zone"), Domain("r1", "rack", parent="z1")]
    topology = Topology.build({"location": ("zone", "rack")}, domains)
    assert said_names(topology, {"z1"}) == "z1"
    assert said_names(topology, {"z1", "r1", "h1"}) == "z1, the places it names"
    assert said_names(topology, {"h1"}) == "the places it names"
    assert Disclosure().names_of(topology) == {"z1"}
    wide = Disclosure(levels=frozenset({"zone", "rack", "host"}))
    assert wide.names_of(topology) == {"z1", "r1"}
    assert wide.words() == "rack or zone"
