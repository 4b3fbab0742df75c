"""`moorage ensemble create`: places and holds a description in one call."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from moorage.cli import decision_text
from moorage.cli.decision_progress import deciding
from moorage.cli.ensemble_source import FileOrFormat, FromFile, ServerNotFile, search_arguments
from moorage.cli.files import read_text, reading
from moorage.cli.output import Shown
from moorage.cli.parser import Flag, Option, new_name
from moorage.cli.times import TIME_HELP, span, time_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moorage.client.moorage import Moorage
    from moorage.client.resource import Answer
    from moorage.wire.ensembles import OneEnsemble

_TRIES = 5
"""Default names that are tried; each but the first was free when it was chosen."""
COUNTED = 16
"""Roles of which one answer counts how many more would fit, at most; the API takes no more."""


def decide_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the decision options, which all deciding commands share."""
    add = parser.add_argument
    add("--dry-run", action="store_true", help="decide by the same code, write nothing")
    add(
        "--hold",
        type=span,
        metavar="10m",
        help="hold the places for so long (default: the service's, or the present hold)",
    )
    add("--until", type=time_of, metavar="T", help=f"when the members end, {TIME_HELP}")
    add("--preemptible", action="store_true", help="the members may be ended early for a lease")
    add(
        "--priority",
        type=int,
        metavar="N",
        help="with --preemptible: lower ones end first (default 0)",
    )
    search_arguments(parser)
    add(
        "--alternatives",
        choices=("first", "cheapest"),
        help="first: members are the first of their alternatives that they can be, whatever the"
        " objective (default); cheapest: the objective decides",
    )
    add(
        "--additional",
        action="append",
        metavar="ROLE",
        help="also count how many more of this role would fit; of web+db how many of each, together"
        f" (default: every role, the first {COUNTED} of them; in a dry run none)",
    )


def decide_body(args: argparse.Namespace, roles: Sequence[str]) -> dict[str, Any]:
    """The `decide` part of a body, with the given options only."""
    said = {
        "hold": args.hold,
        "objective": args.objective,
        "alternatives": args.alternatives,
        "until": args.until,
        "preemptible": args.preemptible or None,
        "priority": args.priority,
        "seed": args.seed,
        "time_limit": args.time_limit,
        "max_additional": args.additional or ([] if args.dry_run else list(roles[:COUNTED])),
    }
    return {name: value for name, value in said.items() if value not in (None, [])}


def create_ensemble(
    client: Moorage, body: dict[str, Any], args: argparse.Namespace
) -> Answer[OneEnsemble]:
    """Create an ensemble and wait for its decision.

    An idempotency key is sent, so that a repeat after a lost answer makes no second ensemble.
    """
    sent = body if args.dry_run else {"id": str(uuid4()), **body}
    with deciding(client, None if args.dry_run else str(body["name"]), new=True):
        return client.ensembles.create(sent, dry_run=args.dry_run)


class Create(FromFile):
    """Describe an ensemble, place it jointly and hold the places.

    All members are placed in one decision, or none. The places are held until they are
    claimed or the hold lapses. If they do not fit, the output has a minimal conflict and changes
    that were solved and fit, and the exit status is 3.
    """

    examples = """
        moorage ensemble create -f shop.yaml --dry-run       # whether it fits; nothing is written
        moorage ensemble create shop.yaml --hold 10m         # place and hold
        moorage ensemble create --server m1.small --count 3  # three servers, no file
        moorage ensemble create -f shop.yaml --until 2026-12-07T07:00Z   # ends then
        moorage ensemble create -f shop.yaml -f json         # the API's answer
        moorage ensemble create --server m1.small -f json    # a file of that name is ./json
    """
    options = (
        Option("path", nargs="?", metavar="FILE", help="description, as with -f FILE"),
        Option(
            "-f",
            "--file",
            action=FileOrFormat,
            metavar="FILE",
            help="description; - reads stdin. -f table|json|yaml is the output format",
        ),
        Option(
            "--server",
            action=ServerNotFile,
            metavar="FLAVOR",
            help="instead of a file: one role of this flavor",
        ),
        Option("--count", type=int, default=1, metavar="N", help="with --server"),
        Option(
            "--name",
            type=new_name,
            help="default: the description's; with --server FLAVOR, FLAVOR-2, ...",
        ),
        Flag("--describe-only", "do not place it yet"),
        decide_arguments,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.domain.describe_nested import flat_body

        if args.path is not None:
            if args.file is not None or args.server is not None:
                self.usage_error("give one of FILE, -f/--file and --server")
            args.file = args.path
        if args.file is None and args.server is None:
            self.usage_error("one of the arguments FILE -f/--file --server is required")
        body = self._body(args)
        if args.name:
            body["name"] = args.name
        if not args.describe_only:
            roles = flat_body(body)["members"]
            body["decide"] = decide_body(args, [role["name"] for role in roles])
        with self.client() as client, reading(args.file or "", self._text):
            answer = self._created(client, body, args)
        made = answer.value
        if args.dry_run and made.decision:
            return Shown(answer.body, decision_text.dry_run(made.decision))
        return Shown(answer.body, decision_text.created(made))

    @staticmethod
    def _created(
        client: Moorage, body: dict[str, Any], args: argparse.Namespace
    ) -> Answer[OneEnsemble]:
        """Create the ensemble; a default name that is taken gets a number."""
        from moorage.client.errors import NameTaken

        tries = 1 if args.name or args.server is None else _TRIES
        while True:
            try:
                return create_ensemble(client, body, args)
            except NameTaken:
                tries -= 1
                if not tries:
                    raise
            known = {one.name for one in client.ensembles.all().value}
            numbered = (f"{args.server}-{number}" for number in count(2))
            body = body | {"name": next(name for name in numbered if name not in known)}

    _text: str | None = None
    """The description's text, once it is read."""

    def _body(self, args: argparse.Namespace) -> dict[str, Any]:
        if args.file is None:
            role: dict[str, Any] = {"name": "server", "count": args.count, "flavor": args.server}
            return {"name": args.name or args.server, "members": [role]}

        from moorage.client.description import read_description

        self._text = read_text(args.file)
        with reading(args.file):
            body, _ = read_description(self._text)
        return body
