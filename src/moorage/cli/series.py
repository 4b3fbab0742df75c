"""`moorage series list|show|rename|cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.output import Shown, fields, listing_of_projects, short, stack
from moorage.cli.parser import ALL_PROJECTS, Option
from moorage.cli.series_text import occurrences, recurring, skipped_occurrences
from moorage.cli.times import length, minute
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from rich.console import RenderableType

    from moorage.wire.series import Series


SERIES = Option("series", metavar="SERIES", help="id, its beginning, or a name")


class List(Command):
    """List series of leases, oldest first."""

    examples = "moorage series list"
    options = (ALL_PROJECTS, Option("--name", help="only series of this name"))

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.series.all(name=args.name, all_projects=args.all_projects)
            cells = {
                **columns("id:short name status"),
                "recurs": recurring,
                "from": lambda one: one.start.partition("T")[0],
                **columns("#leases=granted #closed"),
            }
            found, name = answer.value, args.name
            text = listing_of_projects(client, args, "/v1/series", cells, found, name=name)
        return Shown(answer.body, text)


class Show(Command):
    """Show a series: its rule, its leases, and occurrences that were not granted."""

    examples = "moorage series show nightly"
    options = (SERIES,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.series.show(client.series.find(args.series))
        return Shown(answer.body, _described(answer.value.series))


def _described(one: Series) -> RenderableType:
    head = fields(
        [
            *pairs(one, "id name project=project_id status every"),
            ("from", f"{one.start} {one.zone}"),
            *pairs(one, "duration:length occurrences=times"),
            ("places", f"{one.places} each"),
            *pairs(one, "lead:length cleaning:length"),
            ("expiry", length(one.expiry) if one.expiry else None),
            *pairs(one, "priority?"),
            ("before start", ", ".join(one.before_start) or "none"),
            *pairs(one, "on_start:actions before_end:actions on_end:actions generation"),
        ]
    )
    out = skipped_occurrences(one.left_out)
    return stack(head, "", occurrences(one.occurrences or ()), *(["", *out] if out else []))


class Rename(Command):
    """Rename a series and its leases.

    Leases that were renamed one by one keep their names.
    """

    examples = "moorage series rename nightly tests"
    options = (SERIES, Option("name", metavar="NAME", help="its new name"))

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            before = client.series.show(client.series.find(args.series)).value.series
            answer = client.series.rename(before.id, args.name, before.generation)
        return Shown(answer.body, f"series {short(before.id)}  {answer.value.series.name}")


class Cancel(Command):
    """Cancel the leases of a series that have not started.

    Leases that have started continue: end one with `moorage lease cancel`. Numbers are those of
    `moorage series show`.
    """

    examples = """
        moorage series cancel nightly
        moorage series cancel nightly --from 12
        moorage series cancel nightly --only 3 --dry-run
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        SERIES(parser)
        part = parser.add_mutually_exclusive_group()
        part.add_argument(
            "--from",
            type=int,
            dest="since",
            metavar="N",
            help="the lease of this number and later ones",
        )
        part.add_argument("--only", type=int, metavar="N", help="only the lease of this number")
        parser.add_argument("--dry-run", action="store_true", help="check it, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
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
