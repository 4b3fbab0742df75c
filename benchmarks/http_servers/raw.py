"""Sends the raw cases, and judges what comes back."""

from __future__ import annotations

import contextlib
import select
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.http_servers.cases import CASES, FRAMING, SIZES

if TYPE_CHECKING:
    import socket

    from benchmarks.http_servers.cases import Case
    from benchmarks.http_servers.servers import Server

PROBE: Final = b"GET /query?probe HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
_SILENT_SECONDS: Final = 3.0
"""How long a server may do nothing, until it counts as waiting for more."""


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    whole: bool


def exchange(server: Server, data: bytes) -> tuple[bytes, bool]:
    """What comes back for these bytes, and whether the server ends the connection."""
    found = bytearray()
    with server.connect() as client:
        client.setblocking(False)  # noqa: FBT003 - the standard library's signature
        left = memoryview(data)
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < _SILENT_SECONDS:
            readable, writable, _ = select.select([client], [client] if left else [], [], 0.2)
            try:
                if writable:
                    left = left[client.send(left[:65536]) :]
                    quiet_since = time.monotonic()
                if readable:
                    some = client.recv(1 << 18)
                    if not some:
                        return bytes(found), True
                    found += some
                    quiet_since = time.monotonic()
            except BlockingIOError:
                continue
            except OSError:
                with contextlib.suppress(OSError):
                    found += client.recv(1 << 18)
                return bytes(found), True
    return bytes(found), False


def replies(data: bytes, methods: list[str], *, ended: bool) -> list[Reply]:
    """The answers in these bytes; those of 1xx are left out."""
    found: list[Reply] = []
    while data:
        head, end, rest = data.partition(b"\r\n\r\n")
        words = head.split(None, 2)
        if not end or len(words) < 2 or not words[1].isdigit():
            return [*found, Reply(0, {}, data, whole=False)]
        status = int(words[1])
        lines = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
        headers = {name.strip().lower(): value.strip() for name, _, value in lines}
        if status < 200:
            data = rest
            continue
        method = methods[len(found)] if len(found) < len(methods) else "GET"
        if method == "HEAD" or status in {204, 304}:
            body, data, whole = b"", rest, True
        elif headers.get(b"transfer-encoding") == b"chunked":
            body, data, whole = _chunks(rest)
        elif b"content-length" in headers:
            length = int(headers[b"content-length"])
            body, data, whole = rest[:length], rest[length:], len(rest) >= length
        else:
            body, data, whole = rest, b"", ended
        found.append(Reply(status, headers, body, whole))
    return found


def _chunks(data: bytes) -> tuple[bytes, bytes, bool]:
    body = b""
    while True:
        line, end, rest = data.partition(b"\r\n")
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            return body, b"", False
        if not end or len(rest) < size + 2:
            return body + rest[:size], b"", False
        body, data = body + rest[:size], rest[size + 2 :]
        if size == 0:
            return body, data, True


def judge(case: Case, found: list[Reply], *, ended: bool) -> str | None:
    """What is wrong; None if nothing is."""
    told = [(one.status, one.body[:30]) for one in found]
    probe = bool(found) and found[-1].status == 200 and found[-1].body == b"probe"
    answers = found[:-1] if probe else found
    if case.refused and _is_refusal(case, answers, probe=probe, ended=ended):
        return None
    if case.must_refuse:
        return f"not refused: {told}" if ended or answers else "waits for more"
    if not case.goes_on and len(answers) == len(case.answers) + 1 and answers[-1].status >= 400:
        answers = answers[:-1]  # of the probe
    right = len(answers) == len(case.answers) and all(
        _matches(one, status, body)
        for one, (status, body) in zip(answers, case.answers, strict=True)
    )
    if right and ended and (probe == case.goes_on or (not probe and _closes(answers[-1]))):
        return None
    return f"answered {told}{'' if ended else ', and waits'}"


def _closes(found: Reply) -> bool:
    """Whether the answer says that it is the last one."""
    return found.headers.get(b"connection", b"").lower() == b"close"


def _is_refusal(case: Case, answers: list[Reply], *, probe: bool, ended: bool) -> bool:
    if probe:  # it may go on where the end of the request is known
        strict = case.group in {FRAMING, SIZES}
        return not strict and len(answers) == 1 and answers[0].status >= 400
    return ended and len(answers) <= 1 and all(not 0 < one.status < 400 for one in answers)


def _matches(found: Reply, status: int, body: bytes | None) -> bool:
    if status == -1:
        return found.status >= 500 or not found.whole
    if status in {204, 304} and b"transfer-encoding" in found.headers:
        return False
    if status == 204 and b"content-length" in found.headers:
        return False
    if status == 400:
        return found.status >= 400
    same = body is None or found.body == body
    return (found.status == status or (body is None and found.status < 500)) and same


def run(server: Server) -> tuple[Counter[str], Counter[str], list[str]]:
    """Per group how many there are and how many were right; what was wrong."""
    of, right, wrong = Counter[str](), Counter[str](), []
    for case in CASES:
        of[case.group] += 1
        try:
            data, ended = exchange(server, case.data + PROBE)
            methods = [case.method] * max(len(case.answers), 1)
            problem = judge(case, replies(data, [*methods, "GET"], ended=ended), ended=ended)
        except OSError as error:
            problem = f"no connection: {error}"
        if problem is None:
            right[case.group] += 1
        else:
            wrong.append(f"{case.group}: {case.name}: {problem}")
    return of, right, wrong


def receive_to_end(client: socket.socket) -> bytes:
    """All until the server ends; what a reset leaves of it."""
    found = b""
    with contextlib.suppress(OSError):
        while some := client.recv(1 << 18):
            found += some
    return found
