"""The results file, and the page that is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.joint.report import NOT_RUN, by_machine, kept
from benchmarks.public.admission import PEERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
TABLE: Final = HERE / "RESULTS.md"
ABOUT: Final = """\
Public traces, replayed against Moorage's engine and against schedulers that place one member at a
time. Each way of placing has a fleet of its own that fills up; an application is placed whole or
not at all, and every filter that its limits need is given to the peers as well. *packing* takes the
fullest host and *spreading* the emptiest, over all resource classes as shares of the largest host;
*best fit* takes the host on which least is left as shares of that host; *FGD* is fragmentation
gradient descent (Weng et al., USENIX ATC 2023), an implementation of its own that knows the whole
trace's mix of requests beforehand, and takes the fullest of equal hosts. `room`, `spread` and
`pack` are the objectives of joint decisions; their mix of requests is what the ledger holds."""

ADMISSION: Final = """\
Applications admitted, and their instances. As many hosts with and without GPUs as the demand of
each kind divided by the load needs. *CN* are the instances without GPUs. A peer is *better* if it
admits more applications and more instances, both by more than 1 %. *One application* is named if it
is the largest that only one of the best peer and Moorage admits, and alone is as large as their
whole difference in instances."""


def keep(rows: list[dict[str, Any]], facts: Mapping[str, Any], section: str) -> None:
    """Put rows into the results file, with where and when, and write the page."""
    TABLE.write_text("\n".join(page(kept(RESULTS, rows, facts, section, _key))))


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{row.get(name, ''):>9}" for name in ("name", "load", "barred", "order"))


def page(found: Mapping[str, Any]) -> Iterator[str]:
    """The whole page."""
    yield from ("# Public traces", "", ABOUT, "")
    for section, heading, about, table in SECTIONS:
        yield from (f"## {heading}", "", about, "", *by_machine(found.get(section, []), table))


def admission_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Applications and instances that each way admits."""
    if not rows:
        yield NOT_RUN
        return
    ways = list(dict.fromkeys(way for row in rows for way in row["admitted"]))
    yield (
        f"| load | CN on GPU hosts | order | hosts | {' | '.join(ways)} | a peer is better"
        " | one application |"
    )
    yield "|---" * (len(ways) + 6) + "|"
    for row in rows:
        cells = (_admitted(row["admitted"].get(way)) for way in ways)
        yield (
            f"| {row['load']} % | {'no' if row['barred'] else 'yes'} | {row['order']}"
            f" | {row['hosts']:,} | {' | '.join(cells)} | {_better(row['better'])}"
            f" | {_named(row['one application'])} |"
        )
    yield _sums(rows, ways)
    taken = (_sum(row["cpu"].get(way, 0.0) for row in rows) for way in ways)
    yield f"| | | processor, s | | {' | '.join(taken)} | | |"
    longest = (max(row["longest"].get(way, 0.0) for row in rows) for way in ways)
    cells = (f"{one:.2g}" if one else "" for one in longest)
    yield f"| | | longest decision, s | | {' | '.join(cells)} | | |"


def _sum(values: Iterable[float]) -> str:
    return f"{sum(values):,.0f}"


def _sums(rows: list[dict[str, Any]], ways: list[str]) -> str:
    """The row of sums; bold where a peer's best sum is not reached."""
    sums = {
        way: tuple(sum(row["admitted"].get(way, (0, 0))[at] for row in rows) for at in (0, 1))
        for way in ways
    }
    least = max(sums[way] for way in ways if way in PEERS)
    cells = (
        f"**{_admitted(one)}**"
        if way not in PEERS and (one[0] < least[0] or one[1] < least[1])
        else _admitted(one)
        for way, one in sums.items()
    )
    return f"| | | sum | | {' | '.join(cells)} | | |"


def _admitted(found: Iterable[int] | None) -> str:
    if found is None:
        return ""
    groups, members = found
    return f"{groups:,} ({members:,})"


def _better(found: Mapping[str, list[str]]) -> str:
    return "; ".join(f"**{', '.join(peers)}** than {way}" for way, peers in found.items() if peers)


def _named(found: Mapping[str, str | None]) -> str:
    return "; ".join(f"{name} ({way})" for way, name in found.items() if name)


SECTIONS: Final[tuple[tuple[str, str, str, Callable[[Any], Iterator[str]]], ...]] = (
    ("admission", "gpu-v2025: applications admitted", ADMISSION, admission_table),
)
"""Key in the results file, heading, what is said before the table, and the table."""
