"""A log file, shared by all processes, moved by logrotate, changed by a reload."""

import signal
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_every_process_logs_to_the_file_also_after_it_was_moved(start: Any, tmp_path: Path) -> None:
    settings = tmp_path / "own.conf"
    settings.write_text(f"[DEFAULT]\nlog_dir = {tmp_path}\nworkers = 2\n")
    service = start("--config-file", str(settings))
    file = tmp_path / "moorage.log"

    def logged() -> bool:
        service.get("/healthz")
        service.get("/placement/resource_providers", x_auth_token="admin")
        return any("GET /placement/resource_providers 200" in line for line in lines(file))

    service.eventually(logged)
    assert service.log.read_text() == ""
    file.rename(tmp_path / "moorage.log.1")
    service.eventually(logged)
    before = len(lines(tmp_path / "moorage.log.1"))
    settings.write_text(f"[DEFAULT]\nlog_dir = {tmp_path}/missing\n")
    service.process.send_signal(signal.SIGHUP)
    service.eventually(lambda: any("reload refused" in line for line in lines(file)))
    assert any(f"cannot log to {tmp_path}/missing/moorage.log" in line for line in lines(file))
    settings.write_text(f"[DEFAULT]\nlog_file = {tmp_path}/two.log\nuse_stderr = true\ndebug = 1\n")
    service.process.send_signal(signal.SIGHUP)
    service.eventually(
        lambda: any("reload finished" in line for line in lines(tmp_path / "two.log"))
    )
    assert "reload finished" in service.log.read_text()
    assert len(lines(tmp_path / "moorage.log.1")) == before
    service.process.send_signal(signal.SIGTERM)
    assert service.ended() == 0
