"""What came of a soak, as text for the documentation."""

import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.scenarios.kills import machine, table
from tests.scenarios.soak.clients import Client

TITLE = """# Soak test

Many clients use all functions at once for a long time, while processes are killed: claims, moves,
deletes, inventory changes, reshapes and joint decisions, each sent to any of several services on
one database. `make soak` runs it for half an hour on each database, and writes a report like this
one to `.cache/soak.md`.
"""
CHECKED = (
    "no commit made an overage worse, by comparing each state of the ledger with the one before",
    "the use of every host is the sum of its allocations",
    "every acknowledged write is stored as acknowledged, and was seen at once on every service",
    "wire generations are exactly those counted, of consumers and of providers",
    "no answer 5xx but 503, and that only to a decision or while something was killed",
    "no 409 to an allocation except for lack of room",
    "no `database is locked` and no traceback in any log",
    "no client waited 30 s or got less than a quarter of the others' answers",
    "a snapshot updated all the time equals one that is read anew",
)


@dataclass(frozen=True)
class Soaked:
    """What came of it."""

    wrong: list[str]
    done: Counter[str]
    kills: Counter[str]
    seconds: float
    services: int
    waits: Sequence[Sequence[float]]
    """Seconds per answer, by client."""
    looked: int
    """States of the ledger that were compared."""

    @classmethod
    def of(
        cls,
        services: int,
        clients: Sequence[Client],
        seconds: float,
        wrong: list[str],
        kills: Counter[str],
        looked: int,
    ) -> Self:
        """Add up."""
        done = sum((client.done for client in clients), Counter[str]())
        waits = [sorted(client.waits) for client in clients]
        return cls(wrong, done, kills, seconds, services, waits, looked)

    @property
    def least(self) -> int:
        """Answers of the client that got fewest."""
        return min(map(len, self.waits))


def as_markdown(found: Soaked, *, kind: str, command: Sequence[str]) -> str:
    """A section of a page."""
    total = sum(found.done.values())
    served = sorted(map(len, found.waits))
    verdict = (
        "Nothing was wrong." if not found.wrong else f"**{len(found.wrong)} things are wrong.**"
    )
    kills = (
        ", ".join(f"{what} {count} times" for what, count in sorted(found.kills.items())) or "none"
    )
    outcome = (
        f"{verdict} {found.services} services, {len(found.waits)} clients,"
        f" {total:,} requests in {found.seconds:.0f} s ({total / found.seconds:.0f} a second)."
        f" Killed: {kills}. {found.looked:,} states of the ledger were compared."
    )
    return "\n".join(
        [
            f"## {kind}",
            "",
            f"{machine()} Commit {_commit()}.",
            f"`python -m tests.scenarios.soak.soak {' '.join(command)}`",
            "",
            outcome,
            "",
            "| seconds per answer | median | 95 % | 99 % | 99.9 % | slowest |",
            "|---|---|---|---|---|---|",
            _line("of all", sorted(wait for each in found.waits for wait in each)),
            _line("of the client with the slowest answer", max(found.waits, key=_slowest)),
            "",
            f"Answers per client: {served[0]} to {served[-1]}, median {served[len(served) // 2]}.",
            "",
            *table("request and status", found.done),
            "Checked:",
            "",
            *(f"- {one}" for one in CHECKED),
            *(f"- WRONG: {one}" for one in found.wrong),
            "",
        ]
    )


def _commit() -> str:
    """Of the program that was run."""
    git = ("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    found = subprocess.run(git, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _line(what: str, waits: Sequence[float]) -> str:
    shown = [
        waits[min(int(len(waits) * part), len(waits) - 1)] for part in (0.5, 0.95, 0.99, 0.999)
    ]
    return f"| {what} | " + " | ".join(f"{one:.3f}" for one in [*shown, waits[-1]]) + " |"


def _slowest(waits: Sequence[float]) -> float:
    return waits[-1] if waits else 0.0
