"""`moorage plan create|list|show|...`, `host drain`, `ensemble repair`: moves of servers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from moorage.cli import plan_text
from moorage.cli.columns import columns
from moorage.cli.command import Command
from moorage.cli.files import read_text, reading
from moorage.cli.listing import part_of
from moorage.cli.output import FAILED, OK, Shown, listing, short
from moorage.cli.parser import DRY_RUN, ENSEMBLE, Flag, Option, WrongUsage
from moorage.cli.progress import progress
from moorage.cli.times import TIME_HELP, time_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import TextIO

    from moorage.client.moorage import Moorage
    from moorage.client.resource import Answer
    from moorage.wire.plans import Plan, PlanSummary

PLAN: Final = Option("plan", metavar="PLAN", help="id, or the beginning of one")
KINDS: Final = ("repair", "drain", "evacuate", "admit", "rebalance")
STATES: Final = ("ready", "running", "paused", "done", "canceled")
_OVER: Final = frozenset({"done", "canceled", "paused"})
_POLL_SECONDS: Final = 0.5


def limit_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare when a plan is to be done, and what may run at the same time."""
    add = parser.add_argument
    add("--by", type=time_of, metavar="T", help=f"when it is to be done, {TIME_HELP}")
    add("--max-parallel", type=int, metavar="N", help="moves at a time (default: the service's)")
    add("--max-per-host", type=int, metavar="N", help="of these, on one host")
    add("--max-failures", type=int, metavar="N", help="pause at so many failed moves")
    add("--cold", action="store_true", help="stop servers while they move")


def limits_body(args: argparse.Namespace) -> dict[str, Any]:
    """What these options say of a plan."""
    limits = {
        "parallel": args.max_parallel,
        "per_host": args.max_per_host,
        "failures": args.max_failures,
    }
    said: dict[str, Any] = {"limits": {name: one for name, one in limits.items() if one}}
    if args.by:
        said["by"] = args.by
    if args.cold:
        said["cold"] = True
    return said


class Create(Command):
    """Plan moves of servers; nothing moves before the plan is applied.

    A plan drains hosts that run, evacuates those that do not, repairs an ensemble whose policies
    are broken, makes room for an ensemble, or for more members of one, or improves the room that
    the fleet has for others. Every state on the way keeps capacity and the policies of the phase
    transition; the end state keeps all.
    """

    examples = """
        moorage plan create --drain h7 --by 2026-12-04T06:00Z
        moorage plan create --drain rack/r2 --max-parallel 4
        moorage plan create --evacuate h3
        moorage plan create --repair shop --dry-run
        moorage plan create --admit big.yaml
        moorage plan create --defragment-for shop --role db --count 2
        moorage plan create --rebalance --gain 0.5
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        add = what.add_argument
        hosts: dict[str, Any] = {"action": "append", "default": [], "metavar": "HOST"}
        add("--drain", **hosts, help="a host, or a domain such as rack/r2; repeatable")
        add("--evacuate", **hosts, help="the same, of hosts that do not run")
        add("--repair", metavar="ENSEMBLE", help="its policies hold again")
        add("--admit", metavar="FILE", help="room for a described ensemble; - reads stdin")
        add(
            "--defragment-for",
            metavar="ENSEMBLE",
            help="room for an ensemble that has no places, or for more members of one",
        )
        add("--rebalance", action="store_true", help="more room for what is usually requested")
        parser.add_argument("--role", metavar="ROLE", help="with --defragment-for and --count")
        parser.add_argument("--count", type=int, metavar="N", help="so many more of --role")
        parser.add_argument(
            "--gain", type=float, metavar="X", help="with --rebalance: of one move, at least"
        )
        limit_arguments(parser)
        DRY_RUN(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        if (args.role is None) != (args.count is None):
            raise WrongUsage("give --role and --count, or neither")
        with self.client() as client:
            answer = client.plans.create(_body(client, args), dry_run=args.dry_run)
        return made(answer, dry_run=args.dry_run)


def _body(client: Moorage, args: argparse.Namespace) -> dict[str, Any]:
    said = limits_body(args)
    if args.gain is not None:
        said["gain"] = args.gain
    if args.role is not None:
        said |= {"role": args.role, "count": args.count}
    if args.drain or args.evacuate:
        return {**said, **hosts_body("drain" if args.drain else "evacuate", args)}
    if args.repair:
        return {**said, "kind": "repair", "ensemble": client.ensembles.find(args.repair)}
    if args.defragment_for:
        ensemble = client.ensembles.find(args.defragment_for)
        return {**said, "kind": "admit", "ensemble": ensemble}
    if args.admit:
        from moorage.client.description import read_description

        with reading(args.admit):
            body, _ = read_description(read_text(args.admit))
        return {**said, "kind": "admit", "description": body}
    return {**said, "kind": "rebalance"}


def hosts_body(kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """The kind and the hosts and domains of a plan to empty some: `rack/r2` is a domain."""
    named = getattr(args, kind)
    return {
        "kind": kind,
        "hosts": [one for one in named if "/" not in one],
        "domains": [one for one in named if "/" in one],
    }


def made(answer: Answer[Plan], *, dry_run: bool) -> Shown:
    """A plan that was made, with what to do next."""
    plan = answer.value
    if dry_run or not plan.moves:
        return Shown(answer.body, plan_text.shown(plan, stored=not dry_run))
    said = f"plan {short(plan.id)}  {plan_text.summary(plan)}\n"
    said += f"show it: moorage plan show {plan.id[:8]}   apply it: moorage plan apply {plan.id[:8]}"
    return Shown(answer.body, said)


class List(Command):
    """List plans, newest first."""

    options = (
        Option("--state", choices=STATES, help="only plans in this state"),
        Option("--kind", choices=KINDS, help="only plans of this kind"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.plans.all(state=args.state, kind=args.kind, part=part_of(args, {}))
        cells = {
            **columns("id:short kind for=subject state #moves=move_count #done #failed"),
            **columns("made=created_at:moment note"),
        }
        return Shown(found.body, listing(cells, found.value, quiet=("note",)))


class Show(Command):
    """Show a plan: its moves in order, what each waits for, and what cannot be moved.

    With -f commands the moves that are left are commands of the `openstack` client, in order.
    """

    examples = """
        moorage plan show 6f0c
        moorage plan show 6f0c -f commands > moves.sh
    """
    options = (PLAN,)
    drawn = ("commands",)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.plans.show(client.plans.find(args.plan))
        plan = found.value
        return Shown(found.body, plan_text.shown(plan), drawn=lambda _: plan_text.commands(plan))


class Apply(Command):
    """Let the moves of a plan begin, and hold their targets.

    A plan that is paused goes on, and its failed moves are tried again. With --wait the command
    shows how far it is, and ends when it is done; the exit status is 1 if it was paused or
    canceled. The service goes on if the command is interrupted.
    """

    examples = "moorage plan apply 6f0c --wait"
    options = (PLAN, Flag("--wait", "until it is done, paused or canceled"))

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            plan_id = client.plans.find(args.plan)
            answer = client.plans.apply(plan_id)
            if args.wait:
                answer = waited(client, plan_id, self.app.stderr)
        return applied(answer, waited_for=args.wait)


def waited(client: Moorage, plan_id: str, stderr: TextIO) -> Answer[Plan]:
    """The plan once it is over or paused, with a progress bar until then."""
    with progress(stderr) as show:
        while True:
            answer = client.plans.show(plan_id)
            plan = answer.value
            show(f"{plan.kind} {plan.subject}", plan.done, plan.move_count)
            moving = any(one.state == "moving" for one in plan.moves)
            if plan.state in _OVER and not moving:
                return answer
            time.sleep(_POLL_SECONDS)


def applied(answer: Answer[Plan], *, waited_for: bool) -> Shown:
    """How far an applied plan is; a failure if it was waited for and has not attained all."""
    plan = answer.value
    attained = plan.state == "done" and not plan.unmoved_count
    status = FAILED if waited_for and not attained else OK
    return Shown(answer.body, told(plan), status)


def told(plan: PlanSummary) -> str:
    """A plan's state in one line, with its note."""
    note = f"\n{plan.note}" if plan.note else ""
    return f"plan {short(plan.id)}  {plan.kind} {plan.subject}: {plan_text.state_of(plan)}{note}"


