"""Requests by which one tenant would slow the others: large, long, without an end, never read."""

import contextlib
import json
import socket
from collections.abc import Callable
from functools import cache
from multiprocessing.synchronize import Event
from random import Random
from typing import Final

from tests.fuzz.doors.templates import HEAD, SERVER

CONNECTIONS: Final = 100
_AHEAD: Final = 300
_ENDLESS: Final = (
    "sequence(0).len()",
    "[1].cycle().len()",
    "1.repeat().repeat().flatten().len()",
    "generate(0, true, 1).len()",
    "generate({a => 1}, true, {a => $}).len()",
    "range(200).join(range(200), true, [$1, $2]).len()",
    "let(x => sequence(0)) -> $x.len()",
    "regex('(a+)+$').matches('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')",
)


def body(dice: Random, name: str) -> tuple[str, bytes]:
    """A path to which it is sent, and a body."""
    return dice.choice(_MAKERS)(dice, name)


def _hot(template: str, name: str, dice: Random) -> tuple[str, bytes]:
    limit = {"time_limit": dice.choice(("1s", "5s", "10s"))}
    made = {"hot": {"name": name, "template": template, "decide": limit}}
    return "/v1/hot", json.dumps(made).encode()


def _yaql(dice: Random, name: str) -> tuple[str, bytes]:
    expression = json.dumps(dice.choice(_ENDLESS))
    flavor = f"{{yaql: {{expression: {expression}}}}}"
    server = f"{{type: OS::Nova::Server, properties: {{flavor: {flavor}, image: i}}}}"
    return _hot(f"{HEAD}resources:\n  s: {server}\n", name, dice)


def _list_join(dice: Random, name: str) -> tuple[str, bytes]:
    text = "{list_join: ['', [a, b, c, d, e, f, g, h, i, j]]}"
    for _ in range(dice.choice((2, 4, 5))):
        text = f"{{list_join: ['', [{', '.join([text] * 8)}]]}}"
    server = (
        f"{{type: OS::Nova::Server, properties: {{flavor: m1.small, metadata: {{a: {text}}}}}}}"
    )
    return _hot(f"{HEAD}resources:\n  s: {server}\n", name, dice)


def _template_members(dice: Random, name: str) -> tuple[str, bytes]:
    lines = "".join(f"  s{number}: {SERVER}\n" for number in range(5_000))
    return _hot(f"{HEAD}resources:\n{lines}", name, dice)


def _members(dice: Random, name: str) -> tuple[str, bytes]:
    role = {"name": "r", "count": dice.choice((1_000, 5_000)), "flavor": "m1.small"}
    even = {"level": "host", "max_skew": 1}
    apart = {"name": "p", "type": "spread", "members": ["r"], **even}
    policies = dice.choice(([], [apart]))
    made = {"name": name, "members": [role], "policies": policies, "decide": {"time_limit": "5s"}}
    return "/v1/ensembles", json.dumps({"ensemble": made}).encode()


@cache
def _unknown(count: int) -> str:
    return "".join(f'"k{number}":1,' for number in range(count))


def _keys(dice: Random, name: str) -> tuple[str, bytes]:
    path, whole = dice.choice(
        (
            ("/v1/ensembles", "ensemble"),
            ("/v1/leases", "lease"),
            ("/v1/subscriptions", "subscription"),
            ("/reservation/leases", "lease"),
            ("/compute/v2.1/os-server-groups", "server_group"),
            ("/placement/allocations", "allocations"),
        )
    )
    keys = _unknown(dice.choice((90_000, 900_000)))
    return path, f'{{"{whole}":{{{keys}"name":"{name}"}}}}'.encode()


def _metadata(dice: Random, name: str) -> tuple[str, bytes]:
    texts = {"a": "x" * dice.choice((100_000, 15_000_000))}
    role = {"name": "r", "count": 1, "flavor": "m1.small"}
    made = {"name": name, "members": [role], "metadata": texts}
    return "/v1/ensembles", json.dumps({"ensemble": made}).encode()


def _elements(dice: Random, name: str) -> tuple[str, bytes]:
    element = dice.choice(("[],", "{},", "1,", '"a",'))
    many = (element * (12_000_000 // len(element))).rstrip(",")
    return "/v1/ensembles", f'{{"ensemble":{{"name":"{name}","members":[{many}]}}}}'.encode()


_MAKERS: Final[tuple[Callable[[Random, str], tuple[str, bytes]], ...]] = (
    _yaql,
    _yaql,
    _list_join,
    _template_members,
    _members,
    _keys,
    _keys,
    _metadata,
    _elements,
)


def read_nothing(port: int, project: str, calm: Event, stop: Event) -> None:
    """Ask on many connections for as much as they take, and read nothing."""
    head = f"X-Auth-Token: ann:{project}\r\nX-Roles: member\r\nHost: h\r\n"
    asked = f"GET /v1/policies HTTP/1.1\r\n{head}\r\n".encode() * _AHEAD
    held: list[socket.socket] = []
    while not stop.wait(0.1):
        if calm.is_set():
            _close(held)
            continue
        with contextlib.suppress(OSError):
            while len(held) < CONNECTIONS:
                one = socket.create_connection(("127.0.0.1", port), timeout=5)
                one.setblocking(False)  # noqa: FBT003 - the standard library's signature
                held.append(one)
        for one in list(held):
            try:
                one.send(asked)
            except BlockingIOError:
                continue
            except OSError:
                held.remove(one)
                one.close()
    _close(held)


def _close(held: list[socket.socket]) -> None:
    for one in held:
        one.close()
    held.clear()
