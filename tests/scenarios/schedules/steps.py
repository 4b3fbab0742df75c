"""What may befall the cloud: each step knows how it is done and what must not come of it."""

from __future__ import annotations

from tests.scenarios.schedules.step import Step
from tests.scenarios.schedules.steps_leases import (
    ACTIONS,
    CHANGES,
    Cancel,
    Change,
    Claim,
    Finish,
    Forget,
    Grant,
    Place,
    Release,
)
from tests.scenarios.schedules.steps_servers import (
    Away,
    Boot,
    Delete,
    Disable,
    Draw,
    Move,
    Resize,
    StepBack,
    Wait,
)

__all__ = [
    "ACTIONS",
    "CHANGES",
    "Away",
    "Boot",
    "Cancel",
    "Change",
    "Claim",
    "Delete",
    "Disable",
    "Draw",
    "Finish",
    "Forget",
    "Grant",
    "Move",
    "Place",
    "Release",
    "Resize",
    "Step",
    "StepBack",
    "Wait",
]
