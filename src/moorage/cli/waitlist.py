"""`moorage waitlist list|show|cancel`, and waiting leases as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.decision_text import SEPARATOR
from moorage.cli.output import Shown, fields, listing_of_projects, short
from moorage.cli.parser import ALL_PROJECTS, Option
from moorage.cli.times import minute, period
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from moorage.wire.waitlist import WaitlistEntry


def entered(one: WaitlistEntry, *, dry_run: bool = False) -> str:
    """An entry: `1f2e3d4c  waiting for capacity  1 entry ahead`, the reason, and the estimate."""
    where = "would wait" if dry_run else f"{short(one.id)}{SEPARATOR}waiting"
    before = (
        "first in line" if not one.before else f"{counted(one.before, 'entry', 'entries')} ahead"
    )
    lines = [f"{where} for {one.waits_for}{SEPARATOR}{before}", one.why]
    if not dry_run:
        lines.append(f"estimate: {estimated(one)}")
    return "\n".join(lines)


def estimated(one: WaitlistEntry) -> str:
    """An estimate: `2026-12-07T08:00Z .. 2026-12-07T12:00Z (proved), after its latest start`."""
    if one.estimate is None:
        return f"none: {one.estimate_note}" if one.estimate_note else "none"
    found = one.estimate
    sure = ("proved" if found.proved else "not proved") if found.current else "out of date"
    window = f"{period(found.start, found.end)} ({sure})"
    if not found.in_range:
        window += ", after its latest start"
    return f"{window}: {one.estimate_note}" if one.estimate_note else window


STATES = ("waiting", "granted", "expired", "cancelled", "failed")


ENTRY = Option("entry", metavar="ENTRY", help="id, its beginning, or a name")


class List(Command):
    """List waitlist entries, oldest first.

    `ahead` is the number of entries before it that want some of the same capacity. The estimate
    is the earliest start at which it would fit in the present ledger: no guarantee.
    """

    examples = """
        moorage waitlist list
        moorage waitlist list --status waiting -f json
    """
    options = (Option("--status", choices=STATES, help="only entries of this status"), ALL_PROJECTS)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.waitlist.all(status=args.status, all_projects=args.all_projects)
            cells = {
                **columns("id:short name status #priority #ahead=before"),
                **columns("earliest=earliest_start:minute latest=latest_start:minute"),
                "estimate": lambda one: "" if one.estimate is None else minute(one.estimate.start),
            }
            found, status = answer.value.entries, args.status
            text = listing_of_projects(client, args, "/v1/waitlist", cells, found, status=status)
        return Shown(answer.body, text)


class Show(Command):
    """Show a waitlist entry: its place in line, why it waits, and the estimated start."""

    examples = "moorage waitlist show 1f2e"
    options = (ENTRY,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.waitlist.show(client.waitlist.find(args.entry))
        return Shown(answer.body, fields(_pairs(answer.value)))


def _pairs(one: WaitlistEntry) -> list[tuple[str, object]]:
    waiting = one.status == "waiting"
    return [
        *pairs(one, "id name project=project_id status priority entered=entered_at:minute"),
        *pairs(one, "ahead=before earliest=earliest_start:minute latest=latest_start:minute"),
        *pairs(one, "until:minute duration:length lead:length cleaning:length places"),
        ("waits for", one.waits_for if waiting else None),
        ("why", one.why),
        ("estimate", estimated(one) if waiting else None),
        *pairs(one, "ensemble=ensemble_id lease=lease_id"),
    ]


class Cancel(Command):
    """Leave the waitlist.

    A lease that was granted is cancelled with `moorage lease cancel`; the exit status is then 4.
    """

    examples = "moorage waitlist cancel 1f2e"
    options = (ENTRY,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.waitlist.find(args.entry)
            client.waitlist.cancel(found)
            answer = client.waitlist.show(found)
        return Shown(answer.body, f"waitlist entry {short(found)}  {answer.value.status}")
