"""The page of what leases cost, from the benchmark's result file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from gen.markdown import table

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "time" / "results.json"
BLAZAR: Final = "blazar"

ABOUT: Final = """\
What leases cost, against the targets set for them. Everything runs in one process on SQLite in a
file: the whole use case from description to commit, or the whole HTTP application without a
socket. Times are processor time of that process, medians over rounds with the least and the most
behind them; a round that comes first is not counted. Statements are those that reach the database;
one that carries many sets of values counts once.

    make bench-time
    make bench-time ARGS="--rows slots blazar"

write the results from which this page's tables are made. A row that a run leaves out stays as it
was."""

PEER: Final = """\
The same fleet, the same leases and the same question, to Blazar 18.0.0's own manager and to `POST
/reservation/v1/leases`. Hosts of 64 vCPUs; each lease that is there takes a slot of one vCPU on
each of ten hosts, for a period that lies across the window; asked for are four slots of two vCPUs.

What is measured of Blazar is `create_lease` of its manager alone: its plugin for instances, its
enforcement and its database layer as they are, on SQLite, with an index on each column that refers
to another table, as MySQL makes them by itself. HTTP, Keystone and RPC are left out there, and
Nova and Placement answer at once; here the HTTP application is part of the time, and each host
has been offered (`POST /os-hosts`), as there. Blazar asks twice for every host and for every lease
on it in the window; here neither hosts nor leases add statements."""

BESIDE: Final = """\
Bookings that have not begun stand in the way of whoever asks for capacity without an end. The
search, and the answer of the Placement API that is made of it, each on two fleets in turns: one
with the bookings, one without."""

CAPACITY: Final = """\
How many of a flavor fit from each instant on at which that changes, over the whole fleet: read
without a write, from what the process knows of the ledger."""


def page() -> str:
    """Grants, the comparison, candidates, and capacity."""
    found = json.loads(RESULTS.read_text())
    results = found["results"]
    peer = [one for one in results if one["row"].startswith(BLAZAR)]
    ahead = [one for one in results if one["row"].startswith("beside")]
    over = [one for one in results if one["row"].startswith("capacity")]
    grants = [one for one in results if one not in (*peer, *ahead, *over)]
    return "\n\n".join(
        (
            "# Time",
            ABOUT,
            _where(found["machine"], results),
            "## Grants",
            table(("", "Hosts", "Leases", "CPU", "Statements", "Target"), map(_grant, grants)),
            "## Beside Blazar",
            PEER,
            table(
                ("", "Hosts", "Blazar", "Moorage", "Ratio", "At least"),
                map(_compared, peer),
            ),
            "## Candidates beside bookings ahead",
            BESIDE,
            table(
                ("", "Hosts", "Bookings", "Without", "With", "Ratio", "At most"),
                map(_beside, ahead),
            ),
            "## Capacity over time",
            CAPACITY,
            table(("", "Hosts", "Leases", "CPU", "Statements", "Target"), map(_grant, over)),
        )
    )


def _where(machine: dict[str, Any], results: list[dict[str, Any]]) -> str:
    days = sorted({one["date"][:10] for one in results})
    loads = [one["load"] for one in results]
    return (
        f"{machine['processor']}, {machine['cores']} cores that other work shares, Python"
        f" {machine['python']}; measured {' to '.join(dict.fromkeys((days[0], days[-1])))}, in runs"
        f" that began under loads of {min(loads):.1f} to {max(loads):.1f}."
    )


def _cost(found: dict[str, Any]) -> str:
    return f"{found['cpu_ms']:,.1f} ms ({found['least_ms']:,.1f} to {found['most_ms']:,.1f})"


def _grant(one: dict[str, Any]) -> tuple[str, ...]:
    target, ours = one["target"], one["ours"]
    asked = [f"< {target['cpu_ms']} ms"] + (
        [f"at most {target['statements']} statements"] if "statements" in target else []
    )
    missed = [
        f"{name.replace('cpu_ms', 'time')} missed" for name in target if ours[name] > target[name]
    ]
    return (
        one["title"],
        f"{one['hosts']:,}",
        f"{one['bookings']:,}",
        _cost(ours),
        str(ours.get("statements", "")),
        ", ".join(asked) + (f": **{' and '.join(missed)}**" if missed else ""),
    )


def _compared(one: dict[str, Any]) -> tuple[str, ...]:
    ours, theirs, least = one["ours"], one["beside"], one["target"].get("at_least")
    ratio = theirs["cpu_ms"] / ours["cpu_ms"]
    return (
        one["title"],
        f"{one['hosts']:,}",
        f"{theirs['cpu_ms']:,.0f} ms, {theirs['statements']:,} statements",
        f"{ours['cpu_ms']:.1f} ms, {ours['statements']} statements",
        f"**{ratio:,.0f}x**",
        "" if least is None else f"{least}x" + (": **missed**" if ratio < least else ""),
    )


def _beside(one: dict[str, Any]) -> tuple[str, ...]:
    ours, without, most = one["ours"], one["beside"], one["target"]["at_most"]
    ratio = ours["cpu_ms"] / without["cpu_ms"]
    return (
        one["title"],
        f"{one['hosts']:,}",
        f"{one['bookings']:,}",
        f"{without['cpu_ms']:.2f} ms",
        f"{ours['cpu_ms']:.2f} ms",
        f"**{ratio:.2f}x**",
        f"{most}x" + (": **missed**" if ratio > most else ""),
    )
