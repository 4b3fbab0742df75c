"""The end of a worker's server: whatever was answered is sent, nobody idle delays it."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SIZE = 32 * 1024 * 1024
"""More than the system keeps for a connection."""

PROGRAM = f"""
import sys
from moorage.http.config import Wire
from moorage.http.server import serve

def application(environ, start_response):
    start_response("200 OK", [("content-length", "{SIZE}")])
    return [b"x" * {SIZE}] if environ["PATH_INFO"] == "/whole" else iter([b"x" * {SIZE // 32}] * 32)

wire = Wire(connections=10, threads=2, idle_seconds=60, body_seconds=60)
serve(application, int(sys.argv[1]), wire=wire)
"""

INTERRUPTED = f"""
import signal
import sys
import threading

def interrupt(frame, event, value):
    waits = frame.f_code.co_filename == threading.__file__
    if waits and event == "line" and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        signal.raise_signal(signal.SIGTERM)
    return interrupt

sys.settrace(interrupt)
{PROGRAM}
"""
"""It is told to end at every step that its main thread makes to wait for anything."""


@contextmanager
def ending(served: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which is gone afterwards."""
    with served:
        try:
            yield served
        finally:
            served.kill()


@pytest.mark.process
@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_an_answer_that_is_still_being_sent_is_sent_whole(path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        words = [sys.executable, "-c", PROGRAM, str(listener.fileno())]
        with ending(subprocess.Popen(words, pass_fds=[listener.fileno()])) as served:
            idle = socket.create_connection(listener.getsockname(), timeout=60)
            with idle, socket.create_connection(listener.getsockname(), timeout=60) as client:
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                head, _, some = client.recv(65536).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                served.send_signal(signal.SIGTERM)
                time.sleep(1)  # a client that is slower than the server would like to end
                received = len(some)
                while received < SIZE and (more := client.recv(1 << 20)):
                    received += len(more)
                assert received == SIZE
                assert served.wait(30) == 0


@pytest.mark.process
def test_a_signal_at_any_step_of_its_waiting_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        words = [sys.executable, "-c", INTERRUPTED, str(listener.fileno())]
        with ending(subprocess.Popen(words, pass_fds=[listener.fileno()])) as served:
            assert served.wait(30) == 0
