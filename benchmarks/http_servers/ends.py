"""Several workers on one socket, the end of a worker and its replacement, signs of life, TLS."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.http_servers.hosts import CERTIFICATE, OWN_SOCKET
from benchmarks.http_servers.raw import receive_to_end
from benchmarks.http_servers.servers import serving, tls_client
from benchmarks.http_servers.slow import Finding

if TYPE_CHECKING:
    import socket

    from benchmarks.http_servers.servers import Server

CONNECTIONS: Final = 200
SIZE: Final = 32
"""Megabytes of an answer that is more than the system keeps."""
_END_SECONDS: Final = 8.0
_READY_SECONDS: Final = 10.0


def balance(name: str) -> Finding:
    """Which of two workers got how many of 200 connections that are kept."""
    with serving(name, workers=2) as server, contextlib.ExitStack() as opened:
        time.sleep(1)
        of: Counter[int] = Counter()
        for _ in range(CONNECTIONS):
            client = opened.enter_context(server.connect(5))
            client.sendall(b"GET /who HTTP/1.1\r\nHost: h\r\n\r\n")
            data = b""
            while not data.endswith(b"]"):
                data += client.recv(4096)
            of[json.loads(data.partition(b"\r\n\r\n")[2])[0]] += 1
        told = sorted([*of.values(), 0, 0][:2])
    return Finding(f"{told[0]} and {told[1]}", good=told[0] >= CONNECTIONS // 2 * 0.8)


def _kept(server: Server) -> socket.socket:
    """A connection that had an answer and goes on."""
    client = server.connect(20)
    client.sendall(b"GET /query?a HTTP/1.1\r\nHost: h\r\n\r\n")
    client.recv(4096)
    return client


def _received(client: socket.socket, wanted: int) -> int:
    found = 0
    with contextlib.suppress(OSError):
        while found < wanted and (some := client.recv(1 << 20)):
            found += len(some)
    return found


def end(name: str) -> Finding:
    """SIGTERM: a request at work, a long answer that is read slowly, a stream; idle ones."""
    lost = []
    with serving(name) as server, contextlib.ExitStack() as opened:
        idle, working, reading, streamed, begun = (
            opened.enter_context(_kept(server)) for _ in range(5)
        )
        get = b"GET /%b HTTP/1.1\r\nHost: h\r\n\r\n"
        working.sendall(get % b"sleep?1.5")
        reading.sendall(get % b"size?%d" % SIZE)
        streamed.sendall(get % b"stream?512")
        begun.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe")
        some = [len(reading.recv(4096)), len(streamed.recv(4096))]
        time.sleep(0.3)
        process = server.processes[0]
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        time.sleep(0.5)
        with contextlib.suppress(OSError):
            begun.sendall(b"llo")
        begun.settimeout(5)
        time.sleep(0.5)
        if _received(reading, (SIZE << 20) - some[0]) < (SIZE << 20) - some[0]:
            lost.append("the rest of a long answer")
        if _received(streamed, (32 << 20) - some[1]) < (32 << 20) - some[1]:
            lost.append("the rest of a stream")
        if not receive_to_end(working).endswith(b"slept"):
            lost.append("a request at work")
        if b"200" not in _some(begun):
            lost.append("a body that was coming")
        idle.settimeout(_END_SECONDS)
        if (last := _some(idle)) != b"":
            lost.append(f"a clean end of an idle connection ({last[:20].decode()})")
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            lost.append("its own end")
        seconds = time.monotonic() - began
    told = f"ends after {seconds:.1f} s" + (f", lost: {', '.join(lost)}" if lost else "")
    return Finding(told, good=not lost)


def _some(client: socket.socket) -> bytes:
    try:
        return client.recv(4096)
    except OSError as error:
        return type(error).__name__.encode()


class _Asking(threading.Thread):
    """A client that asks over kept connections and notes what went wrong."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.over = threading.Event()
        self.failed: Counter[str] = Counter()
        self.asked = 0

    def run(self) -> None:
        """Until it is over."""
        wire = None
        while not self.over.wait(0.002):
            if wire is None:
                wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            try:
                self.asked += 1
                wire.request("PUT", "/echo", b"hello")
                answer = wire.getresponse()
                answer.read()
                if answer.status != 200:
                    self.failed[str(answer.status)] += 1
                if answer.will_close:
                    wire.close()
                    wire = None
            except (OSError, http.client.HTTPException) as error:
                self.failed[type(error).__name__] += 1
                if wire is not None:
                    wire.close()
                wire = None


