"""`moorage ensemble create`: from a description to held places in one call."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from moorage.cli import told
from moorage.cli.command import Command
from moorage.cli.output import FORMATS, Shown
from moorage.cli.shipped import read_text, reading
from moorage.cli.times import TIME_HELP, time_of

if TYPE_CHECKING:
    from collections.abc import Sequence

OBJECTIVES = ("spread", "pack", "balance")


class FileOrFormat(argparse.Action):
    """`-f shop.yaml` is the file, `-f json` the format, as everywhere else."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Tell the two apart; a file called `json` is `./json`."""
        target = "form" if values in FORMATS and option_string == "-f" else "file"
        if target == "file" and getattr(namespace, "server", None) is not None:
            parser.error(f"argument {option_string}: not allowed with argument --server")
        setattr(namespace, target, values)


class ServerNotFile(argparse.Action):
    """`--server m1.small` describes what a file would."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Take it, unless there is a file."""
        if namespace.file is not None:
            parser.error(f"argument {option_string}: not allowed with argument -f/--file")
        namespace.server = values


def decide_arguments(parser: argparse.ArgumentParser) -> None:
    """How to decide: the same for every command that does."""
    add = parser.add_argument
    add("--dry-run", action="store_true", help="decide by the same code, write nothing")
    add("--hold", metavar="10m", help="keep the places for so long (default: the service's)")
    add("--objective", choices=OBJECTIVES, help="what is better (default: spread)")
    add("--until", type=time_of, metavar="T", help=f"how long they stay, {TIME_HELP}")
    add("--preemptible", action="store_true", help="they may be ended early for a lease")
    add("--priority", type=int, metavar="N", help="with it: those with less end first (default 0)")
    add("--seed", type=int, metavar="N", help="another seed, maybe another equal answer")
    add("--time-limit", metavar="5s", help="search no longer than this")
    add(
        "--additional",
        action="append",
        metavar="ROLE",
        help="also count how many more of this role would fit (default: the first role; in a dry"
        " run none)",
    )


def decide_body(args: argparse.Namespace, roles: Sequence[str]) -> dict[str, Any]:
    """The `decide` part of a body: only what was said."""
    said = {
        "hold": args.hold,
        "objective": args.objective,
        "until": args.until,
        "preemptible": args.preemptible or None,
        "priority": args.priority,
        "seed": args.seed,
        "time_limit": args.time_limit,
        "max_additional": args.additional or ([] if args.dry_run else list(roles[:1])),
    }
    return {name: value for name, value in said.items() if value not in (None, [])}


class Create(Command):
    """Describe an ensemble, place it jointly and hold the places.

    All members are placed in one decision, or none. The places are held until they are
    claimed or the hold lapses. If nothing fits, the answer names a minimal conflict and
    changes that a solve has shown to work, and the exit status is 3.
    """

    examples = """
        moorage ensemble create -f shop.yaml --dry-run       # would it fit? nothing is written
        moorage ensemble create -f shop.yaml --hold 10m      # place and hold
        moorage ensemble create --server m1.small --count 3  # three servers, no file
        moorage ensemble create -f shop.yaml --until 2026-12-07T07:00Z   # gone by then
        moorage ensemble create -f shop.yaml -f json         # the API's answer
        moorage ensemble create --server m1.small -f json    # a file of that name is ./json
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Where the description is, and how to decide."""
        self._usage_error = parser.error
        parser.add_argument(
            "-f",
            "--file",
            action=FileOrFormat,
            metavar="FILE",
            help="description; - reads stdin. -f table|json|yaml is the format, as everywhere",
        )
        parser.add_argument(
            "--server", action=ServerNotFile, metavar="FLAVOR", help="instead of a file: one role"
        )
        parser.add_argument("--count", type=int, default=1, metavar="N", help="with --server")
        parser.add_argument("--name", help="another name than the description's")
        parser.add_argument("--describe-only", action="store_true", help="do not place it yet")
        decide_arguments(parser)

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """`-f` is the file's here; `-f json` works all the same."""
        parser.add_argument(
            "--format", choices=FORMATS, default="table", dest="form", help="also: -f json"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Create."""
        if args.file is None and args.server is None:
            self._usage_error("one of the arguments -f/--file --server is required")
        body = self._body(args)
        if args.name:
            body["name"] = args.name
        if not args.describe_only:
            body["decide"] = decide_body(args, [role["name"] for role in body.get("members", [])])
        with self.client() as client:
            answer = client.ensembles.create(body, dry_run=args.dry_run)
        made = answer.value
        if args.dry_run and made.decision is not None:
            return Shown(answer.body, told.dry_run(made.decision))
        return Shown(answer.body, told.created(made))

    def _body(self, args: argparse.Namespace) -> dict[str, Any]:
        if args.file is None:
            role: dict[str, Any] = {"name": "server", "count": args.count, "flavor": args.server}
            return {"name": args.name or args.server, "members": [role]}

        from moorage.client.description import read_description

        with reading(args.file):
            body, _ = read_description(read_text(args.file))
        return body
