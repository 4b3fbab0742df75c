"""`moorage lease create`: an ensemble's places for a later period, proved or refused."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from moorage.cli import series_create, told_lease, told_waitlist
from moorage.cli.command import Command
from moorage.cli.ensemble_create import OBJECTIVES, FileOrFormat
from moorage.cli.lease import identified, new_name, own_id
from moorage.cli.output import FORMATS, Shown
from moorage.cli.progress import asking
from moorage.cli.shipped import read_text, reading
from moorage.cli.template import parameter_argument
from moorage.cli.times import NOW, TIME_HELP, length, span, time_of, time_or_now, typed
from moorage.domain.period import parse_duration

if TYPE_CHECKING:
    from moorage.client.moorage import Moorage

BEFORE = ("bounded", "preemptible")
EDGES = ("on_start", "before_end", "on_end")


def before_start(text: str) -> list[str]:
    """Read `bounded,preemptible`; `nobody` is nobody.

    Raises:
        argparse.ArgumentTypeError: another word.
    """
    words = [] if text == "nobody" else text.split(",")
    if set(words) - set(BEFORE) or len(set(words)) < len(words):
        raise argparse.ArgumentTypeError(f"write {','.join(BEFORE)}, one of them, or nobody")
    return words


class Create(Command):
    """Lease the places of an ensemble for a period, granted only with a proof.

    All members are placed jointly for the whole period, or none. Until the lease starts, its
    places are used by whoever ends in time or yields (see ensemble create --until and
    --preemptible). If it cannot be granted, the answer says what stands in the way and which
    changes a solve has shown to work, and the exit status is 3.

    What is leased is a description (-f), an ensemble that is there and not placed (--ensemble),
    an amount of a flavor (--flavor and --count) or what a template describes (--template and
    --param).

    With --every it recurs: each date gets a lease of its own, and all are granted or none.

    With --wait a lease that cannot be had is put on the waitlist (see waitlist show), and is
    granted in the order of the list when it can. Of a range of starts (--latest) the earliest
    window counts; without --start any will do.
    """

    examples = """
        moorage lease create -f shop.yaml --start 2026-12-07T08:00Z --end 2026-12-11T18:00Z
        moorage lease create --flavor m1.xlarge --count 4 --start now --duration 4d10h --dry-run
        moorage lease create --flavor m1.xlarge --count 4 --start 2026-12-07 --duration 4d --wait \\
          --latest 2026-12-14
        moorage lease create --template upf@2 --param count=4 --start 2026-12-07 --duration 1d
        moorage lease create --ensemble shop --start 2026-12-07 --duration 1d --lead 30m \\
          --expiry 2h --before-end notify:24h --on-end delete
        moorage lease create --template shop --start 2026-12-07T08:00 --duration 10h \\
          --every weekdays --times 20 --zone Europe/Berlin
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """What, when, and on which terms."""
        self._usage_error = parser.error
        what = parser.add_argument_group("what is leased, one of")
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
        parser.add_argument(
            "--name", type=new_name, help="default: the ensemble's, flavor's or template's"
        )
        _when(parser)
        series_create.recurring(parser)
        _waiting(parser)
        _terms(parser)
        add = parser.add_argument
        add("--id", type=own_id, metavar="UUID", help="asked again under it, it is not done twice")
        add("--objective", choices=OBJECTIVES, help="what is better (default: spread)")
        add("--seed", type=int, metavar="N", help="another seed, maybe another equal answer")
        add("--time-limit", metavar="5s", help="search no longer than this")
        add("--project", metavar="ID", help="as before the command: ask as a user of this project")
        add("--dry-run", action="store_true", help="decide by the same code, write nothing")

    def formats(self, parser: argparse.ArgumentParser) -> None:
        """`-f` is the file's here; `-f json` works all the same."""
        parser.add_argument(
            "--format", choices=FORMATS, default="table", dest="form", help="also: -f json"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Ask for it."""
        what = (args.file, args.ensemble, args.flavor, args.template)
        if sum(one is not None for one in what) != 1:
            self._usage_error("give one of -f/--file, --ensemble, --flavor and --template")
        if args.count is not None and args.flavor is None:
            self._usage_error("argument --count: only with --flavor")
        if args.param and args.template is None:
            self._usage_error("argument --param: only with --template")
        series_create.check(args, self._usage_error)
        if not args.wait and (args.latest or args.wait_until):
            self._usage_error("arguments --latest and --wait-until: only with --wait")
        if args.wait and args.every is not None:
            self._usage_error("argument --wait: not with --every, a series is granted or refused")
        if args.project is not None:
            self.app.options.project = args.project
        body = _said(args) | identified(args)
        with self.client() as client:
            body |= _what(client, args)
            if args.every is not None:
                return series_create.create(client, args, body)
            with asking("looking for places", _goes_on(body)):
                if args.wait:
                    return _asked_to_wait(client, body, args)
                answer = client.leases.create(body, dry_run=args.dry_run)
        told = told_lease.granted(answer.value, dry_run=args.dry_run)
        return Shown(answer.body, told + _shorter_lead(args, answer.value.lease.lead))


def _when(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--start", type=typed, default=NOW, metavar="T", help=f"now, or {TIME_HELP}")
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--end", type=time_of, metavar="T", help="when it ends; nobody's any more")
    end.add_argument("--duration", type=span, metavar="4d10h", help="instead of --end")


def _shorter_lead(args: argparse.Namespace, lead: str) -> str:
    """What became of a lead for which there is no time before the start."""
    if args.lead is None or parse_duration(lead) >= parse_duration(args.lead):
        return ""
    return f"\nlead: {length(lead) or 'none'} instead of {length(args.lead)}, it starts at once"


def _goes_on(body: dict[str, Any]) -> str:
    """What becomes of it where nobody waits for the answer."""
    if "id" not in body:
        return "nothing is leased: it was a dry run"
    return (
        f"the service goes on: `moorage lease show {body['id']}` shows what comes of it;"
        f" the same with --id {body['id']} makes no second lease"
    )


def _waiting(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--wait", action="store_true", help="where it cannot be had now, wait on the waitlist")
    add("--latest", type=time_of, metavar="T", help="with --wait: the last start that would do")
    add("--wait-until", type=time_of, metavar="T", help="with --wait: give up then")


def _asked_to_wait(client: Moorage, body: dict[str, Any], args: argparse.Namespace) -> Shown:
    """The lease, if it was granted at once, or how it waits."""
    from moorage.client.waitlist import Entry

    said = {"latest_start": args.latest, "until": args.wait_until}
    wait = {name: value for name, value in said.items() if value is not None}
    answer = client.waitlist.lease(body, wait, dry_run=args.dry_run)
    if isinstance(answer.value, Entry):
        return Shown(answer.body, told_waitlist.entered(answer.value, dry_run=args.dry_run))
    return Shown(answer.body, told_lease.granted(answer.value, dry_run=args.dry_run))


def _terms(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--expiry", type=span, metavar="2h", help="free what nobody claimed so long after start")
    add("--lead", type=span, metavar="30m", help="keep the places free so long before the start")
    add("--cleaning", type=span, metavar="1h", help="... and so long after the end")
    add("--priority", type=int, metavar="N", help="0 (default) to 1000")
    add(
        "--before-start",
        type=before_start,
        metavar="bounded,preemptible",
        help="who may use its capacity until then (default: both); or nobody",
    )
    for edge in EDGES:
        add(
            f"--{edge.replace('_', '-')}",
            action="append",
            dest=edge,
            metavar="ACTION",
            help="notify, release, delete or hook:NAME, with :24h so long before; repeatable",
        )


def _said(args: argparse.Namespace) -> dict[str, Any]:
    """The terms that were said; the others are the service's to choose."""
    said = {
        "start": None if args.start == NOW else _start(args),
        "end": args.end,
        "duration": args.duration,
        "expiry": args.expiry,
        "lead": args.lead,
        "cleaning": args.cleaning,
        "priority": args.priority,
        "before_start": args.before_start,
        **{edge: getattr(args, edge) for edge in EDGES},
        "objective": args.objective,
        "seed": args.seed,
        "time_limit": args.time_limit,
    }
    return {name: value for name, value in said.items() if value is not None}


def _start(args: argparse.Namespace) -> str:
    """An instant; of what recurs as it was typed, the clock of a zone."""
    text: str = args.start
    return time_or_now(text) if args.every is None else text


def _what(client: Moorage, args: argparse.Namespace) -> dict[str, Any]:
    """What is leased, with the lease's name."""
    if args.flavor is not None:
        amount = {"flavor": args.flavor, "count": 1 if args.count is None else args.count}
        return {"name": args.name or args.flavor, "amount": amount}
    if args.template is not None:
        template = {"name": args.template, "parameters": dict(args.param)}
        return {"name": args.name or args.template.partition("@")[0], "template": template}
    if args.ensemble is not None:
        found = client.ensembles.show(client.ensembles.find(args.ensemble)).value
        return {"name": args.name or found.name, "ensemble_id": found.id}

    from moorage.client.description import read_description

    with reading(args.file):
        body, described = read_description(read_text(args.file))
    return {"name": args.name or described.name, "ensemble": body}
