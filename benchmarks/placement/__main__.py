"""Moorage's Placement beside openstack-placement, in one run.

    python -m benchmarks.placement
    python -m benchmarks.placement --hosts 10000 --rows limit,all,nova
    python -m benchmarks.placement --engine postgresql --shapes flat
    python -m benchmarks.placement --ours-only --shapes wide

Fills both databases with the same fleet, starts both servers, compares their answers and prints
server CPU and wall time per row. Results go to benchmarks/placement/ when `--write` is given.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.placement import fill, report, same
from benchmarks.placement.databases import ENGINES, database
from benchmarks.placement.measure import measure
from benchmarks.placement.rows import ROWS, Row
from benchmarks.placement.servers import PEER_DRIVER, Server, ours, theirs
from benchmarks.placement.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE: Final = Path(__file__).parent


def main() -> None:
    """Measure what was asked for."""
    # Told to stop, end as by Ctrl-C: with the servers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asked = _arguments()
    rows = [
        row
        for row in ROWS
        if (not asked.rows or row.key in asked.rows) and row.shape in asked.shapes
    ]
    if not rows:
        sys.exit(f"no such row; there are {', '.join(row.key for row in ROWS)}")
    facts = report.machine() | {
        "engine": asked.engine,
        "command": f"python -m benchmarks.placement {' '.join(sys.argv[1:])}".strip(),
        "memory": {},
    }
    print("\n".join(report.HEAD), flush=True)
    results: list[dict[str, Any]] = []
    for hosts in asked.hosts:
        for shape in SHAPES:
            mine = [row for row in rows if row.shape == shape]
            if not mine:
                continue
            for result in _shape(shape, hosts, mine, asked, facts):
                results.append(result)
                # A run over large fleets takes long: what it has found is not lost if it is ended.
                if asked.write:
                    report.write(HERE, facts, results)


def _shape(
    shape: str, hosts: int, rows: list[Row], asked: argparse.Namespace, facts: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Every row of one fleet; `facts` gets what the processes have in memory by then."""
    nodes = list(SHAPES[shape](hosts))
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        peer = None
        if not asked.ours_only and any(row.peer or row.same for row in rows):
            place = stack.enter_context(database(asked.engine, folder, "theirs"))
            url = place.driven_by(PEER_DRIVER)
            # Its start makes the tables; it keeps names in memory, so it starts again after.
            with theirs(place, folder):
                _note(f"{shape}: theirs filled in", lambda: fill.fill_peer(url, nodes))
            peer = stack.enter_context(theirs(place, folder))
        own_place = stack.enter_context(database(asked.engine, folder, "ours"))
        _note(f"{shape}: ours filled in", lambda: fill.fill_ours(own_place.url, nodes))
        began = time.perf_counter()
        own = stack.enter_context(ours(own_place, folder))
        started = time.perf_counter() - began
        first = own.client()
        _note(f"{shape}: ours reads the ledger in", lambda: first.get("/resource_providers?name=x"))
        for row in rows:
            found = _row(row, hosts, own, peer, asked)
            facts["memory"][f"{shape}, {hosts:,} hosts"] = {
                "ours": own.memory(),
                "theirs": peer.memory() if peer else None,
                "start_seconds": round(started, 1),
            }
            yield found


def _row(
    row: Row, hosts: int, own: Server, peer: Server | None, asked: argparse.Namespace
) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "row": row.key,
        "title": row.title,
        "hosts": hosts,
        "target": row.target if asked.engine == "sqlite" else row.target_on_server or row.target,
        "bound_ms": row.bound_ms,
    }
    if peer and row.same:
        figures["agreed"] = same.check(own.client(), peer.client(), row.same)
    names = {"ours": own, "theirs": peer} if peer and row.peer else {"ours": own}
    found = measure([*names.values()], row, hosts, samples=asked.samples, seconds=asked.seconds)
    figures |= {name: one.as_json() for name, one in zip(names, found, strict=True)}
    print(report.line(figures), flush=True)
    return figures


def _note(what: str, work: Callable[[], object]) -> None:
    began = time.perf_counter()
    work()
    print(f"  {what} {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.placement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = _names
    parser.add_argument("--hosts", type=_sizes, default=[1000], help="sizes, by comma (1000)")
    parser.add_argument("--engine", choices=ENGINES, default="sqlite", help="database (sqlite)")
    parser.add_argument("--rows", type=names, default=[], help="row keys, by comma (all)")
    parser.add_argument("--shapes", type=names, default=list(SHAPES), help="fleets (all)")
    parser.add_argument("--samples", type=int, default=5, help="samples per row (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="least length of one (1)")
    parser.add_argument("--ours-only", action="store_true", help="leave the reference out")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md, results.json")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return text.split(",")


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
