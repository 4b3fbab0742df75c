"""The pulse: what it tells of parts, and of looks that do not come back."""

from __future__ import annotations

import time
from threading import Event

import pytest

from moorage.workers import pulse
from moorage.workers.pulse import NotReady, Pulse


def wait_for(told: list[tuple[str, bool]], what: tuple[str, bool]) -> None:
    deadline = time.monotonic() + 10
    while what not in told:
        assert time.monotonic() < deadline, told
        time.sleep(0.01)


def test_a_look_that_hangs_is_told_of_while_it_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pulse, "STALE", 0.2)
    told: list[tuple[str, bool]] = []
    hung, go_on = Event(), Event()

    def look() -> None:
        if told and not go_on.is_set():
            hung.set()
            go_on.wait(10)

    one = Pulse({"database": look}, told=lambda name, good: told.append((name, good)))
    one.start(interval=0.02)
    try:
        assert hung.wait(10)
        assert told[0] == ("database", True)
        wait_for(told, ("database", False))
        with pytest.raises(NotReady, match="looking at it takes more than"):
            one.check("database")
        assert [record.message for record in caplog.records] == [
            "not ready: database: looking at it takes more than 4 s"
        ]
        told.clear()
        told.append(("database", False))
        go_on.set()
        wait_for(told, ("database", True))
        one.check("database")
        assert caplog.records[-1].message == "ready again: database"
    finally:
        go_on.set()
        one.close()


def test_a_part_that_is_not_usable_is_told_of_at_once() -> None:
    told: list[tuple[str, bool]] = []

    def look() -> None:
        raise ValueError("no room")

    one = Pulse({"solver": look}, told=lambda name, good: told.append((name, good)))
    one.start(interval=60)
    one.close()
    assert told == [("solver", False)]
    with pytest.raises(NotReady, match="no room"):
        one.check("solver")
