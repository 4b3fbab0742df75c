"""`moorage sim run-plan`: a plan carried out on a simulation, whose clock is moved for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.plan import PLAN, applied
from moorage.cli.progress import progress
from moorage.cli.sim import SIMULATION, running
from moorage.client.discovery import Access
from moorage.domain.period import SECOND, format_instant, parse_instant

if TYPE_CHECKING:
    import argparse

    from moorage.cli.output import Shown
    from moorage.client.moorage import Moorage

_STEP: Final = 10 * SECOND
"""By how much the clock is moved at a time; it stops at every end of a move on its way."""
_MOST_STEPS: Final = 10_000


class RunPlan(Command):
    """Apply a plan on a simulation and move its clock until the plan is done.

    Servers move as Nova moves them, and take some seconds by the simulation's clock. The exit
    status is 1 if the plan was paused.
    """

    examples = "moorage sim run-plan 6f0c"
    options = (PLAN, SIMULATION)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.moorage import connect

        found = running(args.name)
        with connect(Access(found.endpoint, found.token)) as client:
            plan_id = client.plans.find(args.plan)
            answer = client.plans.apply(plan_id)
            with progress(self.app.stderr) as show:
                for _ in range(_MOST_STEPS):
                    plan = answer.value
                    show(f"{plan.kind} {plan.subject}", plan.done, plan.move_count)
                    moving = any(one.state == "moving" for one in plan.moves)
                    if plan.state != "running" and not moving:
                        break
                    _advance(client)
                    answer = client.plans.show(plan_id)
        return applied(answer, waited_for=True)


def _advance(client: Moorage) -> None:
    now = parse_instant(str(client.simulation.clock().value["now"]))
    client.simulation.set_clock(format_instant(now + _STEP))
