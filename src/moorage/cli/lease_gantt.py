"""`moorage lease gantt`: a chart of leases over time, in the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.gantt import Row, chart
from moorage.cli.output import ELSEWHERE, Shown, console
from moorage.cli.parser import ALL_PROJECTS, Flag, Option, WrongUsage
from moorage.cli.times import TIME_HELP, time_of
from moorage.domain.period import HOUR, Period, format_instant, parse_duration, parse_instant

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moorage.domain.period import Instant
    from moorage.wire.leases import Lease


class Gantt(Command):
    """Draw leases over time: a row for each, as wide as the terminal.

    From now, or an earlier first start, to the last end. With -f json the same rows as data. With
    -f svg a picture, which has offers, what waits and (for operators) absences of hosts as well.
    """

    examples = """
        moorage lease gantt
        moorage lease gantt --from 2026-12-01 --to 2027-01-01 --closed
        moorage lease gantt -f svg > leases.svg
        moorage lease gantt --rows rack --all-projects -f svg > racks.svg
    """
    drawn = ("svg",)
    options = (
        Option("--from", type=time_of, dest="since", metavar="T", help=TIME_HELP),
        Option("--to", type=time_of, metavar="T", help="where the chart ends"),
        Flag("--closed", "also closed leases"),
        Option(
            "--rows",
            choices=("lease", "project", "rack", "host"),
            help="with -f svg: what a row is (default: lease)",
        ),
        ALL_PROJECTS,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        if args.rows and args.form not in self.drawn:
            raise WrongUsage("--rows: only with -f svg")
        with self.client() as client:
            found = client.leases.all(all_projects=args.all_projects).value
            none = not found.leases and not args.all_projects
            more = none and client.elsewhere("/v1/leases", {})
        now = parse_instant(found.computed_at)
        leases = [one for one in found.leases if args.closed or one.status != "closed"]
        rows = [(one, row_of(one)) for one in leases]
        if args.all_projects:
            rows = [(one, replace(row, project=one.project_id)) for one, row in rows]
        window = _window([row for _, row in rows], now, args)
        if args.form in self.drawn:
            return self._picture(args, window, now)
        rows = [(one, row) for one, row in rows if row.occupied.overlaps(window)]
        rows.sort(key=lambda pair: (pair[1].period.start, pair[1].period.end, pair[0].id))
        body = {
            "now": found.computed_at,
            "start": format_instant(window.start),
            "end": format_instant(window.end),
            "rows": [_data(one, row) for one, row in rows],
        }
        if not rows:
            return Shown(body, ELSEWHERE if more else "no leases")
        shown = chart([row for _, row in rows], window, now, console(self.app.stdout).width)
        return Shown(body, shown)

    def _picture(self, args: argparse.Namespace, window: Period, now: Instant) -> Shown:
        """The timeline as the API lays it out."""
        with self.client() as client:
            found = client.leases.timeline(
                format_instant(window.start),
                format_instant(window.end),
                rows=args.rows or "lease",
                closed=args.closed,
                all_projects=args.all_projects,
            )

        def svg(_: str) -> str:
            from moorage.cli.gantt_svg import gantt_svg

            return gantt_svg(found["timeline"], now)

        return Shown(found, "", drawn=svg)


def row_of(one: Lease) -> Row:
    """A lease as a row."""
    period = Period(parse_instant(one.start), parse_instant(one.end))
    around = Period(
        period.start - parse_duration(one.lead), period.end + parse_duration(one.cleaning)
    )
    return Row(one.name, one.status, period, around, one.degraded, one.missing)


def _window(rows: Sequence[Row], now: Instant, args: argparse.Namespace) -> Period:
    """The period to draw.

    Raises:
        WrongUsage: it ends before it starts.
    """
    first = min((now, *(row.occupied.start for row in rows)))
    start = parse_instant(args.since) if args.since else first
    last = max((now + HOUR, *(row.occupied.end for row in rows)))
    end = parse_instant(args.to) if args.to else max(last, start + HOUR)
    if end <= start:
        raise WrongUsage(f"--to must be after the start of the chart, {format_instant(start)}")
    return Period(start, end)


def _data(one: Lease, row: Row) -> dict[str, object]:
    return {
        "id": one.id,
        "name": one.name,
        "project_id": one.project_id,
        "status": one.status,
        "degraded": one.degraded,
        "missing": one.missing,
        "start": one.start,
        "end": one.end,
        "occupied_start": format_instant(row.occupied.start),
        "occupied_end": format_instant(row.occupied.end),
    }
