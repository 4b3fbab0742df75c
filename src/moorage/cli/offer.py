"""`moorage offer create|list|show|accept|delete`, and offers as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.decision_text import SEPARATOR
from moorage.cli.ensemble_source import (
    SEARCH,
    FromFile,
    check_source,
    search_arguments,
    source_arguments,
    source_body,
)
from moorage.cli.lease import BETWEEN, IDEMPOTENCY_HELP, idempotency_key, identified
from moorage.cli.lease_create import TERMS, term_arguments
from moorage.cli.lease_text import called
from moorage.cli.output import Shown, fields, listing_of_projects
from moorage.cli.parser import ALL_PROJECTS, DRY_RUN, Flag, Option, new_name
from moorage.cli.progress import interruptible
from moorage.cli.times import NOW, TIME_HELP, period, span, time_of, time_or_now
from moorage.domain.period import MINUTE, SECOND, parse_instant

if TYPE_CHECKING:
    import argparse

    from moorage.wire.leases import OneLease
    from moorage.wire.offers import Barred, Offer


_SHORT: Final = 120
"""Up to this many minutes, minutes are shown."""


def offer_line(one: Offer, now: str, *, dry_run: bool = False) -> str:
    """An offer: `o3  <start> .. <end>  424 unit-hours  expires in 60m`."""
    parts = ["would be offered" if dry_run else called(one), period(one.start, one.end)]
    parts.append(f"{one.unit_hours:g} unit-hours")
    if not dry_run:
        parts.append(time_left(one, now))
    if not one.proved:
        parts.append("not proved to be the earliest")
    return SEPARATOR.join(parts)


def barred(one: Barred) -> str:
    """A barred window: `not allowed  <start> .. <end>  lease-units limit 4 used 4 ...`."""
    return SEPARATOR.join(["not allowed", period(one.start, one.end), one.detail])


def time_left(one: Offer, now: str) -> str:
    """The time left, `expires in 60m`; of a closed offer its outcome."""
    if one.status != "offered":
        return one.status
    rest = parse_instant(one.expires_at) - parse_instant(now)
    minutes = round(rest / MINUTE)
    if rest < MINUTE:
        return f"expires in {max(rest, 0) // SECOND}s"
    if minutes <= _SHORT:
        return f"expires in {minutes}m"
    return f"expires in {minutes // 60}h{minutes % 60:02}m"


def accepted_offer(made: OneLease, *, dry_run: bool) -> str:
    """An accepted offer: `lease L3  pending  guarantee: proved`."""
    one = made.lease
    head = "would be a lease" if dry_run else f"lease {called(one)}"
    parts = [head, one.status, f"guarantee: {one.guarantee}"]
    if one.displaced and one.displaced.count:
        parts.append(f"ending early for it: {one.displaced.count}")
    return SEPARATOR.join(parts)


OFFER = Option("offer", metavar="OFFER", help="o3, a name, or an id (its beginning)")


class List(Command):
    """List open offers, oldest first."""

    examples = """
        moorage offer list
        moorage offer list --over -f json
    """
    options = (
        Flag("--over", "also accepted, expired and deleted offers"),
        *BETWEEN,
        ALL_PROJECTS,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.offers.all(
                over=args.over, since=args.since, until=args.to, all_projects=args.all_projects
            )
            cells = {
                "offer": called,
                **columns("id:short name status start:minute end:minute #places"),
                **columns("expires=expires_at:minute"),
            }
            over, found = "true" if args.over else None, answer.value.offers
            narrowed = {"over": over, "from": args.since, "to": args.to}
            text = listing_of_projects(client, args, "/v1/offers", cells, found, **narrowed)
        return Shown(answer.body, text)


class Show(Command):
    """Show an offer: its window, its places, and when it expires."""

    examples = "moorage offer show o3"
    options = (OFFER,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.offers.show(client.offers.find(args.offer))
        one = answer.value
        return Shown(answer.body, fields(_pairs(one)))


def _pairs(one: Offer) -> list[tuple[str, object]]:
    return [
        ("offer", called(one)),
        *pairs(one, "id name project=project_id status guarantee start:minute end:minute"),
        ("earliest", "proved" if one.proved else "not proved"),
        *pairs(one, "lead:length cleaning:length places unit-hours=unit_hours:number"),
        *pairs(one, "score:number expires=expires_at:minute ensemble=ensemble_id lease=lease_id"),
    ]


class Accept(Command):
    """Make a lease of an offer; other offers of the same request are withdrawn.

    The lease has the offer's id and places. A lead or cleaning time that was not offered needs
    further capacity: if there is none, the offer stays open, the output says why, and the exit
    status is 3. An offer that is no longer open cannot be accepted (exit status 4).
    """

    examples = """
        moorage offer accept o3 --name upf-dec --expiry 2h --lead 30m
        moorage offer accept o3 --before-start bounded,preemptible --on-end delete
    """
    options = (
        OFFER,
        Option("--name", type=new_name, help="default: the offer's"),
        term_arguments,
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        names = ("name", *TERMS)
        said: dict[str, Any] = {
            name: value for name in names if (value := getattr(args, name)) is not None
        }
        with self.client() as client:
            found = client.offers.find(args.offer)
            answer = client.offers.accept(found, said, dry_run=args.dry_run)
        return Shown(answer.body, accepted_offer(answer.value, dry_run=args.dry_run))


class Delete(Command):
    """Delete an offer; its places are free at once."""

    examples = "moorage offer delete o3"
    options = (OFFER,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.offers.find(args.offer)
            client.offers.withdraw(found)
            answer = client.offers.show(found)
        name = called(answer.value)
        return Shown(answer.body, f"offer {name}  {answer.value.status}")


class Create(FromFile):
    """Find the earliest windows in which something fits, and hold their places.

    All members are placed jointly for the whole window. The places are held until the offer
    expires, and become a lease when it is accepted (moorage offer accept). Further offers of one
    request are alternatives that start later; all are held at once. If nothing fits in the whole
    range, the output names the conflict, and the exit status is 3.

    An offer is for a description (-f), an existing ensemble that is not placed (--ensemble), an
    amount of a flavor (--flavor and --count) or a template (--template and --param).
    """

    examples = """
        moorage offer create --template upf --param count=4 --earliest 2026-12-07T08:00Z \\
          --duration 4d10h --hold 1h
        moorage offer create --flavor m1.xlarge --count 4 --latest-end 2026-12-31 --duration 1d \\
          --max-offers 3
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        source_arguments(parser, "what the offer is for, one of")
        parser.add_argument("--name", type=new_name, help="name of the lease made of it")
        _when(parser)
        add = parser.add_argument
        add("--id", type=idempotency_key, metavar="UUID", help=IDEMPOTENCY_HELP)
        add("--max-offers", type=int, metavar="N", help="most alternatives (default: 1)")
        add(
            "--hold",
            type=span,
            metavar="1h",
            help="hold the places so long (default: the service's)",
        )
        add(
            "--lead",
            type=span,
            metavar="30m",
            help="also hold so long before the start, for the lease's lead",
        )
        add(
            "--cleaning",
            type=span,
            metavar="1h",
            help="also hold so long after the end, for its cleaning",
        )
        search_arguments(parser)
        add("--dry-run", action="store_true", help="find the first one, hold nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        check_source(args, self.usage_error)
        body = _said(args) | identified(args)
        with self.client() as client:
            body |= source_body(client, args)[1]
            with interruptible("looking for a window", _goes_on(body)):
                answer = client.offers.create(body, dry_run=args.dry_run)
        found = answer.value
        lines = [offer_line(one, found.computed_at, dry_run=args.dry_run) for one in found.offers]
        lines += [barred(one) for one in found.barred]
        return Shown(answer.body, "\n".join(lines))


def _goes_on(body: dict[str, Any]) -> str:
    """The hint for an interrupted request: how to find its result."""
    if "id" not in body:
        return "nothing was held: it was a dry run"
    return (
        "the service continues the request: see `moorage offer list`;"
        f" a repeat with --id {body['id']} gives the same offers"
    )


def _when(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--earliest", type=time_or_now, default=NOW, metavar="T", help=TIME_HELP)
    latest = parser.add_mutually_exclusive_group()
    latest.add_argument("--latest", type=time_of, metavar="T", help="the latest start")
    latest.add_argument("--latest-end", type=time_of, metavar="T", help="the latest end, instead")
    add("--duration", type=span, required=True, metavar="4d10h", help="from start to end")


def _said(args: argparse.Namespace) -> dict[str, Any]:
    """The given options; the service chooses the rest."""
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
        **{name: getattr(args, name) for name in SEARCH},
    }
    return {name: value for name, value in said.items() if value is not None}
