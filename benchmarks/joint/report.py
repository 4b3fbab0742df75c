"""The results file, and the table that is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.joint.families import FAMILIES
from benchmarks.joint.pictures import picture
from benchmarks.joint.refusals import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
TABLE: Final = HERE / "RESULTS.md"
PICTURE: Final = HERE.parents[1] / "docs" / "reports" / "joint.svg"
PICTURED_LOAD: Final = 75
NOT_RUN: Final = "not run"

FIRST: Final[Mapping[tuple[int, int], dict[str, float]]] = {
    (100, 10_000): {"p50": 0.020, "p95": 0.100},
    (1000, 50_000): {"p50": 0.300, "p95": 2.0},
    (100, 100_000): {"p50": 0.200},
}
"""Members and hosts -> seconds until a first valid answer."""
CONFLICT: Final[Mapping[tuple[int, int], dict[str, float]]] = {
    (100, 10_000): {"p95": 0.100},
    (1000, 50_000): {"p95": 2.0},
}
RELAXATIONS: Final[Mapping[tuple[int, int], dict[str, float]]] = {
    (100, 10_000): {"p95": 1.0},
    (1000, 50_000): {"p95": 10.0},
}
HOP_GAP: Final = {100: 0.03, 1000: 0.01}
"""Members -> how far the hops may be above the bound after a second."""
STREAM: Final = {60: 1.05, 75: 1.2}
"""Base load -> how many times as many groups are admitted as one at a time at best."""
BUILD: Final = {1: 0.005, 20: 0.015}
"""Members that take cards -> seconds of the processor to build the problem on 10,000 hosts."""
RATE_HOSTS: Final = 10_000
RATE: Final = 50
"""Decisions a second, of 20 members, that sixteen clients get on so many hosts."""

HEAD: Final = (
    (
        "| members x hosts | load | family | instances | wrong | undecided | first, p50 / p95"
        " | processor, p50 | cold | conflict, p50 / p95 | relaxations, p50 / p95 | hop gap"
        " | one at a time: native, ideal |"
    ),
    "|---" * 13 + "|",
)


def keep(rows: list[dict[str, Any]], facts: Mapping[str, Any], section: str) -> None:
    """Put rows into the results file, with where and when; others stay as they were."""
    found = kept(RESULTS, rows, facts, section, _key)
    TABLE.write_text("\n".join(page(found)))
    if pictured := [one for one in found.get("cells", []) if one["load"] == PICTURED_LOAD]:
        # The set that was never tuned on, where it was measured.
        which = min(one["set"] for one in pictured)
        PICTURE.write_text(picture([one for one in pictured if one["set"] == which]))


def kept(
    file: Path,
    rows: list[dict[str, Any]],
    facts: Mapping[str, Any],
    section: str,
    key: Callable[[Mapping[str, Any]], tuple[str, ...]],
) -> dict[str, Any]:
    """All results after rows were put into a section of a file; those of equal key are replaced."""
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    known = {key(one): one for one in found.get(section, [])}
    machine = {name: value for name, value in facts.items() if name not in {"date", "load"}}
    own = {"date": facts["date"], "load average": facts["load"], "machine": machine}
    known |= {key(one): one | own for one in rows}
    found[section] = [known[one] for one in sorted(known)]
    file.write_text(json.dumps(found, indent=1) + "\n")
    return found


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("set", "members", "hosts", "load", "family", "engine", "planners")
    return tuple(f"{row.get(name, ''):>9}" for name in names)


def page(found: Mapping[str, Any]) -> Iterator[str]:
    """The whole page."""
    yield from ("# Joint decisions at the size of a cloud", "", *ABOUT, "")
    cells = found.get("cells", [])
    for which in dict.fromkeys(row["set"] for row in cells):
        rows = [row for row in cells if row["set"] == which]
        yield from (f"## The set `{which}`", "", *by_machine(rows, _cells))
    for heading, section, table in (
        ("Streams", "streams", _streams),
        ("Devices", "devices", _devices),
        ("Over HTTP, holds committed", "http", _over_http),
    ):
        yield from (f"## {heading}", "", *by_machine(found.get(section, []), table))


def by_machine(
    rows: list[dict[str, Any]], table: Callable[[list[dict[str, Any]]], Iterator[str]]
) -> Iterator[str]:
    """A table for each machine on which some of the rows were measured."""
    if not rows:
        yield from (*table(rows), "")
    of: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        one = row["machine"]
        name = f"{one['processor']}, {one['cores']} cores, Python {one['python']}"
        of.setdefault(name, []).append(row)
    for name, measured in of.items():
        yield from (f"Measured on {name}.", "", *table(measured), "")


def _cells(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from HEAD
    yield from map(line, rows)


ABOUT: Final = (
    "Times are seconds of one process, by the wall if nothing else is said: from the request and a",
    "snapshot that one commit has just changed to an answer that is verified. A conflict's time",
    "includes the decision; that of the relaxations is what a whole explanation takes. **Bold** is",
    "what misses its target. *Wrong* are answers that break something, refusals of what can be",
    "placed, and wrong conflicts and relaxations, found by an independent checker.",
)


def line(row: Mapping[str, Any]) -> str:
    """One cell of the measurement as a row of the table."""
    size = row["members"], row["hosts"]
    found = row["found"]
    refused = row["family"] in REFUSALS
    conflict = _times(found.get("conflict"), CONFLICT.get(size, {}))
    if row["other conflicts"]:
        conflict += f", **{row['other conflicts']} not found**"
    cells = (
        f"{row['members']:,} x {row['hosts']:,}",
        f"{row['load']} %",
        row["family"],
        str(row["instances"]) if row["instances"] else "none can be planted",
        _count(len(row["wrong"])),
        _count(row["undecided"]),
        _times(found.get("first"), {} if refused else FIRST.get(size, {})),
        _seconds(found["first cpu"]["p50"]) if "first cpu" in found else "",
        _seconds(found["cold"]["p50"]) if "cold" in found else "",
        conflict,
        _times(found.get("relaxations"), RELAXATIONS.get(size, {})),
        _gap(found, row["members"]),
        _beside(row),
    )
    return f"| {' | '.join(cells)} |"


def _count(number: int) -> str:
    return f"**{number}**" if number else "0"


def _seconds(value: float) -> str:
    return f"{value:.3g}"


def _times(found: Mapping[str, float] | None, target: Mapping[str, float]) -> str:
    """Median and 95th percentile; bold what is above its target."""
    if found is None:
        return ""
    said = (
        f"**{_seconds(found[name])}**"
        if found[name] > target.get(name, float("inf"))
        else _seconds(found[name])
        for name in ("p50", "p95")
    )
    return " / ".join(said)


def _gap(found: Mapping[str, Any], members: int) -> str:
    gap = found.get("hop gap")
    if gap is None:
        return ""
    most = HOP_GAP.get(members, float("inf"))
    text = f"{gap['p95']:.1%}"
    return f"**{text}**" if gap["p95"] > most else text


def _beside(row: Mapping[str, Any]) -> str:
    if not row["beside"]:
        return ""
    best = (
        max(count for name, count in row["beside"].items() if name.startswith(kind))
        for kind in ("native", "ideal")
    )
    return ", ".join(f"{count / row['instances']:.0%}" for count in best)


def _streams(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        yield NOT_RUN
        return
    names = list(rows[0]["admitted"])
    yield f"| set | base load | groups | {' | '.join(names)} | joint / best other | undecided |"
    yield "|---" * (len(names) + 5) + "|"
    for row in rows:
        ratio = f"{row['ratio']:.2f}x"
        if row["ratio"] < STREAM.get(row["load"], 0):
            ratio = f"**{ratio}**"
        counts = " | ".join(str(row["admitted"][name]) for name in names)
        yield (
            f"| {row['set']} | {row['load']} % | {row['groups']} | {counts} | {ratio}"
            f" | {_count(row['undecided'])} |"
        )


def _devices(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        yield NOT_RUN
        return
    yield (
        "| members x hosts | providers | load | family | instances | wrong | undecided"
        " | build, processor, p50 / p95 | the first time | first answer, processor, p50 / p95"
        " | by the wall, p50 / p95 |"
    )
    yield "|---" * 11 + "|"
    for row in rows:
        found, members = row["found"], row["members"]
        cells = (
            f"{members:,} x {row['hosts']:,}",
            f"{row['providers']:,}",
            f"{row['load']} %",
            row["family"],
            str(row["instances"]) if row["instances"] else "none can be planted",
            _count(len(row["wrong"])),
            _count(row["undecided"]),
            _times(found.get("cpu of build"), {"p50": BUILD.get(members, float("inf"))}),
            _seconds(found["cold cpu of build"]["p50"]) if "cold cpu of build" in found else "",
            _times(found.get("first cpu"), {}),
            _times(found.get("first"), {}),
        )
        yield f"| {' | '.join(cells)} |"


def _over_http(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        yield NOT_RUN
        return
    yield (
        "| database, planners | hosts, bookings | seconds until ready"
        " | members: one client, p50 / p95 | refused"
        " | 16 clients, 20 members: a second | p50 / p95 | processor each | statuses"
        " | MiB: biggest process, all |"
    )
    yield "|---" * 10 + "|"
    for row in rows:
        many, memory = row["sixteen"], row["memory"]
        rate = many["decisions a second"]
        missed = row["hosts"] == RATE_HOSTS and rate < RATE
        statuses = ", ".join(f"{count} x {status}" for status, count in many["statuses"].items())
        yield (
            f"| {row['engine']}, {row['planners']}"
            f" | {row['hosts']:,}, {row['bookings']:,} | {row['ready']}"
            f" | {row['members']}: {_times(row['one client'], {})} | {sum(row['refused'].values())}"
            f" | {f'**{rate}**' if missed else rate} | {_times(many['seconds'], {})}"
            f" | {_seconds(many['cpu of a decision'])} | {statuses}"
            f" | {memory['biggest']:,}, {memory['tree']:,} |"
        )


ORDER: Final = (*FAMILIES, *REFUSALS)
"""The families as they are measured."""
