"""`python -m tests.fuzz.doors`: hostile requests to all APIs of one service."""

import argparse
import multiprocessing
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread
from typing import Final

from tests.fuzz.doors import bounds
from tests.fuzz.doors.attack import Bystander, Hammer, Memory, stand_by
from tests.fuzz.doors.one_tenant import read_nothing
from tests.scenarios.soak.soak import prepare
from tests.servers import postgres
from tests.servers.replica import Replica

from moorage.store import open_store

WORKERS: Final = 2
PLANNERS: Final = 2
TOLD: Final = 30


def main(words: Sequence[str]) -> int:
    """Attack, print a report in Markdown; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.doors")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hammers", type=int, default=6)
    said = "seconds an answer may take; the service is given half of it"
    parser.add_argument("--most", type=float, default=bounds.ANSWER, help=said)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--report", type=Path, help="a file to which the report is added")
    parser.add_argument("--log", type=Path, help="a file for the service's whole log")
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
        processes = multiprocessing.get_context("spawn")
        stop, calm = processes.Event(), processes.Event()
        bystander = Bystander(replica.port, args.most, calm)
        hammers = [
            Hammer(replica.port, f"{args.seed}-{number}", args.most, calm)
            for number in range(args.hammers)
        ]
        found, told = processes.Pipe(duplex=False)
        beside = processes.Process(target=stand_by, args=(bystander, stop, told), daemon=True)
        beside.start()
        runs = [*(one.run for one in hammers), memory.run]
        runs.append(partial(read_nothing, replica.port, "hammer-0", calm))
        threads = [Thread(target=run, args=(stop,)) for run in runs]
        for thread in threads:
            thread.start()
        _take_turns(args.seconds, calm)
        stop.set()
        for thread in threads:
            thread.join()
        if not found.poll(2 * args.most):
            raise TimeoutError("the bystander did not say what it found")
        bystander.took, bystander.alone, bystander.wrong = found.recv()
        starts = _starts(replica)
        wrong = [one for hammer in hammers for one in hammer.wrong] + bystander.wrong
        log = replica.whole_log()
        wrong += [f"log: {line}" for line in _faults(log)]
        second, last = memory.level()
        levels = memory.levels()
    finally:
        replica.down()
    if args.log is not None:
        args.log.write_text(log)
    if memory.peak > bounds.MEMORY:
        wrong.append(f"memory of all processes was {memory.peak:.0f} MB")
    if args.seconds >= bounds.LONG_ENOUGH:
        if last > second * bounds.GROWTH:
            wrong.append(f"memory grew from {second:.0f} to {last:.0f} MB")
        wrong += [
            f"another tenant's {method} was slowed: {_latency(method, took, bystander.alone)}"
            for method, took in bystander.took.items()
            if _slowed(took, bystander.alone[method])
        ]
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
        *(_latency(method, took, bystander.alone) for method, took in bystander.took.items()),
        f"- memory of all processes {second:.0f} MB in the second quarter, {last:.0f} MB last,",
        f"  {memory.peak:.0f} of {bounds.MEMORY:.0f} MB at most;",
        f"  the largest process {memory.largest:.0f} MB",
        *(f"    - {of}: {before:.0f} MB, {after:.0f} MB" for of, (before, after) in levels.items()),
        f"- wrong: {len(wrong)}",
        *(f"    - {one}" for one in wrong[:TOLD]),
    ]
    return "\n".join(lines), wrong


def _take_turns(seconds: float, calm: Event) -> None:
    """Let attacks and calm follow each other for so long."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(bounds.ATTACKED, left))
        calm.set()
        time.sleep(min(bounds.CALM, max(until - time.monotonic(), 0)))
        calm.clear()


def _latency(method: str, took: list[float], alone: dict[str, list[float]]) -> str:
    median, late, worst = _quantiles(took)
    calm_median, calm_late, _ = _quantiles(alone[method])
    return (
        f"- another tenant's {method}: {len(took)} times, median {median * 1000:.1f} ms,"
        f" 99 % {late * 1000:.0f} ms, worst {worst * 1000:.0f} ms;"
        f" alone median {calm_median * 1000:.1f} ms, 99 % {calm_late * 1000:.0f} ms"
    )


def _slowed(took: list[float], alone: list[float]) -> bool:
    median, late, _ = _quantiles(took)
    calm_median, calm_late, _ = _quantiles(alone)
    return median > bounds.MEDIAN * calm_median or late > bounds.LATE * calm_late


def _quantiles(took: list[float]) -> tuple[float, float, float]:
    ordered = sorted(took) or [0.0]
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100], ordered[-1]


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
