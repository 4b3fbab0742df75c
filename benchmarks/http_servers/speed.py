"""Requests a second of the service's own application, behind each server."""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import threading
import time
from dataclasses import dataclass
from typing import Final

from benchmarks.http_servers.servers import serving

LIST: Final = "/placement/resource_providers"
UUID: Final = "00000000-0000-4000-8000-{:012d}"
HEADERS: Final = {
    "x-auth-token": "admin",
    "openstack-api-version": "placement 1.39",
    "content-type": "application/json",
}


@dataclass(frozen=True)
class Speed:
    """Of one server with one way to ask."""

    rate: float
    """Requests a second."""
    median: float
    """Seconds."""
    cpu: float
    """Seconds of its processes' time per request."""


def _ask(wire: http.client.HTTPConnection, method: str, path: str, body: object = None) -> int:
    wire.request(method, path, None if body is None else json.dumps(body), HEADERS)
    answer = wire.getresponse()
    answer.read()
    return answer.status


def _work(port: int, method: str, number: int, until: float, waited: list[float]) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    path = f"{LIST}/{UUID.format(number)}"
    with contextlib.closing(wire):
        count = 0
        while time.monotonic() < until:
            body = {"name": f"host-{number}-{count % 2}"} if method == "PUT" else None
            began = time.perf_counter()
            status = _ask(wire, method, path, body)
            waited.append(time.perf_counter() - began)
            assert status == 200, status
            count += 1


def _cpu(pids: list[int]) -> float:
    from benchmarks.placement.servers import _TICKS, _processes

    return sum(one.cpu for one in _processes() if one.pid in pids) / _TICKS


def speeds(name: str, seconds: float) -> dict[str, Speed]:
    """By `GET 1` (one client), `PUT 8` and so on."""
    found = {}
    with serving(name, "moorage") as server:
        wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        with contextlib.closing(wire):
            for number in range(8):
                _ask(wire, "POST", LIST, {"name": f"host-{number}", "uuid": UUID.format(number)})
        for method in ("GET", "PUT"):
            for clients in (1, 8):
                waited: list[float] = []
                began, before = time.monotonic(), _cpu(server.workers())
                threads = [
                    threading.Thread(
                        target=_work, args=(server.port, method, number, began + seconds, waited)
                    )
                    for number in range(clients)
                ]
                for one in threads:
                    one.start()
                for one in threads:
                    one.join()
                took = time.monotonic() - began
                cpu = (_cpu(server.workers()) - before) / len(waited)
                rate = len(waited) / took
                found[f"{method} {clients}"] = Speed(rate, statistics.median(waited), cpu)
    return found
