"""One row on one server: CPU of its process tree and wall time per repetition."""

from __future__ import annotations

import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from benchmarks.placement.client import Client
    from benchmarks.placement.rows import Row
    from benchmarks.placement.servers import Server

_ENOUGH_CPU: Final = 0.4
"""Seconds of server CPU that make one sample; the kernel counts in hundredths."""


@dataclass(frozen=True)
class Figures:
    """Milliseconds per repetition: medians over the samples, and what they were made of."""

    cpu_ms: float
    wall_ms: float
    samples: int
    repetitions: int
    cpu_range: tuple[float, float]
    received: int
    """Bytes of bodies per repetition."""

    def as_json(self) -> dict[str, Any]:
        """For the results file."""
        return asdict(self)


def measure(server: Server, row: Row, hosts: int, *, samples: int, seconds: float) -> Figures:
    """Some samples of about `seconds` each, after one warm-up."""
    chance = random.Random(f"{row.key}")
    clients = [server.client() for _ in range(row.clients)]
    for client in clients[:1]:
        row.work(client, chance, hosts)
    found, repetitions = [], 0
    before = sum(client.received for client in clients)
    for number in range(samples):
        cpu, wall, count = _sample(server, row, clients, hosts, seconds, number)
        repetitions += count
        found.append((cpu / count * 1e3, wall / count * 1e3))
    received = sum(client.received for client in clients) - before
    for client in clients:
        client.close()
    cpus, walls = [one[0] for one in found], [one[1] for one in found]
    return Figures(
        cpu_ms=statistics.median(cpus),
        wall_ms=statistics.median(walls),
        samples=samples,
        repetitions=repetitions,
        cpu_range=(min(cpus), max(cpus)),
        received=received // repetitions,
    )


def _sample(
    server: Server, row: Row, clients: list[Client], hosts: int, seconds: float, number: int
) -> tuple[float, float, int]:
    """Server CPU, wall seconds and repetitions of one sample.

    It lasts until both the time is over and the CPU used is enough to be counted by, but at
    most ten times as long.
    """
    began, before = time.perf_counter(), server.cpu()
    counts = [0] * len(clients)
    over = threading.Event()

    def run(which: int) -> None:
        chance = random.Random(f"{row.key}/{number}/{which}")
        while True:
            row.work(clients[which], chance, hosts)
            counts[which] += 1
            spent = time.perf_counter() - began
            if which == 0 and (
                (spent > seconds and server.cpu() - before > _ENOUGH_CPU) or spent > 10 * seconds
            ):
                over.set()
            if over.is_set():
                return

    if len(clients) == 1:
        run(0)
    else:
        with ThreadPoolExecutor(len(clients)) as pool:
            list(pool.map(run, range(len(clients))))
    wall = time.perf_counter() - began
    return server.cpu() - before, wall, sum(counts)
