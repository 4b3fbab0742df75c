"""One child process of the supervisor: start, stop, and restart after a pause."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.retry_policy import RetryPolicy
from moorage.http.child_main import TELL_STACKS
from moorage.http.process_status import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.http.process_status import Row

_log = logging.getLogger(__name__)

_RESTART: Final = RetryPolicy(first_pause=0.1, longest_pause=30.0)
_SETTLED_AFTER: Final = 30.0
"""Seconds after which a child counts as having started well; its next pause is short again."""
_TELLING: Final = 0.1
"""Seconds that a process has for writing its stacks before it is killed."""
LOOK_SECONDS: Final = 1.0
"""How often the children's heartbeats are checked."""


@dataclass(frozen=True)
class Program:
    """What a child process runs, and how the supervisor treats it."""

    name: str
    target: str
    """`module:function`, called with `config` (see `moorage.http.child_main`)."""
    config: Mapping[str, Any]
    descriptors: tuple[int, ...] = ()
    """Open files it inherits."""
    vital: bool = False
    """Whether the service cannot answer without it."""
    waits: bool = False
    """Whether it starts only when the service answers for the first time."""
    serves_others: bool = False
    """Whether other children need it to finish their work: it is stopped after them."""
    ends_before_successor: bool = False
    """Whether a reload ends it before its successor starts: what it does waits in a queue."""
    status: Callable[[int], Row] | None = None
    """The shared-memory row of the heartbeats of process number N, if it has one."""
    silence: float = math.inf
    """Seconds without a heartbeat after which it is killed."""


@dataclass(eq=False)
class ChildProcess:
    """A program's process, or the pause before its next one."""

    program: Program
    number: int = 1
    """Distinguishes it from others of its program; passed to it as `number` in its `config`."""
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    """When to start (again), on the monotonic clock."""
    failures: int = field(default=0)
    _reports: int | None = None
    """The readiness pipe of a running process, until it has reported."""
    _serves: bool = False

    @property
    def name(self) -> str:
        """`HTTP worker 1`."""
        return f"{self.program.name} {self.number}"

    silent: float = 0.0
    """Seconds without a heartbeat, counted in checks."""
    _beats: int = 0
    _looked_at: float = 0.0

    @property
    def status(self) -> Row | None:
        """The shared-memory row of its heartbeats, if it has one."""
        status = self.program.status
        return None if status is None else status(self.number)

    def start(self) -> None:
        """Start the process in a group of its own, so that Ctrl-C reaches the supervisor alone.

        It finds in its `config` a descriptor `ready`, to which it writes a byte once it serves.

        Raises:
            OSError: the system has no room for it.
        """
        self.started_at = time.monotonic()
        self._serves = False
        if self.status is not None:
            self.status.begin()
        self._reports, ready = os.pipe()
        os.set_blocking(self._reports, False)
        try:
            self.process = process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-m", "moorage.http.child_main", self.program.target],
                stdin=subprocess.PIPE,
                pass_fds=(*self.program.descriptors, ready),
                process_group=0,
            )
        except BaseException:
            self._stop_listening()
            raise
        finally:
            os.close(ready)
        assert process.stdin is not None
        own_config = {"number": self.number, "ready": ready, "parent": os.getpid()}
        line = json.dumps({**self.program.config, **own_config}) + "\n"
        try:
            process.stdin.write(line.encode())
            process.stdin.flush()
        except BrokenPipeError:
            _log.warning("%s exited before it read its configuration", self.name)

    def is_ready(self) -> bool:
        """Whether its process has reported that it serves."""
        if self._reports is not None:
            try:
                self._serves = bool(os.read(self._reports, 1))
            except BlockingIOError:
                return False
            self._stop_listening()
        return self._serves

    def drain(self) -> None:
        """Ask it to accept nothing new and to exit once its running work is done."""
        if self.process is not None:
            self.process.send_signal(signal.SIGHUP)

    def ended(self) -> int | None:
        """The exit status of a process that has ended since the last call, else None.

        A next start is due after a pause that doubles with each failure in a row.
        """
        if self.process is None or self.process.poll() is None:
            return None
        status = self.process.returncode
        self._reset()
        self.delay_restart()
        return status

    def delay_restart(self) -> None:
        """Delay the next start by a pause that grows with each failure."""
        now = time.monotonic()
        self.failures = 0 if now - self.started_at > _SETTLED_AFTER else self.failures + 1
        self.due_at = now + _RESTART.pause(max(self.failures, 1))

    def kill_if_silent(self, now: float) -> None:
        """Kill it if its heartbeat has stopped for too long, or a request is overdue.

        Not before its first heartbeat.

        It counts checks, not seconds, so that a pause of this process or of the whole machine does
        not count as silence of the child. Before, it writes to the log what its threads do.
        """
        status, elapsed = self.status, now - self._looked_at
        if self.process is None or status is None or elapsed < LOOK_SECONDS:
            return
        self._looked_at = now
        due = status[Column.DUE]
        if due and now * 1000 > due:
            _log.error(
                "%s (process %d) has a request that is past its time limit: killed",
                self.name,
                self.process.pid,
            )
            self._kill(status)
            return
        beats = status[Column.BEATS]
        if not beats or beats != self._beats:
            self._beats, self.silent = beats, 0.0
            return
        self.silent += LOOK_SECONDS
        if self.silent >= self.program.silence:
            _log.error(
                "%s (process %d) sent no heartbeat for %.0f s: killed",
                self.name,
                self.process.pid,
                self.silent,
            )
            self._kill(status)

    def _kill(self, status: Row) -> None:
        assert self.process is not None
        status.add(Column.REPLACED)
        status[Column.DUE] = 0
        self.silent = 0.0
        self.process.send_signal(TELL_STACKS)
        time.sleep(_TELLING)
        self.process.kill()

    def stop(self) -> None:
        """Send it SIGTERM."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def finish(self, deadline: float) -> None:
        """Wait for its exit until `deadline` (monotonic), then kill it."""
        if self.process is None:
            return
        try:
            self.process.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            _log.warning("%s did not exit after SIGTERM: killed", self.name)
            self.process.kill()
            self.process.wait()
        self._reset()

    def _reset(self) -> None:
        process, self.process = self.process, None
        self._serves = False
        self._stop_listening()
        if self.status is not None:
            self.status.begin()
        if process is not None and process.stdin is not None:
            try:
                process.stdin.close()
            except BrokenPipeError:
                _log.debug("%s exited before its standard input was closed", self.name)

    def _stop_listening(self) -> None:
        """Close the readiness pipe of the process."""
        reports, self._reports = self._reports, None
        if reports is not None:
            os.close(reports)
