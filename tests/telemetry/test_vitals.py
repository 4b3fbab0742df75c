"""What the looks of a worker count as usable."""

import pytest

from moorage.telemetry.health_checks import PATIENCE, NoProcess, ProcessCheck


def test_a_solver_that_is_replaced_is_missed_only_when_it_stays_away() -> None:
    up, now = [0], [100.0]
    look = ProcessCheck("solver", lambda: up[0], clock=lambda: now[0])
    with pytest.raises(NoProcess):
        look()  # none was ever up
    up[0] = 1
    look()
    up[0] = 0
    now[0] += PATIENCE
    look()
    now[0] += 0.1
    with pytest.raises(NoProcess):
        look()
    up[0] = 1
    look()
