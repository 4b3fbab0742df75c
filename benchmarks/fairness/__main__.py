"""What one tenant waits while another one attacks, and what memory that takes.

    python -m benchmarks.fairness [--attacks members,keys] [--seconds 10] [--rounds 3] [--write]
        [--source DIRECTORY]

Starts a service of its own on SQLite with 100 hosts. In each round the victim places three servers,
deletes them, and lists its ensembles, over one connection: first alone, then while a process of its
own attacks as one other project (`attacks`). The machine may have other work to do, so what counts
is the ratio of the two, taken close together: by round, of which the median is given. Then the
longest answer of the attacker by status, and the most memory that all processes of the service had
together (pages they share counted once). `--write` puts the table into RESULTS.md; `--source` is
the `src` of another checkout to be measured by the same program.
"""

import argparse
import contextlib
import http.client
import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.fairness.attacks import attacks
from benchmarks.service import serving

HOSTS: Final = 100
PATIENCE: Final = 120.0
ADMIN: Final = {
    "X-Auth-Token": "admin",
    "Content-Type": "application/json",
    "OpenStack-API-Version": "placement 1.39",
}
MEMBER: Final = {
    "X-Auth-Token": "ann:victim",
    "X-Roles": "member",
    "Content-Type": "application/json",
}
PAUSE: Final = 0.02
"""Seconds between two requests of the victim."""
AT_REST: Final = 3.0
"""Seconds from the end of one attack to the next measurement."""
RESULTS: Final = Path(__file__).with_name("RESULTS.md")


