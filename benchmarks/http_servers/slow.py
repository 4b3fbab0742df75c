"""Clients that are slow, idle or many, and what another client waits meanwhile."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.http_servers.hosts import BODY, BOUNDED, PER_ADDRESS, STALLED
from benchmarks.http_servers.raw import receive_to_end, replies
from benchmarks.http_servers.servers import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.http_servers.servers import Server

LATE: Final = 2.0
"""Seconds that another client may wait at worst, on a machine that does other things too."""
HALF_HEAD: Final = b"GET /query?a HTTP/1.1\r\nHo"
HALF_BODY: Final = b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{"
_MB: Final = 1024


@dataclass(frozen=True)
class Finding:
    """What a trial found; `good` is None where nothing is demanded."""

    told: str
    good: bool | None


@contextlib.contextmanager
def _many(server: Server, count: int, data: bytes) -> Iterator[list[socket.socket]]:
    """So many connections on which this was sent, as far as the server lets them in."""
    clients: list[socket.socket] = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):
                clients.append(server.connect(2))
                clients[-1].setblocking(False)  # noqa: FBT003 - the standard library's signature
                clients[-1].send(data)
        yield clients
    finally:
        for one in clients:
            one.close()


def other(server: Server, times: int = 15, path: str = "/echo") -> tuple[list[float], int]:
    """Seconds of requests with a body, each on a connection of its own, and how many failed."""
    waited, failed = [], 0
    for _ in range(times):
        began = time.perf_counter()
        wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=4)
        try:
            with contextlib.closing(wire):
                wire.request("PUT", path, b"hello")
                failed += wire.getresponse().status != 200
        except (OSError, http.client.HTTPException):
            failed += 1
        waited.append(time.perf_counter() - began)
        if failed >= 3:
            break
    return waited, failed


def _told(waited: list[float], failed: int) -> Finding:
    if failed:
        return Finding(f"{failed} of {len(waited)} unanswered within 4 s", good=False)
    worst = max(waited)
    told = f"{1000 * statistics.median(waited):.1f} ms, worst {1000 * worst:.0f}"
    return Finding(told, good=worst < LATE)


def heads(name: str) -> Finding:
    """1,000 clients that have sent half a head."""
    with serving(name) as server, _many(server, 1000, HALF_HEAD):
        time.sleep(0.5)
        return _told(*other(server))


def bodies(name: str) -> Finding:
    """128 clients that have sent one byte of a body."""
    with serving(name) as server, _many(server, 128, HALF_BODY):
        time.sleep(0.5)
        return _told(*other(server))


def stalled_megabytes(name: str) -> Finding:
    """16 clients that have sent 15 of 16 MB: memory, with files that have no name."""
    head = b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % BODY
    sent = b"x" * (BODY - (1 << 20))
    with serving(name) as server:
        other(server, 3)
        before = server.memory()
        with contextlib.ExitStack() as opened:
            for _ in range(16):
                client = opened.enter_context(server.connect(3))
                with contextlib.suppress(OSError):
                    client.sendall(head + sent)
            time.sleep(1)
            grown = (server.memory() - before) // _MB
            found = _told(*other(server, 5))
        good = grown <= 2 * (STALLED >> 20)
        return Finding(f"{grown} MB; others {found.told}", good=good and bool(found.good))


def readers(name: str) -> Finding:
    """16 clients that read nothing of an answer of 8 MB."""
    with serving(name) as server:
        other(server, 3)
        before = server.memory()
        with _many(server, 16, b"GET /size?8 HTTP/1.1\r\nHost: h\r\n\r\n"):
            time.sleep(1.5)
            grown = (server.memory() - before) // _MB
            found = _told(*other(server))
        good = grown <= 1.5 * (STALLED >> 20)
        return Finding(f"{grown} MB; others {found.told}", good=good and bool(found.good))


def stream_readers(name: str) -> Finding:
    """64 clients that read nothing of a stream of 64 MB: parts are made as they are taken."""
    with serving(name) as server:
        other(server, 3)
        before = server.memory()
        with _many(server, 64, b"GET /stream?1024 HTTP/1.1\r\nHost: h\r\n\r\n"):
            time.sleep(2)
            grown = (server.memory() - before) // _MB
            found = _told(*other(server))
        good = grown <= 2 * (STALLED >> 20)
        return Finding(f"{grown} MB; others {found.told}", good=good and bool(found.good))


def leaving(name: str) -> Finding:
    """A client that leaves a stream: its generator is closed."""
    with serving(name) as server:
        client = server.connect()
        client.sendall(b"GET /stream?4096 HTTP/1.1\r\nHost: h\r\n\r\n")
        client.recv(1 << 16)
        client.close()
        until = time.monotonic() + 5
        counts: dict[str, int] = {}
        while time.monotonic() < until and not counts.get("closed"):
            counts = json.loads(server.ask("/counts"))
            time.sleep(0.05)
        told = f"closed: {counts.get('closed', 0)} of 1, {counts.get('parts', 0)} parts of 4,096"
        return Finding(told, good=counts.get("closed") == 1 and counts.get("parts", 0) < 2048)


def idle(name: str, count: int = 5000) -> Finding:
    """5,000 idle connections, each used once; the cost of each and what another client waits."""
    get = b"GET /query?a HTTP/1.1\r\nHost: h\r\n\r\n"
    with serving(name) as server:
        alone, _ = other(server, 40)
        before = server.memory()
        with _many(server, count, get) as clients:
            for one in clients:
                one.setblocking(True)  # noqa: FBT003 - the standard library's signature
                one.settimeout(3)
            answered = 0
            for one in clients:
                try:
                    answered += one.recv(1000).startswith(b"HTTP/1.1 200")
                except OSError:
                    break
            time.sleep(1)
            each = (server.memory() - before) / max(len(clients), 1)
            found = _told(*other(server, 40))
        told = (
            f"{answered} answered, {each:.1f} kB each; others {found.told}"
            f" (alone {1000 * statistics.median(alone):.1f})"
        )
        return Finding(told, good=answered == count and bool(found.good))


def per_address(name: str) -> Finding:
    """Connections of one address, where a setting bounds them."""
    if name != "moorage":
        return Finding("no setting", good=False)
    bounded = serving(name, environ={BOUNDED: "1"})
    with bounded as server, _many(server, 2 * PER_ADDRESS, b"") as clients:
        time.sleep(1)
        refused = 0
        for one in clients:
            with contextlib.suppress(BlockingIOError):
                refused += one.recv(1) == b""
        told = f"{len(clients) - refused} of {len(clients)} let in, {PER_ADDRESS} may"
        return Finding(told, good=refused == PER_ADDRESS)


def limits(name: str) -> Finding:
    """Bodies past the limit, with a length and in chunks; 100 only where the body may come."""
    head = b"PUT /echo HTTP/1.1\r\nHost: h\r\n"
    wrong = []
    with serving(name) as server:
        with server.connect(5) as client:
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % (BODY + 1))
            if _status(client) != 413:
                wrong.append("length")
        with server.connect(5) as client:
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            part = b"10000\r\n" + b"x" * 65536 + b"\r\n"
            with contextlib.suppress(OSError):
                for _ in range(BODY // 65536 + 1):
                    client.sendall(part)
            if _status(client) != 413:
                wrong.append("chunks")
        expect = b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        with server.connect(5) as client:
            client.sendall(head + expect % 5)
            with contextlib.suppress(OSError):
                if not client.recv(1000).startswith(b"HTTP/1.1 100"):
                    wrong.append("100 to whom asks")
                client.sendall(b"hello")
                client.recv(1000)
        with server.connect(5) as client:
            client.sendall(head + expect % (BODY + 1))
            if _status(client) != 413:
                wrong.append("no 100 for what is too long")
    return Finding("all" if not wrong else f"not: {', '.join(wrong)}", good=not wrong)


def _status(client: socket.socket) -> int:
    """Of the first answer, of an interim one too; 0 if there is none."""
    with contextlib.suppress(OSError):
        words = client.recv(4096).split()
        return int(words[1]) if len(words) > 1 else 0
    return 0


def broken_bodies(name: str) -> Finding:
    """A body that breaks off never looks whole to the application, and is told to it."""
    with serving(name) as server:
        for size in (0, 2, 4):
            with server.connect(5) as client:
                client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
                client.sendall(b"hello"[:size])
        chunked = b"PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"
        with server.connect(5) as client:
            client.sendall(chunked)
            client.shutdown(socket.SHUT_WR)
            found = replies(receive_to_end(client), ["PUT"], ended=True)
        taken = bool(found) and found[0].status == 200
        time.sleep(0.5)
        counts = json.loads(server.ask("/counts"))
        told = f"application told of {counts.get('echoes', 0)} of 4"
        if taken:
            told += "; half a body in chunks taken for whole"
        return Finding(told, good=not taken and counts.get("echoes", 0) == 4)


def address(name: str) -> Finding:
    """The client's address and port."""
    with serving(name) as server, server.connect() as client:
        client.sendall(b"GET /who HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        [found] = replies(receive_to_end(client), ["GET"], ended=True)
        own = client.getsockname()
    _, where, port, _ = json.loads(found.body)
    return Finding(f"address {where == own[0]}, port {port == str(own[1])}", good=where == own[0])
