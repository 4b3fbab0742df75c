"""`moorage ensemble boot`: creates the servers of an ensemble in Nova, in their held places."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from moorage.cli import failures
from moorage.cli.command import Command
from moorage.cli.command_names import as_typed
from moorage.cli.decision_text import SEPARATOR, held_until
from moorage.cli.files import read_text
from moorage.cli.output import FAILED, OK, Shown, short, stack, table
from moorage.cli.parser import ENSEMBLE, Flag, Option, Repeated
from moorage.cli.placement_map import summed
from moorage.cli.progress import Adder, progress
from moorage.client.errors import ApiError
from moorage.domain.words import natural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import RenderableType

    from moorage.client.boot import BootListener, BootResult
    from moorage.client.boot_plan import Rules, Seen
    from moorage.client.boot_session import Outcome
    from moorage.domain.nova_servers import ServerOptions


def positive(text: str) -> int:
    """Read a number of at least 1.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"a number from 1 on, not {text}")
    return int(text)


def boot_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how servers are created, and what happens with those that fail."""
    for declare in (
        Option("--image", metavar="IMAGE", help="name or id, instead of the role's"),
        Repeated("--network", metavar="NETWORK", help="name or id, auto or none; repeatable"),
        Option("--key-name", metavar="KEY", help="the key pair"),
        Option("--user-data", metavar="FILE", help="a file that the server gets as user data"),
        Repeated("--security-group", metavar="NAME", help="repeatable"),
        Option(
            "--on-failure",
            choices=("keep", "delete", "stop"),
            default="keep",
            help="a server in ERROR: keep it and go on; delete it and try another host, once; or"
            " keep it and begin no more (default: keep)",
        ),
    ):
        declare(parser)
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument(
        "--wait",
        action="store_true",
        default=True,
        help="until the servers are active (default)",
    )
    waiting.add_argument(
        "--no-wait", action="store_false", dest="wait", help="return while Nova builds"
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="1h",
        help="wait for the servers so long at most (default: 1h)",
    )


def seconds(text: str) -> float:
    """Read a duration.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    from moorage.domain.errors import InvalidDescription
    from moorage.domain.period import SECOND, parse_duration

    try:
        return parse_duration(text) / SECOND
    except InvalidDescription as error:
        raise argparse.ArgumentTypeError(error.message) from None


def given_options(args: argparse.Namespace) -> ServerOptions:
    """The options of servers on the command line."""
    from moorage.domain.describe_server_options import read_server_options

    said: dict[str, Any] = {
        "image": args.image,
        "networks": args.network,
        "key_name": args.key_name,
        "security_groups": args.security_group,
    }
    if args.user_data is not None:
        said["user_data"] = read_text(args.user_data)
    return read_server_options(said, "--network")


class Booting(Command):
    """A command that creates servers of members."""

    def booted(self, args: argparse.Namespace, **which: Any) -> Shown:  # noqa: ANN401 - fields of several types
        """Create the servers of some members, with progress on stderr; `which` is of `BootOrder`.

        Raises:
            MoorageError: as `Boot.run`.
        """
        from moorage.client.boot import Boot, BootInterrupted, BootOrder
        from moorage.client.boot_plan import OnFailure, Rules
        from moorage.client.boot_session import Timing

        with (
            self.client() as client,
            self.nova() as compute,
            progress(self.app.stderr) as draw,
        ):
            order = BootOrder(
                ensemble_id=client.ensembles.find(args.ensemble),
                given=given_options(args),
                rules=Rules(OnFailure(args.on_failure), args.wait),
                timing=Timing() if args.timeout is None else Timing(timeout=args.timeout),
                **which,
            )
            boot = Boot(client, compute, order, self._listener(draw))
            if getattr(args, "dry_run", False):
                return planned(boot.plan(), order.rules)
            try:
                result = boot.run()
            except BootInterrupted as stopped:
                self.app.stderr.write(f"{as_typed(summary(stopped.result, args.ensemble))}\n")
                raise
        text = described(result, args.ensemble)
        return Shown(result_body(result, args.ensemble), text, OK if result.complete else FAILED)

    def _listener(self, draw: Callable[[str, int, int], None]) -> BootListener:
        from moorage.client.boot import BootListener

        out = self.app.stderr
        bar = Adder(draw, "servers", 0)
        fresh = "\r\x1b[K" if out.isatty() else ""

        def begun(count: int) -> None:
            bar.of = count
            bar.advance(0)

        def notice(member: str, text: str) -> None:
            out.write(f"{fresh}{member}: {as_typed(text)}\n")
            out.flush()

        return BootListener(begun, lambda _: bar.advance(1), notice)


