"""How long story A's decision takes as a tenant sees it: over HTTP, from a real server process.

    .venv/bin/python benchmarks/decision.py            # prints the median
    .venv/bin/python benchmarks/decision.py --record   # and writes it to benchmarks/ranges.toml

Each round creates the nine-member shop on three racks, held, and deletes it again; the clock runs
from the first byte sent to the last byte received on one kept connection. `dry-run` is the same
without the commit. Times depend on the machine; compare runs of one machine only.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml
from ranges import record

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
MOORAGE = Path(sys.executable).with_name("moorage")


@contextmanager
def simulation() -> Iterator[tuple[str, str]]:
    """Address and operator's token of a running fleet of three racks."""
    with tempfile.TemporaryDirectory() as state:
        environment = os.environ | {"XDG_STATE_HOME": state}
        fleet = str(ROOT / "fleets" / "three-racks.yaml")

        def sim(*words: str) -> None:
            command = [str(MOORAGE), "sim", *words]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our program

        sim("start", "--fleet", fleet)
        try:
            (registered,) = (Path(state) / "moorage" / "sims").glob("*.json")
            told = json.loads(registered.read_text(encoding="utf-8"))
            yield told["endpoint"], told["token"]
        finally:
            sim("stop")


class Tenant:
    """One kept connection, and how long each call took on it."""

    def __init__(self, endpoint: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=30)
        self._headers = {"X-Auth-Token": token, "Content-Type": "application/json"}

    def call(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[dict[str, Any], float]:
        """The answer, and the milliseconds until its last byte."""
        sent = None if body is None else json.dumps(body)
        started = time.perf_counter()
        self._connection.request(method, f"/v1{path}", sent, self._headers | headers)
        response = self._connection.getresponse()
        text = response.read()
        taken = (time.perf_counter() - started) * 1000
        if response.status >= http.HTTPStatus.MULTIPLE_CHOICES:
            raise SystemExit(f"{method} {path}: {response.status} {text.decode()}")
        return (json.loads(text) if text else {}), taken


def measure(runs: int) -> dict[str, float]:
    """Medians in milliseconds; prints a line each."""
    shop = yaml.safe_load((ROOT / "examples" / "shop.yaml").read_text(encoding="utf-8"))
    asked = {"ensemble": {**shop, "decide": {"hold": "PT10M"}}}
    held, dry = [], []
    with simulation() as (endpoint, token):
        tenant = Tenant(endpoint, token)
        for _ in range(runs + 2):
            dry.append(tenant.call("POST", "/ensembles?dry_run=true", asked)[1])
            made, taken = tenant.call("POST", "/ensembles", asked)
            held.append(taken)
            tenant.call("DELETE", f"/ensembles/{made['ensemble']['id']}", **{"If-Match": "*"})
    found = {}
    for name, times in (("story-a", held[2:]), ("story-a-dry-run", dry[2:])):
        found[name] = statistics.median(times)
        print(f"{name:28} p50 {found[name]:8.1f} ms   max {max(times):8.1f} ms")
    return found


def main() -> None:
    """Measure, print, and record where asked to."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--record", action="store_true")
    options.add_argument("--runs", type=int, default=31)
    chosen = options.parse_args()
    found = measure(chosen.runs)
    if chosen.record:
        record("http", "milliseconds, median, one client; benchmarks/decision.py", found)


if __name__ == "__main__":
    main()
