"""The end of a worker's server: whatever was answered is sent, nobody idle delays it."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

SIZE = 32 * 1024 * 1024
"""More than the system keeps for a connection."""

PROGRAM = f"""
import sys
from moorage.http.transport.limits import ConnectionLimits
from moorage.http.worker_process import serve

def application(environ, start_response):
    if environ["PATH_INFO"] == "/small":
        start_response("200 OK", [])
        return [b"small"]
    start_response("200 OK", [("content-length", "{SIZE}")])
    return [b"x" * {SIZE}] if environ["PATH_INFO"] == "/whole" else iter([b"x" * {SIZE // 32}] * 32)

limits = ConnectionLimits(connections=4, threads=2, idle_seconds=60, body_seconds=60)
serve(application, int(sys.argv[1]), limits=limits)
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
                assert served.wait(200) == 0


@pytest.mark.process
def test_a_signal_at_any_step_of_its_waiting_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        words = [sys.executable, "-c", INTERRUPTED, str(listener.fileno())]
        with ending(subprocess.Popen(words, pass_fds=[listener.fileno()])) as served:
            assert served.wait(200) == 0


def refuses(place: tuple[str, int]) -> bool:
    """Whether nobody listens there."""
    try:
        socket.create_connection(place, timeout=60).close()
    except ConnectionRefusedError:
        return True
    return False


SMALL = b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.process
def test_who_was_connected_before_the_end_is_answered_and_who_comes_later_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        place = listener.getsockname()
        words = [sys.executable, "-c", PROGRAM, str(listener.fileno())]
        with ending(subprocess.Popen(words, pass_fds=[listener.fileno()])) as served:
            with socket.create_connection(place, timeout=60) as client:
                client.sendall(SMALL)
                assert client.recv(1000).endswith(b"small")
            listener.close()
            served.send_signal(signal.SIGSTOP)  # nobody accepts
            with socket.create_connection(place, timeout=60) as client:
                client.sendall(SMALL)
                served.send_signal(signal.SIGTERM)
                served.send_signal(signal.SIGCONT)
                with client.makefile("rb") as stream:  # to its end
                    assert stream.read().endswith(b"small")
            # It may have answered an instant before it closes its listener: the system completes
            # connections until then, and resets them.
            deadline = time.monotonic() + 100
            while not refuses(place):
                assert time.monotonic() < deadline
            assert served.wait(200) == 0


@pytest.mark.process
def test_a_newcomer_gets_the_place_that_was_unused_for_longest() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as opened:
        listener.settimeout(0)

        def client(sent: bytes = b"") -> socket.socket:
            made = socket.create_connection(listener.getsockname(), timeout=60)
            opened.enter_context(made).sendall(sent)
            return made

        words = [sys.executable, "-c", PROGRAM, str(listener.fileno())]
        with ending(subprocess.Popen(words, pass_fds=[listener.fileno()])) as served:
            begun, busy = client(SMALL[:20]), client(SMALL[:5] + b"whole" + SMALL[10:])
            first, second = client(SMALL), client(SMALL)
            for each in (first, second):
                assert each.recv(1000).endswith(b"small")
            time.sleep(1)  # a client has its answer before the server notes when it was sent
            first.sendall(SMALL)
            assert first.recv(1000).endswith(b"small")
            newcomer = client(SMALL)
            assert newcomer.recv(1000).endswith(b"small")
            assert second.recv(1000) == b""
            first.sendall(SMALL)
            begun.sendall(SMALL[20:])
            assert first.recv(1000).endswith(b"small")
            assert begun.recv(1000).endswith(b"small")
            received = 0
            while received < SIZE:
                received += len(busy.recv(1 << 20))
            served.send_signal(signal.SIGTERM)
            assert served.wait(200) == 0
