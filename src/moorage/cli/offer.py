"""`moorage offer list|show|accept|delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import told_lease, told_offer
from moorage.cli.command import Command
from moorage.cli.lease_create import BEFORE, EDGES, before_start
from moorage.cli.output import Shown, fields, short
from moorage.cli.projects import Listing
from moorage.cli.times import length, minute, span

if TYPE_CHECKING:
    import argparse

    from moorage.client.offers import Offer


def which(parser: argparse.ArgumentParser) -> None:
    """The offer that a command is about."""
    parser.add_argument("offer", metavar="OFFER", help="o3, a name, or an id (its beginning)")


class List(Command):
    """List offers that nobody has accepted, oldest first."""

    examples = """
        moorage offer list
        moorage offer list --over -f json
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose, and which."""
        parser.add_argument("--over", action="store_true", help="also those that are over")
        parser.add_argument("--all-projects", action="store_true", help="for operators")

    def act(self, args: argparse.Namespace) -> Shown:
        """List."""
        with self.client() as client:
            answer = client.offers.all(over=args.over, all_projects=args.all_projects)
            rows = [
                (
                    told_lease.called(one),
                    short(one.id),
                    one.name,
                    one.status,
                    minute(one.start),
                    minute(one.end),
                    one.places,
                    minute(one.expires_at),
                )
                for one in answer.value.offers
            ]
            columns = ["offer", "id", "name", "status", "start", "end", "#places", "expires"]
            listing = Listing("/v1/offers", {"over": "true" if args.over else None}, columns)
            text = listing.shown(client, args, rows, answer.value.offers)
        return Shown(answer.body, text)


class Show(Command):
    """Show an offer: its window, what it holds, and until when."""

    examples = "moorage offer show o3"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        which(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Show."""
        with self.client() as client:
            answer = client.offers.show(client.offers.find(args.offer))
        one = answer.value
        return Shown(answer.body, fields(_pairs(one)))


def _pairs(one: Offer) -> list[tuple[str, object]]:
    return [
        ("offer", told_lease.called(one)),
        ("id", one.id),
        ("name", one.name),
        ("project", one.project_id),
        ("status", one.status),
        ("guarantee", one.guarantee),
        ("start", minute(one.start)),
        ("end", minute(one.end)),
        ("earliest", "proved" if one.proved else "not proved"),
        ("lead", length(one.lead)),
        ("cleaning", length(one.cleaning)),
        ("places", one.places),
        ("unit-hours", f"{one.unit_hours:g}"),
        ("score", f"{one.score:g}"),
        ("expires", minute(one.expires_at)),
        ("ensemble", one.ensemble_id),
        ("lease", one.lease_id),
        ("request", one.request_id),
    ]


class Accept(Command):
    """Make a lease of an offer; other offers of the same request are given up.

    The lease has the offer's id, and the hosts that were held. A lead or cleaning time that was
    not offered needs room that nobody holds: where there is none, the offer stays an offer, the
    answer says why, and the exit status is 3. One that is over cannot be accepted: 4.
    """

    examples = """
        moorage offer accept o3 --name upf-dec --expiry 2h --lead 30m
        moorage offer accept o3 --before-start bounded,preemptible --on-end delete
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and on which terms."""
        which(parser)
        add = parser.add_argument
        add("--name", help="default: as it was offered")
        add(
            "--expiry", type=span, metavar="2h", help="free what nobody claimed so long after start"
        )
        add(
            "--lead", type=span, metavar="30m", help="keep the places free so long before the start"
        )
        add("--cleaning", type=span, metavar="1h", help="... and so long after the end")
        add("--priority", type=int, metavar="N", help="0 (default) to 1000")
        add(
            "--before-start",
            type=before_start,
            metavar=",".join(BEFORE),
            help="who may use its capacity until then (default: both); or nobody",
        )
        for edge in EDGES:
            add(
                f"--{edge.replace('_', '-')}",
                action="append",
                dest=edge,
                metavar="ACTION",
                help="notify, release, delete or hook:NAME, with :24h before; repeatable",
            )
        add("--dry-run", action="store_true", help="judge only, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        """Accept."""
        names = ("name", "expiry", "lead", "cleaning", "priority", "before_start", *EDGES)
        said: dict[str, Any] = {
            name: value for name in names if (value := getattr(args, name)) is not None
        }
        with self.client() as client:
            found = client.offers.find(args.offer)
            answer = client.offers.accept(found, said, dry_run=args.dry_run)
        return Shown(answer.body, told_offer.taken(answer.value, dry_run=args.dry_run))


class Delete(Command):
    """Give an offer up: its places are free at once."""

    examples = "moorage offer delete o3"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        which(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Give it up."""
        with self.client() as client:
            found = client.offers.find(args.offer)
            client.offers.withdraw(found)
            answer = client.offers.show(found)
        called = told_lease.called(answer.value)
        return Shown(answer.body, f"offer {called}  {answer.value.status}")
