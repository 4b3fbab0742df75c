"""Too many connections, heads and bodies that never end: they go, and others are served."""

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.process, pytest.mark.slow]

LIST = "/placement/resource_providers"
MANY = 10_000
HALF = (
    b"POST /placement/resource_providers HTTP/1.1\r\nHost: a\r\nX-Auth-Token: admin\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)


@contextlib.contextmanager
def idle(service: Any, number: int) -> Iterator[list[socket.socket]]:
    """So many connections on which nothing is said."""
    opened: list[socket.socket] = []
    try:
        opened.extend(
            socket.create_connection(("127.0.0.1", service.port), timeout=60) for _ in range(number)
        )
        yield opened
    finally:
        for connection in opened:
            connection.close()


@pytest.fixture
def files() -> Iterator[int]:
    """How many connections this process may open, having asked for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(MANY + 500, hard) if hard != resource.RLIM_INFINITY else MANY + 500
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield min(MANY, wanted - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_idle_clients_hinder_nobody(start: Any, files: int) -> None:
    if files < MANY:
        pytest.skip(f"the limit on open files allows only {files} connections here")
    service = start("--idle-timeout", "10m", "--body-timeout", "10m")
    with idle(service, files):
        for _ in range(20):
            assert service.get(LIST, x_auth_token="admin")[0] == 200
    assert service.get(LIST, x_auth_token="admin")[0] == 200
    assert "Traceback" not in service.log.read_text()


@pytest.mark.nightly
def test_beyond_the_limit_idle_ones_make_room(start: Any) -> None:
    service = start("--connections", "40", "--idle-timeout", "10m", "--body-timeout", "10m")
    with idle(service, 200) as connections:
        assert service.get(LIST, x_auth_token="admin")[0] == 200
        assert connections[0].recv(4096) == b""
    assert service.get(LIST, x_auth_token="admin")[0] == 200


def test_bodies_that_stay_away_or_trickle_are_ended(start: Any) -> None:
    service = start("--idle-timeout", "1s", "--body-timeout", "2s", "--threads", "10")
    silent = [service.raw(HALF) for _ in range(140)]
    trickling = service.raw(HALF)

    def trickle() -> None:
        with contextlib.suppress(OSError):
            for _ in range(90):
                trickling.sendall(b" ")
                time.sleep(0.3)

    thread = threading.Thread(target=trickle)
    thread.start()
    # All readers are busy now; whoever comes with a body is told to come again, or waits.
    try:
        for connection in (*silent, trickling):
            connection.settimeout(60)
            with contextlib.suppress(ConnectionResetError):
                answer = connection.recv(4096)
                assert not answer or answer.split()[1] in {b"400", b"408", b"503"}
        assert "took longer than 2 s" in service.log.read_text()
        whole = HALF.replace(b"100", b"17") + b'"name": "whole"}'
        with service.raw(whole) as connection:
            assert connection.recv(4096).split()[1] == b"201"
    finally:
        for connection in silent:
            connection.close()
        trickling.close()
        thread.join(60)


def test_a_body_of_fifty_megabytes_is_refused_before_it_is_sent(start: Any) -> None:
    service = start()
    head = HALF.partition(b"Content-Length")[0] + b"Content-Length: 52428800\r\n\r\n"
    with service.raw(head) as connection:
        answer = connection.recv(4096)
        assert answer.split()[1] == b"413"
        assert b"the limit is 16777216" in answer
        sent = 0
        with contextlib.suppress(OSError):
            for _ in range(800):
                connection.sendall(b"x" * 65536)
                sent += 65536
    assert service.get(LIST, x_auth_token="admin")[0] == 200
