"""The page of speed beside the reference, from the benchmark's result files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from gen.markdown import table

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "placement"
ENGINES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
PER_MEGABYTE: Final = 0.3
"""Milliseconds of CPU to hand a million bytes over to the kernel and have them sent: 8 MB that lie
ready in memory took 2.3 ms, HTTP included, on the machine the results are from."""
WRITES: Final = {"put", "delete", "claim", "load"}
"""Rows whose limit is the database's, not the answer's size."""

ABOUT: Final = """\
Moorage's Placement beside openstack-placement 16.0.0, in one run: both on the same database
engine, filled with the same fleet, their answers compared before anything is measured. CPU is
user and system time of the server's whole process tree for one request (its database server
included), wall what one client waits; medians of five samples, for which the two servers take
turns. The reference runs behind gunicorn with two processes, Moorage as `moorage serve` with one
worker. The reference generates candidates breadth first, as Moorage does by default; both had the
reference's default, depth first, in what was measured before 2026-11-29.
The machine has two cores that other work shares: ratios of CPU mean something, single wall times
less.

    make bench-placement ARGS="--hosts 10000 --write"
    make bench-placement ARGS="--hosts 10000 --engine postgresql --shapes flat --write"

write the results from which this page's tables are made. A row that a run leaves out stays as it
was."""

LIMIT: Final = """\
*Limit* is the least that this machine needs: to take a request and answer it with nothing (the
row `GET /`), and to send the bytes of the answer ({per_megabyte} ms a million). The rest is:

- **Freshness.** Each read asks the database whether anything was committed since the
  snapshot, so that it never shows less than what was acknowledged, by whichever replica. It is
  one round trip, and the largest fixed part of a small answer on PostgreSQL.
- **Masks.** About a dozen array operations over the rows that are promising: all of them where a
  query names nothing rare, else those with the rarest trait, aggregate or tree it names; never
  more than the limit takes, and some.
- **Texts.** A candidate's text is made once for all trees that are alike, and filled with their
  names in one table of bytes; what is said of a provider is kept encoded until the provider
  changes. Picking the texts of scattered hosts one by one is what remains.
- **Python between them**: the query's grammar (kept for queries that come again), routes,
  headers, the access rule, the log.
- **The search** of wide trees: every combination that is a candidate is found one by one. Its
  time follows the candidates asked for, not those there are.
