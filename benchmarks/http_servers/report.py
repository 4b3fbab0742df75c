"""The table of a trial."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING

from benchmarks.http_servers.cases import CASES

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from benchmarks.http_servers.slow import Finding
    from benchmarks.http_servers.speed import Speed

_MARK = {True: "**yes**: ", False: "**no**: ", None: ""}


def version(name: str) -> str:
    """`waitress 3.0.2`."""
    return "ours" if name == "moorage" else f"{name} {metadata.version(name)}"


def head(names: Sequence[str]) -> str:
    """What was measured where."""
    now = datetime.now(UTC).isoformat(timespec="minutes")
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return f"""# HTTP servers under one trial

Written by `python -m benchmarks.http_servers` on {now}, Python {platform.python_version()},
{os.cpu_count()} processors with other work on them (load {load}).

**yes** and **no** say whether what is demanded holds (`slow.py` and `ends.py` have the bounds).
Latencies are those of another client that sends a small body meanwhile, each time on a new
connection. Every server but ours has an adapter around the application that checks `Host` and
methods, and leaves out what answers to HEAD would have as a body (`hosts.py`).

| | {" | ".join(version(name) for name in names)} |
|---|{"---|" * len(names)}
"""


def row(title: str, found: Mapping[str, Finding], names: Sequence[str]) -> str:
    """One row."""
    cells = [f"{_MARK[found[name].good]}{found[name].told}" for name in names]
    return f"| {title} | {' | '.join(cells)} |\n"


def raw_rows(of: Counter[str], right: Mapping[str, Counter[str]], names: Sequence[str]) -> str:
    """The raw cases by group."""
    lines = []
    for group, number in of.items():
        cells = [f"{right[name][group]} of {number}" for name in names]
        lines.append(f"| raw cases: {group} | {' | '.join(cells)} |\n")
    total = [f"**{right[name].total()} of {len(CASES)}**" for name in names]
    return "".join([*lines, f"| raw cases | {' | '.join(total)} |\n"])


def speed_rows(found: Mapping[str, list[dict[str, Speed]]], names: Sequence[str]) -> str:
    """Per way to ask: of the best round rate and median, of the least processor time the ratio."""
    lines = []
    for way in found[names[0]][0]:
        cells = []
        base = min(one[way].cpu for one in found[names[0]])
        for name in names:
            rounds = [one[way] for one in found[name]]
            best = max(rounds, key=lambda one: one.rate)
            cpu = min(one.cpu for one in rounds)
            cells.append(
                f"{best.rate:.0f}/s, {1000 * best.median:.2f} ms,"
                f" {1000 * cpu:.2f} ms CPU ({cpu / base:.2f} of ours)"
            )
        method, clients = way.split()
        who = "1 client" if clients == "1" else f"{clients} clients"
        lines.append(f"| the service: {method}, {who} | {' | '.join(cells)} |\n")
    return "".join(lines)


def wrong(found: Mapping[str, list[str]]) -> str:
    """What was wrong about raw cases."""
    parts = ["\n## Raw cases that were not answered as they should be\n"]
    for name, lines in found.items():
        told = "".join(f"- {line.replace('|', chr(92) + '|')[:140]}\n" for line in lines)
        parts.append(f"\n### {version(name)}\n\n{told or 'None.' + chr(10)}")
    return "".join(parts)
