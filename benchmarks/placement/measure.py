"""One row on each server: CPU of its process tree and wall time per repetition."""

from __future__ import annotations

import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def measure(
    servers: Sequence[Server], row: Row, hosts: int, *, samples: int, seconds: float
) -> list[Figures]:
    """Of each server some samples of about `seconds` each, after one warm-up.

    They take turns, so that whatever else the machine does meanwhile is done to all of them.
    """
    runs = [_Run(server, row, hosts) for server in servers]
    for number in range(samples):
        for run in runs if number % 2 else runs[::-1]:
            run.sample(seconds, number)
    return [run.end() for run in runs]


class _Run:
    """One server's part."""

    def __init__(self, server: Server, row: Row, hosts: int) -> None:
        self._server, self._row, self._hosts = server, row, hosts
        self._clients = [server.client() for _ in range(row.clients)]
        row.work(self._clients[0], random.Random(row.key), hosts)
        self._before = self._received()
        self._found: list[tuple[float, float, int]] = []

    def sample(self, seconds: float, number: int) -> None:
        found = _sample(self._server, self._row, self._clients, self._hosts, seconds, number)
        self._found.append(found)

    def end(self) -> Figures:
        received = self._received() - self._before
        for client in self._clients:
            client.close()
        repetitions = sum(count for _, _, count in self._found)
        cpus = [cpu / count * 1e3 for cpu, _, count in self._found]
        return Figures(
            cpu_ms=statistics.median(cpus),
            wall_ms=statistics.median(wall / count * 1e3 for _, wall, count in self._found),
            samples=len(cpus),
            repetitions=repetitions,
            cpu_range=(min(cpus), max(cpus)),
            received=received // repetitions,
        )

    def _received(self) -> int:
        return sum(client.received for client in self._clients)


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