def replacement(name: str) -> Finding:
    """Five times a successor on the same socket, then the old one is to go: no request fails."""
    if name in OWN_SOCKET:
        return Finding("takes no socket", good=False)
    with serving(name) as server:
        clients = [_Asking(server.port) for _ in range(4)]
        for one in clients:
            one.start()
        try:
            for _ in range(5):
                old = server.processes[-1]
                server.start()
                until = time.monotonic() + _READY_SECONDS
                while len(_asked_all(server)) < 2 and time.monotonic() < until:
                    time.sleep(0.05)
                old.send_signal(signal.SIGHUP if name == "moorage" else signal.SIGTERM)
                old.wait(10)
        except subprocess.TimeoutExpired:
            return Finding("the old one does not end within 10 s", good=False)
        finally:
            for one in clients:
                one.over.set()
            for one in clients:
                one.join(15)
        failed = sum((one.failed for one in clients), Counter[str]())
        asked = sum(one.asked for one in clients)
    told = f"{failed.total()} of {asked} failed" + (f" ({dict(failed)})" if failed else "")
    return Finding(told, good=not failed)


def _asked_all(server: Server) -> set[int]:
    """Who answers just now."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return {json.loads(server.ask("/who", 5))[0] for _ in range(12)}
    return set()


def socket_given(name: str) -> Finding:
    """Whether a listening socket can be handed in by its descriptor."""
    how = {
        "moorage": "argument",
        "waitress": "`sockets=`",
        "cheroot": "descriptor 3, as from systemd",
        "gunicorn": "`fd://`, to its own supervisor",
    }
    return Finding(how.get(name, "no: address and port, or the path of a Unix socket"), name in how)


def signs(name: str) -> Finding:
    """All threads at work for long: can the supervisor see it? By reading the public interfaces."""
    told = {
        "moorage": ("beats of the loop that accepts; none while all requests are overdue", True),
        "waitress": ("none: its loop calls nobody; a wrapper can count requests", False),
        "cheroot": ("none of its loop; `requests.idle` counts threads", False),
        "gunicorn": (
            "its own supervisor's, of its loop alone; a wrapper can count requests",
            False,
        ),
        "granian": ("none; a wrapper can count requests", False),
    }[name]
    return Finding(*told)


def tls(name: str) -> Finding:
    """A request over TLS."""
    if name == "waitress":
        return Finding("by a proxy", good=None)
    from tests.servers.certificate import write_certificate

    with tempfile.TemporaryDirectory() as home:
        cert, key = write_certificate(Path(home))
        both = Path(home, "both.pem")
        both.write_text(Path(key).read_text() + Path(cert).read_text())
        with serving(name, environ={CERTIFICATE: str(both)}) as server:
            context = tls_client(Path(cert))
            until = time.monotonic() + _READY_SECONDS
            while time.monotonic() < until:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    wire = http.client.HTTPSConnection(
                        "127.0.0.1", server.port, timeout=3, context=context
                    )
                    with contextlib.closing(wire):
                        wire.request("GET", "/who")
                        found = json.loads(wire.getresponse().read())
                        return Finding(f"yes, scheme {found[3]}", good=found[3] == "https")
                time.sleep(0.1)
    return Finding("no answer", good=False)
