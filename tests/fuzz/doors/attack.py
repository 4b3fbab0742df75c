"""The attack itself: hammers, a bystander whose requests are ordinary, and who watches memory."""

import http.client
import random
import re
import time
import uuid
from collections import Counter, deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from tests.fuzz.doors.requests import Asked, request

_UUID: Final = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FAULT: Final = 500
_BUSY: Final = 503
_READ: Final = 64 * 1024
KNOWN: Final = 200
"""Ids kept to be asked for again."""


@dataclass
class Hammer:
    """One hostile tenant: it sends what is nearly right, and notes what is wrongly answered."""

    port: int
    seed: str
    most: float
    """Seconds that an answer may take."""
    calm: Event
    """While it is set nothing is sent."""
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def run(self, stop: Event) -> None:
        """Send until told to stop."""
        dice = random.Random(self.seed)
        known: deque[str] = deque(maxlen=KNOWN)
        project = f"hammer-{self.seed}"
        while not stop.is_set():
            if self.calm.is_set():
                stop.wait(0.1)
                continue
            asked = request(dice, known)
            began = time.monotonic()
            try:
                status, body, again = self._send(asked, project)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if time.monotonic() - began > self.most:
                    self._note(asked, f"no answer after {self.most} s: {error!r}")
                elif not isinstance(error, ValueError):  # the client will not send such a head
                    self.statuses[0] += 1
                continue
            took = time.monotonic() - began
            self.statuses[status] += 1
            self.slowest = max(self.slowest, took)
            known.extend(one.decode() for one in _UUID.findall(body[:_READ])[:3])
            if status >= _FAULT and not (status == _BUSY and again):
                self._note(asked, f"{status} {body[:300]!r}")
            if took > self.most:
                self._note(asked, f"{status} after {took:.1f} s")

    def _send(self, asked: Asked, project: str) -> tuple[int, bytes, str | None]:
        headers = {"X-Auth-Token": f"ann:{project}", "X-Roles": "member", **asked.headers}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.most + 5)
        try:
            connection.request(asked.method, asked.path, asked.body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("Retry-After")
        finally:
            connection.close()

    def _note(self, asked: Asked, what: str) -> None:
        body = "" if asked.body is None else f" {asked.body[:300]!r}"
        self.wrong.append(f"{asked.method} {asked.path[:200]}{body} -> {what}")


@dataclass
class Bystander:
    """Another tenant's ordinary requests, as Nova makes them, and how long they take."""

    port: int
    most: float
    calm: Event
    took: dict[str, list[float]] = field(default_factory=lambda: {"GET": [], "PUT": []})
    alone: dict[str, list[float]] = field(default_factory=lambda: {"GET": [], "PUT": []})
    """The same while nothing attacks."""
    wrong: list[str] = field(default_factory=list)

    def run(self, stop: Event) -> None:
        """Ask for candidates, and write an allocation, again and again."""
        while not stop.wait(0.2):
            server = str(uuid.uuid4())
            body = (
                b'{"allocations": {}, "project_id": "p", "user_id": "u",'
                b' "consumer_generation": null, "consumer_type": "INSTANCE"}'
            )
            self._timed("GET", "/placement/allocation_candidates?resources=VCPU:1&limit=10", None)
            self._timed("PUT", f"/placement/allocations/{server}", body)

    def _timed(self, method: str, path: str, body: bytes | None) -> None:
        headers = {
            "X-Auth-Token": "nova:service",
            "X-Roles": "service",
            "Content-Type": "application/json",
            "OpenStack-API-Version": "placement 1.38",
        }
        began, calm = time.monotonic(), self.calm.is_set()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.most + 5)
        try:
            connection.request(method, path, body, headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            self.wrong.append(f"the bystander's {method}: {error!r}")
            return
        finally:
            connection.close()
        took = time.monotonic() - began
        if calm is self.calm.is_set():
            (self.alone if calm else self.took)[method].append(took)
        if status >= _FAULT or took > self.most:
            self.wrong.append(f"the bystander's {method}: {status} after {took:.1f} s")


def stand_by(bystander: Bystander, stop: Event, told: Connection) -> None:
    """Run a bystander as a process of its own, and send what it found when told to stop.

    In the attackers' process it would wait for them, too, while they write their requests.
    """
    bystander.run(stop)
    told.send((bystander.took, bystander.alone, bystander.wrong))


@dataclass
class Memory:
    """Resident memory of the service's processes over time, in megabytes."""

    supervisor: int
    samples: list[dict[int, float]] = field(default_factory=list)
    """Of each process, by its id."""

    def run(self, stop: Event) -> None:
        """Look every few seconds."""
        while not stop.wait(2):
            sizes = {pid: _resident(pid) for pid in _children(self.supervisor)}
            if sizes:
                self.samples.append(sizes)

    @property
    def largest(self) -> float:
        """The most that one process had."""
        return max((size for sizes in self.samples for size in sizes.values()), default=0.0)

    @property
    def peak(self) -> float:
        """The most that all had together."""
        return max((sum(sizes.values()) for sizes in self.samples), default=0.0)

    def level(self) -> tuple[float, float]:
        """The medians of the second and of the last quarter, of all processes together."""
        second, last = self._quarters()
        return _median([sum(each.values()) for each in second or last]), _median(
            [sum(each.values()) for each in last]
        )

    def levels(self) -> dict[str, tuple[float, float]]:
        """The same of each process that still runs, by what it is."""
        second, last = self._quarters()
        pids = self.samples[-1] if self.samples else {}
        return {
            f"{_purpose(pid)} {pid}": (
                _median([each[pid] for each in second if pid in each]),
                _median([each[pid] for each in last if pid in each]),
            )
            for pid in pids
        }

    def _quarters(self) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
        quarter = max(len(self.samples) // 4, 1)
        return self.samples[quarter : 2 * quarter], self.samples[-quarter:]


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _purpose(pid: int) -> str:
    """The function or module that a process runs."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return "ended"
    named = [word for word in words if word.startswith("moorage.")]
    return named[-1] if named else "process"


def _resident(pid: int) -> float:
    """Its memory, with its share of the pages that it has in common with others."""
    try:
        found = re.search(r"Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int(found[1]) / 1024 if found else 0.0
