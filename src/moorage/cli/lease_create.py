"""`moorage lease create`: leases an ensemble's places for a later period, with a proof."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from moorage.cli import lease_text, series_create, waitlist
from moorage.cli.ensemble_source import (
    SEARCH,
    FromFile,
    check_source,
    search_arguments,
    source_arguments,
    source_body,
)
from moorage.cli.lease import IDEMPOTENCY_HELP, idempotency_key, identified
from moorage.cli.output import Shown
from moorage.cli.parser import new_name
from moorage.cli.progress import interruptible
from moorage.cli.times import NOW, TIME_HELP, length, local_or_instant, span, time_of, time_or_now
from moorage.domain.period import parse_duration

if TYPE_CHECKING:
    from moorage.client.moorage import Moorage

BEFORE = ("bounded", "preemptible")
EDGES = ("on_start", "before_end", "on_end")
TERMS = ("expiry", "lead", "cleaning", "priority", "before_start", *EDGES)


def before_start(text: str) -> list[str]:
    """Read `bounded,preemptible`; `none` means neither.

    Raises:
        argparse.ArgumentTypeError: another word.
    """
    words = [] if text in {"none", "nobody"} else text.split(",")
    if set(words) - set(BEFORE) or len(set(words)) < len(words):
        raise argparse.ArgumentTypeError(f"write {','.join(BEFORE)}, one of them, or none")
    return words


class Create(FromFile):
    """Lease the places of an ensemble for a period, granted only with a proof.

    All members are placed jointly for the whole period, or none. Until the lease starts, its
    places are free for servers that end before it or are preemptible (see ensemble create --until
    and --preemptible). If it cannot be granted, the output names the conflict and changes that
    were solved and fit, and the exit status is 3.

    A lease is of a description (-f), an existing ensemble that is not placed (--ensemble), an
    amount of a flavor (--flavor and --count) or a template (--template and --param).

    With --every it recurs: each date gets a lease of its own, and all are granted or none.

    With --wait a lease that does not fit now joins the waitlist (see waitlist show), and is
    granted in the order of the list as soon as it fits. --latest gives a range of starts, of
    which the earliest that fits is taken; without --start any start will do.
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
        source_arguments(parser, "what is leased, one of")
        parser.add_argument(
            "--name", type=new_name, help="default: the ensemble's, flavor's or template's"
        )
        _when(parser)
        series_create.recurring(parser)
        _waiting(parser)
        term_arguments(parser)
        add = parser.add_argument
        add("--id", type=idempotency_key, metavar="UUID", help=IDEMPOTENCY_HELP)
        search_arguments(parser)
        if self.in_openstack:  # its own option is --os-project-id
            parser.set_defaults(project=None)
        else:
            add("--project", metavar="ID", help="as the option before the command")
        add("--dry-run", action="store_true", help="decide by the same code, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        check_source(args, self.usage_error)
        series_create.check(args, self.usage_error)
        if not args.wait and (args.latest or args.wait_until):
            self.usage_error("arguments --latest and --wait-until: only with --wait")
        if args.wait and args.every is not None:
            self.usage_error("argument --wait: not with --every; a series cannot wait")
        if args.project is not None:
            self.app.options.project = args.project
        body = _said(args) | identified(args)
        with self.client() as client:
            name, what = source_body(client, args)
            body |= {"name": args.name or name, **what}
            if args.every is not None:
                return series_create.create(client, args, body)
            with interruptible("looking for places", _goes_on(body)):
                if args.wait:
                    return _asked_to_wait(client, body, args)
                answer = client.leases.create(body, dry_run=args.dry_run)
        granted = lease_text.granted(answer.value, dry_run=args.dry_run)
        return Shown(answer.body, granted + _shorter_lead(args, answer.value.lease.lead))


def _when(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--start", type=local_or_instant, default=NOW, metavar="T", help=TIME_HELP)
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--end", type=time_of, metavar="T", help="end time")
    end.add_argument("--duration", type=span, metavar="4d10h", help="instead of --end")


def _shorter_lead(args: argparse.Namespace, lead: str) -> str:
    """A note on a lead that had to be shortened."""
    if args.lead is None or parse_duration(lead) >= parse_duration(args.lead):
        return ""
    given = length(lead) or "none"
    return f"\nlead: {given} instead of {length(args.lead)}, because the start is too soon"


def _goes_on(body: dict[str, Any]) -> str:
    """The hint for an interrupted request: how to find its result."""
    if "id" not in body:
        return "nothing was leased: it was a dry run"
    return (
        "the service continues the request: see `moorage lease list`;"
        f" a repeat with --id {body['id']} makes no second lease"
    )


def _waiting(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--wait", action="store_true", help="join the waitlist if it does not fit now")
    add("--latest", type=time_of, metavar="T", help="with --wait: the latest start")
    add("--wait-until", type=time_of, metavar="T", help="with --wait: leave the waitlist then")


def _asked_to_wait(client: Moorage, body: dict[str, Any], args: argparse.Namespace) -> Shown:
    """Request a lease that may wait: show the granted lease, or the waitlist entry."""
    from moorage.wire.waitlist import WaitlistEntry

    said = {"latest_start": args.latest, "until": args.wait_until}
    wait = {name: value for name, value in said.items() if value is not None}
    answer = client.waitlist.lease(body, wait, dry_run=args.dry_run)
    if isinstance(answer.value, WaitlistEntry):
        return Shown(answer.body, waitlist.entered(answer.value, dry_run=args.dry_run))
    return Shown(answer.body, lease_text.granted(answer.value, dry_run=args.dry_run))


def term_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the terms of a lease."""
    add = parser.add_argument
    add("--expiry", type=span, metavar="2h", help="free unclaimed places so long after the start")
    add("--lead", type=span, metavar="30m", help="keep the places free so long before the start")
    add("--cleaning", type=span, metavar="1h", help="keep the places free so long after the end")
    add("--priority", type=int, metavar="N", help="0 (default) to 1000")
    add(
        "--before-start",
        type=before_start,
        metavar="bounded,preemptible",
        help="servers that may use its places until then (default: both), or none",
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
    """The given terms; the service chooses the others."""
    said = {
        "start": None if args.start == NOW else _start(args),
        "end": args.end,
        "duration": args.duration,
        **{name: getattr(args, name) for name in (*TERMS, *SEARCH)},
    }
    return {name: value for name, value in said.items() if value is not None}


def _start(args: argparse.Namespace) -> str:
    """The start as an instant; of a recurring lease as typed, in local time of a zone."""
    text: str = args.start
    return str(time_or_now(text)) if args.every is None else text
