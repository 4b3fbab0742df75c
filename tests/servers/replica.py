"""`moorage serve` on a given database, in a process group of its own that can be killed."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.servers.guard import guard, released

MEMBER = {
    "X-Auth-Token": "ann:project-a",
    "X-Roles": "member",
    "Content-Type": "application/json",
}
Unacknowledged = (OSError, http.client.HTTPException)
"""How a request ends whose answer never came."""


class Replica:
    """One service, without planner processes unless said; its log and home are in the folder."""

    def __init__(self, folder: Path, database: str, *options: str) -> None:
        self._folder, self._database, self._options = folder, database, options
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def start(self) -> None:
        """Start it, without waiting for an answer."""
        self.port = 0
        dropped = ("MOORAGE_", "PYTHONDONTWRITEBYTECODE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        options = ["--port", "0", "--database", self._database, "--log-level", "warning"]
        if "--planners" not in self._options:
            options += ["--planners", "0"]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moorage.cli.main", "serve", *options, *self._options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._folder,
                env={**kept, "HOME": str(self._folder)},
                start_new_session=True,
            )
        guard(self._process)

    def up(self) -> None:
        """Wait until it answers."""
        assert self._process is not None
        assert self._process.stdout is not None
        if not self.port:
            line = self._process.stdout.readline()
            assert "serving on" in line, self.log()
            self.port = int(line.partition("://")[2].partition(" ")[0].rpartition(":")[2])
        deadline = time.monotonic() + 100
        while not self._healthy():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def _healthy(self) -> bool:
        with contextlib.suppress(*Unacknowledged):
            return self.ask("GET", "/healthz")[0] == 200
        return False

    @property
    def pid(self) -> int:
        """The supervisor's."""
        assert self._process is not None
        return self._process.pid

    def text(self, path: str) -> str:
        """The body of an answer that is no JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers=MEMBER)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def log(self) -> str:
        """The end of what it wrote to its log."""
        return self.whole_log()[-4000:]

    def whole_log(self) -> str:
        """All that it wrote to its log."""
        return self._log.read_text()

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] = MEMBER
    ) -> tuple[int, Any]:
        """One request on a connection of its own: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, dict(headers))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(content) if content else {}

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The body of a good answer; an answer that is none fails the test."""
        status, content = self.ask(method, path, body)
        assert status < 300, content
        return content

    def kill_everything(self) -> None:
        """SIGKILL to the supervisor and all its processes at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """SIGTERM to the supervisor; wait until it has ended well."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(60) == 0, self.log()

    def reload(self) -> None:
        """SIGHUP to the supervisor, which replaces every process; does not wait for that."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def kill_worker(self) -> None:
        """SIGKILL to the process that answers requests; the supervisor makes a new one."""
        assert self._process is not None
        pid = self._process.pid
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                if "solver" not in Path(f"/proc/{child}/cmdline").read_text():
                    os.kill(int(child), signal.SIGKILL)

    def down(self) -> None:
        """Nobody of it runs any more."""
        self.kill_everything()
        if self._process is not None:
            self._process.wait(60)
            released(self._process)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
