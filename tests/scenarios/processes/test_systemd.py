"""What systemd is told by a service that it starts, here by a socket of the test's own."""

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.http.systemd import READY, notifier

pytestmark = pytest.mark.process


@contextlib.contextmanager
def listening(name: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(name)
        told.settimeout(60)
        yield told


def test_it_tells_when_it_answers_and_when_it_ends(start: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "notify")
    with listening(place) as told:
        service = start(NOTIFY_SOCKET=place)
        assert told.recv(100) == b"READY=1"
        assert service.get("/healthz")[0] == 200
        for child in service.children(""):
            assert b"NOTIFY_SOCKET" not in Path(f"/proc/{child}/environ").read_bytes()
        service.process.send_signal(signal.SIGTERM)
        assert told.recv(100) == b"STOPPING=1"
        assert service.ended() == 0


def test_one_that_cannot_start_never_says_that_it_is_ready(run: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "notify")
    with listening(place) as told:
        assert run("--port", "0", "--policy-file", "none", NOTIFY_SOCKET=place).returncode == 2
        assert told.recv(100) == b"STOPPING=1"


def test_a_socket_may_have_a_name_that_is_no_files(tmp_path: Path) -> None:
    with listening(f"\0{tmp_path}") as told:
        notifier({"NOTIFY_SOCKET": f"@{tmp_path}"})(READY)
        assert told.recv(100) == b"READY=1"


def test_who_is_gone_is_told_nothing(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    notifier({})(READY)
    assert not caplog.text
    notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")})(READY)
    assert "sending READY=1 to systemd failed" in caplog.text
