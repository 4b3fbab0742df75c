"""Starting programs that outlive their starter, and ending them by their pid."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.minicloud.layout import Layout


class NotUp(Exception):
    """A program ended, or did not answer in time; with the end of its log."""


@dataclass(frozen=True)
class Program:
    """One program of the cloud, known by the folder of its pid and log."""

    layout: Layout
    name: str

    @property
    def log(self) -> Path:
        return self.layout.folder(self.name) / "log"

    @property
    def _pid_file(self) -> Path:
        return self.layout.folder(self.name) / "pid"

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        try:
            pid = int(self._pid_file.read_text())
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if state == "Z" else pid

    def start(self, *words: str, **environ: str) -> None:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.layout.folder(self.name),
                env=self.layout.environ | environ,
                start_new_session=True,
            )
        self._pid_file.write_text(str(process.pid))
        process.returncode = 0  # it is known by its pid from here on, and may outlive this process

    def wait_until(self, answers: Callable[[], bool], seconds: float = 120) -> None:
        """Until it answers.

        Raises:
            NotUp: it ended or took too long.
        """
        deadline = time.monotonic() + seconds
        while not answers():
            if self.pid is None:
                raise NotUp(f"{self.name} ended; its log ends with:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise NotUp(f"{self.name} is not up after {seconds} s:\n{self.tail()}")
            time.sleep(0.1)

    def tail(self, characters: int = 3_000) -> str:
        """The end of what it printed, and of its own log."""
        logs = [self.log, *self.layout.folder(self.name).glob("*.log")]
        return "\n".join(
            one.read_text(errors="replace")[-characters:] for one in logs if one.exists()
        )

    def stop(self, sign: signal.Signals = signal.SIGTERM, seconds: float = 20) -> None:
        """End it and what it started; killed if it does not end in time."""
        pid = self.pid
        if pid is None:
            return
        for one in (sign, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(pid, one)
            if self._gone(seconds):
                break
        with suppress(ProcessLookupError):  # what it started and left
            os.killpg(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    def kill(self) -> None:
        """As a crash would."""
        self.stop(signal.SIGKILL)

    def _gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.pid is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True