- **Writes** check, write and log a commit in one transaction, and wait for the disk. Of a `PUT`
  of an allocation on SQLite a third is the flush, less by what it takes itself than because
  all that runs after it runs cold: without it the same request takes two thirds. About a sixth is
  SQLite, for seven statements that change a dozen pages of seven trees; what is left is Python
  for the most part. On PostgreSQL the database's processes use two fifths; a new host is
  described in four round trips.
  Both lie on a disk here. Where a target is near, runs differ with the neighbours' load: in six
  of them a `PUT` on SQLite was 34 to 37 times cheaper than the reference's, and in four
  `in_tree` on PostgreSQL 47 to 75 times, as the reference took 21 to 38 ms for it."""

LARGER: Final = """\
Moorage alone, on SQLite: how cost grows with the fleet. `make bench-placement ARGS="--hosts
100000 --shapes flat --ours-only --write"` measures it."""


def page() -> str:
    """A table per engine, then the larger fleets and the memory."""
    found = {engine: json.loads(_file(engine).read_text()) for engine in ENGINES}
    parts = ["# Speed", ABOUT]
    for engine, one in found.items():
        machine = one["machine"]
        parts += [
            f"## {ENGINES[engine]}",
            _where(machine, one["results"]),
            beside(one["results"]),
        ]
    parts += ["## Where each row stands", LIMIT.format(per_megabyte=PER_MEGABYTE)]
    results = found["sqlite"]["results"]
    parts += [against_limit(results), "## Larger fleets", LARGER, alone(results)]
    parts += ["## Memory and start", *(memory(ENGINES[name], one) for name, one in found.items())]
    return "\n\n".join(filter(None, parts))


def _where(machine: dict[str, Any], results: list[dict[str, Any]]) -> str:
    days = sorted({one["date"][:10] for one in results})
    loads = [one["load"] for one in results]
    return (
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}; measured"
        f" {' to '.join(dict.fromkeys((days[0], days[-1])))}, in runs that began under loads of"
        f" {min(loads):.0f} to {max(loads):.0f}."
    )


def _file(engine: str) -> Path:
    return RESULTS / f"results-{engine}.json"


def _compared(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in results if "theirs" in one or one["bound_ms"]]


def beside(results: list[dict[str, Any]]) -> str:
    """Both, and what was asked for."""
    head = ("", "Hosts", "Reference", "Moorage", "Ratio", "At least", "Wall")
    return table(head, map(_beside, _compared(results)))


def _beside(one: dict[str, Any]) -> tuple[str, ...]:
    ours, theirs = one["ours"], one.get("theirs")
    asked = f"{one['target']:g}x" if one["target"] else ""
    if one["bound_ms"]:
        asked = f"wall < {one['bound_ms']:g} ms"
    return (
        one["title"],
        f"{one['hosts']:,}",
        f"{theirs['cpu_ms']:.1f} ms" if theirs else "",
        f"{ours['cpu_ms']:.2f} ms",
        f"**{theirs['cpu_ms'] / ours['cpu_ms']:.0f}x**" if theirs else "",
        asked,
        f"{ours['wall_ms']:.1f} ms",
    )


def against_limit(results: list[dict[str, Any]]) -> str:
    """What a read costs beside what it must."""
    floors = {one["hosts"]: one["ours"]["cpu_ms"] for one in results if one["row"] == "floor"}
    rows = []
    for one in _compared(results):
        ours = one["ours"]
        floor = floors.get(one["hosts"])
        # A fleet without a row for the floor, or measured before answers were weighed, has none.
        if one["row"] in WRITES or floor is None or "received" not in ours:
            continue
        least = floor + ours["received"] / 1e6 * PER_MEGABYTE
        rows.append(
            (
                one["title"],
                f"{ours['received']:,} B",
                f"{least:.2f} ms",
                f"{ours['cpu_ms']:.2f} ms",
                f"{ours['cpu_ms'] / least:.1f}x",
            )
        )
    head = ("", "Answer", "Limit", "Moorage", "Above it")
    return table(head, rows) if rows else ""


def alone(results: list[dict[str, Any]]) -> str:
    """Rows that were measured at several sizes."""
    sizes = sorted({one["hosts"] for one in results})
    if len(sizes) == 1:
        return ""
    cost = {(one["row"], one["hosts"]): one for one in results}
    largest = [one for one in results if one["hosts"] == sizes[-1]]
    rows = [
        (
            one["title"],
            *(_cost(cost.get((one["row"], size))) for size in sizes),
        )
        for one in largest
        if (one["row"], sizes[0]) in cost
    ]
    return table(("CPU of one request", *(f"{size:,} hosts" for size in sizes)), rows)


def _cost(one: dict[str, Any] | None) -> str:
    return "" if one is None else f"{one['ours']['cpu_ms']:.2f} ms"


def memory(engine: str, found: dict[str, Any]) -> str:
    """Resident memory after all rows, and the time from start to the first answer."""
    rows = []
    for fleet, one in found["machine"]["memory"].items():
        ours, theirs = one["ours"], one["theirs"]
        rows.append(
            (
                fleet,
                f"{theirs['biggest']} MiB" if theirs else "",
                f"{ours['biggest']} MiB",
                f"{ours['biggest'] / theirs['biggest']:.2f}" if theirs else "",
                f"{ours['tree']} MiB",
                f"{one['start_seconds']:.1f} s" if "start_seconds" in one else "",
            )
        )
    head = (engine, "Reference", "Moorage", "Ratio", "Whole tree", "Start to first answer")
    return table(head, rows)
