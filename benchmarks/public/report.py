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


GROWTH: Final = """\
The same trace in time, on hosts for the given load at its peak. *First* are the applications that
are there at the beginning; then every hour some instances end, and what an application grows by is
granted together or not at all, beside its members that stay where they are. Given are the requests
to grow that were granted, and their instances; seconds are of the processor, for one request."""

SHARES: Final = """\
GPU shares allocated, of all there are, after every task was asked for once, in the order as
published and in a random one; nothing ends. `gpu_spec` limits a task to models of GPU. *packing*
takes the fullest host and *spreading* the emptiest, both the fullest GPU that will do. A joint
decision places one task here; *room, stated mix* is the objective `room` where the operator has
stated the mix of requests that FGD knows, of which the sixteen shapes that a mix may have are
weighed. Seconds are of the processor, for one task."""

GANGS: Final = """\
The numbers of Kueue's performance test of topology-aware scheduling, without ends and quotas: the
last gangs find nine tenths of the CPUs taken. A gang that was refused though there was room for it
by counting is *refused that fits*. *In several racks* are gangs whose pods are not all in one rack,
which only those may be that do not require it. The peers obey what is required, one pod after the
other, and know nothing of preferences."""


FORMATS: Final = """\
Groups admitted, and their members, one group after the other, on machines that are empty at first.
*Machine reassignment* is the ROADEF/EURO challenge of 2012: services whose processes need machines
of their own in enough locations, near the services that they depend on. *Cluster trace* is
Alibaba's contest of 2018: applications with limits beside each other. *First fit* is a scheduler
of one member at a time that obeys every policy; seconds are of the processor, for one group."""


def keep(rows: list[dict[str, Any]], facts: Mapping[str, Any], section: str) -> None:
    """Put rows into the results file, with where and when, and write the page."""
    TABLE.write_text("\n".join(page(kept(RESULTS, rows, facts, section, _key))))


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("part", "format", "name", "load", "barred", "order")
    return tuple(f"{row.get(name, 1 if name == 'part' else ''):>9}" for name in names)


def page(found: Mapping[str, Any]) -> Iterator[str]:
    """The whole page."""
    yield from ("# Public traces", "", ABOUT, "")
    for section, heading, about, table in SECTIONS:
        yield from (f"## {heading}", "", about, "")
        rows = found.get(section, [])
        for part in sorted({row.get("part", 1) for row in rows}) or (1,):
            if part > 1:
                yield from (f"One of {part} applications, hosts, tasks and queues:", "")
            yield from by_machine([row for row in rows if row.get("part", 1) == part], table)


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


def growth_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Growth that each way grants."""
    if not rows:
        yield NOT_RUN
        return
    ways = list(rows[0]["granted"])
    yield f"| load | CN on GPU hosts | hosts | | asked | {' | '.join(ways)} |"
    yield "|---" * (len(ways) + 5) + "|"
    for row in rows:
        where = f"| {row['load']} % | {'no' if row['barred'] else 'yes'} | {row['hosts']:,}"
        first = (str(row["first"][way]) for way in ways)
        yield f"{where} | first | {row['applications']} | {' | '.join(first)} |"
        most = max(row["granted"][way][1] for way in ways if way in PEERS)
        asked = _admitted((row["requests"], row["members"]))
        granted = (
            _bold(_admitted(row["granted"][way]), row["granted"][way][1] < most, way)
            for way in ways
        )
        yield f"| | | | grown | {asked} | {' | '.join(granted)} |"
        shares = (f"{row['granted'][way][1] / max(row['members'], 1):.1%}" for way in ways)
        yield f"| | | | instances, share | | {' | '.join(shares)} |"
        times = (_times(row["seconds"][way]) for way in ways)
        yield f"| | | | s, p50 / p95 / most | | {' | '.join(times)} |"


def _bold(text: str, missed: bool, way: str) -> str:  # noqa: FBT001 - whether a goal is missed
    return f"**{text}**" if missed and way not in PEERS else text


def _times(found: Mapping[str, float]) -> str:
    return " / ".join(f"{found[name]:.2g}" for name in ("p50", "p95", "max"))


def shares_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """GPU shares that each way allocates."""
    if not rows:
        yield NOT_RUN
        return
    ways = list(rows[0]["allocated"])
    yield f"| tasks | order | hosts | asked | {' | '.join(ways)} | room: s, p50 / p95 / most |"
    yield "|---" * (len(ways) + 5) + "|"
    for row in rows:
        most = max(row["allocated"][way] for way in ways if way in PEERS)
        allocated = (
            _bold(f"{share:.1%} ({row['placed'][way]:,})", share < most, way)
            for way, share in row["allocated"].items()
        )
        yield (
            f"| {row['name']}, {row['tasks']:,} | {row['order']} | {row['hosts']:,}"
            f" | {row['asked']:.1%} | {' | '.join(allocated)} | {_times(row['seconds']['room'])} |"
        )


def gangs_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Gangs that each way places."""
    if not rows:
        yield NOT_RUN
        return
    yield (
        "| | hosts | gangs | placed | refused that fits | in several racks | a second of the"
        " processor | s, p50 / p95 / most |"
    )
    yield "|---" * 8 + "|"
    for row in rows:
        wrong = row["refused that fit"]
        yield (
            f"| {row['name']} | {row['hosts']:,} | {row['gangs']:,} | {row['placed']:,}"
            f" | {_bold(f'{wrong:,}', wrong > 0, row['name'])} | {row['in several racks']:,}"
            f" | {row['a second']:,.0f} | {_times(row['seconds'])} |"
        )


def formats_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Groups that each way admits."""
    if not rows:
        yield NOT_RUN
        return
    ways = list(rows[0]["admitted"])
    yield (
        f"| format | data | groups | {' | '.join(ways)} | broken | room: s, p50 / p95 / most"
        " | left out |"
    )
    yield "|---" * (len(ways) + 6) + "|"
    for row in rows:
        admitted = (_admitted(row["admitted"][way]) for way in ways)
        yield (
            f"| {row['format']} | {row['name']} | {row['groups']:,} | {' | '.join(admitted)}"
            f" | {row['broken']} | {_times(row['seconds']['room'])} | {row['left out']} |"
        )
    sums = (
        _admitted([sum(row["admitted"][way][at] for row in rows) for at in (0, 1)]) for way in ways
    )
    yield f"| | sum | {sum(row['groups'] for row in rows):,} | {' | '.join(sums)} | | | |"


SECTIONS: Final[tuple[tuple[str, str, str, Callable[[Any], Iterator[str]]], ...]] = (
    ("admission", "gpu-v2025: applications admitted", ADMISSION, admission_table),
    ("growth", "gpu-v2025: growth granted in time", GROWTH, growth_table),
    ("shares", "openb 2023: GPU shares allocated", SHARES, shares_table),
    ("gangs", "Gangs on racks", GANGS, gangs_table),
    ("formats", "Formats of contests", FORMATS, formats_table),
)
"""Key in the results file, heading, what is said before the table, and the table."""
