"""`python -m tests.fuzz.doors`: hostile requests to all APIs of one service."""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Final

from tests.fuzz.doors.attack import Bystander, Hammer, Memory
from tests.scenarios.soak.soak import prepare
from tests.servers import postgres
from tests.servers.replica import Replica

from moorage.store import open_store

WORKERS: Final = 2
PLANNERS: Final = 1
GROWTH: Final = 1.25
"""How much more memory the last quarter may use than the second."""
LONG_ENOUGH: Final = 600.0
"""Seconds from which memory is judged; before that it still fills."""
TOLD: Final = 30


def main(words: Sequence[str]) -> int:
    """Attack, print a report in Markdown; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.doors")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hammers", type=int, default=6)
    said = "seconds an answer may take; the service is given half of it"
    parser.add_argument("--most", type=float, default=30, help=said)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--report", type=Path)
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        if args.database == "sqlite":
            report, wrong = attack(Path(folder), f"sqlite:///{folder}/moorage.db", args)
        else:
            with postgres.running_server() as server:
                url = postgres.Databases(server.url).empty()
                report, wrong = attack(Path(folder), url, args)
    print(report)  # noqa: T201 - a command's result
    if args.report is not None:
        with args.report.open("a") as file:
            file.write(report + "\n")
    return min(len(wrong), 1)


def attack(folder: Path, database: str, args: argparse.Namespace) -> tuple[str, list[str]]:
    """Run it against a service on this database; the report, and what was wrong."""
    store = open_store(database)
    prepare(store)
    store.close()
    limits = ("--request-time-limit", f"{args.most / 2:.0f}s")
    replica = Replica(
        folder, database, "--workers", str(WORKERS), "--planners", str(PLANNERS), *limits
    )
    replica.start()
    try:
        replica.up()
        memory = Memory(replica.pid)
        bystander = Bystander(replica.port, args.most)
        hammers = [
            Hammer(replica.port, f"{args.seed}-{number}", args.most)
            for number in range(args.hammers)
        ]
        stop = Event()
        runs = [*(one.run for one in hammers), bystander.run, memory.run]
        threads = [Thread(target=run, args=(stop,)) for run in runs]
        for thread in threads:
            thread.start()
        time.sleep(args.seconds)
        stop.set()
        for thread in threads:
            thread.join()
        starts = _starts(replica)
        wrong = [one for hammer in hammers for one in hammer.wrong] + bystander.wrong
        wrong += [f"log: {line}" for line in _faults(replica.whole_log())]
        second, last = memory.level()
        levels = memory.levels()
    finally:
        replica.down()
    if args.seconds >= LONG_ENOUGH and last > second * GROWTH:
        wrong.append(f"memory grew from {second:.0f} to {last:.0f} MB")
    replaced = starts - WORKERS - PLANNERS
    if replaced > 0:
        wrong.append(f"{replaced} HTTP workers and planners were replaced")
    statuses = sum((hammer.statuses for hammer in hammers), Counter[int]())
    lines = [
        f"### {args.database}, seed {args.seed}, {args.seconds:.0f} s",
        "",
        f"- {statuses.total()} hostile requests; by status, 0 where the connection was closed:",
        f"  {dict(sorted(statuses.items()))}",
        f"- slowest answer {max(hammer.slowest for hammer in hammers):.1f} s of {args.most:.0f}",
        *(_latency(method, took) for method, took in bystander.took.items()),
        f"- memory of all processes {second:.0f} MB in the second quarter, {last:.0f} MB last;",
        f"  the largest process {memory.largest:.0f} MB",
        *(f"    - {of}: {before:.0f} MB, {after:.0f} MB" for of, (before, after) in levels.items()),
        f"- wrong: {len(wrong)}",
        *(f"    - {one}" for one in wrong[:TOLD]),
    ]
    return "\n".join(lines), wrong


def _latency(method: str, took: list[float]) -> str:
    ordered = sorted(took) or [0.0]
    median, late = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    return (
        f"- another tenant's {method}: {len(took)} times, median {median * 1000:.0f} ms,"
        f" 99 % {late * 1000:.0f} ms, worst {ordered[-1] * 1000:.0f} ms"
    )


def _starts(replica: Replica) -> int:
    """How many HTTP workers and planners were started, by the service's own count."""
    text = replica.text("/metrics")
    counts = re.findall(r"^moorage_worker_starts_total\{[^}]*\} (\S+)$", text, re.MULTILINE)
    return round(sum(map(float, counts)))


def _faults(log: str) -> list[str]:
    """Lines of the log that tell of a fault of the service."""
    return [line for line in log.splitlines() if "Traceback" in line or " ERROR " in line]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
