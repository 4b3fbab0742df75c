"""`moorage series list|show|rename|cancel`, and series as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli import explanation
from moorage.cli.command import Command
from moorage.cli.decision_text import SEPARATOR
from moorage.cli.output import Columns, Shown, fields, listing_of_projects, short, stack, table
from moorage.cli.parser import ALL_PROJECTS, Option
from moorage.cli.times import actions, length, minute, period
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from moorage.client.errors import SeriesInfeasible
    from moorage.wire.series import LeftOut, Occurrence, OneSeries, Series


_SHOWN: Final = 12
"""Occurrences that are named one by one where a series is refused."""


def granted(made: OneSeries, new: Sequence[Occurrence]) -> str:
    """A series: `series 1f2e3d4c  20 leases  weekdays at 08:00 Europe/Berlin for 10h  ...`."""
    one = made.series
    head = "would be granted" if made.dry_run else f"series {short(one.id)}"
    parts = [head, counted(len(new), "lease"), recurring(one)]
    if new:
        parts.append(period(new[0].start, new[-1].end))
    return SEPARATOR.join(parts)


def recurring(one: Series) -> str:
    """A recurrence: `weekdays at 08:00 Europe/Berlin for 10h`."""
    clock = one.start.partition("T")[2]
    every = f"every {one.every}" if one.every[0].isdigit() else one.every
    return f"{every} at {clock} {one.zone} for {length(one.duration)}"


def occurrences(some: Sequence[Occurrence]) -> RenderableType:
    """A row for each lease of a series."""
    rows = [
        (
            one.index,
            one.handle or "-",
            one.name,
            f"{one.status}, degraded" if one.degraded else one.status,
            minute(one.start),
            minute(one.end),
        )
        for one in some
    ]
    return table(["#no", "lease", "name", "status", "start", "end"], rows)


def skipped_occurrences(some: Sequence[LeftOut]) -> list[str]:
    """Occurrences left out, a line each: `not granted: 4  <start> .. <end>  why`."""
    return [
        SEPARATOR.join((f"not granted: {one.index}", period(one.start, one.end), minute(one.why)))
        for one in some
    ]


def refused(error: SeriesInfeasible) -> str:
    """The occurrences that do not fit, why the first does not, and possible changes."""
    lines = [f"infeasible  {error.detail}"]
    every = error.occurrences
    lines += [f"  {one['index']}  {period(one['start'], one['end'])}" for one in every[:_SHOWN]]
    if len(every) > _SHOWN:
        lines.append(f"  and {len(every) - _SHOWN} more")
    if error.explanation and every:
        # When one occurrence alone would fit is no answer here: the series says when all do.
        why = {**error.explanation, "earliest_start": None}
        lines.append(f"occurrence {every[0]['index']}: {explanation.explained(why)}")
    numbered = [f"{n}. {_instead(one)}" for n, one in enumerate(error.instead, 1)]
    if numbered:
        lines.append("the series fits (each solved):")
        lines += [f"  {one}" for one in numbered]
    return "\n".join(lines)


def _instead(one: Mapping[str, Any]) -> str:
    fits = counted(int(one["fits"]), "occurrence")
    if one.get("start"):
        return f"--start {one['start']}: {fits}"
    return f"--as-many-as-fit: {fits}"


SERIES = Option("series", metavar="SERIES", help="id, its beginning, or a name")


class List(Command):
    """List series of leases, oldest first."""

    examples = "moorage series list"
    options = (ALL_PROJECTS, Option("--name", help="only series of this name"))

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.series.all(name=args.name, all_projects=args.all_projects)
            columns: Columns = {
                "id": lambda one: short(one.id),
                "name": lambda one: one.name,
                "status": lambda one: one.status,
                "recurs": recurring,
                "from": lambda one: one.start.partition("T")[0],
                "#leases": lambda one: one.granted,
                "#closed": lambda one: one.closed,
            }
            found, name = answer.value, args.name
            text = listing_of_projects(client, args, "/v1/series", columns, found, name=name)
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
            ("before start", ", ".join(one.before_start) or "none"),
            ("on start", actions(one.on_start)),
            ("before end", actions(one.before_end)),
            ("on end", actions(one.on_end)),
            ("generation", one.generation),
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
