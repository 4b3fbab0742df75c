"""`moorage event export`: who did what to what, as JSON lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.output import FAILED, OK, Shown, moment
from moorage.cli.parser import Flag, Option, WrongUsage
from moorage.cli.times import TIME_HELP, time_of
from moorage.domain.events import EVENT_TYPES
from moorage.domain.period import MINUTE, parse_instant
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from moorage.client.events import EventCalls
    from moorage.domain.period import Instant
    from moorage.wire.events import Event

_PAGE: Final = 1000
_KINDS: Final = {one.name: one.subject for one in EVENT_TYPES}
_DISORDER: Final = MINUTE
"""By so much the times of events may be out of the ledger's order, where writers overlap."""


class Export(Command):
    """Write who did what to what, and when, as JSON lines: one for each event.

    Each line has a `cursor`: with `--after` the export goes on behind that line, and appends to the
    file. Without `--until` it ends with the newest event. If events since `--since` were deleted
    already, the exit status is 1.
    """

    examples = """
        moorage event export --since 2026-12-01 --until 2027-01-01 -o december.jsonl
        moorage event export --all-projects --since -1d -o day.jsonl
        moorage event export --after 2f00001-660c9642f134b -o audit.jsonl
    """
    options = (
        Option("--since", type=time_of, metavar="T", help=f"only events since then, {TIME_HELP}"),
        Option("--until", type=time_of, metavar="T", help="only events before then"),
        Option("--after", metavar="CURSOR", help="only events after this one"),
        Option("--type", action="append", default=[], metavar="TYPE", help="such as 'lease.*'"),
        Option("--of-project", metavar="ID", help="only this project's events (for operators)"),
        Flag("--all-projects", "for operators"),
        Option("-o", "--output", required=True, metavar="FILE", help="the file to write"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        since = None if args.since is None else parse_instant(args.since)
        until = None if args.until is None else parse_instant(args.until)
        if since is not None and until is not None and until <= since:
            raise WrongUsage(
                f"there is no time from {moment(args.since)} until {moment(args.until)}: --until"
                " must be later than --since"
            )
        mode = "w" if args.after is None else "a"
        with self.client() as client, Path(args.output).open(mode, encoding="utf-8") as out:
            one = EventExport(
                client.events,
                after=args.after,
                since=since,
                until=until,
                types=args.type,
                project_id=args.of_project,
                all_projects=args.all_projects,
            )
            out.writelines(one.lines())
        if one.lost is not None:
            self.app.stderr.write(f"events up to {moment(one.lost)} are kept no more\n")
        body = {"events": one.written, "cursor": one.cursor, "lost_before": one.lost}
        said = f"{counted(one.written, 'event')}  cursor {one.cursor}"
        return Shown(body, said, FAILED if one.incomplete else OK)


@dataclass
class EventExport:
    """One pass over the events, page by page."""

    calls: EventCalls
    after: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    types: Sequence[str] = ()
    project_id: str | None = None
    all_projects: bool = False
    written: int = 0
    """Lines so far."""
    lost: str | None = None
    """Up to when events are kept no more, of an export from the beginning."""

    @property
    def cursor(self) -> str:
        """Behind what was read so far."""
        return self.after or "-"

    @property
    def incomplete(self) -> bool:
        """Whether events are missing that were asked for."""
        lost = None if self.lost is None else parse_instant(self.lost)
        return lost is not None and self.since is not None and lost >= self.since

    def lines(self) -> Iterator[str]:
        """The lines, read as they are taken."""
        while True:
            page = self.calls.page(
                self.after,
                types=self.types,
                limit=_PAGE,
                all_projects=self.all_projects,
                project_id=self.project_id,
            ).value
            self.lost = self.lost or page.lost_before
            for one in page.events:
                at = parse_instant(one.at)
                if self.until is not None and at >= self.until + _DISORDER:
                    return
                if self._wanted(at):
                    yield json.dumps(line_of(one), ensure_ascii=False) + "\n"
                    self.written += 1
                self.after = one.cursor
            self.after = page.cursor
            if not page.more:
                return

    def _wanted(self, at: Instant) -> bool:
        early = self.since is not None and at < self.since
        return not early and (self.until is None or at < self.until)


def line_of(one: Event) -> dict[str, Any]:
    """An event as a line of the export: when, who, what, to what."""
    kind = _KINDS.get(one.type)
    return {
        "at": one.at,
        "user": one.user,
        "user_project_id": one.user_project_id,
        "by": one.by,
        "request_id": one.request_id,
        "global_request_id": one.global_request_id,
        "type": one.type,
        "subject_kind": kind,
        "subject": one.subject,
        "ensemble": one.subject if kind == "ensemble" else one.body.get("ensemble"),
        "project_id": one.project_id,
        "generation": one.generation,
        "id": one.id,
        "body": one.body,
        "cursor": one.cursor,
    }
