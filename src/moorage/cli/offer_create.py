"""`moorage offer create`: the earliest windows in which something fits, held for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import told_offer
from moorage.cli.command import Command
from moorage.cli.ensemble_create import OBJECTIVES, FileOrFormat
from moorage.cli.lease import identified, new_name, own_id
from moorage.cli.output import FORMATS, Shown
from moorage.cli.progress import asking
from moorage.cli.shipped import read_text, reading
from moorage.cli.template import parameter_argument
from moorage.cli.times import NOW, TIME_HELP, span, time_of, time_or_now

if TYPE_CHECKING:
    import argparse

    from moorage.client.moorage import Moorage


class Create(Command):
    """Find the earliest windows in which something fits, and hold their places.

    All members are placed jointly for the whole window. Its places are nobody else's until the
    offer expires, and a lease's once it is accepted (moorage offer accept). Further offers of one
    request are alternatives that start later; all are held beside each other. Where nothing fits
    in the whole range, the answer says what stands in the way, and the exit status is 3.

    What is offered is for a description (-f), an ensemble that is there and not placed
    (--ensemble), an amount of a flavor (--flavor and --count) or what a template describes
    (--template and --param).
    """

    examples = """
        moorage offer create --template upf --param count=4 --earliest 2026-12-07T08:00Z \\
          --duration 4d10h --hold 1h
        moorage offer create --flavor m1.xlarge --count 4 --latest-end 2026-12-31 --duration 1d \\
          --max-offers 3
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """What, how long, and when."""
        self._usage_error = parser.error
        what = parser.add_argument_group("what it is for, one of")
        what.add_argument(
            "-f",
            "--file",
            action=FileOrFormat,
            metavar="FILE",
            help="description; - reads stdin. -f table|json|yaml is the format, as everywhere",
        )
        what.add_argument("--ensemble", metavar="ENSEMBLE", help="id, its beginning, or a name")
        what.add_argument("--flavor", metavar="FLAVOR", help="so many servers of it")
        what.add_argument("--template", metavar="TEMPLATE", help="its name or id; upf@2: a version")
        parser.add_argument("--count", type=int, metavar="N", help="with --flavor (default: 1)")
        parameter_argument(parser)
        parser.add_argument("--name", type=new_name, help="of the lease that comes of it")
        _when(parser)
        add = parser.add_argument
        add("--id", type=own_id, metavar="UUID", help="asked again under it, it is not done twice")
        add("--max-offers", type=int, metavar="N", help="alternatives at most (default: 1)")
        add("--hold", type=span, metavar="1h", help="keep them so long (default: the service's)")
        add("--lead", type=span, metavar="30m", help="room for a lead of the lease, too")
        add("--cleaning", type=span, metavar="1h", help="... and for its cleaning")
        add("--objective", choices=OBJECTIVES, help="what is better (default: spread)")
        add("--seed", type=int, metavar="N", help="another seed, maybe another equal answer")
        add("--time-limit", metavar="5s", help="search no longer than this for each")
        add("--dry-run", action="store_true", help="look for the first one, hold nothing")

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """`-f` is the file's here; `-f json` works all the same."""
        parser.add_argument(
            "--format", choices=FORMATS, default="table", dest="form", help="also: -f json"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Ask for them."""
        what = (args.file, args.ensemble, args.flavor, args.template)
        if sum(one is not None for one in what) != 1:
            self._usage_error("give one of -f/--file, --ensemble, --flavor and --template")
        if args.count is not None and args.flavor is None:
            self._usage_error("argument --count: only with --flavor")
        if args.param and args.template is None:
            self._usage_error("argument --param: only with --template")
        body = _said(args) | identified(args)
        with self.client() as client:
            body |= _what(client, args)
            with asking("looking for a window", _goes_on(body)):
                answer = client.offers.create(body, dry_run=args.dry_run)
        found = answer.value
        lines = [
            told_offer.offered(one, found.computed_at, dry_run=args.dry_run) for one in found.offers
        ]
        lines += [told_offer.barred(one) for one in found.barred]
        return Shown(answer.body, "\n".join(lines))


def _goes_on(body: dict[str, Any]) -> str:
    """What becomes of it where nobody waits for the answer."""
    if "id" not in body:
        return "nothing is held: it was a dry run"
    return (
        "the service goes on: `moorage offer list` shows what comes of it;"
        f" the same with --id {body['id']} gives the same offers"
    )


def _when(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--earliest", type=time_or_now, default=NOW, metavar="T", help=f"now, or {TIME_HELP}")
    latest = parser.add_mutually_exclusive_group()
    latest.add_argument("--latest", type=time_of, metavar="T", help="the latest start")
    latest.add_argument("--latest-end", type=time_of, metavar="T", help="the latest end, instead")
    add("--duration", type=span, required=True, metavar="4d10h", help="from start to end")


def _said(args: argparse.Namespace) -> dict[str, Any]:
    """What was said; the rest is the service's to choose."""
    said = {
        "name": args.name,
        "earliest": None if args.earliest == NOW else args.earliest,
        "latest_start": args.latest,
        "latest_end": args.latest_end,
        "duration": args.duration,
        "max_offers": args.max_offers,
        "hold": args.hold,
        "lead": args.lead,
        "cleaning": args.cleaning,
        "objective": args.objective,
        "seed": args.seed,
        "time_limit": args.time_limit,
    }
    return {name: value for name, value in said.items() if value is not None}


def _what(client: Moorage, args: argparse.Namespace) -> dict[str, Any]:
    """What it is for."""
    if args.flavor is not None:
        count = 1 if args.count is None else args.count
        return {"amount": {"flavor": args.flavor, "count": count}}
    if args.template is not None:
        return {"template": {"name": args.template, "parameters": dict(args.param)}}
    if args.ensemble is not None:
        return {"ensemble_id": client.ensembles.find(args.ensemble)}

    from moorage.client.description import read_description

    with reading(args.file):
        body, _ = read_description(read_text(args.file))
    return {"ensemble": body}
