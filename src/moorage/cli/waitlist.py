"""`moorage waitlist list|show|cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli import told_waitlist
from moorage.cli.command import Command
from moorage.cli.output import Shown, fields, short
from moorage.cli.projects import Listing
from moorage.cli.times import length, minute

if TYPE_CHECKING:
    import argparse

    from moorage.client.waitlist import Entry

STATES = ("waiting", "granted", "expired", "cancelled", "failed")


def which(parser: argparse.ArgumentParser) -> None:
    """The entry that a command is about."""
    parser.add_argument("entry", metavar="ENTRY", help="id, its beginning, or a name")


class List(Command):
    """List leases that wait, or have waited, oldest first.

    `before` is how many that want some of the same are before it. The estimate is the earliest
    start at which it would fit as things stand: no promise.
    """

    examples = """
        moorage waitlist list
        moorage waitlist list --status waiting -f json
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose, and which."""
        parser.add_argument("--status", choices=STATES, help="only those")
        parser.add_argument("--all-projects", action="store_true", help="for operators")

    def act(self, args: argparse.Namespace) -> Shown:
        """List."""
        with self.client() as client:
            answer = client.waitlist.all(status=args.status, all_projects=args.all_projects)
            rows = [
                (
                    short(one.id),
                    one.name,
                    one.status,
                    one.priority,
                    "" if one.before is None else one.before,
                    minute(one.earliest_start),
                    minute(one.latest_start),
                    told_waitlist.start_of(one),
                )
                for one in answer.value.entries
            ]
            columns = [
                *("id", "name", "status", "#priority", "#before"),
                *("earliest", "latest", "estimate"),
            ]
            listing = Listing("/v1/waitlist", {"status": args.status}, columns)
            text = listing.shown(client, args, rows, answer.value.entries)
        return Shown(answer.body, text)


class Show(Command):
    """Show a lease that waits: its place in the order, why it waits, and an estimate."""

    examples = "moorage waitlist show 1f2e"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        which(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Show."""
        with self.client() as client:
            answer = client.waitlist.show(client.waitlist.find(args.entry))
        return Shown(answer.body, fields(_pairs(answer.value)))


def _pairs(one: Entry) -> list[tuple[str, object]]:
    waiting = one.status == "waiting"
    return [
        ("id", one.id),
        ("name", one.name),
        ("project", one.project_id),
        ("status", one.status),
        ("priority", one.priority),
        ("entered", minute(one.entered_at)),
        ("before it", one.before),
        ("earliest", minute(one.earliest_start)),
        ("latest", minute(one.latest_start)),
        ("until", minute(one.until)),
        ("duration", length(one.duration)),
        ("lead", length(one.lead)),
        ("cleaning", length(one.cleaning)),
        ("places", one.places),
        ("waits for", one.waits_for if waiting else None),
        ("why", one.why),
        ("estimate", told_waitlist.estimated(one) if waiting else None),
        ("ensemble", one.ensemble_id),
        ("lease", one.lease_id),
    ]


class Cancel(Command):
    """Wait no longer.

    What has become a lease is cancelled as a lease: then the exit status is 4.
    """

    examples = "moorage waitlist cancel 1f2e"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        which(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Give the place up."""
        with self.client() as client:
            found = client.waitlist.find(args.entry)
            client.waitlist.cancel(found)
            answer = client.waitlist.show(found)
        return Shown(answer.body, f"waitlist entry {short(found)}  {answer.value.status}")