@dataclass
class Service:
    """A running service, or one client of it."""

    pid: int
    port: int
    headers: Mapping[str, str]
    statuses: Counter[str] = field(default_factory=Counter)
    took: dict[str, list[float]] = field(default_factory=dict)
    _wire: http.client.HTTPConnection | None = None

    def ask(self, kind: str, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """One request over one connection; its time is kept under the kind."""
        if self._wire is None:
            self._wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        data = None if body is None else json.dumps(body)
        began = time.perf_counter()
        try:
            self._wire.request(method, path, data, {**self.headers, "If-Match": "*"})
            answer = self._wire.getresponse()
            text = answer.read()
            status = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            self._wire.close()
            self._wire, text, status = None, b"", type(error).__name__
        self.took.setdefault(kind, []).append(time.perf_counter() - began)
        self.statuses[f"{kind} {status}"] += 1
        return json.loads(text) if text.startswith(b"{") else {}

    def work(self, seconds: float) -> None:
        """Decide, delete and list."""
        until, number = time.monotonic() + seconds, 0
        role = {"name": "r", "count": 3, "flavor": "m1.small"}
        while time.monotonic() < until:
            number += 1
            name = f"v{number}-{time.monotonic_ns()}"
            body = {"ensemble": {"name": name, "members": [role], "decide": {}}}
            made = self.ask("decision", "POST", "/v1/ensembles", body)
            if (ensemble := made.get("ensemble", {}).get("id")) is not None:
                self.ask("delete", "DELETE", f"/v1/ensembles/{ensemble}")
            self.ask("list", "GET", "/v1/ensembles")
            time.sleep(PAUSE)


@dataclass
class Memory:
    """The most that all processes of a service have together, in MB."""

    pid: int
    most: float = 0.0

    def watch(self, stop: threading.Event) -> None:
        """Look four times a second."""
        while not stop.wait(0.25):
            self.most = max(self.most, self.now())

    def now(self) -> float:
        """The sum of their proportional set sizes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        found = 0
        for pid in (str(self.pid), *children):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                found += int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1])  # type: ignore[index]
        return found / 1024


@contextlib.contextmanager
def stocked(source: str | None) -> Iterator[Service]:
    """A service with a fleet."""
    with serving(source) as (pid, port):
        operator = Service(pid, port, ADMIN)
        fill(operator)
        time.sleep(AT_REST)
        yield operator


def fill(operator: Service) -> None:
    """Hosts and a flavor."""
    amounts = {"VCPU": 10_000, "MEMORY_MB": 10_000_000, "DISK_GB": 100_000}
    for number in range(HOSTS):
        uuid = f"00000000-0000-4000-8000-{number:012d}"
        path = "/placement/resource_providers"
        operator.ask("fill", "POST", path, {"name": f"host-{number}", "uuid": uuid})
        inventories = {name: {"total": total} for name, total in amounts.items()}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        operator.ask("fill", "PUT", f"{path}/{uuid}/inventories", body)
    flavor = {"name": "m1.small", "resources": {"VCPU": 1, "MEMORY_MB": 64}}
    operator.ask("fill", "POST", "/v1/flavors", {"flavor": flavor})
    wrong = [one for one in operator.statuses if not one.startswith("fill 2")]
    assert not wrong, operator.statuses


@contextlib.contextmanager
def attacking(port: int, kind: str) -> Iterator[dict[str, Any]]:
    """A process that attacks; what it has found is there afterwards."""
    found: dict[str, Any] = {}
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "benchmarks.fairness.attacks", str(port), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        time.sleep(2)
        yield found
        said, _ = process.communicate()
        found.update(json.loads(said))


def late(values: list[float]) -> float:
    """The 99th percentile."""
    return sorted(values)[len(values) * 99 // 100]


def measure(operator: Service, kind: str, seconds: float, rounds: int) -> str:
    """One row of the table."""
    memory, stop = Memory(operator.pid), threading.Event()
    watching = threading.Thread(target=memory.watch, args=(stop,))
    watching.start()
    ratios: dict[str, list[float]] = {}
    plain: dict[str, list[float]] = {}
    refused: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    longest: dict[str, float] = {}
    for _ in range(rounds):
        time.sleep(AT_REST)
        alone = Service(operator.pid, operator.port, MEMBER)
        alone.work(seconds)
        beside = Service(operator.pid, operator.port, MEMBER)
        with attacking(operator.port, kind) as found:
            beside.work(seconds)
        for what in ("decision", "list"):
            for name, of in (("median", statistics.median), ("99 %", late)):
                before, after = of(alone.took[what]), of(beside.took[what])
                ratios.setdefault(f"{what} {name}", []).append(after / before)
                plain.setdefault(f"{what} {name}", []).append(after * 1000)
        refused += Counter(
            {one: n for one, n in beside.statuses.items() if not re.search(" 20[0-4]$", one)}
        )
        statuses += Counter(found["statuses"])
        for status, took in found["longest"].items():
            longest[status] = max(longest.get(status, 0.0), took)
    stop.set()
    watching.join()
    cells = [
        f"{statistics.median(ratios[one]):.1f} ({statistics.median(plain[one]):.0f} ms)"
        for one in ("decision median", "decision 99 %", "list median", "list 99 %")
    ]
    answers = ", ".join(f"{n} x {one} ({longest[one]} s)" for one, n in sorted(statuses.items()))
    wrong = ", ".join(f"{one}: {n}" for one, n in refused.items()) or "none"
    return f"| {kind} | {' | '.join(cells)} | {memory.most:.0f} MB | {answers} | {wrong} |"


_COLUMNS: Final = (
    *("attack", "decision, median", "decision, 99 %", "list, median", "list, 99 %", "memory"),
    *("the attacker's answers (longest)", "the victim's refusals"),
)
HEAD: Final = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attacks", default=",".join(attacks()))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--source")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rows = []
    print(HEAD, end="", flush=True)
    for kind in asked.attacks.split(","):
        with stocked(asked.source) as operator:
            rows.append(measure(operator, kind, asked.seconds, asked.rounds))
        print(rows[-1], flush=True)
    if asked.write:
        RESULTS.write_text("# Fairness\n\n" + HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
