"""Leases that wait in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.output import short
from moorage.cli.times import minute, period
from moorage.cli.told import SEPARATOR

if TYPE_CHECKING:
    from moorage.client.waitlist import Entry


def entered(one: Entry, *, dry_run: bool = False) -> str:
    """`1f2e3d4c  waiting for capacity  1 before it`, why, and the estimate."""
    where = "would wait" if dry_run else f"{short(one.id)}{SEPARATOR}waiting"
    before = "nobody before it" if not one.before else f"{one.before} before it"
    lines = [f"{where} for {one.waits_for}{SEPARATOR}{before}", one.why]
    if not dry_run:
        lines.append(f"estimate: {estimated(one)}")
    return "\n".join(lines)


def estimated(one: Entry) -> str:
    """`2026-12-07T08:00Z .. 2026-12-07T12:00Z (proved), after its latest start`."""
    if one.estimate is None:
        return f"none: {one.estimate_note}" if one.estimate_note else "none"
    found = one.estimate
    sure = ("proved" if found.proved else "not proved") if found.current else "out of date"
    told = f"{period(found.start, found.end)} ({sure})"
    if not found.in_range:
        told += ", after its latest start"
    return f"{told}: {one.estimate_note}" if one.estimate_note else told


def start_of(one: Entry) -> str:
    """The beginning of the estimated window, for a table."""
    return "" if one.estimate is None else minute(one.estimate.start)
