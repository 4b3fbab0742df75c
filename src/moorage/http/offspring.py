"""One child process of the supervisor: start it, stop it, start it again after a pause."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
_SETTLED_AFTER: Final = 30.0
"""Seconds after which a child counts as having started well; its next pause is short again."""


@dataclass(frozen=True)
class Program:
    """What a child does."""

    name: str
    target: str
    """`module:function`, called with `config` (see `moorage.http.child`)."""
    config: Mapping[str, Any]
    descriptors: tuple[int, ...] = ()
    """Open files it inherits."""
    vital: bool = False
    """Whether the service cannot answer without it."""
    waits: bool = False
    """Whether it starts only when the service answers for the first time."""
    serves_others: bool = False
    """Whether the others need it to finish their work: it is stopped after them."""


@dataclass
class Offspring:
    """A program's process, or the pause before its next one."""

    program: Program
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    """When to start (again), on the monotonic clock."""
    failures: int = field(default=0)

    def start(self) -> None:
        """Start the process in a group of its own, so that Ctrl-C reaches the supervisor alone.

        Raises:
            OSError: the system has no room for it.
        """
        self.started_at = time.monotonic()
        self.process = process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "moorage.http.child", self.program.target],
            stdin=subprocess.PIPE,
            pass_fds=self.program.descriptors,
            process_group=0,
        )
        assert process.stdin is not None
        line = json.dumps({**self.program.config, "parent": os.getpid()}) + "\n"
        try:
            process.stdin.write(line.encode())
            process.stdin.flush()
        except BrokenPipeError:
            _log.warning("%s ended before it began", self.program.name)

    def ended(self) -> int | None:
        """The exit status of a process that has ended since the last call, else None.

        A next start is due after a pause that doubles with each failure in a row.
        """
        if self.process is None or self.process.poll() is None:
            return None
        status = self.process.returncode
        self._let_go()
        self.put_off()
        return status

    def put_off(self) -> None:
        """Let the next start be due after a pause."""
        now = time.monotonic()
        self.failures = 0 if now - self.started_at > _SETTLED_AFTER else self.failures + 1
        pause = min(_FIRST_PAUSE * 2 ** max(self.failures - 1, 0), _LONGEST_PAUSE)
        self.due_at = now + pause

    def stop(self) -> None:
        """Ask it to end."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def finish(self, deadline: float) -> None:
        """Wait for its end until `deadline` (monotonic), then kill it."""
        if self.process is None:
            return
        try:
            self.process.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            _log.warning("%s does not end: killed", self.program.name)
            self.process.kill()
            self.process.wait()
        self._let_go()

    def _let_go(self) -> None:
        process, self.process = self.process, None
        if process is not None and process.stdin is not None:
            try:
                process.stdin.close()
            except BrokenPipeError:
                _log.debug("%s ended before it read its settings", self.program.name)
