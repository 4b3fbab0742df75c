"""The simulation's clock: forward only, and never out of the calendar."""

from pathlib import Path

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import EARLIEST, HOUR, LATEST, parse_instant
from moorage.store.settable_clock import ClockRanBackwards, SettableClock, create

NINE = parse_instant("2026-11-21T09:00:00Z")


def test_every_reader_sees_it_move_and_it_never_moves_back(tmp_path: Path) -> None:
    create(tmp_path / "clock", NINE)
    one, other = SettableClock(tmp_path / "clock"), SettableClock(tmp_path / "clock")
    one.set(NINE + HOUR)
    assert other.now() == NINE + HOUR
    with pytest.raises(ClockRanBackwards, match="10:00:00Z already"):
        other.set(NINE)


def test_no_clock_is_set_beyond_the_times_that_can_be_written(tmp_path: Path) -> None:
    create(tmp_path / "clock", NINE)
    clock = SettableClock(tmp_path / "clock")
    with pytest.raises(InvalidDescription, match="a time must lie between"):
        clock.set(LATEST + 1)
    assert clock.now() == NINE
    clock.set(LATEST)
    assert clock.now() == LATEST


@pytest.mark.parametrize("instant", [EARLIEST - 1, LATEST + 1])
def test_no_clock_starts_out_of_bounds(tmp_path: Path, instant: int) -> None:
    with pytest.raises(InvalidDescription):
        create(tmp_path / "clock", instant)
    assert not (tmp_path / "clock").exists()
