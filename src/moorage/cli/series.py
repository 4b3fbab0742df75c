"""`moorage series list|show|rename|cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli import told_series
from moorage.cli.command import Command
from moorage.cli.output import Shown, fields, short, stack
from moorage.cli.projects import Listing
from moorage.cli.times import actions, length, minute
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from rich.console import RenderableType

    from moorage.client.series import Series


def which(parser: argparse.ArgumentParser) -> None:
    """The series that a command is about."""
    parser.add_argument("series", metavar="SERIES", help="id, its beginning, or a name")


class List(Command):
    """List series of leases, oldest first."""

    examples = "moorage series list"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose, and which."""
        parser.add_argument("--all-projects", action="store_true", help="for operators")
        parser.add_argument("--name", help="only those of this name")

    def act(self, args: argparse.Namespace) -> Shown:
        """List."""
        with self.client() as client:
            answer = client.series.all(name=args.name, all_projects=args.all_projects)
            rows = [
                (
                    short(one.id),
                    one.name,
                    one.status,
                    told_series.recurring(one),
                    one.start.partition("T")[0],
                    one.granted,
                    one.closed,
                )
                for one in answer.value
            ]
            columns = ["id", "name", "status", "recurs", "from", "#leases", "#closed"]
            listing = Listing("/v1/series", {"name": args.name}, columns)
            text = listing.shown(client, args, rows, answer.value)
        return Shown(answer.body, text)


class Show(Command):
    """Show a series: its rule, its leases, and what of it could not be granted."""

    examples = "moorage series show nightly"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        which(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Show."""
        with self.client() as client:
            answer = client.series.show(client.series.find(args.series))
        return Shown(answer.body, _described(answer.value.series))


def _described(one: Series) -> RenderableType:
    head = fields(
        [
            ("id", one.id),
            ("name", one.name),
            ("project", one.project_id),
            ("status", one.status),
            ("every", one.every),
            ("from", f"{one.start} {one.zone}"),
            ("duration", length(one.duration)),
            ("occurrences", one.times),
            ("places", f"{one.places} each"),
            ("lead", length(one.lead)),
            ("cleaning", length(one.cleaning)),
            ("expiry", length(one.expiry) if one.expiry else None),
            ("priority", one.priority or None),
            ("before start", ", ".join(one.before_start) or "nobody"),
            ("on start", actions(one.on_start)),
            ("before end", actions(one.before_end)),
            ("on end", actions(one.on_end)),
            ("generation", one.generation),
        ]
    )
    out = told_series.left_out(one.left_out)
    return stack(head, "", told_series.occurrences(one.occurrences), *(["", *out] if out else []))


class Rename(Command):
    """Call a series otherwise, and its leases with it.

    Leases that were renamed by themselves keep their names.
    """

    examples = "moorage series rename nightly tests"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and how."""
        which(parser)
        parser.add_argument("name", metavar="NAME", help="what it is called from now on")

    def act(self, args: argparse.Namespace) -> Shown:
        """Rename."""
        with self.client() as client:
            before = client.series.show(client.series.find(args.series)).value.series
            answer = client.series.rename(before.id, args.name, before.generation)
        return Shown(answer.body, f"series {short(before.id)}  {answer.value.series.name}")


class Cancel(Command):
    """Cancel the leases of a series that have not started.

    Those that have started go on: `moorage lease cancel` ends one of them. Numbers are those that
    `moorage series show` tells.
    """

    examples = """
        moorage series cancel nightly
        moorage series cancel nightly --from 12
        moorage series cancel nightly --only 3 --dry-run
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and what of it."""
        which(parser)
        part = parser.add_mutually_exclusive_group()
        part.add_argument("--from", type=int, dest="since", metavar="N", help="from this one on")
        part.add_argument("--only", type=int, metavar="N", help="this one alone")
        parser.add_argument("--dry-run", action="store_true", help="judge only, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        """Cancel."""
        with self.client() as client:
            found = client.series.find(args.series)
            answer = client.series.cancel(
                found, since=args.since, only=args.only, dry_run=args.dry_run
            )
        gone = answer.value.cancelled
        verb = "can be cancelled" if args.dry_run else "cancelled"
        lines = [f"series {short(found)}  {counted(len(gone), 'lease')} {verb}"]
        lines += [f"  {one.index}  {one.name}  {minute(one.start)}" for one in gone]
        return Shown(answer.body, "\n".join(lines))
