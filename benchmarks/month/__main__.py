"""A generated month, run through the service in several ways.

    python -m benchmarks.month                        # the month of the documentation: an hour
    python -m benchmarks.month --hosts 250            # a smaller fleet: minutes
    python -m benchmarks.month --hosts 100 --days 10  # a shorter month, too, to try it
    python -m benchmarks.month --write                # keep what was found, and the picture
    python -m benchmarks.month --folder month.run     # go on there, should it be interrupted
    python -m benchmarks.month --only 2               # what a larger fleet's first days cost

Every way runs in a process of its own, as many at a time as there are processors. Everything is
made from the seed: the same command finds the same numbers, but for searches that the solver gives
up when their time is over.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from benchmarks.month.kept import Kept
from benchmarks.month.pictures import picture
from benchmarks.month.plan import month
from benchmarks.month.report import fewer, table
from benchmarks.month.ways import WAYS
from benchmarks.month.world import WARM_UP

from moorage.domain.period import DAY

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
PICTURE: Final = HERE.parents[1] / "docs" / "reports" / "month.svg"


@dataclass(frozen=True, slots=True)
class Size:
    """Which month."""

    seed: int
    hosts: int
    days: int

    def __str__(self) -> str:
        return f"seed-{self.seed}-hosts-{self.hosts}-days-{self.days}"


def main() -> int:
    """Run the ways asked for; the exit status is 1 if a lease was late."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--write", action="store_true", help="keep results.json and the picture")
    parser.add_argument(
        "--folder", type=Path, help="where every day is kept, and gone on from; else nothing is"
    )
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="ways run at a time")
    parser.add_argument(
        "--only", type=int, metavar="DAYS", help="just the first days, for what they cost"
    )
    args = parser.parse_args()
    if args.days * DAY <= WARM_UP:
        parser.error(f"a month has more than {WARM_UP // DAY} days, which are not looked at")
    size = Size(args.seed, args.hosts, args.days)
    with tempfile.TemporaryDirectory() as passing, ProcessPoolExecutor(args.at_once) as pool:
        folder = (args.folder or Path(passing)).resolve() / str(size)
        last = args.only or size.days
        runs = [pool.submit(live, size, name, folder / name, last) for name in args.ways]
        results = {name: run.result() for name, run in zip(args.ways, runs, strict=True)}
    if args.only:
        cost = {name: found["cpu_s"] for name, found in results.items()}
        print(f"seconds of processor time for {args.only} days of {args.hosts:,} hosts: {cost}")
        if args.write:
            whole = json.loads(RESULTS.read_text())
            begun = {"hosts": args.hosts, "days": args.only, "cpu_s": cost}
            RESULTS.write_text(_text(whole | {"begun": begun}))
        return 0
    print("\n".join(table(results)))
    if "moorage" in results:
        for name, share in fewer(results).items():
            print(f"idle reserved hours, against {WAYS[name].title}: {share:.1%} fewer")
    if args.write:
        keep(size, results)
    return 1 if any(found["counts"].get("leases late") for found in results.values()) else 0


def live(size: Size, name: str, folder: Path, last: int) -> dict[str, Any]:
    """One way, to the end of its last day; in a process of its own."""
    kept = Kept(folder)
    if (found := kept.finished()) is not None:
        return found
    asked = month(size.seed, hosts=size.hosts, days=size.days)
    began = time.process_time()
    world, before = kept.world(asked, WAYS[name])
    if last <= world.day < size.days:
        return {"cpu_s": round(before)}
    pace = Pace(name, size.days, world.day)
    for day in world.live():
        cpu_s = before + time.process_time() - began
        pace.tell(day, cpu_s, world.line())
        kept.day(world, cpu_s)
        if last <= day < size.days:
            return {"cpu_s": round(cpu_s)}
    found = world.found.as_json() | {"cpu_s": round(before + time.process_time() - began)}
    world.service.close()
    kept.finish(found)
    return found


@dataclass
class Pace:
    """Tells after every day how it stands, and when it will be over at the pace of that day."""

    name: str
    days: int
    day: int
    at: float = field(default_factory=time.monotonic)

    def tell(self, day: int, cpu_s: float, line: str) -> None:
        """A day is over."""
        now = time.monotonic()
        left = (now - self.at) / (day - self.day) * (self.days - day)
        self.day, self.at = day, now
        over = datetime.now().astimezone() + timedelta(seconds=left)
        say(
            f"{self.name}: day {day} of {self.days}, {cpu_s:,.0f} s of processor time, {line};"
            f" over at about {over:%H:%M:%S}"
        )


def keep(size: Size, results: dict[str, dict[str, Any]]) -> None:
    """Write the results and the picture."""
    whole = {"seed": size.seed, "hosts": size.hosts, "days": size.days, "ways": results}
    RESULTS.write_text(_text(whole))
    hours = {WAYS[name].title: found["hours"] for name, found in results.items()}
    PICTURE.write_text(picture(hours, WARM_UP // DAY))


def _text(whole: dict[str, Any]) -> str:
    return json.dumps(whole, separators=(",", ":")) + "\n"


def say(line: str) -> None:
    """Tell how far it is, at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