class Boot(Booting):
    """Create the servers of an ensemble in Nova, each in its held place.

    Each member's place is claimed, its server is created with the flavor of its role and the image,
    networks, key and user data that the role describes, and watched until it is active. When every
    member has its server, the decision is confirmed. If the command is interrupted or fails, run it
    again: it goes on with what is there.
    """

    examples = """
        moorage ensemble boot shop
        moorage ensemble boot shop --only db --image debian-13 --network shop-net --key-name ann
        moorage ensemble boot shop --on-failure delete     # another host for a failed build, once
        moorage ensemble boot shop --dry-run               # what would be done
    """
    options = (
        ENSEMBLE,
        Option("--only", metavar="ROLE", help="only the members of this role"),
        boot_arguments,
        Option(
            "--parallel",
            type=positive,
            metavar="N",
            help="create and watch so many servers at once (default: 8)",
        ),
        Flag("--dry-run", "show what would be done for each member, do nothing"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        which = {} if args.parallel is None else {"parallel": args.parallel}
        return self.booted(args, role=args.only, **which)


def result_body(result: BootResult, ensemble: str) -> dict[str, Any]:
    """The result as JSON."""
    members = [
        {
            "member": one.member,
            "status": one.state.value,
            "server_id": one.server_id,
            "message": as_typed(_named(one.message, ensemble)),
        }
        for one in result.outcomes
    ]
    found = {
        "ensemble_id": result.ensemble_id,
        "decision_id": result.decision.id,
        "members": members,
        "unclaimed": list(result.unclaimed),
        "confirmed": result.confirmed is not None,
    }
    return {"boot": found}


def described(result: BootResult, ensemble: str) -> RenderableType:
    """The members with their servers, and what is left to do."""
    ordered = sorted(result.outcomes, key=lambda one: natural(one.member))
    rows = [(one.member, one.state.value, one.server_id or "-") for one in ordered]
    why = [f"{one.member}: {_why(one, ensemble)}" for one in ordered if one.message]
    parts: list[RenderableType] = [
        table(["member", "status", "server"], rows),
        "",
        *why,
        summary(result, ensemble),
    ]
    return stack(*parts)


def _why(outcome: Outcome, ensemble: str) -> str:
    if isinstance(outcome.error, ApiError):
        return failures.sentence(outcome.error)
    return _named(outcome.message, ensemble)


def _named(message: str, ensemble: str) -> str:
    """A message whose commands are about this ensemble."""
    return message.replace("ENSEMBLE", ensemble)


def summary(result: BootResult, ensemble: str) -> str:
    """What was reached, on one line, and the commands that go on."""
    count = sum(one.state.value == "active" for one in result.outcomes)
    parts = [f"{count} of {len(result.outcomes)} servers active"]
    if result.confirmed is not None:
        parts.append(f"decision {short(result.decision.id)} confirmed")
    elif result.unclaimed:
        held = f"{summed(result.unclaimed)} still held until {held_until(result.decision)}"
        parts += [held, f"to free these: moorage ensemble confirm {ensemble}"]
    if result.unclaimed or count < len(result.outcomes):
        failed = any(one.state.value == "failed" and one.server_id for one in result.outcomes)
        replacing = " --on-failure delete" if failed else ""
        parts.append(f"to go on: moorage ensemble boot {ensemble}{replacing}")
    return SEPARATOR.join(parts)


_DOES = {
    "claim": "claim its place, create its server",
    "create": "create its server",
    "look": "watch what is under way",
    "mark": "report its server",
    "replace": "delete its failed server, place it anew",
}


def planned(seen: Mapping[str, Seen], rules: Rules) -> Shown:
    """What would be done next for each member."""
    from moorage.client.boot_plan import next_step

    steps = {name: next_step(one, rules) for name, one in seen.items()}
    rows = [
        (
            name,
            seen[name].status,
            "-" if (server := seen[name].server) is None else server.id,
            _DOES.get(step.action.value) or step.message or "nothing: it has its server",
        )
        for name, step in sorted(steps.items(), key=lambda item: natural(item[0]))
    ]
    body = {
        "plan": [
            {"member": name, "action": step.action.value, "message": step.message}
            for name, step in steps.items()
        ]
    }
    return Shown(body, table(["member", "status", "server", "next"], rows))
