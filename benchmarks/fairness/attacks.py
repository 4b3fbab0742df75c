"""What a hostile tenant sends, from a process of its own: `python -m benchmarks.fairness.attacks`.

Prints one JSON line at the end of its standard input: the statuses that it got, and the longest
time to an answer of each.
"""

import contextlib
import http.client
import itertools
import json
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

PROJECT: Final = "mallory"
HEADERS: Final = {
    "X-Auth-Token": f"eve:{PROJECT}",
    "X-Roles": "member",
    "Content-Type": "application/json",
}
CLIENTS: Final = 16
READERS: Final = 200
LIMIT: Final = "5s"
"""Time limit of its decisions."""
PATIENCE: Final = 120.0
HOT: Final = "heat_template_version: 2021-04-16\n"


@dataclass(frozen=True)
class Attack:
    """A request to be sent again and again, each time with another name."""

    method: str
    path: str
    body: tuple[str, str] = ("", "")
    """Before and after the name."""

    def made(self, name: str) -> bytes:
        """The body for a name."""
        return name.join(self.body).encode() if any(self.body) else b""


def _around(body: object) -> tuple[str, str]:
    first, last = json.dumps(body).split("NAME")
    return first, last


def _hot(template: str) -> Attack:
    limit = {"time_limit": LIMIT}
    body = {"hot": {"name": "NAME", "template": template, "decide": limit}}
    return Attack("POST", "/v1/hot", _around(body))


def _ensemble(**more: object) -> Attack:
    role = {"name": "r", "count": 3, "flavor": "m1.small"}
    body = {
        "ensemble": {"name": "NAME", "members": [role], "decide": {"time_limit": LIMIT}, **more}
    }
    return Attack("POST", "/v1/ensembles", _around(body))


def _joined() -> str:
    text = "{list_join: ['', [a, b, c, d, e, f, g, h, i, j]]}"
    for _ in range(5):
        text = f"{{list_join: ['', [{', '.join([text] * 8)}]]}}"
    server = (
        f"{{type: OS::Nova::Server, properties: {{flavor: m1.small, metadata: {{a: {text}}}}}}}"
    )
    return f"{HOT}resources:\n  s: {server}\n"


def _many(count: int) -> str:
    server = "{type: OS::Nova::Server, properties: {flavor: m1.small}}"
    return HOT + "resources:\n" + "".join(f"  s{number}: {server}\n" for number in range(count))


def attacks() -> dict[str, Attack]:
    """The attacks that are requests, by their names."""
    members = [{"name": "r", "count": 5_000, "flavor": "m1.small"}]
    even = {"level": "host", "max_skew": 1}
    apart = [{"name": "p", "type": "spread", "members": ["r"], **even}]
    keys = "".join(f'"k{number}":1,' for number in range(900_000))
    return {
        "members": _ensemble(members=members, policies=apart),
        "template-members": _hot(_many(5_000)),
        "list-join": _hot(_joined()),
        "yaql": _hot(
            f"{HOT}resources:\n  s: {{type: OS::Nova::Server, properties: {{flavor: "
            "{yaql: {expression: 'sequence(0).len()'}}}}\n"
        ),
        "keys": Attack("POST", "/v1/ensembles", ('{"ensemble":{' + keys + '"name":"', '"}}')),
        "keys-read": Attack("PUT", "/v1/quotas/x", ('{"quota":{' + keys + '"name":"', '"}}')),
        "keys-blazar": Attack("POST", "/reservation/v1/leases", ("{" + keys + '"name":"', '"}')),
        "keys-compute": Attack(
            "POST",
            "/compute/v2.1/os-server-groups",
            ('{"server_group":{' + keys + '"name":"', '"}}'),
        ),
        "metadata": _ensemble(metadata={"a": "x" * 15_000_000}),
        "reads": Attack("GET", "/v1/policies"),
    }


@dataclass
class Outcome:
    """What was answered."""

    statuses: Counter[str] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)

    def note(self, status: str, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        self.longest[status] = round(max(self.longest.get(status, 0.0), seconds), 2)


def _hammer(port: int, attack: Attack, stop: threading.Event, outcome: Outcome, who: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for number in itertools.count():
        if stop.is_set():
            break
        body = attack.made(f"n{who}-{number}-{time.monotonic_ns()}")
        began = time.monotonic()
        try:
            connection.request(attack.method, attack.path, body or None, HEADERS)
            answer = connection.getresponse()
            answer.read()
            status = str(answer.status)
            again = answer.headers.get("Retry-After")
            if status == "503" and again is None:
                status = "503 without Retry-After"
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            status = type(error).__name__
        outcome.note(status, time.monotonic() - began)
    connection.close()


def _pipeline(port: int, attack: Attack, stop: threading.Event, outcome: Outcome) -> None:
    """Ask on many connections for as much as they take, and read nothing."""
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    asked = f"{attack.method} {attack.path} HTTP/1.1\r\nHost: h\r\n{head}\r\n".encode() * 300
    open_ones: list[socket.socket] = []
    while not stop.wait(0.02):
        while len(open_ones) < READERS:
            one = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            one.setblocking(False)  # noqa: FBT003 - the standard library's signature
            open_ones.append(one)
            outcome.note("connected", 0.0)
        for one in list(open_ones):
            try:
                one.send(asked)
            except BlockingIOError:
                continue
            except OSError as error:
                outcome.note(type(error).__name__, 0.0)
                open_ones.remove(one)
                one.close()
    for one in open_ones:
        with contextlib.suppress(OSError):
            one.close()


def main(port: int, kind: str) -> None:
    """Attack until standard input ends."""
    attack, stop, outcome = attacks()[kind], threading.Event(), Outcome()
    if kind == "reads":
        threads = [threading.Thread(target=_pipeline, args=(port, attack, stop, outcome))]
    else:
        threads = [
            threading.Thread(target=_hammer, args=(port, attack, stop, outcome, who))
            for who in range(CLIENTS)
        ]
    for one in threads:
        one.daemon = True
        one.start()
    sys.stdin.read()
    stop.set()
    for one in threads:
        one.join(PATIENCE)
    print(json.dumps({"statuses": outcome.statuses, "longest": outcome.longest}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
