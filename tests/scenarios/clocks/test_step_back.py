"""A clock that steps back: nothing is done or promised twice, and nothing is forgotten."""

from dataclasses import replace

import pytest
from tests.scenarios.schedules.plan import Host, Plan
from tests.scenarios.schedules.steps import Boot, Delete, Draw, Grant, Step, StepBack, Wait
from tests.scenarios.schedules.walk import walk

from moorage.domain.leases import Yielding
from moorage.domain.period import DAY, HOUR, MINUTE, SECOND

GRANT = Grant(
    ahead=2 * HOUR,
    length=6 * HOUR,
    rounding=HOUR,
    vcpu=2,
    memory=1,
    members=2,
    apart=False,
    lead=10 * MINUTE,
    cleaning=10 * MINUTE,
    expiry=HOUR,
    actions={"on_start": ("notify",), "before_end": ("notify",), "on_end": ("notify",)},
    before=frozenset(Yielding),
)
BOOT = Boot(vcpu=4, memory=1, hours=1, preemptible=False, pick=0)


def walked(*steps: Step) -> dict[str, int]:
    return dict(walk(Plan(0, (Host(4, 1.0, 4),), None, steps)).told)


@pytest.mark.parametrize("back", [1, SECOND, 5 * MINUTE, 30 * MINUTE])
@pytest.mark.parametrize(
    "after",
    [110 * MINUTE, 2 * HOUR, 3 * HOUR, 8 * HOUR, 8 * HOUR + 10 * MINUTE],
    ids=["prepared", "started", "expired", "ended", "closed"],
)
def test_at_each_edge_of_a_lease(after: int, back: int) -> None:
    told = walked(GRANT, Wait(after), StepBack(back), Wait(SECOND), Draw(0, 0), Wait(DAY))
    assert told["grant: granted"] == 1


def test_who_has_left_at_its_end_does_not_come_back() -> None:
    told = walked(BOOT, GRANT, Wait(HOUR), StepBack(30 * MINUTE), BOOT, Wait(DAY))
    assert told["boot: bounded"] == 2


def test_whose_server_goes_before_its_start_comes_again_has_its_place_still() -> None:
    grant = replace(GRANT, ahead=0, members=1, expiry=None)
    told = walked(grant, Draw(0, 0), StepBack(SECOND), Delete(0), Wait(MINUTE), Draw(0, 0))
    assert told["draw: drawn"] == 2
