"""What came of a crash test, as text for the documentation."""

from collections import Counter
from dataclasses import dataclass, field

from tests.scenarios.kills import machine, table

TITLE = """# Crash test

The test kills processes with `kill -9` at random moments between the steps of joint decisions: the
process that answers, a service with all its processes, or the database's server. Two services share
a ledger; three applications at once go from decision over claims to the confirmation, and one kill
hits them at whatever step they are. `make crash` runs it and writes a report like this one to
`.cache/crash.md`.
"""
CHECKED = (
    "a decision holds the places of all its members, or is not there at all",
    "everything acknowledged is there: ensembles, decisions, claims, allocations, confirmations",
    "no member is placed twice",
    "no hold lapsed before its time, and no answer was anything but good, 503, or that it lapsed",
    "in the end nothing is held, and all allocations belong to claims that became active",
    "SQLite: `integrity_check` and `foreign_key_check` after each kill",
)


@dataclass
class Crashed:
    """What was done, and how it ended."""

    seed: int
    kills: Counter[str]
    """By what was killed."""
    steps: Counter[str] = field(default_factory=Counter)
    """By the step that the first application had just begun."""
    ends: Counter[str] = field(default_factory=Counter)
    """Of applications, by how their way ended."""
    seconds: float = 0.0


def as_markdown(found: Crashed, kind: str) -> str:
    """A section of the page: only what went well comes so far."""
    outcome = (
        f"Nothing was wrong. {found.kills.total():,} kills in {found.seconds:.0f} s;"
        f" {found.ends.total():,} applications. Seed {found.seed}."
    )
    lines = [f"## {kind}", "", machine(), "", outcome, ""]
    lines += table("killed", found.kills)
    lines += table("while the first application was at", found.steps)
    lines += table("how applications ended", found.ends)
    return "\n".join([*lines, "Checked:", "", *(f"- {one}" for one in CHECKED), ""])
