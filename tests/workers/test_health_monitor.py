"""The health monitor: its results for each part, checks that hang, and what it logs."""

import time
from threading import Event

import pytest

from moorage.workers.health_monitor import HealthMonitor, NotReady


def wait_for(told: list[tuple[str, bool]], what: tuple[str, bool]) -> None:
    deadline = time.monotonic() + 100
    while what not in told:
        assert time.monotonic() < deadline, told
        time.sleep(0.01)


def test_a_look_that_hangs_is_told_of_while_it_hangs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[tuple[str, bool]] = []
    hung, go_on = Event(), Event()

    def look() -> None:
        if told and not go_on.is_set():
            hung.set()
            go_on.wait(60)

    one = HealthMonitor(
        {"database": look}, on_result=lambda name, good: told.append((name, good)), stale=1.0
    )
    one.start(interval=0.02)
    try:
        assert hung.wait(60)
        assert told[0] == ("database", True)
        wait_for(told, ("database", False))
        with pytest.raises(NotReady, match="the check takes more than"):
            one.check("database")
        assert [record.message for record in caplog.records] == [
            "not ready: database: the check takes more than 1 s"
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

    one = HealthMonitor({"solver": look}, on_result=lambda name, good: told.append((name, good)))
    one.start(interval=60)
    one.close()
    assert told == [("solver", False)]
    with pytest.raises(NotReady, match="no room"):
        one.check("solver")


@pytest.mark.parametrize(("starting", "logged"), [(600.0, []), (0.0, ["not ready: planner: none"])])
def test_a_part_that_has_not_started_yet_is_not_logged_at_once(
    caplog: pytest.LogCaptureFixture, starting: float, logged: list[str]
) -> None:
    checks: list[float] = []

    def look() -> None:
        checks.append(time.monotonic())
        raise ValueError("none")

    one = HealthMonitor({"planner": look}, starting=starting)
    one.start(interval=0.02)
    deadline = time.monotonic() + 100
    while len(checks) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    one.close()
    assert [record.message for record in caplog.records] == logged
