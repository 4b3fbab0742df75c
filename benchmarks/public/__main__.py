"""Replay public traces against Moorage's engine and against schedulers of one member at a time.

    python -m benchmarks.public                            # what there is in .cache/public
    python -m benchmarks.public --folder DIR --data gpu-v2025 --loads 90 --orders size
    python -m benchmarks.public --part 8                   # an eighth of everything, to try it
    python -m benchmarks.public --generated 1              # applications of the same shape
    ... --write                                            # keep it, and make RESULTS.md anew

Where the traces are published, and which file of each is read: docs/gen/public.py. Everything runs
in this process; times are of the processor.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from benchmarks.placement.report import machine
from benchmarks.public import (
    admission,
    cluster_trace,
    gangs,
    gpu_shares,
    growth,
    reassignment,
    report,
)
from benchmarks.public.applications import made, peak, read

from moorage.domain.requests import Objective

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.public.applications import Instance

    Row: TypeAlias = tuple[str, dict[str, Any]]

FOLDER: Final = Path(".cache") / "public"
APPLICATIONS: Final = "disaggregated_DLRM_trace.csv"


def main() -> None:
    """Measure what is asked for."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the traces are")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--loads", type=int, nargs="+", help="of gpu-v2025 and growth, percent")
    parser.add_argument(
        "--orders",
        nargs="+",
        choices=admission.ORDERS,
        default=list(admission.ORDERS),
        help="of gpu-v2025",
    )
    joint = [str(one) for one in admission.JOINT]
    parser.add_argument("--objectives", nargs="+", choices=joint, default=joint)
    parser.add_argument(
        "--part", type=int, default=1, metavar="N", help="only every Nth application, host, task"
    )
    parser.add_argument("--generated", type=int, metavar="SEED", help="no trace: make one")
    parser.add_argument("--write", action="store_true", help="keep the results")
    args = parser.parse_args()
    if args.part < 1:
        parser.error("--part needs a number above 0")
    if args.write and args.generated is not None:
        parser.error("results of generated applications are not kept")
    for name in args.data:
        for section, row in DATA[name](args):
            row["part"] = args.part
            print(row, flush=True)
            if args.write:
                report.keep([row], machine(), section)


def _instances(args: argparse.Namespace) -> list[Instance] | None:
    """The applications' instances: read, or made; None if there is no file."""
    file = args.folder / APPLICATIONS
    if args.generated is not None:
        found = made(args.generated)
    elif _there(file):
        found = read(file)
    else:
        return None
    some = frozenset(sorted({one.application for one in found})[:: args.part])
    return [one for one in found if one.application in some]


def _there(file: Path) -> bool:
    """Whether there is a file; said if there is none."""
    if not file.exists():
        print(f"{file}: no such file, not run")
    return file.exists()


def _admission(args: argparse.Namespace) -> Iterator[Row]:
    instances = _instances(args)
    if instances is None:
        return
    asked = peak(instances)
    objectives = [Objective(one) for one in args.objectives]
    for setting in admission.settings(args.loads or admission.LOADS, args.orders):
        yield "admission", admission.measure(asked, setting, objectives)


def _growth(args: argparse.Namespace) -> Iterator[Row]:
    instances = _instances(args)
    if instances is None:
        return
    for load in args.loads or growth.LOADS:
        for barred in (False, True):
            found = growth.measure(instances, load, barred=barred, objectives=args.objectives)
            yield "growth", found


def _shares(args: argparse.Namespace) -> Iterator[Row]:
    if not _there(args.folder / gpu_shares.NODES):
        return
    nodes = gpu_shares.read_nodes(args.folder)[:: args.part]
    for name in gpu_shares.TASKS:
        if not _there(args.folder / name):
            continue
        tasks = gpu_shares.read_tasks(args.folder / name)[:: args.part]
        for order in gpu_shares.ORDERS:
            yield "shares", gpu_shares.measure(nodes, tasks, name, order)


def _gangs(args: argparse.Namespace) -> Iterator[Row]:
    submitted = gangs.gangs(max(gangs.QUEUES // args.part, 1))
    hosts = gangs.fleet(nodes=max(gangs.NODES // args.part, 1))
    for name in gangs.ways():
        yield "gangs", gangs.measure(name, submitted, hosts)


def _reassignments(args: argparse.Namespace) -> Iterator[Row]:
    names = reassignment.names_in(args.folder)
    if not names:
        print(f"{args.folder}: no model_*.txt, not run")
    for name in names:
        yield "formats", reassignment.measure(args.folder, name)


def _interference(args: argparse.Namespace) -> Iterator[Row]:
    if not any(args.folder.glob("*app_resources*.csv")):
        print(f"{args.folder}: no *app_resources*.csv, not run")
        return
    for share in (1, 3):
        yield "formats", cluster_trace.measure(args.folder, share=share)


DATA: Final[dict[str, Callable[[argparse.Namespace], Iterator[Row]]]] = {
    "gpu-v2025": _admission,
    "growth": _growth,
    "openb": _shares,
    "gangs": _gangs,
    "roadef": _reassignments,
    "tianchi": _interference,
}
"""Name of a data set -> what measures it: sections of the results file, and rows for them."""

if __name__ == "__main__":
    main()
