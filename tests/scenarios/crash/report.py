"""What came of a crash test, as text for the documentation."""

from __future__ import annotations

import os
import platform
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

TITLE = """# Crash

`kill -9` at random moments between the steps of joint decisions: of the process that answers, of a
service with all its processes, of the database's server. Two services share a ledger; three
applications at once go from decision over claims to the confirmation, and one kill hits them
wherever they are. `make crash` runs it and leaves a report like this one in `.cache/crash.md`.
"""
CHECKED = (
    "a decision holds the places of all its members, or is not there at all",
    "what was acknowledged is there: ensembles, decisions, claims, allocations, confirmations",
    "no member stands twice",
    "no hold lapsed before its time, and no answer was anything but good, 503, or that it lapsed",
    "in the end nothing is held, and what is allocated belongs to claims that became active",
    "SQLite: `integrity_check` and `foreign_key_check` after each kill",
)


@dataclass
class Crashed:
    """What was done, and how it ended."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    """By what was killed."""
    steps: Counter[str] = field(default_factory=Counter)
    """By the step that the first application had just begun."""
    ends: Counter[str] = field(default_factory=Counter)
    """Of applications, by how their way ended."""
    seconds: float = 0.0


def as_markdown(found: Crashed, kind: str) -> str:
    """A section of the page: only what went well comes so far."""
    machine = (
        f"{datetime.now(tz=UTC):%Y-%m-%d}, Python {platform.python_version()},"
        f" {os.cpu_count()} cores, which clients, services and database share with other work."
    )
    outcome = (
        f"Nothing was wrong. {found.kills.total():,} kills in {found.seconds:.0f} s;"
        f" {found.ends.total():,} applications. Seed {found.seed}."
    )
    tables = [
        ("killed", found.kills),
        ("while the first application was at", found.steps),
        ("how applications ended", found.ends),
    ]
    lines = [f"## {kind}", "", machine, "", outcome, ""]
    for title, counts in tables:
        lines += [f"| {title} | count |", "|---|---|"]
        lines += [f"| {what} | {count:,} |" for what, count in sorted(counts.items())]
        lines.append("")
    return "\n".join([*lines, "Checked:", "", *(f"- {one}" for one in CHECKED), ""])
