"""How quickly and how well ensembles are placed jointly.

    python -m benchmarks.joint                                  # 100x10000 and 1000x50000
    python -m benchmarks.joint --cells 100x1000 --instances 3   # to try it
    python -m benchmarks.joint --families mixed exclusive --loads 75
    python -m benchmarks.joint --set held-out                   # what was never tuned on
    python -m benchmarks.joint --streams 3                      # only streams of groups
    python -m benchmarks.joint --devices 9704                   # only members that take GPUs
    python -m benchmarks.joint --http 10000                     # only over HTTP, on so many hosts
    ... --write                                                 # keep it, and make RESULTS.md anew

Everything but `--http` runs in this process. Run it on a quiet machine: times are by the wall,
with the processor's beside them.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from benchmarks.joint import cards, over_http, report, stream
from benchmarks.joint.cells import Bench
from benchmarks.joint.families import SETS
from benchmarks.placement.databases import ENGINES
from benchmarks.placement.report import machine

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> None:
    """Measure what is asked for."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--cells", default="100x10000,1000x50000", help="members x hosts, ...")
    parser.add_argument("--instances", type=int, default=30, help="of each family in each cell")
    parser.add_argument("--families", nargs="+", choices=report.ORDER, default=report.ORDER)
    parser.add_argument("--loads", default="75,90", help="percent of all VCPUs in use, ...")
    parser.add_argument("--set", choices=SETS, default="tune", dest="which")
    parser.add_argument("--streams", type=int, help="only so many streams at each of 60 and 75 %%")
    parser.add_argument("--devices", type=int, metavar="HOSTS", help="only with GPUs, on so many")
    parser.add_argument("--http", type=int, metavar="HOSTS", help="only `moorage serve`")
    parser.add_argument("--planners", default="auto", help="its planner processes")
    parser.add_argument("--engine", choices=ENGINES, default="sqlite", help="its database")
    parser.add_argument("--write", action="store_true", help="keep the results")
    args = parser.parse_args()
    for section, row in _rows(args):
        print(row if section != "cells" else report.line(row), flush=True)
        for wrong in row.get("wrong", ()) if section == "cells" else ():
            print(f"    wrong: {wrong}")
        if args.write:
            report.keep([row], machine(), section)


def _rows(args: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    if args.streams:
        for load in report.STREAM:
            found = stream.measure(load / 100, args.which, args.streams)
            yield "streams", found | {"load": load, "set": args.which}
        return
    if args.devices:
        for load in map(int, args.loads.split(",")):
            for row in cards.measure(args.devices, load, args.which, args.instances):
                yield "devices", row
        return
    if args.http:
        first = int(args.loads.split(",")[0]) / 100
        service = over_http.Service(args.engine, args.planners)
        yield "http", over_http.measure(service, args.http, first, args.which)
        return
    yield from _cells(args)


def _cells(args: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    print("\n".join(report.HEAD))
    sizes = [tuple(map(int, cell.split("x"))) for cell in args.cells.split(",")]
    for hosts in sorted({hosts for _, hosts in sizes}):
        for load in map(int, args.loads.split(",")):
            bench = Bench(hosts, load, args.which)
            for members in (members for members, count in sizes if count == hosts):
                for family in args.families:
                    yield "cells", bench.cell(family, members, args.instances).as_row()


if __name__ == "__main__":
    main()