class Pause(Command):
    """Let no further move of a plan begin until it is applied again.

    Moves under way go on. Targets stay held for an hour at most.
    """

    options = (PLAN,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.plans.pause(client.plans.find(args.plan))
        return Shown(answer.body, told(answer.value))


class Cancel(Command):
    """Let no further move of a plan begin, for good; what was moved stays where it is.

    Moves under way go on.
    """

    options = (PLAN,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.plans.cancel(client.plans.find(args.plan))
        return Shown(answer.body, told(answer.value))


class Delete(Command):
    """Delete a plan that was never applied or is over."""

    options = (PLAN,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            plan = client.plans.find(args.plan)
            client.plans.delete(plan)
        return Shown({"deleted": plan}, f"deleted {short(plan)}")


APPLY: Final = Flag("--apply", "apply the plan at once")
WAIT: Final = Flag("--wait", "with --apply: until it is done, paused or canceled")


def planned(command: Command, plan: Mapping[str, Any], args: argparse.Namespace) -> Shown:
    """Make a plan, and apply it if that is requested and there is something to move."""
    if args.wait and not args.apply:
        raise WrongUsage("--wait: only with --apply")
    with command.client() as client:
        answer = client.plans.create(plan, dry_run=args.dry_run)
        if args.dry_run or not args.apply or not answer.value.moves:
            return made(answer, dry_run=args.dry_run)
        answer = client.plans.apply(answer.value.id)
        if args.wait:
            answer = waited(client, answer.value.id, command.app.stderr)
    return applied(answer, waited_for=args.wait)


class Drain(Command):
    """Plan that hosts become empty, as `moorage plan create --drain` does.

    Nothing moves before the plan is applied, here with --apply. Close the hosts first, so that
    nothing new is placed there.
    """

    examples = """
        moorage host close h7 --reason "new firmware"
        moorage host drain h7 --by 2026-12-04T06:00Z
        moorage host drain rack/r2 --max-parallel 4 --apply --wait
    """
    options = (
        Option("drain", nargs="+", metavar="HOST", help="a host, or a domain such as rack/r2"),
        limit_arguments,
        APPLY,
        WAIT,
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        return planned(self, {**limits_body(args), **hosts_body("drain", args)}, args)


class Repair(Command):
    """Plan that the broken policies of an ensemble hold again, with the fewest moves.

    Nothing moves before the plan is applied, here with --apply.
    """

    examples = """
        moorage ensemble repair shop
        moorage ensemble repair shop --apply --wait
    """
    options = (ENSEMBLE, limit_arguments, APPLY, WAIT, DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble = client.ensembles.find(args.ensemble)
        body = {**limits_body(args), "kind": "repair", "ensemble": ensemble}
        return planned(self, body, args)
